"""Runs streams, loops and the catalogue on this machine's GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.rates.judge_rates import CLOCK, CYCLES, STREAM, WAVEFRONTS, RateLaunch, RateRecording
from lab.rates.loops import LOOPS, ROUNDS, TYPES, source
from lab.rates.streams import ARCH, BLOCK, STREAMS, kernel_name, streams_source, words
from memsim.analysis import analyze_trace
from memsim.api import loading, running
from memsim.arch import SM_90
from memsim.argument_types import ArrayArg
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import Launch
from memsim.least_work import (
    L2Sectors,
    dram_bytes,
    executed_forms,
    least_l2_sectors,
    least_wavefronts,
    tag_lookups,
)
from memsim.model.pipes import pipe_use
from memsim.validate.device import Device, now, this_device
from memsim.validate.live import run_jobs
from memsim.validate.profiler import LaunchCounter, Progress, find_profiler
from memsim.validate.profiles import CodeProfile

BYTES = 1 << 18
ELAPSED = "sm__cycles_elapsed.max"
OCCUPANCY = (
    "launch__registers_per_thread",
    "launch__shared_mem_per_block_static",
    "launch__shared_mem_per_block_driver",
    "launch__barrier_count",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_barriers",
)
_ALWAYS = (WAVEFRONTS, CYCLES, ELAPSED, CLOCK, "gpu__time_duration.sum", *OCCUPANCY)
_TRAFFIC = (
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
)
#: ncu collects these in one pass on an H200, and with those of the pipes in three.
OF_STREAMS = (
    *_ALWAYS,
    *_TRAFFIC,
    "lts__t_sectors.sum",
    "lts__cycles_elapsed.max",
    "lts__cycles_elapsed.avg.per_second",
    "dram__cycles_elapsed.max",
    "dram__cycles_elapsed.avg.per_second",
)
OF_LOOPS = (*pipe_use({}).counters, *_ALWAYS)
OF_KERNELS = (*OF_LOOPS, *_TRAFFIC)


class Measured(NamedTuple):
    """A launch, and the unit that it keeps busy or ""."""

    name: str
    unit: str
    job: Job


class LaunchBatch(NamedTuple):
    """Launches that are measured in one run of the profiler, and what is counted."""

    metrics: tuple[str, ...]
    launches: list[Measured]


class NotMeasured(MemsimError):
    """The profiler or the program ended with the launch of that number, counted from 0."""

    def __init__(self, error: MemsimError, number: int) -> None:
        super().__init__(error.message, hint=error.hint)
        self.number = number


def count(
    jobs: Sequence[Job], metrics: Sequence[str], progress: Progress = None
) -> tuple[Device, str, list[CodeProfile]]:
    """Run jobs and collect `metrics` of each; also returns the GPU and the version of ncu.

    Raises:
        NotMeasured: after some of the launches, or before the first.
        MemsimError: otherwise as `measure`.
    """
    device, profiler = this_device(), find_profiler()
    counter = LaunchCounter(len(jobs), progress)
    try:
        _, found = run_jobs(profiler, jobs, ("--metrics", ",".join(metrics)), counter, metrics)
    except MemsimError as error:
        if counter.done < len(jobs):
            raise NotMeasured(error, counter.done) from error
        raise
    return device, profiler.version, found


def run_rates(progress: Progress = None) -> Iterator[RateRecording]:
    """Measure streams, catalogue and loops; the recording so far after each batch of them.

    A launch that ends the profiler is left out and named in `failed`; if nothing at all can be measured, it
    is an error.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing.
    """
    with tempfile.TemporaryDirectory() as folder:
        batches = _batches(Path(folder))
    date = now()
    total, before = sum(len(batch.launches) for batch in batches), 0
    launches: list[RateLaunch] = []
    failed: dict[str, str] = {}
    for batch in batches:
        left = list(batch.launches)
        while left:
            try:
                device, ncu, profiles = count(
                    [each.job for each in left], batch.metrics, _part(progress, before, len(left), total)
                )
            except NotMeasured as error:
                if not launches and not error.number:
                    raise
                failed[left.pop(error.number).name] = error.message
                continue
            launches += map(_recorded, left, profiles)
            break
        before += len(batch.launches)
        yield RateRecording(device, ncu, date, tuple(launches), failed)


def _part(progress: Progress, before: int, launches: int, total: int) -> Progress:
    """Progress of some launches as progress of all."""
    if progress is None:
        return None
    return lambda share: progress((before + share * launches) / total)


def _batches(folder: Path) -> list[LaunchBatch]:
    """Loops of a kind in one run each, so that a kind that the profiler does not survive harms no other."""
    loops = list(_loops(folder))
    kinds = [("group",), ("uniform",), ("", "shared", "global")]
    return [
        LaunchBatch(OF_STREAMS, list(_streams(folder))),
        LaunchBatch(OF_KERNELS, list(_catalogue())),
        *(
            LaunchBatch(
                OF_LOOPS, [each for each, loop in zip(loops, LOOPS, strict=True) if loop.space in spaces]
            )
            for spaces in kinds
        ),
    ]


def _loops(folder: Path) -> Iterator[Measured]:
    modules = {}
    for arch in dict.fromkeys(loop.arch for loop in LOOPS):
        file = folder / f"loops_{arch}.cu"
        file.write_text(source(arch), "utf-8")
        modules[arch] = loading.load(file, arch=arch)
    for loop in LOOPS:
        launch = Launch((loop.resident * SM_90.multiprocessors, 1, 1), (loop.block, 1, 1))
        element = TYPES[loop.type][1]
        memory = ArrayArg((BYTES // np.dtype(element).itemsize,), element, "zeros")
        name = f"loop_{loop.name}"
        yield Measured(name, loop.unit, Job(modules[loop.arch][name], launch, [memory, ROUNDS, 0]))


def _streams(folder: Path) -> Iterator[Measured]:
    file = folder / "streams.cu"
    file.write_text(streams_source(), "utf-8")
    module = loading.load(file, arch=ARCH)
    for stream in STREAMS:
        launch = Launch((stream.blocks, 1, 1), (BLOCK, 1, 1))
        arrays = [ArrayArg((count,), "uint32", "zeros") for count in words(stream)]
        arguments = [*arrays, stream.accesses, stream.rounds]
        job = Job(module[kernel_name(stream)], launch, arguments)
        yield Measured(f"{STREAM}{stream.name}", stream.unit, job)


def _catalogue() -> Iterator[Measured]:
    for name, spec in catalog().items():
        yield Measured(name, "", spec.job())


def _recorded(measured: Measured, profile: CodeProfile) -> RateLaunch:
    """The launch, with memsim's counts. A stream asks the L2 cache for every sector of every access."""
    shape, trace = measured.job.launch, running.trace_job(measured.job)
    analysis = analyze_trace(trace)
    l2 = least_l2_sectors(trace.footprint, analysis.sites)
    if measured.name.startswith(STREAM):
        loads = [site.op == "load" for site in analysis.sites]
        sectors = [site.sectors or 0 for site in analysis.sites]
        l2 = L2Sectors(
            sum(count for count, is_load in zip(sectors, loads, strict=True) if is_load),
            sum(count for count, is_load in zip(sectors, loads, strict=True) if not is_load),
        )
    return RateLaunch(
        name=measured.name,
        unit=measured.unit,
        digest=measured.job.loaded.origin.digest,
        grid=shape.grid,
        block=shape.block,
        executed={form: times for form, times in sorted(executed_forms(trace).items()) if times},
        wavefronts=least_wavefronts(trace, analysis.sites),
        tags=tag_lookups(analysis.sites),
        counters={name: int(counted.value) for name, counted in profile.counters.items()},
        l2_read=l2.read,
        l2_written=l2.written,
        dram_bytes=dram_bytes(trace.footprint, SM_90),
    )
