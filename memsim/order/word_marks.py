"""Marks of words of shared memory: which warp stored to a word last, or loaded from it, when and how.

A word has one mark for stores and one for loads. Where each of several accesses has to be ordered before what
follows, it stands for a group of marks.

Lanes of a warp that have diverged run in any order. What a lane accesses is ordered before what another one
of its warp does later if both are in the group that made the first access, or if since then a lane of that
group and the other one have run in one group. Of each warp the latest groups are known, as (time, lanes). An
older one whose lanes are among those of a newer one adds nothing; if there are more than `GROUPS` others, the
oldest is forgotten, which never orders what is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memsim.order.warp_clocks import COPIES, OTHERS, WarpClocks
from memsim.state.parts import Part
from memsim.state.predicates import to_words

#: Groups of a warp that are known.
GROUPS = 8
#: How an access was made, as one number: from bit 33 on when, bit 32 whether by several groups that were not
#: ordered, then by which lanes; 0: by all lanes of a warp.
WHEN, SEVERAL, LANES = 33, 1 << 32, (1 << 32) - 1


class LaneOrder:
    """The groups of the running blocks' warps.

    made: how the running group makes accesses, int64 (1, W) or (B, W); None: all of its warps are whole, but
    for lanes that have exited while no warp had ever diverged. have_parted: whether it ever was not None.
    """

    def __init__(self, blocks: int, warps: int) -> None:
        self.shape = blocks, warps
        self.made: np.ndarray | None = None
        self.have_parted = False
        self._now = 0
        self._began = np.zeros((1, 1), np.uint32)
        self._times = self._groups = np.zeros((0, 0, 0), np.int64)

    def run(self, mask: bool | Part, alive: bool | Part) -> None:
        """The lanes `mask` run together, of those `alive`."""
        self._now += 1
        lanes, alive_lanes = to_words(mask), to_words(alive)
        self._began = self._began | alive_lanes
        # Those that diverged and exited are not ordered with those that are left.
        whole = self._began if self.have_parted else alive_lanes
        apart = (lanes != 0) & (lanes != whole)
        if apart.any():
            if not self.have_parted:
                self._times, self._groups = (np.zeros((GROUPS, *self.shape), np.int64) for _ in range(2))
                self.have_parted = True
            self.made = np.where(apart, lanes.astype(np.int64) | self._now << WHEN, 0)
        else:
            self.made = None
        if self.have_parted:
            self._remember(lanes, lanes & lanes - np.uint32(1) != 0)

    def spread(self, former: np.ndarray) -> None:
        """Each row is as that of `former` was."""
        self.shape = len(former), self.shape[1]
        if len(self._began) > 1:
            self._began = self._began[former]
        if self.made is not None and len(self.made) > 1:
            self.made = self.made[former]
        if self.have_parted:
            self._times, self._groups = self._times[:, former], self._groups[:, former]

    def _remember(self, lanes: np.ndarray, which: np.ndarray) -> None:
        """Groups of several lanes, in the place of those that they contain, or of the oldest."""
        rows, warps = np.nonzero(np.broadcast_to(which, self.shape))
        new = np.broadcast_to(lanes, self.shape)[rows, warps].astype(np.int64)
        contained = self._groups[:, rows, warps] & ~new == 0
        oldest = self._times[:, rows, warps].argmin(0)
        place = np.where(contained.any(0), contained.argmax(0), oldest)
        self._times[place, rows, warps] = self._now
        self._groups[place, rows, warps] = new

    def ordered(self, rows: np.ndarray, warps: np.ndarray, lanes: np.ndarray, made: np.ndarray) -> np.ndarray:
        """Whether accesses that were `made` so by a warp [n] come before what a lane of it [n] does now."""
        when, several, by = made >> WHEN, made & SEVERAL != 0, made & LANES
        warps = warps % self.shape[1]  # a row may be one warp of its block
        times, groups = self._times[:, rows, warps], self._groups[:, rows, warps]
        since = (times >= when) & (groups >> lanes & 1 != 0)
        met = np.where(several, by & ~groups == 0, by & groups != 0)
        found: np.ndarray = np.any(since & met, axis=0) | (~several & (by >> lanes & 1 != 0))
        return found

    def joined(
        self,
        rows: np.ndarray,
        warps: np.ndarray,
        lanes: np.ndarray,
        made: np.ndarray,
        held: np.ndarray,
        are_of_now: np.ndarray,
    ) -> np.ndarray:
        """How accesses were made of which one mark is kept: by a lane of each warp [n] as `made` says, and
        before as `held` says, if these `are_of_now` and its own warp's.
        """
        joins = are_of_now & (made != 0) & (held != 0)
        if joins.any():
            joins &= ~self.ordered(rows, warps, lanes, held)
        return np.where(joins, made | held & LANES | SEVERAL, made)


#: A mark is a number: from bit 31 on, its age; the instruction; whether only some lanes of a warp ran; and
#: who, an agent of warp_clocks.py. Bit 62: no barrier of the block orders it.
STICKY, AGE, INSTRUCTION, SOME_LANES = 1 << 62, 31, 11, 1 << 10
WHO, MOST_INSTRUCTIONS, MOST_AGE = SOME_LANES - 1, (1 << (AGE - INSTRUCTION)) - 1, (1 << 62 - AGE) - 1
#: Who, if not one agent: several that loaded, or whose atomics may change places, and whose marks are a group
#: of `MarkGroups`; or else atomics of several that may change places; several that stored the same value;
#: several that loaded; several warps or lanes that stored different values.
LOADERS, ADDERS, ATOMICS, SAME, LOADS, DIFFERENT = range(WHO - 5, WHO + 1)


@dataclass(frozen=True)
class Access:
    """Lanes that access words, as columns [n].

    own: their marks. since: marks before this one are ordered before them. lanes: of their warps. made: how,
    as numbers of `LaneOrder`; None: by whole warps.
    """

    words: np.ndarray
    own: np.ndarray
    since: np.ndarray
    lanes: np.ndarray | None = None
    made: np.ndarray | None = None


class WordMarks:
    """The last stores to the words of one or more rows, or the loads since: flat int64 arrays.

    made: how those were made that some lanes of a warp made; None: there were none.
    """

    def __init__(self, marks: np.ndarray, made: np.ndarray | None = None) -> None:
        self.marks = marks
        self.made = made

    def __getitem__(self, words: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.marks[words]
        return found

    def __setitem__(self, words: np.ndarray, marks: np.ndarray) -> None:
        self.marks[words] = marks

    def load(self, access: Access, others: np.ndarray) -> None:
        """Mark words as loaded, some also by other warps before."""
        words, own = access.words, access.own
        several = (own & ~WHO) | LOADS
        marks = np.where(others, several, own)
        self[words] = marks
        lost = self[words] != marks  # of the access itself, several warps loaded these words
        if lost.any():
            self[words[lost]] = several[lost]

    def note(self, access: Access, joins: np.ndarray, several: int) -> None:
        """How the marks were made that are those of an access. joins: with lanes of the same warp."""
        if access.made is None:
            return
        if self.made is None:
            self.made = np.zeros(len(self.marks), np.int64)
        some = (access.made != 0) & (self[access.words] == access.own)
        words, joins = access.words[some], joins[some]
        before = self.made[words] & (LANES | SEVERAL) | several
        self[words] |= SOME_LANES
        self.made[words] = access.made[some] | np.where(joins, before, 0)

    def with_words(self, change: Callable[[np.ndarray], np.ndarray]) -> WordMarks:
        """The same with more words, into which `change` spreads the columns of all."""
        return WordMarks(change(self.marks), None if self.made is None else change(self.made))


def mark_words(marks: WordMarks, stores: bool, access: Access) -> None:
    """Mark the words of whole warps; none meet in a word that they store to."""
    if stores:
        marks[access.words] = access.own
    else:
        marks.load(access, by_others(marks[access.words], access))


def by_others(marks: np.ndarray, access: Access) -> np.ndarray:
    """Which marks others than whole warps of the same number made, behind the same barrier."""
    found: np.ndarray = (marks >= access.since) & ((marks ^ access.own) & (WHO | SOME_LANES) != 0)
    return found


def of_same_warp(marks: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Which marks some lanes of the same warp made."""
    found: np.ndarray = (marks & SOME_LANES != 0) & ((marks ^ own) & WHO == 0)
    return found


