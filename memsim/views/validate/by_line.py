"""A comparison of predictions with measurements by source line, as text and as records for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO

from memsim.validate.compare_lines import (
    DIFFERENT,
    EXACT,
    NOISE,
    UNMODELLED,
    VERDICTS,
    LineComparison,
    MetricComparison,
    RecordingComparison,
)
from memsim.validate.predict import WAVEFRONTS
from memsim.views.screen import open_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SCHEMA = 2
STYLES = {EXACT: "", NOISE: "cyan", UNMODELLED: "dim", DIFFERENT: "red"}
COLUMNS = ("predicted", "measured", "difference", "arbitration")
IDEAL = "_ideal"
NOT_OURS = (
    f"*{IDEAL} is the profiler's formula: it counts the same bytes once for each lane that asks for them. "
    "The ideal of memsim analyze counts them once, and may differ (docs/model.md)."
)


def headline(comparison: RecordingComparison) -> str:
    """The answer in a line: equal or not, and how many figures of which kind."""
    recording = comparison.recording
    count = Counter(figure.verdict for figure in comparison.figures)
    counts = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    answer = "as predicted"
    if comparison.differences:
        answer = f"different from the prediction: {', '.join(comparison.differences)}"
    size = ",".join(map(str, recording.size))
    return f"{recording.kernel} {size} on {recording.device.gpu}: {answer} ({counts})"


def summary(comparisons: Sequence[RecordingComparison]) -> str:
    """All launches in a line: how many figures of which kind."""
    count = Counter(figure.verdict for comparison in comparisons for figure in comparison.figures)
    counts = ", ".join(f"{count[verdict]:,} {verdict}" for verdict in VERDICTS if count[verdict])
    passed = sum(comparison.passed for comparison in comparisons)
    return f"{passed} of {len(comparisons)} launches as predicted: {counts}"


def write(comparison: RecordingComparison, stream: TextIO) -> None:
    """Prints the whole comparison."""
    from rich.text import Text

    console, _ = open_console(stream)
    console.print(Text(headline(comparison), style="bold"))
    console.print()
    console.print(_line_table(comparison))
    if any(figure.metric.endswith(IDEAL) for line in comparison.lines for figure in line.figures):
        console.print(NOT_OURS)
    console.print()
    console.print(total_table(comparison.totals))
    console.print()
    _write_footer(console, comparison)


def to_dict(comparison: RecordingComparison) -> dict[str, Any]:
    """The same as plain dicts, lists, texts and numbers."""
    recording = comparison.recording
    return {
        "schema": SCHEMA,
        "kernel": recording.kernel,
        "size": recording.launch.size,
        "device": asdict(recording.device),
        "ncu": recording.ncu,
        "date": recording.date,
        "verdict": headline(comparison),
        "passed": comparison.passed,
        "lines": [_line_to_dict(line) for line in comparison.lines],
        "totals": [figure_to_dict(figure) for figure in comparison.totals],
        "notes": list(comparison.notes),
        "differences": list(comparison.differences),
    }


def _line_to_dict(line: LineComparison) -> dict[str, Any]:
    return {
        "where": line.where,
        "places": [asdict(place) for place in line.places],
        "hardware_wavefronts": line.wavefronts,
        "figures": [figure_to_dict(figure) for figure in line.figures],
    }


def figure_to_dict(figure: MetricComparison) -> dict[str, Any]:
    """A figure with its verdict."""
    return {**asdict(figure), "verdict": figure.verdict}


def _line_table(comparison: RecordingComparison) -> Table:
    """A row for each figure of each line; the line is named once."""
    table = figure_table("where", "figure of the Source page")
    for line in comparison.lines:
        name = _short(line.where)
        for figure in line.figures:
            add_figure(table, (name, figure.metric), figure)
            name = ""
    return table


def total_table(totals: Sequence[MetricComparison]) -> Table:
    """A row for each counter of the launch; those that are 0 share one."""
    table = figure_table("ncu metric")
    zeros = 0
    for figure in totals:
        if figure.verdict == EXACT and not figure.measured:
            zeros += 1
        else:
            add_figure(table, (figure.metric,), figure)
    if zeros:
        add_figure(table, (f"the others ({zeros})",), MetricComparison("", 0, 0))
    return table


def figure_table(*names: str) -> Table:
    """An empty table with columns `names`, and one for each number of a figure."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name)
    for name in COLUMNS:
        table.add_column(name, justify="right")
    table.add_column("verdict")
    return table


def add_figure(table: Table, names: tuple[str, ...], figure: MetricComparison) -> None:
    """A row of a `figure_table`."""
    from rich.text import Text

    known = figure.predicted is not None and figure.measured is not None
    difference = (figure.measured or 0) - (figure.predicted or 0) if known else None
    numbers = (figure.predicted, figure.measured, difference or None, figure.arbitration or None)
    shown = ("" if number is None else f"{number:,}" for number in numbers)
    style = STYLES.get(figure.verdict, "yellow")
    table.add_row(*(Text(cell) for cell in (*names, *shown, figure.verdict)), style=style)


def _write_footer(console: Console, comparison: RecordingComparison) -> None:
    recording, profile = comparison.recording, comparison.recording.profiles[0]
    for note in comparison.notes:
        console.print(_short(note))
    for line in comparison.lines:
        page = next((figure for figure in line.figures if figure.metric == WAVEFRONTS), None)
        if page is not None and page.predicted is not None and page.predicted != line.wavefronts:
            console.print(
                f"{_short(line.where)}: the hardware takes {line.wavefronts:,} wavefronts; "
                f"{page.predicted:,} is the profiler's own formula."
            )
    result = recording.result
    console.print(
        f"Recorded {recording.date} on {recording.device.gpu} (driver {recording.device.driver}, CUDA "
        f"{recording.device.cuda}, Nsight Compute {recording.ncu}): {recording.code}; "
        f"{profile.with_line} of {profile.instructions} SASS instructions have a source line."
    )
    console.print(f"Result: right; largest error {result.largest_error:.3g} against {result.reference}.")


def _short(where: str) -> str:
    """File names without their folder."""
    first, _, rest = where.partition(" ")
    return f"{PurePath(first).name} {rest}"
