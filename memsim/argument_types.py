"""What a kernel's argument can be besides numbers and numpy arrays.

An array by description (`ArrayArg`), created on demand; a table of pointers; a texture; one or several tensor
maps; a struct by its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np

from memsim.errors import MemsimError, shown
from memsim.launch import MOST_BYTES, is_integer

FILLS = ("random", "zeros", "ones", "iota")
# What a channel of a texel can be.
TEXELS = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32")
# Element types by short name, and numpy's names.
NAMES = {"f": ("float", (16, 32, 64)), "i": ("int", (8, 16, 32, 64)), "u": ("uint", (8, 16, 32, 64))}
DTYPES = {f"{short}{bits}": f"{name}{bits}" for short, (name, sizes) in NAMES.items() for bits in sizes}
DTYPES |= {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def dtype_of(name: str) -> np.dtype[Any]:
    """A numpy type by name; `bfloat16` and 8-bit floats (`float8_e4m3fn`, ...) are those of ml_dtypes.

    Raises:
        MemsimError: unknown type.
    """
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        if hasattr(ml_dtypes, name):
            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
            return found
    try:
        return np.dtype(name)
    except TypeError:
        raise MemsimError(f"there is no type {name!r}", hint="types are named as numpy does") from None


@dataclass(frozen=True)
class ArrayArg:
    """An array argument by shape, type and content; `fill` is zeros, ones, iota or random.

    Nothing is allocated until `make` is called, so that a trace of a large problem needs no memory for arrays
    that no address depends on. Random values are floats from -1 to 1, 8-bit integers of any value, and wider
    integers from 0 to 127, so that they can be indices. `dtype` is numpy's name or a short one: "float32" or
    "f32".

    strides: bytes from one element to the next in each dimension, as in numpy; None for C order.

    offset: bytes from the start of the allocation to the first element; None for the smallest that keeps
    every element inside, which is 0 unless a stride is negative. Allocations start at multiples of 256 bytes.

    Raises:
        MemsimError: an invalid shape, type or content, or elements outside of the allocation.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: str = "random"
    seed: int = 0
    strides: tuple[int, ...] | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (tuple, list)) or not all(is_integer(n) and n >= 0 for n in self.shape):
            raise MemsimError(f"an array's shape must be integers such as (64, 64), not {shown(self.shape)}")
        if not isinstance(self.fill, str) or self.fill not in FILLS:
            raise MemsimError(f"unknown content {shown(self.fill)}; known: {', '.join(FILLS)}")
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise MemsimError(f"strides {self.strides} do not match an array of shape {self.shape}")
        if self.offset is not None and self.offset < self._reach[0]:
            raise MemsimError(
                f"some elements of {self} lie before its allocation",
                hint=f"negative strides need an offset of at least {self._reach[0]} bytes",
            )
        if self.extent > MOST_BYTES:
            raise MemsimError(f"an array of {shown(self.extent)} bytes is larger than any GPU's memory")

    @property
    def nbytes(self) -> int:
        """Size of its elements, in bytes."""
        return prod(self.shape) * dtype_of(self.dtype).itemsize

    @property
    def extent(self) -> int:
        """Size of its allocation, in bytes."""
        return self.start + self._reach[1]

    @property
    def start(self) -> int:
        """The offset of its first element in the allocation, in bytes."""
        return self._reach[0] if self.offset is None else self.offset

    @property
    def _reach(self) -> tuple[int, int]:
        """Bytes of the allocation before the first element, and from there to the end of the last."""
        if self.strides is None or not prod(self.shape):
            return 0, self.nbytes
        ends = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)]
        before = -sum(end for end in ends if end < 0)
        return before, sum(end for end in ends if end > 0) + dtype_of(self.dtype).itemsize

    def make(self) -> np.ndarray:
        """Create the array; the same content every time."""
        content = self._content()
        if self.strides is None and not self.offset:
            return content
        memory = np.zeros(self.extent, np.uint8)
        array: np.ndarray = np.ndarray(self.shape, content.dtype, memory, self.start, self.strides)
        array[...] = content
        return array

    def _content(self) -> np.ndarray:
        dtype = dtype_of(self.dtype)
        if self.fill == "zeros":
            return np.zeros(self.shape, dtype)
        if self.fill == "ones":
            return np.ones(self.shape, dtype)
        if self.fill == "iota":
            return np.arange(prod(self.shape)).astype(dtype).reshape(self.shape)
        rng = np.random.default_rng(self.seed)
        if dtype.kind == "f" or dtype.isbuiltin == 2:  # 2: a type of ml_dtypes
            return rng.uniform(-1.0, 1.0, self.shape).astype(dtype)
        if dtype.kind in "iu" and dtype.itemsize == 1:
            return rng.integers(0, 256, self.shape).astype(dtype)
        return rng.integers(0, 128, self.shape).astype(dtype)


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes from one element to the next in each dimension of an array in C order."""
    steps: list[int] = []
    for extent in reversed(shape):
        steps.append(itemsize)
        itemsize *= extent
    return tuple(reversed(steps))


class StructFields(tuple[Any, ...]):
    """The parts of a struct with their names: an array is `p.x` in reports, or `p` if its name is empty."""

    names: tuple[str, ...]

    def __new__(cls, parts: Iterable[Any], names: Iterable[str]) -> StructFields:
        made = super().__new__(cls, parts)
        made.names = tuple(names)
        return made


class ArrayTable:
    """A table in global memory whose entries refer to `arrays`."""

    arrays: Sequence[np.ndarray | ArrayArg | None]
    #: numpy's name for the type of an entry.
    dtype: ClassVar[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of entries."""
        return (len(self.arrays),)

    @property
    def nbytes(self) -> int:
        """Size of the table, in bytes."""
        return np.dtype(self.dtype).itemsize * len(self.arrays)


