"""The thread as a sketch's function sees it: coordinates as numpy arrays that broadcast to
(blocks, threads).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.launch import Launch


@dataclass(frozen=True, slots=True)
class Coordinates:
    """CUDA's `uint3` and `dim3`: ints, or int64 arrays of shape (1, threads) or (blocks, 1)."""

    x: int | NDArray[np.int64]
    y: int | NDArray[np.int64]
    z: int | NDArray[np.int64]


class Thread:
    """The coordinates of all threads at once; arithmetic on them is numpy's.

    x, y, z: `threadIdx`. lane, warp: within the block. rank: the thread's linear number in the block.
    threadIdx, blockIdx, blockDim, gridDim: as in CUDA.
    """

    def __init__(self, launch: Launch, blocks: NDArray[np.int64]) -> None:
        self._launch = launch
        self._blocks = blocks
        self.knows_block = False
        padded = np.arange(launch.warps * WARP, dtype=np.int64)[None, :]
        self.rank: NDArray[np.int64] = np.minimum(padded, launch.threads - 1)
        self.lane: NDArray[np.int64] = padded % WARP
        self.warp: NDArray[np.int64] = padded // WARP
        self.active: NDArray[np.bool_] = padded < launch.threads
        self.threadIdx = coordinates(self.rank, launch.block)
        self.x, self.y, self.z = self.threadIdx.x, self.threadIdx.y, self.threadIdx.z
        self.blockDim = Coordinates(*launch.block)
        self.gridDim = Coordinates(*launch.grid)

    @cached_property
    def blockIdx(self) -> Coordinates:  # noqa: N802  (CUDA's name)
        """The block's index in the grid."""
        self.knows_block = True
        return coordinates(self._blocks[:, None], self._launch.grid)

    @contextmanager
    def when(self, condition: ArrayLike) -> Iterator[None]:
        """`if (condition)` for each thread: only threads for which it holds make the accesses inside."""
        before = self.active
        self.active = np.logical_and(before, checked_mask(condition, "condition"))
        try:
            yield
        finally:
            self.active = before

    def sync(self) -> None:
        """`__syncthreads()`: makes no request.

        Raises:
            MemsimError: not all threads of a block reach it.
        """
        real = np.arange(self.active.shape[1]) < self._launch.threads
        inside = self.active[:, real]
        if (inside.any(axis=1) & ~inside.all(axis=1)).any():
            raise MemsimError(
                "only some threads of a block reach this t.sync()",
                hint="all of them must reach it: move it out of t.when",
            )


def coordinates(number: NDArray[np.int64], shape: tuple[int, int, int]) -> Coordinates:
    """(x, y, z) of linear numbers, x fastest."""
    return Coordinates(number % shape[0], number // shape[0] % shape[1], number // (shape[0] * shape[1]))


def checked_mask(mask: ArrayLike, what: str) -> NDArray[np.bool_]:
    """A mask as a bool array.

    Raises:
        MemsimError: it is not bool.
    """
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise MemsimError(f"a {what} must be bool, not {array.dtype}", hint="such as t.x < 16")
    return array
