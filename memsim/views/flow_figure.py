"""The flow of memory between global arrays, registers and shared arrays: as a ladder, and as a figure of it.

Global arrays stand left, registers in the middle, shared arrays right; each access is a rung. The ladder is
the same for every format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memsim.analysis import Analysis
from memsim.pictures.data_flow import FlowNode
from memsim.pictures.data_flow import flow as flow_graph
from memsim.views.canvas import CONFLICT, EXTRA, FAINT, IDEAL, UNUSED, new_figure, style
from memsim.views.labels import access, count, file_names, percent, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDES = ("global", "shared")
CAPTIONS = ("global arrays", "registers", "shared arrays")
UNNAMED = {"constant": "constants"}
KINDS = {
    "good": "at the ideal",
    "above": "above the ideal, no conflict",
    "waste": "bank conflicts, or unneeded sectors",
    "unknown": "not analyzed",
}


@dataclass(frozen=True, slots=True)
class Box:
    """An array: its side, its name, and the rows that it spans."""

    side: str
    name: str
    rows: range


@dataclass(frozen=True, slots=True)
class Rung:
    """An access site: from and to a side or the registers, the row at each end, its kind and its texts.

    Rows are those of the array's side; between two arrays (`cp.async`) both ends have one.
    """

    site: int
    source: str
    target: str
    source_row: int
    target_row: int
    kind: str
    label: str
    figures: str
    share: float | None

    @property
    def side(self) -> str:
        """The side on which the label stands."""
        return self.source if self.source in SIDES else self.target


@dataclass(frozen=True, slots=True)
class Ladder:
    """Boxes and rungs; `rows` is the height of the higher side."""

    boxes: tuple[Box, ...]
    rungs: tuple[Rung, ...]
    rows: int


def ladder(analysis: Analysis) -> Ladder:
    """The flow graph laid out; arrays in the order in which the sites name them."""
    graph = flow_graph(analysis)
    edges = sorted(graph.edges(keys=True, data=True), key=lambda edge: edge[2])
    rows: dict[tuple[FlowNode, int], int] = {}
    boxes, height = [], 0
    for side in SIDES:
        places = dict.fromkeys(place for edge in edges for place in edge[:2] if _side(place) == side)
        row = 0
        for place in places:
            sites = [site for source, target, site, _ in edges if place in (source, target)]
            boxes.append(
                Box(side, place.name or UNNAMED.get(place.space, "unknown"), range(row, row + len(sites)))
            )
            rows |= {(place, site): row + i for i, site in enumerate(sites)}
            row += len(sites) + 1  # a gap between two arrays
        height = max(height, row - 1)
    rungs = [_rung(analysis, rows, *edge) for edge in edges]
    return Ladder(tuple(boxes), tuple(rungs), height)


def _side(place: FlowNode) -> str:
    """Where a place stands: local memory, constants and textures stand with the global arrays."""
    return "global" if place.space in ("local", "constant", "texture") else place.space


def _rung(
    analysis: Analysis,
    rows: dict[tuple[FlowNode, int], int],
    source: FlowNode,
    target: FlowNode,
    site: int,
    edge: dict[str, Any],
) -> Rung:
    row = analysis.sites[site]
    files = file_names(s.file for s in analysis.sites)
    place = f"{files[row.file]}:{row.line}" if len(files) > 1 else f"line {row.line}"
    ends = [rows.get((end, site)) for end in (source, target)]
    known = [end for end in ends if end is not None]
    figures = "not analyzed"
    if edge["bytes"] is not None:
        figures = f"{size(edge['bytes'])}, {count(edge['requests'], 'request')}"
    if edge["efficiency"] is not None:
        figures += f", {percent(edge['efficiency'])} of ideal"
    return Rung(
        site=site,
        source=_side(source),
        target=_side(target),
        source_row=ends[0] if ends[0] is not None else known[0],
        target_row=ends[1] if ends[1] is not None else known[0],
        kind=_kind(row.unresolved, row.space, edge),
        label=f"{place}: {access(row).removeprefix(row.space + ' ')}",
        figures=figures,
        share=edge["efficiency"],
    )


def _kind(unresolved: str | None, space: str, edge: dict[str, Any]) -> str:
    if unresolved is not None:
        return "unknown"
    if edge["efficiency"] in (None, 1.0):
        return "good"
    return "above" if space == "shared" and not edge["conflicts"] else "waste"


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
