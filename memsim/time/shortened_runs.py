"""A launch that does not repeat itself exactly: fewer iterations of its loop and fewer blocks are run, and
the rest is extrapolated.

Blocks that run beside each other drift apart, so a state seldom comes back. But an iteration, and a wave of
blocks, takes about as long as the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from memsim.time.multiprocessor import Multiprocessor
from memsim.time.repeated_states import run_to_end

#: Issues that a launch may take to be run whole, and each of the shortened ones.
WHOLE, SHORTENED = 60_000, 24_000
#: Issues after which even a shortened one is given up.
MOST = 3_000_000
#: Iterations, and waves of blocks, that are run at least.
FEWEST_ITERATIONS, WAVES = 3, 3


@dataclass(frozen=True, slots=True)
class Loop:
    """The longest stretch of a stream that repeats: it starts at `start` and has `times` iterations of
    `length` instructions.
    """

    start: int
    length: int
    times: int


@dataclass(frozen=True, slots=True)
class TimedRun:
    """What a multiprocessor did. waits: int64 [instructions, reasons]. is_whole: nothing was extrapolated."""

    cycles: int
    issued: int
    waits: np.ndarray
    is_whole: bool


#: Makes a multiprocessor that runs so many blocks with these streams.
Make = Callable[[Sequence[np.ndarray], int], Multiprocessor]


def timed_run(
    make: Make, streams: Sequence[np.ndarray], blocks: int, resident: int, skips: bool = True
) -> TimedRun | None:
    """Run all blocks, or fewer and shorter ones and extrapolate; None if that takes too long."""
    found = _run(make, streams, blocks, skips, WHOLE if skips else MOST)
    if found is not None or not skips:
        return found
    loops = {id(stream): longest_loop(stream) for stream in streams}
    times = {loop.times for loop in loops.values()}
    per_iteration = sum(loops[id(stream)].length for stream in streams) * min(resident, blocks)
    iterations = min(times)
    few = max(FEWEST_ITERATIONS, SHORTENED // max(per_iteration, 1) // 2)
    shortens = len(times) == 1 and iterations > 3 * few
    waves = blocks // resident
    kept = (WAVES - 1) * resident + blocks % resident
    leaves_out = waves > WAVES + 1

    def of_blocks(count: int) -> TimedRun | None:
        if not shortens:
            return _run(make, streams, count, True, MOST)
        ends = []
        for left in (few, 2 * few):
            short = {key: without(stream, loops[key], left) for key, stream in _by_id(streams).items()}
            ends.append(_run(make, [short[id(stream)] for stream in streams], count, True, MOST))
        return extrapolated(ends, few, 2 * few, iterations)

    if not leaves_out:
        return of_blocks(blocks)
    ends = [of_blocks(kept), of_blocks(kept + resident)]
    return extrapolated(ends, WAVES - 1, WAVES, waves)


def _by_id(streams: Sequence[np.ndarray]) -> dict[int, np.ndarray]:
    return {id(stream): stream for stream in streams}


def _run(make: Make, streams: Sequence[np.ndarray], blocks: int, skips: bool, most: int) -> TimedRun | None:
    processor = make(streams, blocks)
    if not run_to_end(processor, skips, most):
        return None
    return TimedRun(processor.cycles, processor.issued, np.array(processor.waits, np.int64), True)


def extrapolated(ends: Sequence[TimedRun | None], first: int, second: int, at: int) -> TimedRun | None:
    """The outcome at a number, on the line through those at two others; instructions are exact."""
    one, two = ends
    if one is None or two is None:
        return None
    share = Fraction(at - second, second - first)
    waits = two.waits + np.round(float(share) * (two.waits - one.waits)).astype(np.int64)
    waits[:, 0] = two.waits[:, 0] + (two.waits[:, 0] - one.waits[:, 0]) * share.numerator // share.denominator
    return TimedRun(
        two.cycles + round(share * (two.cycles - one.cycles)),
        two.issued + round(share * (two.issued - one.issued)),
        np.maximum(waits, 0),
        False,
    )


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


def without(stream: np.ndarray, loop: Loop, left: int) -> np.ndarray:
    """A stream with only so many iterations of its loop."""
    cut = loop.start + left * loop.length
    return np.concatenate([stream[:cut], stream[loop.start + loop.times * loop.length :]])
