"""A launch: grid, block and arguments, and which threads are the lanes of which warp.

In: what the user asks for. Out: `Launch` (checked shape), `ArrayArg` (an array that is
described, and only made when somebody reads it) and `Texture1D`. Left out: addresses and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Annotated

import msgspec
import numpy as np

from memsim.errors import MemsimError

# What files may say, for msgspec: numbers that numpy can hold, and a memory that has a cost.
Natural = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
Space = Annotated[str, msgspec.Meta(pattern="^(shared|global)$")]

WARP = 32

# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (9.0).
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)


def is_integer(value: object) -> bool:
    """Whether it is an integer, Python's or numpy's; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def dim3(value: int | Sequence[int], name: str = "dim3") -> tuple[int, int, int]:
    """`8`, `(8,)`, `(8, 8)` or `(8, 8, 1)` as three positive ints, as CUDA's `dim3` fills up.

    Raises:
        MemsimError: not one to three positive integers.
    """
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not 1 <= len(items) <= 3 or not all(is_integer(i) and i > 0 for i in items):
        raise MemsimError(f"{name} must be one to three positive integers, not {shown(value)}")
    x, y, z = (*(int(i) for i in items), 1, 1)[:3]
    return x, y, z


@dataclass(frozen=True, slots=True)
class Launch:
    """A checked launch shape. `shared_bytes` is the dynamic shared memory per block, in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        for name, value, limit in (("grid", self.grid, MAX_GRID), ("block", self.block, MAX_BLOCK)):
            if any(v > most for v, most in zip(value, limit)):
                raise MemsimError(f"{name} {shown(value)} is larger than the hardware's limit {limit}")
        if self.threads > MAX_THREADS:
            raise MemsimError(
                f"block {self.block} has {self.threads} threads; a block has at most {MAX_THREADS}"
            )
        if not is_integer(self.shared_bytes) or self.shared_bytes < 0:
            raise MemsimError(f"dynamic shared memory cannot be {shown(self.shared_bytes)} bytes")

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return prod(self.block)

    @property
    def warps(self) -> int:
        """Warps in a block, the last one perhaps not full."""
        return -(-self.threads // WARP)

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return prod(self.grid)


# Types of array elements by the names that people write, and numpy's.
NAMES = {"f": ("float", (16, 32, 64)), "i": ("int", (8, 16, 32, 64)), "u": ("uint", (8, 16, 32, 64))}
DTYPES = {f"{short}{bits}": f"{name}{bits}" for short, (name, sizes) in NAMES.items() for bits in sizes}
FILLS = ("random", "zeros", "iota")
MOST_BYTES = 1 << 47  # what an address can tell apart


@dataclass(frozen=True)
class ArrayArg:
    """An array argument by shape, type and content; `fill` is zeros, iota or random.

    Nothing is allocated until `make` is called, so that a trace of a large problem
    costs no memory for arrays that no address depends on. Random are floats from -1 to 1, integers of
    8 bits of any value, and wider ones from 0 to 127, so that they can be indices. `dtype` is numpy's name or
    a short one: "float32" or "f32".

    Raises:
        MemsimError: a shape, type or content that an array cannot have.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.shape, (tuple, list)) or not all(is_integer(n) and n >= 0 for n in self.shape):
            raise MemsimError(f"an array's shape is integers, as in (64, 64), and not {shown(self.shape)}")
        if not isinstance(self.fill, str) or self.fill not in FILLS:
            raise MemsimError(f"no content {shown(self.fill)}; known: {', '.join(FILLS)}")
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
        if self.nbytes > MOST_BYTES:
            raise MemsimError(f"an array of {shown(self.nbytes)} bytes is larger than any memory")

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def make(self) -> np.ndarray:
        """The array itself; the same content every time."""
        dtype = np.dtype(self.dtype)
        if self.fill == "zeros":
            return np.zeros(self.shape, dtype)
        if self.fill == "iota":
            return np.arange(prod(self.shape)).astype(dtype).reshape(self.shape)
        rng = np.random.default_rng(self.seed)
        if dtype.kind == "f":
            return rng.uniform(-1.0, 1.0, self.shape).astype(dtype)
        if dtype.kind in "iu" and dtype.itemsize == 1:
            return rng.integers(0, 256, self.shape).astype(dtype)
        return rng.integers(0, 128, self.shape).astype(dtype)


def _dtype_name(dtype: object) -> str:
    """numpy's name of an element's type.

    Raises:
        MemsimError: numpy has no such type, or it is no number.
    """
    try:
        found = np.dtype(DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)  # type: ignore[call-overload]
    except (TypeError, ValueError, SyntaxError):
        found = None
    if dtype is None or found is None or found.kind not in "biufc":
        hint = "of the same size: uint16 for bfloat16 and float16, uint8 for types of 8 bits"
        raise MemsimError(f"no array has elements of {shown(dtype)}; known: {', '.join(DTYPES)}", hint=hint)
    name: str = found.name
    return name


def shown(value: object) -> str:
    """A value for a message, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or lists without end
        return f"this {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True)
class Texture1D:
    """A texture object over a float32 array in linear memory, for a `cudaTextureObject_t` parameter.

    As CUDA makes it of `cudaResourceTypeLinear` with four 32-bit float channels: a texel is four
    floats, numbered from 0, read as they are by `tex1Dfetch<float4>`; zeros outside the array. A
    kernel that is run sees the array as it was before.

    Raises:
        MemsimError: not float32, or not whole texels.
    """

    array: np.ndarray | ArrayArg

    def __post_init__(self) -> None:
        if np.dtype(self.array.dtype) != np.float32 or self.array.nbytes % 16 or not self.array.nbytes:
            raise MemsimError(
                f"a texture of four-float texels cannot lie over {self.array.dtype}{list(self.array.shape)}",
                hint="it takes a float32 array whose size is a multiple of 4",
            )

    @cached_property
    def texels(self) -> np.ndarray:
        """The array as float32 [texels, 4]."""
        array = self.array.make() if isinstance(self.array, ArrayArg) else self.array
        return np.ascontiguousarray(array).reshape(-1, 4)
