"""How a source declares and uses a shared array: where an edit of its layout must change the text.

There is no preprocessing: a use inside a macro that is defined in another file is missed (a replay would show
it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memsim.analysis import Analysis
from memsim.source.text import without_comments
from memsim.source.values import Declaration, constants, declarations
from memsim.suggest.tiles import Tile

Span = tuple[int, int]

# Expressions with side effects cannot be duplicated.
EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|\n")


# What precedes an element whose address is taken and passed on.
HANDED_ON = re.compile(r"(?:=|\breturn\b|,|(?P<function>\w+)\s*\()\s*&\s*$")
# Functions that take the address of an element and access it immediately.
ACCESSES = re.compile(r"cvta|memcpy_async")


@dataclass(frozen=True, slots=True)
class Use:
    """A use of the array: the span of its name, and of each index after it without brackets.

    seen: whether the indices say what is accessed; not so if an address is passed on.
    """

    name: Span
    indices: tuple[Span, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class Writing:
    """How a file declares and uses the array `tile`. code: its text without comments, same positions.
    constants: by name.
    """

    tile: str
    file: str
    text: str
    code: str
    declaration: Declaration
    uses: tuple[Use, ...]
    constants: Mapping[str, int]

    @property
    def elements(self) -> bool:
        """Whether every use names one element, by indices on one line without side effects."""
        return bool(self.uses) and all(
            len(use.indices) == len(self.declaration.extents)
            and not any(EFFECT.search(self.text[slice(*span)]) for span in use.indices)
            for use in self.uses
        )

    @property
    def spans(self) -> tuple[Span, ...]:
        """Everything that says where an element is: the extents, and all indices."""
        return (*self.declaration.extents, *(span for use in self.uses for span in use.indices))

    @property
    def unseen(self) -> tuple[int, ...]:
        """The lines that pass on an address of the array, from which anything may be accessed."""
        places = (use.name[0] for use in self.uses if not use.seen)
        return tuple(dict.fromkeys(self.text.count("\n", 0, place) + 1 for place in places))


def writing(analysis: Analysis, tile: Tile) -> Writing | None:
    """How the sources of the analysis declare and use the array; None if no declaration is found.

    Of several arrays with its name and size, the one whose scope contains the array's accesses.
    """
    accesses = {(analysis.sites[number].file, analysis.sites[number].line) for number in tile.sites}
    found = []
    for file, text in analysis.trace.sources.items():
        lines = [line for name, line in accesses if name == file]
        for declaration in declarations(text, tile.name, tile.size, tile.constants):
            first, last = (text.count("\n", 0, place) + 1 for place in declaration.scope)
            inside = sum(first <= line <= last for line in lines)
            code = without_comments(text)
            known = {**constants(code), **tile.constants}
            uses = tuple(_uses(code, tile.name, declaration))
            found.append((inside, Writing(tile.name, file, text, code, declaration, uses, known)))
    return max(found, key=lambda entry: entry[0])[1] if found else None


def _uses(code: str, name: str, declaration: Declaration) -> Iterator[Use]:
    """The uses of the array in its scope, without `sizeof`."""
    end = declaration.scope[1]
    named = re.compile(rf"(?<![\w.])(?<!->){re.escape(name)}\b")
    for match in named.finditer(code, declaration.extents[-1][1], end):
        if re.search(r"\bsizeof\s*\(?\s*$", code[: match.start()]):
            continue
        indices = tuple(_indices(code, match.end()))
        handed = HANDED_ON.search(code[: match.start()])
        accessed = handed is None or ACCESSES.search(handed["function"] or "") is not None
        yield Use(match.span(), indices, bool(indices) and accessed)


def _indices(code: str, place: int) -> Iterator[Span]:
    """The contents of the consecutive brackets at `place`."""
    opening = re.compile(r"\s*\[")
    while match := opening.match(code, place):
        depth, place = 1, match.end()
        start = place
        while depth and place < len(code):
            depth += (code[place] == "[") - (code[place] == "]")
            place += 1
        yield start, place - 1
