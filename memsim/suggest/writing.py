"""Where a source declares a shared array and uses it, and how an edit of its layout must change the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from memsim.analysis import Analysis
from memsim.source.text import (
    split_at_commas,
    without_comments,
)
from memsim.source.values import Declaration, body_of, constants, declarations
from memsim.suggest.accessor import Accessor, accessor
from memsim.suggest.c_text import EFFECT
from memsim.suggest.tiles import Tile
from memsim.suggest.uses import ZERO, Finder, Span, Use


@dataclass(frozen=True, slots=True)
class Writing:
    """How a file declares and uses the array `tile`. code: its text without comments, same positions.
    constants: by name. finder: of the uses, with parts of the array and functions that are given an address.
    launches: what the kernel's launches in the file give for dynamic shared memory. moving: the declaration
    of each pointer that moves, up to the index of where it begins, as one of an index, and its root.
    accessor: how a class may stand between the kernel and a dynamic array.
    """

    tile: str
    file: str
    text: str
    code: str
    declaration: Declaration
    uses: tuple[Use, ...]
    constants: Mapping[str, int]
    finder: Finder
    launches: tuple[Span, ...] = ()
    moving: tuple[tuple[Span, str, str], ...] = ()
    accessor: Accessor | None = None

    @property
    def elements(self) -> bool:
        """Whether every use names one element, by indices without side effects."""
        extents = [self.text[slice(*span)] for span in self.declaration.extents]
        if any([self.text[slice(*span)] for span in twin] != extents for twin in self.finder.twins):
            return False
        return any(use.indices for use in self.uses) and all(
            len(use.indices) == len(self.declaration.extents)
            and not any(EFFECT.search(self.code[slice(*span)]) for span in use.indices)
            for use in self.uses
        )

    @property
    def indexed(self) -> tuple[Use, ...]:
        """The uses with an index in the text."""
        return tuple(use for use in self.uses if ZERO not in use.indices)

    @property
    def views(self) -> tuple[Writing, ...]:
        """The array as each pointer to its beginning has it, one after the other; itself if there are no two.

        Bytes that one of them stored no other one loads: else results of an edit differ.
        """
        roots = dict.fromkeys(use.root for use in self.uses)
        if "" in roots or len(roots) < 2 or not self.elements:
            return (self,)
        return tuple(
            replace(
                self,
                tile=root,
                uses=tuple(use for use in self.uses if use.root == root),
                moving=tuple(each for each in self.moving if each[2] == root),
            )
            for root in roots
        )

    def has(self, line: int) -> bool:
        """Whether a use of the array is on a line of the file."""
        ends = ((use.name[0], max((use.name[1], *(end for _, end in use.indices)))) for use in self.uses)
        return any(line in self._lines(*span) for span in ends)

    def gives(self, line: int) -> bool:
        """Whether a line of the file is of a function that is given an address of the array."""
        bodies = (span for root, span in self.finder.functions if root == self.tile)
        return any(line in self._lines(*span) for span in bodies)

    def _lines(self, start: int, end: int) -> range:
        return range(self.text.count("\n", 0, start) + 1, self.text.count("\n", 0, end) + 2)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Everything that says where an element is: the extents, and all indices."""
        return (
            *self.declaration.extents,
            *(span for use in self.uses for span in use.indices if span != ZERO),
        )

    @property
    def unseen(self) -> tuple[int, ...]:
        """The lines that pass on an address of the array, from which anything may be accessed."""
        places = (use.name[0] for use in self.uses if not use.seen)
        return tuple(dict.fromkeys(self.text.count("\n", 0, place) + 1 for place in places))


def writing_of_array(
    analysis: Analysis, tile: Tile, arguments: Mapping[str, int] | None = None
) -> Writing | None:
    """How the sources of the analysis declare and use the array; None if no declaration is found.

    Of several arrays with its name and size, the one whose scope contains the array's accesses.

    arguments: the kernel's integer ones, by name.
    """
    accesses = {(analysis.sites[number].file, analysis.sites[number].line) for number in tile.sites}
    found = []
    for file, text in analysis.trace.sources.items():
        lines = [line for name, line in accesses if name == file]
        for declaration in declarations(text, tile.array, tile.size, tile.constants, tile.types):
            first, last = (text.count("\n", 0, place) + 1 for place in declaration.scope)
            inside = sum(first <= line <= last for line in lines)
            code = without_comments(text)
            local = constants(code[: declaration.name[0]], last=True)
            known = {**(arguments or {}), **constants(code), **local, **tile.constants}
            body = body_of(code, analysis.trace.kernel)
            finder = Finder(code, tile.array, declaration, tile.types, known, body)
            uses, moving = tuple(finder.uses()), finder.beginnings
            launches = tuple(_launch_bytes(code, analysis.trace.kernel)) if declaration.dynamic else ()
            made = Writing(tile.array, file, text, code, declaration, uses, known, finder, launches, moving)
            if declaration.dynamic and not made.elements:
                behind = accessor(code, body, tile.array, analysis.trace.sources, frozenset(accesses))
                made = replace(made, accessor=behind)
            found.append((inside, made))
    return max(found, key=lambda entry: entry[0])[1] if found else None


def _launch_bytes(code: str, kernel: str) -> Iterator[Span]:
    """What the launches of a kernel say for their dynamic shared memory."""
    plain = re.escape(kernel.partition("<")[0].rpartition("::")[2])
    for match in re.finditer(rf"\b{plain}\s*(?:<[^;<>]*>\s*)?<<<", code):
        end = code.find(">>>", match.end())
        parts = split_at_commas(code[match.end() : end])
        if end > 0 and len(parts) > 2:
            start = match.end() + len(parts[0]) + len(parts[1]) + 2
            yield start, start + len(parts[2])
