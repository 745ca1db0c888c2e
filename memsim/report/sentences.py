"""A request in plain words: what it asks for, how it is served, what collides, and what would help.

In: a request taken apart (`memsim.details.request`). Out: sentences, the same for the terminal, the pictures
and the page. Left out on purpose: tables and pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memsim.details.request import GlobalRequest, Meeting, Origin, SharedRequest
from memsim.report.labels import dim3

BANKS = 32
WAVEFRONT_BYTES = 128
VERBS = {"load": "load", "ldmatrix": "load", "atomic": "update", "reduction": "update", "cp_async": "copy"}


def sentences(request: SharedRequest | GlobalRequest) -> list[str]:
    """What happens, the answer first."""
    if isinstance(request, SharedRequest):
        return [shared_answer(request), *_how_shared(request)]
    return [global_answer(request), *_how_global(request)]


def shared_answer(request: SharedRequest) -> str:
    """The answer in a line."""
    took = f"{_count(request.wavefronts, 'wavefront')} for this request"
    if request.conflicts:
        needed = request.wavefronts - request.conflicts
        return f"{request.ways}-way bank conflict: {took} instead of {needed}."
    if request.wavefronts > 1:
        return f"No bank conflict: {took}, one for each group of lanes."
    return f"No bank conflict: {took}."


def _how_shared(request: SharedRequest) -> Iterator[str]:
    row = request.origin.row
    asked = len({word for lane in _lanes(request) for word in request.words(lane)})
    yield f"{_who(request.origin, len(_lanes(request)))} {asked} different words (4 bytes each)."
    yield _grouping(request)
    collisions = request.collisions()
    if collisions:
        yield from _collisions(request, collisions)
    else:
        yield "In each group every bank is asked for one word at most, so nothing has to wait."
    shared = max((len(seat.lanes) for meeting in request.meetings() for seat in meeting.seats), default=1)
    if request.shares and shared > 1:
        yield f"Lanes that want the same word share it at no cost (here up to {shared} lanes): that is no conflict."
    if request.wavefronts > request.conflicts + 1:
        yield _no_false_alarm(request, len(_lanes(request)) * row.width)
    free = request.wavefronts - request.conflicts - request.ideal
    if free > 0:
        yield (
            f"The same words would fit into {_count(request.ideal, 'wavefront')} if lanes that want the same word "
            "were neighbours in the warp. That is no conflict and no padding changes it; another order of the "
            "threads would."
        )


def _who(origin: Origin, lanes: int) -> str:
    row = origin.row
    verb = VERBS.get(row.op, "store")
    array = origin.array[0] or row.array or "shared memory"
    place = f"{'of' if verb == 'update' else 'from' if verb == 'load' else 'to'} {array}"
    return (
        f"Warp {origin.warp} of block {dim3(origin.block)}: {_count(lanes, 'lane')} {verb}{'s' * (lanes == 1)} "
        f"{_count(row.width, 'byte')} {'' if lanes == 1 else 'each '}{place},"
    )


def _grouping(request: SharedRequest) -> str:
    """Which rule grouped the lanes, and which merged the groups."""
    row = request.origin.row
    kind = f"A {row.width}-byte {row.op.replace('_', '.')}"
    if row.op in ("ldmatrix", "stmatrix"):
        return f"{row.op} is served in groups of 8 lanes, one for each matrix; each lane stands for a row of 16 bytes."
    if request.merged:
        return (
            f"{kind} is served in groups of {request.lanes // 2} lanes. Here every active lane i has lane "
            f"i^{request.merged} idle or at the same address (the pair rule), so two groups become one of "
            f"{request.lanes} lanes."
        )
    if request.lanes == BANKS:
        text = f"{kind} is served for the whole warp at once, as one group."
    else:
        text = (
            f"{kind} is served in groups of {request.lanes} lanes, because {request.lanes} x {row.width} bytes are "
            f"the {WAVEFRONT_BYTES} that 32 banks give in one wavefront."
        )
    if not request.shares:
        text += " Each lane counts for itself: equal addresses are not shared."
    return text


def _collisions(request: SharedRequest, collisions: Sequence[Meeting]) -> Iterator[str]:
    unit = "word" if request.shares else "lane"
    worst = [meeting for meeting in collisions if len(meeting.seats) == request.ways]
    banks = sorted({bank for meeting in worst for bank in meeting.banks})
    idle = BANKS - len({bank for meeting in request.meetings() for bank in meeting.banks})
    waste = f" while {_count(idle, 'bank')} {'stays' if idle == 1 else 'stay'} idle" if idle else ""
    yield (
        f"A bank gives one {unit} in a wavefront, and {request.ways} {unit}s meet in "
        f"{'each of the banks' if len(banks) > 1 else 'bank'} {ranges(banks)}, "
        f"so {request.ways - 1} of them {'waits' if request.ways == 2 else 'wait'}"
        f"{waste}."
    )
    first, second = worst[0].seats[:2]
    distance = abs(second.words.start - first.words.start)
    if distance:
        yield (
            f"For example {_lanes_text(first.lanes)} and {_lanes_text(second.lanes)}: words {first.words.start} and "
            f"{second.words.start} are {distance:,} words apart, a multiple of 32, so both lie in bank "
            f"{worst[0].banks.start}."
        )


def _no_false_alarm(request: SharedRequest, asked: int) -> str:
    row = request.origin.row
    groups = request.groups
    text = (
        f"Why {groups} wavefronts are no conflict by themselves: the lanes ask for {asked} bytes, a wavefront moves at "
        f"most {WAVEFRONT_BYTES}, and each of the {groups} groups gets a wavefront of its own."
    )
    if row.width >= 8 and not request.conflicts:
        text += f" A tool that divides wavefronts by requests calls this a {groups}-way conflict; it is none."
    return text


def global_answer(request: GlobalRequest) -> str:
    """The answer in a line."""
    moved, used = request.sectors * 32, request.bytes_used
    if request.sectors == request.ideal_sectors:
        return f"Coalesced: {_count(request.sectors, 'sector')} of 32 bytes, all needed."
    return (
        f"Not coalesced: {_count(request.sectors, 'sector')} of 32 bytes where {request.ideal_sectors} would do; "
        f"{used:,} of the {moved:,} bytes moved are used."
    )


def _how_global(request: GlobalRequest) -> Iterator[str]:
    row, lanes = request.origin.row, _lanes(request)
    who = _who(request.origin, len(lanes))
    yield f"{who} {request.bytes_used:,} different bytes in {_count(len(request.lines), 'line')} of 128 bytes."
    yield "Global memory moves whole sectors: 32 bytes, aligned, four to a line."
    start = int(request.addresses[lanes[0]]) % 32
    if request.sectors == request.ideal_sectors:
        if request.stride == 0:
            yield "All lanes ask for the same address: one sector serves them all."
        elif request.stride == row.width:
            yield "Each lane asks for what follows the lane before it: nothing is moved that nobody wants."
        return
    if request.stride == row.width:
        yield f"The lanes are side by side, but they start {start} bytes into a sector: start at a multiple of 32."
    elif request.stride:
        yield (
            f"Each lane is {request.stride:,} bytes after the lane before it. Coalescing needs neighbouring lanes at "
            f"neighbouring addresses, {row.width} bytes apart from a multiple of 32 on: then "
            f"{_count(request.ideal_sectors, 'sector')} would hold all."
        )
    else:
        yield (
            "Coalescing needs the same bytes side by side, from a multiple of 32 on: then "
            f"{_count(request.ideal_sectors, 'sector')} would hold all."
        )


def collision_line(meeting: Meeting) -> str:
    """`bank 0: word 0 (lane 0) | word 512 (lane 1)`."""
    banks = ranges(meeting.banks)
    seats = " | ".join(
        f"word{'s' * (len(seat.words) > 1)} {ranges(seat.words)} ({_lanes_text(seat.lanes)})"
        for seat in meeting.seats
    )
    return f"bank{'s' * (len(meeting.banks) > 1)} {banks}: {seats}"


def ranges(numbers: Sequence[int]) -> str:
    """`0-15, 20` for ascending numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def _lanes(request: SharedRequest | GlobalRequest) -> list[int]:
    return [lane for lane in range(32) if request.active[lane]]


def _lanes_text(lanes: Sequence[int]) -> str:
    return f"lane{'s' * (len(lanes) > 1)} {ranges(lanes)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
