"""The arrays that registers are made of. Each has an identity: what is derived from one is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from itertools import count
from typing import TypeVar

import numpy as np

from memsim.arch.units import WARP

#: The lanes of a warp as the bits of a word: all, and none.
EVERY_LANE, NO_LANE = np.uint32(0xFFFFFFFF), np.uint32(0)
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_next_uid = count(1).__next__
#: Elements of a part up to which it is compared with others by its content.
MOST_COMPARED = 1 << 12
Function = TypeVar("Function", bound=Callable[..., object])


class Part:
    """An immutable array of shape (B, 1), (1, T) or (B, T) with an identity.

    `uid` is never reused, so it can represent the content in a cache key. A predicate may be given as words
    of warps instead (`words`); what is not given is made when it is needed. inverse: of a predicate, once it
    was asked for, so that all who ask get the same object.
    """

    __slots__ = (
        "_among",
        "_array",
        "_bits",
        "_derived",
        "_digest",
        "_hi",
        "_lanes",
        "_lo",
        "_words",
        "inverse",
        "shape",
        "uid",
    )

    def __init__(self, array: np.ndarray | None, words: np.ndarray | None = None) -> None:
        self._array = array
        self._words = words
        if array is not None:
            self.shape = array.shape
        else:
            assert words is not None
            self.shape = words.shape[0], words.shape[1] * WARP
        self.uid = _next_uid()
        self._lo: int | None = None
        self._hi: int | None = None
        self._bits: int | None = None
        self._derived: dict[Hashable, Part] = {}
        self._digest: bytes | None = None
        self._lanes: np.ndarray | None = None
        self._among: np.ndarray | None = None
        self.inverse: bool | Part | None = None

    @property
    def array(self) -> np.ndarray:
        """The elements."""
        if self._array is None:
            assert self._words is not None
            self._array = lanes_of_words(self._words)
        return self._array

    @property
    def words(self) -> np.ndarray:
        """Of a predicate, the lanes of each warp as the bits of a word: uint32 (rows, T / 32), or (B, 1) if
        all lanes of a row agree.
        """
        if self._words is None:
            array = self.array
            self._words = warp_words(array) if array.shape[1] > 1 else np.where(array, EVERY_LANE, NO_LANE)
        return self._words

    @property
    def lo(self) -> int:
        """Smallest element."""
        if self._lo is None:
            self._lo = int(self.array.min())
        return self._lo

    @property
    def hi(self) -> int:
        """Largest element."""
        if self._hi is None:
            self._hi = int(self.array.max())
        return self._hi

    @property
    def bits(self) -> int:
        """The bits that are set in some element."""
        if self._bits is None:
            self._bits = int(np.bitwise_or.reduce(self.array, axis=None))
        return self._bits

    @property
    def digest(self) -> bytes:
        """The content as bytes, for caches that outlive the object."""
        if self._digest is None:
            self._digest = self.array.tobytes()
        return self._digest

    @property
    def content(self) -> object:
        """What stands for it in a key: a loop may make the same one anew in each turn. Of many elements, only
        the object itself is the same; what stands for it is no bool.
        """
        return (self.shape[0], self.digest) if self.is_small else -self.uid

    @property
    def is_small(self) -> bool:
        """Whether it has so few elements that they are compared."""
        rows, columns = self.shape
        return bool(rows * columns <= MOST_COMPARED)

    def derived(self, key: Hashable, change: Callable[[np.ndarray], np.ndarray]) -> Part:
        """`change` applied to the part; cached, so that a loop gets the same object again."""
        if key not in self._derived:
            if len(self._derived) > 16:
                self._derived.clear()
            self._derived[key] = Part(change(self.array))
        return self._derived[key]

    @property
    def lanes(self) -> np.ndarray:
        """Where a mask of all threads holds: positions in the flat array, ascending."""
        if self._lanes is None:
            among = self._among
            if among is None:
                self._lanes = np.flatnonzero(self.array)
            else:
                held = self.words.reshape(-1).view(np.uint8)[among >> 3] >> (among & 7).astype(np.uint8)
                self._lanes = among.compress((held & 1).view(np.bool_))
        return self._lanes

    def narrows(self, other: Part) -> None:
        """This mask holds in no lane in which the other does not: if it knows its lanes, only they are looked
        through for those of this one.
        """
        if self.shape == other.shape:
            self._among = other._among if other._lanes is None else other._lanes

    def only(self, mask: Part) -> Part:
        """The elements (B, T) in the lanes of a mask of all threads [n]."""
        return self.derived(("only", mask.uid), lambda array: array.reshape(-1)[mask.lanes])

    def scaled(self, factor: int) -> Part:
        """The part times a constant."""
        return self.derived(factor, lambda array: array * factor)


#: Lanes, as truths [B or 1, T or 1]; or all or none of them.
Mask = bool | Part


def warp_words(array: np.ndarray) -> np.ndarray:
    """Lanes of whole warps, bool (rows, T), as a word for each warp: uint32 (rows, T / 32)."""
    packed = np.packbits(array.reshape(-1), bitorder="little")
    return packed.view("<u4").reshape(array.shape[0], -1)


def lanes_of_words(words: np.ndarray) -> np.ndarray:
    """The opposite of `warp_words`."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1), bitorder="little")
    return bits.view(np.bool_).reshape(words.shape[0], -1)


def contiguous(array: np.ndarray) -> np.ndarray:
    """The array with its elements one after the other; what only stands for one (`memsim.interpreter`) as it
    is.
    """
    return np.ascontiguousarray(array) if isinstance(array, (np.ndarray, np.generic)) else array


def noted_as_one(function: Function) -> Function:
    """A function for which there may be one operation: what stands for an array notes it instead."""

    @wraps(function)
    def run(*operands: object) -> object:
        for one in operands:
            if hasattr(one, "noted"):
                found = one.noted(function.__name__, operands)
                if found is not None:
                    return found
        return function(*operands)

    return run  # type: ignore[return-value]


def entries(table: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`table[index]` of a table of one dimension; noted of what stands for an index."""
    return table[index] if isinstance(index, np.ndarray) else index.entries_of(table)  # type: ignore[no-any-return]


def select(mask: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    """`np.where(mask, yes, no)` of two arrays of one type, by a mask that is as good as random.

    `np.where` branches on each element, which costs some five nanoseconds each where lanes diverge; bits
    under a mask cost one.
    """
    if not isinstance(mask, np.ndarray):
        return np.where(mask, yes, no)
    if mask.shape[-1] == 1 < no.shape[-1] and mask.shape[0] == no.shape[0]:  # whole rows
        found: np.ndarray = no.copy()
        np.copyto(found, yes, where=mask)
        return found
    bits = _BITS[yes.dtype.itemsize]
    other = no.view(bits)
    differ = yes.view(bits) ^ other
    differ = differ * mask.view(np.uint8)
    differ ^= other
    return differ.view(yes.dtype)
