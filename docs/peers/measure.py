"""What memsim and cuxray say of the catalogue's kernels, beside what an H200 counted, and how long they take.

For each kernel that has a recording: the tools' verdicts, the accesses that they did not analyze, and
processor time of the whole process with its children. Then the time of a gate on seven kernels of which
nothing has changed. cuxray reads cubins of CUDA 13's tools, so its are assembled from the PTX that ships.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

from docs.growth.measure import processor
from memsim.compile.toolkit import find_tool
from memsim.kernels import Spec, catalog
from studies.kernel_ptx import compile_cuda, ptx_path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORD = HERE / "measured.json"
RECORDINGS = ROOT / "traces" / "nvidia-h200" / "code"
CUXRAY, PTXAS = "cuxray==0.6.0", "nvidia-cuda-nvcc==13.5.37"
ROUNDS = 15
#: Of the profiler's source page: both are exact, and have no arbitration in them.
WAVEFRONTS, SECTORS = "memory_l1_wavefronts_shared", "memory_l2_theoretical_sectors_global"


class Peer:
    """cuxray in an environment of its own, and ptxas of CUDA 13."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", CUXRAY, PTXAS], check=True)
        self.program = folder / "bin" / "cuxray"
        self.ptxas = next(folder.rglob("ptxas"))
        disassembler = find_tool("nvdisasm")
        assert disassembler is not None
        self.environment = clean() | {
            "PATH": f"{disassembler.parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "HOME": str(folder),
            "CUXRAY_NO_FETCH": "1",
        }

    def assembled(self, ptx: Path, cubin: Path) -> Path:
        """The cubin of a PTX file."""
        subprocess.run([self.ptxas, "-arch=sm_90", "-lineinfo", ptx, "-o", cubin], check=True)
        return cubin


def clean() -> dict[str, str]:
    """This environment, in which Python keeps bytecode as it does wherever a package is installed."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def timed(command: list[Any], folder: Path, environment: dict[str, str]) -> tuple[float, str]:
    """(processor time of a process and its children, what it prints)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout.decode()


def counted(name: str) -> dict[str, Any] | None:
    """What the chip counted of a kernel of the catalogue, and at which size; None if it was not recorded."""
    path = RECORDINGS / f"{name}.json"
    if not path.is_file():
        return None
    recording = json.loads(path.read_text("utf-8"))
    counters = {key: value for key, (value, _) in recording["profiles"][0]["counters"].items()}
    found = {key: counters[key] for key in (WAVEFRONTS, SECTORS)}
    ideal = {f"{key}_ideal": counters[f"{key}_ideal"] for key in (WAVEFRONTS, SECTORS)}
    return {"size": list(recording["size"].values()), **found, **ideal}


def by_memsim(spec: Spec, size: list[int], folder: Path) -> dict[str, Any]:
    """What memsim says of a launch."""
    command = [sys.executable, "-m", "memsim", "analyze", spec.name, "--size", ",".join(map(str, size))]
    seconds, printed = timed([*command, "--json", "--no-cache"], folder, clean() | {"PYTHONPATH": str(ROOT)})
    sites = json.loads(printed)["sites"]

    def total(count: str, space: str) -> int:
        return sum(site[count] or 0 for site in sites if site["space"] == space)

    return {
        "seconds": round(seconds, 3),
        WAVEFRONTS: total("wavefronts", "shared"),
        SECTORS: total("sectors", "global"),
        "shared": total("conflicts", "shared") > 0,
        "global": total("sectors", "global") > total("ideal_sectors", "global"),
        "requests": total("requests", "shared") + total("requests", "global"),
        "sites": len(sites),
        "not_analyzed": sum(site["unresolved"] is not None for site in sites),
    }


def by_cuxray(peer: Peer, spec: Spec, size: list[int], folder: Path) -> dict[str, Any]:
    """What cuxray says of a launch."""
    launch = spec.job(tuple(size)).launch
    cubin = peer.assembled(ptx_path(spec), folder / f"{spec.name}.cubin")
    shape = ["--threads", ",".join(map(str, launch.block)), "--grid", ",".join(map(str, launch.grid))]
    dynamic = ["--smem-dynamic", str(launch.shared_bytes)]
    command = [peer.program, "report", cubin, *shape, *dynamic, "--json", "--no-cache"]
    seconds, printed = timed(command, folder, peer.environment)
    kernels = [kernel for unit in json.loads(printed)["units"] for kernel in unit["kernels"]]
    access = next(
        kernel["access"] for kernel in kernels if spec.entry in (kernel["name"], kernel["demangled"])
    )
    return {
        "seconds": round(seconds, 3),
        "shared": access["conflicted_shared_accesses"] > 0,
        "global": access["uncoalesced_global_accesses"] > 0,
        "sites": access["analyzed_count"] + access["unanalyzed_count"],
        "not_analyzed": access["unanalyzed_count"],
    }


def gates(peer: Peer, folder: Path) -> dict[str, float]:
    """Median processor time of each tool's gate where nothing has changed, and of Python with numpy."""
    ptx = folder / "gate.ptx"
    ptx.write_text(compile_cuda(HERE / "gate.cu"), "utf-8")
    peer.assembled(ptx, folder / "gate.cubin")
    ptx.unlink()
    shutil.copy(HERE / "gate.toml", folder / "memsim.toml")
    ours = clean() | {"PYTHONPATH": str(ROOT), "MEMSIM_CACHE_DIR": str(folder / "kept")}
    commands: dict[str, tuple[list[Any], dict[str, str]]] = {
        "numpy": ([sys.executable, "-c", "import numpy"], ours),
        "memsim": ([sys.executable, "-m", "memsim", "check"], ours),
        "cuxray": ([peer.program, "gate", "gate.cubin", "regs<=255", "--threads", "32,8"], peer.environment),
    }
    first = {name: timed(command, folder, place)[0] for name, (command, place) in commands.items()}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, (command, place) in commands.items():
            times[name].append(timed(command, folder, place)[0])
    medians = {name: round(statistics.median(taken), 3) for name, taken in times.items()}
    return medians | {f"{name}_first": round(first[name], 3) for name in ("memsim", "cuxray")}


def measure() -> None:
    """Measure everything and keep it."""
    kernels: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        peer = Peer(folder / "peer")
        for name, spec in catalog().items():
            chip = counted(name)
            if chip is None or not isinstance(spec, Spec):
                continue
            ours, theirs = by_memsim(spec, chip["size"], folder), by_cuxray(peer, spec, chip["size"], folder)
            kernels[name] = {"chip": chip, "memsim": ours, "cuxray": theirs}
        project = folder / "project"
        project.mkdir()
        gate = gates(peer, project)
    record = {
        "processor": processor(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "peers": [CUXRAY, PTXAS],
        "kernels": kernels,
        "gate": gate,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