@dataclass(frozen=True)
class Pointers(ArrayTable):
    """A table of pointers in global memory to `arrays`; None is a null pointer."""

    arrays: Sequence[np.ndarray | ArrayArg | None]
    dtype: ClassVar[str] = "uint64"

    def __post_init__(self) -> None:
        for array in self.arrays:
            if array is not None and not isinstance(array, (np.ndarray, ArrayArg)):
                raise MemsimError(f"a pointer in a table points to an array, not to {array!r}")


@dataclass(frozen=True)
class TensorMap:
    """A `CUtensorMap` over an array: 128 bytes that only TMA reads.

    As created by `cuTensorMapEncodeTiled` without interleave and with element strides of 1; its bytes are
    opaque, and zeros here.

    box: elements of a copy in each dimension, outermost first, as the array's shape. swizzle: span in bytes,
    0 (none), 32, 64 or 128.

    Raises:
        MemsimError: another swizzle.
    """

    array: np.ndarray | ArrayArg
    box: tuple[int, ...] = ()
    swizzle: int = 0

    nbytes: ClassVar[int] = 128
    alignment: ClassVar[int] = 64

    def __post_init__(self) -> None:
        if self.swizzle not in (0, 32, 64, 128):
            raise MemsimError(f"a tensor map swizzles over 0, 32, 64 or 128 bytes, not {shown(self.swizzle)}")


@dataclass(frozen=True)
class TensorMaps(ArrayTable):
    """A table of tensor maps in global memory, for a parameter `const CUtensorMap *`.

    Raises:
        MemsimError: an element is not a `TensorMap`.
    """

    maps: Sequence[TensorMap]
    dtype: ClassVar[str] = f"V{TensorMap.nbytes}"

    def __post_init__(self) -> None:
        for one in self.maps:
            if not isinstance(one, TensorMap):
                raise MemsimError(f"a table of tensor maps holds tensor maps, not {shown(one)}")

    @property
    def arrays(self) -> tuple[np.ndarray | ArrayArg, ...]:  # type: ignore[override]
        """Their arrays."""
        return tuple(one.array for one in self.maps)


def _dtype_name(dtype: object) -> str:
    """numpy's name of an element type.

    Raises:
        MemsimError: unknown, or not a number.
    """
    try:
        found = dtype_of(DTYPES.get(dtype, dtype)) if isinstance(dtype, str) else np.dtype(dtype)  # type: ignore[call-overload]
    except (TypeError, ValueError, SyntaxError, MemsimError):
        found = None
    small = found is not None and found.name.startswith(("bfloat", "float8"))
    if dtype is None or found is None or not (small or found.kind in "biufc"):
        raise MemsimError(f"unknown element type {shown(dtype)}; known: {', '.join(DTYPES)}")
    name: str = found.name
    return name


