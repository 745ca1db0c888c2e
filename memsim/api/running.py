"""Launching a kernel: the trace of its accesses, what they cost, or its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.access import Listener
from memsim.api.loading import Module, choice_of
from memsim.arch import arch_of_code
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.launch import Launch, dim3

if TYPE_CHECKING:
    from memsim.order.order_listener import OrderListener
    from memsim.simt.prepared_launch import Heard, PreparedLaunch
    from memsim.sketch.python_function import PythonFunction
    from memsim.state.launch_memory import Memory
    from memsim.trace.record import Recorder
    from memsim.trace.trace import Trace
    from memsim.trace.trace_data import SeenRace

Progress = Callable[[float], None]


def job_of(
    kernel: Kernel | Callable[..., object],
    grid: Any,
    block: Any,
    args: Sequence[object],
    shared_bytes: int | None = 0,
    cluster: int | Sequence[int] | None = None,
    **more: Any,
) -> Job:
    """The job that the keywords of `trace`, `run` and `memsim.analyze` describe.

    Raises:
        MemsimError: what is given for the kernel is none, or such a launch cannot be.
    """
    source: Kernel | PythonFunction
    if callable(kernel):
        from memsim.sketch.python_function import PythonFunction

        source, grid, shared_bytes = PythonFunction(function=kernel), 1 if grid is None else grid, 0
    else:
        source = kernel = _kernel_of(kernel)
        more = {"arch": arch_of_code(kernel.origin.arch), **more}
        if shared_bytes is None:
            shared_bytes = more["arch"].shared_block_bytes - kernel.static_shared
            assumed = (
                f"dynamic shared memory was not given; assuming the maximum of a block, {shared_bytes:,} B"
            )
            more = {**more, "uncertain": (assumed,)}
    clustered = None if cluster is None else dim3(cluster, "cluster")
    launch = Launch(dim3(grid, "grid"), dim3(block, "block"), shared_bytes, clustered)
    return Job(source, launch, args, **more)


def trace(
    kernel: Kernel | Callable[..., object],
    grid: int | Sequence[int] | None = None,
    block: int | Sequence[int] | None = None,
    args: Sequence[object] = (),
    shared_bytes: int | None = 0,
    blocks: int | None = None,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    apart: bool = False,
    **more: Any,
) -> Trace:
    """The addresses of every shared and global access of a launch, described as for `memsim.analyze`.

    `everything`, `apart`: as `trace_job`.

    Raises:
        MemsimError: a launch or arguments that do not fit, or whatever goes wrong in the kernel.
    """
    job = job_of(kernel, grid, block, args, shared_bytes, blocks=blocks, **more)
    return trace_job(job, progress, everything=everything, apart=apart)


def run(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[object] = (),
    shared_bytes: int | None = 0,
    progress: Progress | None = None,
    *,
    cluster: int | Sequence[int] | None = None,
    max_steps: int | None = None,
) -> None:
    """Execute a launch completely; arrays are written in place, as on a GPU. The rest as for
    `memsim.analyze`.

    Raises:
        MemsimError: a launch or arguments that do not fit, a result that depends on an
            instruction that is not executed, or whatever goes wrong in the kernel.
    """
    run_job(job_of(kernel, grid, block, args, shared_bytes, cluster, max_steps=max_steps), progress)


def trace_job(
    job: Job,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    apart: bool = False,
    everywhere: bool = False,
    memory: Memory | None = None,
) -> Trace:
    """The addresses of every shared and global access of a job.

    `everything`: execute all instructions instead of those that addresses and branches depend on; the trace
    is the same, and array arguments are written in place. `apart`: shared requests with a multiple of 128
    bytes between them, which cost the same, are rows of their own: another layout may tell them apart.
    `everywhere`: global requests too, of which there may be many. `memory`: as `PreparedLaunch`.

    Raises:
        MemsimError: whatever is wrong with the kernel, its launch or its arguments, or goes wrong in it.
    """
    from memsim.trace.trace import TraceSource

    chosen = blocks_of(job)
    new_recorder = partial(recorder_of, job, apart=apart, everywhere=everywhere)
    if isinstance(job.kernel, TraceSource):
        return job.kernel.trace(job.launch, job.args, chosen, progress, new_recorder)
    return trace_with(job, new_recorder(), chosen, progress, everything=everything, memory=memory)


def recorder_of(job: Job, *, apart: bool = False, everywhere: bool = False) -> Recorder:
    """What records the requests of a job; `apart`, `everywhere`: as `trace_job`."""
    from memsim.model.alike import SameCost
    from memsim.trace.record import Recorder

    stands_for = None if apart or everywhere else SameCost(job.arch)
    return Recorder(stands_for, apart=apart, everywhere=everywhere)


def trace_with(
    job: Job,
    recorder: Recorder,
    chosen: np.ndarray | None,
    progress: Progress | None = None,
    *,
    everything: bool = False,
    memory: Memory | None = None,
    every_branch: bool = False,
    judges: bool = True,
    order: OrderListener | None = None,
) -> Trace:
    """The trace of the blocks `chosen` (linear numbers, None for all) of a job with machine code, as a
    recorder keeps it. `every_branch`: as `PreparedLaunch`. `judges`: say, too, what is not certain of it;
    otherwise a trace of the whole launch has said so, and `order` is told of what orders accesses.

    Raises:
        MemsimError: as `trace_job`.
    """
    launch = prepared_launch(job, everything=everything, every_branch=every_branch, memory=memory)
    heard, races = run_blocks(job, launch, recorder, chosen, progress, judges=judges, order=order)
    end = trace_of_launch if judges or everything else _recorded_trace
    return end(job, launch, recorder, heard, races)


def prepared_launch(job: Job, **how: Any) -> PreparedLaunch:
    """A job with machine code, ready to run; `how`: as `PreparedLaunch`.

    Raises:
        MemsimError: as `trace_job`.
    """
    from memsim.simt.prepared_launch import MAX_STEPS, PreparedLaunch

    kernel, steps = job.loaded, job.max_steps or MAX_STEPS
    names = kernel.argument_names
    return PreparedLaunch(
        kernel.executable, job.launch, job.values, names, arch=job.arch, max_steps=steps, **how
    )


def run_blocks(
    job: Job,
    launch: PreparedLaunch,
    recorder: Recorder,
    chosen: np.ndarray | None,
    progress: Progress | None = None,
    at_once: int | None = None,
    judges: bool = True,
    order: OrderListener | None = None,
) -> tuple[Heard, tuple[SeenRace, ...]]:
    """Run blocks for a recorder; what became known, and the races that their first accesses show. `judges`:
    find these, and whether order decides a count; otherwise `order` is told of what orders accesses.

    Raises:
        MemsimError: as `trace_job`.
    """
    from memsim.sanitizer.contents import ContentDoubts, not_given
    from memsim.sanitizer.first_races import FirstRaces, Overheard, may_race

    kernel, races = job.loaded, None
    listener: Listener = recorder
    if judges and not launch.everything and may_race(kernel.executable.program):
        races = FirstRaces(kernel.executable, job.launch)
        listener = Overheard(recorder, races)
    heard = launch.run(
        listener,
        chosen,
        progress=progress,
        at_once=at_once,
        allow_out_of_bounds=job.allow_out_of_bounds,
        order=races or order,
        judges_order=judges,
    )
    if races is None:
        return heard, ()
    roots = {} if launch.is_given else not_given(kernel.executable, kernel.argument_names, job.values)
    seen = races.seen(kernel.sources, ContentDoubts(launch.origins.dataflow, roots))
    recorder.remarks |= races.limits
    return heard, seen


def trace_of_launch(
    job: Job, launch: PreparedLaunch, recorder: Recorder, heard: Heard, races: tuple[SeenRace, ...]
) -> Trace:
    """The trace of a launch whose blocks have run.

    Raises:
        MemsimError: as `PreparedLaunch.finish`.
    """
    doubts = launch.finish(heard, recorder)
    found = _recorded_trace(job, launch, recorder, heard, races)
    if doubts and not found.uncertain and not _counts_the_same_elsewhere(job, launch, found):
        return replace(found, uncertain=doubts)
    return found


def _counts_the_same_elsewhere(job: Job, launch: PreparedLaunch, here: Trace) -> bool:
    """Whether all counts stay if the arrays lie at other places, as two tries tell."""
    from memsim.analysis.analysis import analyze_trace

    rows = analyze_trace(here).sites
    for seed in (1, 2):
        moved, recorder = launch.elsewhere(seed), recorder_of(job)
        if moved is None:
            return False
        try:
            heard, _ = run_blocks(job, moved, recorder, blocks_of(job), judges=False)
        except MemsimError:  # such as an access outside of its array
            return False
        there = _recorded_trace(job, moved, recorder, heard, ())
        is_executed_the_same = np.array_equal(np.asarray(there.executed), np.asarray(here.executed))
        if not is_executed_the_same or analyze_trace(there).sites != rows:
            return False
    return True


def _recorded_trace(
    job: Job, launch: PreparedLaunch, recorder: Recorder, heard: Heard, races: tuple[SeenRace, ...]
) -> Trace:
    from memsim.names.demangle import short_name
    from memsim.trace.trace import Trace

    kernel, layouts = job.loaded, launch.memory.layouts
    sites, columns = recorder.columns()
    listing = kernel.listing
    arrays = [
        (short_name(buffer.name), space, buffer.start - base, buffer.end - buffer.start)
        for space, base in (("shared", layouts["shared"].base), ("global", 0), ("local", 0))
        for buffer in layouts[space].buffers
    ]
    return Trace(
        kernel=kernel.title,
        launch=job.launch,
        blocks_replayed=heard.blocks,
        sites=tuple(sites),
        arrays=tuple(arrays),
        sources={site.file: kernel.sources[site.file] for site in sites if site.file in kernel.sources},
        notes=tuple(recorder.notes),
        races=races,
        uncounted=dict(+recorder.uncounted_requests),
        uncertain=(*job.uncertain, *sorted(recorder.uncertain_reasons)),
        writers=recorder.writers.threads,
        origin=kernel.origin,
        listing=listing,
        executed=recorder.executions.of(len(listing)),
        apart=recorder.is_apart,
        layouts={},
        resources=kernel.resources,
        blocks_alike=recorder.executions.blocks_alike,
        **columns,
    )


def run_job(job: Job, progress: Progress | None = None) -> None:
    """Executes all of a job; array arguments are written in place.

    Raises:
        MemsimError: as `run`.
    """
    execute_job(job, Listener(), progress, everything=True)


def execute_job(
    job: Job,
    listener: Listener,
    progress: Progress | None,
    *,
    everything: bool,
    every_branch: bool = False,
    looked_at: Mapping[int, int] | None = None,
    memory: Memory | None = None,
    blocks: np.ndarray | None = None,
    **how: Any,
) -> Memory:
    """Execute blocks (linear numbers, None for all) of a job with machine code for a listener; returns the
    memory. `how`: as `PreparedLaunch.run`, the rest as `PreparedLaunch`.

    Raises:
        MemsimError: as `trace_job`.
    """
    what = {"everything": everything, "every_branch": every_branch, "looked_at": looked_at}
    launch = prepared_launch(job, memory=memory, **what)
    how["allow_out_of_bounds"] = job.allow_out_of_bounds
    launch.finish(launch.run(listener, blocks, progress=progress, **how), listener)
    return launch.memory


def blocks_of(job: Job) -> np.ndarray | None:
    """Linear numbers of the blocks to replay, the first and last of the grid included; None for all."""
    blocks = job.launch.blocks
    if job.blocks is None or job.blocks >= blocks:
        return None
    return np.unique(np.linspace(0, blocks - 1, job.blocks).round().astype(np.int64))


def _kernel_of(kernel: object) -> Kernel:
    """What can be launched: a kernel, or the only one of a module."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, Module):
        if len(kernel.kernels) != 1:
            raise MemsimError("a module is not a kernel: choose a kernel from it", hint=choice_of(kernel))
        return kernel[kernel.kernels[0]]
    shown = repr(kernel) if isinstance(kernel, str) else f"a {type(kernel).__name__}"
    raise MemsimError(f"{shown} is not a kernel", hint='memsim.load("file.cu")["name"] gives one')
