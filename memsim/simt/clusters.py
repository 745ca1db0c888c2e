"""Cluster barriers (`UCGABAR_ARV`, `UCGABAR_WAIT`): arrivals, waiting threads and their release.

Groups wait until all threads of all blocks of their cluster have arrived as often as they have. Exited
threads do not count. Source: PTX ISA, `barrier.cluster`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.isa.machine_protocol import Mask
from memsim.isa.program import Op
from memsim.simt.code import Code
from memsim.simt.faults import Deadlock
from memsim.simt.groups import Group, Groups
from memsim.simt.machine import Machine
from memsim.state.address_spaces import align
from memsim.state.predicates import both, from_bools, invert


@dataclass(frozen=True)
class WaitingForCluster:
    """Lanes that wait at a cluster barrier."""

    op: Op
    mask: Mask


class ClusterBarriers:
    """The barriers of the clusters that are running.

    arrivals: of each thread, int64 [B, T]; 0 before the first.
    """

    def __init__(self, machine: Machine, code: Code, groups: Groups) -> None:
        self.machine = machine
        self.code = code
        self.groups = groups
        self.waiting: list[WaitingForCluster] = []
        self.arrivals: np.ndarray | int = 0

    def start(self) -> None:
        """Reset for new blocks."""
        self.waiting = []
        self.arrivals = 0

    def live(self) -> int:
        """Slots that waiting lanes will read."""
        found = 0
        for entry in self.waiting:
            found |= self.code.live(entry.op.index + 1)
        return found

    def arrive(self, op: Op, active: Mask, rest: Mask) -> int:
        """Lanes `active` arrive without waiting."""
        self.machine.order.arrive_cluster(active)
        self.arrivals = self.arrivals + self.machine.full(active).astype(np.int64)
        return op.index + 1

    def wait(self, op: Op, active: Mask, rest: Mask) -> int | None:
        """Lanes `active` wait for those of their cluster; the rest of the group continues."""
        over = self.over()
        staying = both(active, invert(over))
        self.machine.order.pass_cluster(both(active, over))
        if staying is False:
            return op.index + 1
        self.waiting.append(WaitingForCluster(op, staying))
        on = both(self.machine.mask, invert(staying))
        if on is not False:
            self.groups.ready.append(Group(op.index + 1, on))
        return None

    def over(self) -> Any:
        """The lanes for which all threads of their cluster have arrived as often as they have."""
        alive = self.machine.full(self.machine.alive)
        least = np.where(alive, self.arrivals, np.iinfo(np.int64).max).min(1)
        peers = self.machine.peers
        of_cluster = np.where(peers >= 0, least[peers], np.iinfo(np.int64).max).min(1)
        return from_bools(self.arrivals <= of_cluster[:, None])

    def release(self) -> bool:
        """Release the lanes whose clusters have arrived; True if there were some."""
        if not self.waiting:
            return False
        over = self.over()
        entries, self.waiting = self.waiting, []
        released = False
        for entry in entries:
            going, staying = both(entry.mask, over), both(entry.mask, invert(over))
            if going is not False:
                released = True
                self.machine.order.pass_cluster(going)
                self.groups.ready.append(Group(entry.op.index + 1, going))
            if staying is not False:
                self.waiting.append(WaitingForCluster(entry.op, staying))
        return released

    def deadlock(self) -> MemsimError | None:
        """The error for a barrier that some threads never reach; None if no thread waits at one."""
        if not self.waiting:
            return None
        entry = self.waiting[0]
        return Deadlock(
            f"a cluster barrier that some threads never reach: {self.machine.places(entry.mask)} wait at"
            f" {entry.op.text}",
            self.machine.wrong(entry.op, entry.mask),
        )


def whole_clusters(blocks: int, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> int:
    """The number of blocks rounded up so that no cluster is split, because its blocks access each other's
    memory.

    Blocks are numbered along x first.
    """
    if cluster[2] > 1:
        span = grid[0] * grid[1] * cluster[2]
    else:
        span = grid[0] * cluster[1] if cluster[1] > 1 else cluster[0]
    return align(blocks, span)
