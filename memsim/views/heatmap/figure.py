"""The bank heatmap: a row for each shared access site, a column for each bank.

One analysis in, or several to be compared; a figure out. Panels are stacked and share all scales.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.analysis import Analysis
from memsim.arch.units import BANKS
from memsim.views.canvas import (
    CODE,
    CONFLICT,
    EXTRA,
    FAINT,
    IDEAL,
    colour_of_trouble,
    ink_on,
    new_figure,
    style,
    trouble_colours,
)
from memsim.views.heatmap import heat_rows as heat
from memsim.views.heatmap.heat_rows import HeatRow, heat_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CELL = 0.88  # of the width of a column
TOP, BOTTOM, BAR, THIN = -0.42, 0.24, 0.28, 0.14  # of the height of a row, from its middle down
MIDDLE = (TOP + BOTTOM) / 2
WIDTH_INCHES = 12  # 1,200 pixels
ROW_INCHES = 0.52
TITLE_INCHES = 0.85
LEGEND_INCHES = 0.75
TITLE_CHARACTERS = 125


def heatmap(analyses: Sequence[Analysis]) -> Figure:
    """The figure. Behind each panel's first collection are the ways of the worst requests, in the order of
    rows and banks.

    Raises:
        MemsimError: matplotlib is not installed, or none of the kernels touches shared memory.
    """
    panels = heat_panels(analyses)
    heights = [TITLE_INCHES + ROW_INCHES * max(1, len(panel)) for panel in panels]
    height = sum(heights) + LEGEND_INCHES
    figure = new_figure(WIDTH_INCHES, height)
    scales = heat.scales(panels)
    with style():
        top = height
        for analysis, panel, inches in zip(analyses, panels, heights, strict=True):
            axes = _panel(figure, top - TITLE_INCHES, top - inches)
            top -= inches
            names, cells, ways, wavefronts = axes
            _draw_names(names, panel)
            if panel:
                _draw_cells(cells, panel)
                _draw_ways(ways, panel, scales.ways)
                _draw_wavefronts(wavefronts, panel, scales.wavefronts)
            else:
                _draw_nothing(names, cells, ways, wavefronts)
            verdict = textwrap.fill(analysis.verdict, TITLE_CHARACTERS)
            names.set_title(verdict, loc="left", fontsize=11, fontweight="bold", pad=24)
        _draw_legend(figure.add_axes((0, 0, 1, LEGEND_INCHES / height)))
    return figure


def _panel(figure: Figure, top: float, bottom: float) -> list[Axes]:
    """Axes for the names, the cells, the ways and the wavefronts, between two heights in inches."""
    height = figure.get_figheight()
    grid = figure.add_gridspec(
        1,
        4,
        width_ratios=[3.8, 7.8, 1.2, 2.0],
        left=0.012,
        right=0.995,
        top=top / height,
        bottom=bottom / height,
        wspace=0.04,
    )
    return [figure.add_subplot(grid[0, column]) for column in range(4)]


def _frame(axes: Axes, rows: int) -> None:
    axes.set_ylim(max(1, rows) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _draw_names(axes: Axes, panel: Sequence[HeatRow]) -> None:
    _frame(axes, len(panel))
    axes.axis("off")
    axes.set_xlim(0, 1)
    for y, row in enumerate(panel):
        clean = row.answer == "clean"
        axes.text(
            0, y - 0.02, row.short_title, va="bottom", fontsize=9, fontweight="normal" if clean else "bold"
        )
        axes.text(0, y + 0.06, textwrap.shorten(row.site.source, 42, placeholder="..."), va="top", **CODE)


def _draw_nothing(names: Axes, *others: Axes) -> None:
    """An empty side."""
    names.text(0, 0, heat.NOTHING, va="center", fontsize=9)
    for axes in others:
        axes.axis("off")


def _draw_cells(axes: Axes, panel: Sequence[HeatRow]) -> None:
    from matplotlib.collections import PolyCollection

    _frame(axes, len(panel))
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(-0.5, BANKS - 0.5)
    axes.xaxis.tick_top()
    axes.set_xticks(range(BANKS))
    axes.tick_params(axis="x", length=0, labelsize=7, pad=1)
    axes.set_xlabel("bank")
    axes.xaxis.set_label_position("top")

    drawn = [(y, row.use) for y, row in enumerate(panel) if row.use is not None]
    places = [(y, bank) for y, _ in drawn for bank in range(BANKS)]
    busy = np.concatenate([use.busy for _, use in drawn]) if drawn else np.zeros(0)
    ways, worst = (
        np.concatenate([getattr(use, name) for _, use in drawn]) if drawn else np.zeros(0, int)
        for name in ("ways", "worst")
    )

    colours, scale = trouble_colours()
    cells = PolyCollection([_box(y, bank) for y, bank in places], array=worst, cmap=colours, norm=scale)
    cells.set_edgecolor([CONFLICT if met > 1 else FAINT for met in worst])
    cells.set_linewidth([1.4 if met > 1 else 0.6 for met in worst])
    shares = PolyCollection(
        [_bar(y, bank, of) for (y, bank), of in zip(places, busy, strict=True)],
        facecolors=[colour_of_trouble(met) if met > 1 else IDEAL for met in ways],
    )
    tracks = PolyCollection([_bar(y, bank, 1) for y, bank in places], facecolors=FAINT)
    axes.add_collection(cells)
    axes.add_collection(tracks)
    axes.add_collection(shares)
    for (y, bank), met in zip(places, worst, strict=True):
        if met > 1:
            ink = ink_on(colour_of_trouble(met))
            middle: Any = {"ha": "center", "va": "center", "fontsize": 7.5, "fontweight": "bold"}
            axes.text(bank, y + MIDDLE, str(met), color=ink, **middle)
    for y, row in enumerate(panel):
        if row.use is None:
            axes.text(BANKS / 2, y, row.answer, ha="center", va="center", style="italic")


def _box(y: float, bank: float) -> list[tuple[float, float]]:
    """A cell's corners."""
    left, right = bank - CELL / 2, bank + CELL / 2
    return [(left, y + BOTTOM), (right, y + BOTTOM), (right, y + TOP), (left, y + TOP)]


