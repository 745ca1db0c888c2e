"""Reads of what nobody wrote: local memory, global memory if the caller says so of it, and registers.

What the compiler keeps on the stack itself (`Op.spills`) it has written before it reads it. Arrays of threads
and arguments whose contents do not count are followed by the smallest unit that the program accesses. Of a
word that is read at once, unwritten bytes beside written ones are the padding of a struct.

A register that nobody wrote is a variable without a value: only those in constant and global memory begin
with one (PTX ISA, Initializers). Only registers are followed that some way through the program reads
first; in many programs there are none. A write under a guard counts as one, as does each on the ways of a
branch that is passed by. Which lanes make a read under a guard, the launch is asked to work out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from memsim.access import Chunk, Stretches
from memsim.arch.units import WARP, WORD
from memsim.errors import MemsimError
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import SLOTS, Effect, Flow, Trait, slots_of
from memsim.isa.program import GLOBAL, LOCAL, Op, Program
from memsim.launch import Launch
from memsim.model.operations import operation
from memsim.names.demangle import short_name
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.examples import Example
from memsim.sanitizer.global_cells import LaneAccess
from memsim.simt.control_graph import ControlGraph
from memsim.state.address_spaces import Buffer
from memsim.state.launch_memory import Memory
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.predicates import to_words

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

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        verb = operation(GLOBAL, access).verb
        for buffer, written in self._arrays or ():
            first = made.start - buffer.start
            for at in np.flatnonzero((first >= 0) & (first < buffer.end - buffer.start)).tolist():
                units = slice(first[at] // self.unit, (first[at] + made.length[at]) // self.unit)
                never = self._but_padding(~written[units])
                if verb != "store" and never.any():
                    name = short_name(buffer.name)
                    key = NeverWritten(instruction, GLOBAL, name, not bool(never.all()))
                    place = int(units.start + never.argmax()) * self.unit
                    block = int(self._blocks[made.rows[at]])
                    self.found.setdefault(key, Example(block, place=place)).count += 1
                if verb != "load":
                    written[units] = True

    def _is_followed(self, made: LaneAccess) -> bool:
        if made.site.space == GLOBAL:
            return bool(self._arrays)
        are_the_same = made.chunk.blocks is self._blocks  # rows of other blocks have no local memory
        return made.site.space == LOCAL and self._local is not None and are_the_same

    def hear(self, made: LaneAccess) -> None:
        """Lanes access global or local memory."""
        if not self._is_followed(made):
            return
        (rows, columns, places), chunk = made.lanes, made.chunk
        units = (places // self.unit)[:, None] + np.arange(max(1, made.site.width // self.unit))
        if made.site.space == LOCAL:
            assert self._local is not None
            of_thread = len(self._local) // (len(chunk.blocks) * chunk.threads)
            inside = (units >= 0) & (units < of_thread)
            units = units + ((rows * chunk.threads + columns) * of_thread)[:, None]
            self._look(made, self._stack.name, self._local, units, inside, of_thread)
            return
        for buffer, written in self._arrays or ():
            here = units - buffer.start // self.unit
            inside = (here >= 0) & (here < len(written))
            if inside.any():
                self._look(made, buffer.name, written, here, inside, len(written))

    def _but_padding(self, never: np.ndarray) -> np.ndarray:
        """Unwritten units [..., n] of whole words, without those in a word with one that is written."""
        each = max(1, WORD // self.unit)
        if each == 1 or never.shape[-1] % each:
            return never
        words = never.reshape(*never.shape[:-1], -1, each).all(-1)
        return np.repeat(words, each, -1)

    def _look(
        self,
        made: LaneAccess,
        name: str,
        written: np.ndarray,
        units: np.ndarray,
        inside: np.ndarray,
        size: int,
    ) -> None:
        """Lanes access units [n, each] of an array, those that are inside; `size`: units of one array."""
        op, verb = made.site.instruction, made.verb
        assert isinstance(op, Op)
        never = inside & ~written[np.where(inside, units, 0)]
        if made.site.width >= WORD:
            never = self._but_padding(never)
        if verb != "store" and never.any() and not op.spills:
            lanes = np.flatnonzero(never.any(1))
            one = int(lanes[0])
            key = NeverWritten(op.index, made.site.space, short_name(name), not bool(never[one].all()))
            if key not in self.found:
                place = int(units[one, int(never[one].argmax())]) % size * self.unit
                block = int(made.chunk.blocks[made.lanes[0][one]])
                self.found[key] = Example(block, later=int(made.threads[one]), place=place)
            self.found[key].count += len(lanes)
        if verb in ("store", "update"):
            written[units[inside]] = True


def _may_find(op: Op) -> bool:
    """Whether it may read what the compiler does not know to be written."""
    return not op.spills and any(space in (LOCAL, "generic") and way == "load" for way, space in op.touches)


#: Warps of a launch, once for each register that is followed, above which none is.
MOST_WARPS = 1 << 26
#: The result of a function without code, such as `malloc`, by the calling convention.
RESULT = 1 << 4 | 1 << 5


class UnwrittenRegister(NamedTuple):
    """An instruction that reads a slot that lanes have not written."""

    instruction: int
    slot: int


class _Effect(NamedTuple):
    """What a stretch of instructions reads first, also under guards, and which slots it writes."""

    reads: tuple[UnwrittenRegister, ...]
    guarded: tuple[UnwrittenRegister, ...]
    writes: tuple[int, ...]


class UnwrittenRegisters(OrderListener):
    """Finds them: `found`. limits: what is not followed, in words. looked_at: the instructions that read such
    slots under guards, whose own slots are followed anyway.
    """

    def __init__(self, program: Program, launch: Launch) -> None:
        self.found: dict[UnwrittenRegister, Example] = {}
        self.limits: set[str] = set()
        self._ops = program.ops
        used = [_used(op, program) for op in program.ops]
        self._reads = [0 if op.guard else slots for op, slots in zip(program.ops, used)]
        self._guarded = [slots if op.guard else 0 for op, slots in zip(program.ops, used)]
        self._slots = {slot: row for row, slot in enumerate(slots_of(self._read_first(program)))}
        self._of_block = launch.warps
        if len(self._slots) * launch.blocks * launch.warps > MOST_WARPS:
            self.limits.add("registers that nobody wrote (the launch has too many warps)")
            self._slots = {}
        #: Which lanes of each warp of the launch have written them.
        self._written = np.zeros((len(self._slots), launch.blocks * launch.warps), np.uint32)
        self._followed = sum(1 << slot for slot in self._slots)
        self.looked_at = {at: 0 for at, slots in enumerate(self._guarded) if slots & self._followed}
        self._maybe: dict[int, list[tuple[UnwrittenRegister, np.ndarray]]] = {}
        self._effects: dict[tuple[int, int], _Effect] = {}

    def _read_first(self, program: Program) -> int:
        """The slots that some way through the program reads before it writes them."""
        graph = ControlGraph(program)
        used: dict[int, tuple[int, int]] = {}
        for start in graph.basic_blocks:
            reads = writes = 0
            for op in graph.block(start):
                reads |= (self._reads[op.index] | self._guarded[op.index]) & ~writes
                writes |= _written_by(op)
            used[start] = reads, ~writes
        return graph.backward(lambda start, out: used[start][0] | out & used[start][1], 0).get(0, 0)

    @property
    def is_used(self) -> bool:
        """Whether there are registers to look at."""
        return bool(self._slots)

    def begin(self, chunk: Chunk) -> None:
        """These warps run now, some of which may have run before."""
        self._chunk, self._warps = chunk, chunk.threads // WARP
        self._at = chunk.blocks[:, None] * self._of_block + chunk.first // WARP + np.arange(self._warps)

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute the instructions from `start` up to `stop`."""
        if (start, stop) not in self._effects:
            self._effects[start, stop] = self._effect(start, stop)
        reads, guarded, writes = self._effects[start, stop]
        if not (reads or guarded or writes):
            return
        lanes = self._words(mask)
        for one in (*reads, *guarded):
            never = lanes & ~self._written[self._slots[one.slot], self._at]
            if one in guarded:
                self._maybe.setdefault(one.instruction, []).append((one, never))
            elif never.any():
                self._count(one, never)
        for slot in writes:
            self._written[self._slots[slot], self._at] |= lanes

    def look(self, instruction: int, active: Mask | None, registers: Sequence[Value]) -> None:
        for one, never in self._maybe.pop(instruction, ()):
            if active is None and never.any():
                where = self._ops[instruction].where
                self.limits.add(f"what {where} reads that may not be written, under an unknown condition")
            elif active is not None and (never & self._words(active)).any():
                self._count(one, never & self._words(active))

    def passed_by(self, writes: int, lanes: Mask) -> None:
        """Lanes take one of the ways of a branch, which write these slots."""
        for slot in slots_of(writes & self._followed):
            self._written[self._slots[slot], self._at] |= self._words(lanes)

    def _words(self, mask: Mask) -> np.ndarray:
        """The lanes of each running warp in a mask."""
        return np.broadcast_to(to_words(mask), self._at.shape).astype(np.uint32)

    def _effect(self, start: int, stop: int) -> _Effect:
        reads, guarded, written = list[UnwrittenRegister](), list[UnwrittenRegister](), 0
        for op in self._ops[start:stop]:
            first, maybe = (
                every[op.index] & self._followed & ~written for every in (self._reads, self._guarded)
            )
            reads += [UnwrittenRegister(op.index, slot) for slot in slots_of(first)]
            guarded += [UnwrittenRegister(op.index, slot) for slot in slots_of(maybe)]
            written |= (first | _written_by(op)) & self._followed
        return _Effect(tuple(reads), tuple(guarded), tuple(slots_of(written)))

    def _count(self, key: UnwrittenRegister, never: np.ndarray) -> None:
        if key not in self.found:
            row, warp = (int(one[0]) for one in np.nonzero(never))
            word = int(never[row, warp])
            thread = int(self._chunk.first[row, 0]) + warp * WARP + (word & -word).bit_length() - 1
            self.found[key] = Example(int(self._chunk.blocks[row]), later=thread)
        self.found[key].count += int(np.bitwise_count(never).sum())


def _written_by(op: Op) -> int:
    """The slots that an instruction writes, or the function without code that it calls."""
    return op.writes | (RESULT if op.flow is Flow.CALL and not op.targets else 0)


def _used(op: Op, program: Program) -> int:
    """The slots whose values an instruction uses, as bits: not what the compiler keeps on the stack, nor
    lanes that wait. What it keeps of the register that it writes need not be used: beside a variable in a
    half, or unless a condition holds.
    """
    if op.effect is Effect.CONTROL and op.guard is not None:
        return 0
    used = op.reads & ~program.barriers & (1 << SLOTS) - 1
    if not {Trait.PICKS_BYTES, Trait.SELECTS}.isdisjoint(op.traits):
        used &= ~op.writes
    if op.guard is not None and op.guard.slot is not None:
        used &= ~(1 << op.guard.slot)
    return used
