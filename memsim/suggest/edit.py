"""An edit of a source: what it replaces, its lines, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff
from itertools import accumulate, pairwise

_TOKEN = re.compile(r"\w+|<<|>>|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Replacement:
    """`new` replaces the text from `start` to `end`. grows: of a launch's dynamic bytes, by what part."""

    start: int
    end: int
    new: str
    grows: float = 0.0


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a file before and after, or several from `line` on; `new` may be more or fewer than `old`."""

    file: str
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file. text: the original. replacements: in order of position.

    unseen: lines from which the array may be accessed in a way that the edit does not account for. names:
    constants, parameters and sizes whose other values may change what it does. conditions: what it needs of
    them, in C; asserted in the source if they are constants. brings_launch: the launch in the file, too, has
    the dynamic shared memory that it needs. declared: place behind the array's declaration.
    among_blocks: blocks do each other's work, so that only all of a grid's have the same results.
    """

    file: str
    text: str
    replacements: tuple[Replacement, ...]
    unseen: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    brings_launch: bool = False
    declared: int = 0
    among_blocks: bool = False

    def asserting(self, condition: str) -> Edit:
        """With a line behind the declaration that compiles only where a condition holds."""
        first = self.text.rfind("\n", 0, self.declared) + 1
        own = re.findall(r"\A[ \t]*", self.text[first:])
        behind = re.findall(r"\A[^\n]*\n([ \t]*)[^\s}]", self.text[self.declared :])  # deeper in a block
        indent = max(own + behind, key=len)
        line = f'\n{indent}static_assert({condition}, "of this layout");'
        in_order = _in_order([*self.replacements, Replacement(self.declared, self.declared, line)])
        conditions = tuple(dict.fromkeys((*self.conditions, condition)))
        return replace(self, replacements=tuple(in_order), conditions=conditions)

    @property
    def new(self) -> str:
        """The file's text after the edit."""
        return apply_replacements(self.text, self.replacements)

    @property
    def tokens(self) -> int:
        """How many tokens more the source has: what an edit costs its reader."""
        pairs = ((self.text[each.start : each.end], each.new) for each in self.replacements)
        return sum(len(_TOKEN.findall(new)) - len(_TOKEN.findall(old)) for old, new in pairs)

    @property
    def lines(self) -> tuple[ChangedLine, ...]:
        """What differs, line by line, but for lines that a replacement spans."""
        found, start, number = list[ChangedLine](), 0, 1
        within_lines = [_without_line_end(self.text, each) for each in self.replacements]
        for end in _ends_of_lines(self.text, within_lines):
            old = self.text[start:end]
            inside = [
                Replacement(each.start - start, each.end - start, each.new)
                for each in within_lines
                if start <= each.start <= end
            ]
            new = apply_replacements(old, inside)
            if new != old:
                found.append(ChangedLine(self.file, number, old, new))
            start, number = end + 1, number + 1 + old.count("\n")
        return tuple(found)

    @property
    def runs(self) -> list[tuple[int, int, list[str]]]:
        """Runs of changed lines: first and last number, and the new lines."""
        found: list[tuple[int, int, list[str]]] = []
        for each in self.lines:
            last = each.line + each.old.count("\n")
            if found and found[-1][1] == each.line - 1:
                first, _, new = found.pop()
                found.append((first, last, [*new, *each.new.split("\n")]))
            else:
                found.append((each.line, last, each.new.split("\n")))
        return found

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return git_diff(self.file, self.text, self.new)

    def joined(self, other: Edit) -> Edit | None:
        """Both edits as one; None if they are of different files or overlap."""
        if (other.file, other.text) != (self.file, self.text):
            return None
        both = _in_order({*self.replacements, *other.replacements})
        growing = sorted((each for each in both if each.grows), key=lambda each: each.grows)
        most = {(each.start, each.end): each for each in growing}
        both = [each for each in both if most.get((each.start, each.end), each) == each]
        if any(one.end > two.start for one, two in pairwise(both)):
            return None
        return replace(
            self,
            replacements=tuple(both),
            unseen=tuple(sorted({*self.unseen, *other.unseen})),
            names=tuple(dict.fromkeys((*self.names, *other.names))),
            conditions=tuple(dict.fromkeys((*self.conditions, *other.conditions))),
            brings_launch=self.brings_launch or other.brings_launch,
        )

    def followed_by(self, other: Edit) -> Edit:
        """Both edits as one of this one's text; the other one is of this one's new text."""
        old, new = (text.splitlines(keepends=True) for text in (self.text, other.new))
        starts = [0, *accumulate(map(len, old))]
        changed = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        replacements = (
            Replacement(starts[first], starts[last], "".join(new[begin:end]))
            for kind, first, last, begin, end in changed
            if kind != "equal"
        )
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        return replace(self, replacements=tuple(replacements), names=names)


def _without_line_end(text: str, one: Replacement) -> Replacement:
    """The replacement without a line end that stays."""
    stays = one.start < one.end and text[one.end - 1] == "\n" and one.new.endswith("\n")
    return replace(one, end=one.end - 1, new=one.new[:-1]) if stays else one


def _ends_of_lines(text: str, replacements: Iterable[Replacement]) -> list[int]:
    """Where lines of a text end, but for those that end within a replacement."""
    ends = [each.start() for each in re.finditer(r"\n|\Z", text)]
    return [end for end in ends if not any(one.start <= end < one.end for one in replacements)]


def _in_order(replacements: Iterable[Replacement]) -> list[Replacement]:
    return sorted(replacements, key=lambda each: (each.start, each.end))


def git_diff(file: str, old: str, new: str) -> str:
    """A unified diff as git writes it: lines end with a line feed only, and a last one may have none."""
    before, after = _lines(old), _lines(new)
    return "".join(unified_diff(before, after, f"a/{file}", f"b/{file}"))


def _lines(text: str) -> list[str]:
    *whole, last = (f"{line}\n" for line in text.split("\n"))
    return [*whole, f"{last}\\ No newline at end of file\n"] if last != "\n" else whole


def apply_replacements(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with all replacements made."""
    for each in reversed(_in_order(replacements)):  # of equal places the last one first: texts stay in order
        text = text[: each.start] + each.new + text[each.end :]
    return text
