"""Whether barriers order what the warps of a block do in shared memory; if not, values depend on timing.

For each word it is known which warp stored to it last, which have loaded from it, and behind which barrier.
Two accesses of one word by different warps of a block, with no barrier in between, are not ordered. They
matter if one is a load and the other changes what it reads, or if both are stores of different values and
the word is loaded later, before it is stored to again.

Where all blocks access the same addresses, one row of words stands for all of them, until two warps meet in
it. Any barrier that a warp of the block waits at counts as one of all warps. Lanes of one warp are ordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.arch.units import WARP, WORD
from memsim.state.parts import Part
from memsim.state.predicates import to_bools

#: Reports (instruction that loads, one that stores, whether several warps' stores are not ordered).
Report = Callable[[int, int, bool], None]

#: A mark is a number: from bit 26 on, how many barriers the block has passed; the instruction; and who.
AGE, INSTRUCTION = 26, 6
WHO, MOST_INSTRUCTIONS = (1 << INSTRUCTION) - 1, (1 << (AGE - INSTRUCTION)) - 1
#: Who, if not one warp: atomics of several that may change places; several that stored the same value;
#: several that loaded; several that stored different values.
ATOMICS, SAME, LOADS, DIFFERENT = 60, 61, 62, 63
#: Atomics whose order does not change what is left.
COMMUTE = frozenset(("add", "min", "max", "and", "or", "xor", "inc", "dec"))
#: Accesses of some blocks only, after which there are rows for each block.
MOST_ACCESSES = 1000


class WordMarks:
    """The last stores to the words of one or more rows, and the loads since: flat int64 arrays."""

    def __init__(self, stored: np.ndarray, loaded: np.ndarray) -> None:
        self.stored = stored
        self.loaded = loaded

    def load(self, words: np.ndarray, own: np.ndarray) -> None:
        """Mark words [n] as loaded, each by `own` [n]."""
        before = self.loaded[words]
        several = (own & ~WHO) | LOADS
        marks = np.where(_by_others(before, own), several, own)
        self.loaded[words] = marks
        lost = self.loaded[words] != marks
        if lost.any():
            self.loaded[words[lost]] = several[lost]

    def repeated(self, count: int) -> WordMarks:
        """With each word divided in `count` parts."""
        return WordMarks(np.repeat(self.stored, count), np.repeat(self.loaded, count))


class SharedOrder:
    """The accesses to the shared memory of the running blocks.

    now: the index of the instruction that makes them.
    """

    def __init__(self, blocks: int, threads: int, size: int, report: Report) -> None:
        self.shape = blocks, threads
        self.warps = np.arange(threads) // WARP
        self.now = 0
        self._report = report
        self._told: set[tuple[int, int, bool]] = set()
        self._unit = WORD
        self._columns = size // WORD
        self._barriers: np.ndarray = np.ones((1, 1), np.int64)
        self._is_split = blocks == 1
        self._marks = self._new()
        #: Until there are rows for each block: what all blocks did, and accesses by some of them.
        self._of_all = self._new()
        self._of_some: list[tuple[int, bool, np.ndarray, int, Any]] = []
        #: The warps that stored the same value, as bits.
        self._members: np.ndarray | None = None
        self._operations: dict[int, str] = {}

    def _new(self) -> WordMarks:
        return WordMarks(np.zeros(self._columns, np.int64), np.zeros(self._columns, np.int64))

    def pass_barrier(self, blocks: np.ndarray) -> None:
        """Warps of these blocks, bool (B,), have waited for others."""
        if blocks.all():
            self._barriers = self._barriers + 1
            self._of_some.clear()
            return
        self._split()
        self._barriers = self._barriers + blocks[:, None]

    def load(self, index: np.ndarray, size: int, active: bool | Part) -> None:
        """Lanes load elements of so many bytes at these indices, which broadcast to (B, T)."""
        self._prepare(index, size)
        words, own = self._lanes(index, size, active)
        stored = self._marks.stored[words]
        late = _by_others(stored, own) | (stored & WHO == DIFFERENT)
        if late.any():
            if not self._is_split:
                self._split()
                self.load(index, size, active)
                return
            self._late_loads(words[late], own[late], stored[late])
        self._marks.load(words, own)
        self._remember(False, index, size, active)

    def store(self, index: np.ndarray, size: int, active: bool | Part) -> bool:
        """Lanes store; True if warps meet in a word, and `overlap` has to be told of the values."""
        self._prepare(index, size)
        words, own = self._lanes(index, size, active)
        stored = self._marks.stored
        before = stored[words]
        if not (_by_others(before, own) | _by_others(self._marks.loaded[words], own)).any():
            stored[words] = own
            if (stored[words] == own).all():
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
        words, own = self._lanes(index, size, active)
        same, stays = (self._of_lanes(one, size, active) for one in (same, stays))
        stored = self._marks.stored
        before = stored[words]
        others = _by_others(before, own)
        self._late_store(words, own, ~same)
        stored[words] = own
        replaced = _by_others(stored[words], own)
        who = before & WHO
        differ = (others & (~same | (who == DIFFERENT) | (who == ATOMICS))) | (replaced & ~stays)
        self._join(words, own, before, ~differ & (others | replaced))
        stored[words[differ]] = own[differ] | DIFFERENT

    def update(self, index: np.ndarray, size: int, active: bool | Part, operation: str) -> None:
        """Lanes perform an atomic, after whose name (`add`) those are told apart that may change places."""
        self._prepare(index, size)
        if not self._is_split:
            self._split()
        words, own = self._lanes(index, size, active)
        self._operations[self.now] = operation
        self._late_store(words, own, np.ones(len(words), bool))
        stored = self._marks.stored
        before = stored[words]
        recent = before >= own & -1 << AGE
        numbers, which = np.unique(before >> INSTRUCTION & MOST_INSTRUCTIONS, return_inverse=True)
        alike = np.array([self._operations.get(int(one)) == operation for one in numbers])[which]
        alike &= operation in COMMUTE
        own = np.where(recent & ~alike & ~_by_others(before, own), before, own)
        others = _by_others(before, own)
        stored[words] = own
        replaced = _by_others(stored[words], own)
        differ = (others & ~alike) | (replaced & (operation not in COMMUTE))
        differ |= (before & WHO == DIFFERENT) & (operation != "exch")
        several = others | replaced
        stored[words[several]] = (own[several] & ~WHO) | ATOMICS
        stored[words[differ]] = own[differ] | DIFFERENT

    def overwrite(self, row: int, places: np.ndarray) -> None:
        """A copy writes bytes [n] of a block; it is ordered by whom it tells when it is done."""
        rows = row if self._is_split else 0
        self._marks.stored[rows * self._columns + places // self._unit] = 0

    def _late_loads(self, words: np.ndarray, own: np.ndarray, stored: np.ndarray) -> None:
        """Loads of what other warps store at any time."""
        if self._members is not None:
            members = self._members[words] >> (own & WHO).astype(np.uint32) & 1 != 0
            stored = stored[~((stored & WHO == SAME) & members)]
        for mark in np.unique(stored).tolist():
            self._tell(self.now, mark >> INSTRUCTION & MOST_INSTRUCTIONS, mark & WHO == DIFFERENT)

    def _late_store(self, words: np.ndarray, own: np.ndarray, changes: np.ndarray) -> None:
        """Stores, some of which change what other warps have loaded."""
        loaded = self._marks.loaded[words]
        for mark in np.unique(loaded[_by_others(loaded, own) & changes]).tolist():
            self._tell(mark >> INSTRUCTION & MOST_INSTRUCTIONS, self.now, False)

    def _tell(self, load: int, store: int, several: bool) -> None:
        if (load, store, several) not in self._told:
            self._told.add((load, store, several))
            self._report(load, store, several)

    def _join(self, words: np.ndarray, own: np.ndarray, before: np.ndarray, joins: np.ndarray) -> None:
        """Warps have stored the same value to words."""
        if not joins.any():
            return
        stored = self._marks.stored
        if self._members is None:
            self._members = np.zeros(len(stored), np.uint32)
        stored[words[joins]] = (own[joins] & ~WHO) | SAME
        here = stored[words] & WHO == SAME
        words, own, before = words[here], own[here], before[here]
        who = (before & WHO).astype(np.uint32)
        known = np.where(who == SAME, self._members[words], np.uint32(1) << (who & 31))
        self._members[words] = np.where(before >= own & -1 << AGE, known, np.uint32(0))
        np.bitwise_or.at(self._members, words, np.uint32(1) << (own & WHO).astype(np.uint32))

    def _prepare(self, index: np.ndarray, size: int) -> None:
        """Have units that are small enough, and rows for each block if these access different ones."""
        if size < self._unit:
            count = self._unit // size
            self._unit, self._columns = size, self._columns * count
            self._marks, self._of_all = self._marks.repeated(count), self._of_all.repeated(count)
            if self._members is not None:
                self._members = np.repeat(self._members, count)
        if index.shape[0] > 1:
            self._split()

    def _split(self) -> None:
        """From now on each block has a row."""
        if self._is_split:
            return
        self._is_split = True
        blocks = self.shape[0]
        self._barriers = np.repeat(self._barriers, blocks, axis=0)
        self._marks = WordMarks(np.tile(self._of_all.stored, blocks), np.tile(self._of_all.loaded, blocks))
        now = self.now
        for instruction, stores, index, size, active in self._of_some:
            self.now = instruction
            words, own = self._lanes(index, size, active)
            if stores:
                self._marks.stored[words] = own
            else:
                self._marks.load(words, own)
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
        words, own = self._lanes(index, size, active)
        if stores:
            self._of_all.stored[words] = own
        else:
            self._of_all.load(words, own)

    def _lanes(self, index: np.ndarray, size: int, active: bool | Part) -> tuple[np.ndarray, np.ndarray]:
        """(words [n] that lanes access, marks [n] of these); with one row, those of any block's lanes."""
        rows = self.shape[0] if self._is_split else 1
        marks = self._barriers << AGE | (self.now & MOST_INSTRUCTIONS) << INSTRUCTION | self.warps
        count = size // self._unit
        places = index * count + np.arange(rows)[:, None] * self._columns
        words = self._of_lanes(places, size, active)
        if count > 1:
            words = words + np.tile(np.arange(count), len(words) // count)
        return words, self._of_lanes(marks, size, active)

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


def _by_others(marks: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Which marks other warps made, behind the same barrier."""
    found: np.ndarray = (marks >= own & -1 << AGE) & (marks & WHO != own & WHO)
    return found
