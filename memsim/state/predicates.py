"""Predicates of many threads: a `bool`, or a `Part` if threads differ; and some lanes by their positions."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from memsim.arch.units import WARP
from memsim.state.parts import EVERY_LANE, NO_LANE, Part, warp_words
from memsim.state.poison import poisoned_operand


def predicate(value: object) -> bool | Part:
    """A register read as a predicate.

    Raises:
        Poisoned: the value is unknown.
    """
    if type(value) is bool or type(value) is Part:
        return value
    raise poisoned_operand(value)


def from_bools(array: np.ndarray) -> bool | Part:
    """A predicate from a bool array; one bool if all threads agree."""
    if array.size == 1:
        return bool(array.flat[0])
    if is_of_warps(array.shape[1]):
        return from_words(warp_words(array), array)
    if not array.any():
        return False
    return True if array.all() else Part(array)


def from_words(words: np.ndarray, array: np.ndarray | None = None) -> bool | Part:
    """A predicate from the words of its warps, uint32 (rows, T / 32); `array`: the same as bools."""
    if not words.any():
        return False
    return True if words.min() == EVERY_LANE else Part(array, words)


def is_of_warps(columns: int) -> bool:
    """Is there a column for each lane of whole warps?"""
    return columns % WARP == 0


def to_bools(value: bool | Part) -> np.ndarray:
    """A predicate as a bool array that broadcasts to (B, T)."""
    return value.array if isinstance(value, Part) else np.array([[value]])


def to_words(value: bool | Part) -> np.ndarray:
    """A predicate as words of warps, in a shape that broadcasts to (B, T / 32)."""
    return value.words if isinstance(value, Part) else np.array([[EVERY_LANE if value else NO_LANE]])


def both(a: bool | Part, b: bool | Part) -> bool | Part:
    """Logical and; returns the same object if one side decides."""
    if a is True or b is False or a is b:
        return b
    if b is True or a is False:
        return a
    assert isinstance(a, Part) and isinstance(b, Part)
    if not is_of_warps(max(a.shape[1], b.shape[1])):
        return from_bools(a.array & b.array)
    found = from_words(a.words & b.words)
    if isinstance(found, Part):
        found.narrows(a)
    return found


def either(a: bool | Part, b: bool | Part) -> bool | Part:
    """Logical or."""
    if a is False or b is True or a is b:
        return b
    if b is False or a is True:
        return a
    assert isinstance(a, Part) and isinstance(b, Part)
    if is_of_warps(max(a.shape[1], b.shape[1])):
        return from_words(a.words | b.words)
    return from_bools(a.array | b.array)


def invert(a: bool | Part) -> bool | Part:
    """Logical not."""
    if not isinstance(a, Part):
        return not a
    if a.inverse is None:
        a.inverse = from_words(~a.words) if is_of_warps(a.shape[1]) else from_bools(~a.array)
    return a.inverse


class ScatteredLanes:
    """Some lanes of a chunk of rows. lanes: their positions in (rows, threads) [n], ascending."""

    def __init__(self, lanes: np.ndarray) -> None:
        self.lanes = lanes

    def __len__(self) -> int:
        return len(self.lanes)

    @cached_property
    def _is_first(self) -> np.ndarray:
        """Whether it is the first of its warp [n]."""
        of_warps = self.lanes // WARP
        found: np.ndarray = np.ones(len(of_warps), np.bool_)
        np.not_equal(of_warps[1:], of_warps[:-1], out=found[1:])
        return found

    @cached_property
    def warps(self) -> np.ndarray:
        """The warps that have one of the lanes, by number in the chunk [w]."""
        found: np.ndarray = self.lanes[self._is_first] // WARP
        return found

    @cached_property
    def counts(self) -> np.ndarray:
        """How many of the lanes each of these warps has [w]."""
        return np.diff(np.flatnonzero(self._is_first), append=len(self))
