"""Runs a launch for its errors: the same slice as for an analysis, heard by what looks for errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from memsim.access import Listener
from memsim.api.running import blocks_of, execute_job
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sanitizer.contents import ContentDoubts, not_given
from memsim.sanitizer.describe import Description
from memsim.sanitizer.doubts import AllDiffer, StoredValues
from memsim.sanitizer.ears import Ears
from memsim.sanitizer.examples import Pair, Unwritten
from memsim.sanitizer.global_cells import GlobalPair
from memsim.sanitizer.hazards import (
    BOUNDS,
    INIT,
    RACE,
    SYNC,
    TOOLS,
    Allowance,
    Hazard,
    Sanitized,
    allow,
    by_lines,
)
from memsim.sanitizer.shared_races import TooManyClasses
from memsim.simt.faults import MBARRIER, Deadlock, KernelFault
from memsim.state.launch_memory import Memory

#: Threads that run at once where the blocks differ so much that what is kept of each would not fit.
FEWER_THREADS = 1 << 14


def sanitize_job(
    job: Job,
    progress: Callable[[float], None] | None = None,
    tools: Collection[str] = TOOLS,
    allowances: Sequence[Allowance] = (),
    new_memory: Callable[[], Memory] | None = None,
    unwritten: Collection[str] = (),
) -> Sanitized:
    """The errors of a job with machine code, of those that `tools` look for. new_memory: gives that of the
    launch, for `PreparedLaunch`. unwritten: names of arrays in global memory whose contents do not count.

    Raises:
        MemsimError: there is no machine code, or the launch does not fit.
    """
    kernel, launch, chosen = job.loaded, job.launch, blocks_of(job)

    def run(listener: Listener, progress: Callable[[float], None] | None = None, **how: Any) -> None:
        """Execute the launch for a listener. how: as `execute_job`."""
        memory = None if new_memory is None else new_memory()
        how |= {"blocks": chosen, "memory": memory, "judges_order": False}
        execute_job(job, listener, progress, everything=False, **how)

    for limit in (None, FEWER_THREADS, 1):
        limited = partial(run, chunk_threads=limit)
        try:
            ears = _heard(limited, Ears(kernel, launch, unwritten), progress)
            break
        except TooManyClasses:
            continue
    else:
        raise MemsimError("the blocks of this launch need more shared memory than can be followed")
    races = ears.races
    said = Description(kernel.executable.program, kernel.sources, races.layout)
    pairs: list[Pair | GlobalPair] = [pair for pair in races.found if isinstance(pair, Pair)]
    pairs += ears.of_global.found
    if RACE in tools and (stores := [*filter(None, map(said.stores, pairs))]):
        values = StoredValues(kernel.executable.program, stores)
        said.values = _listened(limited, values)
    found: list[Hazard] = []
    faults = {
        tool: [one for one in ears.faults.values() if (one[0].kind == MBARRIER) == (tool == SYNC)]
        for tool in (BOUNDS, SYNC)
    }
    if RACE in tools:
        found += [said.race(pair, one) for pair, one in races.found.items() if isinstance(pair, Pair)]
        found += [said.early_access(one, example) for one, example in ears.registers.found.items()]
        of_global = ears.of_global
        found += [said.global_race(pair, one, of_global.is_partial) for pair, one in of_global.found.items()]
        found += [said.too_early(*one) for one in ears.before.found.items()]
    if INIT in tools:
        found += [said.unwritten(key, one) for key, one in races.found.items() if isinstance(key, Unwritten)]
        found += [said.never_written(*one) for one in ears.unwritten.found.items()]
        found += [said.unwritten_register(*one) for one in ears.unset.found.items()]
    if BOUNDS in tools:
        found += [said.wrong(fault, lanes, sum(counts)) for fault, lanes, counts in faults[BOUNDS]]
        found += [said.strayed(*one) for one in ears.strayed]
    if SYNC in tools:
        met = [said.meeting(pair, one) for pair, one in races.met.items()]
        found += filter(None, [*met, *(said.skipped(*one) for one in ears.skipped.found.items())])
        found += [said.deadlock(ears.deadlock)] if ears.deadlock is not None else []
        found += [said.absent_lanes(*one) for one in ears.masks.found.items()]
        found += [said.unfinished(*one) for one in ears.unfinished.found.items()]
        found += [said.outlived(*one) for one in races.outlived.items()]
        found += [said.wrong_mbarrier(fault, lanes) for fault, lanes, _ in faults[SYNC]]
    of_contents = set[str]()
    if new_memory is None and ears.started:
        roots = not_given(kernel.executable, kernel.argument_names, job.values)
        contents = ContentDoubts(ears.of_global.origins.dataflow, roots)
        of_contents = contents.limits
        for hazard in found:
            hazard.doubt = hazard.doubt or contents.doubt(hazard)
    found = sorted(by_lines(found), key=lambda one: one.rank)
    allow(found, allowances)
    blocks = launch.blocks if chosen is None else len(chosen)
    ops = kernel.executable.program.ops
    unknown = (f"what the product at {ops[at].where} reads is unknown: {why}" for at, why in races.unknown)
    unjudged = tuple(sorted(ears.unjudged.union(unknown)))
    chosen_tools = tuple(tool for tool in TOOLS if tool in tools)
    parts = ears.of_global, ears.before, ears.unwritten, ears.masks, ears.unset
    limits = tuple(sorted(of_contents.union(*(one.limits for one in parts))))
    return Sanitized(
        kernel.title, launch, blocks, chosen_tools, tuple(found), unjudged, limits, kernel.sources
    )


def _listened(run: Callable[..., object], values: StoredValues) -> StoredValues | None:
    """What stores store, as far as the launch comes to its end."""
    try:
        run(Listener(), order=values, looked_at=values.looked_at, collect=lambda _: None)
    except AllDiffer:
        pass
    except MemsimError:
        return None
    return values


def _heard(run: Callable[..., object], ears: Ears, progress: Callable[[float], None] | None) -> Ears:
    """Run a launch, and hear it; what stops it is a finding, or not judged."""
    try:
        run(ears, progress, order=ears.order, looked_at=ears.looked_at, collect=ears.take)
        ears.finish()
    except Deadlock as stuck:
        ears.deadlock = stuck
    except MemsimError as error:
        if not ears.started:
            raise
        ears.unjudged.add(f"what comes after {error.location}: {error.message}")
        if isinstance(error, KernelFault):
            ears.take(error)
    return ears
