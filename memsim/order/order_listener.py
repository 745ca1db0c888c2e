"""What the emulator tells of a launch as it runs: who accesses memory, and who waited for whom.

A listener is told of each event where it happens, in one legal order of warps and blocks, and is to find what
other orders would change. Warps and blocks are named by their places in the running chunk, instructions by
their indices in the program; masks of lanes are True, False or a `Part`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from memsim.access import Stretches
from memsim.state.launch_memory import Memory
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int


@dataclass(frozen=True)
class Race:
    """A load of what a store changes, by the indices of their instructions.

    several: several stores of different values are not ordered; the load itself may be. by_lanes: if not,
    both are by lanes of one warp, which have diverged.
    """

    load: int
    store: int
    several: bool
    by_lanes: bool

    def reason(self, stores: str, loads: str, decides: str, by_atomic: bool = False) -> str:
        """Why counts are uncertain. stores, loads: the places of both; decides: what the load does.

        by_atomic: is it an atomic that stores?
        """
        if self.several and by_atomic:
            return (
                f"the order of atomics in shared memory at {stores} decides what is loaded at {loads},"
                f" and that decides {decides}"
            )
        who, other, barrier = "one warp stores", "another loads", "no barrier orders them"
        missing = "__syncthreads"
        if self.several:
            who, other = "several warps or lanes store", "one loads"
        elif self.by_lanes:
            who, other, barrier = "lanes store", "others of their warp load", "they have diverged"
            missing = "__syncwarp"
        return (
            f"what {who} to shared memory at {stores} and {other} at {loads}"
            f" decides {decides}, and {barrier} (is a {missing}() missing?)"
        )


class Threads(Protocol):
    """The threads of the running blocks [B, T], in whole warps: see `memsim.simt.active_lanes.Lanes`."""

    threads: int
    alive: Mask

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def blocks(self) -> np.ndarray: ...

    @property
    def numbers(self) -> np.ndarray: ...

    @property
    def peers(self) -> np.ndarray: ...

    def full(self, mask: Mask) -> np.ndarray: ...

    def warps_of(self, mask: Mask) -> np.ndarray: ...


def warps_in(threads: Threads, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """(rows, warps) with a lane in a mask."""
    warps = threads.warps_of(mask)
    rows, columns = np.nonzero(np.broadcast_to(warps, (threads.shape[0], warps.shape[1])))
    return rows, columns


class OrderListener:
    """The events. Here they do nothing; a listener has those that it needs."""

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        """Blocks start, with new shared memory, whose bytes have not been made."""

    def run_together(self, mask: Mask) -> None:
        """These lanes run from here on, those of one warp together."""

    def execute(self, instruction: int) -> None:
        """What is accessed from here on, this instruction accesses."""

    def look(self, instruction: int, active: Mask | None, registers: Sequence[Value]) -> None:
        """Lanes come to an instruction that the launch was asked to look at; None: it is not known which."""

    def access(self, instruction: int, space: str, address: Int, width: int, active: Mask) -> None:
        """Lanes access `width` bytes each, in any space; whether these are moved is told by the space."""

    def lose(self, instruction: int, space: str, active: Mask) -> None:
        """Lanes access a space at unknown addresses."""

    def block_barrier(self, mask: Mask = True) -> None:
        """All living threads of the blocks with a lane in the mask have waited for each other.

        This is what *block barrier* means for all listeners: `__syncthreads()`, or a barrier of any number
        at which every thread of the block that has not exited waits. One that some only arrive at, or of some
        of the warps, is a named barrier.
        """

    def arrive_named(self, number: int, mask: Mask) -> None:
        """Warps arrive at a named barrier and do not wait."""

    def pass_named(self, number: int, mask: Mask) -> None:
        """Warps have waited at a named barrier for each other and for those that arrived."""

    def meet(self, lanes: Sequence[tuple[int, Mask]]) -> None:
        """Lanes that wait at these instructions, by their indices, are released as by one barrier. Told where
        these are several, or threads have exited.
        """

    def name_lanes(self, instruction: int, named: np.ndarray, mask: Mask) -> None:
        """Lanes come to wait for those of their warps that are named, as bits by lane [rows or 1, T or 1]."""

    def arrive_cluster(self, mask: Mask) -> None:
        """Warps arrive at the barrier of their cluster."""

    def pass_cluster(self, mask: Mask) -> None:
        """Warps have waited at the barrier of their cluster."""

    def arrive_grid(self, mask: Mask) -> None:
        """Warps arrive at the barrier of the whole grid."""

    def pass_grid(self, mask: Mask) -> None:
        """Warps have waited at the barrier of the whole grid."""

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        """Warps [n] of blocks `rows` arrive at mbarriers in the memory of `blocks`, by their columns."""

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """When their copies by `cp.async` are done, warps [n] arrive at mbarriers of their blocks."""

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        """Phases of mbarriers [n] of blocks [n] are complete, and the copies that complete there done."""

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        """Warps [n] of blocks [n] have waited for a phase of an mbarrier."""

    def use_mbarrier(
        self, instruction: int, address: Int, active: Mask, initializes: bool, is_near: bool
    ) -> None:
        """Lanes initialize mbarriers, or arrive or wait there. is_near: in the memory of their own blocks."""

    def visit(
        self, instruction: int, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, is_async: bool
    ) -> None:
        """Warps [n] of blocks `rows` access shared memory of other `blocks`. is_async: some time later."""

    def copy_to_phase(self, column: int, row: int, warp: int) -> None:
        """The copies that follow complete at an mbarrier; a warp makes them."""

    def bulk_store(self, instruction: int, written: Stretches, columns: np.ndarray) -> None:
        """Copies in bulk write shared memory, done at phases of mbarriers [n] there."""

    def bulk_load(self, instruction: int, read: Stretches) -> None:
        """Copies in bulk read shared memory, and warps wait for them as for those by `cp.async`."""

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        """Copies in bulk access global memory. access: as of their sites."""

    def maps(self, instruction: int, read: Stretches) -> None:
        """Copies in bulk read tensor maps in global memory."""

    def async_store(self, instruction: int, written: Stretches, columns: np.ndarray, updates: bool) -> None:
        """As `bulk_store`, of lanes that store some bytes each, or change them atomically."""

    def read_operands(
        self, instruction: int, read: Callable[[], Stretches], mask: Mask, commits: bool
    ) -> None:
        """Warpgroups begin a product. read: gives what they read in shared memory. commits: it, and those
        before it, are a group.
        """

    def wait_for_products(self, mask: Mask, left: int) -> None:
        """Warps wait until at most so many of their groups of products are in flight."""

    def fence_proxies(self, instruction: int, mask: Mask, space: str) -> None:
        """What warps know of is ordered before what copies in bulk do from here on (`fence.proxy.async`), in
        shared or global memory, or in both ("").
        """

    def fence_memory(self, mask: Mask, releases: bool, of_block: bool) -> None:
        """Warps execute a fence for other threads, or (of_block) for those of their blocks only. releases: it
        orders what they have done before with what they do behind it; else only what they have seen.
        """

    def store_later(
        self, store: SpaceBytes, address: Int, dtype: type, active: Mask, columns: np.ndarray | None = None
    ) -> None:
        """What lanes have just stored is there when a phase of mbarriers [B, T] completes; None: when their
        warps wait for their copies by `cp.async`.
        """

    def commit(self, mask: Mask) -> None:
        """The copies of warps by `cp.async` so far are a group."""

    def wait(self, mask: Mask, left: int) -> None:
        """Warps wait until at most so many of their groups are in flight."""


_EVENTS = [name for name in vars(OrderListener) if not name.startswith("_")]


class Listeners(OrderListener):
    """Tells each event to those of several listeners that do something with it."""

    def __init__(self, *listeners: OrderListener) -> None:
        for event in _EVENTS:
            nothing = getattr(OrderListener, event)
            every = [getattr(one, event) for one in listeners]
            hear = [one for one in every if getattr(one, "__func__", one) is not nothing]
            if hear:  # of the many accesses, most interest one listener: it is called itself
                setattr(self, event, hear[0] if len(hear) == 1 else partial(_tell, hear))


def _tell(listeners: Sequence[Callable[..., None]], *event: object) -> None:
    for listener in listeners:
        listener(*event)
