"""Pictures of arrays, laid out for every format: the words of a shared array, each with its bank and the
thread that wrote it; and the flow of memory between global arrays, registers and shared arrays, as a ladder.

Global arrays stand left, registers in the middle, shared arrays right; each access is a rung.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from memsim.analysis import Analysis
from memsim.arch.units import BANKS, WARP
from memsim.bound import percent
from memsim.errors import MemsimError
from memsim.pictures.array_layouts import WordLayout, layouts
from memsim.pictures.data_flow import FlowNode
from memsim.pictures.data_flow import flow as flow_graph
from memsim.views.labels import access, count, file_names, size

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
    ends = [rows[end, site] for end in (source, target) if (end, site) in rows]  # of registers there is none
    figures = "not analyzed"
    if edge["bytes"] is not None:
        figures = f"{size(edge['bytes'])}, {count(edge['requests'], 'request')}"
    if edge["efficiency"] is not None:
        figures += f", {percent(edge['efficiency'])} of ideal"
    return Rung(
        site=site,
        source=_side(source),
        target=_side(target),
        source_row=ends[0],
        target_row=ends[-1],
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


def flow_lines(drawn: Ladder) -> Iterator[str]:
    """A line for each rung: `A -> registers  line 18: load 16 B  4 MiB, 262,144 requests`."""
    for rung in drawn.rungs:
        ends = _end(drawn, rung.source, rung.source_row), _end(drawn, rung.target, rung.target_row)
        yield f"{' -> '.join(ends)}  {rung.label}  {rung.figures}"


def _end(drawn: Ladder, side: str, row: int) -> str:
    """The array at an end of a rung, or the registers."""
    return next((box.name for box in drawn.boxes if box.side == side and row in box.rows), "registers")


MOST_ROWS, MOST_COLUMNS = 64, 144  # a picture shows the first of them and says so
CAPTION = "colour: bank; in a cell: warp:lane of the thread that wrote the word first"


def shown_part(layout: WordLayout, most_words: int = MOST_ROWS * MOST_COLUMNS) -> WordLayout:
    """The part of a layout that is shown: its first rows and columns, at least a row."""
    columns = min(layout.word.shape[1], MOST_COLUMNS)
    part = slice(max(1, min(MOST_ROWS, most_words // columns))), slice(columns)
    return replace(layout, word=layout.word[part], bank=layout.bank[part], writer=layout.writer[part])


def caption(layout: WordLayout, part: WordLayout) -> str:
    """`s_a: 8 rows of 128 words`, and which part of it is shown if not all is."""
    (rows, columns), (rows_shown, columns_shown) = layout.word.shape, part.word.shape
    kind = "words" if layout.declared else f"words, one in each of the {BANKS} banks"
    text = f"{layout.name}: {rows:,} {'row' if rows == 1 else 'rows'} of {columns:,} {kind}"
    limits = []
    if rows_shown < rows:
        limits.append("the first row" if rows_shown == 1 else f"the first {rows_shown} rows")
    if columns_shown < columns:
        limits.append(f"the first {columns_shown} words of {'it' if rows_shown == 1 else 'each'}")
    return f"{text} (shown: {', '.join(limits)})" if limits else text


def owner(writer: int) -> str:
    """`3:17` for lane 17 of warp 3; "" where nobody wrote."""
    return f"{writer // WARP}:{writer % WARP}" if writer >= 0 else ""


def layout_lines(layout: WordLayout) -> Iterator[str]:
    """What is drawn of an array, and the bank of each word of it, a line for each row."""
    part = shown_part(layout)
    yield f"The bank of each word of {caption(layout, part)}"
    for row in part.bank.tolist():
        yield "".join(f"{bank if bank >= 0 else '':>3}" for bank in row)


def array_named(analysis: Analysis, name: str | None) -> WordLayout:
    """The layout of the shared array of that name, of the first if None.

    Raises:
        MemsimError: no such array.
    """
    arrays = {each.name: each for each in layouts(analysis)}
    name = next(iter(arrays), "") if name is None else name
    if name in arrays:
        return arrays[name]
    raise MemsimError(
        f"{analysis.trace.kernel} accesses no shared array {name}".rstrip(),
        hint=f"there are {', '.join(arrays)}" if arrays else None,
    )
