"""Which accesses of the other warps of a launch, in any block, each warp knows of.

Knowledge is a graph: a node knows what those before it know, and perhaps what a warp has told: all that its
block accessed before a barrier of its own, and what the warp itself accessed before it told. Only a node that
is asked for is worked out, so memory grows with what warps tell, not with its square.

Flags carry knowledge from block to block (PTX ISA, Release and Acquire Patterns): a fence, then a strong
write; a strong read that sees that write, or one that an atomic made of it, then a fence. What is known at a
fence passes barriers of the block on its way to the write, and what was seen passes them on its way to the
fence: `__threadfence()` is fence.sc, and the order of these (Fence-SC order) leaves no other way. Fences and
strong accesses of the scope of a block do the same for the warps of one block (Scope). Machine code has no
fence for `ld.acquire.cta`, so all that such a read sees is known.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

#: Nodes after which no more are made, and bytes of what is kept of those that were asked for.
MOST_NODES, MOST_KEPT = 1 << 20, 1 << 26
#: Of each warp: the node of what it knows, of what it knew at its last fence, of what it has seen, and of
#: what is behind a proxy fence; then at its last fence of any scope, and seen by flags of its own block.
KNOWN, FENCED, SEEN, PROXIED, FENCED_HERE, SEEN_HERE = KINDS = range(6)


class Told(NamedTuple):
    """A warp tells what its block accessed before a barrier, by the number of those behind it, and what it
    accessed itself up to an age.
    """

    block: int
    barriers: int
    warp: int
    age: int


class BlockOrder:
    """Of a launch of so many blocks, warps of each, and agents, of which these are the first.

    ages: of accesses of the running blocks [B]. exits: of each block and agent, how many barriers a warp had
    passed when it exited; None: none has that its block waited without. is_full: some orders are not known.
    """

    def __init__(self, blocks: int, warps: int, agents: int) -> None:
        self.shape, self._warps = (blocks, 1 + agents), warps
        self.is_full = blocks * (1 + agents) * 4 > MOST_KEPT
        self._before: list[tuple[int, ...]] = [()]
        self._told: list[Told | None] = [None]
        self._worked_out: dict[int, np.ndarray] = {}
        self._held: dict[Hashable, tuple[int, ...]] = {}
        self._flags: dict[int, tuple[int, int]] = {}
        #: What warps of running blocks have told by a cell to those of their own.
        self._flags_here: dict[tuple[int, int], int] = {}
        self.exits: np.ndarray | None = None

    @property
    def is_used(self) -> bool:
        """Whether anything was told."""
        return len(self._before) > 1

    def start(self, blocks: np.ndarray) -> None:
        """These blocks run now."""
        self._blocks = blocks
        self.ages: np.ndarray = np.zeros(len(blocks), np.int32)
        self._barriers: np.ndarray = np.zeros(len(blocks), np.int64)
        self._of: np.ndarray = np.zeros((len(KINDS), len(blocks), self._warps), np.int64)
        self._held, self._flags_here = {}, {}

    # --- events --------------------------------------------------------------------------------

    def pass_barrier(self, rows: np.ndarray) -> None:
        """All warps of these blocks, bool [B], have waited for each other."""
        self._barriers = self._barriers + rows
        if not self.is_used:
            return
        apart = rows & (self._of != self._of[:, :, :1]).any((0, 2))
        for row in np.flatnonzero(apart).tolist():
            for kind in KINDS:
                self._of[kind, row] = self._join(self._of[kind, row].tolist())

    def exit(self, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] have exited, and pass no barrier from here on."""
        if self.exits is None:
            self.exits = np.full((self.shape[0], self.shape[1] - 1), np.iinfo(np.int32).max, np.int32)
        place = self._blocks[rows], warps
        self.exits[place] = np.minimum(self.exits[place], self._barriers[rows])

    def fence(self, rows: np.ndarray, warps: np.ndarray, releases: bool, of_block: bool) -> None:
        """Warps [n] of blocks [n] execute a fence, as of `OrderListener.fence_memory`."""
        learned = (KNOWN, SEEN_HERE) if of_block else (KNOWN, SEEN_HERE, SEEN)
        fenced = [FENCED_HERE] if of_block else [FENCED_HERE, FENCED]
        for row, warp in zip(rows.tolist(), warps.tolist()):
            known = self._join(self._node(kind, row, warp) for kind in learned)
            self._of[KNOWN, row, warp] = known
            if releases:
                self._of[fenced, row, warp] = self._tell(known, row, warp)
        if releases:
            self.ages[np.unique(rows)] += 1

    def fence_proxies(self, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] of blocks [n] execute a proxy fence."""
        for row, warp in zip(rows.tolist(), warps.tolist()):
            node = self._tell(self._node(KNOWN, row, warp), row, warp)
            self._of[PROXIED, row, warp] = self._join((self._node(PROXIED, row, warp), node))
        self.ages[np.unique(rows)] += 1

    def hear(self, key: Hashable, row: int, agent: int) -> None:
        """What an agent of a block has done so far is told somewhere."""
        held = self._held.get(key, (0,) * len(KINDS))
        told = self._new((), Told(int(self._blocks[row]), 0, agent, int(self.ages[row])))
        self._held[key] = (self._join((held[KNOWN], told)), *held[1:])
        self.ages[row] += 1

    def tell(self, rows: np.ndarray, warps: np.ndarray, keys: Iterable[Hashable]) -> None:
        """Warps [n] of blocks [n] arrive somewhere."""
        for row, warp, key in zip(rows.tolist(), warps.tolist(), keys):
            known, *others = self._held.get(key, (0,) * len(KINDS))
            own = self._tell(self._node(KNOWN, row, warp), row, warp)
            others = [self._join(pair) for pair in zip(others, self._of[1:, row, warp].tolist())]
            self._held[key] = (self._join((known, own)), *others)
        self.ages[np.unique(rows)] += 1

    def learn(self, rows: np.ndarray, warps: np.ndarray, keys: Iterable[Hashable]) -> None:
        """Warps [n] of blocks [n] have waited there for those that arrived."""
        for row, warp, key in zip(rows.tolist(), warps.tolist(), keys):
            for kind, node in enumerate(self._held.get(key, ())):
                self._of[kind, row, warp] = self._join((self._node(kind, row, warp), node))

    def learn_of(self, row: int, warp: int, agent: int, age: int) -> None:
        """A warp of a block learns what an agent of it has done up to an age."""
        told = self._new((), Told(int(self._blocks[row]), 0, agent, age))
        self._of[KNOWN, row, warp] = self._join((self._node(KNOWN, row, warp), told))

    def move(self, key: Hashable, to: Hashable | None) -> None:
        """Those that arrived at one place count as those at another, or as none."""
        held = self._held.pop(key, None)
        if held is not None and to is not None:
            self._held[to] = held

    def strong(
        self,
        rows: np.ndarray,
        warps: np.ndarray,
        cells: np.ndarray,
        reads: bool,
        writes: bool,
        keeps: bool,
        of_block: bool,
    ) -> None:
        """Warps [n] of blocks [n] make strong accesses to cells; keeps: a write keeps what others told.
        of_block: their scope is that of their blocks.
        """
        are_flags = bool(self._flags or self._flags_here)
        if not self.is_used or not (are_flags or (writes and self._of[FENCED_HERE].any())):
            return
        fenced = self._of[FENCED_HERE, rows, warps] != 0
        apart = np.ones(len(rows), np.bool_)
        apart[1:] = (rows[1:] != rows[:-1]) | (warps[1:] != warps[:-1]) | (cells[1:] != cells[:-1])
        for at in np.flatnonzero(apart & (fenced | are_flags)).tolist():
            row, warp, cell = int(rows[at]), int(warps[at]), int(cells[at])
            here = self._flags_here.get((row, cell), 0)
            held = (0, 0) if of_block else self._flags.get(cell, (0, 0))
            for kind, node in zip((SEEN, PROXIED, SEEN_HERE), (*held, here)) if reads else ():
                self._of[kind, row, warp] = self._join((self._node(kind, row, warp), node))
            if reads and of_block:
                self._of[KNOWN, row, warp] = self._join((self._node(KNOWN, row, warp), here))
            if writes:
                told_here = self._node(FENCED_HERE, row, warp)
                told_here = self._join((here, told_here)) if keeps else told_here
                if told_here or here:
                    self._flags_here[row, cell] = told_here
            if writes and not of_block:
                told = self._node(FENCED, row, warp), self._node(PROXIED, row, warp)
                if keeps:
                    told = self._join((held[0], told[0])), self._join((held[1], told[1]))
                if any((*told, *held)):
                    self._flags[cell] = told

    # --- questions -----------------------------------------------------------------------------

    def knows(
        self,
        kind: int,
        rows: np.ndarray,
        warps: np.ndarray,
        blocks: np.ndarray,
        barriers: np.ndarray,
        others: np.ndarray,
        ages: np.ndarray,
    ) -> np.ndarray:
        """Whether warps [n] of running blocks [n] know of accesses [n], or have seen them: the blocks of
        these, how many barriers those had passed, and the warps and ages there.
        """
        found: np.ndarray = np.zeros(len(rows), np.bool_)
        nodes = self._of[kind, rows, warps]
        for node in np.unique(nodes).tolist():
            if node:
                at = np.flatnonzero(nodes == node)
                told, block = self._work_out(node), blocks[at]
                met = (barriers[at] < told[block, 0]) & ~self.have_exited(block, barriers[at], others[at])
                found[at] = met | (ages[at] < told[block, 1 + others[at]])
        return found

    def have_exited(self, blocks: np.ndarray, barriers: np.ndarray, warps: np.ndarray) -> np.ndarray:
        """Whether warps [n] of blocks [n] have exited without one more barrier than these."""
        if self.exits is None:
            return np.zeros(len(blocks), np.bool_)
        found: np.ndarray = self.exits[blocks, warps] <= barriers
        return found

    def _work_out(self, node: int) -> np.ndarray:
        """What a node knows of each block [B, 1 + warps]: how many barriers had been passed behind all that
        it knows, and by warp the age after the last that it knows, 0 for nothing.
        """
        known = self._worked_out.get(node)
        if known is not None:
            return known
        known = np.zeros(self.shape, np.int32)
        work, seen = [node], {node}
        while work:
            one = work.pop()
            whole = self._worked_out.get(one)
            if whole is not None:
                np.maximum(known, whole, out=known)
                continue
            told = self._told[one]
            if told is not None:
                row = known[told.block]
                row[0], row[1 + told.warp] = max(row[0], told.barriers), max(row[1 + told.warp], told.age + 1)
            fresh = [before for before in self._before[one] if before not in seen]
            seen.update(fresh)
            work += fresh
        if len(self._worked_out) * known.nbytes > MOST_KEPT:
            del self._worked_out[next(iter(self._worked_out))]
        self._worked_out[node] = known
        return known

    # --- nodes ---------------------------------------------------------------------------------

    def _node(self, kind: int, row: int, warp: int) -> int:
        return int(self._of[kind, row, warp])

    def _tell(self, known: int, row: int, warp: int) -> int:
        told = Told(int(self._blocks[row]), int(self._barriers[row]), warp, int(self.ages[row]))
        return self._new((known,) if known else (), told)

    def _join(self, nodes: Iterable[int]) -> int:
        """The node of what several know, 0 for nothing."""
        some = {*nodes} - {0}
        for one in sorted(some):
            if any(one in self._before[other] for other in some):
                some.discard(one)
        return self._new(tuple(some), None) if len(some) > 1 else some.pop() if some else 0

    def _new(self, before: tuple[int, ...], told: Told | None) -> int:
        if self.is_full or len(self._before) >= MOST_NODES:
            self.is_full = True
            return 0
        self._before.append(before)
        self._told.append(told)
        return len(self._before) - 1
