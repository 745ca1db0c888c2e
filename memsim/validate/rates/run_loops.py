"""Runs the loops and the catalogue on this machine's GPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from memsim.analysis import analyze_trace
from memsim.api import loading, running
from memsim.arch import SM_90
from memsim.bound import executed_forms, least_wavefronts, tag_lookups
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import ArrayArg, Launch
from memsim.model.pipes import pipe_use
from memsim.validate.live import Progress, count, recorded_name
from memsim.validate.rates.loops import LOOPS, ROUNDS, TYPES, source
from memsim.validate.rates.rates_recording import RateLaunch, RateRecording

BYTES = 1 << 18
CYCLES = "sm__cycles_active.max"
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
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
METRICS = (
    *pipe_use({}).counters,
    WAVEFRONTS,
    CYCLES,
    ELAPSED,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "dram__sectors_read.sum",
    "dram__sectors_write.sum",
    *OCCUPANCY,
)


def run_rates(progress: Progress = None) -> RateRecording:
    """Measure every loop, and every kernel of the catalogue at its default size.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing; a kernel that fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        launches = [*_loops(Path(folder)), *_catalogue()]
    units = [loop.unit for loop in LOOPS] + [""] * (len(launches) - len(LOOPS))
    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    device, ncu, profiles = count(launches, METRICS, progress)
    return RateRecording(
        device,
        ncu,
        date,
        tuple(
            _recorded(launch, unit, {name: int(counted.value) for name, counted in profile.counters.items()})
            for launch, unit, profile in zip(launches, units, profiles, strict=True)
        ),
    )


def _loops(folder: Path) -> Iterator[Job]:
    modules = {}
    for arch in dict.fromkeys(loop.arch for loop in LOOPS):
        file = folder / f"loops_{arch}.cu"
        file.write_text(source(arch), "utf-8")
        modules[arch] = loading.load(file, arch=arch)
    for loop in LOOPS:
        launch = Launch((loop.resident * SM_90.multiprocessors, 1, 1), (loop.block, 1, 1))
        element = TYPES[loop.type][1]
        memory = ArrayArg((BYTES // np.dtype(element).itemsize,), element, "zeros")
        yield Job(modules[loop.arch][f"loop_{loop.name}"], launch, [memory, ROUNDS, 0])


def _catalogue() -> Iterator[Job]:
    for name, spec in catalog().items():
        picked = spec.pick(None)
        if picked.name == name:  # not a dispatcher
            yield picked.job()


def _recorded(job: Job, unit: str, counters: dict[str, int]) -> RateLaunch:
    """The launch, with memsim's counts."""
    shape, trace = job.launch, running.trace_job(job)
    analysis = analyze_trace(trace)
    return RateLaunch(
        name=recorded_name(job),
        unit=unit,
        digest=job.loaded.origin.digest,
        grid=shape.grid,
        block=shape.block,
        executed={form: times for form, times in sorted(executed_forms(trace).items()) if times},
        wavefronts=least_wavefronts(trace, analysis.sites),
        tags=tag_lookups(analysis.sites),
        counters=counters,
    )
