"""Runs the loops and the catalogue on this machine's GPU.

In: nothing. Out: `RateRecording`; nothing is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from memsim import api
from memsim.analysis import analyze_trace
from memsim.bound import MULTIPROCESSORS, executed_forms, least_wavefronts, tag_lookups
from memsim.job import Job
from memsim.kernels import catalog
from memsim.launch import ArrayArg, Launch
from memsim.model.pipes import pipe_use
from memsim.validate.live import Progress, count, recorded_name
from memsim.validate.rates.loops import BLOCK, BLOCKS_ON_EACH, LOOPS, ROUNDS, TYPES, source
from memsim.validate.rates.recording import RateLaunch, RateRecording

ELEMENTS = 65_536
CYCLES = "sm__cycles_active.max"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts.sum"
METRICS = (*pipe_use({}).counters, WAVEFRONTS, CYCLES)


def run_rates(progress: Progress = None) -> RateRecording:
    """Measures every loop, and every kernel of the catalogue at its own size.

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
    file = folder / "loops.cu"
    file.write_text(source(), "utf-8")
    module = api.load(file)
    launch = Launch((BLOCKS_ON_EACH * MULTIPROCESSORS, 1, 1), (BLOCK, 1, 1))
    for loop in LOOPS:
        memory = ArrayArg((ELEMENTS,), TYPES[loop.type][1], "zeros")
        yield Job(module[f"loop_{loop.name}"], launch, [memory, ROUNDS, 0])


def _catalogue() -> Iterator[Job]:
    for name, spec in catalog().items():
        picked = spec.pick(None)
        if picked.name == name:  # and no other's
            yield picked.job()


def _recorded(job: Job, unit: str, counters: dict[str, int]) -> RateLaunch:
    """The launch beside what memsim counts of it."""
    shape, trace = job.launch, api.trace_job(job)
    analysis = analyze_trace(trace)
    return RateLaunch(
        name=recorded_name(job),
        unit=unit,
        digest=job.loaded.origin.digest,
        grid=shape.grid,
        block=shape.block,
        executed={form: times for form, times in sorted(executed_forms(trace).items()) if times},
        wavefronts=least_wavefronts(analysis),
        tags=tag_lookups(analysis),
        counters=counters,
    )
