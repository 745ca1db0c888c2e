"""The 128 bytes of a `CUtensorMap`: read where host code or a kernel made it without the driver, and written
for kernels that make others of it.

NVIDIA does not document the format. These fields are those of 100 maps that the driver of an H200 encoded
(tests/state/data/tensor_maps_h200.json), and of maps that CuTe DSL 4.8 encodes for known tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memsim.argument_types import TensorMap, dtype_of

#: Element types by their numbers in a map; float32 a second time where subnormal numbers become zero.
TYPES = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float32", "float64", "bfloat16"),
)
#: Spans of swizzles in bytes, in the order of `CUtensorMapSwizzle`.
SWIZZLES = (0, 32, 64, 128)
#: Where a tensor's type is none of these, as for the driver.
OF_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
#: The lowest four bits of the word of flags: the driver's, and CuTe DSL's.
TILED = (0, 2)
MOST_DIMENSIONS = 5
USED = 64  # bytes; the rest is not written
BYTES = TensorMap.nbytes
ALIGN = 64


@dataclass(frozen=True, slots=True)
class EncodedMap:
    """A tensor map's fields, dimensions innermost first. steps: bytes, of all dimensions but the first."""

    address: int
    dtype: str
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def encoded(self) -> bytes:
        """The 128 bytes.

        Raises:
            ValueError: a field is too large for them.
        """
        rest = [0] * (MOST_DIMENSIONS - len(self.box))
        units = [step // 16 for step in self.steps] + rest
        flags = len(self.box) - 1 << 4 | TYPES.index(self.dtype) << 7 | SWIZZLES.index(self.swizzle) << 13
        words = (
            *(self.address & 0xFFFFFFFF, self.address >> 32, flags),
            *(unit & 0xFFFFFFFF for unit in units),
            sum(unit >> 32 << 4 * i for i, unit in enumerate(units)),
            *(extent - 1 for extent in self.extents),
            *rest,
        )
        try:
            front = b"".join(word.to_bytes(4, "little") for word in words)
        except OverflowError as error:
            raise ValueError(*error.args) from None
        counts = bytes(count - 1 for count in self.box) + bytes(rest)
        return (front + bytes(3) + counts).ljust(BYTES, b"\0")

    def over(self, memory: np.ndarray, start: int) -> TensorMap:
        """As an argument; the tensor begins at byte `start` of `memory`.

        Raises:
            ValueError: it is larger than the memory.
        """
        dtype = dtype_of(self.dtype)
        strides = (*reversed(self.steps), dtype.itemsize)
        view: np.ndarray = np.ndarray(tuple(reversed(self.extents)), dtype, memory, start, strides)
        return TensorMap(view, tuple(reversed(self.box)), self.swizzle)


def decode_tensor_map(raw: bytes) -> EncodedMap | None:
    """The map in the first 64 bytes of `raw`; None if they are none that memsim executes.

    Interleaved and im2col maps are not, nor those with steps between elements or NaN out of bounds.
    """
    words = [int.from_bytes(raw[at : at + 4], "little") for at in range(0, USED, 4)]
    if len(raw) < USED or words[2] & 15 not in TILED:
        return None
    flags = words[2]
    rank, kind = 1 + (flags >> 4 & 7), flags >> 7 & 15
    interleave, fills_with_nan = flags >> 11 & 3, flags >> 15 & 1
    counts = (words[13] >> 24, *words[14].to_bytes(4, "little"))
    element_steps = words[13] & 0xFFFFFF
    if rank > MOST_DIMENSIONS or kind >= len(TYPES) or interleave or fills_with_nan or element_steps:
        return None
    upper = words[7]  # four bits of each step, in units of 16 bytes
    steps = (16 * (words[3 + i] | (upper >> 4 * i & 15) << 32) for i in range(rank - 1))
    return EncodedMap(
        address=words[0] | words[1] << 32,
        dtype=TYPES[kind],
        extents=tuple(1 + size for size in words[8 : 8 + rank]),
        steps=tuple(steps),
        box=tuple(1 + count for count in counts[:rank]),
        swizzle=SWIZZLES[flags >> 13 & 3],
    )