def instructions(marks: np.ndarray, own: np.ndarray) -> list[tuple[int, int, bool]]:
    """(instruction, who, whether some lanes of the same warp) of marks."""
    each = np.unique(marks << 1 | of_same_warp(marks, own)).tolist()
    return [(one >> INSTRUCTION + 1 & MOST_INSTRUCTIONS, one >> 1 & WHO, bool(one & 1)) for one in each]


#: The marks that one stands for.
Marks = frozenset[int]


class MarkGroups:
    """The marks in each group, by its number, which stands in place of an instruction."""

    def __init__(self) -> None:
        self._groups: list[Marks] = []
        self._numbers: dict[Marks, int] = {}

    def members(self, mark: int) -> Marks:
        """The marks that one stands for."""
        is_group = LOADERS <= mark & WHO <= LOADERS + 1
        return self._groups[mark >> INSTRUCTION & MOST_INSTRUCTIONS] if is_group else frozenset((mark,))

    def join_marks(self, before: np.ndarray, own: np.ndarray, apart: np.ndarray, kind: int) -> np.ndarray:
        """The marks `own` of a warp [n], where `apart` together with those of others before."""
        found: np.ndarray = own.copy()
        for pair in {*zip(before[apart].tolist(), own[apart].tolist())}:
            found[apart & (before == pair[0]) & (own == pair[1])] = self._mark_of_both(*pair, kind)
        return found

    def _mark_of_both(self, before: int, own: int, kind: int) -> int:
        others = (mark for mark in self.members(before) if (mark ^ own) & WHO)
        marks = frozenset((*others, own))
        number = self._numbers.setdefault(marks, len(self._groups))
        if number == len(self._groups):
            self._groups.append(marks)
        return max(mark >> AGE for mark in marks) << AGE | number << INSTRUCTION | kind

    def are_known(
        self, clocks: WarpClocks, marks: np.ndarray, rows: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """Whether agents `own` [n] of blocks [n] know of all accesses for which marks [n] stand."""
        who, ages = marks & WHO, marks >> AGE & MOST_AGE
        holders = np.where(own < COPIES, own, clocks.foreign)
        one = np.where(who < LOADERS, who, 0)
        found: np.ndarray = (who < LOADERS) & (clocks.known[rows, holders, one] >= ages)
        if clocks.is_full:
            found &= who < OTHERS
        found |= (who == own) | ((who < COPIES) & (own < COPIES) & (ages < clocks.bases[rows]))
        groups = (who == LOADERS) | (who == LOADERS + 1)
        for mark in np.unique(marks[groups]).tolist():
            at = np.flatnonzero(marks == mark)
            found[at] = True
            for member in self.members(mark):
                found[at] &= self.are_known(clocks, np.full(len(at), member), rows[at], own[at])
        return found

    def one_of_each(self, marks: np.ndarray) -> np.ndarray:
        """Marks, those of groups replaced by one of their members."""
        found: np.ndarray = marks.copy()
        groups = (marks & WHO >= LOADERS) & (marks & WHO <= LOADERS + 1)
        for mark in np.unique(marks[groups]).tolist():
            found[marks == mark] = min(self.members(mark))
        return found

    def instructions(self, marks: np.ndarray) -> np.ndarray:
        """The instruction, or one of them, that made each mark."""
        return self.one_of_each(marks) >> INSTRUCTION & MOST_INSTRUCTIONS


def are_foreign(who: np.ndarray) -> np.ndarray:
    """Which are neither warps of the block nor several."""
    return (who >= COPIES) & (who < LOADERS)
