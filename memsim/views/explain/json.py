"""A request taken apart, as plain values: what `memsim explain --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta

from memsim.arch.units import LINE, SECTOR
from memsim.counts import SiteCounts
from memsim.document import Count, Document, DocumentPart, Line, Texts, plain
from memsim.launch import Natural
from memsim.pictures.worst_request import GlobalRequest, SharedRequest
from memsim.views.explain.sentences import line_name, sentences, word_name

Lanes = tuple[Natural, ...]


class ExplainedLane(DocumentPart, frozen=True, kw_only=True):
    """An active lane. address: the first byte that it accesses."""

    lane: Natural
    thread: tuple[Natural, Natural, Natural]
    address: int
    group: Annotated[Count, Meta(description="lanes that are served together, from 1; shared memory only")]
    wavefront: Annotated[Count, Meta(description="which one serves it, from 1; shared memory only")]


class ExplainedWords(DocumentPart, frozen=True, kw_only=True):
    """Words side by side, the lanes that want them, and the wavefront that serves these."""

    name: str
    first: Annotated[Natural, Meta(description="number of the first word of 4 bytes")]
    lanes: Lanes
    wavefront: Natural


class ExplainedCollision(DocumentPart, frozen=True, kw_only=True):
    """What meets in the same banks."""

    group: Natural
    banks: Lanes
    words: tuple[ExplainedWords, ...]


class ExplainedLine(DocumentPart, frozen=True, kw_only=True):
    """A line of 128 bytes that is touched."""

    name: str
    sectors: Annotated[tuple[Lanes, ...], Meta(description="the lanes that touch each of its four sectors")]
    bytes_used: Natural


class RequestDocument(Document, frozen=True, kw_only=True):
    """A request, lane by lane."""

    kernel: str
    answer: Line
    why: Texts
    site: Annotated[Natural, Meta(description="the number of its access in the analysis")]
    counts: Annotated[SiteCounts, Meta(description="what this access costs in the whole launch")]
    block: Annotated[tuple[Natural, Natural, Natural], Meta(description="which made it first")]
    warp: Natural
    times: Annotated[Natural, Meta(description="how often the launch makes a request like it")]
    distinct: Annotated[Natural, Meta(description="how many different requests the access makes")]
    wavefronts: Annotated[Count, Meta(description="of this request; shared memory only, as the next two")]
    conflicts: Count
    ways: Count
    sectors: Annotated[Count, Meta(description="of this request; global and local memory only, as the next")]
    ideal: Annotated[Natural, Meta(description="the fewest wavefronts or sectors for the same bytes")]
    lanes: tuple[ExplainedLane, ...]
    collisions: tuple[ExplainedCollision, ...]
    lines: tuple[ExplainedLine, ...]
    uncertain: Annotated[Texts, Meta(description="why the launch may make other requests")]


def request_document(kernel: str, request: SharedRequest | GlobalRequest) -> dict[str, Any]:
    """A request of a kernel as plain values."""
    origin, answer, *why = request.origin, *sentences(request)
    shared = request if isinstance(request, SharedRequest) else None
    sectors = request if isinstance(request, GlobalRequest) else None
    return plain(
        RequestDocument(
            kernel=kernel,
            answer=answer,
            why=tuple(why),
            site=origin.site,
            counts=origin.row,
            block=origin.block,
            warp=origin.warp,
            times=origin.times,
            distinct=origin.distinct,
            wavefronts=None if shared is None else shared.wavefronts,
            conflicts=None if shared is None else shared.conflicts,
            ways=None if shared is None else shared.ways,
            sectors=None if sectors is None else sectors.sectors,
            ideal=request.ideal if isinstance(request, SharedRequest) else request.ideal_sectors,
            lanes=tuple(
                ExplainedLane(
                    lane=lane,
                    thread=origin.threads[lane],
                    address=int(request.addresses[lane]),
                    group=None if shared is None else int(shared.group[lane]),
                    wavefront=None if shared is None else int(shared.wavefront[lane]),
                )
                for lane in range(len(request.active))
                if request.active[lane]
            ),
            collisions=() if shared is None else tuple(_collisions(shared)),
            lines=() if sectors is None else tuple(_lines(sectors)),
            uncertain=origin.uncertain,
        )
    )


def _collisions(request: SharedRequest) -> Iterable[ExplainedCollision]:
    for meeting in request.collisions():
        words = (
            ExplainedWords(
                name=word_name(request.origin, seat.words),
                first=seat.words.start,
                lanes=seat.lanes,
                wavefront=seat.wavefront,
            )
            for seat in meeting.seats
        )
        yield ExplainedCollision(group=meeting.group, banks=tuple(meeting.banks), words=tuple(words))


def _lines(request: GlobalRequest) -> Iterable[ExplainedLine]:
    for number in range(len(request.lines)):
        sectors = (tuple(request.lanes_of_sector(number, sector)) for sector in range(LINE // SECTOR))
        yield ExplainedLine(
            name=line_name(request, number),
            sectors=tuple(sectors),
            bytes_used=int(request.used[number].sum()),
        )
