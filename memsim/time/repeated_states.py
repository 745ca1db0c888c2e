"""Runs a multiprocessor to its end, and goes over what repeats in one step.

A loop's state comes back, shifted in time: if all that the future depends on is as it was some cycles ago,
and every warp executes next what it has executed since, then these cycles repeat exactly, as often as the
streams do.
"""

from __future__ import annotations

import numpy as np

from memsim.errors import MemsimError
from memsim.time.hardware_units import NEVER
from memsim.time.multiprocessor import Multiprocessor
from memsim.time.resident_warps import TimedWarp
from memsim.time.steady_state import Mark, SteadyState

#: States that are remembered; the oldest are forgotten.
REMEMBERED = 128


def run_to_end(processor: Multiprocessor, skips: bool, most: int, steady: SteadyState | None = None) -> bool:
    """Run all blocks; after `most` issues, without those that are skipped, what is left is not run. steady:
    goes over what repeats nearly, and over what is left. False if there is something left, and it is None.

    Raises:
        MemsimError: nobody can go on.
    """
    seen: dict[object, Mark] = {}
    warps = processor.warps
    middle = Mark.of(processor, warps)
    issued, first, watched = 0, processor.schedulers[0], processor.watched.stop
    while processor.running:
        warp = processor.step()
        if warp is None:
            if processor.now >= NEVER:
                raise MemsimError(
                    "its warps wait for each other in an order of time that memsim does not know"
                )
            continue
        issued += 1
        if issued == most // 2:
            middle = Mark.of(processor, warps)
        if issued > most:
            if steady is not None:
                steady.go_over_the_rest(processor, Mark.of(processor, warps).since(middle))
            return steady is not None
        if skips and warp.scheduler is first and processor.now >= watched and is_landmark(processor, warp):
            if steady is None or not steady.is_impatient(issued):
                skip_repeats(processor, warps, seen)
            if steady is not None:
                steady.consider(processor, warps, issued)
    return True


def is_landmark(processor: Multiprocessor, warp: TimedWarp) -> bool:
    """Is it worth a look whether this state was there before? It is when one warp of the first scheduler, the
    same one while it runs, has executed its first instruction, or goes back in its code.
    """
    code, stream, at = processor.instructions, warp.stream, warp.at
    if at >= len(stream) or (at > 1 and code[stream[at]].index >= code[stream[at - 1]].index):
        return False
    return at > 0 and warp.number == min(one.number for one in processor.schedulers[0].warps)


def skip_repeats(processor: Multiprocessor, warps: list[TimedWarp], seen: dict[object, Mark]) -> None:
    """If this state was there before, go on to the last time at which it will be."""
    key = state_of(processor, warps)
    before = seen.pop(key, None)
    if before is not None:
        times = repeats(processor, before)
        if times:
            advance(processor, warps, before, times)
            seen.clear()
            return
    seen[key] = Mark.of(processor, warps)
    if len(seen) > REMEMBERED:
        seen.pop(next(iter(seen)))


def state_of(processor: Multiprocessor, warps: list[TimedWarp]) -> object:
    """All that the future depends on, relative to now, but for what the streams hold."""
    now = processor.now
    return (
        tuple(warp.state(now) for warp in warps),
        tuple(scheduler.state(now) for scheduler in processor.schedulers),
        tuple(tuple(warp.number for warp in scheduler.warps) for scheduler in processor.schedulers),
        tuple((block.alive, block.barriers.state()) for block in processor.resident),
        processor.memory.state(now),
        state_of_pending(processor, warps),
        processor.arrivals.state(now),
        processor.code.state(now),
        processor.constants.state(now),
        max(processor.next_start - now, 0),
        tuple(block.way for block in processor.resident),
    )


def state_of_pending(processor: Multiprocessor, warps: list[TimedWarp]) -> object:
    """Loads under way that others may follow, counted from those of the first warp."""
    memory = processor.memory
    if not memory.pending:
        return ()
    memory.forget_arrived(processor.now)
    first = next(warp.times for warp in warps if warp.at < len(warp.stream))
    return (
        tuple((op, nth - first.get(op, 0), at - processor.now) for (op, nth), at in memory.pending.items()),
        tuple(tuple((op, n - first.get(op, 0)) for op, n in warp.times.items()) for warp in warps),
    )


def repeats(processor: Multiprocessor, before: Mark) -> int:
    """How often all warps execute again what they have executed since, and as many blocks start again."""
    found = NEVER
    known: dict[tuple[int, int, int], int] = {}
    places = iter(before.at)
    begun = 0
    for block, started in zip(processor.resident, before.started):
        begun += block.started - started
        for warp in block.warps:
            step = warp.at - next(places)
            if block.started != started and not step:
                continue  # it has executed all of its stream, and will again
            if step < 0 or block.started != started:
                return 0
            if step:
                key = id(warp.array), warp.at, step
                if key not in known:
                    known[key] = periods_ahead(warp.array, warp.at, step)
                found = min(found, known[key])
    if begun:
        oldest = processor.launched.blocks - processor.blocks_left - begun - len(processor.resident)
        if oldest < processor.launched.alike_from:
            return 0
        found = min(found, processor.blocks_left // begun)
    return 0 if found == NEVER else found


def periods_ahead(stream: np.ndarray, at: int, step: int) -> int:
    """How often the `step` instructions before `at` follow again, and the one after them is the same."""
    ahead = stream[at:] != stream[at - step : len(stream) - step]
    same = int(ahead.argmax()) if ahead.any() else len(ahead)
    return max(same - 1, 0) // step


def advance(processor: Multiprocessor, warps: list[TimedWarp], before: Mark, times: int) -> None:
    """Go on as if what happened since had happened so many times more."""
    passed = Mark.of(processor, warps).since(before)
    passed.repeat(processor, times)
    if any(block.started != started for block, started in zip(processor.resident, before.started)):
        processor.handed_out += times * passed.cycles
    moved: dict[int, int] = {}
    for warp, old, executed in zip(warps, before.at, before.times):
        warp.at += times * (warp.at - old)
        for op, count in warp.times.items():
            moved[op] = times * (count - executed.get(op, 0))
            warp.times[op] = count + moved[op]
    pending = processor.memory.pending
    processor.memory.pending = {(op, nth + moved.get(op, 0)): at for (op, nth), at in pending.items()}
    for block, started in zip(processor.resident, before.started):
        processor.blocks_left -= times * (block.started - started)
        block.started += times * (block.started - started)
