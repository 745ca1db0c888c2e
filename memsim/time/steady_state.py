"""A launch that does not repeat itself exactly: once it is known how long its iterations, or its waves of
blocks, take in the mean, the rest of them but the last is gone over in one step.

Blocks that run beside each other drift apart, so a state seldom comes back, and a few iterations may take a
tenth more or less than the next ones: the mean is of many. Which instructions are executed stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean

import numpy as np

from memsim.time.multiprocessor import REASONS, Multiprocessor, end_together
from memsim.time.resident_warps import TimedWarp

#: Issues before anything is marked, and between two marks.
FIRST, STRETCH = 12_000, 6_000
#: Issues from which on no state is looked for that comes back exactly.
IMPATIENT = 96_000
#: Iterations of the slowest warp in a stretch, if it is not longer than so many issues, and those of each
#: warp that are left to be run.
ITERATIONS, LONGEST, LEFT = 2, 40_000, 2
#: Iterations by which blocks that stay as far apart as they are differ in a stretch: it begins and ends
#: somewhere in an iteration.
LOCKED = 0.5
_SELECTED = REASONS.index("selected")


@dataclass(frozen=True, slots=True)
class Loop:
    """The longest stretch of a stream that repeats: it starts at `start` and has `times` iterations of
    `length` instructions.
    """

    start: int
    length: int
    times: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a multiprocessor was: its time, with what was skipped; how far each warp had come, and how often
    it had executed what `TimedWarp.times` counts; blocks that were started, in all and at each place; issues
    and waits.
    """

    now: int
    at: tuple[int, ...]
    times: tuple[dict[int, int], ...]
    blocks: int
    started: tuple[int, ...]
    issued: int
    waits: np.ndarray
    served: tuple[int, ...]

    @staticmethod
    def of(processor: Multiprocessor, warps: Sequence[TimedWarp]) -> Mark:
        """Where it is now."""
        return Mark(
            processor.now + processor.skipped,
            tuple(warp.at for warp in warps),
            tuple(dict(warp.times) for warp in warps),
            processor.launched.blocks - processor.blocks_left,
            tuple(block.started for block in processor.resident),
            processor.issued,
            np.array(processor.waits, np.int64),
            tuple(stage.served for stage in processor.memory.stages),
        )

    def since(self, before: Mark) -> Passed:
        """What happened since another one."""
        served = tuple(now - then for now, then in zip(self.served, before.served))
        return Passed(self.now - before.now, self.waits - before.waits, served)


@dataclass(frozen=True, slots=True)
class Passed:
    """What happened between two marks: cycles, waits, and what the stages of the memory pipe served."""

    cycles: int
    waits: np.ndarray
    served: tuple[int, ...]

    def repeat(self, processor: Multiprocessor, times: float, executed: np.ndarray | None = None) -> None:
        """Count what happened so many times more. Times stay: all are relative to now.

        executed: instructions, if that is known exactly.
        """
        more = np.rint(times * self.waits).astype(np.int64)
        if executed is not None:
            more[:, _SELECTED] = executed
        processor.waits = (np.array(processor.waits, np.int64) + more).tolist()
        processor.issued += int(more[:, _SELECTED].sum())
        processor.skipped += round(times * self.cycles)
        for stage, served in zip(processor.memory.stages, self.served):
            stage.served += round(times * served)


