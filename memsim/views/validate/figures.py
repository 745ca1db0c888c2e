"""Compared values as rows of a table and as records for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from memsim.validate.verdicts import DIFFERENT, EXACT, NOISE, UNMODELLED, MetricComparison

if TYPE_CHECKING:
    from rich.table import Table

STYLES = {EXACT: "", NOISE: "cyan", UNMODELLED: "dim", DIFFERENT: "red"}
COLUMNS = ("predicted", "measured", "difference", "arbitration")


def figure_to_dict(figure: MetricComparison) -> dict[str, Any]:
    """A figure with its verdict."""
    return {**asdict(figure), "verdict": figure.verdict}


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
