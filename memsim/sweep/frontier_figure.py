"""A figure of a sweep: what each variant costs against the shared memory that it needs, and the frontier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memsim.errors import MemsimError
from memsim.sweep.results import VariantResult, cost_name, frontier, groups
from memsim.views.canvas import new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