class SteadyState:
    """Goes over iterations and blocks of a multiprocessor. has_skipped: it did so, and the result is an
    estimate of what the whole run would be. known: by what the resident blocks are in, what happened in a
    steady stretch, and how many iterations each group of warps made there.
    """

    def __init__(self, op_of: np.ndarray, averaged: int, skips: bool = True) -> None:
        """op_of: the instruction of each number in a stream, int [numbers]. averaged: issues whose pace goes
        for the rest. skips: whether it may.
        """
        self.op_of, self.skips, self.averaged = op_of, skips, averaged
        self.loops: dict[int, Loop] = {}
        self.mark: Mark | None = None
        self.wave: Mark | None = None
        self.begin: tuple[object, Mark] | None = None  # of the iterations to be averaged, and who makes them
        self.known: dict[object, tuple[Passed, tuple[float, ...]]] = {}
        self.has_skipped = False

    def is_impatient(self, issued: int) -> bool:
        """Is it time to give up looking for a state that comes back exactly?"""
        return self.has_skipped or issued > IMPATIENT

    def consider(self, processor: Multiprocessor, warps: Sequence[TimedWarp], issued: int) -> None:
        """At a landmark after so many issues: skip, if all is steady."""
        if not self.skips or issued < FIRST:
            return
        if self.mark is None or any(warp.at < at for warp, at in zip(warps, self.mark.at)):
            self._new_block(processor, warps)
            return
        if processor.issued - self.mark.issued < STRETCH:
            return
        loops = [self.loop_of(warp) for warp in warps]
        done = [
            (warp.at - at) / loop.length if loop.length else 0.0
            for warp, at, loop in zip(warps, self.mark.at, loops)
        ]
        moving = [number for number, iterations in enumerate(done) if iterations > 0]
        stretch = processor.issued - self.mark.issued
        least = min((done[number] for number in moving), default=0.0)
        if least < (1 if self.known else ITERATIONS) and stretch < LONGEST:
            return  # until the slowest that moves at all has made some
        mark, self.mark = self.mark, Mark.of(processor, warps)
        if not moving or not all(_is_inside(warps[n], loops[n], mark.at[n]) for n in moving):
            self.begin = None
            return
        # Warps of a block stay as far apart as they are, which barriers ask for.
        groups: dict[tuple[int, Loop], list[int]] = {}
        for number in moving:
            groups.setdefault((id(warps[number].block), loops[number]), []).append(number)
        key = tuple((warps[group[0]].block.way, loop) for (_, loop), group in groups.items())
        if key not in self.known:
            if self.begin is None or self.begin[0] != key:
                self.begin = key, mark
            _, begin = self.begin
            if self.mark.issued - begin.issued < self.averaged:
                return
            iterations = tuple(
                mean((warps[number].at - begin.at[number]) / loop.length for number in group)
                for (_, loop), group in groups.items()
            )
            if np.ptp(iterations) < LOCKED and len({loop for _, loop in groups}) == 1:
                iterations = (mean(iterations),) * len(iterations)
            self.known[key] = self.mark.since(begin), iterations
        passed, iterations = self.known[key]
        left = [min(_left(warps[number], loops[number]) for number in group) for group in groups.values()]
        share = min(one / made for one, made in zip(left, iterations))
        if share > 1:
            times = [0] * len(warps)
            for group, made in zip(groups.values(), iterations):
                for number in group:
                    times[number] = int(share * made)
            self._skip_iterations(processor, warps, loops, times, passed, share)
            self.mark = Mark.of(processor, warps)

    def _new_block(self, processor: Multiprocessor, warps: Sequence[TimedWarp]) -> None:
        """A block has started since the last mark: skip waves of blocks, if enough of them have passed."""
        self.mark, self.begin = Mark.of(processor, warps), None
        resident = len(processor.resident)
        if self.wave is None:
            if self.mark.blocks >= 2 * resident:  # the first ones start together, with empty caches
                self.wave = self.mark
            return
        begun = self.mark.blocks - self.wave.blocks
        if begun < 2 * resident or self.mark.issued - self.wave.issued < self.averaged:
            return
        left = (processor.blocks_left - resident) // resident * resident
        if left > resident:
            self._skip_blocks(processor, left, begun)
        self.wave = Mark.of(processor, warps)

    def _skip_iterations(
        self,
        processor: Multiprocessor,
        warps: Sequence[TimedWarp],
        loops: Sequence[Loop],
        times: Sequence[int],
        passed: Passed,
        share: float,
    ) -> None:
        """Each warp executes so many iterations of its loop."""
        executed = np.zeros(len(processor.waits), np.int64)
        for warp, loop, count in zip(warps, loops, times):
            iteration = self.op_of[warp.array[warp.at : warp.at + loop.length]]
            counted = count * np.bincount(iteration, minlength=len(executed))
            executed += counted
            for op in warp.times:
                warp.times[op] += int(counted[op])
            warp.at += count * loop.length
        processor.memory.pending.clear()
        passed.repeat(processor, share, executed)
        self.has_skipped = True

    def _skip_blocks(self, processor: Multiprocessor, count: int, begun: int) -> None:
        launched = processor.launched
        first = launched.blocks - processor.blocks_left
        executed = np.zeros(len(processor.waits), np.int64)
        places = np.bincount([launched.place(first + number) for number in range(count)])
        for place, times in enumerate(places.tolist()):
            if times:
                for stream in launched.known[place]:
                    executed += times * np.bincount(self.op_of[stream], minlength=len(executed))
        processor.blocks_left -= count
        assert self.wave is not None and self.mark is not None  # both are there before blocks are skipped
        self.mark.since(self.wave).repeat(processor, count / begun, executed)
        self.has_skipped = True

    def go_over_the_rest(self, processor: Multiprocessor, passed: Passed) -> None:
        """Count all that is left, at the pace of what passed."""
        if processor.spare and self._are_abreast(processor):
            processor.launched = replace(processor.launched, blocks=processor.launched.blocks + 1)
        launched = processor.launched
        left = -np.array(processor.waits, np.int64)[:, _SELECTED]
        places = np.bincount([launched.place(number) for number in range(launched.blocks)])
        for place, times in enumerate(places.tolist()):
            for stream in launched.known[place] if times else ():
                left += times * np.bincount(self.op_of[stream], minlength=len(left))
        passed.repeat(processor, left.sum() / passed.waits[:, _SELECTED].sum(), left)
        processor.end = processor.now
        self.has_skipped = True

    @staticmethod
    def _are_abreast(processor: Multiprocessor) -> bool:
        """Are the resident blocks as far as each other, so that they will end together?"""
        done = [
            block.started + mean(warp.at / len(warp.array) for warp in block.warps if len(warp.array))
            for block in processor.resident
        ]
        return end_together(max(done) - min(done), len(done))

    def loop_of(self, warp: TimedWarp) -> Loop:
        """The longest loop of a warp's stream."""
        key = id(warp.array)
        if key not in self.loops:
            self.loops[key] = longest_loop(self.op_of[warp.array])
        return self.loops[key]


