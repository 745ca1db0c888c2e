"""The analysis of a launch as `memsim analyze --json` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from memsim.bound import BoundFigures
from memsim.counts import Range, SiteCounts
from memsim.document import LEFT_OUT, Chip, Count, Dim3, Document, DocumentPart, Line, Texts
from memsim.launch import Natural, Positive
from memsim.trace.trace_data import Origin


class AnalyzedLaunch(DocumentPart, frozen=True, kw_only=True):
    """The shape of a launch, and how much of it was replayed."""

    grid: Dim3
    block: Dim3
    shared_bytes: Annotated[Natural, Meta(description="dynamic shared memory per block")]
    blocks: Annotated[Positive, Meta(description="blocks in the grid")]
    blocks_replayed: Annotated[Natural, Meta(description="blocks that the counts are for")]


class InstructionPart(DocumentPart, frozen=True, kw_only=True):
    """A machine instruction of a row."""

    address: Annotated[Natural, Meta(description="its first byte, from the kernel's")]
    text: str
    instructions: Natural
    requests: Count
    wavefronts: Count
    conflicts: Count
    ideal_wavefronts: Count
    max_ways: Count
    sectors: Count
    lines: Count
    unresolved: str | None


@dataclass(frozen=True, slots=True)
class SiteRow(SiteCounts):
    __doc__ = SiteCounts.__doc__

    sass: Annotated[
        tuple[InstructionPart, ...] | UnsetType,
        Meta(description="with --sass: the machine instructions of the row", extra_json_schema=LEFT_OUT),
    ] = UNSET


class AnalysisDocument(Document, frozen=True, kw_only=True):
    """What the accesses of a launch cost."""

    kernel: str
    arch: Chip
    code: Annotated[Origin | None, Meta(description="what was read; null: not known")]
    launch: AnalyzedLaunch
    verdict: Line
    bound: BoundFigures
    sites: Annotated[
        tuple[SiteRow, ...],
        Meta(description="one for each source line and kind of access; null: does not apply, or not known"),
    ]
    totals: Annotated[
        dict[str, Count], Meta(description="ncu metric name: predicted value; null: see undecided")
    ]
    undecided: Annotated[dict[str, Range], Meta(description="what is known of each total that is null")]
    uncounted: Annotated[
        dict[str, Positive],
        Meta(description="requests whose cost is unknown: name in the singular -> how many"),
    ]
    notes: Annotated[Texts, Meta(description="what else was seen")]
    uncertain: Annotated[Texts, Meta(description="why some counts are not certain")]
