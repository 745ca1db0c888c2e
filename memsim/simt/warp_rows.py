"""The state of independent warps, each a row, and how rows move between chunks.

`chosen` takes rows out of a chunk, `joined` makes one chunk of several, and `Aside` holds rows until those at
the same place in the program fill a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from memsim.simt.active_lanes import PlacedRows, Rows
from memsim.simt.convergence import Meeting
from memsim.simt.gathered_lanes import Own, Slot, plain
from memsim.simt.groups import Group
from memsim.state.partial import Partial, Value, merge_lanes
from memsim.state.parts import Mask, Part
from memsim.state.predicates import from_bools, from_words, to_bools, to_words
from memsim.state.registers import Sum, from_array, plus, to_array, wrap_int
from memsim.state.sums import Int


@dataclass(frozen=True)
class WarpRows:
    """What some rows of a chunk hold: registers, who runs, who waits, and instructions left to execute."""

    rows: Rows
    slots: list[Slot]
    alive: Mask
    ready: list[Group]
    parked: list[Group]
    meetings: dict[tuple[int, int], Meeting]
    steps_left: int

    def __len__(self) -> int:
        return len(self.rows)


def take_rows(state: WarpRows, rows: np.ndarray) -> WarpRows:
    """The state of these rows (numbers, ascending)."""
    total = len(state)
    parts: dict[int, Part] = {}
    masks: dict[int, Mask] = {}

    def array_of(array: np.ndarray) -> np.ndarray:
        return array.take(rows, axis=0) if array.shape[0] == total else array

    def part(one: Part | None) -> Part | None:
        if one is None or one.shape[0] != total:
            return one
        if one.uid not in parts:
            parts[one.uid] = Part(array_of(one.array))
        return parts[one.uid]

    def mask(one: Mask) -> Mask:
        if not isinstance(one, Part) or one.shape[0] != total:
            return one
        if one.uid not in masks:
            is_of_lanes = one.shape[1] > 1
            masks[one.uid] = from_words(one.words[rows]) if is_of_lanes else from_bools(one.array[rows])
        return masks[one.uid]

    def value(one: Value) -> Value:
        if isinstance(one, Sum):
            return Sum(one.s, part(one.u), part(one.v), part(one.f))
        if isinstance(one, Part):
            return mask(one)
        if isinstance(one, np.ndarray):
            return array_of(one)
        if isinstance(one, Partial):
            known = mask(one.known)
            held = value(one.value)
            if isinstance(known, bool):
                return held if known else one.poison
            return Partial(held, known, one.poison)
        return one

    def groups(some: list[Group]) -> list[Group]:
        found = [Group(group.pc, mask(group.mask), group.turns) for group in some]
        return [group for group in found if group.mask is not False]

    meetings = {
        key: replace(meeting, mask=mask(meeting.mask), members=array_of(meeting.members))
        for key, meeting in state.meetings.items()
        if mask(meeting.mask) is not False
    }
    return WarpRows(
        PlacedRows(array_of(state.rows.blocks), array_of(state.rows.first)),
        [Own(array_of(one.array)) if isinstance(one, Own) else value(one) for one in state.slots],
        mask(state.alive),
        groups(state.ready),
        groups(state.parked),
        meetings,
        state.steps_left,
    )


def join_rows(states: Sequence[WarpRows]) -> WarpRows:
    """One chunk of the rows of several."""
    if len(states) == 1:
        return states[0]
    counts = [len(state) for state in states]
    total = sum(counts)
    ends = np.cumsum(counts).tolist()

    def tall(arrays: list[np.ndarray]) -> np.ndarray:
        columns = max(array.shape[1] for array in arrays)
        return np.concatenate([np.broadcast_to(one, (n, columns)) for one, n in zip(arrays, counts)])

    def mask(ones: Sequence[Mask]) -> Mask:
        if alike(ones):
            return ones[0]
        if all(isinstance(one, bool) or one.shape[1] == 1 for one in ones):
            return from_bools(tall([to_bools(one) for one in ones]))
        return from_words(tall([to_words(one) for one in ones]))

    def number(ones: Sequence[Int]) -> Int:
        sums = [one if isinstance(one, Sum) else Sum(one) for one in ones]
        thread = sums[0].v
        if any(one.f or not same_part(one.v, thread) for one in sums):
            return from_array(tall([to_array(one) for one in ones]))
        zero = np.zeros((1, 1), np.int64)
        of_rows = from_array(tall([(one.u.array if one.u else zero) + wrap_int(one.s, 64) for one in sums]))
        return of_rows if thread is None else plus(of_rows, Sum(0, v=thread))

    def value(ones: Sequence[Any]) -> Any:
        if alike(ones):
            return ones[0]
        kinds = {type(one) for one in ones}
        if kinds <= {int, Sum}:
            return number(ones)
        if kinds <= {bool, Part}:
            return mask(ones)
        if Own in kinds and kinds != {Own}:
            return value([plain(one) for one in ones])
        if kinds == {Own} and len({one.array.dtype for one in ones}) == 1:
            return Own(tall([one.array for one in ones]))
        if kinds == {np.ndarray} and len({one.dtype for one in ones}) == 1:
            return tall(list(ones))
        found = None
        for one, count, end in zip(ones, counts, ends):
            own = np.zeros((total, 1), bool)
            own[end - count : end] = True
            found = merge_lanes(Part(own), move_rows(one, total, end - count, count), found)
        return found

    def groups(each: Sequence[list[Group]]) -> list[Group]:
        found = []
        for pc in dict.fromkeys(group.pc for some in each for group in some):
            here = [[group for group in some if group.pc == pc] for some in each]
            for ones in zip_longest(*here):  # of one chunk they may be lanes of one warp, of two never
                masks = mask([group.mask if group else False for group in ones])
                found.append(Group(pc, masks, max(group.turns for group in ones if group)))
        return found

    meetings: dict[tuple[int, int], Meeting] = {}
    for key in dict.fromkeys(key for state in states for key in state.meetings):
        here = [state.meetings.get(key) for state in states]
        found = next(filter(None, here))
        masks = [one.mask if one else False for one in here]
        members = [one.members if one else np.zeros((1, 1), np.int64) for one in here]
        meetings[key] = replace(found, mask=mask(masks), members=tall(members))
    return WarpRows(
        PlacedRows(
            np.concatenate([state.rows.blocks for state in states]),
            np.concatenate([state.rows.first for state in states]),
        ),
        [value(ones) for ones in zip(*(state.slots for state in states))],
        mask([state.alive for state in states]),
        groups([state.ready for state in states]),
        groups([state.parked for state in states]),
        meetings,
        max(state.steps_left for state in states),
    )


def alike(ones: Sequence[Slot]) -> bool:
    """Is it the same, whatever the row?"""
    first = ones[0]
    if type(first) in (int, bool):
        return all(type(one) is type(first) and one == first for one in ones)
    return first is None and all(one is None for one in ones)


def same_part(a: Part | None, b: Part | None) -> bool:
    """Do two parts of threads hold the same numbers?"""
    return a is b or (a is not None and b is not None and a.digest == b.digest)


def move_rows(value: Any, total: int, start: int, count: int) -> Any:
    """What `count` rows hold, as rows from number `start` on of `total`; anything in the others."""

    def tall(array: np.ndarray) -> np.ndarray:
        found = np.zeros((total, array.shape[1]), array.dtype)
        found[start : start + count] = array
        return found

    if isinstance(value, Sum):
        return from_array(tall(value.array))
    if isinstance(value, Part) or value is True:
        return Part(tall(to_bools(value)))
    if isinstance(value, np.ndarray):
        return tall(value)
    if isinstance(value, Partial):
        known = move_rows(value.known, total, start, count)
        return Partial(move_rows(value.value, total, start, count), known, value.poison)
    return value


class Aside:
    """WarpRows that were put aside, by the place where they go on.

    size: rows of a full chunk.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.waiting: dict[int, list[WarpRows]] = {}

    def add(self, rows: WarpRows) -> None:
        """Put rows aside; those that have ended are forgotten."""
        groups = [*rows.ready, *rows.parked]
        if groups:
            self.waiting.setdefault(min(group.pc for group in groups), []).append(rows)

    def full(self) -> WarpRows | None:
        """WarpRows that wait at one place, as many as fill a chunk; None if nowhere are so many."""
        for pc, states in self.waiting.items():
            if sum(len(state) for state in states) >= self.size:
                return join_rows(self.waiting.pop(pc))
        return None

    def rest(self) -> WarpRows | None:
        """WarpRows that wait, those that are farthest behind; None if there are none."""
        return join_rows(self.waiting.pop(min(self.waiting))) if self.waiting else None
