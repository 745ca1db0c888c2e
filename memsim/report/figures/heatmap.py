"""The bank heatmap: a row for each shared access site, a column for each bank.

In: one analysis, or several to be compared. Out: a figure; panels side by side share every scale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memsim.analysis import Analysis
from memsim.report import heat
from memsim.report.colours import CONFLICT, EXTRA, FAINT, IDEAL, colour_of_count, ink_on
from memsim.report.figures.canvas import CODE, count_colours, new_figure, style
from memsim.report.heat import HeatRow, heat_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BANKS = 32
CELL = 0.88  # of the width of a column
TOP, BOTTOM, BAR, THIN = -0.42, 0.28, 0.33, 0.09  # of the height of a row, from its middle down
MIDDLE = (TOP + BOTTOM) / 2
ROW_INCHES = 0.52
PANEL_INCHES = 15.5


def heatmap(analyses: Sequence[Analysis]) -> Figure:
    """The figure. Behind each panel's first collection are the words drawn, in the order of rows and banks.

    Raises:
        MemsimError: matplotlib is not installed, or none of the kernels touches shared memory.
    """
    panels = heat_panels(analyses)
    rows = max(map(len, panels))
    figure = new_figure(PANEL_INCHES * len(panels), 2.15 + ROW_INCHES * rows)
    with style():
        scales = heat.scales(panels)
        grid = figure.add_gridspec(
            2,
            len(panels),
            height_ratios=[ROW_INCHES * rows, 0.9],
            left=0.012,
            right=0.995,
            top=1 - 0.85 / figure.get_figheight(),
            bottom=0.25 / figure.get_figheight(),
            hspace=0.2 / (0.26 * rows + 0.45),
            wspace=0.03,
        )
        for column, (analysis, panel) in enumerate(zip(analyses, panels, strict=True)):
            inner = grid[0, column].subgridspec(1, 4, width_ratios=[4.3, 8, 1.1, 1.7], wspace=0.04)
            names, cells, ways, wavefronts = (figure.add_subplot(inner[0, i]) for i in range(4))
            _draw_names(names, panel, rows)
            if panel:
                _draw_cells(cells, panel, rows)
                _draw_ways(ways, panel, rows, scales.ways)
                _draw_wavefronts(wavefronts, panel, rows, scales.wavefronts)
            else:
                _draw_nothing(names, cells, ways, wavefronts)
            verdict = textwrap.fill(analysis.verdict, 165)
            names.set_title(verdict, loc="left", fontsize=11, fontweight="bold", pad=24)
        _draw_legend(figure.add_subplot(grid[1, :]))
    return figure


def _frame(axes: Axes, rows: int) -> None:
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _draw_names(axes: Axes, panel: Sequence[HeatRow], rows: int) -> None:
    _frame(axes, rows)
    axes.axis("off")
    axes.set_xlim(0, 1)
    for y, row in enumerate(panel):
        clean = row.answer == "clean"
        axes.text(0, y - 0.02, row.title, va="bottom", fontsize=9, fontweight="normal" if clean else "bold")
        axes.text(0, y + 0.06, textwrap.shorten(row.site.source, 50, placeholder="..."), va="top", **CODE)


def _draw_nothing(names: Axes, *others: Axes) -> None:
    """An empty side."""
    names.text(0, 0, heat.NOTHING, va="center", fontsize=9)
    for axes in others:
        axes.axis("off")


def _draw_cells(axes: Axes, panel: Sequence[HeatRow], rows: int) -> None:
    from matplotlib.collections import PolyCollection

    _frame(axes, rows)
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(-0.5, BANKS - 0.5)
    axes.xaxis.tick_top()
    axes.set_xticks(range(BANKS))
    axes.tick_params(axis="x", length=0, labelsize=7, pad=1)
    axes.set_xlabel("bank")
    axes.xaxis.set_label_position("top")

    drawn = [(y, row.use) for y, row in enumerate(panel) if row.use is not None]
    places = [(y, bank) for y, _ in drawn for bank in range(BANKS)]
    words = np.concatenate([use.words for _, use in drawn]) if drawn else np.zeros(0)
    busy = np.concatenate([use.busy for _, use in drawn]) if drawn else np.zeros(0)
    ways = np.concatenate([use.ways for _, use in drawn]) if drawn else np.zeros(0, int)

    colours, scale = count_colours()
    cells = PolyCollection([_box(y, bank) for y, bank in places], array=words, cmap=colours, norm=scale)
    cells.set_edgecolor([CONFLICT if met > 1 else FAINT for met in ways])
    cells.set_linewidth([1.4 if met > 1 else 0.6 for met in ways])
    shares = PolyCollection(
        [_bar(y, bank, of) for (y, bank), of in zip(places, busy, strict=True)], facecolors=IDEAL
    )
    tracks = PolyCollection([_bar(y, bank, 1) for y, bank in places], facecolors=FAINT)
    axes.add_collection(cells)
    axes.add_collection(tracks)
    axes.add_collection(shares)
    for (y, bank), met, count in zip(places, ways, words, strict=True):
        if met > 1:
            ink = ink_on(colour_of_count(count))
            axes.text(
                bank, y + MIDDLE, str(met), ha="center", va="center", fontsize=8, fontweight="bold", color=ink
            )
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


def _draw_ways(axes: Axes, panel: Sequence[HeatRow], rows: int, most: int) -> None:
    _frame(axes, rows)
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
    _top_axis(axes, heat.WAYS, most * 1.9)


def _draw_wavefronts(axes: Axes, panel: Sequence[HeatRow], rows: int, most: float) -> None:
    _frame(axes, rows)
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
    _top_axis(axes, heat.WAVEFRONTS, most * 2.1)


def _top_axis(axes: Axes, label: str, limit: float) -> None:
    axes.set_xlim(0, limit)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_visible(True)
    axes.set_xlabel(label)
    axes.xaxis.set_label_position("top")


def _draw_legend(axes: Axes) -> None:
    axes.axis("off")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 1)
    from matplotlib.patches import Rectangle

    for step in range(6):
        count = 2**step
        axes.add_patch(Rectangle((1 + 2.2 * step, 0.45), 2.2, 0.4, color=colour_of_count(count)))
        axes.text(
            2.1 + 2.2 * step, 0.65, str(count), ha="center", va="center", color=ink_on(colour_of_count(count))
        )
    axes.text(1, 0.3, heat.SCALE, va="top")
    axes.text(34, 0.65, heat.SHARE, va="center")
    axes.text(34, 0.3, heat.MARK, va="top")
    for x, (label, colour, hatch) in zip(
        (70, 76, 90), zip(heat.PARTS, (IDEAL, EXTRA, CONFLICT), ("", "", "////"), strict=True), strict=True
    ):
        axes.add_patch(Rectangle((x, 0.5), 1.2, 0.3, facecolor=colour, hatch=hatch, edgecolor="white"))
        axes.text(x + 1.6, 0.65, label, va="center")
    axes.text(70, 0.3, heat.WAVEFRONTS, va="top")
