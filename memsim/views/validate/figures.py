"""Compared values as rows of a table and as records for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from memsim.validate.compare_instructions import expected
from memsim.validate.verdicts import DIFFERENT, EXACT, NOISE, UNMODELLED, MetricComparison
from memsim.views.tables import Column, Row

STYLES = {EXACT: "", NOISE: "cyan", UNMODELLED: "dim", DIFFERENT: "red"}
COLUMNS = (
    Column("predicted", right=True),
    Column("measured", right=True),
    Column("difference", right=True, keep=1),
    Column("arbitration", right=True, keep=2),
    Column("verdict"),
)


def figure_to_dict(figure: MetricComparison) -> dict[str, Any]:
    """A figure with its verdict."""
    return {**asdict(figure), "verdict": figure.verdict}


def total_rows(totals: Sequence[MetricComparison]) -> list[Row]:
    """A row for each counter of the launch; those that are 0 share one."""
    zeros = [figure for figure in totals if figure.verdict == EXACT and not figure.measured]
    rows = [figure_row((figure.metric,), figure) for figure in totals if figure not in zeros]
    if zeros:
        rows.append(figure_row((f"the others ({len(zeros)})",), MetricComparison("", 0, 0)))
    return rows


def figure_row(names: tuple[str, ...], figure: MetricComparison) -> Row:
    """A row whose first cells are `names`, and the others the `COLUMNS` of a figure."""
    known = figure.predicted is not None and figure.measured is not None
    difference = (figure.measured or 0) - (figure.predicted or 0) if known else None
    numbers = (figure.measured, difference or None, figure.arbitration or None)
    shown = ("" if number is None else f"{number:,}" for number in numbers)
    return Row((*names, expected(figure), *shown, figure.verdict), STYLES.get(figure.verdict, "yellow"))