def _left(warp: TimedWarp, loop: Loop) -> int:
    """Iterations that a warp may go over."""
    return max(loop.times - (warp.at - loop.start) // loop.length - LEFT, 0)


def _is_inside(warp: TimedWarp, loop: Loop, at: int) -> bool:
    """Has a warp been in its loop since it was `at`, and will it stay there for a while?"""
    return bool(loop.length) and at >= loop.start and warp.at < loop.start + (loop.times - 1) * loop.length


def longest_loop(stream: np.ndarray) -> Loop:
    """The loop that most of a stream consists of; of no iterations if there is none."""
    back = np.flatnonzero(stream[1:] <= stream[:-1]) + 1
    best = Loop(0, 0, 0)
    for target in np.unique(stream[back]):
        starts = np.flatnonzero(stream == target)
        lengths = np.diff(starts)
        for first, last in _equal_stretches(lengths):
            length = int(lengths[first])
            times = last - first
            if length * times <= best.length * best.times:
                continue
            rows = stream[starts[first] : starts[first] + length * times].reshape(times, length)
            same = int(np.argmin([*(rows == rows[0]).all(1), False]))
            if length * same > best.length * best.times:
                best = Loop(int(starts[first]), length, same)
    return best


def _equal_stretches(lengths: np.ndarray) -> list[tuple[int, int]]:
    """(first, past the last) of stretches of equal numbers."""
    if not len(lengths):
        return []
    cuts = [0, *(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
    return list(pairwise(cuts))
