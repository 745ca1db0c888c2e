"""The threads of the running blocks as masks: whole, by warp, as 32-bit words, and in words for errors.

A mask is True, False or a `Part`.

And their special registers, `SR_TID.X` and others; `Poison` if only a chip knows the value. Source: PTX ISA,
"Special Registers", and what compilers use them for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from memsim.access import Chunk
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.launch import Launch, coordinates_of
from memsim.simt.faults import WrongLanes
from memsim.state.address_spaces import SHARED_WINDOW, align
from memsim.state.parts import Mask, Part, warp_words
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import Sum, fit, from_array, plus, times, to_array
from memsim.state.sums import Int


class Rows(Protocol):
    """The rows of a chunk: blocks, or warps or lanes of them."""

    @property
    def blocks(self) -> np.ndarray:
        """Linear numbers of their blocks, int64 [B]."""

    @property
    def first(self) -> np.ndarray:
        """The number of the first thread of each row, int64 [B, 1]; 0 if rows are blocks."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class PlacedRows:
    """`Rows` whose places are at hand."""

    blocks: np.ndarray
    first: np.ndarray

    def __len__(self) -> int:
        return len(self.blocks)


class Lanes:
    """Threads of a chunk of blocks.

    rows: blocks, or their warps. threads: of each row, padded to whole warps. mask: lanes of the running
    group. executing: those of them that execute the instruction. alive: those that have not exited.
    """

    def __init__(self, launch: Launch, cluster: tuple[int, int, int]) -> None:
        self.launch = launch
        self.cluster = cluster
        self.threads = launch.warps * WARP
        self.rows: Rows = PlacedRows(np.zeros(0, np.int64), np.zeros((0, 1), np.int64))
        self.mask: Mask = True
        self.alive: Mask = True
        self.executing: Mask = True

    def start(self, blocks: np.ndarray, apart: bool = False) -> None:
        """Start these blocks with all their threads; `apart`: each warp is a row, like a block of its own."""
        warps = self.launch.warps
        self.threads = WARP if apart else warps * WARP
        of_block = np.arange(warps if apart else 1) * WARP
        self.rows = PlacedRows(np.repeat(blocks, len(of_block)), np.tile(of_block, len(blocks))[:, None])
        self.__dict__.pop("peers", None)
        whole = self.launch.threads == warps * WARP
        self.alive = True if whole else from_bools(self.numbers < self.launch.threads)

    @property
    def blocks(self) -> np.ndarray:
        """As of `Rows`."""
        return self.rows.blocks

    @property
    def first(self) -> np.ndarray:
        """As of `Rows`."""
        return self.rows.first

    @property
    def chunk(self) -> Chunk:
        """As listeners are told of it."""
        return Chunk(self.blocks, self.threads, self.first)

    @property
    def numbers(self) -> np.ndarray:
        """Of each thread in its block, int64 (1, T), or (B, 32) if each warp is a row."""
        first = self.first[:1] if len(self.first) and not self.first.any() else self.first
        return first + np.arange(self.threads)

    def of_shared(self, address: Int, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(owner's index in the chunk [m], address in its shared memory [m]) for lanes of a mask.

        Bits 24 and up of an address are the rank of a block in its cluster.
        """
        return self.in_cluster(np.nonzero(mask)[0], np.broadcast_to(to_array(address), self.shape)[mask])

    def in_cluster(self, blocks: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `of_shared`, for addresses [m] in blocks [m] of the chunk."""
        found = address & 0xFFFFFFFF
        if self.cluster != (1, 1, 1):
            ranks = found >> 24
            if (ranks >= self.peers.shape[1]).any():
                raise MemsimError("an address in shared memory of a block that is not in the cluster")
            blocks = self.peers[blocks, ranks]
            if (blocks < 0).any():
                raise MemsimError("an address in shared memory of a block that is not replayed")
        return blocks, found & 0xFFFFFF

    @cached_property
    def peers(self) -> np.ndarray:
        """The blocks of each block's cluster by rank, as indices in the chunk, int64 [B, ranks].

        -1 if the chunk does not contain it.
        """
        grid, size = self.launch.grid, self.cluster
        own = [coordinates(self.blocks, grid, at) // size[at] * size[at] for at in range(3)]
        ranks = np.arange(size[0] * size[1] * size[2])
        x, y, z = (own[at][:, None] + coordinates(ranks, size, at) for at in range(3))
        found = x + grid[0] * (y + grid[1] * z)
        place = np.searchsorted(self.blocks, found)
        place = np.minimum(place, len(self.blocks) - 1)
        return np.where(self.blocks[place] == found, place, -1)

    @property
    def shape(self) -> tuple[int, int]:
        """(blocks of the chunk, threads with padding)."""
        return len(self.rows), self.threads

    def full(self, mask: Mask) -> np.ndarray:
        """A mask expanded to bool (B, T)."""
        return np.broadcast_to(to_bools(mask), self.shape)

    def by_warp(self, array: np.ndarray) -> np.ndarray:
        """An array over threads as (rows, warps, 32)."""
        rows = array.shape[0]
        return np.broadcast_to(array, (rows, self.threads)).reshape(rows, -1, WARP)

    def warps_of(self, mask: Mask) -> np.ndarray:
        """Which warps have a lane in the mask, bool (rows, W)."""
        if not isinstance(mask, Part):
            return np.full((1, self.threads // WARP), mask)
        return np.broadcast_to(mask.words != 0, (mask.shape[0], self.threads // WARP))

    def whole_warps(self, mask: Mask) -> Mask:
        """All lanes of the warps with a lane in the mask."""
        if isinstance(mask, bool):
            return mask
        return from_bools(np.repeat(self.warps_of(mask), WARP, axis=1))

    def words_of(self, mask: Mask) -> np.ndarray:
        """The mask as a 32-bit word of the warp in each lane, int64 (rows, T); (rows, 1) for one warp."""
        if mask is True:
            return np.full((1, 1), 0xFFFFFFFF, np.int64)
        if mask is False:
            return np.zeros((1, 1), np.int64)
        if self.threads == WARP:
            return mask.words.astype(np.int64)
        return mask.derived("words", self._words).array

    def _words(self, array: np.ndarray) -> np.ndarray:
        words = warp_words(np.broadcast_to(array, (array.shape[0], self.threads)))
        return np.repeat(words.astype(np.int64), WARP, axis=1)

    def lane_words(self, value: Int) -> np.ndarray:
        """A register with a lane mask, unsigned."""
        return to_array(value) & 0xFFFFFFFF

    def active(self) -> np.ndarray:
        """The lanes that execute the instruction, bool (rows, warps, 32)."""
        return self.by_warp(to_bools(self.executing))

    def place(self, position: tuple[int, int]) -> str:
        """`thread (x, y, z) of block (x, y, z)` of a (block, thread) position in the chunk."""
        block, thread = int(self.blocks[position[0]]), int(self.first[position[0], 0]) + position[1]
        at, of = coordinates_of(thread, self.launch.block), coordinates_of(block, self.launch.grid)
        return f"thread {at} of block {of}"

    def wrong(self, op: Op, mask: Mask, space: str = "", width: int = 0, where: str = "") -> WrongLanes:
        """The lanes of a mask, with the error that they have at an instruction."""
        full = self.full(mask)
        row, column = (int(one) for one in np.unravel_index(int(np.argmax(full)), full.shape))
        thread = int(self.first[row, 0]) + column
        return WrongLanes(op, int(self.blocks[row]), thread, int(full.sum()), space, width, where)

    def places(self, mask: Mask) -> str:
        """The first thread of a mask, and the number of threads."""
        full = self.full(mask)
        first = np.unravel_index(int(np.argmax(full)), full.shape)
        return f"{self.place((int(first[0]), int(first[1])))} ({int(full.sum())} threads in all)"


def coordinates(index: np.ndarray, shape: tuple[int, int, int], at: int) -> np.ndarray:
    """One coordinate of linear numbers, as an array."""
    stride = (1, shape[0], shape[0] * shape[1])[at]
    return index // stride % shape[at]


# --- special registers -----------------------------------------------------------------------

#: Allocation unit of shared memory in bytes (PTX ISA, `%total_smem_size`).
SHARED_UNIT = 128
_AXES = {"X": 0, "Y": 1, "Z": 2}
_LANE_MASKS = {
    "SR_EQMASK": lambda lane: np.int64(1) << lane,
    "SR_LTMASK": lambda lane: (np.int64(1) << lane) - 1,
    "SR_LEMASK": lambda lane: (np.int64(2) << lane) - 1,
    "SR_GTMASK": lambda lane: np.int64(-2) << lane,
    "SR_GEMASK": lambda lane: np.int64(-1) << lane,
}


def special_register(name: str, lanes: Lanes, shared_bytes: int) -> int | Sum | Poison:
    """The value of a special register in the running blocks. shared_bytes: shared memory per block."""
    launch, cluster = lanes.launch, lanes.cluster
    base, _, axis = name.partition(".")
    if axis in _AXES:
        at = _AXES[axis]
        if base == "SR_TID":
            return of_threads(lanes, partial(coordinates, shape=launch.block, at=at))
        if base == "SR_CTAID":
            return compact(coordinates(lanes.blocks[:, None], launch.grid, at))
        block = coordinates(lanes.blocks[:, None], launch.grid, at)
        clusters = {
            "SR_CLUSTERID": block // cluster[at],
            "SR_CLUSTER_CTAID": block % cluster[at],
            "SR_CgaCtaid": block % cluster[at],
        }
        if base in clusters:
            return compact(clusters[base])
        sizes = {
            "SR_NTID": launch.block[at],
            "SR_NCTAID": launch.grid[at],
            "SR_NCLUSTERID": launch.grid[at] // cluster[at],
        }
        if base in sizes:
            return sizes[base]
    if name == "SR_TID":
        x, y, z = (of_threads(lanes, partial(coordinates, shape=launch.block, at=at)) for at in range(3))
        return fit(plus(x, plus(times(y, 1 << 16), times(z, 1 << 26))), 32)
    if name in _LANE_MASKS:
        return fit(of_threads(lanes, lambda thread: _LANE_MASKS[name](thread % WARP)), 32)
    if name == "SR_LANEID":
        return of_threads(lanes, lambda thread: thread % WARP)
    if name == "SR_CgaCtaId":
        return rank_in_cluster(lanes)
    if name == "SR_CgaSize":
        return cluster[0] * cluster[1] * cluster[2]
    if name == "SR_SMEMSZ":
        return align(shared_bytes, SHARED_UNIT)
    if name in ("SR_SWINHI", "SR_SWINLO"):
        return SHARED_WINDOW >> 32 if name.endswith("HI") else 0
    return Poison(f"{name} is not known before the kernel runs on a chip", None)


def rank_in_cluster(lanes: Lanes) -> int | Sum:
    """The numbers of blocks in their clusters."""
    blocks, grid, cluster = lanes.blocks[:, None], lanes.launch.grid, lanes.cluster
    i, j, k = (coordinates(blocks, grid, at) % cluster[at] for at in range(3))
    return compact(i + cluster[0] * (j + cluster[1] * k))


def of_threads(lanes: Lanes, value: Callable[[np.ndarray], np.ndarray]) -> int | Sum:
    """A function of the number of a thread in its block; if each warp is a row, worked out for one block."""
    if lanes.threads != WARP:
        return compact(value(lanes.numbers))
    of_block = value(np.arange(lanes.launch.warps * WARP).reshape(-1, WARP))
    found = compact(of_block)
    if type(found) is int or len(of_block) == 1:
        return found
    assert isinstance(found, Sum)
    warps = lanes.first[:, 0] // WARP
    if found.f is not None:
        return from_array(of_block[warps])
    of_warps = 0 if found.u is None else from_array(found.u.array[warps])
    return plus(of_warps, Sum(found.s, v=found.v))


def compact(array: np.ndarray) -> int | Sum:
    """An index array as a value; an int if all elements are equal."""
    if array.min() == array.max():
        return int(array.flat[0])
    row, lane = array[:, :1], array[:1] - array[0, 0]
    if array.shape[0] > 1 < array.shape[1] and (row + lane == array).all():
        return plus(from_array(row), from_array(lane))
    return from_array(np.ascontiguousarray(array))
