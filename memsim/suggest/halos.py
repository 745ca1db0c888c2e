"""A block's tile of an array and its halo, staged in shared memory: what stencils and filters need.

Threads that read a neighbourhood of their element, `in[(y + dy) * width + x + dx]`, begin anywhere in a
sector, and ask for the same sectors again and again. In the edit the block loads its rows once, from the
beginning of their first sector to the end of their last one, and reads them from shared memory, also where it
fills a tile of its own from them. Blocks that need more than fits do as before. Nothing outside of what the
block reads is loaded, but in the same sector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

from memsim.analysis import Analysis
from memsim.api.sanitizing import sanitize_job
from memsim.arch.units import BANKS, WARP, WORD
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sanitizer.hazards import BOUNDS
from memsim.suggest.c_text import names_in
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.global_accesses import wastes_sectors
from memsim.suggest.halo_reads import Read, ReadsOfFile, ReadsOfFunction
from memsim.suggest.index_ends import Ends, NotKnown, Test
from memsim.suggest.index_sums import ONE, Atom, IndexSum, Product, operation
from memsim.suggest.kernel_tree import wasting_files
from memsim.suggest.prove import is_the_same
from memsim.suggest.threads import Remapped, replay_edit

NAME = "tiles and their halos staged in shared memory"
LOAD = "load_halo"
_UNKNOWN = (NotKnown, KeyError, ZeroDivisionError)  # where the ends are not of this launch, or of none
_Ends = tuple[IndexSum, IndexSum, IndexSum, IndexSum]  # top, left, bottom, right
_CORNERS = ("top", "left", "bottom", "right")
_COLUMNS = ("left", "right")
#: How far rows are apart: a product, and a number that multiplies it.
Row = tuple[Product, int]


@dataclass(frozen=True)
class HaloTile:
    """Elements of `kind`, of `size` bytes, in rows `row` apart. number: of the array's tiles."""

    function: ReadsOfFunction
    array: str
    kind: str
    size: int
    row: Row
    reads: tuple[Read, ...]
    number: int = 0

    @cached_property
    def ends(self) -> _Ends:
        """Between which rows and columns the reads are; NotKnown."""
        return self._joined([Ends(one.tests) for one in self.reads])

    def _nominal(self, threads: bool = True) -> _Ends:
        """The ends in a block that is not at the edge of anything, or of one thread."""
        tests = ([test for test in one.tests if self._is_of_all(test)] for one in self.reads)
        return self._joined([Ends(some, False, threads) for some in tests])

    def _joined(self, between: Sequence[Ends]) -> _Ends:
        every = []
        for one, ends in zip(self.reads, between):
            every.append([end for part in one.flat.divided(*self.row) for end in ends.of(part)])
        least, greatest = partial(operation, "min"), partial(operation, "max")
        top, bottom, left, right = zip(*every)
        return reduce(least, top), reduce(least, left), reduce(greatest, bottom), reduce(greatest, right)

    def _is_of_all(self, test: Test) -> bool:
        """Whether a test says the same of all blocks, and of arrays of every size."""
        names = {atom.text for atom in test.end.within if atom.kind == "uniform"}
        return not any(name in self.function.types or name.startswith("blockIdx") for name in names)

    @cached_property
    def nominal(self) -> _Ends:
        """The ends in a block that is not at the edge of anything."""
        return self._nominal()

    def _extents(self, ends: _Ends) -> tuple[int, int]:
        """Rows and columns in this launch; KeyError where a value is missing."""
        top, left, bottom, right = (one.value(self.function.values) for one in ends)
        return bottom - top + 1, right - left + 1

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns in this launch."""
        return self._extents(self.nominal)

    @property
    def elements(self) -> int:
        """In this launch, without what is beside rows."""
        return max(self.shape[0], 0) * max(self.shape[1], 0)

    @property
    def bytes(self) -> int:
        """What the tile takes."""
        return self.shape[0] * self.pitch * self.size

    @property
    def slack(self) -> int:
        """The elements of a sector, for which there is room before and behind each row."""
        return self.function.file.before.arch.sector_bytes // self.size

    @cached_property
    def pitch(self) -> int:
        """The elements of a row, with those behind it with which the rows of a warp meet in no bank."""
        threads, across = self.function.file.launch.threads, self.function.file.launch.block[0]

        def ways(pitch: int) -> int:
            places = (lane // across * pitch + lane % across for lane in range(min(threads, WARP)))
            words = {place * self.size // WORD for place in places}
            return max(sum(word % BANKS == bank for word in words) for bank in range(BANKS))

        least = self.shape[1] + 2 * self.slack
        return min(range(least, least + BANKS * max(WORD // self.size, 1)), key=ways)

    @property
    def is_halo(self) -> bool:
        """Whether threads that waste sectors have elements in common with their neighbours, or fill a tile;
        and nothing is of other iterations of a loop than of what is around an element.

        Raises:
            NotKnown, KeyError: that cannot be said.
        """
        file, values = self.function.file, self.function.values
        extents = [self._extents(each) for each in (self.nominal, self._nominal(threads=False))]
        if not any(file.wasted(file.lines_of(one.node)) for one in self.reads):
            return False
        for one in self.reads:
            for part, of_block, of_thread in zip(one.flat.divided(*self.row), *extents):
                parts = list(self._parts(part))
                for loop, step in (each for each in parts if each[0].kind.startswith("loop")):
                    by = step * loop.of[2].value(values)
                    of_threads = any(atom.kind == "thread" for atom in loop.of[0].within)
                    all_steps = by != 1 and not one.fills
                    other_tiles = one.fills or 1 < by > of_block - of_thread
                    if all_steps if of_threads else other_tiles:
                        return False
            apart = min((step for atom, step in parts if atom.kind == "thread"), default=0)
            if not (apart == 1 if one.fills else 0 < apart < of_thread):
                return False
        return True

    def _parts(self, of: IndexSum, times: int = 1) -> Iterator[tuple[Atom, int]]:
        """The threads and loops that a sum is made of, and what multiplies their numbers."""
        for atoms, factor in of.terms:
            atom = next((each for each in atoms if not each.is_uniform), None)
            rest = IndexSum(((tuple(each for each in atoms if each != atom), abs(factor)),))
            if atom is None:
                continue
            sizes = (each.text for one in (rest, *atom.of[1:2] * (atom.kind in "/%")) for each in one.within)
            if any(text in self.function.types or text.startswith("blockIdx") for text in sizes):
                raise NotKnown(of.text())  # of other rows, or blocks
            step, is_loop = times * rest.value(self.function.values), atom.kind.startswith("loop")
            if is_loop or atom.kind == "thread":
                yield atom, step
            for one in atom.of[: 1 if is_loop or atom.kind in "/%" else 2]:
                yield from self._parts(one, step)

    def _extent(self, axis: int) -> str:
        """The rows or columns, in the source's own symbols where these are constants."""
        number, function, block = self.shape[axis], self.function, {}
        of = self.nominal[axis + 2] - self.nominal[axis] + ONE
        for atoms, _ in (term for end in self.nominal for term in end.terms):
            for one, other in (pair for pair in (atoms, atoms[::-1]) if len(pair) == 2):
                extent, name = one.text.replace("blockIdx", "blockDim"), other.text
                if name in function.file.constants and function.values[name] == function.values.get(extent):
                    block[extent] = name  # `blockIdx.x * BLOCK + threadIdx.x`, in blocks of so many
        constant = {*function.file.constants, *block}
        known = all(atom.kind == "uniform" and atom.text in constant for atom in of.within)
        return of.text(block) if known and of.value(function.values) == number else str(number)

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.array}_halo{self.number or ''}"

    @cached_property
    def corners(self) -> tuple[str, ...]:
        """What its ends are called; those of the only row are 0."""
        return tuple(f"{self.name}_{each}" if self.row[1] or each in _COLUMNS else "0" for each in _CORNERS)

    def lines(self) -> list[str]:
        """The tile, its ends, and that it is loaded."""
        name, ends = self.name, [one.text(self.function.signed) for one in self.ends]
        rows, columns = (self._extent(axis) for axis in (0, 1))
        top, left, bottom, right = self.corners
        ends_of = (bottom, top, rows), (right, left, columns)
        holds = [f"{one} - {other} < {most}" for one, other, most in ends_of]
        return [
            f"__shared__ {self.kind} {name}[{rows}][{columns} + {self.pitch - self.shape[1]}];",
            *(f"const int {each} = {end};" for each, end in zip(self.corners, ends) if each != "0"),
            f"const bool {name}_fits = {' && '.join([*holds, *sorted(self.reads[0].conditions)])};",
            f"if ({name}_fits)",
            f"    {LOAD}<{columns}>({name}, {self.array}, {self._width}, {', '.join(self.corners)},",
            f"              {self._linear(0)}, {self._linear(1)});",
        ]

    @property
    def _width(self) -> str:
        atoms, number = self.row
        return IndexSum(((atoms, number),)).text()

    def _linear(self, last: int) -> str:
        """The number of the first or the last element."""
        row, column = self.corners[2 * last : 2 * last + 2]
        if not self.row[1]:
            return column
        if all(one.index.known == one.flat for one in self.reads):
            return f"(long long){row} * {self._width} + {column}"
        found = ""
        for one in self.reads:  # rows of elements that are numbered along them begin and end elsewhere
            parts = one.index.known.divided(*self.row)
            of_row, of_column = (Ends(one.tests).of(part)[last].text(self.function.signed) for part in parts)
            text = f"(long long)({of_row}) * {self._width} + {of_column}"
            found = f"{('min', 'max')[last]}({found}, {text})" if found else text
        return found

    def replaced(self) -> Iterator[Replacement]:
        """The reads, from the tile where it is loaded."""
        for one in self.reads:
            row, column = self._place(one)
            row = f"{row} - {self.corners[0]}" if self.row[1] else "0"
            element = f"{self.name}[{row}][{column} - {self.corners[1]} + {self.slack}]"
            start, end, whole = one.whole
            text = f"({self.name}_fits ? {element} : {self.function.file.tree.text(one.node)})"
            yield Replacement(start, end, whole.format(text))

    def _place(self, read: Read) -> tuple[str, str]:
        """The row and column of an element, by the source's own variables where these say it."""
        index, (row, column) = read.index, read.flat.divided(*self.row)
        while True:
            own = index.divided(*self.row)
            if (own[0].known, own[1].known) == (row, column):
                return own[0].text(), own[1].text()
            opened = index.opened
            local = (atom.text for atom in opened.atoms if atom.kind == "local")
            if opened == index or not all(map(self.function.indices.is_steady, local)):
                return row.text(self.function.signed), column.text(self.function.signed)
            index = opened


