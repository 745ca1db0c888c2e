"""Lanes that a warp's instructions name, or read from, and that do not take part.

All lanes that the mask of a `*_sync` function names have to come to it, those that have exited excepted, and
each lane that comes has to be named (PTX ISA, `shfl.sync`, `vote.sync`, `bar.warp.sync`). Lanes that do not
come are waited for forever, which ends the launch; here are those that are not named. What a shuffle returns
of a lane that does not execute it is undefined. Where the code has no constant that says from which lane it
reads, the launch is asked to work that out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.lanes import shuffle, shuffle_mode, source_lane, vote
from memsim.isa.logic import find_leading_one
from memsim.isa.op import Flow, Immediate, Register
from memsim.isa.program import Op, Program
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.examples import Example
from memsim.state.launch_memory import Memory
from memsim.state.partial import Value, known_bits
from memsim.state.parts import EVERY_LANE, NO_LANE, Mask, Part

_LANES = np.arange(WARP)


class AbsentLanes(NamedTuple):
    """An instruction; unnamed: lanes execute it that its mask does not name, else lanes that execute it read
    from others that do not.
    """

    instruction: int
    unnamed: bool


class _Shuffle(NamedTuple):
    """From which lane each one reads: the mode, and the operands of the instruction."""

    mode: str
    distance: int
    limits: int


class LaneMasks(OrderListener):
    """Finds them: `found`; there `earlier` is the thread that is read from. limits: what is not known.
    looked_at: slots that say from which lanes shuffles read, by their instructions; none if that is constant.
    """

    def __init__(self, program: Program) -> None:
        self.found: dict[AbsentLanes, Example] = {}
        self.limits: set[str] = set()
        self._ops = program.ops
        self._shuffles = {
            op.index: _shuffle(op)
            for op in program.ops
            if op.builder is shuffle and not _is_from_a_voter(op, program.ops)
        }
        self._places = [at for at, shuffle in self._shuffles.items() if shuffle is not None]
        self.looked_at = {at: _slots(self._ops[at]) for at in self._shuffles}

    @property
    def is_used(self) -> bool:
        """Whether there are shuffles to look at."""
        return bool(self._places)

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads = threads

    def name_lanes(self, instruction: int, named: np.ndarray, mask: Mask) -> None:
        full = self._threads.full(mask)
        unnamed = full & (named >> np.arange(full.shape[1]) % WARP & 1 == 0)
        if unnamed.any():
            row, thread = (int(one[0]) for one in np.nonzero(unnamed))
            self._count(AbsentLanes(instruction, True), row, -1, thread, int(unnamed.sum()))

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute the instructions from `start` up to `stop`."""
        first = bisect_left(self._places, start)
        last = bisect_left(self._places, stop, first)
        if first == last or not isinstance(mask, Part):
            return
        rows, threads = self._threads.shape
        words, alike = np.broadcast_to(mask.words, (mask.shape[0], threads // WARP)), rows // mask.shape[0]
        parted = np.nonzero((words != NO_LANE) & (words != EVERY_LANE))
        if not len(parted[0]):
            return
        each, places, counts = np.unique(words[parted], return_index=True, return_counts=True)
        for index in self._places[first:last]:
            shuffle = self._shuffles[index]
            assert shuffle is not None
            for word, place, count in zip(each.tolist(), places.tolist(), counts.tolist()):
                idle = _read_idle(shuffle, word)
                if idle:
                    row, warp = (int(one[place]) for one in parted)
                    lane, source = idle[0]
                    key = AbsentLanes(index, False)
                    self._count(key, row, warp * WARP + source, warp * WARP + lane, len(idle) * count * alike)

    def look(self, instruction: int, active: Mask | None, registers: Sequence[Value]) -> None:
        if instruction not in self._shuffles or self._shuffles[instruction] is not None:
            return
        op, shape = self._ops[instruction], self._threads.shape
        words = [None if active is None else _word(one, registers, active) for one in op.form.operands[-2:]]
        if active is None or words[0] is None or words[1] is None:
            self.limits.add(f"from which lanes the shuffle at {op.where} reads")
            return
        here = self._threads.full(active).reshape(shape[0], -1, WARP)
        parted = here.any(-1) & ~here.all(-1)
        if not parted.any():
            return
        distance, limits = (
            np.broadcast_to(one, shape).reshape(here.shape) for one in words if one is not None
        )
        mode = shuffle_mode(op.form)
        source, valid = source_lane(mode, _LANES, distance & 31, limits & 31, limits >> 8 & 31)
        read = np.take_along_axis(here, np.where(valid, source, _LANES), -1)
        idle = here & ~read
        if idle.any():
            row, warp, lane = (int(one[0]) for one in np.nonzero(idle))
            first, key = warp * WARP, AbsentLanes(instruction, False)
            self._count(key, row, first + int(source[row, warp, lane]), first + lane, int(idle.sum()))

    def _count(self, key: AbsentLanes, row: int, other: int, thread: int, count: int) -> None:
        if key not in self.found:
            threads = self._threads
            first = int(threads.numbers[row if len(threads.numbers) > 1 else 0, 0])
            earlier = other if other < 0 else first + other
            self.found[key] = Example(int(threads.blocks[row]), earlier, first + thread)
        self.found[key].count += count


def _shuffle(op: Op) -> _Shuffle | None:
    """None if not the same lanes are read in each execution."""
    if op.guard is not None:
        return None
    distance, limits = (_constant(one) for one in op.form.operands[-2:])
    return None if distance is None or limits is None else _Shuffle(shuffle_mode(op.form), distance, limits)


def _is_from_a_voter(op: Op, ops: Sequence[Op]) -> bool:
    """Whether a shuffle reads from the first of the lanes that voted, as a compiler adds up for an atomic."""
    wanted, finds = op.form.operands[-2], True
    for before in reversed(ops[: op.index]):
        if not isinstance(wanted, Register) or wanted.slot is None:
            return False
        if before.flow not in (None, Flow.YIELD):
            return False
        if before.writes >> wanted.slot & 1:
            if not finds:
                return before.builder is vote
            if before.builder is not find_leading_one:
                return False
            wanted, finds = before.form.operands[-1], False
    return False


def _slots(op: Op) -> int:
    """The registers that say from which lane a shuffle reads, as bits."""
    named = (one.slot for one in op.form.operands[-2:] if isinstance(one, Register))
    return sum(1 << slot for slot in {*named} if slot is not None)


def _word(operand: object, registers: Sequence[Value], lanes: Mask) -> np.ndarray | None:
    """An operand in some lanes; None if it is unknown in one."""
    constant = _constant(operand)
    if constant is not None:
        return np.full((1, 1), constant)
    slot = operand.slot if isinstance(operand, Register) else None
    return None if slot is None else known_bits(registers[slot], lanes)


def _constant(operand: object) -> int | None:
    if isinstance(operand, Immediate):
        return int(operand.value)
    return 0 if isinstance(operand, Register) and operand.slot is None else None


@cache
def _read_idle(shuffle: _Shuffle, word: int) -> tuple[tuple[int, int], ...]:
    """The lanes of a warp, of which those in a word execute a shuffle, that read from others, and these."""
    distance, limits = shuffle.distance, shuffle.limits
    source, valid = source_lane(shuffle.mode, _LANES, distance & 31, limits & 31, limits >> 8 & 31)  # type: ignore[arg-type]
    pairs = zip(_LANES.tolist(), np.where(valid, source, _LANES).tolist())
    return tuple((lane, one) for lane, one in pairs if word >> lane & 1 and not word >> one & 1)
