"""An access on its way from the emulator to the trace: its site, its sides, its requests as columns; and who
listens to a launch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memsim.arch.units import LINE, WARP
from memsim.instruction import Instruction
from memsim.state.parts import Mask, select
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes
from memsim.state.sums import Int

#: The model is invariant if all addresses of a request move by this many bytes.
PERIOD = LINE
#: No address.
NONE = -1
#: Sites that an instruction may have.
MOST_SITES = 8


@dataclass(frozen=True, slots=True)
class Site:
    """A place that accesses memory.

    index: its number, by which sites are ordered. access: what it does, by the name of an operation
    (`memsim.model.operations`). width: bytes per lane.
    """

    index: int
    instruction: Instruction
    access: str
    space: str
    width: int

    @property
    def place(self) -> int:
        """The number of its instruction in the program."""
        return self.index // MOST_SITES


class AccessSide(NamedTuple):
    """One side of an access, of which a copy has two: the lanes' addresses there, and the active lanes."""

    address: Int
    active: Mask


class SiteAccess(NamedTuple):
    """A site is executed by the threads in `mask`, and those in `active` access `address` (bytes).

    Shared addresses count from the kernel's first byte of shared memory. arrays: names of those accessed.
    other: the other side of a copy.
    """

    site: Site
    address: Int
    mask: Mask
    active: Mask
    arrays: frozenset[str] = frozenset()
    other: AccessSide | None = None

    @property
    def sides(self) -> list[AccessSide]:
        """The side of the site itself, and the other one of a copy."""
        own = AccessSide(self.address, self.active)
        return [own] if self.other is None else [own, self.other]


class Chunk(NamedTuple):
    """Blocks that run together: their linear numbers [B], and the threads of each, padded to whole warps.

    first: the number of the first of these threads in the block [B, 1]; not 0 if each warp is a row.
    """

    blocks: np.ndarray
    threads: int
    first: np.ndarray


