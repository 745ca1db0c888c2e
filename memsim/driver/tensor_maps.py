"""Tensor maps that a program encodes by `cuTensorMapEncodeTiled` (native/tensor_maps.h)."""

from __future__ import annotations

import struct
from dataclasses import replace

from memsim.argument_types import dtype_of
from memsim.argument_types.array_tables import BYTES, SWIZZLES, EncodedMap, decode_tensor_map
from memsim.errors import MemsimError

#: `struct tensor_map` of native/channel.h.
ASKED = struct.Struct("<10Q16I")
#: By `CUtensorMapDataType`; the rest rounds, or has subnormal numbers become zero.
OF_NUMBER = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float64", "bfloat16"),
)
#: Bounds of CUDA's driver API, `cuTensorMapEncodeTiled`.
MOST_BOX, MOST_EXTENT, MOST_STEP, UNIT = 256, 1 << 32, 1 << 40, 16


class UnsupportedMap(MemsimError):
    """A map that may be valid, and that memsim cannot execute."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a tensor map {what} is not supported; the program is told so (801, not supported)")


def replaced(data: bytes) -> bytes | None:
    """A map, behind the address that it is to have: with that address; None if it is no map."""
    (address,) = struct.unpack_from("<Q", data)
    known = decode_tensor_map(data[8:])
    return None if known is None or address % UNIT else replace(known, address=address).encoded()


def encoded(data: bytes) -> bytes | None:
    """The map that `struct tensor_map` asks for; None if the driver would refuse it.

    Raises:
        UnsupportedMap: of a kind that memsim does not execute.
    """
    if len(data) == 8 + BYTES:
        return replaced(data)
    address, *numbers = ASKED.unpack(data)
    extents, steps, box, element_steps = numbers[:5], numbers[5:9], numbers[9:14], numbers[14:19]
    kind, rank, interleave, swizzle, fill, _ = numbers[19:]
    if not 1 <= rank <= len(box):
        return None
    if kind >= len(OF_NUMBER):
        raise UnsupportedMap(f"of CUtensorMapDataType {kind}")
    if swizzle >= len(SWIZZLES):
        raise UnsupportedMap(f"of CUtensorMapSwizzle {swizzle}")
    if interleave or fill or any(step != 1 for step in element_steps[:rank]):
        raise UnsupportedMap("that is interleaved, has NaN out of bounds, or steps between elements")
    size = dtype_of(OF_NUMBER[kind]).itemsize
    row, span = box[0] * size, SWIZZLES[swizzle]
    valid = (
        address % UNIT == 0
        and row % UNIT == 0
        and (not span or row <= span)
        and all(0 < extent <= MOST_EXTENT for extent in extents[:rank])
        and all(0 < count <= MOST_BOX for count in box[:rank])
        and all(step % UNIT == 0 and step < MOST_STEP for step in steps[: rank - 1])
    )
    if not valid:
        return None
    dimensions = tuple(extents[:rank]), tuple(steps[: rank - 1]), tuple(box[:rank])
    return EncodedMap(address, OF_NUMBER[kind], *dimensions, span).encoded()
