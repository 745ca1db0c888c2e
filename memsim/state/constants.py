"""The bytes of a constant bank.

In: addresses of lanes. Out: what they read, and which lanes read where nobody has said what is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.state.registers import Poison, Poisoned, both, from_bools, to_array, to_bools
from memsim.state.sums import Int


class ConstantBytes:
    """The bytes of a constant bank, read at addresses of lanes like a `Store`."""

    def __init__(self, content: bytes) -> None:
        self.content = np.frombuffer(content, np.uint8)
        self.unknown = Poison("outside of what is known of the constant bank", None)

    def lost(self, address: Int, dtype: type, active: Any) -> Any:
        """The lanes that read where nobody has said what is there."""
        at = to_array(address)
        return both(active, from_bools((at < 0) | (at + np.dtype(dtype).itemsize > self.content.size)))

    def why(self, address: Int, dtype: type, lost: Any) -> Poison:
        """Why it is not known what these lanes read."""
        return self.unknown

    def load(self, address: Int, dtype: type, active: Any) -> np.ndarray:
        """What each lane reads.

        Raises:
            Poisoned: a lane reads where nobody has said what is there.
        """
        at, size = to_array(address), np.dtype(dtype).itemsize
        inside = (at >= 0) & (at + size <= self.content.size)
        if (to_bools(active) & ~inside).any():
            raise Poisoned(self.unknown)
        if not self.content.size:
            return np.zeros(at.shape, dtype)
        index = np.where(inside, at, 0)[..., None] + np.arange(size)
        return np.ascontiguousarray(self.content[index]).view(dtype)[..., 0]

    def store(self, address: Int, values: np.ndarray, active: Any) -> None:
        """Constant memory cannot be written."""
        raise Poisoned(Poison("a write to constant memory", None))
