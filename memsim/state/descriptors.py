"""Matrices in shared memory as described by the 64-bit matrix descriptors of `wgmma`.

A matrix has rows, of M or of N, and k. Source: PTX ISA, "Matrix descriptor" and "Canonical layouts"; what a
stride counts if rows are contiguous, and that the swizzle applies to the address itself, was measured on an
H200 (tests/model/test_group_products.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.state.tensors import swizzled

#: Swizzle span in bytes, by the descriptor's mode; 16 is no swizzle.
_SPANS = (16, 128, 64, 32)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Fields of a descriptor, in bytes.

    leading, stride: PTX ISA's leading and stride dimension byte offset. span: contiguous bytes that are
    swizzled together, 16 without swizzle. base: the base offset as stored, in units of 128 bytes.
    """

    start: int
    leading: int
    stride: int
    span: int
    base: int

    def places(self, rows: np.ndarray, k: int, size: int, side_by_side: bool) -> np.ndarray:
        """The addresses of the first bytes of elements, int64 [rows, k].

        size: bytes per element. side_by_side: elements of a column of k are contiguous (`tnspA`, `tnspB`),
        not those of a row.
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
        lines = self.base << 7  # the pattern starts so many 128-byte lines later
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
