"""`analysis.plot`: the pictures of an analysis as matplotlib figures, for files and notebooks.

They are the page's (`memsim.views.report`) in cells and words; what else belongs to a request, its conflict
graph for one, the page has. A notebook shows them; `figure.savefig` writes them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis, SiteCounts
from memsim.arch.units import BANKS, LINE, SECTOR, WARP
from memsim.errors import MemsimError, short_repr
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, take_apart
from memsim.views.analyze.costs import worst_site
from memsim.views.canvas import (
    COUNTS,
    IDEAL,
    TROUBLE,
    colour_of_count,
    colour_of_trouble,
    ink_on,
    new_figure,
    scale_of,
    style,
)
from memsim.views.explain.sentences import Cell, lane_cells, line_cells, line_name, sentences, word_name
from memsim.views.heatmap import heat_rows as heat
from memsim.views.heatmap.heat_rows import HeatRow, heat_panels
from memsim.views.labels import access, dim3, lane_names, ranges
from memsim.views.screen import cut_to_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 16.0  # inches
ROW = 0.45  # inches of a row with two lines of text
FLAT = 0.27  # of a row with one
CODE = 58  # characters of source beside a row
LANES = 28  # characters of the lanes in a sector
FEWEST = 12  # rows of a panel, so that few are not tall


@dataclass(frozen=True)
class Plots:
    """Pictures of one analysis. All of them raise a `MemsimError` where matplotlib is not installed."""

    analysis: Analysis

    def __call__(self) -> Figure:
        """The picture of what is worst: the heatmap of the banks, or without shared memory the worst request.

        Raises:
            MemsimError: nothing was counted, or matplotlib is not installed.
        """
        uses_banks = any(site.wavefronts is not None for site in self.analysis.sites)
        return self.heatmap() if uses_banks else self.lanes()

    def heatmap(self, compare: Analysis | None = None) -> Figure:
        """How each shared access site uses the banks; with `compare`, both on one scale.

        Behind each panel's image are the ways of the worst requests, by row and bank.

        Raises:
            MemsimError: none of the kernels touches shared memory, or `compare` is not an analysis.
        """
        if compare is not None and not isinstance(compare, Analysis):
            hint = "heatmap(other) takes the result of memsim.analyze"
            raise MemsimError(
                f"a heatmap can only be compared with an analysis, not with {short_repr(compare)}", hint=hint
            )
        analyses = [self.analysis] if compare is None else [self.analysis, compare]
        panels = heat_panels(analyses)
        rows = [max(1, len(panel)) for panel in panels]
        figure = new_figure(WIDTH, ROW * sum(rows) + 1.1 * len(panels) + 0.5)
        with style():
            axes = figure.subplots(len(panels), height_ratios=rows, squeeze=False)[:, 0]
            for each, analysis, panel in zip(axes, analyses, panels, strict=True):
                each.set_title(textwrap.fill(analysis.verdict, 150), loc="left", fontsize=11, weight="bold")
                _draw_heat(each, panel)
            figure.supxlabel(heat.SCALE, fontsize=9)
        return figure

    def lanes(self, site: int | SiteCounts | None = None) -> Figure:
        """The worst request of a site, lane by lane.

        `site`: one of `analysis.sites` or its index there, the worst if None.

        For shared memory the lanes by the banks, and where their words lie; behind each image are the
        wavefronts. For global memory the lines, with the lanes of each sector; behind the image is a number
        for each byte: 0 not moved, 1 moved, 2 used.

        Raises:
            MemsimError: no such site, or it was not analyzed.
        """
        request = take_apart(self.analysis, worst_site(self.analysis) if site is None else site)
        rows = WARP if isinstance(request, SharedRequest) else len(request.lines)
        answer, *more = sentences(request)
        row = request.origin.row
        place = f"{self.analysis.trace.kernel}, line {row.line} (site {request.origin.site}): {access(row)}"
        story = "\n".join(textwrap.fill(text, 190) for text in more)
        figure = new_figure(WIDTH, FLAT * rows + 1.9 + 0.17 * story.count("\n"))
        with style():
            figure.suptitle(f"{answer}\n{place}   {row.source}", x=0.01, ha="left", weight="bold")
            if isinstance(request, SharedRequest):
                left, right = figure.subplots(1, 2)
                _draw_lanes(left, request)
                _draw_words(right, request)
            else:
                _draw_sectors(figure.subplots(), request)
            figure.supxlabel(story, x=0.01, ha="left", fontsize=9)
        return figure


def _draw_heat(axes: Axes, panel: Sequence[HeatRow]) -> None:
    if not panel:
        axes.axis("off")
        axes.text(0, 0.5, heat.NOTHING)
        return
    worst = [np.zeros(BANKS, int) if row.use is None else row.use.worst for row in panel]
    _draw_cells(axes, np.array(worst), TROUBLE)
    for (y, bank), met in np.ndenumerate(worst):
        if met > 1:
            _write(axes, bank, y, str(met), colour_of_trouble(met), weight="bold")
    for y, row in enumerate(panel):
        if row.use is None:
            axes.text(BANKS / 2, y, row.answer, ha="center", va="center", style="italic")
    axes.set_yticks(
        range(len(panel)),
        [f"{row.short_title}\n{textwrap.shorten(row.site.source, CODE, placeholder='...')}" for row in panel],
    )
    right = axes.secondary_yaxis("right")
    right.set_yticks(
        range(len(panel)), [f"{row.answer}\n{heat.WAVEFRONTS}: {row.wavefronts}" for row in panel]
    )
    right.tick_params(length=0)


def _draw_lanes(axes: Axes, request: SharedRequest) -> None:
    cells = lane_cells(request)
    _draw_words_of(axes, cells, [str(cell.wavefront) for cell in cells], WARP)
    threads = zip(request.origin.threads, request.active, strict=True)
    names = [f"{lane}  {dim3(thread)}" if on else "idle" for lane, (thread, on) in enumerate(threads)]
    axes.set_yticks(range(WARP), names)
    axes.set_ylabel("lane, and thread (x,y,z)")
    for lane in range(request.lanes, WARP, request.lanes):
        axes.axhline(lane - 0.5, color="black", linewidth=1)
    axes.set_title("The wavefront that serves each lane, at its bank (bold: it collides there)", loc="left")


def _draw_words(axes: Axes, request: SharedRequest) -> None:
    cells = line_cells(request)
    first = {cell.row: cell.word - cell.word % BANKS for cell in cells}
    _draw_words_of(axes, cells, [_short(cell.lanes) for cell in cells], len(first))
    names = [word_name(request.origin, range(first[row], first[row] + 1)) for row in range(len(first))]
    axes.set_yticks(range(len(first)), names)
    axes.set_ylim(max(FEWEST, len(first)) - 0.5, -0.5)
    axes.set_title("Position of the words (a row is 128 bytes), and the lanes that access them", loc="left")


def _draw_words_of(axes: Axes, cells: Sequence[Cell], texts: Sequence[str], rows: int) -> None:
    wavefronts = np.zeros((rows, BANKS), int)
    for cell in cells:
        wavefronts[cell.row, cell.bank] = cell.wavefront
    _draw_cells(axes, wavefronts, COUNTS)
    for cell, text in zip(cells, texts, strict=True):
        look = {"fontsize": 7 if len(text) < 3 else 5, "weight": "bold" if cell.collides else "normal"}
        _write(axes, cell.bank, cell.row, text, colour_of_count(cell.wavefront), **look)


def _draw_cells(axes: Axes, values: NDArray[np.int64], colours: Sequence[str]) -> None:
    """A row for each of `values`, a column for each bank, by a scale of 1 to 32; 0 is no cell."""
    cmap, norm = scale_of(colours)
    axes.imshow(values, cmap=cmap, norm=norm, aspect="auto", interpolation="none")
    axes.set_xticks(range(BANKS))
    axes.set_xticks(np.arange(BANKS + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(values) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(
        which="both", length=0, labelsize=7, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    axes.set_xlabel("bank")
    axes.xaxis.set_label_position("top")


def _write(axes: Axes, x: float, y: float, text: str, colour: str, **look: Any) -> None:
    """Text in the middle of a cell of this colour."""
    axes.text(x, y, text, color=ink_on(colour), ha="center", va="center", **{"fontsize": 7, **look})


def _short(lanes: Sequence[int]) -> str:
    """`0`, `0-15`, or `0+` for lanes that are not all neighbours."""
    text = ranges(lanes)
    return text if "," not in text else f"{lanes[0]}+"


def _draw_sectors(axes: Axes, request: GlobalRequest) -> None:
    from matplotlib.colors import ListedColormap

    moved = np.repeat(request.touched, SECTOR, axis=1)
    axes.imshow(
        moved.astype(int) + request.used,
        cmap=ListedColormap(["white", "#f7e0cf", COUNTS[2]]),
        vmin=0,
        vmax=2,
        aspect="auto",
        interpolation="none",
        extent=(0, LINE, len(request.lines) - 0.5, -0.5),
    )
    for line, sector in np.argwhere(request.touched).tolist():
        lanes = cut_to_width(lane_names(request.lanes_of_sector(line, sector)), LANES)
        axes.text((sector + 0.5) * SECTOR, line, lanes, ha="center", va="center", fontsize=7)
    axes.set_yticks(range(len(request.lines)), [line_name(request, n) for n in range(len(request.lines))])
    axes.set_yticks(np.arange(len(request.lines) + 1) - 0.5, minor=True)
    axes.set_xticks(range(0, LINE + 1, SECTOR))
    axes.grid(which="minor", axis="y", color="white", linewidth=2.5)
    axes.grid(which="major", axis="x", color=IDEAL)
    axes.tick_params(which="both", length=0)
    axes.set_title(
        "Bytes of each 128-byte line (dark: used, light: only moved), and the lanes in each 32-byte sector",
        loc="left",
    )
