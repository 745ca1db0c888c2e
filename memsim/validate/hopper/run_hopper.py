"""Repeats the launches of recordings of the Hopper microbenchmarks on this machine's GPU.

The kernels are compiled here, and each part runs under ncu with the counters that rules predict for it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from memsim.compile import compile_cubin
from memsim.errors import MemsimError
from memsim.validate.device import this_device
from memsim.validate.hopper.hopper_launches import CODE, ERROR, PLAN, TABLES
from memsim.validate.hopper.hopper_recording import HopperLaunch, HopperRecording
from memsim.validate.hopper.judge_hopper import compared_metrics
from memsim.validate.profiler import REPORT_SUFFIX, Profiler, find_profiler, profile
from memsim.validate.profiles import Profile, read_report

#: The chip with these instructions, by its name in compilers.
CHIP, CAPABILITY = "sm_90a", "9.0"
Progress = Callable[[float], None] | None


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
            hint="memsim probe --live, without --hopper, probes the instructions that the chip has",
        )
    total, done = sum(len(part) for model in models for part in model.parts.values()), 0

    def launched() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(min(1.0, done / total))

    date = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"gpu": device.gpu, "driver": device.driver, "ncu": profiler.version, "date": date}
    made = []
    for model in models:
        compiled = compile_cubin(model.source, arch=CHIP)
        metrics = compared_metrics(model.parts)
        parts = {
            part: tuple(measured_launches(profiler, compiled.code, launches, metrics[part], launched))
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
    launched: Callable[[], None],
) -> list[HopperLaunch]:
    """One run of the profiler; returns the launches with their counters."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / CODE).write_bytes(code)
        np.save(folder / TABLES, np.array([one.table for one in launches], np.uint32))
        plain = [asdict(replace(one, table=None, counters={})) for one in launches]  # type: ignore[arg-type]
        (folder / PLAN).write_text(json.dumps(plain), "utf-8")
        report = folder / f"report{REPORT_SUFFIX}"
        what = ("--cache-control", "none", "--metrics", ",".join(metrics))
        command = [sys.executable, "-m", "memsim.validate.hopper.hopper_launches", str(folder)]
        try:
            profile(profiler, report, what, command, launched)
        except MemsimError:
            if (folder / ERROR).is_file():
                told = json.loads((folder / ERROR).read_text("utf-8"))
                raise MemsimError(told["error"], hint=told["hint"]) from None
            raise
        profiles = read_report(report)
    if len(profiles) != len(launches):
        raise MemsimError(f"ncu measured {len(profiles)} launches of {len(launches)}")
    return [_with_counters(one, found, metrics) for one, found in zip(launches, profiles, strict=True)]


def _with_counters(launch: HopperLaunch, found: Profile, metrics: Sequence[str]) -> HopperLaunch:
    counted = {metric: int(found.counters[metric].value) for metric in metrics if metric in found.counters}
    return replace(launch, counters=counted)
