"""The shape of a launch: grid, block, cluster and dynamic shared memory, within CUDA's limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Annotated

import msgspec

from memsim.arch.units import WARP
from memsim.errors import MemsimError, short_repr

# Limits on numbers in files, for msgspec: numbers that fit numpy, and a bounded amount of memory.
Natural = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
Space = Annotated[str, msgspec.Meta(pattern="^(shared|global|local|constant|texture)$")]
#: Name of local memory that holds only spilled registers.
SPILLS = "spills"

#: Alignment of allocations in bytes, the minimum of cudaMalloc.
GLOBAL_ALIGN = 256
MOST_BYTES = 1 << 47  # the size of the address space

# CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability" (9.0).
MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
PORTABLE_CLUSTER, MAX_CLUSTER = 8, 16  # without and with cudaFuncAttributeNonPortableClusterSizeAllowed


def is_integer(value: object) -> bool:
    """Whether it is an integer, Python's or numpy's, but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def dim3(value: int | Sequence[int], name: str = "dim3") -> tuple[int, int, int]:
    """`8`, `(8,)`, `(8, 8)` or `(8, 8, 1)` as three positive ints, as CUDA's `dim3`.

    Raises:
        MemsimError: not one to three positive integers.
    """
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    if not 1 <= len(items) <= 3 or not all(is_integer(i) and i > 0 for i in items):
        raise MemsimError(f"{name} must be one to three positive integers, not {short_repr(value)}")
    x, y, z = (*(int(i) for i in items), 1, 1)[:3]
    return x, y, z


def coordinates_of(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    """(x, y, z) of a block in its grid or a thread in its block, by its linear number; behind, z goes on."""
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


@dataclass(frozen=True, slots=True)
class Launch:
    """A checked launch shape. `shared_bytes` is the dynamic shared memory per block, in bytes.

    cluster: blocks of a cluster, if set by the launch; None leaves it to the code.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None

    def __post_init__(self) -> None:
        for name, value, limit in (("grid", self.grid, MAX_GRID), ("block", self.block, MAX_BLOCK)):
            if min(value) < 1:
                raise MemsimError(f"{name} must be positive integers, not {short_repr(value)}")
            if any(v > most for v, most in zip(value, limit)):
                raise MemsimError(f"{name} {short_repr(value)} is larger than the hardware's limit {limit}")
        if self.threads > MAX_THREADS:
            raise MemsimError(
                f"block {self.block} has {self.threads} threads; a block has at most {MAX_THREADS}"
            )
        if not is_integer(self.shared_bytes) or self.shared_bytes < 0:
            raise MemsimError(f"dynamic shared memory cannot be {short_repr(self.shared_bytes)} bytes")
        if self.cluster is not None and prod(self.cluster) > MAX_CLUSTER:
            raise MemsimError(
                f"cluster {self.cluster} has {prod(self.cluster)} blocks; a cluster has at most {MAX_CLUSTER}"
            )

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return prod(self.block)

    @property
    def warps(self) -> int:
        """Warps in a block, including a partial last one."""
        return -(-self.threads // WARP)

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return prod(self.grid)