def _bar(y: float, bank: float, share: float) -> list[tuple[float, float]]:
    """The bar below a cell, as long as the share, 0 to 1."""
    left = bank - CELL / 2
    right = left + CELL * share
    return [(left, y + BAR), (right, y + BAR), (right, y + BAR + THIN), (left, y + BAR + THIN)]


def _draw_ways(axes: Axes, panel: Sequence[HeatRow], most: int) -> None:
    _frame(axes, len(panel))
    ways = [row.site.max_ways or 0 for row in panel]
    conflicts = [count > 1 for count in ways]
    bars = axes.barh(
        range(len(panel)), ways, height=0.5, color=[CONFLICT if conflict else IDEAL for conflict in conflicts]
    )
    for bar, row, conflict in zip(bars, panel, conflicts, strict=True):
        bar.set_hatch("////" if conflict else "")
        bar.set_edgecolor("white")
        text = f"{row.ways} clean" if row.answer == "clean" else row.ways
        axes.annotate(
            text, (bar.get_width(), bar.get_y() + 0.25), (3, 0), textcoords="offset points", va="center"
        )
    _top_axis(axes, heat.WAYS, most * 2.2)


def _draw_wavefronts(axes: Axes, panel: Sequence[HeatRow], most: float) -> None:
    _frame(axes, len(panel))
    left = np.zeros(len(panel))
    for label, colour, hatch, widths in zip(
        heat.PARTS,
        (IDEAL, EXTRA, CONFLICT),
        ("", "", "////"),
        zip(*(row.parts for row in panel)),
        strict=True,
    ):
        axes.barh(
            range(len(panel)),
            widths,
            left=left,
            height=0.5,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            label=label,
        )
        left = left + np.array(widths)
    for y, row in enumerate(panel):
        axes.annotate(row.wavefronts, (left[y], y), (3, 0), textcoords="offset points", va="center")
    _top_axis(axes, heat.WAVEFRONTS, most * 3)


def _top_axis(axes: Axes, label: str, limit: float) -> None:
    axes.set_xlim(0, limit)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(True)
    axes.set_xlabel(label, loc="left")
    axes.xaxis.set_label_position("top")


def _draw_legend(axes: Axes) -> None:
    from matplotlib.patches import Rectangle

    axes.axis("off")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1)
    for step in range(6):
        colour = colour_of_trouble(2**step)
        axes.add_patch(Rectangle((1.2 + 2.2 * step, 0.45), 2.2, 0.3, color=colour))
        axes.text(2.3 + 2.2 * step, 0.6, str(2**step), ha="center", va="center", color=ink_on(colour))
    axes.text(1.2, 0.35, heat.SCALE, va="top")
    axes.text(33.5, 0.35, heat.SHARE, va="top")
    places = zip((64, 71, 87), heat.PARTS, (IDEAL, EXTRA, CONFLICT), ("", "", "////"), strict=True)
    for x, label, colour, hatch in places:
        axes.add_patch(Rectangle((x, 0.45), 1.4, 0.25, facecolor=colour, hatch=hatch, edgecolor="white"))
        axes.text(x + 1.9, 0.58, label, va="center")
    axes.text(64, 0.35, heat.WAVEFRONTS, va="top")
