"""Blocks that have done the same so far, of which one is followed for all.

Most blocks of a launch access the same places of their shared memory, in the same order. They are one class
as long as they do; what tells some of them apart splits it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsim.arch.units import WARP
from memsim.state.parts import Part
from memsim.state.predicates import from_bools
from memsim.state.registers import Sum, to_array
from memsim.state.sums import Int

#: Odd random numbers: sums of products with them tell rows of numbers apart.
_FACTORS = np.random.default_rng(29).integers(-(1 << 62), 1 << 62, 1 << 11) | 1


class BlockClasses:
    """The classes of the running blocks.

    of: the class of each block [B]. first: a block of each class [C]. sizes: their numbers of blocks [C].
    """

    def __init__(self, blocks: int, apart: bool) -> None:
        self.of = np.arange(blocks) if apart else np.zeros(blocks, np.int64)
        self._known: set[tuple[int, ...]] = set()
        self._count()

    def __len__(self) -> int:
        return len(self.first)

    def _count(self) -> None:
        _, self.first, self.sizes = np.unique(self.of, return_index=True, return_counts=True)
        self._masks: dict[int, bool | Part] = {}

    def split(self, keys: np.ndarray) -> np.ndarray | None:
        """Blocks with different keys, int64 [B], are of different classes from here on.

        Returns the former class of each class; None if none was split.
        """
        if (keys == keys[self.first][self.of]).all():
            return None
        pairs, self.of = np.unique(np.stack([self.of, keys]), axis=1, return_inverse=True)
        self._count()
        former: np.ndarray = pairs[0]
        return former

    def split_by(self, address: Int, active: bool | Part) -> np.ndarray | None:
        """The same by what lanes access."""
        parts = [*address.parts] if isinstance(address, Sum) else []
        parts = [part for part in (*parts, active) if isinstance(part, Part) and part.shape[0] > 1]
        key = tuple(part.uid for part in parts)
        if not parts or len(self) == len(self.of) or key in self._known:
            return None
        self._known.add(key)
        keys: np.ndarray = np.zeros(len(self.of), np.int64)
        for number, part in enumerate(parts, 1):
            array = part.array.astype(np.int64)
            if part is not active and isinstance(active, Part):
                array = np.where(active.array, array, -1)
            keys += (array * _FACTORS[: array.shape[1]]).sum(1) * (2 * number + 1)
        return self.split(keys)

    def split_by_events(self, rows: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray | None:
        """The same by events of blocks `rows` [n], in any order, that these columns [n] tell apart."""
        if len(self) == len(self.of):
            return None
        each: np.ndarray = np.zeros(len(rows), np.int64)
        for column, factor in zip(columns, _FACTORS):
            each = (each ^ column ^ each >> 29) * factor + 1
        keys = np.zeros(len(self.of), np.int64)
        np.add.at(keys, rows, each ^ each >> 31)
        return self.split(keys)

    def rows_of(self, mask: bool | Part) -> bool | Part:
        """A mask of the first blocks of the classes."""
        if not isinstance(mask, Part) or mask.shape[0] == 1:
            return mask
        if mask.uid not in self._masks:
            self._masks[mask.uid] = from_bools(mask.array[self.first])
        return self._masks[mask.uid]

    def lanes(self, mask: bool | Part, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """(class [n], thread [n]) of the lanes of a mask."""
        mask = self.rows_of(mask)
        shape = len(self), threads
        if not isinstance(mask, Part):
            rows, lanes = np.indices(shape if mask else (0, 0))
            return rows.ravel(), lanes.ravel()
        return tuple(np.nonzero(np.broadcast_to(mask.array, shape)))  # type: ignore[return-value]

    def places(self, address: Int, rows: np.ndarray, threads: np.ndarray) -> np.ndarray:
        """The addresses of lanes [n]."""
        array = to_array(address)
        at: np.ndarray | int = self.first[rows] if array.shape[0] > 1 else 0
        found: np.ndarray = array[at, threads if array.shape[1] > 1 else 0]
        return np.broadcast_to(found, rows.shape)

    def warps(self, mask: bool | Part, threads: int) -> tuple[np.ndarray, np.ndarray]:
        """(class [n], warp [n]) of the warps with a lane in a mask."""
        mask, shape = self.rows_of(mask), (len(self), threads // WARP)
        on = mask.words != 0 if isinstance(mask, Part) else np.full((1, 1), mask)
        return tuple(np.nonzero(np.broadcast_to(on, shape)))  # type: ignore[return-value]
