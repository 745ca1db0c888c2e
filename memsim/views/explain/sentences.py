"""A request in plain words: what it asks for, how it is served, what collides, and what would help.

The terminal, the pictures and the page use the same sentences, and the same cells where a request to shared
memory is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from memsim.arch.units import BANKS, LINE, SECTOR, WARP, WORD
from memsim.pictures.worst_request import BankMeeting, GlobalRequest, RequestOrigin, Seat, SharedRequest
from memsim.views.labels import count, dim3, lane_names, ranges


@dataclass(frozen=True, slots=True)
class Cell:
    """A word in its bank: the lanes that want it, the wavefront that serves it, whether it collides."""

    row: int
    bank: int
    word: int
    lanes: tuple[int, ...]
    wavefront: int
    collides: bool


def lane_cells(request: SharedRequest) -> list[Cell]:
    """A cell for each lane and each bank that it needs; rows are the lanes."""
    reading = {lane for lanes in request.read_together() for lane in lanes}
    return [
        Cell(lane, word % BANKS, word, (lane,), seat.wavefront, len(meeting.seats) > 1 or lane in reading)
        for meeting in request.meetings()
        for seat in meeting.seats
        for lane in seat.lanes
        for word in seat.words
    ]


def line_cells(request: SharedRequest) -> list[Cell]:
    """A cell for each word; rows are the 128-byte lines that have one, by address.

    A word that several groups or wavefronts move is one cell: the first wavefront is its own.
    """
    wanted: dict[int, list[tuple[Seat, bool]]] = {}
    for meeting in request.meetings():
        for seat in meeting.seats:
            for word in seat.words:
                wanted.setdefault(word, []).append((seat, len(meeting.seats) > 1))
    rows = {line: row for row, line in enumerate(sorted({word // BANKS for word in wanted}))}
    cells = []
    for word, seats in sorted(wanted.items()):
        lanes = sorted({lane for seat, _ in seats for lane in seat.lanes})
        first, collides = min(seat.wavefront for seat, _ in seats), any(meets for _, meets in seats)
        cells.append(Cell(rows[word // BANKS], word % BANKS, word, tuple(lanes), first, collides))
    return cells


def ring() -> list[tuple[float, float]]:
    """A place on a circle for each lane: lane 0 on top, then clockwise."""
    angles = [2 * pi * lane / WARP for lane in range(WARP)]
    return [(sin(angle), cos(angle)) for angle in angles]


WAVEFRONT_BYTES = LINE
PREPOSITIONS = {"load": "from", "update": "of"}


def sentences(request: SharedRequest | GlobalRequest) -> list[str]:
    """What happens, the answer first."""
    if isinstance(request, SharedRequest):
        return [shared_answer(request), *_how_shared(request)]
    return [global_answer(request), *_how_global(request)]


def shared_answer(request: SharedRequest) -> str:
    """The answer in a line."""
    took = f"{count(request.wavefronts, 'wavefront')} for this request"
    if request.conflicts:
        clean = request.wavefronts - request.conflicts * request.passes
        return f"{request.ways}-way bank conflict: {took} instead of {clean}."
    if request.groups > 1 and request.passes == 1:
        return f"No bank conflict: {took}, one for each group of lanes."
    return f"No bank conflict: {took}."


def _how_shared(request: SharedRequest) -> Iterator[str]:
    lanes = _lanes(request)
    words = len({word for lane in lanes for word in request.words(lane)})
    yield f"{_who(request.origin, len(lanes))} {count(words, 'different word')} of 4 bytes."
    yield _grouping(request)
    collisions = request.collisions()
    if request.read_together():
        yield from _read_together(request)
    elif collisions:
        yield from _collisions(request, collisions)
    else:
        yield _clean(request, words)
    sharing = max(len(seat.lanes) for meeting in request.meetings() for seat in meeting.seats)
    if request.shares and sharing > 1:
        yield f"Lanes that access the same word share it (here up to {sharing}); that is not a conflict."
    if request.passes > 1:
        yield "A compare-and-swap issues every wavefront twice."
    if request.groups > 1:
        yield _no_false_alarm(request, words)
    if request.wavefronts - request.conflicts * request.passes > request.ideal:
        yield (
            f"The same words would need only {count(request.ideal, 'wavefront')} if lanes that access the "
            "same word were neighbours in the warp. This is not a bank conflict, so padding does not help; a "
            "different mapping of threads to elements would."
        )


def _who(origin: RequestOrigin, lanes: int) -> str:
    row = origin.row
    verb = row.operation.verb
    array = row.array or f"{row.space} memory"
    return (
        f"Warp {origin.warp} of block {dim3(origin.block)}: {count(lanes, 'lane')} "
        f"{verb}{'s' if lanes == 1 else ''} {count(row.width, 'byte')}{'' if lanes == 1 else ' each'} "
        f"{'from' if verb == 'copy' and row.space == 'global' else PREPOSITIONS.get(verb, 'to')} {array},"
    )


def _grouping(request: SharedRequest) -> str:
    """Which rule grouped the lanes, and which merged the groups."""
    row, lanes = request.origin.row, request.lanes
    kind = f"{'An' if row.width == 8 else 'A'} {row.width}-byte {row.op.replace('_', '.')} is served"
    alone = "" if request.shares else " Lanes with equal addresses do not share an access."
    if row.operation.matrix:
        return f"{row.op} is served in groups of 8 lanes, one for each matrix; each lane addresses 16 bytes."
    if request.merged:
        return (
            f"{kind} in groups of {lanes // 2} lanes. Here every active lane i has lane i^{request.merged} "
            f"idle or at the same address (the pair rule), so two groups become one of {lanes} lanes."
        )
    if lanes == BANKS:
        return f"{kind} for the whole warp as one group.{alone}"
    return (
        f"{kind} in groups of {lanes} lanes, because {lanes} x {row.width} bytes are the {WAVEFRONT_BYTES} "
        f"that {BANKS} banks deliver in one wavefront.{alone}"
    )


def _collisions(request: SharedRequest, collisions: Sequence[BankMeeting]) -> Iterator[str]:
    unit = "word" if request.shares else "lane"
    worst = [meeting for meeting in collisions if len(meeting.seats) == request.ways]
    banks = sorted({bank for meeting in worst for bank in meeting.banks})
    idle = BANKS - len({bank for meeting in request.meetings() for bank in meeting.banks})
    where = f"each of the banks {ranges(banks)}" if len(banks) > 1 else f"bank {ranges(banks)}"
    waiting = "1 of them waits" if request.ways == 2 else f"{request.ways - 1} of them wait"
    waste = f" while {count(idle, 'bank')} {'stays' if idle == 1 else 'stay'} idle" if idle else ""
    yield (
        f"A bank serves one {unit} per wavefront. Here {request.ways} {unit}s fall into {where}, "
        f"so {waiting}{waste}."
    )
    first, second = worst[0].seats[:2]
    distance = abs(second.words.start - first.words.start)
    if distance:
        yield (
            f"For example {lane_names(first.lanes)} and {lane_names(second.lanes)}: "
            f"{word_name(request.origin, first.words)} and {word_name(request.origin, second.words)} are "
            f"{distance:,} words apart, a multiple of 32, so both lie in bank {worst[0].banks.start}."
        )


def _read_together(request: SharedRequest) -> Iterator[str]:
    """A copy whose lanes meet where they read."""
    groups = request.read_together()
    worst = max(groups, key=len)
    yield (
        "Its lanes read from the L1 cache, where a 128-byte line spans the same 32 banks. Within a group, a "
        "lane is served one wavefront after the last earlier lane that reads from, or writes to, one of its "
        "banks."
    )
    banks = request.banks_read(worst[0])
    yield (
        f"Here {lane_names(worst)} all read from bank{'s' * (len(banks) > 1)} {ranges(banks)} of the cache"
        f"{'; their writes collide as well' if request.collisions() else ''}."
    )


def _clean(request: SharedRequest, words: int) -> str:
    if request.groups > 1 or not request.shares:
        return "Within each group no bank is asked for more than one word, so no lane waits."
    banks = len({bank for meeting in request.meetings() for bank in meeting.banks})
    lie = (
        f"The {words} words lie in {banks} different banks"
        if words > 1
        else "All lanes access one word in one bank"
    )
    return f"{lie}, so no bank is asked for more than one, and no lane waits."


def _no_false_alarm(request: SharedRequest, words: int) -> str:
    groups, asked = request.groups, words * WORD
    why = f"Why {groups} wavefronts are not a conflict in themselves: "
    if asked > WAVEFRONT_BYTES:
        why += f"the lanes access {asked} different bytes, and a wavefront moves at most {WAVEFRONT_BYTES}; "
    why += f"the lanes are served in {groups} groups, and each group needs a wavefront of its own."
    if not request.conflicts:
        why += f" Dividing wavefronts by requests would wrongly call this a {groups}-way conflict."
    return why


def global_answer(request: GlobalRequest) -> str:
    """The answer in a line."""
    sectors = f"{count(request.sectors, 'sector')} of 32 bytes"
    if request.sectors == request.ideal_sectors:
        return f"Coalesced: {sectors}, the minimum."
    return (
        f"Not coalesced: {sectors} instead of {request.ideal_sectors}; "
        f"{request.bytes_used:,} of the {request.sectors * SECTOR:,} bytes moved are used."
    )


def _how_global(request: GlobalRequest) -> Iterator[str]:
    row, lanes = request.origin.row, _lanes(request)
    who, lines = _who(request.origin, len(lanes)), count(len(request.lines), "line")
    yield f"{who} {request.bytes_used:,} different bytes in {lines} of 128 bytes."
    if request.is_local:
        yield (
            "Local memory interleaves the 4-byte words of the 32 lanes: a 128-byte line holds one word of "
            "each lane, a sector those of eight lanes."
        )
        if request.sectors != request.ideal_sectors:
            yield (
                "The lanes access different indices. With the same index in all lanes, "
                f"{count(request.ideal_sectors, 'sector')} would be enough."
            )
        return
    yield "Global memory is accessed in whole sectors: 32 aligned bytes, four to a line."
    if row.operation.bypass:
        yield (
            "A cp.async.cg bypasses the L1 cache; the chip counts one sector for each pair of a "
            "shared-memory sector written and a line read."
        )
        if request.sectors != request.touched.sum():
            return
    if request.sectors == request.ideal_sectors:
        if request.stride == 0:
            yield "All lanes access the same address, which one sector serves."
        elif request.stride == row.width:
            yield "The lanes access consecutive addresses, so every byte moved is used."
        return
    then = f"{count(request.ideal_sectors, 'sector')} would be enough."
    if request.stride == row.width:
        start = int(request.addresses[lanes[0]]) % SECTOR
        yield f"The lanes are consecutive but start {start} bytes into a sector. Aligned to 32 bytes, {then}"
    elif request.stride:
        yield (
            f"Consecutive lanes are {request.stride:,} bytes apart. If they were {row.width} bytes apart and "
            f"aligned to 32 bytes, {then}"
        )
    else:
        yield f"If the same bytes were contiguous and aligned to 32 bytes, {then}"


def collision_line(origin: RequestOrigin, meeting: BankMeeting, most: int = 8) -> str:
    """`bank 0: s_a[0][0] (lane 0) | s_a[4][0] (lane 1)`; of many words, the first `most`."""
    banks = f"bank{'s' if len(meeting.banks) > 1 else ''} {ranges(meeting.banks)}"
    seats = [f"{word_name(origin, seat.words)} ({lane_names(seat.lanes)})" for seat in meeting.seats[:most]]
    more = [f"{len(meeting.seats) - most} more"] if len(meeting.seats) > most else []
    return f"{banks}: {' | '.join([*seats, *more])}"


def word_name(origin: RequestOrigin, words: range) -> str:
    """`s_a[4][0]`, or `word 512` where the array is not known."""
    if origin.array is not None:
        return origin.array.element(words.start * WORD)
    return f"word {words.start}"


def line_name(request: GlobalRequest, line: int) -> str:
    """`A + 2048 B`: where a line of the request begins."""
    address = int(request.lines[line])
    array = request.origin.array
    if request.is_local:
        return f"{array.name if array is not None else 'local memory'} + {address // WARP:,} B"
    if array is None:
        return hex(address)
    offset = address - array.first
    return f"{array.name} {'+' if offset >= 0 else '-'} {abs(offset):,} B"


def _lanes(request: SharedRequest | GlobalRequest) -> list[int]:
    return [lane for lane in range(len(request.active)) if request.active[lane]]
