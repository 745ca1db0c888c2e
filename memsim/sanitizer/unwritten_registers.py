"""Registers that lanes read and have not written: a variable without a value that the compiler left in one.

Only variables in constant and global memory begin with a value (PTX ISA 5.4.4, "Initializers"). Only
registers are followed that some way through the program reads first; in many programs there are none. A write
under a guard counts as one, as does each on the ways of a branch that is passed by, and a read under a guard
is not looked at: mostly the compiler has guarded both alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memsim.access import Chunk
from memsim.arch.units import WARP
from memsim.isa.op import PREDICATE, SLOTS, UNIFORM_PREDICATE, Immediate, Trait, slots_of
from memsim.isa.program import Op, Program
from memsim.launch import Launch
from memsim.sanitizer.shared_races import Example
from memsim.simt.control_graph import ControlGraph
from memsim.state.parts import Mask, Part

#: Warps of a launch, once for each register that is followed, above which none is.
MOST_WARPS = 1 << 26
#: What packs predicates, from this slot on.
PACKS = {"P2R": PREDICATE, "UP2UR": UNIFORM_PREDICATE}


class UnwrittenRegister(NamedTuple):
    """An instruction that reads a slot that lanes have not written."""

    instruction: int
    slot: int


class UnwrittenRegisters:
    """Finds them: `found`. limits: what is not followed, in words."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self.found: dict[UnwrittenRegister, Example] = {}
        self.limits: set[str] = set()
        self._ops = program.ops
        self._reads = [_used(op, program) for op in program.ops]
        self._slots = {slot: row for row, slot in enumerate(slots_of(self._read_first(program)))}
        self._of_block = launch.warps
        if len(self._slots) * launch.blocks * launch.warps > MOST_WARPS:
            self.limits.add("registers that nobody wrote (the launch has too many warps)")
            self._slots = {}
        #: Which lanes of each warp of the launch have written them.
        self._written = np.zeros((len(self._slots), launch.blocks * launch.warps), np.uint32)
        self._followed = sum(1 << slot for slot in self._slots)
        self._effects: dict[tuple[int, int], tuple[tuple[UnwrittenRegister, ...], tuple[int, ...]]] = {}

    def _read_first(self, program: Program) -> int:
        """The slots that some way through the program reads before it writes them."""
        graph = ControlGraph(program)
        used: dict[int, tuple[int, int]] = {}
        for start, end in graph.basic_blocks:
            reads = writes = 0
            for op in self._ops[start:end]:
                reads |= self._reads[op.index] & ~writes
                writes |= op.writes
            used[start] = reads, ~writes
        return graph.backward(lambda start, out: used[start][0] | out & used[start][1], 0).get(0, 0)

    @property
    def is_used(self) -> bool:
        """Whether there are registers to look at."""
        return bool(self._slots)

    def start_chunk(self, chunk: Chunk) -> None:
        """These warps run now, some of which may have run before."""
        self._chunk, self._warps = chunk, chunk.threads // WARP
        self._at = chunk.blocks[:, None] * self._of_block + chunk.first // WARP + np.arange(self._warps)

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute the instructions from `start` up to `stop`."""
        if (start, stop) not in self._effects:
            self._effects[start, stop] = self._effect(start, stop)
        reads, writes = self._effects[start, stop]
        if not (reads or writes):
            return
        lanes = self._words(mask)
        for one in reads:
            never = lanes & ~self._written[self._slots[one.slot], self._at]
            if never.any():
                self._count(one, never)
        for slot in writes:
            self._written[self._slots[slot], self._at] |= lanes

    def passed_by(self, writes: int, lanes: Mask) -> None:
        """Lanes take one of the ways of a branch, which write these slots."""
        for slot in slots_of(writes & self._followed):
            self._written[self._slots[slot], self._at] |= self._words(lanes)

    def _words(self, mask: Mask) -> np.ndarray:
        """The lanes of each running warp in a mask."""
        words = mask.words if isinstance(mask, Part) else np.uint32(0xFFFFFFFF if mask else 0)
        return np.broadcast_to(words, self._at.shape).astype(np.uint32)

    def _effect(self, start: int, stop: int) -> tuple[tuple[UnwrittenRegister, ...], tuple[int, ...]]:
        """What a stretch reads first, and what it writes."""
        reads, written = list[UnwrittenRegister](), 0
        for op in self._ops[start:stop]:
            first = self._reads[op.index] & self._followed & ~written
            reads += [UnwrittenRegister(op.index, slot) for slot in slots_of(first)]
            written |= (first | op.writes) & self._followed
        return tuple(reads), tuple(slots_of(written))

    def _count(self, key: UnwrittenRegister, never: np.ndarray) -> None:
        if key not in self.found:
            row, warp = (int(one[0]) for one in np.nonzero(never))
            word = int(never[row, warp])
            thread = int(self._chunk.first[row, 0]) + warp * WARP + (word & -word).bit_length() - 1
            self.found[key] = Example(int(self._chunk.blocks[row]), -1, thread, 0, 0)
        self.found[key].count += int(np.bitwise_count(never).sum())


def _used(op: Op, program: Program) -> int:
    """The slots whose values an instruction uses, as bits: not what the compiler keeps on the stack, nor
    lanes that wait; of the predicates that it packs in a word, those that it is asked for. What it keeps of
    the register that it writes need not be used: beside a variable in a half, or unless a condition holds.
    """
    if op.guard is not None:
        return 0
    used = op.reads & ~program.barriers & (1 << SLOTS) - 1
    if not {Trait.PICKS_BYTES, Trait.SELECTS}.isdisjoint(op.traits):
        used &= ~op.writes
    if op.form.opcode in PACKS:
        mask = op.form.operands[-1]
        chosen = int(mask.value) if isinstance(mask, Immediate) else 0
        used &= ~program.predicates | chosen << PACKS[op.form.opcode]
    return used
