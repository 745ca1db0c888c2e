"""A launch: grid, block and arguments, and which threads are the lanes of which warp.

In: what the user asks for. Out: `Launch` (checked shape), `ArrayArg` (an array that is
described, and only made when somebody reads it) and `Texture1D`. Left out: addresses and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from memsim.errors import MemsimError

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
        raise MemsimError(f"{name} must be one to three positive integers, not {value!r}")
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
                raise MemsimError(f"{name} {value} is larger than the hardware's limit {limit}")
        if self.threads > MAX_THREADS:
            raise MemsimError(
                f"block {self.block} has {self.threads} threads; a block has at most {MAX_THREADS}"
            )
        if not is_integer(self.shared_bytes) or self.shared_bytes < 0:
            raise MemsimError(f"dynamic shared memory cannot be {self.shared_bytes!r} bytes")

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


@dataclass(frozen=True)
class ArrayArg:
    """An array argument by shape, type and content; `fill` is zeros, iota or random.

    Nothing is allocated until `make` is called, so that a trace of a large problem
    costs no memory for arrays that no address depends on. Random are floats from -1 to 1, integers of
    8 bits of any value, and wider ones from 0 to 127, so that they can be indices.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: str = "random"
    seed: int = 0

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