def halos(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit, if it saves a quarter of the needless sectors, nothing differs, and no array is left."""
    edits = (_edit(ReadsOfFile(before, job, file)) for file in wasting_files(before, wastes_sectors))
    tried = (replay_edit(NAME, job, before, edit) for edit in edits)
    found = {done.edit: done for done in tried if done is not None and done.saves}
    return tuple(one for one in found.values() if is_the_same(job, one.job) and _is_inside(one.job))


def _is_inside(job: Job) -> bool:
    """Whether no access leaves its array."""
    with suppress(MemsimError):
        return not sanitize_job(job, tools=(BOUNDS,)).findings
    return False


def _edit(file: ReadsOfFile) -> Edit | None:
    """The file with tiles for all arrays that need them; None if there is none, or if they do not fit."""
    if LOAD in file.text:
        return None
    tiles = [(function, _tiles_of(function)) for function in file.reading()]
    every = [tile for _, some in tiles for tile in some]
    room = file.before.arch.static_shared_bytes - file.before.trace.shared_end
    if not every or sum(tile.bytes for tile in every) > room:
        return None
    replaced = [one for tile in every for one in tile.replaced()]
    changed = [(function.node, some) for function, some in tiles if some]
    for node, some in changed:
        lines = [line for tile in some for line in tile.lines()]
        start, indent = file.opening(node), file.indent(node.start_byte) + "    "
        text = "".join(f"\n{indent}{line}" for line in (*lines, "__syncthreads();"))
        replaced.append(Replacement(start, start, text))
    replaced.append(file.added(LOAD, (node for node, _ in changed)))
    known = {*file.constants, *file.sizes, *file.template}
    names = (name for one in replaced for name in names_in(one.new) if name in known)
    return file.edit(replaced, (*(f"blockDim.{axis}" for axis in "xyz"), *names))


def _tiles_of(function: ReadsOfFunction) -> list[HaloTile]:
    """Of each array, with the distance from row to row with which all reads that need a tile take least."""
    found = []
    for array, kind, size, reads in function.of_arrays():
        terms = [
            term for one in reads for term in one.flat.terms if not all(atom.is_uniform for atom in term[0])
        ]
        parts = ((tuple(atom for atom in atoms if atom.is_uniform), abs(factor)) for atoms, factor in terms)
        rows: list[Row] = [((), 0), *dict.fromkeys(parts)]
        ways = [_tiles(HaloTile(function, array, kind, size, row, ()), reads) for row in rows]
        most = max(sum(len(tile.reads) for tile in some) for some in ways)
        best = (some for some in ways if sum(len(tile.reads) for tile in some) == most)
        found += min(best, key=lambda some: sum(tile.bytes for tile in some))
    return found


def _tiles(empty: HaloTile, reads: Sequence[Read]) -> list[HaloTile]:
    """Reads that are near each other together, as far as they need a tile."""
    found: list[HaloTile] = []
    for read in reads:
        alone = replace(empty, reads=(read,), number=len(found))
        with suppress(*_UNKNOWN):
            for place, tile in enumerate(found):
                both = replace(tile, reads=(*tile.reads, read))
                alike = tile.reads[0].conditions == read.conditions
                if alike and both.elements <= tile.elements + alone.elements:
                    found[place] = both
                    break
            else:
                found += [alone] if alone.elements else []
    return [tile for tile in found if _needs(tile)]


def _needs(tile: HaloTile) -> bool:
    with suppress(*_UNKNOWN):
        return tile.is_halo
    return False
