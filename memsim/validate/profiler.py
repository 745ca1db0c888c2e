"""Nsight Compute's command line: finds it, and runs a program under it. Reports are read by
`memsim.validate.profiles`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from memsim.boundary import confinement
from memsim.errors import MemsimError

KNOWN_FOLDERS = (
    "/usr/local/cuda/bin",
    "/opt/cuda/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/cuda*/nsight-compute-*",
    "C:/Program Files/NVIDIA Corporation/Nsight Compute*",
)
REPORT_SUFFIX = ".ncu-rep"
NO_PERMISSION = "ERR_NVGPUCTRPERM"
INSTALL = (
    "it comes with the CUDA toolkit, or from https://developer.nvidia.com/nsight-compute; put it on the PATH"
)


@dataclass(frozen=True, slots=True)
class Profiler:
    """Nsight Compute's command line: its path and version."""

    path: Path
    version: str


def find_profiler() -> Profiler:
    """`ncu` from the PATH, or from where NVIDIA's installers put it.

    Raises:
        MemsimError: it is not found, or does not start.
    """
    found = shutil.which("ncu") or next(map(str, _installed("ncu", "ncu.exe", "ncu.bat")), None)
    if found is None:
        raise MemsimError("ncu, Nsight Compute's command line, was not found", hint=INSTALL)
    try:
        done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise MemsimError(f"{found} does not start: {error.strerror}", hint=INSTALL) from None
    version = re.search(r"^Version (\S+)", done.stdout, re.MULTILINE)
    if done.returncode or version is None:
        raise MemsimError(f"{found} does not report its version: {_last_line(done.stdout + done.stderr)}")
    return Profiler(Path(found), version[1])


def folders_with(*names: str) -> Iterable[Path]:
    """Folders of Nsight Compute installations with one of the files `names` in `extras/python`."""
    for path in _installed(*(f"extras/python/{name}" for name in names)):
        yield path.parent


def _installed(*names: str) -> Iterable[Path]:
    """Files below the known folders, newest release first."""
    for pattern in KNOWN_FOLDERS:
        root = Path(Path(pattern).anchor)
        for folder in sorted(root.glob(str(Path(pattern).relative_to(root))), reverse=True):
            yield from (folder / name for name in names if (folder / name).is_file())


def profile(
    profiler: Profiler,
    report: Path,
    measure: Sequence[str],
    command: Sequence[str],
    launched: Callable[[], None] = lambda: None,
) -> str:
    """Run `command` under ncu, which writes `report`; returns the output.

    Only launches between `cudaProfilerStart` and `cudaProfilerStop` are measured. Clocks are not locked,
    because counts do not depend on them. `measure`: ncu options that select what is collected. `launched` is
    called after each measured launch.

    Raises:
        MemsimError: no permission to read counters, or any other error of ncu.
    """
    if confinement() is not None:
        raise MemsimError("no kernel is run on a GPU with --untrusted")
    options = ["--clock-control", "none", "--profile-from-start", "off", "--force-overwrite"]
    full = [str(profiler.path), *options, *measure, "--export", str(report), *command]
    lines = []
    with subprocess.Popen(
        full,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=child_environment(),
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            if line.startswith("==PROF== Profiling") and "100%" in line:
                launched()
    printed = "".join(lines)
    if NO_PERMISSION in printed:
        raise MemsimError(
            f"this user may not read the GPU's performance counters ({NO_PERMISSION})",
            hint="run as root (in a container: --cap-add SYS_ADMIN), or let all users do so: "
            "https://developer.nvidia.com/ERR_NVGPUCTRPERM",
        )
    if process.returncode or not report.is_file():
        raise MemsimError(f"ncu failed (exit code {process.returncode}): {_last_line(printed)}")
    return printed


def child_environment() -> dict[str, str]:
    """This process's environment, from which this package can be imported."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path}


def _last_line(printed: str) -> str:
    """The last error of ncu, or the last line."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    return (errors or lines or ["it printed nothing"])[-1]
