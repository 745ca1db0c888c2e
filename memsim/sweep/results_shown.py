"""A sweep as a table, a row for each variant, the best and the rest of the frontier marked; and as a figure,
what each variant costs against the shared memory that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TextIO

from msgspec import Meta

from memsim.bound import percent
from memsim.document import Document, DocumentPart, Line, one_of
from memsim.errors import MemsimError
from memsim.sweep.results import Counts, VariantResult, cost_name, frontier, groups
from memsim.views.canvas import new_figure, style
from memsim.views.labels import count, number
from memsim.views.screen import Column, Row, Screen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

BEST, LEANER = "*", "+"
NAMED = 3  # variants that are named with a reason
#: What variants are ranked by, in sentences and at the axis of the figure.
NOUNS = {"wavefronts": "wavefronts", "sectors": "sectors", "elapsed": "estimated cycles"}
AXES = {"wavefronts": "shared wavefronts", "sectors": "global sectors", "elapsed": "estimated cycles"}
COLUMNS = {
    "wavefronts": Column("wavefronts", right=True),
    "ideal_wavefronts": Column("ideal", right=True, keep=2),
    "max_ways": Column("ways", right=True, keep=1),
    "sectors": Column("sectors", right=True),
    "ideal_sectors": Column("ideal sectors", right=True, keep=3),
    "shared_bytes": Column("shared bytes", right=True),
    "elapsed": Column("cycles, about", right=True),
}


def write(results: Sequence[VariantResult], stream: TextIO) -> None:
    """Prints the answer and the table, and why variants could not be analyzed."""
    screen, best, marks = Screen(stream), frontier(results), _marks(results)
    screen.say(headline(results, best), "bold")
    screen.say()
    _write_table(screen, results, marks)
    for line in _errors(results):
        screen.say(line, "yellow")
    if not best:
        return
    screen.say()
    same = "" if len(groups(results)) == 1 else " of the same work"
    fewer = NOUNS[cost_name(results)]
    screen.say(f"{BEST} no other variant{same} has fewer {fewer}, or as few with less shared memory")
    estimated = [result.counts.elapsed for result in results if not result.counts.error]
    if any(estimated):
        screen.say(_about_time(None in estimated))
    if LEANER in marks.values():
        screen.say(f"{LEANER} costs more, and no other needs so little shared memory for it")


def _about_time(some_lack_it: bool) -> str:
    """What estimated cycles are, and whether variants are ranked by them."""
    from memsim.time.launch_time import PROJECTS_ERROR

    ranked = "Some variants have none, so they do not rank." if some_lack_it else ""
    error = percent(PROJECTS_ERROR)
    said = f"Cycles, with the launch itself, are estimates, typically within {error} (docs/time.md); smaller"
    return f"{said} differences decide nothing. {ranked}".rstrip()


def headline(results: Sequence[VariantResult], best: Sequence[int]) -> str:
    """How many there are, and the one that costs least."""
    failed = sum(bool(result.counts.error) for result in results)
    parts = [count(len(results), "variant")] + ([f"{failed} could not be analyzed"] if failed else [])
    if best and len(groups(results)) == 1:
        name = cost_name(results)
        least = results[next(i for i, mark in _marks(results).items() if mark == BEST)]
        cost, needed = getattr(least.counts, name), least.counts.shared_bytes
        which = f" with {_values(least)}" if least.values else ""
        parts.append(f"fewest {NOUNS[name]}: {cost:,}{which}, {needed:,} shared bytes")
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


def _marks(results: Sequence[VariantResult]) -> dict[int, str]:
    """The mark of each variant on the frontier; those that cost as little as the best are as good."""
    name, marks = cost_name(results), dict[int, str]()
    on_it = frontier(results)
    for group in groups(results):
        costs = {
            i: (getattr(results[i].counts, name), results[i].counts.shared_bytes) for i in on_it if i in group
        }
        # The frontier goes from little shared memory to few wavefronts: the last of a group costs least.
        marks |= {i: BEST if cost == [*costs.values()][-1] else LEANER for i, cost in costs.items()}
    return marks


def _write_table(screen: Screen, results: Sequence[VariantResult], marks: Mapping[int, str]) -> None:
    """A row for each variant; columns in which nothing is known are left out."""
    shown = [name for name in COLUMNS if any(getattr(one.counts, name) is not None for one in results)]
    columns = [Column(""), *map(Column, results[0].values), *(COLUMNS[name] for name in shown)]
    rows = []
    for i, result in enumerate(results):
        mark = marks.get(i, "")
        style = "bold" if mark == BEST else ""
        counts = [number(getattr(result.counts, name), "-") for name in shown]
        rows.append(Row((mark, *result.values.values(), *counts), style))
    screen.table(columns, rows)


class SweptVariant(DocumentPart, frozen=True, kw_only=True):
    """A variant: the values that it stands for, and what it costs."""

    values: dict[str, str]
    counts: Annotated[Counts, Meta(description="sums over its accesses; null: not known, or does not apply")]
    on_frontier: Annotated[bool, Meta(description="no other of the same work has less of both costs")]


class SweepDocument(Document, frozen=True, kw_only=True):
    """The variants of a sweep, in the order in which they were asked for."""

    answer: Line
    cost: Annotated[
        str, one_of("wavefronts", "sectors", "elapsed", description="what is compared, beside shared_bytes")
    ]
    variants: tuple[SweptVariant, ...]


def sweep_document(results: Sequence[VariantResult]) -> SweepDocument:
    """The results as `memsim sweep --json` prints them."""
    best = frontier(results)
    variants = (
        SweptVariant(values=dict(one.values), counts=one.counts, on_frontier=number in best)
        for number, one in enumerate(results)
    )
    return SweepDocument(answer=headline(results, best), cost=cost_name(results), variants=tuple(variants))


WIDTH, HEIGHT = 8.0, 5.0
MOST_NAMES = 12  # places that are named, those of the frontier first
STEP = 9  # points by which a name moves up from another


def frontier_figure(results: Sequence[VariantResult]) -> Figure:
    """The figure.

    Raises:
        MemsimError: no variant could be analyzed, or matplotlib is not installed.
    """
    name, best = cost_name(results), frontier(results)
    if not best:
        raise MemsimError("no variant could be analyzed, so there is nothing to plot")
    known = [result for result in results if getattr(result.counts, name) is not None]
    others, figure = len(results) - len(known), new_figure(WIDTH, HEIGHT)
    with style():
        axes = figure.add_subplot()
        places = [_place(result, name) for result in known]
        axes.scatter(
            *([x for x, _ in places], [y for _, y in places], 24, "#9aa4ad"),
            label=count(len(known), "variant") + (f"; {others} without {name}" if others else ""),
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
        axes.set_title(headline(results, best), loc="left", fontsize=9, wrap=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.margins(x=0.25)
        axes.set_xlabel("shared memory of a block, bytes")
        axes.set_ylabel(AXES[name])
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
        figure.draw_without_rendering()  # where points are, by which names keep apart
        _name_places(axes, [*(results[i] for i in best), *known], name)
    return figure


def _name_places(axes: Axes, results: Sequence[VariantResult], name: str) -> None:
    """Names beside the points, those of one place together, moved up until none covers another."""
    named: dict[tuple[int, int], dict[str, None]] = {}
    for result in results:
        words = ", ".join(map(str, result.values.values()))
        named.setdefault(_place(result, name), {})[words] = None
    taken: list[Bbox] = []
    for place, names in [*named.items()][:MOST_NAMES]:
        text = axes.annotate(" = ".join(names), place, xytext=(6, 3), textcoords="offset points", fontsize=7)
        for step in range(1, MOST_NAMES):
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            text.set_position((6, 3 + STEP * step))
        taken.append(box)


def _place(result: VariantResult, name: str) -> tuple[int, int]:
    """Bytes, and cost."""
    return result.counts.shared_bytes or 0, getattr(result.counts, name)
