"""Matrices in shared memory as the descriptors of `wgmma` describe them.

In: a descriptor of 64 bits. Out: where the bytes of a matrix lie. A matrix has rows, of M or of N, and k.
Source: PTX ISA, "Matrix descriptor" and "Canonical layouts"; what a stride counts by where rows lie side by
side, and that the swizzle is of the address itself, are what an H200 gave
(tests/model/test_group_products.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.state.tensors import swizzled

#: Bytes of a row of 8 x 16 bytes and its neighbours, by the descriptor's mode; 16 is no swizzle.
_SPANS = (16, 128, 64, 32)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Fields of a descriptor, in bytes.

    leading, stride: PTX ISA's leading and stride dimension byte offset. span: bytes side by side that are
    swizzled together, 16 if none are. base: the base offset, as it stands, in 128 bytes.
    """

    start: int
    leading: int
    stride: int
    span: int
    base: int

    def places(self, rows: np.ndarray, k: int, size: int, side_by_side: bool) -> np.ndarray:
        """The addresses of the first bytes of elements, int64 [rows, k].

        size: bytes of an element. side_by_side: neighbours in a column of k lie side by side (`tnspA`,
        `tnspB`), not those in a row.
        """
        row, depth = rows[:, None], np.arange(k)[None, :]
        if not side_by_side:
            byte = depth * size
            found = row % 8 * self.span + row // 8 * self.stride
            found = found + byte % self.span + byte // self.span * self.leading
        else:
            byte = row * size
            across, deeper = (self.stride, self.leading) if self.span == 16 else (self.leading, self.stride)
            found = byte % self.span + byte // self.span * across
            found = found + depth % 8 * self.span + depth // 8 * deeper
        place: np.ndarray = self.start + found
        if self.span == 16:
            return place
        lines = self.base << 7  # the pattern begins so many lines of 128 bytes later
        return np.asarray(swizzled(place - lines, self.span) + lines)


def descriptor_of(word: int) -> Descriptor:
    """The fields of a descriptor."""
    return Descriptor(
        start=(word & 0x3FFF) << 4,
        leading=(word >> 16 & 0x3FFF) << 4,
        stride=(word >> 32 & 0x3FFF) << 4,
        span=_SPANS[word >> 62],
        base=word >> 49 & 7,
    )
