"""The cells of the pictures of one request to shared memory, the same for every format."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

from memsim.arch.units import BANKS, WARP
from memsim.pictures.worst_request import SharedRequest


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
    found: dict[int, Cell] = {}
    for meeting in request.meetings():
        for seat in meeting.seats:
            for word in seat.words:
                old = found.get(word)
                lanes, wavefront, collides = seat.lanes, seat.wavefront, len(meeting.seats) > 1
                if old is not None:
                    lanes = tuple(sorted({*old.lanes, *lanes}))
                    wavefront, collides = min(old.wavefront, wavefront), old.collides or collides
                found[word] = Cell(0, word % BANKS, word, lanes, wavefront, collides)
    lines = {line: row for row, line in enumerate(sorted({word // BANKS for word in found}))}
    return [
        Cell(lines[word // BANKS], cell.bank, word, cell.lanes, cell.wavefront, cell.collides)
        for word, cell in sorted(found.items())
    ]


def ring() -> list[tuple[float, float]]:
    """A place on a circle for each lane: lane 0 on top, then clockwise."""
    angles = [2 * pi * lane / WARP for lane in range(WARP)]
    return [(sin(angle), cos(angle)) for angle in angles]
