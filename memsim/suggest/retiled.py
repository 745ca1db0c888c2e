"""Tiles of several blocks' elements, as an edit: what a naive transpose by blocks of one dimension needs.

Neighbouring threads of `out[x % w * h + x / w] = in[x];` store far apart, and no other thread of the block
stores what is beside. The edit divides the elements anew: each block takes whole tiles, by steps of the
whole grid, so that it is right for every grid and size; blocks of another size do as they did. Columns are
neighbouring threads, or steps of a thread's own loop; rows are what their number is divided by, or blocks
along one axis of the grid or two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice, permutations

from memsim.analysis import Analysis, SiteCounts
from memsim.arch.units import SECTOR, WARP, WORD
from memsim.job import Job
from memsim.source.text import bracket_end
from memsim.suggest.c_text import distance, factor
from memsim.suggest.edit import Edit
from memsim.suggest.global_accesses import is_badly_coalesced
from memsim.suggest.places import COLUMN, LOADED, ROW, TILE, AssigningPart, Places, Statement
from memsim.suggest.prove import is_the_same
from memsim.suggest.threads import OF_GRID, Remapped, replay_edit
from memsim.suggest.transposed import tile_padding

ELEMENT = "staged_element"
SHORTEST = SECTOR // WORD  # side of a tile: the words of a sector
_IN_GRID = {"gridDim.x*blockDim.x", "blockDim.x*gridDim.x"}
_DIVISOR = re.compile(rf"(?<![\w.*/%-]){ELEMENT}[/%](\w+|\()")
_DECLARED = re.compile(r"([\w\s]+?)\s+\w+\s*=[^;]*\b(?:threadIdx|blockIdx)\b")


@dataclass(frozen=True, slots=True)
class _Division:
    """How the elements of a launch are divided. wide, high: columns and rows. column: what it is in
    expressions, "" where both are a remainder and a quotient of the number of an element, of which there are
    `most`. rows: what is made of a row there. axes: blocks along these take tiles in turn. holds: a condition
    of all this.
    """

    wide: str
    high: str
    column: str
    rows: Mapping[str, str]
    axes: str
    most: str = ""
    holds: str = ""


def retiled_elements(job: Job, before: Analysis) -> tuple[Remapped, ...]:
    """The edit with the same results that leaves the fewest sectors, replayed; if it saves a quarter of the
    needless.
    """
    bad = [site for site in before.sites if is_badly_coalesced(site)]
    if not bad or before.trace.blocks_replayed != job.launch.blocks:
        return ()
    found: list[Remapped] = []
    for least in (SHORTEST, WARP):
        source = _Retiled(job, before, bad, least)
        tried = (replay_edit(source.name, job, before, edit) for edit in source.edits())
        found += (one for one in tried if one is not None and one.saves)
        if not found or not any(map(is_badly_coalesced, found[0].analysis.sites)):
            break
    best_first = sorted(found, key=lambda each: each.sectors[1])
    return tuple(islice((one for one in best_first if is_the_same(job, one.job)), 1))


class _Retiled(Places):
    strided = True

    def __init__(self, job: Job, before: Analysis, bad: Iterable[SiteCounts], least: int) -> None:
        super().__init__(job, before, bad)
        self.threads, self.least = job.launch.block[0], least

    name = "elements of several blocks through tiles of shared memory"

    def edits(self) -> Iterator[Edit]:
        """The kernel with one statement's elements in tiles, for each way to divide them."""
        if f"{TILE}[" in self.text:
            return
        for place in self.places():
            if len(place.statements) != 1 or self.is_elsewhere(place):
                continue
            (one,) = place.statements
            for op in one.ops:
                kind = self.kind(one, op)
                for division in self._divisions(place, one, op) if kind else ():
                    lines = self._lines(place, one, op, division, str(kind))
                    if lines is not None:
                        used = "blockDim.x", division.wide, division.high
                        yield self.written(place, lines, used, among_blocks=True)

    def _plain(self, text: str, place: AssigningPart) -> str | None:
        """An expression of parameters, indices and strides; the number of a thread in its grid is named."""
        inlined = self.inlined(text, (*place.variables, *place.strides))
        if inlined is None:
            return None
        text = OF_GRID.sub(ELEMENT, _without_blanks(inlined))
        for name, loop in place.strides.items():
            begins, by = (_without_blanks(self.inlined(each, ()) or "") for each in (loop.start, loop.step))
            if OF_GRID.fullmatch(begins.strip("()")) and by.strip("()") in _IN_GRID:
                text = re.sub(rf"\b{name}\b", ELEMENT, text)
        while (less := re.sub(rf"(?<!\w)\(({ELEMENT})\)", r"\1", text)) != text:
            text = less
        return text

    def _divisions(self, place: AssigningPart, one: Statement, op: str) -> Iterator[_Division]:
        """By numbers that an element's is divided by; else by blocks along an axis, or along two."""
        every = [self._plain(each, place) for each in (one.index, one.value, *place.conditions)]
        if None in every:
            return
        text = " ".join(each for each in every if each is not None)
        stride = next(iter(place.strides.items()), None)
        if ELEMENT in text:
            whole = stride is not None and not re.search(rf"\b{stride[0]}\b", text)
            most = self._plain(stride[1].end, place) if whole and stride else "gridDim.x * blockDim.x"
            divisors = {text[each.start(1) : _end(text, each)] for each in _DIVISOR.finditer(text)}
            for wide in sorted(divisors):
                if most and not re.search(r"threadIdx|blockIdx", wide + most):
                    high = f"({factor(most)} + {TILE}_wide - 1) / {TILE}_wide"
                    yield _Division(wide, high, "", {}, "x", most)
            for axis in "yz" if not divisors and not whole else "":
                if f"blockIdx.{axis}" in text:
                    rows = {f"blockIdx.{axis}": ROW}
                    yield _Division("gridDim.x * blockDim.x", f"gridDim.{axis}", ELEMENT, rows, f"x{axis}")
            return
        column, wide, holds = "threadIdx.x", "blockDim.x", ""
        if stride is not None:
            column, loop = stride
            wide, by = (self._plain(each, place) or "threadIdx" for each in (loop.end, loop.step))
            holds = "" if by == "blockDim.x" else f" && blockDim.x == {by}"
            begins = (self._plain(loop.start, place) or "").strip("()")
            if begins != "threadIdx.x" or re.search(r"threadIdx|blockIdx", wide + by):
                return
        axes = [axis for axis in "xyz" if f"blockIdx.{axis}" in text]
        for axis in axes:
            yield _Division(wide, f"gridDim.{axis}", column, {f"blockIdx.{axis}": ROW}, axis, holds=holds)
        for axis, other in permutations(axes, 2) if self.least > SHORTEST else ():
            if self._is_beside(one, op, place, axis):
                high, extent = f"gridDim.{axis} * gridDim.{other}", f"({self._number()})gridDim.{axis}"
                rows = {f"blockIdx.{axis}": f"({ROW}%{extent})", f"blockIdx.{other}": f"({ROW}/{extent})"}
                yield _Division(wide, high, column, rows, axis + other, holds=holds)

    def _is_beside(self, one: Statement, op: str, place: AssigningPart, axis: str) -> bool:
        """Whether neighbouring blocks along an axis have neighbouring elements of what is badly coalesced."""
        load = LOADED.search(one.value)
        index = one.value[load.end() : bracket_end(one.value, load.end(), "[") - 1] if load else ""
        own = self._plain(one.index if op == "store" else index, place) or ""
        beside = re.sub(rf"blockIdx\.{axis}", f"(blockIdx.{axis}+1)", own)
        return distance(own, beside) == 1

    def _lines(
        self, place: AssigningPart, one: Statement, op: str, division: _Division, kind: str
    ) -> list[str] | None:
        """The statement through tiles; None if it cannot be written."""

        def told(text: str) -> str | None:
            plain = self._plain(text, place)
            if plain is None:
                return None
            for old, new in ((division.column, COLUMN), *division.rows.items()):
                plain = re.sub(rf"(?<![\w.]){re.escape(old)}\b", new, plain) if old else plain
            if not division.column:
                divided = rf"(?<![\w.*/%-]){ELEMENT}{{}}{re.escape(division.wide)}(?!\w)"
                plain = re.sub(divided.format("%"), COLUMN, plain)
                plain = re.sub(divided.format("/"), ROW, plain)
            plain = re.sub(rf"(?<!\w)\(({COLUMN}|{ROW})\)", r"\1", plain)
            return None if re.search(rf"threadIdx|blockIdx\.[{division.axes}]", plain) else plain

        rows, columns = self.tile
        of_each, own = rows * columns // self.threads, "threadIdx.x"
        own = own if of_each == 1 else f"({own} + {TILE}_part * {self.threads})"
        by_rows = f"{TILE}[{own} / {columns}][{own} % {columns}]"
        by_columns = f"{TILE}[{own} % {rows}][{own} / {rows}]"
        written = self.steps(one, op, (by_rows, by_columns), (told, told))
        conditions = [told(f"({each})") for each in place.conditions]
        if written is None or None in conditions:
            return None
        inside = [f"{COLUMN} < {TILE}_wide", f"{ROW} < {TILE}_high", *(each or "" for each in conditions)]
        if division.most and not place.strides:
            inside.append(f"{ELEMENT} < {division.most}")
        number, padding = self._number(), tile_padding(columns, rows)
        first, step = (_in_turn(division.axes, name) for name in ("blockIdx", "gridDim"))
        tile, wide, across = f"{TILE}_tile", f"{TILE}_wide", f"{TILE}_across"
        every = f"{across} * (({TILE}_high + {rows - 1}) / {rows})"
        lines = [
            f"if (blockDim.x == {self.threads}{division.holds}) {{",
            f"    __shared__ {kind} {TILE}[{rows}][{columns} + {padding}];",
            f"    const {number} {wide} = {division.wide}, {TILE}_high = {division.high};",
            f"    const {number} {across} = ({wide} + {columns - 1}) / {columns};",
            f"    for ({number} {tile} = {first}; {tile} < {every}; {tile} += {step}) {{",
        ]
        loop = f"for (int {TILE}_part = 0; {TILE}_part < {of_each}; ++{TILE}_part) "
        parts = ["        #pragma unroll", f"        {loop}"] if of_each > 1 else ["        "]
        kept = []
        if of_each > 1:  # all are loaded before any is kept, as the compiler leaves their order
            element, value = written[0].split(" = ", 1)
            held = f"{TILE}_held[{TILE}_part]"
            written = f"{held} = {value}", written[1]
            kept = [*parts[:-1], f"{parts[-1]}{element} = {held};"]
            lines.append(f"        {kind} {TILE}_held[{of_each}] = {{}};")
        for done, rowwise, behind in zip(written, (op == "store", op != "store"), (kept, [])):
            row, column = (f"/ {columns}", f"% {columns}") if rowwise else (f"% {rows}", f"/ {rows}")
            lines += [
                *parts[:-1],
                f"{parts[-1]}{{",
                f"            const {number} {ROW} = {tile} / {across} * {rows} + {own} {row};",
                f"            const {number} {COLUMN} = {tile} % {across} * {columns} + {own} {column};",
                f"            const {number} {ELEMENT} = {ROW} * {wide} + {COLUMN};",
                f"            if ({' && '.join(inside)})",
                f"                {done}",
                "        }",
                *behind,
                "        __syncthreads();",
            ]
        if division.column:
            lines = [line for line in lines if f"{ELEMENT} =" not in line]
        return [*lines, "    }", "} else {", f"    {self.as_it_was(place)}", "}"]

    @cached_property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of a tile: rows of a warp, or nearly a square, with an element for each
        thread; several, where a side has less than eight words, a sector, or less than `least` rows.
        """
        rows, rest = divmod(self.threads, WARP)
        if rest or rows < SHORTEST:
            side = range(1, WARP + 1)
            rows = max(each for each in side if self.threads % each == 0 and each**2 <= self.threads)
        while rows < self.least:
            rows *= 2
        return rows, next(each for each in count(SHORTEST, SHORTEST) if rows * each % self.threads == 0)

    def _number(self) -> str:
        """The type in which the kernel counts its threads."""
        kinds = [each[1].split() for each in _DECLARED.finditer(self.own_code)]
        if any("size_t" in one or "long" in one or "int64_t" in one for one in kinds):
            return "long long"
        return "unsigned" if kinds and all({"unsigned", "uint"} & set(one) for one in kinds) else "int"


def _without_blanks(text: str) -> str:
    return re.sub(r"\s*([^\w\s])\s*", r"\1", text)


def _end(text: str, divisor: re.Match[str]) -> int:
    return bracket_end(text, divisor.end()) if divisor[1] == "(" else divisor.end()


def _in_turn(axes: str, name: str) -> str:
    """The number of a block among those that take tiles in turn, or of these: `blockIdx`, `gridDim`."""
    if len(axes) == 1:
        return f"{name}.{axes}"
    across, along = axes[0], axes[1]
    return f"{name}.{along} * gridDim.{across}" + (f" + {name}.{across}" if name == "blockIdx" else "")
