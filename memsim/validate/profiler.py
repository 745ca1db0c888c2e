"""Nsight Compute: finds its command line, runs memsim's own programs under it, and reads what it measured.

Such a program is a module, `python -m PROGRAM FOLDER`. It finds its input in the folder, and leaves an answer
there: what it computed, or the error that ended it.

A report is read with `ncu_report`, the module that comes with Nsight Compute, in a separate process, because
native code may crash a process that has loaded other libraries. ncu's CSV pages are not used: they list an
instruction under several source lines if a function was inlined.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.validate.profiles import CODE_METRICS, CodeProfile, Counted

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

MODULE = "ncu_report"
PASSES = "profiler__replayer_passes"
AXES = ("x", "y", "z")
LINES = "--lines"
# The counters in a report. The rest describes the chip, or is sampled.
UNITS = {
    "gpu__time": "ns",
    "cycles_": "cycle",
    "inst_executed": "inst",
    "t_sectors": "sector",
    "memory_l": "sectors",
}
COUNTERS = tuple(
    (
        "l1tex__ idc__requests smsp__inst_executed inst_executed thread_inst_executed memory_l gpu__time "
        "sm__inst_executed_pipe sm__cycles_active.max"
    ).split()
)
ANSWER = "answer.json"
Progress = Callable[[float], None] | None


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


def read_code_report(path: Path, *also: str, lines: bool = False) -> list[CodeProfile]:
    """The launches in a report file, in order.

    also: counters besides those that memsim predicts. lines: read the source line of each instruction, too.

    Raises:
        MemsimError: no such file, `ncu_report` is not found or does not load, or it cannot read the file.
    """
    if not path.is_file():
        raise MemsimError("there is no such report of ncu", file=str(path))
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "profiles.json"
        command = [sys.executable, "-m", __name__, str(path), str(result), *also, *[LINES] * lines]
        environment = child_environment()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or not result.is_file():
            said = done.stderr.strip().splitlines()
            raise MemsimError(
                f"{MODULE} of Nsight Compute cannot read ncu's report (exit code {done.returncode})"
                + (f": {said[-1]}" if said else ""),
                hint="pip install ncu-report, or put extras/python of Nsight Compute on PYTHONPATH",
            )
        return msgspec.json.decode(result.read_bytes(), type=list[CodeProfile])


def main(path: str, result: str, *also: str) -> None:
    """In a process of its own: write the launches of a report to the file `result`.

    NVIDIA's module `ncu_report`, which reads it, is on the path, or comes with Nsight Compute.
    """
    sys.path.extend(str(folder) for folder in folders_with(f"{MODULE}.py"))
    report = importlib.import_module(MODULE).load_report(path)
    scopes = [report.range_by_idx(number) for number in range(report.num_ranges())]
    actions = [scope.action_by_idx(number) for scope in scopes for number in range(scope.num_actions())]
    Path(result).write_bytes(msgspec.json.encode([code_profile_of(action, also) for action in actions]))


def code_profile_of(action: Any, also: Sequence[str] = ()) -> CodeProfile:
    """One launch; `action` is ncu_report's `IAction`. `also`: as in `read_code_report`, with `LINES`."""
    names = set(action.metric_names())
    collected = {
        name: dict(_instances(action.metric_by_name(name))) for name in CODE_METRICS if name in names
    }
    executed = sorted(collected.get(CODE_METRICS[0], ()))
    first = executed[0] if executed else 0
    return CodeProfile(
        kernel=str(action.name(action.NameBase_MANGLED)),
        grid=_shape(action, names, "grid_dim"),
        block=_shape(action, names, "block_dim"),
        passes=int(action.metric_by_name(PASSES).as_double()) if PASSES in names else 0,
        counters=_counters(action, also),
        addresses=tuple(pc - first for pc in executed),
        sass=tuple(" ".join(action.sass_by_pc(pc).split()) for pc in executed),
        figures={name: tuple(found.get(pc) for pc in executed) for name, found in collected.items()}
        if executed
        else {},
        lines=tuple(_line(action, pc) for pc in executed) if LINES in also else (),
    )


