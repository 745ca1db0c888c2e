"""The sectors of global memory that a launch touches, which DRAM has to deliver at least once.

Every execution of an access is marked. In a loop that advances a pointer, the sectors of the first execution
are computed, and those of the others are shifted copies, marked many at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from memsim.launch import Natural
from memsim.state.parts import Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum, to_array, wrap_int

#: Bytes of a sector, the unit of transfer of the L2 cache and DRAM, as an exponent of two.
SECTOR_BITS = 5
IN_SECTOR = (1 << SECTOR_BITS) - 1
#: Sectors in one piece of the map, as an exponent of two: 512 MiB of memory, 16 MiB of the map.
PIECE_BITS = 24
IN_PIECE = (1 << PIECE_BITS) - 1
#: Maximum number of pieces. Sectors in others are not marked.
MOST_PIECES = 16
#: Limits: pending executions, sectors marked at once, bytes of cached shapes.
MOST_WAITING, MOST_SECTORS, MOST_REMEMBERED = 1 << 12, 1 << 18, 1 << 26
#: Bytes of a shape that is not kept for other chunks.
MOST_OF_A_SHAPE = 1 << 20
BYTES_OF_A_MOVE, BYTES_OF_AN_ENTRY = 100, 200

#: The sectors that were touched, by piece of the map: the first in it, and the state of each from there.
MarkedSectors = dict[int, tuple[int, np.ndarray]]

#: Operations that read global memory, and those that write it; atomics do both, in the L2 cache.
READS = frozenset(
    "load cp_async cp_async_cg bulk_load bulk_multicast bulk_reduction atomic reduction".split()
)
WRITES = frozenset({"store", "bulk_store", "bulk_reduction", "atomic", "reduction"})

READ, WRITTEN = 1, 2


@dataclass(frozen=True, slots=True)
class Footprint:
    """Distinct 32-byte sectors of global memory; a lower bound if addresses are unknown.

    read: those read before the launch itself writes them. written: those that it writes.
    """

    read: Natural
    written: Natural


@dataclass(slots=True)
class Shape:
    """Sectors of an execution that moves: by their distance [n]. moved: by how many sectors it was, so far.

    waiting: by how many it was since the last marks.
    """

    sectors: np.ndarray
    moved: set[int] = field(default_factory=set)
    waiting: list[int] = field(default_factory=list)


@dataclass(slots=True)
class MapPiece:
    """A piece of the map: the state of each sector. Only those from `first` to `last` may be touched.

    marks: how many were made since it was last asked whether all sectors are in one state. Then only one is
    stored, and the array is read-only.
    """

    states: np.ndarray
    first: int
    last: int
    marks: int = 0

    def count(self, bit: int) -> int:
        """How many sectors have this bit."""
        touched = self.states[self.first : self.last + 1]
        parts = (touched[at : at + MOST_SECTORS] for at in range(0, len(touched), MOST_SECTORS))
        return sum(int(np.count_nonzero(part & bit)) for part in parts)

    def mark(self, access: str, places: np.ndarray, is_first: bool) -> None:
        """An operation touched these sectors; `is_first`: nothing was written before."""
        if not self.states.flags.writeable:
            if after(access, self.states[:1]) == self.states[0]:
                return
            self.states = self.states.copy()
        self.states[places] = (
            READ if is_first and access not in WRITES else after(access, self.states[places])
        )
        self.marks += len(places)
        if self.marks >= len(self.states):
            self.marks = 0
            if self.states.min() == self.states.max():
                self.states = np.broadcast_to(self.states[:1].copy(), self.states.shape)


class Marks:
    """Collects the footprint of a launch."""

    def __init__(self) -> None:
        self.pieces: dict[int, MapPiece] = {}
        self.has_writes = False
        self.awaited = ""
        self.by_parts: dict[Hashable, Shape] = {}
        self.by_content: dict[Hashable, Shape] = {}
        self.waiting: list[Shape] = []
        self.executions = self.remembered = self.of_chunk = 0

    @property
    def footprint(self) -> Footprint:
        """The result so far."""
        self.mark()
        return Footprint(
            *(sum(piece.count(bit) for piece in self.pieces.values()) for bit in (READ, WRITTEN))
        )

    @property
    def sectors_so_far(self) -> MarkedSectors:
        """What is marked by now."""
        self.mark()
        pieces = self.pieces.items()
        return {number: (piece.first, piece.states[piece.first : piece.last + 1]) for number, piece in pieces}

    def add(self, sectors: MarkedSectors) -> None:
        """Mark what other blocks touched that ran apart from these: none read what the others had written."""
        self.mark()
        for number, (first, states) in sectors.items():
            piece = self._piece(number, first, first + len(states) - 1)
            if piece is not None:
                whole = piece.states if piece.states.flags.writeable else piece.states.copy()
                whole[first : first + len(states)] |= states
                piece.states = whole
                self.has_writes |= bool((states & WRITTEN).any())

    def start_chunk(self) -> None:
        """Other blocks run next, with other address parts."""
        self.by_parts = {}
        self.remembered -= self.of_chunk
        self.of_chunk = 0

    def access(self, access: str, address: int | Sum, active: bool | Part) -> None:
        """Threads `active` accessed `address`; up to 16 bytes, aligned, so no lane crosses a sector."""
        if active is False or (isinstance(active, Part) and not active.hi):
            return
        if not isinstance(address, Sum):
            self.sectors(access, np.array([wrap_int(address, 64) >> SECTOR_BITS]))
            return
        offset = wrap_int(address.s, 64)  # of an instruction in a damaged listing it may be any number
        if address.f is not None and isinstance(active, Part) and active.shape == address.f.shape:
            self.sectors(access, address.f.only(active).array + offset >> SECTOR_BITS)
            return
        if address.f is not None and active is True:
            self.sectors(access, address.array.reshape(-1) >> SECTOR_BITS)
            return
        if address.f is not None or (isinstance(active, Part) and min(active.shape) > 1):
            addresses, lanes = np.broadcast_arrays(to_array(address), to_bools(active))
            self.sectors(access, addresses[lanes] >> SECTOR_BITS)
            return
        if access != self.awaited or self.executions >= MOST_WAITING or self.remembered > MOST_REMEMBERED:
            self.mark()
            self.awaited = access
        key = access, *_key(address, active)
        shape = self.by_parts.get(key)
        if shape is None:
            shape = self.by_parts[key] = self._shape(access, address, active)
            self.remembered += sum(len(part) for part in key if isinstance(part, bytes)) + BYTES_OF_AN_ENTRY
        move = offset >> SECTOR_BITS
        if move not in shape.moved:
            if not shape.waiting:
                self.waiting.append(shape)
            shape.moved.add(move)
            shape.waiting.append(move)
            self.executions += 1

    def stretches(self, access: str, start: np.ndarray, length: np.ndarray) -> None:
        """An operation touched `length` bytes from `start` on, each [m]."""
        first, last = start >> SECTOR_BITS, (start + length - 1) >> SECTOR_BITS
        for size in np.unique(last - first).tolist():
            self.sectors(access, (first[last - first == size][:, None] + np.arange(size + 1)).ravel())

    def sectors(self, access: str, sectors: np.ndarray) -> None:
        """An operation touched sectors, by number [n], unsorted and possibly repeated."""
        self.mark()
        self._mark(access, sectors)

    def mark(self) -> None:
        """Mark pending executions."""
        for shape in self.waiting:
            step = max(1, MOST_SECTORS // len(shape.sectors))
            for first in range(0, len(shape.waiting), step):
                moves = np.array(shape.waiting[first : first + step])
                for start in range(0, len(shape.sectors), MOST_SECTORS):
                    some = shape.sectors[start : start + MOST_SECTORS]
                    # adjacent sectors one after the other: rows of a matrix, or the steps through them
                    self._mark(self.awaited, np.add.outer(*sorted((moves, some), key=_gap)[::-1]).ravel())
            shape.waiting.clear()
        self.remembered += BYTES_OF_A_MOVE * self.executions
        self.waiting, self.executions = [], 0
        if self.remembered > MOST_REMEMBERED:
            self.by_parts, self.by_content = {}, {}
            self.remembered = self.of_chunk = 0

    def _shape(self, access: str, address: Sum, active: bool | Part) -> Shape:
        """The shape of an execution, the same for all that touch the same sectors up to a shift."""
        sectors = _shape(address.s & IN_SECTOR, address.u, address.v, active)
        if sectors.nbytes > MOST_OF_A_SHAPE:  # of many blocks, so other chunks have others
            self.remembered += sectors.nbytes
            self.of_chunk += sectors.nbytes
            return Shape(sectors)
        key = access, sectors.tobytes()
        if key not in self.by_content:
            self.by_content[key] = Shape(sectors)
            self.remembered += 2 * sectors.nbytes
        return self.by_content[key]

    def _mark(self, access: str, sectors: np.ndarray) -> None:
        for number, places, first, last in in_pieces(sectors):
            piece = self._piece(number, first, last)
            if piece is not None:
                piece.mark(access, places, not self.has_writes)
                self.has_writes |= access in WRITES

    def _piece(self, number: int, first: int, last: int) -> MapPiece | None:
        """The piece of this number, in which sectors from `first` to `last` are touched; None: too many."""
        piece = self.pieces.get(number)
        if piece is None:
            if len(self.pieces) >= MOST_PIECES:
                return None
            piece = self.pieces[number] = MapPiece(np.zeros(1 << PIECE_BITS, np.uint8), first, last)
        piece.first, piece.last = min(piece.first, first), max(piece.last, last)
        return piece


def after(access: str, states: np.ndarray) -> np.ndarray:
    """The states of sectors that an operation touched, by their states before."""
    found = states | (states == 0) if access in READS else states  # READ, unless the launch wrote it before
    return found | WRITTEN if access in WRITES else found


def in_pieces(sectors: np.ndarray) -> list[tuple[int, np.ndarray, int, int]]:
    """(piece number, positions in it, none below this one, none above this one) of sectors [n], by piece."""
    if not len(sectors):
        return []
    first, last = int(sectors.min()), int(sectors.max())
    low, high = first >> PIECE_BITS, last >> PIECE_BITS
    if low == high:
        return [(low, sectors & IN_PIECE, first & IN_PIECE, last & IN_PIECE)]
    numbers = sectors >> PIECE_BITS
    there = range(low, high + 1) if high - low < MOST_PIECES else np.unique(numbers).tolist()
    return [(number, sectors[numbers == number] & IN_PIECE, 0, IN_PIECE) for number in there]


def _gap(values: np.ndarray) -> float:
    """The mean distance of values [n], in any order."""
    return float(values.max() - values.min()) / len(values)


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct values [n], sorted; for a few hundred much faster than `np.unique`."""
    ordered: np.ndarray = np.sort(values)
    found: np.ndarray = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def _key(address: Sum, active: bool | Part) -> tuple[Hashable, ...]:
    """Equal for executions whose sectors are the same up to whole sectors; loops recompute `v`."""
    lanes = active.digest if isinstance(active, Part) else None
    return address.s & IN_SECTOR, address.u and address.u.uid, address.v and address.v.digest, lanes


def _shape(inside: int, u: Part | None, v: Part | None, active: bool | Part) -> np.ndarray:
    """Distinct sectors of the sums `inside + u + v`, of a block's and a thread's part."""
    of_blocks, of_threads = _values(u, active, 0), _values(v, active, 1) + inside
    if (of_blocks & IN_SECTOR).any():
        return distinct((of_blocks[:, None] + of_threads >> SECTOR_BITS).ravel())
    moved: np.ndarray = (of_blocks >> SECTOR_BITS)[:, None] + distinct(of_threads >> SECTOR_BITS)
    return moved.ravel()


def _values(part: Part | None, active: bool | Part, axis: int) -> np.ndarray:
    """The distinct values of a part in active blocks (axis 0) or threads (axis 1)."""
    if part is None:
        return np.zeros(1, np.int64)
    values: np.ndarray = part.array.ravel()
    if isinstance(active, Part) and active.shape[axis] > 1:
        values = values[active.array.ravel()]
    return distinct(values)
