"""A source in which calls of its own macros, and of `__ldg`, are what they stand for.

`vload(v, &C(i, j))` is an access that nobody sees before it is `v = *((float4 *)(&C[(i) + (j)*ldc]));`. An
edit of the expanded text replaces whole calls by what they stand for, and leaves all others as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from memsim.source.text import bracket_end, split_at_commas, substitute_names, without_comments
from memsim.suggest.edit import Replacement, apply_replacements

_MACRO = re.compile(
    r"^[ \t]*#[ \t]*(?:define[ \t]+(?P<name>\w+)\((?P<of>[\w\s,]*)\)(?P<body>(?:\\\r?\n|[^\n])*)"
    r"|(?:define|undef)[ \t]+(?P<other>\w+))",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_CALL = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(")
READ = "__ldg"  # which reads an element through its address
#: What a body has that is no part of a function's code, or is more than text.
_MORE = re.compile(r"#|\b__(?:global|device|shared)__\b")


class Expanded:
    """A text in which macros with arguments, and `__ldg`, are expanded; of a name that is defined anew, those
    before and behind an `#undef`. Lines keep their numbers.

    calls: where each begins and ends in it, and by how much the text up to there is longer than the original.
    """

    def __init__(self, original: str) -> None:
        code = without_comments(original)
        self._macros: dict[str, list[tuple[int, list[str], str]]] = {}
        for found in _MACRO.finditer(code):
            body = re.sub(r"\s*\\\r?\n\s*", " ", found["body"] or "").strip()
            before = self._macros.setdefault(found["name"] or found["other"], [(-1, [], "")])
            is_known = not _MORE.search(body) and not before[-1][2]
            parameters = [one.strip() for one in (found["of"] or "").split(",")]
            before.append((found.start(), parameters, body if is_known else ""))
        directives = [one.span() for one in _DIRECTIVE.finditer(code)] if self._macros else []
        calls = [one for one in self._calls(code) if not any(a <= one.start < b for a, b in directives)]
        self.text, longer = apply_replacements(original, calls), 0
        self.calls: list[tuple[int, int, int]] = []
        for one in calls:
            start = one.start + longer
            longer += len(one.new) - (one.end - one.start)
            self.calls.append((start, one.end + longer, longer))

    def _calls(self, code: str, at: int = -1, within: frozenset[str] = frozenset()) -> list[Replacement]:
        """The outermost calls in code, by what they stand for, where that is at a place of the source.

        within: macros of which this is the text, in which their names are no calls.
        """
        found = list[Replacement]()
        for match in _CALL.finditer(code) if self._macros or READ in code else ():
            if match[1] in within or (found and match.start() < found[-1].end):
                continue
            place, end = match.start() if at < 0 else at, bracket_end(code, match.end())
            new = self._stands_for(match[1], code[match.end() : end - 1], place) if end else ""
            if not new:
                continue
            lines = code.count("\n", match.start(), end)
            if new.count("\n") != lines:
                new = " ".join(new.split()) + "\n" * lines
            new = apply_replacements(new, self._calls(new, place, within | {match[1]} - {READ}))
            found.append(Replacement(match.start(), end, new))
        return found

    def _stands_for(self, name: str, inside: str, place: int) -> str:
        """What a call at a place is, with what is inside of its parentheses; "" if it stays as it is."""
        if name == READ:
            return _read(inside.strip())
        known = [one for one in self._macros.get(name, ()) if one[0] <= place]
        _, parameters, body = known[-1] if known else (0, [], "")
        given = [one.strip(" ") for one in split_at_commas(inside, "([{", ")]}")]
        return substitute_names(body, dict(zip(parameters, given))) if len(given) == len(parameters) else ""

    def back(self, replacements: Iterable[Replacement]) -> list[Replacement]:
        """Replacements of the text as such of the original: of whole calls, where they are in some."""
        found = list[Replacement]()
        for start, end, some in self._groups(replacements):
            inside = [Replacement(one.start - start, one.end - start, one.new) for one in some]
            new = apply_replacements(self.text[start:end], inside)
            found.append(Replacement(self.place(start), self.place(end), new))
        return found

    def _groups(self, replacements: Iterable[Replacement]) -> list[tuple[int, int, list[Replacement]]]:
        """Replacements together with others in the calls that they cut: where, and which."""
        groups = list[tuple[int, int, list[Replacement]]]()
        for one in sorted(replacements, key=lambda each: (each.start, each.end)):
            start, end = one.start, one.end
            for first, last, _ in self.calls:
                if first < start < last or first < end < last:
                    start, end = min(start, first), max(end, last)
            before = groups.pop() if groups and start < groups[-1][1] else (start, end, [])
            groups.append((min(before[0], start), max(before[1], end), [*before[2], one]))
        return groups

    def place(self, at: int) -> int:
        """A place of the text in the original, in no call."""
        return at - next((longer for start, _, longer in reversed(self.calls) if start < at), 0)


def _read(address: str) -> str:
    """The element that an address is of, or that a pointer points to."""
    element = re.match(r"&\s*(\w+\s*\[)", address)
    if element is not None:
        whole = bracket_end(address, element.end(), "[") == len(address)
        return address[element.start(1) :] if whole else ""
    return f"*({address})" if re.match(r"\w+\s*(?:\+|$)", address) else ""


@lru_cache(maxsize=16)
def expand_macros(text: str) -> Expanded:
    """A text with its macros expanded."""
    return Expanded(text)
