"""Suggestions as `memsim suggest --json` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from memsim.bound import BoundFigures
from memsim.document import LEFT_OUT, Chip, Count, CountChange, Dim3, Document, DocumentPart, Texts
from memsim.estimated_time import EstimatedTime
from memsim.launch import Natural, Positive
from memsim.suggest.edit import ChangedLine
from memsim.suggest.global_accesses import ArrayOfStructs, Staging, Wider
from memsim.suggest.maps import Map, Padding
from memsim.suggest.proposals import Proposal, Split
from memsim.suggest.prove import Proof
from memsim.suggest.threads import Remapped, Renumbering

OfArrays = Annotated[dict[str, Natural], Meta(description="wavefronts by array")]


class PaddingPart(DocumentPart, frozen=True, kw_only=True, tag_field="kind", tag="padding"):
    """A layout with bytes after each row."""

    every: Annotated[Natural, Meta(description="bytes of a row")]
    by: Annotated[Natural, Meta(description="bytes after each row")]


class SwizzlePart(DocumentPart, frozen=True, kw_only=True, tag_field="kind", tag="swizzle"):
    """A layout that changes bits of a byte's number by XOR."""

    every: Annotated[Natural, Meta(description="bytes of a row")]
    bits: Annotated[Natural, Meta(description="how many are changed")]
    base: Annotated[Natural, Meta(description="the lowest of them, of the byte's number")]


Change = PaddingPart | SwizzlePart
Lines = Annotated[tuple[ChangedLine, ...], Meta(description="of the source; empty: to be written by hand")]


class ProposalPart(DocumentPart, frozen=True, kw_only=True):
    """Another layout of an array."""

    change: Change
    wavefronts: Natural
    copied_sectors: CountChange
    certain: bool
    extra_bytes: int
    resident_blocks: CountChange
    lines: Lines
    replayed: Annotated[Count, Meta(description="wavefronts counted after compilation; null: not compiled")]


class ArrayPart(DocumentPart, frozen=True, kw_only=True):
    """A shared array."""

    name: str
    bytes: Natural
    wavefronts: Natural
    conflicts: Natural
    least: Annotated[Natural, Meta(description="wavefronts that any layout takes")]
    layouts_tried: Natural
    why_not: Annotated[str, Meta(description="why there is no proposal")]
    proposals: Annotated[tuple[ProposalPart, ...], Meta(description="the best first")]


class ProofPart(DocumentPart, frozen=True, kw_only=True):
    """A change, compiled and replayed."""

    proposals: Annotated[tuple[Positive, ...], Meta(description="their numbers, from 1")]
    holds: Annotated[bool, Meta(description="counted as forecast")]
    before: OfArrays
    forecast: OfArrays
    counted: OfArrays
    diff: Annotated[str, Meta(description="of the source")]


class RemappedPart(DocumentPart, frozen=True, kw_only=True):
    """Other threads for the work."""

    name: str
    block: Dim3
    sectors: CountChange
    wavefronts: CountChange
    lines: Lines
    asks: Annotated[Texts, Meta(description="what the caller has to keep otherwise")]


class LanesPart(DocumentPart, frozen=True, kw_only=True):
    """Other numbers for the lanes."""

    name: str
    bits: tuple[Natural, ...]
    wavefronts: CountChange


class SplitPart(DocumentPart, frozen=True, kw_only=True):
    """An array whose accesses are better split."""

    array: str
    sites: Annotated[tuple[Natural, ...], Meta(description="their numbers in the analysis")]
    change: Change
    wavefronts: Natural
    extra_bytes: int


class StagingPart(DocumentPart, frozen=True, kw_only=True):
    """An access that is better brought through shared memory."""

    file: str
    line: Natural
    op: str
    array: str
    sectors: CountChange
    bytes: Annotated[Natural, Meta(description="of shared memory")]


class VerifiedCounter(DocumentPart, frozen=True):
    """A counter of both versions."""

    metric: str
    predicted_before: int | None
    measured_before: float | int | None
    predicted_after: int | None
    measured_after: float | int | None