def _line(action: Any, pc: int) -> int:
    info = action.source_info(pc)
    return int(info.line()) if info is not None else 0


def _shape(action: Any, names: set[str], what: str) -> tuple[int, ...] | None:
    metrics = [f"launch__{what}_{axis}" for axis in AXES]
    if not names.issuperset(metrics):
        return None
    return tuple(int(action.metric_by_name(name).as_double()) for name in metrics)


def _counters(action: Any, also: Sequence[str] = ()) -> dict[str, Counted]:
    """The counters of a whole launch, by ncu's names: those that memsim predicts, and `also`."""
    counters = {}
    for name in sorted(action.metric_names()):
        is_sum = "." not in name or name.endswith((".sum", "_active.max"))
        if name in also or (name.startswith(COUNTERS) and is_sum):
            counters[name] = Counted(_whole(action.metric_by_name(name).as_double()), unit_of(name))
    return counters


def unit_of(name: str) -> str:
    """The unit of a counter as in ncu; "" for plain counts.

    Derived from the name: `ncu_report` of Nsight Compute 2025.3 may crash when asked for a unit.
    """
    return next((unit for part, unit in UNITS.items() if part in name), "")


def _instances(metric: Any) -> Iterator[tuple[int, int]]:
    """(address of the instruction, value)."""
    if not metric.has_correlation_ids():
        return
    addresses = metric.correlation_ids()
    for i in range(metric.num_instances()):
        yield int(addresses.as_uint64(i)), int(metric.as_double(i))


def _whole(value: float) -> int | float:
    """Counts are integers, which ncu stores as floats."""
    return int(value) if float(value).is_integer() else value


class LaunchCounter:
    """Converts measured launches to progress."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.total, self.progress, self.done = total, progress, 0

    def step(self) -> None:
        """One more launch has been measured."""
        self.done += 1
        if self.progress is not None:
            self.progress(min(1.0, self.done / self.total))


def run_under_ncu(
    profiler: Profiler,
    program: str,
    folder: Path,
    kernels: Sequence[str],
    measure: Sequence[str],
    counter: LaunchCounter,
    also: Sequence[str] = (),
    lines: bool = False,
) -> tuple[Any, list[CodeProfile]]:
    """The answer of a program, and the profiles of its launches.

    kernels: the name of each launch in the code. measure, also, lines: what is collected and read, as in
    `profile` and `read_code_report`.

    Raises:
        MemsimError: the program's own error; one of ncu; other launches than `kernels` were measured.
    """
    report = folder / f"report{REPORT_SUFFIX}"
    try:
        printed = profile(
            profiler, report, measure, [sys.executable, "-m", program, str(folder)], counter.step
        )
    except MemsimError:
        _answer_in(folder)  # the program's own error is more specific than ncu's
        raise
    answer = _answer_in(folder)
    profiles = read_code_report(report, *also, lines=lines)
    if [found.kernel for found in profiles] != [*kernels]:
        raise MemsimError(
            f"ncu measured {_some(found.kernel for found in profiles)} where {_some(kernels)} ran: "
            f"{printed.strip()[-300:]}"
        )
    return answer, profiles


def answer(folder: Path, work: Callable[[], object]) -> int:
    """Leaves in `folder` what `work` returns, or its error; returns the program's exit code."""
    try:
        told, exit_code = {"answer": work()}, 0
    except MemsimError as error:
        told, exit_code = {"error": error.message, "hint": error.hint}, error.exit_code
    (folder / ANSWER).write_text(json.dumps(told), "utf-8")
    return exit_code


def _answer_in(folder: Path) -> Any:
    """What the program answered; None if it came to no answer."""
    path = folder / ANSWER
    told = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    if "error" in told:
        raise MemsimError(told["error"], hint=told["hint"])
    return told.get("answer")


def _some(kernels: Iterable[str]) -> str:
    """`probe, scale 3 times`."""
    counts = Counter(kernels).items()
    return ", ".join(name if count == 1 else f"{name} {count} times" for name, count in counts) or "nothing"


if __name__ == "__main__":
    main(*sys.argv[1:])
