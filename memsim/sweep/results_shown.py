"""A sweep as a table, a row for each variant, those on the frontier marked; and as a figure, what each
variant costs against the shared memory that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from memsim.errors import MemsimError
from memsim.sweep.results import VariantResult, cost_name, frontier, groups
from memsim.views.canvas import new_figure, style
from memsim.views.labels import count, number
from memsim.views.screen import Column, Row, Screen

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


WIDTH, HEIGHT = 8.0, 5.0
MOST_NAMES = 12  # of the frontier's points; more would cover each other


def frontier_figure(results: Sequence[VariantResult]) -> Figure:
    """The figure.

    Raises:
        MemsimError: no variant could be analyzed, or matplotlib is not installed.
    """
    name, best = cost_name(results), frontier(results)
    if not best:
        raise MemsimError("no variant could be analyzed, so there is nothing to plot")
    known = [result for result in results if getattr(result.counts, name) is not None]
    figure = new_figure(WIDTH, HEIGHT)
    with style():
        axes = figure.add_subplot()
        places = [_place(result, name) for result in known]
        axes.scatter(
            [x for x, _ in places], [y for _, y in places], 24, "#9aa4ad", label=f"{len(known)} variants"
        )
        for number, group in enumerate(groups(results)):
            line = [_place(results[i], name) for i in best if i in group]
            axes.plot(
                [x for x, _ in line],
                [y for _, y in line],
                color="#c4442f",
                marker="o",
                drawstyle="steps-post",
                label="" if number else "the frontier",
            )
        for i in best[:MOST_NAMES]:
            words = ", ".join(f"{label} {value}" for label, value in results[i].values.items())
            place = _place(results[i], name)
            axes.annotate(words, place, xytext=(5, 5), textcoords="offset points", fontsize=7)
        axes.set_xlabel("shared memory of a block, bytes")
        axes.set_ylabel("shared wavefronts" if name == "wavefronts" else "global sectors")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        figure.tight_layout()
    return figure


def _place(result: VariantResult, name: str) -> tuple[int, int]:
    """Bytes, and cost."""
    return result.counts.shared_bytes or 0, getattr(result.counts, name)
