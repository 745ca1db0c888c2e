"""A figure of one request to global memory: its lines, their sectors, and the bytes that are used."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from memsim.arch.units import LINE, SECTOR
from memsim.pictures.worst_request import GlobalRequest
from memsim.views.canvas import new_figure, style
from memsim.views.colours import CONFLICT, COUNTS, FAINT, IDEAL
from memsim.views.explain.figure import write_head
from memsim.views.explain.sentences import line_name, sentences
from memsim.views.labels import lane_names
from memsim.views.tables import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USED = COUNTS[2]
WIDTH, ROW_INCHES = 16.0, 0.27
CELL = 0.86
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
    figure = new_figure(WIDTH, height)
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
                    (sector * SECTOR, line - CELL / 2),
                    SECTOR,
                    CELL,
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
