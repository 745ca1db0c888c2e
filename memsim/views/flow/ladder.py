"""The flow of memory as a ladder, the same for every format.

Global arrays stand left, registers in the middle, shared arrays right; each access is a rung.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsim.analysis import Analysis
from memsim.pictures.data_flow import FlowNode, flow
from memsim.views.labels import access, count, file_names, percent, size

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
    graph = flow(analysis)
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
