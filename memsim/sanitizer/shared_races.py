"""Races in the shared memory of a block: each access is compared with those before it that nothing orders.

Two accesses race if they overlap, at least one writes, they are not both atomic, and neither happens before
the other (PTX ISA, Conflict and Data-races). For each word it is known who wrote it last, and when each warp
read it last, or changed it atomically; what each warp knows of the others is in `memsim.order.warp_clocks`.
These are the epochs of FastTrack (Flanagan and Freund, PLDI 2009), for warps. Addresses suffice: no value is
needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import numpy as np

from memsim.access import Stretches
from memsim.arch.units import WARP, WORD
from memsim.order.warp_clocks import COPIES, OTHERS, WarpClocks
from memsim.order.word_marks import LaneOrder
from memsim.sanitizer.block_classes import BlockClasses
from memsim.sanitizer.examples import Example, Found, Pair, Unwritten
from memsim.sanitizer.repeats import Repeats
from memsim.state.parts import Part
from memsim.state.sums import Int

#: A mark is a number: from bit 32 on when, an age of `WarpClocks`; from 12 on the instruction; then who: a
#: thread, the copies of a thread by `cp.async`, or from `AGENTS` on another agent. 0: nobody.
AGE, INSTRUCTION, WHO, COPIED, AGENTS = 32, 12, (1 << 12) - 1, 1 << 10, 1 << 11
MOST_INSTRUCTIONS = (1 << AGE - INSTRUCTION) - 1
#: Operations behind the thread that begins them, by the generic proxy, or by the async proxy.
_ASYNC, _PROXY = 1, 2
#: What an access does.
READS, WRITES, UPDATES = "reads", "writes", "updates"
#: Warps of a warpgroup.
GROUP = 4
#: Bytes of marks, above which fewer blocks have to run at once.
MOST_BYTES = 1 << 30


#: Units of lanes that are kept for accesses that come again.
MOST_EXPANDED = 1 << 20


class TooManyClasses(Exception):
    """The running blocks differ so much that their marks do not fit."""


class SharedRaces:
    """The accesses to the shared memory of the running blocks, and the races among them.

    unit: bytes of the smallest access. blocks: their linear numbers.
    """

    def __init__(
        self, blocks: np.ndarray, threads: int, size: int, unit: int, apart: bool, found: Found
    ) -> None:
        self.blocks, self.threads, self.unit = blocks, threads, unit
        self.units = -(-size // unit)
        self.warps = threads // WARP
        self.classes = BlockClasses(len(blocks), apart)
        self.found = found
        self.phase = 0
        rows = len(self.classes)
        self.clocks = WarpClocks(rows, self.warps, proxies=2)
        self.lanes = LaneOrder(rows, self.warps)
        self._check(rows)
        self.stored: np.ndarray = np.zeros(rows * self.units, np.int64)
        #: By instruction of an atomic, those of other sizes.
        self.mixed: Mapping[int, frozenset[int]] = {}
        self.written_before = 0  # bytes at the start that the system has written
        #: By each warp, and by warps of the block of each rank of the cluster.
        self.read: np.ndarray = np.zeros((rows * self.units, self.warps + 1), np.int64)
        self.updated: np.ndarray | None = None
        #: Read by copies in bulk of each warp, and by the products of each warpgroup.
        self.drained: np.ndarray | None = None
        #: Blocks of each cluster, and the agents that are their warps for each other.
        self._peers, self._foreign = np.zeros((0, 0), np.int64), range(0)
        #: Lanes of accesses that may come again, and how many more are kept.
        self._expanded: dict[Hashable, list[np.ndarray]] = {}
        self._left = MOST_EXPANDED
        self._repeats = Repeats(self.clocks, found)
        #: How lanes of diverged warps made these accesses, as numbers of `LaneOrder`.
        self.made: dict[str, np.ndarray] = {}
        #: All warps of a block know of what its warps accessed before the first age, and of what copies by
        #: these did before the second one.
        self._settled = self._settled_of_copies = 1

    def _check(self, rows: int) -> None:
        if rows > 1 and rows * self.units * (self.warps + 2) * 8 > MOST_BYTES:
            raise TooManyClasses

    # --- classes of blocks -------------------------------------------------------------------

    def tell_apart(self, former: np.ndarray | None) -> None:
        """Classes were split: `former` is the former class of each."""
        if former is None:
            return
        self._check(len(former))
        self._expanded, self._left = {}, MOST_EXPANDED

        def spread(array: np.ndarray) -> np.ndarray:
            rows: np.ndarray = array.reshape(-1, self.units, *array.shape[1:])[former]
            return rows.reshape(-1, *array.shape[1:])

        self.stored, self.read = spread(self.stored), spread(self.read)
        if self.updated is not None:
            self.updated = spread(self.updated)
        if self.drained is not None:
            self.drained = spread(self.drained)
        self.made = {name: spread(array) for name, array in self.made.items()}
        self.clocks.spread(former)
        self.lanes.spread(former)

    # --- order -------------------------------------------------------------------------------

    def run(self, mask: bool | Part, alive: bool | Part) -> None:
        """These lanes run together from here on."""
        for one in (mask, alive):
            self.tell_apart(self.classes.split_by(0, one))
        self.lanes.run(self.classes.rows_of(mask), self.classes.rows_of(alive))

    def barrier(self, blocks: np.ndarray) -> None:
        """All threads of these blocks, bool [B], have waited for each other."""
        self.tell_apart(self.classes.split(blocks.astype(np.int64)))
        here = blocks[self.classes.first]
        self.clocks.pass_barrier(here)
        self.phase += 1
        self._settled = self._settled_of_copies = int(self.clocks.bases.min())
        if self.clocks.are_used:
            of_copies = self.clocks.known[:, : self.warps, COPIES : COPIES + self.warps]
            self._settled_of_copies = min(self._settled, int(of_copies.min()) + 1)
        if here.all():
            self.lanes = LaneOrder(len(self.classes), self.warps)

    # --- accesses ----------------------------------------------------------------------------

    def access(
        self,
        way: str,
        instruction: int,
        address: Int,
        width: int,
        active: bool | Part,
        copies: bool = False,
        peers: np.ndarray | None = None,
        key: Hashable = None,
    ) -> None:
        """Lanes access `width` bytes each; `copies`: by `cp.async`, when their warps wait for it. peers: the
        addresses have the ranks of blocks in bits 24 and up, whose numbers here these are [blocks, ranks].
        key: of the lanes and their addresses, if they may come again.
        """
        self.tell_apart(self.classes.split_by(address, active))
        key = None if key is None or self.lanes.have_parted else (key, width, copies)
        if key in self._expanded:
            columns = self._expanded[key]
            self._repeats.make((instruction, key), lambda: self._put(way, instruction, columns, 0, width))
            return
        self._repeats.end()
        rows, threads = self.classes.lanes(active, self.threads)
        if not len(rows):
            return
        places = self.classes.places(address, rows, threads)
        holders = agents = threads // WARP
        who = threads | COPIED if copies else threads
        made = self._made(rows, threads)
        if peers is not None:
            count = peers.shape[1] * self.warps
            first = self.clocks.agent("foreign", count)
            if not self._foreign:
                self._widen(peers.shape[1] - 1)
            self._peers, self._foreign = peers, range(first, first + count)
            ranks = (peers[rows] == rows[:, None]).argmax(1)
            agents = first + ranks * self.warps + threads // WARP
            who, holders = agents - OTHERS + AGENTS, np.full(len(rows), self.clocks.foreign)
            rows, places, made = peers[rows, places >> 24], places & 0xFFFFFF, None
        columns = self._expand(width, [rows, places, who, holders, agents, threads], made)
        if key is not None and self._left > 0:
            self._expanded[key] = columns
            self._left -= len(columns[0])
        self._put(way, instruction, columns, 0, width)

    def _widen(self, count: int) -> None:
        """So many blocks more than one access memory of others."""
        self.read = _with_columns(self.read, count)
        self.updated = None if self.updated is None else _with_columns(self.updated, count)
        self.made = {
            name: array if array.ndim == 1 else _with_columns(array, count)
            for name, array in self.made.items()
        }

    def _columns(self, lanes: _Lanes) -> np.ndarray:
        """Where reads and atomics of lanes are kept: by warp, those of other blocks by the ranks of these."""
        agents, foreign = lanes.agents, self._foreign
        far = (agents >= foreign.start) & (agents < foreign.stop)
        found: np.ndarray = lanes.holders + np.where(far, agents - foreign.start, 0) // self.warps
        return found

    def bulk_access(
        self, way: str, instruction: int, made: Stretches, agents: np.ndarray, proxy: bool = True
    ) -> None:
        """Asynchronous operations [n] access bytes, whose rows are classes: agents [n]. proxy: by the async
        proxy, as copies in bulk and products do.
        """
        whose, units = made.units(self.unit)
        holders = np.where(made.warps < 0, self.clocks.foreign, made.warps)[whose]
        copies = np.where(agents >= OTHERS, agents - OTHERS + AGENTS, COPIED | (agents - COPIES) * WARP)
        threads = np.maximum(made.warps, 0)[whose] * WARP
        columns = [made.rows[whose], units * self.unit, copies[whose], holders, agents[whose], threads]
        mode = _PROXY if proxy else _ASYNC
        self._repeats.end()
        self._put(way, instruction, self._expand(self.unit, columns, None), mode, self.unit)

    def _expand(self, width: int, columns: list[np.ndarray], made: np.ndarray | None) -> list[np.ndarray]:
        """Lanes as columns (class, word, who, holder, agent, thread), once for each of their units."""
        columns = [*columns, *([] if made is None else [made])]
        columns[1] = columns[1] // self.unit
        count = len(columns[0])
        each = max(1, width // self.unit)
        if each > 1:
            columns = [np.repeat(column, each) for column in columns]
            columns[1] = columns[1] + np.tile(np.arange(each), count)
        inside = (columns[1] >= 0) & (columns[1] < self.units)
        if not inside.all():
            columns = [column[inside] for column in columns]
        columns[1] = columns[1] + columns[0] * self.units
        return columns

    def _put(self, way: str, instruction: int, columns: list[np.ndarray], mode: int, width: int) -> None:
        """Lanes that are expanded make an access."""
        rows, words, who, holders, agents, threads = columns[:6]
        ages = self.clocks.ages[rows] if len(self.classes) > 1 else self.clocks.ages
        marks = ages << AGE | (instruction & MOST_INSTRUCTIONS) << INSTRUCTION | who
        more = columns[6] if len(columns) > 6 else None
        self._mark(_Lanes(way, instruction, rows, threads, words, marks, holders, agents, more, mode, width))

    def _made(self, rows: np.ndarray, threads: np.ndarray) -> np.ndarray | None:
        if not self.lanes.have_parted:
            return None
        made = self.lanes.made
        if made is None:
            return np.zeros(len(rows), np.int64)
        found: np.ndarray = made[rows if len(made) > 1 else 0, threads // WARP]
        return found

    def _are_unwritten(self, words: np.ndarray) -> np.ndarray:
        never: np.ndarray = self.stored[words] == 0
        if self.updated is not None:
            never &= ~self.updated[words].any(1)
        if self.written_before:
            never &= words % self.units * self.unit >= self.written_before
        return never

    def _read_unwritten(self, lanes: _Lanes) -> None:
        """Report lanes that read what nobody wrote."""
        never = self._are_unwritten(lanes.words)
        is_wide = lanes.width >= WORD or lanes.mode == _PROXY
        if self.unit < WORD and is_wide and never.any():  # beside a written byte of its word it is padding
            each = WORD // self.unit
            first = lanes.words % self.units // each * each - lanes.words % self.units
            for other in range(each):
                never &= self._are_unwritten(np.minimum(lanes.words + first + other, len(self.stored) - 1))
        at = np.flatnonzero(never)
        if not len(at):
            return
        lane = int(at[0])
        row, word = divmod(int(lanes.words[lane]), self.units)
        one_lane = (lanes.rows == lanes.rows[lane]) & (lanes.threads == lanes.threads[lane])
        key = Unwritten(lanes.instruction, not never[one_lane].all())
        if key not in self.found:
            block, thread = int(self.blocks[self.classes.first[row]]), int(lanes.threads[lane])
            self.found[key] = Example(block, later=thread, place=word * self.unit, phase=self.phase)
        self.found[key].count += int(self.classes.sizes[lanes.rows[at]].sum())

    def _mark(self, lanes: _Lanes) -> None:
        """Compare an access with those before it, and remember it."""
        stored = self.stored[lanes.words]
        if lanes.way != WRITES and not stored.all():
            self._read_unwritten(lanes)
        self._compare("stored", stored, lanes)
        if self.updated is not None and (lanes.way != UPDATES or lanes.instruction in self.mixed):
            updated = self.updated[lanes.words]
            if lanes.way == UPDATES:
                by = updated >> INSTRUCTION & MOST_INSTRUCTIONS
                updated = np.where(np.isin(by, [*self.mixed[lanes.instruction]]), updated, 0)
            self._compare("updated", updated, lanes)
        if lanes.way != READS:
            self._compare("read", self.read[lanes.words], lanes)
            if self.drained is not None:
                self._compare("drained", self.drained[lanes.words], lanes)
        if lanes.way == WRITES:
            self.stored[lanes.words] = lanes.marks
            self._note("stored", lanes, None)
            winners = self.stored[lanes.words]
            lost = np.flatnonzero((winners ^ lanes.marks) & WHO)
            if len(lost):
                self._report(lanes, lost, winners[lost], together=True)
            return
        if lanes.way == READS and lanes.mode:
            if self.drained is None:
                columns = self.warps + -(-self.warps // GROUP)
                self.drained = np.zeros((len(self.stored), columns), np.int64)
            of_group, of_warp = self.warps + lanes.threads // (GROUP * WARP), lanes.threads // WARP
            column = np.where(lanes.agents >= OTHERS, of_group, of_warp)
            self.drained[lanes.words, column] = lanes.marks
            return
        if lanes.way == UPDATES and self.updated is None:
            self.updated = np.zeros_like(self.read)
        marks = self.read if lanes.way == READS else self.updated
        assert marks is not None
        place = lanes.words, self._columns(lanes)
        before = None if lanes.made is None else marks[place]
        marks[place] = lanes.marks
        self._note("read" if lanes.way == READS else "updated", lanes, before)

    def _note(self, name: str, lanes: _Lanes, before: np.ndarray | None) -> None:
        """How lanes of diverged warps made an access; before: the marks of their own warps, if these stay."""
        if lanes.made is None:
            if name in self.made:  # of lanes that had diverged before the last barrier
                self.made[name][lanes.words if name == "stored" else (lanes.words, self._columns(lanes))] = 0
            return
        if name not in self.made:
            self.made[name] = np.zeros((self.stored if name == "stored" else self.read).shape, np.int64)
        if before is None:
            self.made[name][lanes.words] = lanes.made
            return
        place = lanes.words, lanes.holders
        held = self.made[name][place]
        is_late = before >> AGE >= self.clocks.bases[lanes.rows]
        joined = self.lanes.joined
        self.made[name][place] = joined(lanes.rows, place[1], lanes.threads % WARP, lanes.made, held, is_late)

    def _compare(self, name: str, marks: np.ndarray, lanes: _Lanes) -> None:
        """Report those of the marks [n] or [n, warps] that are not ordered before what lanes [n] do."""
        clocks, every = self.clocks, int(np.bitwise_or.reduce(marks, axis=None)) & WHO
        # Mostly all is known to all warps since the last barrier of the block.
        settled = self._settled if every < COPIED else self._settled_of_copies
        is_settled = every < AGENTS and int(marks.max(initial=0)) >> AGE < settled
        if is_settled and lanes.mode != _PROXY and not (lanes.holders == clocks.foreign).any():
            return
        several = marks.ndim > 1
        rows, holders, own = (
            one[:, None] if several else one for one in (lanes.rows, lanes.holders, lanes.agents)
        )
        who, age = marks & WHO, marks >> AGE
        agents = np.where(who < COPIED, who // WARP, COPIES + who % COPIED // WARP)
        if (who >= AGENTS).any():
            agents = np.where(who < AGENTS, agents, who - AGENTS + OTHERS)
        exists = marks != 0
        # A copy comes after what its warp did before it was issued (PTX ISA, Asynchronous operations).
        late = exists & (agents != (holders if lanes.mode else own))
        at = rows, holders, agents
        if clocks.are_used:
            late &= age > clocks.known[at]
            # A barrier of the block tells its own warps only.
            late &= (agents >= COPIES) | (age >= clocks.bases[rows]) | (holders == clocks.foreign)
        else:
            late &= age >= clocks.bases[rows]
        if name in self.made and lanes.made is not None:
            self._compare_lanes(late, name, marks, agents, lanes)
        if lanes.mode == _PROXY and name in ("stored", "updated"):
            unfenced = exists & ~late & (who < AGENTS) & (age > clocks.fenced[at])
            if unfenced.any():
                found = np.nonzero(unfenced)
                self._report(lanes, found[0], marks[found], unfenced=True)
        if late.any():
            found = np.nonzero(late)
            self._report(lanes, found[0], marks[found])

    def _compare_lanes(
        self, late: np.ndarray, name: str, marks: np.ndarray, agents: np.ndarray, lanes: _Lanes
    ) -> None:
        """Add those by other lanes of the same warp, which have diverged and not met since."""
        warps = lanes.holders
        of_holder = (warps,) if marks.ndim > 1 else ()
        own = (np.arange(len(warps)), *of_holder)
        place = lanes.words, *of_holder
        made, of_warp = self.made[name][place], marks[own]
        maybe = (made != 0) & (of_warp >> AGE >= self.clocks.bases[lanes.rows]) & (of_warp != 0)
        maybe &= agents[own] == warps
        at = np.flatnonzero(maybe)
        if len(at):
            ordered = self.lanes.ordered(lanes.rows[at], warps[at], lanes.threads[at] % WARP, made[at])
            late[tuple(one[at[~ordered]] for one in own)] = True

    def _report(
        self,
        lanes: _Lanes,
        at: np.ndarray,
        earlier: np.ndarray,
        together: bool = False,
        unfenced: bool = False,
    ) -> None:
        """Lanes `at` of an access are not ordered with what made the marks `earlier` [n]."""
        who = earlier & WHO
        of_warp = (who < COPIED) & (who // WARP == lanes.agents[at])
        by_copy = (who >= COPIED) & (who < AGENTS)
        agents = who - AGENTS + OTHERS
        far = (agents >= self._foreign.start) & (agents < self._foreign.stop)
        far |= lanes.holders[at] == self.clocks.foreign
        kinds = (earlier >> INSTRUCTION & MOST_INSTRUCTIONS) << 3 | far << 2 | by_copy << 1 | of_warp
        each, first, which = np.unique(kinds, return_index=True, return_inverse=True)
        sizes = self.classes.sizes[lanes.rows[at]]
        counts = np.bincount(which, sizes, len(each)).astype(np.int64)
        for kind, one, count in zip(each.tolist(), first.tolist(), counts.tolist()):
            is_far, copied, same_warp = (bool(kind >> bit & 1) for bit in (2, 1, 0))
            pair = Pair(kind >> 3, lanes.instruction, copied, same_warp, together, unfenced, is_far)
            if pair not in self.found:
                lane, other = int(at[one]), int(who[one])
                row, word = divmod(int(lanes.words[lane]), self.units)
                thread = other % COPIED if other < AGENTS else -1
                agent = int(lanes.agents[lane])
                later = int(lanes.threads[lane]) if agent < OTHERS or agent in self._foreign else -1
                block, before = (self._block(row, by) for by in (agent, other - AGENTS + OTHERS))
                self.found[pair] = Example(block, thread, later, word * self.unit, self.phase, 0, before)
            self.found[pair].count += count

    def _block(self, row: int, agent: int) -> int:
        """The number of the block of an agent that accesses memory of a class."""
        if agent in self._foreign:
            row = int(self._peers[row, (agent - self._foreign.start) // self.warps])
        return int(self.blocks[self.classes.first[row]])


def _with_columns(array: np.ndarray, count: int) -> np.ndarray:
    return np.pad(array, ((0, 0), (0, count)))


class _Lanes(NamedTuple):
    """Lanes of an access as columns, once for each word: their class, thread, word among those of all
    classes, mark, and who they are for the clocks: what they know, and as whom others know them. made: how
    their diverged warps run; None: none ever diverged. mode: 0, or `_ASYNC`, or `_PROXY`. width: bytes.
    """

    way: str
    instruction: int
    rows: np.ndarray
    threads: np.ndarray
    words: np.ndarray
    marks: np.ndarray
    holders: np.ndarray
    agents: np.ndarray
    made: np.ndarray | None
    mode: int
    width: int
