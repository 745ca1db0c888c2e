"""Figures of one request: lanes by banks, where their words lie, and the conflict graph; lines and sectors.

The number in a cell is the wavefront that serves the lane.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memsim.arch.units import BANKS, LINE, SECTOR, WARP
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, conflict_graph
from memsim.views.canvas import (
    CODE,
    CONFLICT,
    COUNTS,
    FAINT,
    IDEAL,
    colour_of_count,
    count_colours,
    ink_on,
    new_figure,
    style,
)
from memsim.views.explain.sentences import Cell, lane_cells, line_cells, line_name, ring, sentences, word_name
from memsim.views.labels import access, dim3, lane_names, ranges
from memsim.views.screen import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH, HEIGHT = 16.5, 11.0
CELL = 0.9
FEWEST_LINES, MOST_LINES = 3, 20  # in parts of the picture's height; more lines get thinner


def lanes(kernel: str, request: SharedRequest) -> Figure:
    """The figure of a request of `kernel`.

    Behind the first collection of the first two panels are the wavefronts drawn.

    Raises:
        MemsimError: matplotlib is not installed.
    """
    figure = new_figure(WIDTH, HEIGHT)
    lines = len({cell.row for cell in line_cells(request)})
    share = max(FEWEST_LINES, min(lines, MOST_LINES))
    with style():
        grid = figure.add_gridspec(1, 2, left=0.075, right=0.985, top=0.88, bottom=0.17, wspace=0.17)
        right = grid[0, 1].subgridspec(2, 1, height_ratios=[share, 30 - share], hspace=0.18)
        _draw_lanes(figure.add_subplot(grid[0, 0]), request)
        _draw_lines(figure.add_subplot(right[0, 0]), request)
        _draw_graph(figure.add_subplot(right[1, 0]), request)
        _draw_legend(figure.add_axes((0.665, 0.926, 0.32, 0.02)))
        write_head(figure, kernel, request)
        story = [textwrap.fill(text, 200) for text in sentences(request)[1:]]
        figure.text(0.012, 0.14, "\n".join(story), va="top", linespacing=1.35)
    return figure


def write_head(figure: Figure, kernel: str, request: SharedRequest | GlobalRequest) -> None:
    """The answer, and which access of the kernel it is about."""
    row, inch = request.origin.row, 1 / figure.get_figheight()
    place = f"{kernel}, line {row.line} (site {request.origin.site}): {access(row)}"
    figure.text(0.012, 1 - 0.25 * inch, sentences(request)[0], fontsize=14, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.62 * inch, place, va="top")
    figure.text(0.012 + 0.0049 * len(place), 1 - 0.625 * inch, row.source, va="top", **CODE)


def _draw_lanes(axes: Axes, request: SharedRequest) -> None:
    cells = lane_cells(request)
    _banks(axes, "lane, and thread (x,y,z)", WARP)
    names = (f"{lane}  {dim3(thread)}" for lane, thread in enumerate(request.origin.threads))
    axes.set_yticks(
        range(WARP), [name if on else "idle" for name, on in zip(names, request.active, strict=True)]
    )
    _draw_cells(axes, cells, [str(cell.wavefront) for cell in cells])
    for lane in range(request.lanes, WARP, request.lanes):
        axes.axhline(lane - 0.5, color="black", linewidth=1)
    for first in range(0, WARP, request.lanes):
        group = f"group {first // request.lanes + 1}"
        axes.text(31.7, first + request.lanes / 2 - 0.5, group, rotation=270, va="center", fontsize=8)
    axes.set_title("Bank of each lane, and the wavefront that serves it", loc="left", pad=26)


def _draw_lines(axes: Axes, request: SharedRequest) -> None:
    cells = line_cells(request)
    rows = max(cell.row for cell in cells) + 1
    _banks(axes, "", rows)
    first = {cell.row: cell.word - cell.word % BANKS for cell in cells}
    names = [word_name(request.origin, range(first[row], first[row] + 1)) for row in range(rows)]
    axes.set_yticks(range(rows), names, fontsize=7 if rows <= MOST_LINES else 6)
    _draw_cells(axes, cells, [_short(cell.lanes) for cell in cells])
    axes.set_title(
        "Position of the words (a row is 128 bytes), and the lanes that access them", loc="left", pad=26
    )


def _banks(axes: Axes, label: str, rows: int) -> None:
    axes.set_xlim(-0.5, BANKS - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks(range(BANKS))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=7, pad=2)
    axes.set_xlabel("bank")
    axes.xaxis.set_label_position("top")
    axes.set_ylabel(label)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for bank in range(BANKS + 1):
        axes.axvline(bank - 0.5, color=FAINT, linewidth=0.4, zorder=0)
    for row in range(rows + 1):
        axes.axhline(row - 0.5, color=FAINT, linewidth=0.4, zorder=0)


def _draw_cells(axes: Axes, cells: Sequence[Cell], texts: Sequence[str]) -> None:
    from matplotlib.collections import PolyCollection

    colours, scale = count_colours()
    half = CELL / 2
    boxes = [
        [
            (cell.bank + x, cell.row + y)
            for x, y in ((-half, -half), (half, -half), (half, half), (-half, half))
        ]
        for cell in cells
    ]
    drawn = PolyCollection(boxes, array=[cell.wavefront for cell in cells], cmap=colours, norm=scale)
    drawn.set_edgecolor([CONFLICT if cell.collides else "none" for cell in cells])
    drawn.set_linewidth(1.6)
    axes.add_collection(drawn)
    for cell, text in zip(cells, texts, strict=True):
        ink = ink_on(colour_of_count(cell.wavefront))
        size = 7 if len(text) < 3 else 5
        axes.text(cell.bank, cell.row, text, ha="center", va="center", fontsize=size, color=ink)


def _draw_legend(axes: Axes) -> None:
    """What a colour and a rim say."""
    from matplotlib.patches import Rectangle

    axes.set_xlim(0, 16)
    axes.set_ylim(0, 1)
    axes.axis("off")
    axes.text(-0.2, 0.5, "served in wavefront", ha="right", va="center")
    steps = [2**step for step in range(len(COUNTS))]
    for x, wavefront in enumerate(steps):
        colour = colour_of_count(wavefront)
        axes.add_patch(Rectangle((x, 0), 1, 1, color=colour))
        axes.text(x + 0.5, 0.5, str(wavefront), ha="center", va="center", fontsize=7, color=ink_on(colour))
    rim = len(steps) + 0.6
    axes.add_patch(Rectangle((rim, 0.05), 0.9, 0.9, fill=False, edgecolor=CONFLICT, linewidth=1.6))
    axes.text(rim + 1.2, 0.5, "collides in its bank", va="center")


def _draw_graph(axes: Axes, request: SharedRequest) -> None:
    from matplotlib.collections import LineCollection

    graph, places = conflict_graph(request), ring()
    axes.set_xlim(-1.15, 1.15)
    axes.set_ylim(-1.15, 1.15)
    axes.set_aspect("equal")
    axes.axis("off")
    edges = [(places[a], places[b]) for a, b in graph.edges]
    axes.add_collection(LineCollection(edges, colors=CONFLICT, linewidths=1.2 if len(edges) < 100 else 0.5))
    for lane, place in enumerate(places):
        wavefront = int(request.wavefront[lane])
        colour = colour_of_count(wavefront) or "#ffffff"
        axes.scatter(*place, s=190, color=colour, edgecolor="black" if wavefront else FAINT, zorder=3)
        axes.text(*place, str(lane), ha="center", va="center", fontsize=7, color=ink_on(colour), zorder=4)
    if not edges:
        axes.text(0, 0, "no two lanes conflict", ha="center", va="center")
    pairs = f": {len(edges)} pairs of lanes conflict" if edges else ""
    axes.set_title(f"Conflict graph{pairs}", loc="center")


def _short(lanes: Sequence[int]) -> str:
    """`0`, `0-15`, or `0+` for lanes that are not all neighbours."""
    text = ranges(lanes)
    return text if "," not in text else f"{lanes[0]}+"


USED = COUNTS[2]
SECTORS_WIDTH, ROW_INCHES = 16.0, 0.27
SECTOR_CELL = 0.86
MOST_CHARACTERS = 28  # that fit into a sector


def sectors(kernel: str, request: GlobalRequest) -> Figure:
    """The figure of a request of `kernel`.

    Behind the first image is a number for each byte: 0 not moved, 1 moved, 2 used.

    Raises:
        MemsimError: matplotlib is not installed.
    """
    rows = len(request.lines)
    text = [textwrap.fill(sentence, 190) for sentence in sentences(request)[1:]]
    height = 2.5 + ROW_INCHES * rows + 0.2 * len("\n".join(text).splitlines())
    figure = new_figure(SECTORS_WIDTH, height)
    with style():
        bottom = (0.95 + 0.2 * len("\n".join(text).splitlines())) / height
        axes = figure.add_axes((0.12, bottom, 0.72, ROW_INCHES * rows / height))
        _draw_bytes(axes, request)
        _draw_bars(
            figure.add_axes((0.88, bottom + (ROW_INCHES * rows - 0.7) / height, 0.1, 0.7 / height)), request
        )
        write_head(figure, kernel, request)
        figure.text(0.012, bottom - 0.62 / height, "\n".join(text), va="top", linespacing=1.35)
    return figure


def _draw_bytes(axes: Axes, request: GlobalRequest) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    moved = np.repeat(request.touched, SECTOR, axis=1)
    axes.imshow(
        moved.astype(int) + request.used,
        cmap=ListedColormap(["white", "#f7e0cf", USED]),
        vmin=0,
        vmax=2,
        aspect="auto",
        interpolation="none",
        extent=(0, LINE, len(request.lines) - 0.5, -0.5),
    )
    for line in range(len(request.lines) + 1):
        axes.axhline(line - 0.5, color="white", linewidth=2.5, zorder=2)
    for line in range(len(request.lines)):
        for sector in range(LINE // SECTOR):
            touched = bool(request.touched[line, sector])
            whole = bool(request.used[line, sector * SECTOR : (sector + 1) * SECTOR].all())
            axes.add_patch(
                Rectangle(
                    (sector * SECTOR, line - SECTOR_CELL / 2),
                    SECTOR,
                    SECTOR_CELL,
                    fill=False,
                    edgecolor=FAINT if not touched else IDEAL if whole else CONFLICT,
                    linewidth=1.2 if touched else 0.5,
                    zorder=3 if touched else 2,
                )
            )
            if touched:
                lanes = cut(lane_names(request.lanes_of_sector(line, sector)), MOST_CHARACTERS)
                axes.text((sector + 0.5) * SECTOR, line, lanes, ha="center", va="center", fontsize=7)
    axes.set_yticks(
        range(len(request.lines)), [line_name(request, line) for line in range(len(request.lines))]
    )
    axes.set_xticks(range(0, LINE + 1, SECTOR))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.set_xlabel(
        "byte of the 128-byte line; each box is a 32-byte sector with the lanes that access it", labelpad=6
    )
    axes.xaxis.set_label_position("top")
    for spine in axes.spines.values():
        spine.set_visible(False)
    for x, colour, label in (
        (0, USED, "used bytes"),
        (28, "#f7e0cf", "moved but unused"),
        (76, "white", "not moved"),
    ):
        y = len(request.lines) - 0.5 + 0.75
        axes.add_patch(Rectangle((x, y), 3, 0.5, facecolor=colour, edgecolor=IDEAL, clip_on=False))
        axes.text(x + 4, y + 0.27, label, va="center")


def _draw_bars(axes: Axes, request: GlobalRequest) -> None:
    bars = axes.barh([0, 1], [request.sectors, request.ideal_sectors], height=0.6, color=[CONFLICT, IDEAL])
    if request.sectors == request.ideal_sectors:
        bars[0].set_color(IDEAL)
    axes.set_yticks([0, 1], ["sectors", "ideal"])
    axes.set_ylim(1.5, -0.5)
    axes.set_xticks([])
    axes.set_xlim(0, max(request.sectors, 1) * 1.4)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0)
    for y, count in enumerate((request.sectors, request.ideal_sectors)):
        axes.annotate(str(count), (count, y), (3, 0), textcoords="offset points", va="center")
