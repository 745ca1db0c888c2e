"""What ncu's reports hold: metrics of instructions, counters of launches, and the module that reads them.

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
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memsim.errors import MemsimError
from memsim.validate.profiler import child_environment, folders_with

MODULE = "ncu_report"

# Columns of a row: ncu's names of the metrics of each instruction in the section SourceCounters.
SOURCE_METRICS = (
    "inst_executed",
    "thread_inst_executed_true",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
)
# Of the instructions of a recording; no probed instruction accesses local memory.
CODE_METRICS = (*SOURCE_METRICS, "memory_l2_theoretical_sectors_local")
PASSES = "profiler__replayer_passes"
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


@dataclass(frozen=True, slots=True)
class Counted:
    """A counter's value, and its unit as in ncu ("" if it has none)."""

    value: int | float
    unit: str


class ProfilerRun(Protocol):
    """A run of the profiler: the number of passes over the kernel, and counters."""

    @property
    def passes(self) -> int: ...

    @property
    def counters(self) -> dict[str, Counted]: ...


def counter_of(profiles: Iterable[ProfilerRun], metric: str) -> int | float | None:
    """A counter's value; None if it was not collected. If several runs have it, the first one's."""
    return next((one.counters[metric].value for one in profiles if metric in one.counters), None)


def counted_together(profiles: Iterable[ProfilerRun], metrics: Set[str]) -> dict[str, int | float] | None:
    """These counters if they were collected in the same pass over the kernel, else None."""
    for profile in profiles:
        if profile.passes == 1 and metrics <= set(profile.counters):
            return {metric: profile.counters[metric].value for metric in metrics}
    return None


def records_of(path: Path, reader: str, *more: str) -> list[dict[str, Any]]:
    """The output of `python -m READER REPORT RESULT MORE...` for a report file.

    Raises:
        MemsimError: `ncu_report` is not found or does not load, or it cannot read the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "profiles.json"
        command = [sys.executable, "-m", reader, str(path), str(result), *more]
        environment = child_environment()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode or not result.is_file():
            said = done.stderr.strip().splitlines()
            raise MemsimError(
                f"{MODULE} of Nsight Compute cannot read ncu's report (exit code {done.returncode})"
                + (f": {said[-1]}" if said else ""),
                hint="pip install ncu-report, or put extras/python of Nsight Compute on PYTHONPATH",
            )
        records: list[dict[str, Any]] = json.loads(result.read_text("utf-8"))
        return records


def write_records(arguments: Sequence[str], record_of: Callable[[Any], dict[str, Any]]) -> int:
    """Read the report `arguments[0]` and write a record of each of its launches to `arguments[1]`."""
    report = load_reader().load_report(arguments[0])
    records = []
    for i in range(report.num_ranges()):
        scope = report.range_by_idx(i)
        records += [record_of(scope.action_by_idx(number)) for number in range(scope.num_actions())]
    Path(arguments[1]).write_text(json.dumps(records), "utf-8")
    return 0


def load_reader() -> Any:
    """NVIDIA's module `ncu_report`, from the path or from an installation of Nsight Compute.

    Raises:
        ImportError: it is not found, or it does not load in this Python.
    """
    sys.path.extend(str(folder) for folder in folders_with(f"{MODULE}.py"))
    return importlib.import_module(MODULE)


def passes_of(action: Any) -> int:
    """The number of passes over the kernel in which a launch was measured."""
    return int(action.metric_by_name(PASSES).as_double())


def counters_of(action: Any, also: Sequence[str] = ()) -> dict[str, Counted]:
    """The counters of a whole launch, by ncu's names: those that memsim predicts, and `also`."""
    counters = {}
    for name in sorted(action.metric_names()):
        is_sum = "." not in name or name.endswith((".sum", "_active.max"))
        if name in also or (name.startswith(COUNTERS) and is_sum):
            counters[name] = Counted(whole(action.metric_by_name(name).as_double()), unit_of(name))
    return counters


def unit_of(name: str) -> str:
    """The unit of a counter as in ncu; "" for plain counts.

    Derived from the name: `ncu_report` of Nsight Compute 2025.3 may crash when asked for a unit.
    """
    return next((unit for part, unit in UNITS.items() if part in name), "")


def instances_of(action: Any) -> dict[str, dict[int, int]]:
    """`CODE_METRICS` of a launch by instruction address; empty if not collected."""
    names = set(action.metric_names())
    return {
        name: dict(_instances(action.metric_by_name(name))) if name in names else {} for name in CODE_METRICS
    }


def _instances(metric: Any) -> Iterator[tuple[int, int]]:
    """(address of the instruction, value)."""
    if not metric.has_correlation_ids():
        return
    addresses = metric.correlation_ids()
    for i in range(metric.num_instances()):
        yield int(addresses.as_uint64(i)), int(metric.as_double(i))


def whole(value: float) -> int | float:
    """Counts are integers, which ncu stores as floats."""
    return int(value) if float(value).is_integer() else value
