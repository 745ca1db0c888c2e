"""Repeats the launches of recordings of the Hopper microbenchmarks on this machine's GPU.

The kernels are compiled here, and each part runs under ncu with the counters that rules predict for it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lab.hopper.hopper_launches import CODE, PLAN, TABLES
from lab.hopper.hopper_recording import HopperLaunch, HopperRecording
from lab.hopper.judge_hopper import compared_metrics
from memsim.compile.cuda_source import compile_cubin
from memsim.errors import MemsimError
from memsim.validate.device import this_device
from memsim.validate.profiler import Profiler, find_profiler
from memsim.validate.recording_files import now
from memsim.validate.under_ncu import LaunchCounter, Progress, run_under_ncu

#: The chip with these instructions, by its name in compilers.
CHIP, CAPABILITY = "sm_90a", "9.0"
PROGRAM = "lab.hopper.hopper_launches"


def run_hopper(models: Sequence[HopperRecording], progress: Progress = None) -> list[HopperRecording]:
    """Measure every launch of `models` on this machine.

    Raises:
        MemsimError: CuPy, driver, GPU, ncu, its reader or permission missing; another chip; no compiler.
    """
    device, profiler = this_device(), find_profiler()
    if device.compute_capability != CAPABILITY:
        raise MemsimError(
            f"{device.gpu} has compute capability {device.compute_capability}, but these instructions need"
            f" {CAPABILITY}",
            hint="python -m lab probe --live probes the instructions that the chip has",
        )
    counter = LaunchCounter(sum(len(part) for model in models for part in model.parts.values()), progress)
    about = {"gpu": device.gpu, "driver": device.driver, "ncu": profiler.version, "date": now()}
    made = []
    for model in models:
        compiled = compile_cubin(model.source, arch=CHIP)
        metrics = compared_metrics(model.parts)
        parts = {
            part: tuple(measured_launches(profiler, compiled.code, launches, metrics[part], counter))
            for part, launches in model.parts.items()
        }
        told = {**about, "compiler": compiled.compiler}
        made.append(replace(model, about=told, parts=parts, metrics=metrics))
    return made


def measured_launches(
    profiler: Profiler,
    code: bytes,
    launches: Sequence[HopperLaunch],
    metrics: Sequence[str],
    counter: LaunchCounter,
) -> list[HopperLaunch]:
    """One run of the profiler; returns the launches with their counters."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / CODE).write_bytes(code)
        np.save(folder / TABLES, np.array([one.table for one in launches], np.uint32))
        (folder / PLAN).write_text(json.dumps([one.described() for one in launches]), "utf-8")
        what = ("--cache-control", "none", "--metrics", ",".join(metrics))
        kernels = [one.kernel for one in launches]
        _, profiles = run_under_ncu(profiler, PROGRAM, folder, kernels, what, counter)
    counts = [
        {metric: int(found.counters[metric].value) for metric in metrics if metric in found.counters}
        for found in profiles
    ]
    return [replace(one, counters=counted) for one, counted in zip(launches, counts, strict=True)]
