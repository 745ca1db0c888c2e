"""What each warp of a block knows of the others: up to which age their accesses are ordered before its own.

An age is a number that grows in a block with each synchronization. A barrier of the whole block orders all
that is older. Anything else passes knowledge on: whoever arrives at a named barrier, an mbarrier or a barrier
of the cluster tells it all that it knows, and whoever waits there learns that (vector clocks, as in FastTrack
by Flanagan and Freund, PLDI 2009). Warps count as a whole: what one lane tells or waits for, its warp does.
Copies are agents of their own, which tell where they are waited for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.state.parts import Mask

#: Agents: warps of the block from 0, copies by `cp.async` of these from 32; then others, as they come.
COPIES, OTHERS, MOST_AGENTS = 32, 64, 1000
#: Commits of each kind of asynchronous operations that a warp remembers: a wait leaves at most 63 in flight
#: (`DEPBAR.LE SB0, 0x3f`, of any larger number, too).
COMMITS = 64


class WarpClocks:
    """Of the running blocks.

    ages: int64 [B], of accesses that are made now; once clocks are used, the same in all blocks, so that what
    is known of a warp holds for what it accesses in other blocks, too. bases [B]: all warps of the block know
    of all that its warps accessed before this age. told: int64 [proxies, B, holders, agents]; holders are
    warps, then those of other blocks together, then whatever knowledge is told to. is_full: some agents share
    a number, so that what is known of one proves nothing. learned: how often anything was learned.
    """

    def __init__(self, blocks: int, warps: int, proxies: int = 1) -> None:
        """proxies: 2 to know of proxy fences (`fenced`), too."""
        self.warps = self.foreign = warps
        self.ages: np.ndarray = np.ones(blocks, np.int64)
        self.bases: np.ndarray = np.ones(blocks, np.int64)
        self.told: np.ndarray = np.zeros((proxies, blocks, 0, 0), np.int64)
        self.is_full = False
        self.learned = 0
        self._holders: dict[Hashable, int] = {}
        self._agents: dict[Hashable, int] = {}
        self._commits: dict[Hashable, np.ndarray] = {}

    @property
    def known(self) -> np.ndarray:
        """Up to which age a holder knows of an agent's accesses [B, holders, agents]."""
        return np.asarray(self.told[0])

    @property
    def fenced(self) -> np.ndarray:
        """Up to which age these are behind a `fence.proxy.async`, too.

        A generic access happens before one by the async proxy only if such a fence lies on the way from one
        to the other (PTX ISA, Causality Order; `fence.proxy.async`): by who made the access, by who issues
        the copy, or by whoever passes knowledge on between the two.
        """
        return np.asarray(self.told[1])

    @property
    def are_used(self) -> bool:
        """Whether anything but block barriers has ordered accesses."""
        return self.told.size > 0

    def use(self) -> None:
        """From now on anything may."""
        if not self.are_used:
            self.ages[:] = self.ages.max()
            self.told = np.zeros((len(self.told), len(self.ages), self.warps + 1, OTHERS), np.int64)

    def agent(self, key: Hashable, count: int = 1) -> int:
        """The number of an agent, or the first one of several."""
        self.use()
        if key not in self._agents:
            first = self.told.shape[3]
            self.is_full |= first + count > MOST_AGENTS
            self._agents[key] = min(first, MOST_AGENTS - count)
            self._grow(3, self._agents[key] + count - first)
        return self._agents[key]

    def holder(self, key: Hashable) -> int:
        """The number of what knowledge is told to."""
        self.use()
        if key not in self._holders:
            self._holders[key] = self.told.shape[2]
            self._grow(2, 1)
        return self._holders[key]

    def _grow(self, axis: int, count: int) -> None:
        if count > 0:
            shape = [*self.told.shape]
            shape[axis] = count
            self.told = np.concatenate([self.told, np.zeros(shape, np.int64)], axis)

    def spread(self, former: np.ndarray) -> None:
        """Each row is as that of `former` was."""
        self.ages, self.bases, self.told = self.ages[former], self.bases[former], self.told[:, former]
        self._commits = {kind: each[:, former] for kind, each in self._commits.items()}

    def pass_barrier(self, blocks: np.ndarray) -> None:
        """All warps of these blocks, bool [B], have waited for each other."""
        self.ages = self.ages + (blocks.any() if self.are_used else blocks)
        self.bases = np.where(blocks, self.ages, self.bases)
        if self.are_used:
            of_warps = self.told[:, :, : self.warps]
            every = of_warps.max(2, keepdims=True)
            self.told[:, :, : self.warps] = np.where(blocks[:, None, None], every, of_warps)

    def tell(self, rows: np.ndarray, warps: np.ndarray, holder: int) -> None:
        """Warps [n] of blocks [n] tell what they know, and of their own accesses so far."""
        told = self.told[:, rows, warps]
        told[0] = self._with_own(rows, warps)
        for table, new in zip(self.told, told):
            np.maximum.at(table, (rows, np.full(len(rows), holder)), new)
        self.ages += 1

    def tell_others(
        self,
        rows: np.ndarray,
        warps: np.ndarray,
        blocks: np.ndarray,
        holder: int,
        peers: np.ndarray,
        first: int,
    ) -> None:
        """The same to a holder in other blocks [n] of their clusters, `peers` [B, ranks].

        first: the agent that the first warp of the first rank is there.
        """
        count, ranks = peers.shape[1] * self.warps, (peers[rows] == rows[:, None]).argmax(1)
        each = np.arange(len(rows))
        known = self._with_own(rows, warps)
        of_cluster = known[:, first : first + count].reshape(len(rows), -1, self.warps)
        of_cluster[each, ranks] = known[:, : self.warps]
        agents = slice(first, first + count)
        np.maximum.at(self.known[:, holder, agents], blocks, of_cluster.reshape(len(rows), -1))
        theirs = of_cluster[each, (peers[rows] == blocks[:, None]).argmax(1)]
        np.maximum.at(self.known[:, holder, : self.warps], blocks, theirs)
        self.ages += 1

    def _with_own(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """What warps [n] of blocks [n] know, and their own accesses so far [n, agents]."""
        known: np.ndarray = self.told[0, rows, warps]
        known[:, : self.warps] = np.maximum(known[:, : self.warps], self.bases[rows, None] - 1)
        known[np.arange(len(rows)), warps] = self.ages[rows]
        return known

    def fence(self, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] execute a proxy fence."""
        own = self._with_own(rows, warps)
        self.fenced[rows, warps] = np.maximum(self.fenced[rows, warps], own)
        self.ages += 1

    def learn(self, rows: np.ndarray, warps: np.ndarray, holder: int) -> None:
        """Warps [n] of blocks [n] learn what was told."""
        self.learned += 1
        told = self.told
        told[:, rows, warps] = np.maximum(told[:, rows, warps], told[:, rows, holder])

    def take(self, rows: np.ndarray, holder: int, of: int) -> None:
        """What was told `of` one holder in blocks [n] is told to another, and no longer there."""
        self.learn(rows, np.full(len(rows), holder), of)
        self.forget(rows, of)

    def forget(self, rows: np.ndarray, holder: int) -> None:
        """What was told to a holder in blocks [n] is not there any more."""
        self.told[:, rows, holder] = 0

    def hear(self, rows: np.ndarray, holder: int | np.ndarray, agents: int | np.ndarray) -> None:
        """A holder, or each of some, learns all that agents have done so far."""
        self.known[rows, holder, agents] = self.ages[rows]
        self.ages += 1

    def commit(self, rows: np.ndarray, warps: np.ndarray, kind: Hashable = COPIES) -> None:
        """What warps [n] have begun so far of a kind of asynchronous operations is a group."""
        self.use()
        if kind not in self._commits:
            self._commits[kind] = np.zeros((COMMITS, len(self.ages), self.warps), np.int64)
        commits = self._commits[kind]
        commits[1:, rows, warps] = commits[:-1, rows, warps]
        commits[0, rows, warps] = self.ages[rows]
        self.ages += 1

    def wait(
        self,
        rows: np.ndarray,
        warps: np.ndarray,
        left: int,
        kind: Hashable = COPIES,
        agents: np.ndarray | None = None,
    ) -> None:
        """Warps [n] wait until at most `left` of their groups are in flight. agents: that execute these, by
        warp; None: `COPIES` of each.
        """
        self.learned += 1
        if kind in self._commits and left < COMMITS:
            done = rows, warps, COPIES + warps if agents is None else agents
            self.known[done] = np.maximum(self.known[done], self._commits[kind][left, rows, warps])


# --- events ----------------------------------------------------------------------------------

#: Holder of what warps tell at the cluster's barrier.
CLUSTER = "cluster"


class ClockListener(OrderListener):
    """Tells `WarpClocks` of all that orders warps but barriers of whole blocks."""

    threads: Threads

    @property
    def _clocks(self) -> WarpClocks:
        """The clocks, in use from here on."""
        raise NotImplementedError

    def arrive_named(self, number: int, mask: Mask) -> None:
        clocks = self._clocks
        clocks.tell(*self._warps(mask), clocks.holder(("barrier", number)))

    def pass_named(self, number: int, mask: Mask) -> None:
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(("barrier", number))
        clocks.tell(rows, warps, holder)
        clocks.learn(rows, warps, holder)
        clocks.forget(rows, holder)

    def arrive_cluster(self, mask: Mask) -> None:
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(CLUSTER)
        clocks.tell(rows, warps, holder)
        for peers in self.threads.peers.T:
            others = peers[rows]
            away = (others >= 0) & (others != rows)
            if away.any():
                self._tell_others(rows[away], warps[away], others[away], holder)

    def pass_cluster(self, mask: Mask) -> None:
        if mask is False:
            return
        clocks, (rows, warps) = self._clocks, self._warps(mask)
        holder = clocks.holder(CLUSTER)
        clocks.learn(rows, warps, holder)
        peers = np.unique(self.threads.peers[rows])
        peers = peers[peers >= 0]
        clocks.learn(peers, np.full(len(peers), clocks.foreign), holder)

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            holder = clocks.holder(("arrived", column))
            near, far = at & (rows == blocks), at & (rows != blocks)
            clocks.tell(rows[near], warps[near], holder)
            if far.any():
                self._tell_others(rows[far], warps[far], blocks[far], holder)
                clocks.tell(rows[far], warps[far], clocks.foreign)

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            clocks.hear(rows[at], clocks.holder(("arrived", column)), COPIES + warps[at])

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            over = clocks.holder(("over", column))
            clocks.take(rows[at], over, clocks.holder(("arrived", column)))
            clocks.hear(rows[at], over, clocks.agent(("copies", column)))

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        clocks = self._clocks
        for column, at in _each(columns):
            clocks.learn(rows[at], warps[at], clocks.holder(("over", column)))

    def commit(self, mask: Mask) -> None:
        self._clocks.commit(*self._warps(mask))

    def wait(self, mask: Mask, left: int) -> None:
        self._clocks.wait(*self._warps(mask), left)

    def _warps(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        """(blocks, warps) with a lane in a mask."""
        return warps_in(self.threads, mask)

    def _tell_others(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, holder: int) -> None:
        peers = self.threads.peers
        self._clocks.tell_others(rows, warps, blocks, holder, peers, self._first_foreign)

    @property
    def _first_foreign(self) -> int:
        clocks = self._clocks
        return clocks.agent("foreign", self.threads.peers.shape[1] * clocks.warps)

    def _foreign(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """The agents that warps [n] of blocks [n] are in other blocks."""
        clocks, peers = self._clocks, self.threads.peers
        ranks = (peers[rows] == rows[:, None]).argmax(1)
        found: np.ndarray = self._first_foreign + ranks * clocks.warps + warps
        return found


def _each(columns: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each mbarrier with where it is among columns."""
    for column in np.unique(columns).tolist():
        yield column, columns == column
