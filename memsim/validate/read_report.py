"""Reads reports of ncu.

A report is read with `ncu_report`, the module that comes with Nsight Compute, in a separate process, because
native code may crash a process that has loaded other libraries. ncu's CSV pages are not used: they list an
instruction under several source lines if a function was inlined.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate.profiler import child_environment, folders_with
from memsim.validate.profiles import CODE_METRICS, CodeProfile, Counted

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
COUNTERS = (
    "l1tex__",
    "idc__requests",
    "smsp__inst_executed",
    "inst_executed",
    "thread_inst_executed",
    "memory_l",
    "gpu__time",
    "sm__inst_executed_pipe",
    "sm__cycles_active.max",
)


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
        return [CodeProfile.from_dict(record) for record in json.loads(result.read_text("utf-8"))]


def main(path: str, result: str, *also: str) -> None:
    """In a process of its own: write the launches of a report to the file `result`."""
    report = load_reader().load_report(path)
    scopes = [report.range_by_idx(number) for number in range(report.num_ranges())]
    actions = [scope.action_by_idx(number) for scope in scopes for number in range(scope.num_actions())]
    records = [code_profile_of(action, also).to_dict() for action in actions]
    Path(result).write_text(json.dumps(records), "utf-8")


def load_reader() -> Any:
    """NVIDIA's module `ncu_report`, from the path or from an installation of Nsight Compute.

    Raises:
        ImportError: it is not found, or it does not load in this Python.
    """
    sys.path.extend(str(folder) for folder in folders_with(f"{MODULE}.py"))
    return importlib.import_module(MODULE)


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


if __name__ == "__main__":
    main(*sys.argv[1:])
