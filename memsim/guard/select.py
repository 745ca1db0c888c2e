"""Which accesses a budget applies to: the language of `sites(...)`.

    sites(store)                              stores
    sites(shared, load, ldmatrix)             shared loads, ldmatrix among them
    sites(array=s_a, width=16)                accesses of 16 bytes per lane to s_a
    sites(line=43)  sites(code="s_a[k + 1]")  a source line, by number or by text in it
    sites(kernel=guide_*, file=tile.cuh)      kernels and files, by pattern

Filters of one kind are alternatives; filters of different kinds must all hold.

A match is True, False, or None if the access could not be analyzed and it is unknown. An acceptance has to
match for certain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NoReturn

from memsim.analysis import SiteCounts
from memsim.errors import MemsimError
from memsim.model.operations import OPERATIONS


class Scanner:
    """A text and the current position; blanks between tokens are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0  # of the token taken last

    def take(self, pattern: str) -> str | None:
        """The token that matches `pattern` here, or None."""
        self.skip_blanks()
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            return None
        self.start, self.at = self.at, match.end()
        return match[0]

    def one_of(self, known: tuple[str, ...], what: str) -> str:
        """The word that follows, which must be one of `known`."""
        piece = self.take(r"\w+")
        if piece is None:
            self.fail(f"expected {what}", hint=f"known: {', '.join(known)}")
        if piece not in known:
            near = get_close_matches(piece, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            self.fail_last(f"there is no {what} {piece!r}", hint=f"{hint}known: {', '.join(known)}")
        return piece

    def expect(self, pattern: str, what: str) -> str:
        """The token that matches `pattern`, which is required."""
        piece = self.take(pattern)
        if piece is None:
            self.fail(f"expected {what}")
        return piece

    def end(self) -> None:
        """Require the end of the text."""
        self.skip_blanks()
        if self.at < len(self.text):
            self.fail(f"unexpected {self.text[self.at :]!r}")

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise an error at the next token."""
        self.skip_blanks()
        raise MemsimError(message, column=self.at + 1, source=self.text, hint=hint)

    def fail_last(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise an error at the token taken last."""
        raise MemsimError(message, column=self.start + 1, source=self.text, hint=hint)

    def skip_blanks(self) -> None:
        """Move to the next token."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1


OPS = tuple(dict.fromkeys(name for _, name in OPERATIONS))
SPACES = tuple(dict.fromkeys(space for space, _ in OPERATIONS))
Match = bool | None


def _known(unknown: bool, holds: bool) -> Match:
    return holds or (None if unknown else False)


def _array(value: str, kernel: str, site: SiteCounts) -> Match:
    """An access with an unknown address may touch more arrays than it was seen to touch."""
    names = site.array.split("|")
    return _known(site.unresolved is not None, any(fnmatchcase(name, value) for name in names if name))


#: Whether a filter's value fits a kernel and a row.
KINDS: dict[str, Callable[[str, str, SiteCounts], Match]] = {
    "kernel": lambda value, kernel, site: fnmatchcase(kernel, value),
    "file": lambda value, kernel, site: _known(not site.file, PurePosixPath(site.file).match(value)),
    "line": lambda value, kernel, site: _known(not site.file, site.line == int(value)),
    "code": lambda value, kernel, site: _known(
        not site.source, value in site.source or " ".join(value.split()) in site.statement
    ),
    "array": _array,
    "width": lambda value, kernel, site: _known(not site.width, site.width == int(value)),
    "op": lambda value, kernel, site: site.op == value,
    "space": lambda value, kernel, site: site.space == value,
}
NUMBERS = ("line", "width")
NUMBER = r"[0-9]{1,18}(?!\w)"
WORDS = dict.fromkeys(OPS, "op") | dict.fromkeys(SPACES, "space")


@dataclass(frozen=True, slots=True)
class Selector:
    """`filters`: (kind, value) pairs; none means every access. columns: of each, from 1."""

    text: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    columns: tuple[int, ...] = field(default=(), compare=False)

    def values(self, kind: str) -> list[str]:
        """The values of the filters of a kind."""
        return [value for other, value in self.filters if other == kind]

    def matches(self, kernel: str, site: SiteCounts) -> Match:
        """Whether the row matches; None if it may, but could not be analyzed."""
        answer: Match = True
        for kind in dict.fromkeys(kind for kind, _ in self.filters):
            answers = [KINDS[kind](value, kernel, site) for value in self.values(kind)]
            if True in answers:
                continue
            if None not in answers or site.unresolved is None:
                return False
            answer = None
        return answer

    def surely_matches(self, kernel: str, site: SiteCounts) -> bool:
        """Whether the row matches, and would for each array that it was seen to touch."""
        names = site.array.split("|")
        return all(self.matches(kernel, replace(site, array=name)) is True for name in names)

    def alternatives(self) -> Iterator[tuple[str, int, Selector]]:
        """(text, column, the selector with this alternative only) of each filter that has alternatives."""
        kinds = [kind for kind, _ in self.filters]
        for (kind, value), column in zip(self.filters, self.columns):
            if kinds.count(kind) > 1:
                kept = tuple(one for one in self.filters if one[0] != kind or one[1] == value)
                yield f"{kind}={value}", column, replace(self, filters=kept, columns=())


EVERYTHING = Selector()


def parse_selector(text: str) -> Selector:
    """A selector by itself, as in `accept = ["sites(array=index)"]`.

    Raises:
        MemsimError: with the column of the mistake.
    """
    scanner = Scanner(text)
    selector = read_selector(scanner)
    if selector is None:
        scanner.fail("expected sites(...)", hint='such as sites(array=s_a) or sites(code="s_a[k]")')
    scanner.end()
    return selector


def read_selector(scanner: Scanner) -> Selector | None:
    """The `sites(...)` that follows, or None."""
    if scanner.take(r"sites\s*\(") is None:
        return None
    start = scanner.start
    filters: list[tuple[str, str]] = []
    columns: list[int] = []
    while not filters or scanner.take(","):
        scanner.skip_blanks()
        columns.append(scanner.at + 1)
        filters.append(_read_filter(scanner))
    scanner.expect(r"\)", "',' or ')'")
    return Selector(scanner.text[start : scanner.at], tuple(filters), tuple(columns))


def _read_filter(scanner: Scanner) -> tuple[str, str]:
    key = scanner.take(r"\w+(?=\s*=)")
    if key is None:
        word = scanner.one_of(tuple(WORDS), "kind of access")
        return WORDS[word], word
    if key not in KINDS:
        scanner.fail_last(f"there is no filter {key!r}", hint=f"known: {', '.join(KINDS)}")
    scanner.expect("=", "'='")
    if key in NUMBERS:
        return key, str(int(scanner.expect(NUMBER, f"a number for {key}")))
    quoted = scanner.take(r'"[^"]*"|\'[^\']*\'')
    value = quoted[1:-1] if quoted else scanner.take(r"[^\s,()\"']+")
    if not value:
        hint = 'quote values with blanks, commas or brackets: "..."'
        scanner.fail(f"expected a value for {key}", hint=hint)
    if key in ("op", "space"):
        known = OPS if key == "op" else SPACES
        if value not in known:
            scanner.fail_last(f"there is no {key} {value!r}", hint=f"known: {', '.join(known)}")
    return key, value