class VerifiedPart(DocumentPart, frozen=True, kw_only=True):
    """Both versions measured on a GPU."""

    gpu: str
    ncu: str
    as_predicted: bool
    counters: tuple[VerifiedCounter, ...]


class SuggestionsDocument(Document, frozen=True, kw_only=True):
    """What would help a launch."""

    kernel: str
    arch: Chip
    arrays: Annotated[tuple[ArrayPart, ...], Meta(description="the one with the most conflicts first")]
    proof: Annotated[ProofPart | None, Meta(description="the best change; null: see unproven")]
    unproven: Annotated[str, Meta(description="why there is no proof")]
    least_cycles: Annotated[
        tuple[Natural, Natural] | None,
        Meta(description="lower bound of the launch before and after the best change; null: no change"),
    ]
    time: Annotated[EstimatedTime | None, Meta(description="of the launch as it is; null: no machine code")]
    time_after: Annotated[EstimatedTime | None, Meta(description="the same with the best change")]
    tried: Annotated[tuple[ProofPart, ...], Meta(description="other changes that were replayed")]
    remapped: tuple[RemappedPart, ...]
    lanes: Annotated[LanesPart | None, Meta(description="null: none is better")]
    split: tuple[SplitPart, ...]
    wider: Annotated[tuple[Wider, ...], Meta(description="accesses that can be merged")]
    bound: BoundFigures
    fields: Annotated[
        tuple[ArrayOfStructs, ...],
        Meta(description="arrays of structures that are better structures of arrays"),
    ]
    staging: tuple[StagingPart, ...]
    uncertain: Annotated[Texts, Meta(description="why some counts are not certain")]
    verified: Annotated[
        VerifiedPart | UnsetType, Meta(description="with --verify", extra_json_schema=LEFT_OUT)
    ] = UNSET


def proposal_part(each: Proposal, replayed: int | None) -> ProposalPart:
    """A proposal, and its wavefronts if it was replayed."""
    return ProposalPart(
        change=change_part(each.change),
        wavefronts=each.cost.most,
        copied_sectors=_change_of(each.now.sectors, each.cost.sectors),
        certain=each.cost.certain,
        extra_bytes=each.extra,
        resident_blocks=_change_of(*each.blocks),
        lines=() if each.edit is None else each.edit.lines,
        replayed=replayed,
    )


def _change_of(before: int, after: int) -> CountChange:
    return CountChange(before=before, after=after)


def change_part(change: Map) -> Change:
    """A layout."""
    return PaddingPart.of(change) if isinstance(change, Padding) else SwizzlePart.of(change)


def remapped_part(found: Remapped) -> RemappedPart:
    """Other threads."""
    return RemappedPart.of(
        found,
        block=found.job.launch.block,
        sectors=_change_of(*found.sectors),
        wavefronts=_change_of(*found.wavefronts),
        lines=found.edit.lines,
        asks=tuple(each.told for each in found.asks),
    )


def lanes_part(found: Renumbering) -> LanesPart:
    """Other lanes."""
    return LanesPart(name=found.name, bits=found.order, wavefronts=_change_of(*found.wavefronts))


def split_part(found: Split) -> SplitPart:
    """Accesses that are better split."""
    return SplitPart.of(
        found,
        array=found.tile.name,
        change=change_part(found.change),
        wavefronts=found.cost.most,
        extra_bytes=found.extra,
    )


def staging_part(found: Staging) -> StagingPart:
    """An access that is better staged."""
    return StagingPart.of(found.site, sectors=_change_of(*found.sectors), bytes=found.room)


def proof_part(proof: Proof, proposals: Sequence[Proposal]) -> ProofPart:
    """A proof; proposals are numbered as in `proposals`."""
    numbers = tuple(proposals.index(each) + 1 for each in proof.proposals)
    return ProofPart.of(proof, proposals=numbers, diff=proof.edit.diff)
