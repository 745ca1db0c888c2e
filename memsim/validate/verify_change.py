"""Measures a suggested change: the original and the changed kernel, each compared with its prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.validate.by_instruction import ComparedKernel, headline, passed
from memsim.validate.code_recording import CodeRecording
from memsim.validate.compare_instructions import CodeComparison, MetricComparison, compare_code
from memsim.validate.live import measure
from memsim.validate.profiler import Progress

#: Measured, and not predicted: clocks are as they are.
TIME = "gpu__time_duration.sum"
COLUMNS = ("ncu metric", "before: predicted", "measured", "after: predicted", "measured")
COLUMNS_OF_JSON = ("metric", "predicted_before", "measured_before", "predicted_after", "measured_after")


@dataclass(frozen=True, slots=True)
class Verified:
    """What a GPU counts before and after a change.

    recordings, comparisons: of the original kernel and of the changed one.
    """

    recordings: tuple[CodeRecording, CodeRecording]
    comparisons: tuple[CodeComparison, CodeComparison]


def verify(job: Job, before: Analysis, changed: Job, after: Analysis, progress: Progress = None) -> Verified:
    """Run both under Nsight Compute and compare.

    Raises:
        MemsimError: as in `memsim.validate.live.measure`; or the prediction is not for the whole grid.
    """
    if before.trace.blocks_replayed < before.trace.launch.blocks:
        raise MemsimError("the GPU runs all blocks, but not all were replayed", hint="omit --blocks")
    one, other = measure([job, changed], progress)
    return Verified((one, other), (compare_code(one.profiles, before), compare_code(other.profiles, after)))


def render(found: Verified) -> str:
    """The table, and under it whether every instruction and counter came out as predicted."""
    device = found.recordings[0].device
    lines = [f"Measured on {device.gpu}, Nsight Compute {found.recordings[0].ncu}:", ""]
    rows = [COLUMNS, *_rows(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        name, *counts = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append("  ".join([name.strip().ljust(widths[0]), *counts]).rstrip())
    lines.append("")
    for label, comparison in zip(("as it is", "changed"), found.comparisons, strict=True):
        lines.append(headline(ComparedKernel(label, device.gpu), comparison))
    return "\n".join(lines)


def holds(found: Verified) -> bool:
    """Whether both came out as predicted."""
    return all(map(passed, found.comparisons))


def to_dict(found: Verified) -> dict[str, Any]:
    """The same for programs."""
    device = found.recordings[0].device
    return {
        "gpu": device.gpu,
        "ncu": found.recordings[0].ncu,
        "as_predicted": holds(found),
        "counters": [dict(zip(COLUMNS_OF_JSON, row, strict=True)) for row in _figures(found)],
    }


def _rows(found: Verified) -> Iterator[tuple[str, ...]]:
    for name, *counts in _figures(found):
        if any(counts):
            yield name, *("-" if count is None else f"{count:,}" for count in counts)


def _figures(found: Verified) -> Iterator[tuple[Any, ...]]:
    """Metric, then predicted and measured before, then after."""
    before, after = ({figure.metric: figure for figure in one.totals} for one in found.comparisons)
    nothing = MetricComparison("", None, None)
    for metric in dict.fromkeys([*before, *after]):
        one, other = before.get(metric, nothing), after.get(metric, nothing)
        yield metric, one.predicted, one.measured, other.predicted, other.measured
    times = [
        next((p.counters[TIME].value for p in recording.profiles if TIME in p.counters), None)
        for recording in found.recordings
    ]
    if any(time is not None for time in times):
        yield f"{TIME} (ns)", None, times[0], None, times[1]
