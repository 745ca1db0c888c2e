"""Textures of a program: what the program says of one (`struct texture` of native/channel.h), and the texture
over the program's memory that fetches of a launch read; and tensor maps that it encodes by
`cuTensorMapEncodeTiled` (native/tensor_maps.h).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from memsim.argument_types import Texture, dtype_of
from memsim.argument_types.array_tables import BYTES, SWIZZLES, EncodedMap, decode_tensor_map
from memsim.errors import MemsimError
from memsim.state.address_spaces import GLOBAL_BASE, TEXTURE_HANDLES, SpaceLayout

QUESTION = struct.Struct("<5Q10I4f")
#: CUarray_format.
TYPES = {
    1: "uint8",
    2: "uint16",
    3: "uint32",
    8: "int8",
    9: "int16",
    10: "int32",
    16: "float16",
    32: "float32",
}
ADDRESSES = ("wrap", "clamp", "mirror", "border")
FILTERS = ("point", "linear")
LAYERED, CUBE = 1, 4  # of CUDA_ARRAY3D_...
AS_INTEGERS, NORMALIZED, SRGB = 1, 2, 16  # of CU_TRSF_...
IN_ARRAY, LINEAR, PITCHED, SURFACE = range(4)
MOST_TEXTURES = 1 << 16


@dataclass(frozen=True)
class DocumentedTexture(Texture):
    """One for a program that has to go on."""

    as_documented: ClassVar[bool] = True


class ProgramTexture(NamedTuple):
    """A texture or surface object of a program: the memory that it lies over, by its first byte, shape and
    strides in bytes, the channels last; how it is read.
    """

    start: int
    element: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_surface: bool
    how: dict[str, Any]

    def over(self, memory: np.ndarray, *, as_documented: bool) -> Texture:
        """The texture over global memory, uint8 [bytes], as that is when a fetch first reads it."""
        texels = np.ndarray(self.shape, self.element, memory, self.start - GLOBAL_BASE, self.strides)
        return (DocumentedTexture if as_documented else Texture)(texels, **self.how)


def read_texture(data: bytes, memory: np.ndarray, layout: SpaceLayout) -> ProgramTexture:
    """What a program says of a texture over global memory, uint8 [bytes], with these allocations.

    Raises:
        MemsimError: it is none, or one that memsim has not.
    """
    at, pitch, *extents, form, channels, flags, kind, ax, ay, az, filtered, reading, _, r, g, b, a = (
        QUESTION.unpack(data)
    )
    width, height, depth = extents
    if (
        form not in TYPES
        or channels not in (1, 2, 4)
        or not width
        or max(ax, ay, az) > 3
        or filtered > 1
        or kind > 3
    ):
        raise MemsimError("a texture of a format that CUDA has not")
    if reading & SRGB:
        raise MemsimError("textures in sRGB are not modelled")
    element = np.dtype(TYPES[form])
    layered = bool(flags & (LAYERED | CUBE)) and kind in (IN_ARRAY, SURFACE)
    layers = max(depth, 1) if layered else 0
    size = [width, *([height] if height else []), *([depth] if depth and not layered else [])]
    strides = [channels * element.itemsize, pitch, pitch * max(height, 1)]
    shape = (*([layers] if layered else []), *reversed(size), channels)
    steps = (*([strides[2]] if layered else []), *reversed(strides[: len(size)]), element.itemsize)
    last = at + sum((n - 1) * step for n, step in zip(shape, steps)) + element.itemsize
    buffer = layout.find(at, at + 1)
    if buffer is None or last > buffer.end:
        raise MemsimError(f"a texture of {last - at:,} bytes at {at:#x} is in no allocation")
    if pitch < width * strides[0]:
        raise MemsimError(f"a texture whose rows of {width * strides[0]:,} bytes are {pitch:,} bytes apart")
    normalized = bool(reading & NORMALIZED)
    modes = {ADDRESSES[mode] for mode in (ax, ay, az)[: len(size)]}
    modes = modes if normalized else {mode if mode == "border" else "clamp" for mode in modes}
    if len(modes) > 1 and kind != SURFACE:
        raise MemsimError("textures with another addressing mode for each axis are not modelled")
    as_floats = not reading & AS_INTEGERS and element.kind != "f" and element.itemsize < 4
    how = {
        "dimensions": len(size),
        "memory": "linear" if kind in (LINEAR, PITCHED) else "array",
        "filter": "point" if kind == LINEAR else FILTERS[filtered],
        "address": "clamp" if kind == LINEAR else modes.pop(),
        "normalized": normalized,
        "layered": layered,
        "integers": "normalized" if as_floats else "integers",
        "border": (r, g, b, a),
        "cube": bool(flags & CUBE) and layered,
    }
    made = ProgramTexture(at, element, shape, steps, kind == SURFACE, how)
    if kind != SURFACE:
        made.over(memory, as_documented=True)  # whatever is wrong with it
    return made


class ProgramTextures:
    """The objects of a program, by their handles."""

    def __init__(self) -> None:
        self.objects: dict[int, ProgramTexture] = {}
        self._made = 0

    def add(self, made: ProgramTexture) -> int:
        """The handle of a new one.

        Raises:
            MemsimError: there are too many.
        """
        if len(self.objects) >= MOST_TEXTURES:
            raise MemsimError("a program with too many textures")
        self._made += 1
        handle = TEXTURE_HANDLES + self._made
        self.objects[handle] = made
        return handle


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


def map_at_address(data: bytes) -> bytes | None:
    """A map, behind the address that it is to have: with that address; None if it is no map."""
    (address,) = struct.unpack_from("<Q", data)
    known = decode_tensor_map(data[8:])
    return None if known is None or address % UNIT else replace(known, address=address).encoded()


def encode_tensor_map(data: bytes) -> bytes | None:
    """The map that `struct tensor_map` asks for; None if the driver would refuse it.

    Raises:
        UnsupportedMap: of a kind that memsim does not execute.
    """
    if len(data) == 8 + BYTES:
        return map_at_address(data)
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
