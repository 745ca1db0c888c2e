"""Two analyses side by side as JSON."""

from __future__ import annotations

import json
from typing import Annotated

from msgspec import Meta

from memsim.counts import SiteCounts
from memsim.document import Document, DocumentPart, Line, Texts, one_of, plain
from memsim.guard.comparison import ORDER, ComparedAccess, Comparison, Comparisons, Side
from memsim.views.labels import json_number

Number = int | float | None


class SidePart(DocumentPart, frozen=True, kw_only=True):
    """A kernel, and its launch in a line."""

    name: str
    launch: str


class QuantityPart(DocumentPart, frozen=True, kw_only=True):
    """A quantity on both sides."""

    quantity: str
    a: Number
    b: Number


class TotalPart(DocumentPart, frozen=True, kw_only=True):
    """A counter on both sides."""

    metric: str
    a: int | None
    b: int | None


class LinePart(DocumentPart, frozen=True, kw_only=True):
    """An access on both sides."""

    change: Annotated[str | None, one_of(*ORDER, None, description="null: equal")]
    reason: str
    a: SiteCounts | None
    b: SiteCounts | None
    differences: tuple[QuantityPart, ...]


class KernelPart(DocumentPart, frozen=True, kw_only=True):
    """A kernel on both sides."""

    a: SidePart
    b: SidePart
    verdict: str
    differs: bool
    lines: Annotated[tuple[LinePart, ...], Meta(description="those that differ first")]
    totals: tuple[TotalPart, ...]


class ComparisonDocument(Document, frozen=True, kw_only=True):
    """Two kernels, revisions of a project, or analyses side by side."""

    verdict: Line
    only_a: Annotated[Texts, Meta(description="kernels that only A has")]
    only_b: Annotated[Texts, Meta(description="kernels that only B has")]
    not_compared: Annotated[Texts, Meta(description="kernels that one side or both could not analyze")]
    kernels: Annotated[tuple[KernelPart, ...], Meta(description="those that differ first")]


def render(comparisons: Comparisons) -> str:
    """Indented JSON."""
    document = ComparisonDocument(
        verdict=comparisons.verdict,
        only_a=comparisons.only_a,
        only_b=comparisons.only_b,
        not_compared=comparisons.failed,
        kernels=tuple(map(_kernel, comparisons.pairs)),
    )
    return json.dumps(plain(document), indent=2)


def _kernel(pair: Comparison) -> KernelPart:
    return KernelPart(
        a=_side(pair.a),
        b=_side(pair.b),
        verdict=pair.verdict,
        differs=pair.differs,
        lines=tuple(map(_line, pair.lines)),
        totals=tuple(TotalPart(metric=one.metric, a=one.before, b=one.now) for one in pair.totals),
    )


def _side(side: Side) -> SidePart:
    return SidePart(name=side.name, launch=side.launch)


def _line(line: ComparedAccess) -> LinePart:
    change = line.change
    figures = change.figures if change else ()
    return LinePart(
        change=change.kind if change else None,
        reason=change.reason if change else "",
        a=line.pair.before,
        b=line.pair.now,
        differences=tuple(
            QuantityPart(quantity=one.quantity, a=json_number(one.was), b=json_number(one.now))
            for one in figures
        ),
    )