@dataclass(frozen=True, slots=True)
class Stretches:
    """Bytes that lie side by side, as copies in bulk access them, columns [n].

    rows: of the blocks in the chunk in whose memory they are; in global memory, of those that access them.
    start, length: the first byte, and how many. warps: which access them, of these blocks; -1: of others.
    """

    rows: np.ndarray
    start: np.ndarray
    length: np.ndarray
    warps: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: np.ndarray) -> Stretches:
        """A subset, of which some may be there several times."""
        return Stretches(self.rows[chosen], self.start[chosen], self.length[chosen], self.warps[chosen])

    def units(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """(stretch, number of the unit in its memory) of each unit of `size` bytes that they touch [k]."""
        first = self.start // size
        whose, number = owners_and_numbers(-(-(self.start + self.length) // size) - first)
        return whose, first[whose] + number


def owners_and_numbers(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(whose, which of its own) of all things of which each has so many: 0 to its count [sum of counts]."""
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)


@dataclass(frozen=True, slots=True)
class SiteRequests:
    """Requests of one site: addresses and active lanes [m, 32], and the block and warp of each [m].

    partner: for copies the addresses on the other side, -1 in lanes without one [m, 32]; else None.
    """

    addresses: np.ndarray
    active: np.ndarray
    partner: np.ndarray | None
    block: np.ndarray
    warp: np.ndarray

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, chosen: np.ndarray | slice) -> SiteRequests:
        """A subset."""
        partner = None if self.partner is None else self.partner[chosen]
        return SiteRequests(
            self.addresses[chosen], self.active[chosen], partner, self.block[chosen], self.warp[chosen]
        )

    def expanded(self) -> SiteRequests:
        """Themselves; as `LaneRequests.expanded`."""
        return self

    @property
    def partners(self) -> np.ndarray:
        """The other side's addresses, -1 in all lanes if it is not a copy [m, 32]."""
        return np.broadcast_to(NONE, self.addresses.shape) if self.partner is None else self.partner

    def relative(self, periods: tuple[int, int]) -> np.ndarray:
        """Numbers that are equal for requests that are the same up to a multiple of the period [m, 32 or 64].

        periods: bytes, of the site's own side and of the other one.
        """
        own = relative_to_lowest(self.addresses, self.active, periods[0])
        if self.partner is None:
            return own
        return np.hstack([own, relative_to_lowest(self.partner, self.partner >= 0, periods[1])])


def relative_to_lowest(addresses: np.ndarray, lanes: np.ndarray, period: int) -> np.ndarray:
    """Addresses relative to the period that contains the lowest of `lanes`, -1 in other lanes;
    both [m, 32].
    """
    if lanes.all():
        lowest = addresses.min(1, keepdims=True)
        moved: np.ndarray = addresses - lowest // period * period
        return moved
    lowest = select(lanes, addresses, np.full((1, 1), np.iinfo(np.int64).max)).min(1, keepdims=True)
    return select(lanes, addresses - lowest // period * period, np.full((1, 1), NONE))


@dataclass(frozen=True, slots=True)
class LaneRequests:
    """Requests of one site. addresses, lanes: of all active lanes, 0 to 31, request by request [n]. counts:
    how many each request has, 1 or more; block, warp: of each [m].
    """

    addresses: np.ndarray
    lanes: np.ndarray
    counts: np.ndarray
    block: np.ndarray
    warp: np.ndarray

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, chosen: np.ndarray | slice) -> LaneRequests:
        """A subset."""
        counts = self.counts[chosen]
        index: np.ndarray | slice
        if isinstance(chosen, slice):  # of adjacent requests
            start = int(self.counts[: chosen.start].sum())
            index = slice(start, start + int(counts.sum()))
        else:
            whose, number = owners_and_numbers(counts)
            index = (np.cumsum(self.counts) - self.counts)[chosen][whose] + number
        return LaneRequests(
            self.addresses[index], self.lanes[index], counts, self.block[chosen], self.warp[chosen]
        )

    @property
    def span(self) -> int:
        """Bytes between the lowest and the highest address."""
        return int(self.addresses.max()) - int(self.addresses.min())

    def expanded(self) -> SiteRequests:
        """The same with a column for each lane."""
        place = np.repeat(np.arange(len(self)) * WARP, self.counts) + self.lanes
        addresses = np.full((len(self), WARP), self.addresses[0])
        active = np.zeros((len(self), WARP), np.bool_)
        addresses.reshape(-1)[place] = self.addresses
        active.reshape(-1)[place] = True
        return SiteRequests(addresses, active, None, self.block, self.warp)


#: Of one site; of warps that diverge, most requests are of one lane or two, and held lane by lane.
Requests = SiteRequests | LaneRequests


# --- listeners --------------------------------------------------------------------------------

#: Tells a listener that the threads which made an access make it again, in the same chunk. False: it has to
#: be told anew.
Again = Callable[[], bool]


class Listener:
    """Receives the accesses of a launch. Here nothing is done; a listener has the events that it needs."""

    def start_chunk(self, chunk: Chunk) -> None:
        """A new chunk of blocks starts."""

    def access(self, made: SiteAccess) -> Again | None:
        """A site was executed."""

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """`site` was executed by `warps` warps; `lanes` accessed `address` (bytes) [n]."""

    def stretches(self, site: Site, arrays: frozenset[str], made: Stretches) -> None:
        """Warps copy stretches of bytes."""

    def issued(self, site: Site, lanes: int) -> None:
        """So many lanes executed a copy by TMA."""

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """`site` was executed, but its addresses are unknown."""

    def uncounted(self, what: str, active: Mask) -> None:
        """Threads `active` made an access whose cost is unknown; `what` is its name in the singular."""

    def noted(self, what: str, active: Mask) -> None:
        """Threads `active` made requests that waste nothing and that no counter of ours has."""

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """The threads in `mask` execute the instructions from number `start` up to `stop`."""

    def passed_by(self, where: str, writes: int, mask: Mask) -> None:
        """A branch at `where` decides no access; which lanes in `mask` take it is unknown or was not worked
        out, and of the instructions behind it only some are counted. writes: slots that these may write.
        """

    def uncertain(self, what: str) -> None:
        """Requests may depend on a choice of the compiler or the chip, described by `what`."""
