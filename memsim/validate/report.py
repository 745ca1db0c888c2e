"""What an ncu report says: counters of each launch, and a row for each of its instructions.

In: a report file. Out: `Profile`s in the order of the launches. Read with `ncu_report`, the module that
comes with every Nsight Compute. Left out on purpose: ncu's CSV pages, which list an instruction
under several source lines when a function was inlined.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.validate.profiler import folders_with
from memsim.validate.sass import is_memory_access

MODULE = "ncu_report"

# Columns of a row: ncu's names of what the section SourceCounters gives for each instruction.
SOURCE_METRICS = (
    "inst_executed",
    "thread_inst_executed_true",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
    "memory_l2_theoretical_sectors_global",
    "memory_l2_theoretical_sectors_global_ideal",
    "memory_l1_tag_requests_global",
)
PASSES = "profiler__replayer_passes"
# Of all that a report holds: what counts something. The rest describes the chip, or is sampled.
COUNTERS = (
    "l1tex__",
    "smsp__inst_executed",
    "inst_executed",
    "thread_inst_executed",
    "memory_l",
    "gpu__time",
)


@dataclass(frozen=True, slots=True)
class SassRow:
    """An instruction that touches memory. `offset`: bytes from the kernel's first instruction.

    `counts` are in the order of `SOURCE_METRICS`; None where ncu has no such figure for the instruction.
    """

    offset: int
    file: str
    line: int
    sass: str
    counts: tuple[int | None, ...]

    def count(self, metric: str) -> int | None:
        """The figure of that name in `SOURCE_METRICS`."""
        return self.counts[SOURCE_METRICS.index(metric)]


@dataclass(frozen=True, slots=True)
class Counted:
    """A counter's value, and its unit as ncu writes it ("" where it gives none)."""

    value: int | float
    unit: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch as ncu measured it, in so many passes over the kernel.

    instructions: SASS instructions in the kernel; with_line: those of them that have a source line;
    both 0, and no rows, if only counters were collected.
    """

    kernel: str
    passes: int
    counters: dict[str, Counted]
    instructions: int
    with_line: int
    rows: tuple[SassRow, ...]


def read_report(path: Path) -> list[Profile]:
    """The launches in a report file, in order.

    Raises:
        MemsimError: `ncu_report` is not found or does not load, or it cannot read the file.
    """
    module = load_reader()
    try:
        report = module.load_report(str(path))
    except Exception as error:  # the module raises its own kinds
        raise MemsimError(f"ncu's report cannot be read: {error}", file=str(path)) from None
    return [
        _profile(scope.action_by_idx(number))
        for scope in (report.range_by_idx(i) for i in range(report.num_ranges()))
        for number in range(scope.num_actions())
    ]


def load_reader() -> Any:
    """NVIDIA's module `ncu_report`, from the path or from where Nsight Compute is installed.

    Raises:
        MemsimError: it is not found, or it does not load in this Python.
    """
    folders = [str(folder) for folder in folders_with(f"{MODULE}.py")]
    sys.path.extend(folders)
    try:
        return importlib.import_module(MODULE)
    except ImportError as error:
        raise MemsimError(
            f"Nsight Compute's Python module {MODULE} does not load: {error}",
            hint="it lies in extras/python of a Nsight Compute installation; put that folder on PYTHONPATH",
        ) from None
    finally:
        for folder in folders:
            sys.path.remove(folder)


def _profile(action: Any) -> Profile:
    names = set(action.metric_names())
    counters = {}
    for name in sorted(names):
        if name.startswith(COUNTERS) and ("." not in name or name.endswith(".sum")):
            metric = action.metric_by_name(name)
            counters[name] = Counted(whole(metric.as_double()), metric.unit())
    listed = [name for name in SOURCE_METRICS if name in names]
    instances = {name: dict(_instances(action.metric_by_name(name))) for name in listed}
    executed = sorted(instances.get(SOURCE_METRICS[0], {}))
    lines = {pc: _place(action.source_info(pc)) for pc in executed}
    return Profile(
        kernel=action.name(),
        passes=int(action.metric_by_name(PASSES).as_double()),
        counters=counters,
        instructions=len(executed),
        with_line=sum(line > 0 for _, line in lines.values()),
        rows=tuple(
            SassRow(pc - executed[0], *lines[pc], sass, _counts(instances, pc))
            for pc in executed
            if is_memory_access(sass := " ".join(action.sass_by_pc(pc).split()))
        ),
    )


def _instances(metric: Any) -> Iterator[tuple[int, int | float]]:
    """(address of the instruction, value)."""
    if not metric.has_correlation_ids():
        return
    addresses = metric.correlation_ids()
    for i in range(metric.num_instances()):
        yield int(addresses.as_uint64(i)), whole(metric.as_double(i))


def _counts(instances: dict[str, dict[int, int | float]], pc: int) -> tuple[int | None, ...]:
    values = (instances.get(name, {}).get(pc) for name in SOURCE_METRICS)
    return tuple(None if value is None else int(value) for value in values)


def _place(info: Any) -> tuple[str, int]:
    """File and line; ("", 0) where ncu knows none."""
    return (info.file_name(), info.line()) if info is not None else ("", 0)


def whole(value: float) -> int | float:
    """Counts are whole numbers, which ncu keeps as floats."""
    return int(value) if float(value).is_integer() else value