@dataclass(frozen=True)
class Texture:
    """A texture object, for a `cudaTextureObject_t` parameter. A kernel that is run sees the array as it was
    before.

    array: its texels in C order: [width], [height, width] or [depth, height, width], of layers [layers,
    height, width]; with the channels of a texel, 1, 2 or 4, as one more axis at the end if there are several.

    dimensions: 1, 2 or 3. memory: "array" (`cudaArray_t`), or "linear": of one dimension the memory that
    `tex1Dfetch` reads, of two pitched memory. filter: "point" or "linear". address: what is outside, "clamp",
    "border", "wrap" or "mirror"; the last two need normalized coordinates. integers: how these are read, as
    "integers" or as floats from 0 to 1 or -1 to 1 ("normalized").

    Raises:
        MemsimError: something that CUDA has not.
    """

    array: np.ndarray | ArrayArg
    dimensions: int = 2
    memory: str = "array"
    filter: str = "point"
    address: str = "clamp"
    normalized: bool = False
    layered: bool = False
    integers: str = "integers"

    CHOICES: ClassVar[dict[str, tuple[Any, ...]]] = {
        "dimensions": (1, 2, 3),
        "memory": ("array", "linear"),
        "filter": ("point", "linear"),
        "address": ("clamp", "border", "wrap", "mirror"),
        "integers": ("integers", "normalized"),
    }

    def __post_init__(self) -> None:
        for name, known in self.CHOICES.items():
            if getattr(self, name) not in known:
                raise MemsimError(
                    f"a texture cannot have {name}={shown(getattr(self, name))}",
                    hint=f"{name} is one of {', '.join(map(str, known))}",
                )
        name = f"{np.dtype(self.array.dtype).name}{list(self.array.shape)}"
        axes = self.dimensions + self.layered
        if len(self.array.shape) not in (axes, axes + 1) or self.channels not in (1, 2, 4):
            raise MemsimError(
                f"{name} is no texture of {self.dimensions} dimensions{' and layers' * self.layered}",
                hint=f"its shape has {axes} axes, and at the end one of 1, 2 or 4 channels",
            )
        if str(np.dtype(self.array.dtype)) not in TEXELS or not self.array.nbytes:
            raise MemsimError(f"texels cannot lie over {name}", hint=f"they are made of {', '.join(TEXELS)}")
        if self.memory == "linear" and (self.dimensions == 3 or self.layered):
            raise MemsimError("a texture of 3 dimensions or of layers lies in an array", hint="memory=array")
        if self.memory == "linear" and self.dimensions == 1 and self.filter == "linear":
            raise MemsimError("tex1Dfetch does not filter", hint="memory=array, or filter=point")
        if self.address in ("wrap", "mirror") and not self.normalized:
            raise MemsimError(f"address={self.address} needs normalized coordinates", hint="normalized=True")
        if self.filter == "linear" and self.element.kind != "f" and self.integers == "integers":
            raise MemsimError("integers are filtered only as floats", hint="integers=normalized")

    @property
    def element(self) -> np.dtype[Any]:
        """The type of a channel."""
        return np.dtype(self.array.dtype)

    @property
    def channels(self) -> int:
        """Channels of a texel."""
        axes = self.dimensions + self.layered
        return 1 if len(self.array.shape) == axes else int(self.array.shape[axes])

    @property
    def width(self) -> int:
        """Bytes of a texel."""
        return self.channels * self.element.itemsize

    @property
    def size(self) -> tuple[int, ...]:
        """Texels along x, y and z."""
        extents = self.array.shape[int(self.layered) : self.dimensions + self.layered]
        return tuple(int(extent) for extent in reversed(extents))

    @property
    def layers(self) -> int:
        """How many it has; 1 without."""
        return int(self.array.shape[0]) if self.layered else 1

    @cached_property
    def texels(self) -> np.ndarray:
        """Its channels as registers get them, float32, or int32 of integers [texels, channels]; x moves
        fastest.
        """
        array = self.array.make() if isinstance(self.array, ArrayArg) else self.array
        flat = np.ascontiguousarray(array).reshape(-1, self.channels)
        if self.element.kind == "f":
            return flat.astype(np.float32)
        if self.integers == "normalized":
            most = np.iinfo(self.element).max
            parts: np.ndarray = np.maximum(flat.astype(np.float32) / np.float32(most), np.float32(-1))
            return parts
        return flat.astype(np.int64).astype(np.int32)


@dataclass(frozen=True)
class Texture1D(Texture):
    """Linear memory of float32, four to a texel, that `tex1Dfetch<float4>` reads.

    array: float32 of any shape.

    Raises:
        MemsimError: not float32, or not whole texels.
    """

    dimensions: int = 1
    memory: str = "linear"

    def __post_init__(self) -> None:
        if np.dtype(self.array.dtype) != np.float32 or self.array.nbytes % 16 or not self.array.nbytes:
            raise MemsimError(
                f"a texture of four-float texels cannot lie over {self.array.dtype}{list(self.array.shape)}",
                hint="it takes a float32 array whose size is a multiple of 4",
            )

    @property
    def channels(self) -> int:
        """Channels of a texel."""
        return 4

    @property
    def size(self) -> tuple[int, ...]:
        """Texels along x."""
        return (self.array.nbytes // 16,)
