"""Tensors in global memory as tensor maps describe them, and boxes of them in shared memory.

In: a tensor map, coordinates. Out: which bytes of global memory a box has, and where they lie in shared
memory. Dimensions are counted from the innermost. Source: PTX ISA, "Tensors", tiled mode without interleave,
element strides of 1; the swizzled places are those that an H200 wrote (docs/model.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import TensorMap, dtype_of

#: Bytes of a row of shared memory -> how many bits from bit 7 on are added (modulo 2) to those from bit 4 on.
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor lies: the address of its first element, extents, steps in bytes, and its box.

    element: bytes of one; dtype: numpy's name of its type. swizzle: bytes, one of `SWIZZLES`. fills: what a
    byte outside of it is, by its place in an element.
    """

    base: int
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]
    element: int
    swizzle: int
    fills: bytes
    dtype: str = ""

    @property
    def pitch(self) -> int:
        """Bytes of shared memory from one row of a box to the next: a swizzled row has its full width."""
        return max(self.box[0] * self.element, self.swizzle)

    @property
    def bytes(self) -> int:
        """Of the whole box."""
        return prod(self.box) * self.element

    def rows(self, corner: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(address, first byte, one past the last) of each row of a box, int64 [rows].

        The bytes are counted in the row; those outside of the tensor are not among them.
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
    """The tensor that a map lies over, whose array's first element is at `address`.

    Raises:
        MemsimError: no tensor map can be made of it.
    """
    array = argument.array
    size = dtype_of(str(array.dtype)).itemsize
    steps = array.strides if array.strides is not None else _c_steps(array.shape, size)
    if len(argument.box) != len(array.shape) or not 1 <= len(array.shape) <= 5:
        raise MemsimError(f"a tensor map over {list(array.shape)} has not the box {list(argument.box)}")
    if steps[-1] != size or any(step % 16 for step in steps[:-1]) or address % 16:
        raise MemsimError(
            "a tensor map needs elements side by side, rows at multiples of 16 bytes, and a base that is one"
        )
    if argument.box[-1] * size % 16:
        raise MemsimError(f"a row of the box {list(argument.box)} is no multiple of 16 bytes")
    return Tensor(
        base=address,
        extents=tuple(reversed(array.shape)),
        steps=tuple(reversed(steps)),
        box=tuple(reversed(argument.box)),
        element=size,
        swizzle=argument.swizzle,
        fills=bytes(size),
        dtype=dtype_of(str(array.dtype)).name,
    )


def _c_steps(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    return tuple(size * prod(shape[i + 1 :]) for i in range(len(shape)))


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Where bytes lie that would lie at `address` without swizzle, int64."""
    bits = SWIZZLES[swizzle]
    found: np.ndarray = address ^ ((address >> 7 & ((1 << bits) - 1)) << 4)
    return found
