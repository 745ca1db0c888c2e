"""Tensors as described by tensor maps, and matrices by the 64-bit descriptors of `wgmma`: where elements lie.

Of a tensor in global memory, boxes are in shared memory. Dimensions are counted from the innermost. Source:
PTX ISA, "Tensors", tiled mode without interleave, element strides of 1; swizzled positions were measured on
an H200 (docs/model.md).

A matrix in shared memory has rows, of M or of N, and k. Source: PTX ISA, "Matrix descriptor" and "Canonical
layouts"; what a stride counts if rows are contiguous, and that the swizzle applies to the address itself, was
measured on an H200 (tests/isa/test_group_products.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from memsim.argument_types import TensorMap, dtype_of
from memsim.argument_types.array_arg import c_strides
from memsim.argument_types.array_tables import BYTES, OF_SIZE, TYPES, EncodedMap
from memsim.errors import MemsimError

#: Bytes of a row of shared memory -> how many bits from bit 7 on are XORed into those from bit 4 on.
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
#: Swizzle span in bytes, by the descriptor's mode; 16 is no swizzle.
_SPANS = (16, 128, 64, 32)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: the address of its first element, extents, strides in bytes, and its box.

    element: bytes per element. swizzle: bytes, one of `SWIZZLES`.
    """

    base: int
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]
    element: int
    swizzle: int
    dtype: str = ""

    @property
    def pitch(self) -> int:
        """Bytes of shared memory between rows of a box: a swizzled row has its full width."""
        return max(self.box[0] * self.element, self.swizzle)

    @property
    def bytes(self) -> int:
        """Size of the whole box."""
        return prod(self.box) * self.element

    def rows(self, corner: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(address, first byte, one past the last) of each row of a box, int64 [rows].

        The bytes count within the row and exclude those outside of the tensor.
        """
        outer = np.zeros(1, np.int64)
        inside = np.ones(1, bool)
        for at, extent, step, count in zip(corner[1:], self.extents[1:], self.steps[1:], self.box[1:]):
            places = at + np.arange(count, dtype=np.int64)
            outer = (places * step)[:, None] + outer[None, :]
            inside = ((places >= 0) & (places < extent))[:, None] & inside[None, :]
            outer, inside = outer.reshape(-1), inside.reshape(-1)
        first = min(max(-corner[0], 0), self.box[0]) * self.element
        last = min(max(self.extents[0] - corner[0], 0), self.box[0]) * self.element
        start = self.base + corner[0] * self.element + outer
        ends = np.where(inside, max(first, last), first)
        return start, np.full(len(start), first, np.int64), ends


def tensor_of(argument: TensorMap, address: int) -> Tensor:
    """The tensor of a map, whose array's first element is at `address`.

    Raises:
        MemsimError: no tensor map can be made of it.
    """
    array = argument.array
    dtype = dtype_of(str(array.dtype))
    steps = array.strides if array.strides is not None else c_strides(array.shape, dtype.itemsize)
    if len(argument.box) != len(array.shape) or not 1 <= len(array.shape) <= 5:
        raise MemsimError(f"a tensor map over {list(array.shape)} cannot have the box {list(argument.box)}")
    return _checked(
        Tensor(
            base=address,
            extents=tuple(reversed(array.shape)),
            steps=tuple(reversed(steps)),
            box=tuple(reversed(argument.box)),
            element=dtype.itemsize,
            swizzle=argument.swizzle,
            dtype=dtype.name,
        )
    )


def tensor_of_bits(map_: EncodedMap) -> Tensor:
    """The tensor of a map that lies in memory.

    Raises:
        MemsimError: the chip refuses such a map.
    """
    size = dtype_of(map_.dtype).itemsize
    steps = (size, *map_.steps)
    return _checked(
        Tensor(map_.address, map_.extents, steps, map_.box, size, map_.swizzle, dtype_of(map_.dtype).name)
    )


def bits_of_tensor(tensor: Tensor) -> bytes:
    """The map of a tensor; zeros, which are that of none, if the chip has no such map."""
    dtype = tensor.dtype if tensor.dtype in TYPES else OF_SIZE.get(tensor.element, "")
    steps = tensor.steps[1:]
    try:
        return EncodedMap(tensor.base, dtype, tensor.extents, steps, tensor.box, tensor.swizzle).encoded()
    except ValueError:
        return bytes(BYTES)


def _checked(tensor: Tensor) -> Tensor:
    """The same.

    Raises:
        MemsimError: no tensor map can be made of it.
    """
    size, steps = tensor.element, tensor.steps
    if steps[0] != size or any(step % 16 for step in steps[1:]) or tensor.base % 16:
        raise MemsimError(
            "a tensor map needs contiguous elements, and rows and a base address at multiples of 16 bytes"
        )
    if tensor.box[0] * size % 16:
        raise MemsimError(f"a row of the box {[*reversed(tensor.box)]} is not a multiple of 16 bytes")
    return tensor


def swizzle_address(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Swizzled positions of bytes that would be at `address` without swizzle, int64."""
    bits = SWIZZLES[swizzle]
    found: np.ndarray = address ^ ((address >> 7 & ((1 << bits) - 1)) << 4)
    return found


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
        return np.asarray(swizzle_address(place - lines, self.span) + lines)


def descriptor_of(word: int) -> Descriptor:
    """The fields of a descriptor."""
    return Descriptor(
        start=(word & 0x3FFF) << 4,
        leading=(word >> 16 & 0x3FFF) << 4,
        stride=(word >> 32 & 0x3FFF) << 4,
        span=_SPANS[word >> 62],
        base=word >> 49 & 7,
    )
