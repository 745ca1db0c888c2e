"""Processor time and peak memory of launches that differ in one quantity each.

A point is the processor time of a whole process and its children (the disassembler), the least of a few runs,
its peak memory, and how many requests were counted.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import memsim
from memsim.analysis import Analysis
from memsim.compile.cuda_source import compile_cubin

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = HERE / "kernels.cu"
RECORD = HERE / "measured.json"
THREADS = 256
WARPS = 1 << 17  # of every launch with distinct patterns
RUNS = 3
SHORT_S = 5.0  # a longer run is not repeated


def cube(kernel: str) -> Callable[[int, Path], Analysis]:
    """A kernel of the catalogue at M = N = K."""
    return lambda extent, _: memsim.catalog()[kernel].analyze((extent, extent, extent))


def copied(blocks: int, folder: Path) -> Analysis:
    """y[i] = x[i], blocks of 256 threads."""
    arrays = [memsim.ArrayArg((blocks * THREADS,)) for _ in range(2)]
    return memsim.analyze(_compiled("copy", folder), grid=blocks, block=THREADS, args=arrays)


def gathered(blocks: int, folder: Path) -> Analysis:
    """y[i] = x[idx[i]], every index random: each block brings requests of its own."""
    return _gather(blocks * THREADS // 32, blocks * THREADS // 32, folder)


def patterned(distinct: int, folder: Path) -> Analysis:
    """The same requests in number, of which so many differ."""
    return _gather(distinct, WARPS, folder)


def _gather(distinct: int, warps: int, folder: Path) -> Analysis:
    random = np.random.default_rng(0)
    indices = np.resize(random.integers(0, 1 << 22, distinct * 32, dtype=np.int32), warps * 32)
    arrays = [indices, memsim.ArrayArg((1 << 22,)), memsim.ArrayArg((warps * 32,))]
    kernel = _compiled("gather", folder)
    return memsim.analyze(kernel, grid=warps * 32 // THREADS, block=THREADS, args=arrays)


def _compiled(name: str, folder: Path) -> Any:
    return memsim.load(folder / "kernels.cubin")[name]


def stepped(steps: int, folder: Path) -> Analysis:
    """A kernel of so many steps, unrolled; one block."""
    return memsim.analyze(
        memsim.load(folder / f"steps_{steps}.cubin")["steps"],
        grid=1,
        block=THREADS,
        args=[memsim.ArrayArg((4096,)), memsim.ArrayArg((THREADS,))],
    )


EXTENTS = (256, 512, 1024, 2048, 4096, 8192, 16384)
STEPS = (16, 64, 256, 1024, 4096)
SERIES: dict[str, tuple[Callable[[int, Path], Analysis], tuple[int, ...]]] = {
    "kernel_v4": (cube("kernel_v4"), EXTENTS),
    "kernel_v1": (cube("kernel_v1"), EXTENTS),
    "copy": (copied, tuple(4**power for power in range(0, 11, 2))),
    "gather": (gathered, tuple(4**power for power in range(0, 9, 2))),
    "patterns": (patterned, (1, 8, 64, 512, 4096, 32768, WARPS)),
    "sass": (stepped, STEPS),
}


def one(series: str, quantity: int, folder: Path) -> None:
    """Analyzes one launch and prints what was counted."""
    analysis = SERIES[series][0](quantity, folder)
    requests = sum(site.requests or 0 for site in analysis.sites)
    used, of_children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = used.ru_utime + used.ru_stime + of_children.ru_utime + of_children.ru_stime
    # ru_maxrss would count the process that started this one, too.
    status = Path("/proc/self/status").read_text("utf-8")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps({"requests": requests, "cpu_s": round(seconds, 3), "peak_mib": peak // 1024}))


def prepare(folder: Path) -> dict[int, int]:
    """Compiles what is measured, which takes no part in it. Back: how many instructions each length has."""
    (folder / "kernels.cubin").write_bytes(compile_cubin(SOURCE).cubin)
    lengths = {}
    for steps in STEPS:
        cubin = folder / f"steps_{steps}.cubin"
        cubin.write_bytes(compile_cubin(SOURCE, [f"-DSTEPS={steps}"]).cubin)
        lengths[steps] = len(memsim.load(cubin)["steps"].listing)
    return lengths


def measure() -> None:
    """Measures every point and keeps the figures."""
    points: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": f"{name}/bytecode"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed, where nothing is compiled anew
        lengths = prepare(Path(name))
        for series, (_, quantities) in SERIES.items():
            points[series] = []
            for quantity in quantities:
                command = [sys.executable, "-m", "docs.growth", series, str(quantity), name]
                best: dict[str, Any] = {}
                for _ in range(RUNS):
                    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
                    found = json.loads(done.stdout)
                    best = min(best or found, found, key=lambda each: each["cpu_s"])
                    if found["cpu_s"] > SHORT_S:
                        break
                at = lengths[quantity] if series == "sass" else quantity
                points[series].append({"at": at, **best})
                print(series, points[series][-1], flush=True)
    record = {
        "processor": processor(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "series": points,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def processor() -> str:
    """The name of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()
