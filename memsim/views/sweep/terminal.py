"""The table of a sweep: a row for each variant, those on the frontier marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from memsim.sweep.results import VariantResult, cost_name, frontier, groups
from memsim.views.labels import count, number
from memsim.views.screen import open_console

if TYPE_CHECKING:
    from rich.table import Table

MARK = "*"
GAP = 2
COUNTS = {
    "wavefronts": "wavefronts",
    "ideal_wavefronts": "ideal",
    "max_ways": "ways",
    "sectors": "sectors",
    "ideal_sectors": "ideal sectors",
    "shared_bytes": "shared bytes",
}


def write(results: Sequence[VariantResult], stream: TextIO) -> None:
    """Prints the table; columns in which nothing is known are left out."""
    console, _ = open_console(stream, soft_wrap=True)
    best = frontier(results)
    console.print(headline(results, best), style="bold")
    console.print()
    console.print(_table(results, best))
    console.print()
    same = "" if len(groups(results)) == 1 else " of the same work"
    console.print(
        f"{MARK} no other variant{same} has fewer {cost_name(results)} with as little shared memory"
    )


def headline(results: Sequence[VariantResult], best: Sequence[int]) -> str:
    """How many there are, and the one that costs least."""
    failed = sum(bool(result.counts.error) for result in results)
    parts = [count(len(results), "variant")] + ([f"{failed} could not be analyzed"] if failed else [])
    if best and len(groups(results)) == 1:
        name = cost_name(results)
        least = results[best[-1]]
        cost, needed = getattr(least.counts, name), least.counts.shared_bytes
        which = f" with {_values(least)}" if least.values else ""
        parts.append(f"fewest {name}: {cost:,}{which}, {needed:,} shared bytes")
    return "; ".join(parts)


def _values(result: VariantResult) -> str:
    return ", ".join(f"{name} {value}" for name, value in result.values.items())


def _table(results: Sequence[VariantResult], best: Sequence[int]) -> Table:
    from rich.table import Table
    from rich.text import Text

    shown = {
        name: title
        for name, title in COUNTS.items()
        if any(getattr(result.counts, name) is not None for result in results)
    }
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name in ("", *results[0].values):
        table.add_column(name)
    for title in shown.values():
        table.add_column(title, justify="right")
    if any(result.counts.error for result in results):
        table.add_column("error")
    marked = set(best)
    for i, result in enumerate(results):
        counts = [number(getattr(result.counts, name), "-") for name in shown]
        cells = [MARK if i in marked else "", *result.values.values(), *counts, result.counts.error]
        table.add_row(*map(Text, cells[: len(table.columns)]), style="bold" if i in marked else "")
    return table
