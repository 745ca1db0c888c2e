"""Reads of local memory that nobody wrote, and of global memory if the caller says that it is not written.

What the compiler keeps on the stack itself (`Op.spills`) it has written before it reads it. Arrays of threads
and arguments whose contents do not count are followed by the smallest unit that the program accesses. Of a
word that is read at once, unwritten bytes beside written ones are the padding of a struct.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from memsim.access import Chunk, Site
from memsim.arch.units import WORD
from memsim.errors import MemsimError
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.program import GLOBAL, LOCAL, Op, Program
from memsim.model.operations import operation
from memsim.names.demangle import short_name
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.global_races import lanes_of
from memsim.sanitizer.shared_races import Example
from memsim.state.address_spaces import Buffer
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.predicates import ScatteredLanes
from memsim.state.sums import Int

#: Units of the local memory of the running threads, above which it is not followed.
MOST_UNITS = 1 << 28


class NeverWritten(NamedTuple):
    """An instruction that reads an array; `partly`: of what a lane reads at once, some words are written."""

    instruction: int
    space: str
    array: str
    partly: bool


class UnwrittenMemory(OrderListener):
    """Finds such reads: `found`. names: of the arrays in global memory that nobody has written before."""

    def __init__(self, program: Program, names: Collection[str]) -> None:
        self.found: dict[NeverWritten, Example] = {}
        self.limits: set[str] = set()
        self._names = names
        self._arrays: list[tuple[Buffer, np.ndarray]] | None = None
        spaces = {GLOBAL, LOCAL, "generic"}
        ops = [op for op in program.ops if not spaces.isdisjoint(space for _, space in op.touches)]
        self.unit = min((bytes_of_piece(op.form) for op in ops), default=4)
        self._reads_local = any(_may_find(op) for op in ops)

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._local: np.ndarray | None = None
        self._blocks = threads.blocks
        layout = memory.layouts["local"]
        if self._arrays is None:
            self._arrays = [(one, self._none(one)) for one in self._chosen(memory)]
        units = int(np.prod(threads.shape)) * -(-layout.end // self.unit)
        if self._reads_local and units > MOST_UNITS:
            self.limits.add("local memory that nobody wrote (there is too much of it; --blocks N runs fewer)")
        elif self._reads_local and layout.buffers:
            self._local, self._stack = np.zeros(units, np.bool_), layout.buffers[0]

    def _chosen(self, memory: Memory) -> list[Buffer]:
        buffers = {short_name(one.name): one for one in memory.layouts["global"].buffers}
        for name in self._names:
            if name not in buffers:
                hint = f"there are {', '.join(buffers)}"
                raise MemsimError(f"no array in global memory is called {name!r}", hint=hint)
        return [buffers[name] for name in self._names]

    def _none(self, buffer: Buffer) -> np.ndarray:
        return np.zeros(-(-(buffer.end - buffer.start) // self.unit), np.bool_)

    def hear(self, site: Site, address: Int, active: Mask, chunk: Chunk) -> None:
        """Lanes access global or local memory."""
        if active is not False and self._is_followed(site, chunk):
            self._lanes(site, *lanes_of(address, active, chunk), chunk)

    def scattered(self, site: Site, address: np.ndarray, lanes: ScatteredLanes, chunk: Chunk) -> None:
        """The same of some lanes."""
        if self._is_followed(site, chunk):
            self._lanes(site, *np.divmod(lanes.lanes, chunk.threads), address, chunk)

    def bulk_global(
        self,
        instruction: int,
        access: str,
        start: np.ndarray,
        length: np.ndarray,
        rows: np.ndarray,
        warps: np.ndarray,
    ) -> None:
        verb = operation(GLOBAL, access).verb
        for buffer, written in self._arrays or ():
            first = start - buffer.start
            for at in np.flatnonzero((first >= 0) & (first < buffer.end - buffer.start)).tolist():
                units = slice(first[at] // self.unit, (first[at] + length[at]) // self.unit)
                never = self._but_padding(~written[units])
                if verb != "store" and never.any():
                    name = short_name(buffer.name)
                    key = NeverWritten(instruction, GLOBAL, name, not bool(never.all()))
                    place = int(units.start + never.argmax()) * self.unit
                    block = int(self._blocks[rows[at]])
                    self.found.setdefault(key, Example(block, -1, -1, place, 0)).count += 1
                if verb != "load":
                    written[units] = True

    def _is_followed(self, site: Site, chunk: Chunk) -> bool:
        if site.space == GLOBAL:
            return bool(self._arrays)
        are_the_same = chunk.blocks is self._blocks  # rows of other blocks have no local memory
        return site.space == LOCAL and self._local is not None and are_the_same

    def _lanes(
        self, site: Site, rows: np.ndarray, columns: np.ndarray, places: np.ndarray, chunk: Chunk
    ) -> None:
        each = max(1, site.width // self.unit)
        units = (places // self.unit)[:, None] + np.arange(each)
        if site.space == LOCAL:
            assert self._local is not None
            of_thread = len(self._local) // (len(chunk.blocks) * chunk.threads)
            inside = (units >= 0) & (units < of_thread)
            units = units + ((rows * chunk.threads + columns) * of_thread)[:, None]
            self._look(site, self._stack.name, self._local, units, inside, of_thread, rows, columns, chunk)
        for buffer, written in self._arrays or () if site.space == GLOBAL else ():
            here = units - buffer.start // self.unit
            inside = (here >= 0) & (here < len(written))
            if inside.any():
                self._look(site, buffer.name, written, here, inside, len(written), rows, columns, chunk)

    def _but_padding(self, never: np.ndarray) -> np.ndarray:
        """Unwritten units [..., n] of whole words, without those in a word with one that is written."""
        each = max(1, WORD // self.unit)
        if each == 1 or never.shape[-1] % each:
            return never
        words = never.reshape(*never.shape[:-1], -1, each).all(-1)
        return np.repeat(words, each, -1)

    def _look(
        self,
        site: Site,
        name: str,
        written: np.ndarray,
        units: np.ndarray,
        inside: np.ndarray,
        size: int,
        rows: np.ndarray,
        columns: np.ndarray,
        chunk: Chunk,
    ) -> None:
        """Lanes access units [n, each] of an array, those that are inside; `size`: units of one array."""
        op = site.instruction
        assert isinstance(op, Op)
        verb = operation(site.space, site.access).verb
        never = inside & ~written[np.where(inside, units, 0)]
        if site.width >= WORD:
            never = self._but_padding(never)
        if verb != "store" and never.any() and not op.spills:
            lanes = np.flatnonzero(never.any(1))
            one = int(lanes[0])
            key = NeverWritten(op.index, site.space, short_name(name), not bool(never[one].all()))
            if key not in self.found:
                place = int(units[one, int(never[one].argmax())]) % size * self.unit
                thread = int(chunk.first[rows[one], 0] + columns[one])
                self.found[key] = Example(int(chunk.blocks[rows[one]]), -1, thread, place, 0)
            self.found[key].count += len(lanes)
        if verb in ("store", "update"):
            written[units[inside]] = True


def _may_find(op: Op) -> bool:
    """Whether it may read what the compiler does not know to be written."""
    return not op.spills and any(space in (LOCAL, "generic") and way == "load" for way, space in op.touches)
