"""A figure of the flow of memory between global arrays, registers and shared arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memsim.views.canvas import CONFLICT, EXTRA, FAINT, IDEAL, UNUSED, new_figure, style
from memsim.views.flow.ladder import CAPTIONS, KINDS, Ladder, Rung

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW_INCHES = 15.0, 0.5
BOX = 1.5  # of a width of 20
LEFT, MIDDLE, RIGHT = BOX, 10.0, 20 - BOX
BAR = 0.6  # half of the registers' width
LOOKS = {"good": (IDEAL, "-"), "above": (EXTRA, "--"), "waste": (CONFLICT, "-"), "unknown": (FAINT, ":")}


def flow(name: str, ladder: Ladder) -> Figure:
    """The figure, entitled `name`. Its arrows have the number of the site as `gid`.

    Raises:
        MemsimError: matplotlib is not installed.
    """
    height = 1.7 + ROW_INCHES * ladder.rows
    figure = new_figure(WIDTH, height)
    with style():
        axes = figure.add_axes((0.01, 0.6 / height, 0.98, (height - 1.25) / height))
        axes.axis("off")
        axes.set_xlim(0, 20)
        axes.set_ylim(max(ladder.rows, 1) - 0.4, -1.0)
        _draw_boxes(axes, ladder)
        for rung in ladder.rungs:
            _draw_rung(axes, rung)
        figure.text(
            0.01, 1 - 0.15 / height, f"{name}: what moves where", fontsize=13, fontweight="bold", va="top"
        )
        _draw_legend(figure.add_axes((0.01, 0.1 / height, 0.98, 0.3 / height)))
    return figure


def _draw_boxes(axes: Axes, ladder: Ladder) -> None:
    from matplotlib.patches import Rectangle

    for x, caption in zip((LEFT / 2, MIDDLE, 20 - LEFT / 2), CAPTIONS, strict=True):
        axes.text(x, -0.75, caption, ha="center", fontweight="bold")
    boxes = [(0.0 if box.side == "global" else RIGHT, BOX, box.rows, box.name) for box in ladder.boxes]
    boxes.append((MIDDLE - BAR, 2 * BAR, range(ladder.rows), "registers"))
    for x, width, rows, name in boxes:
        axes.add_patch(
            Rectangle(
                (x, rows.start - 0.42), width, len(rows) - 0.16, facecolor=UNUSED, edgecolor=IDEAL, zorder=2
            )
        )
        middle = rows.start + len(rows) / 2 - 0.5
        turn = 90 if name == "registers" else 0
        axes.text(x + width / 2, middle, name, ha="center", va="center", rotation=turn, zorder=3)


def _draw_rung(axes: Axes, rung: Rung) -> None:
    from matplotlib.patches import FancyArrowPatch

    start, end = _ends(rung)
    colour, line = LOOKS[rung.kind]
    arrow = FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=13,
        color=colour,
        linestyle=line,
        linewidth=1.8,
        shrinkA=0,
        shrinkB=0,
    )
    arrow.set_gid(f"site-{rung.site}")
    axes.add_patch(arrow)
    left = rung.side == "global"
    x = LEFT + 0.15 if left else MIDDLE + BAR + 0.35
    y = rung.source_row if rung.source == rung.side else rung.target_row
    weight = "bold" if rung.kind == "waste" else "normal"
    axes.text(
        x, y - 0.06, f"{rung.label}    {rung.figures}", va="bottom", fontsize=8.5, fontweight=weight, zorder=4
    )


def _ends(rung: Rung) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the arrow begins and ends: at the boxes' inner edges, or at the registers."""
    sides = {"global": LEFT, "shared": RIGHT}
    at_registers = MIDDLE - BAR if rung.side == "global" else MIDDLE + BAR
    return (
        (sides.get(rung.source, at_registers), rung.source_row),
        (sides.get(rung.target, at_registers), rung.target_row),
    )


def _draw_legend(axes: Axes) -> None:
    axes.axis("off")
    axes.set_xlim(0, 20)
    axes.set_ylim(0, 1)
    for i, (kind, text) in enumerate(KINDS.items()):
        colour, line = LOOKS[kind]
        axes.plot([5 * i, 5 * i + 0.7], [0.5, 0.5], color=colour, linestyle=line, linewidth=2)
        axes.text(5 * i + 0.85, 0.5, text, va="center")
