"""The table of a sweep: a row for each variant, those on the frontier marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from memsim.sweep.results import VariantResult, cost_name, frontier, groups
from memsim.views.labels import count, number
from memsim.views.screen import Column, Row, Screen

MARK = "*"
NAMED = 3  # variants that are named with a reason
COUNTS = {
    "wavefronts": Column("wavefronts", right=True),
    "ideal_wavefronts": Column("ideal", right=True, keep=2),
    "max_ways": Column("ways", right=True, keep=1),
    "sectors": Column("sectors", right=True),
    "ideal_sectors": Column("ideal sectors", right=True, keep=3),
    "shared_bytes": Column("shared bytes", right=True),
}


def write(results: Sequence[VariantResult], stream: TextIO) -> None:
    """Prints the answer and the table, and why variants could not be analyzed."""
    screen, best = Screen(stream), frontier(results)
    screen.say(headline(results, best), "bold")
    screen.say()
    _write_table(screen, results, best)
    for line in _errors(results):
        screen.say(line, "yellow")
    if not best:
        return
    screen.say()
    same = "" if len(groups(results)) == 1 else " of the same work"
    screen.say(f"{MARK} no other variant{same} has fewer {cost_name(results)} with as little shared memory")


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


def _errors(results: Sequence[VariantResult]) -> Iterator[str]:
    """Each reason why variants could not be analyzed, with their values."""
    failed: dict[str, list[str]] = {}
    for result in results:
        if result.counts.error:
            failed.setdefault(result.counts.error, []).append(_values(result))
    if failed:
        yield ""
    for error, values in failed.items():
        more = f" and {len(values) - NAMED:,} more" if len(values) > NAMED else ""
        yield f"{'; '.join(values[:NAMED])}{more}: {error}"


def _write_table(screen: Screen, results: Sequence[VariantResult], best: Sequence[int]) -> None:
    """A row for each variant; columns in which nothing is known are left out."""
    shown = [name for name in COUNTS if any(getattr(one.counts, name) is not None for one in results)]
    columns = [Column(""), *map(Column, results[0].values), *(COUNTS[name] for name in shown)]
    rows, marked = [], set(best)
    for i, result in enumerate(results):
        mark, style = (MARK, "bold") if i in marked else ("", "")
        counts = [number(getattr(result.counts, name), "-") for name in shown]
        rows.append(Row((mark, *result.values.values(), *counts), style))
    screen.table(columns, rows)
