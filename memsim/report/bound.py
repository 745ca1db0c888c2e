"""Lower bounds in cycles for people, and as JSON.

In: a `Bound` and the analysis that it is of. Out: text, or plain values.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TextIO

from memsim.analysis import Analysis
from memsim.bound import MULTIPROCESSORS, Bound
from memsim.report.labels import number
from memsim.report.text import UNLIMITED

LEFT_OUT = "Left out: latencies, arbitration between warps, the L2 cache, DRAM, the tail of the last wave."


def write(analysis: Analysis, bound: Bound, stream: TextIO) -> None:
    """Prints the bounds on `stream`."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, emoji=False, width=UNLIMITED)
    console.print(f"{analysis.trace.kernel}: {bound.verdict}", style="bold")
    if bound.units:
        console.print()
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("unit")
        table.add_column("counted as ncu's")
        for title in ("count", "cycles", "of the bound"):
            table.add_column(title, justify="right")
        for unit in bound.units:
            share = f"{100 * unit.cycles / bound.cycles:.0f} %"
            table.add_row(unit.name, unit.metric, number(unit.count, "-"), f"{unit.cycles:,}", share)
        console.print(table)
    console.print()
    for line in _footer(analysis, bound):
        console.print(line)


def _footer(analysis: Analysis, bound: Bound) -> list[str]:
    launch = analysis.trace.launch
    lines = [
        f"Work divided evenly among {bound.multiprocessors} of {MULTIPROCESSORS} multiprocessors "
        "(H100 SXM, H200); "
        f"{launch.blocks:,} blocks of {launch.threads:,} threads."
    ]
    if bound.unknown:
        lines.append(f"Not in the bounds, because it was not measured: {', '.join(bound.unknown)}.")
    if bound.incomplete:
        lines.append("Some accesses could not be analyzed: the L1 data stage has more to do than is shown.")
    lines += [f"Not certain: {reason}" for reason in analysis.trace.unsure]
    return [*lines, LEFT_OUT]


def to_dict(analysis: Analysis, bound: Bound) -> dict[str, Any]:
    """The bounds as plain values."""
    return {
        "schema": 1,
        "kernel": analysis.trace.kernel,
        "verdict": bound.verdict,
        "cycles": bound.cycles,
        **dataclasses.asdict(bound),
        "unsure": list(analysis.trace.unsure),
    }
