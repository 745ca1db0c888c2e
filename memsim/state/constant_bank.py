"""The bytes of a constant bank."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, to_bools
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: Where a kernel's parameters begin in the window of constant memory, behind the user's variables.
PARAMETERS = 1 << 23


class ConstantBytes:
    """The bytes of a constant bank, read at addresses of lanes like a `Store`."""

    all_known = False

    def __init__(self, content: bytes, parameters: bytes = b"") -> None:
        self.size = len(content)
        self.content = np.frombuffer(content + parameters, np.uint8)
        self.unknown = Poison("outside of the known part of the constant bank", None)

    def lost(self, address: Int, dtype: type, active: Any) -> Any:
        """The lanes that read unknown bytes."""
        inside, _ = self._places(address, np.dtype(dtype).itemsize)
        return both(active, from_bools(~inside))

    def why(self, address: Int, dtype: type, lost: Any) -> Poison:
        """Why the values read by these lanes are unknown."""
        return self.unknown

    def load(self, address: Int, dtype: type, active: Any) -> np.ndarray:
        """The value read by each lane.

        Raises:
            Poisoned: a lane reads unknown bytes.
        """
        size = np.dtype(dtype).itemsize
        inside, at = self._places(address, size)
        if (to_bools(active) & ~inside).any():
            raise Poisoned(self.unknown)
        if not self.content.size:
            return np.zeros(at.shape, dtype)
        index = np.where(inside, at, 0)[..., None] + np.arange(size)
        return np.ascontiguousarray(self.content[index]).view(dtype)[..., 0]

    def _places(self, address: Int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Whether so many bytes at addresses are in the bank, and their places in `content`."""
        at = to_array(address)
        behind = at - PARAMETERS + self.size
        of_parameters = (at >= PARAMETERS) & (behind + size <= self.content.size)
        of_bank = (at >= 0) & (at + size <= self.size)
        return of_bank | of_parameters, np.where(of_bank, at, behind)

    def store(self, address: Int, values: np.ndarray, active: Any) -> None:
        """Constant memory cannot be written."""
        raise Poisoned(Poison("a write to constant memory", None))
