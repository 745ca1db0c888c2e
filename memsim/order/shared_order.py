"""Whether barriers order what the warps of a block do in shared memory; if not, values depend on timing.

For each word it is known which warp stored to it last, which have loaded from it, and behind which barrier.
Two accesses of one word by different warps of a block, with no barrier in between, are not ordered. They
matter if one is a load and the other changes what it reads, or if both are stores of different values and
the word is loaded later, before it is stored to again.

Lanes of one warp that have diverged are not ordered either, until they run together again (word_marks.py).

Where all blocks access the same addresses, one row of words stands for all of them, until two warps meet in
it, or lanes diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from memsim.arch.units import WARP, WORD
from memsim.order.order_listener import Race
from memsim.order.warp_clocks import COPIES, WarpClocks
from memsim.order.word_marks import (
    ADDERS,
    AGE,
    ATOMICS,
    DIFFERENT,
    INSTRUCTION,
    LOADERS,
    MOST_INSTRUCTIONS,
    SAME,
    SEVERAL,
    SOME_LANES,
    STICKY,
    WHO,
    Access,
    LaneOrder,
    MarkGroups,
    WordMarks,
    are_foreign,
    by_others,
    instructions,
    mark_words,
    of_same_warp,
)
from memsim.state.parts import Mask, Part
from memsim.state.predicates import to_bools

#: Atomics whose order does not change what is left.
COMMUTE = frozenset(("add", "min", "max", "and", "or", "xor", "inc", "dec"))
#: Accesses of some blocks only, after which there are rows for each block.
MOST_ACCESSES = 1000


class SharedOrder:
    """The accesses to the shared memory of the running blocks.

    now: the index of the instruction that makes them. partly: from the start something else than block
    barriers may order accesses.
    """

    def __init__(
        self, blocks: int, threads: int, size: int, report: Callable[[Race], None], partly: bool = False
    ) -> None:
        self.shape = blocks, threads
        self.warps = np.arange(threads) // WARP
        self.now = 0
        self._report = report
        self._told: set[Race] = set()
        #: By instruction the first and the last byte of a block that it has accessed.
        self.reach: dict[int, tuple[int, int]] = {}
        self._unit = WORD
        self._columns = size // WORD
        self._foreign: np.ndarray | None = None
        self._sender: tuple[int, int, int] | None = None
        self.clocks = WarpClocks(blocks, threads // WARP)
        self._groups = MarkGroups()
        self._is_split = blocks == 1
        self._stored, self._loaded = self._new(), self._new()
        #: Until there are rows for each block: what all blocks did, and accesses by some of them.
        self._of_all = self._new(), self._new()
        self._of_some: list[tuple[int, bool, np.ndarray, int, Mask]] = []
        #: The warps that stored the same value, as bits.
        self._members: np.ndarray | None = None
        self._operations: dict[int, str] = {}
        self.lanes = LaneOrder(blocks, threads // WARP)
        if partly:
            self.partly()

    def _new(self) -> WordMarks:
        return WordMarks(np.zeros(self._columns, np.int64))

    def pass_barrier(self, blocks: np.ndarray) -> None:
        """All warps of these blocks, bool (B,), have waited for each other."""
        if blocks.all():
            self._of_some.clear()
        else:
            self._split()
        self.clocks.pass_barrier(blocks)

    def partly(self) -> WarpClocks:
        """The clocks, where something else than a block barrier orders accesses."""
        self._split()
        self.clocks.use()
        return self.clocks

    def load(self, index: np.ndarray, size: int, active: bool | Part) -> None:
        """Lanes load elements of so many bytes at these indices, which broadcast to (B, T)."""
        self._prepare(index, size)
        access = self._access(index, size, active)
        self._note_reach(access)
        stored = self._stored[access.words]
        late = self._unordered(self._stored, access) | (stored & WHO == DIFFERENT)
        if late.any():
            if not self._is_split:  # the row may be of accesses by different blocks: look at each
                self._split()
                self.load(index, size, active)
                return
            self._late_loads(access.words[late], access.own[late], stored[late])
        others = self._unordered(self._loaded, access)
        joins = others & of_same_warp(self._loaded[access.words], access.own)
        if self.clocks.are_used:
            self._meet(self._loaded, access, self._loaded[access.words], LOADERS)
        else:
            self._loaded.load(access, others & ~joins)
        self._loaded.note(access, joins, SEVERAL)
        self._remember(False, index, size, active)

    def store(self, index: np.ndarray, size: int, active: bool | Part) -> bool:
        """Lanes store; True if warps meet in a word, and `overlap` has to be told of the values."""
        self._prepare(index, size)
        access = self._access(index, size, active)
        self._note_reach(access)
        stored, words, own = self._stored, access.words, access.own
        before = stored[words]
        if not (self._unordered(stored, access) | self._unordered(self._loaded, access)).any():
            # Nobody was there before; whether lanes of this store meet is seen from the marks that stay.
            stored[words] = own
            if (stored[words] == own).all():
                stored.note(access, np.zeros(len(words), bool), 0)
                self._remember(True, index, size, active)
                return False
            stored[words] = before
        if not self._is_split:
            self._split()
            return self.store(index, size, active)
        return True

    def overlap(
        self, index: np.ndarray, size: int, active: bool | Part, same: np.ndarray, stays: np.ndarray
    ) -> None:
        """A store in whose words warps meet. `same`: lanes that store the value that was there before;
        `stays`: lanes whose value is there now. Both broadcast to (B, T).
        """
        access = self._access(index, size, active)
        same, stays = (self._of_lanes(one, size, active) for one in (same, stays))
        stored, words, own = self._stored, access.words, access.own
        before = stored[words]
        others = self._unordered(stored, access)
        self._late_store(access, ~same)
        stored[words] = own
        replaced = by_others(stored[words], access)
        # Stores of one value may change places. Not if it is unknown what is there (others may have stored
        # another value, atomics any), and not with warps of other blocks: `SAME` knows those of one block.
        who = before & WHO
        strange = np.isin(who, (DIFFERENT, ATOMICS, ADDERS)) | are_foreign(who) | are_foreign(own & WHO)
        differ = (others & (~same | strange)) | ~stays | (replaced & are_foreign(own & WHO))
        joins = others & ~differ & of_same_warp(before, own)
        self._join(access, before, ~differ & (others | replaced) & ~joins)
        stored.note(access, joins, 0)
        stored[words[differ]] = own[differ] | DIFFERENT

    def differ(self, index: np.ndarray, size: int, active: bool | Part, lost: np.ndarray) -> None:
        """After a store in whose words only lanes of one warp meet: those whose value is not there now."""
        self._split()
        access, lost = self._access(index, size, active), self._of_lanes(lost, size, active)
        self._stored[access.words[lost]] = access.own[lost] | DIFFERENT

    def update(self, index: np.ndarray, size: int, active: bool | Part, operation: str) -> None:
        """Lanes perform an atomic, after whose name (`add`) those are told apart that may change places."""
        self._prepare(index, size)
        if not self._is_split:
            self._split()
        access = self._access(index, size, active)
        self._note_reach(access)
        words, own = access.words, access.own
        self._operations[self.now] = operation
        self._late_store(access, np.ones(len(words), bool))
        stored = self._stored
        before = stored[words]
        recent = before >> AGE == own >> AGE
        numbers, which = np.unique(self._groups.instructions(before), return_inverse=True)
        alike = np.array([self._operations.get(int(one)) == operation for one in numbers])[which]
        alike &= operation in COMMUTE
        others = self._unordered(stored, access)
        # Atomics that are alike may change places, but not with a store that the warp made before its atomic
        # and since the last synchronization: the mark keeps the store's instruction, which is like no atomic.
        after_store = recent & ~alike & ~others & ((before ^ own) & WHO == 0)
        by = MOST_INSTRUCTIONS << INSTRUCTION
        own = np.where(after_store, own & ~by | before & by, own)
        stored[words] = own
        access = replace(access, own=own)
        replaced = by_others(stored[words], access)
        differ = others & ~alike
        if operation not in COMMUTE:
            _, which, count = np.unique(words, return_inverse=True, return_counts=True)
            differ |= count[which] > 1
        # Which store was the last one still shows in the result, unless that replaces it.
        differ |= (before & WHO == DIFFERENT) & (operation != "exch")
        joins = others & ~differ & of_same_warp(before, own)
        several = (others & ~joins) | replaced
        if self.clocks.are_used:
            self._meet(stored, access, before, ADDERS)
        else:
            stored[words[several]] = (own[several] & ~WHO) | ATOMICS
        stored.note(access, joins, SEVERAL)
        stored[words[differ]] = own[differ] | DIFFERENT

    def send(
        self, index: np.ndarray, size: int, active: bool | Part, agents: np.ndarray | None = None
    ) -> None:
        """The last store is done when agents (B, T) tell so; None: `cp.async`, when its warp waits for it."""
        self.partly()
        access = self._access(index, size, active)
        # Only where the store met nobody: what others left unordered stays so when the copy is done.
        plain = self._stored[access.words] & ~SOME_LANES == access.own
        who = self._of_lanes(COPIES + self.warps if agents is None else agents, size, active)[plain]
        self._stored[access.words[plain]] = STICKY | access.own[plain] & ~WHO | who

    def set_sender(self, row: int, warp: int, agent: int) -> None:
        """A warp of a block makes copies that are done when the agent tells so."""
        self._sender = row, warp, agent

    def overwrite(self, row: int, places: np.ndarray) -> None:
        """A copy writes bytes [n] of a block."""
        if self._sender is None:
            self._stored[(row if self._is_split else 0) * self._columns + places // self._unit] = np.int64(0)
            return
        self._split()
        words = row * self._columns + places // self._unit
        # The copy comes after what its warp did before (PTX ISA, Asynchronous operations), so loads are late
        # only by others; from then on it is an access by its agent, which the mbarrier tells of.
        of_row, warp, agent = self._sender
        mark = int(self.clocks.ages[row]) << AGE | (self.now & MOST_INSTRUCTIONS) << INSTRUCTION
        if of_row == row:
            own, since = (np.full(len(words), one) for one in (mark | warp, self.clocks.bases[row] << AGE))
            self._late_store(Access(words, own, since), np.ones(len(words), bool))
        self._stored[words] = np.int64(STICKY | mark | agent)

    @contextmanager
    def as_foreign(self, rows: np.ndarray, agents: np.ndarray) -> Iterator[None]:
        """Accesses are by threads of other blocks, agents [B, T], to the memory of blocks `rows` [B, T]."""
        self.partly()
        held = self.warps
        self.warps, self._foreign = agents, rows
        try:
            yield
        finally:
            self.warps, self._foreign = held, None

    def _note_reach(self, access: Access) -> None:
        if len(access.words):
            columns = access.words % self._columns if self._is_split else access.words
            first, last = int(columns.min()) * self._unit, (int(columns.max()) + 1) * self._unit - 1
            known = self.reach.get(self.now, (first, last))
            self.reach[self.now] = min(known[0], first), max(known[1], last)

    def _unordered(self, marks: WordMarks, access: Access) -> np.ndarray:
        """Which accesses are not ordered after those that made the marks of their words."""
        before = marks[access.words]
        found = by_others(before, access)
        if not self._is_split:
            return found
        of_warp = of_same_warp(before, access.own)
        if marks.made is not None and access.lanes is not None:
            maybe = np.flatnonzero(found & of_warp)
            words, warps = access.words[maybe], access.own[maybe] & WHO
            rows, lanes = words // self._columns, access.lanes[maybe]
            if len(maybe):
                found[maybe] = ~self.lanes.ordered(rows, warps, lanes, marks.made[words])
        if self.clocks.are_used:
            maybe = np.flatnonzero(found & ~of_warp)
            rows, own = access.words[maybe] // self._columns, access.own[maybe] & WHO
            found[maybe] = ~self._groups.are_known(self.clocks, before[maybe], rows, own)
        return found

    def _meet(self, marks: WordMarks, access: Access, before: np.ndarray, kind: int) -> None:
        """Mark words that warps access without an order that matters, one warp after the other."""
        words, own = access.words, access.own
        marks[words] = own
        others = by_others(before, access)
        if not others.any() and (marks[words] == own).all():
            return  # as mostly: nobody else was there, and no two warps are
        marks[words] = before
        who = own & WHO
        for one in np.unique(who):
            at = np.flatnonzero(who == one)
            mine = Access(words[at], own[at], access.since[at])
            held = marks[mine.words]
            apart = self._unordered(marks, mine) & ~of_same_warp(held, mine.own)
            marks[mine.words] = self._groups.join_marks(held, mine.own, apart, kind)

    def _late_loads(self, words: np.ndarray, own: np.ndarray, stored: np.ndarray) -> None:
        """Loads of what other warps or lanes store at any time."""
        if self._members is not None:
            # A warp that stored the value itself finds it, whichever of the stores comes last.
            members = self._members[words] >> (own & WHO & 31).astype(np.uint32) & 1 != 0
            members &= own & WHO < COPIES
            late = ~((stored & WHO == SAME) & members)
            own, stored = own[late], stored[late]
        for store, who, by_lanes in instructions(self._groups.one_of_each(stored), own):
            self._tell(Race(self.now, store, who == DIFFERENT, by_lanes))

    def _late_store(self, access: Access, changes: np.ndarray) -> None:
        """Stores, some of which change what others have loaded."""
        late = self._unordered(self._loaded, access) & changes
        marks = self._groups.one_of_each(self._loaded[access.words[late]])
        for load, _, by_lanes in instructions(marks, access.own[late]):
            self._tell(Race(load, self.now, False, by_lanes))

    def _tell(self, race: Race) -> None:
        if race not in self._told:
            self._told.add(race)
            self._report(race)

    def _join(self, access: Access, before: np.ndarray, joins: np.ndarray) -> None:
        """Warps have stored the same value to words."""
        if not joins.any():
            return
        stored, words, own = self._stored, access.words, access.own
        if self._members is None:
            self._members = np.zeros(len(stored.marks), np.uint32)
        stored[words[joins]] = (own[joins] & ~WHO) | SAME
        here = stored[words] & WHO == SAME
        words, own, before = words[here], own[here], before[here]
        who = (before & WHO).astype(np.uint32)
        alone = np.where(before & SOME_LANES == 0, np.uint32(1) << (who & 31), np.uint32(0))
        known = np.where(who == SAME, self._members[words], alone)
        self._members[words] = np.where(before >= access.since[here], known, np.uint32(0))
        bits = np.uint32(1) << (own & WHO & 31).astype(np.uint32)
        if access.made is not None:  # other lanes of the warp have not stored it
            bits = np.where(access.made[here] == 0, bits, np.uint32(0))
        np.bitwise_or.at(self._members, words, bits)

    def _prepare(self, index: np.ndarray, size: int) -> None:
        """Have units that are small enough, and rows for each block if these access different ones, or if
        lanes of a warp are apart.
        """
        if size < self._unit:
            count = self._unit // size
            self._unit, self._columns = size, self._columns * count

            def divided(array: np.ndarray) -> np.ndarray:
                return np.repeat(array, count)

            self._stored, self._loaded = self._stored.with_words(divided), self._loaded.with_words(divided)
            self._of_all = self._of_all[0].with_words(divided), self._of_all[1].with_words(divided)
            if self._members is not None:
                self._members = divided(self._members)
        if index.shape[0] > 1 or self.lanes.made is not None:
            self._split()

    def _split(self) -> None:
        """From now on each block has a row."""
        if self._is_split:
            return
        self._is_split = True
        blocks = self.shape[0]
        self._stored, self._loaded = (
            marks.with_words(lambda one: np.tile(one, blocks)) for marks in self._of_all
        )
        now = self.now
        for instruction, stores, index, size, active in self._of_some:
            self.now = instruction
            access = self._access(index, size, active)
            mark_words(self._stored if stores else self._loaded, stores, access)
        self.now = now
        self._of_some.clear()

    def _remember(self, stores: bool, index: np.ndarray, size: int, active: bool | Part) -> None:
        """Keep an access, as long as one row stands for all blocks."""
        if self._is_split:
            return
        if isinstance(active, Part) and active.shape[0] > 1:
            self._of_some.append((self.now, stores, index, size, active))
            if len(self._of_some) > MOST_ACCESSES:
                self._split()
            return
        stored, loaded = self._of_all
        mark_words(stored if stores else loaded, stores, self._access(index, size, active))

    def _access(self, index: np.ndarray, size: int, active: bool | Part) -> Access:
        """What lanes access; with one row, lanes of any block."""
        rows = self.shape[0] if self._is_split else 1
        here = np.arange(rows)[:, None] if self._foreign is None else self._foreign
        ages = self.clocks.ages[here] << AGE
        marks = ages | (self.now & MOST_INSTRUCTIONS) << INSTRUCTION | self.warps
        count = size // self._unit
        places = index * count + here * self._columns
        words = self._of_lanes(places, size, active)
        if count > 1:
            words = words + np.tile(np.arange(count), len(words) // count)
        own, made = self._of_lanes(marks, size, active), self.lanes.made
        if self._foreign is not None:
            return Access(words, own | STICKY, np.zeros(len(own), np.int64))
        since = own & -1 << AGE
        if self.clocks.are_used:
            since = self._of_lanes(self.clocks.bases[:, None] << AGE, size, active)
        if not self.lanes.have_parted:
            return Access(words, own, since)
        lanes = self._of_lanes(np.arange(self.shape[1]) % WARP, size, active)
        if made is None:
            return Access(words, own, since, lanes)
        made = np.repeat(np.broadcast_to(made, (len(made), self.shape[1] // WARP)), WARP, axis=1)
        return Access(words, own, since, lanes, self._of_lanes(made, size, active))

    def _of_lanes(self, array: np.ndarray, size: int, active: bool | Part) -> np.ndarray:
        """The elements of the active lanes, once for each word that these access."""
        rows, threads = self.shape if self._is_split else (1, self.shape[1])
        found: np.ndarray = np.broadcast_to(array, (rows, threads)).reshape(-1)
        if isinstance(active, Part):
            mask = active.array if self._is_split else active.array.any(0, keepdims=True)
            found = found[np.broadcast_to(mask, (rows, threads)).reshape(-1)]
        elif not to_bools(active).all():
            found = found[:0]
        return np.repeat(found, size // self._unit) if size > self._unit else found
