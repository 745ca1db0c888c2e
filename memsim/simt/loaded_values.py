"""What a launch loads that depends on where something lies: pointers, which are known by their values."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import numpy as np

from memsim.launch import GLOBAL_ALIGN
from memsim.simt.placed_words import CODE, NAMES, STACK
from memsim.state.address_spaces import LOCAL_WINDOW, WINDOW_SIZE, SpaceLayout

#: A pointer this far before or behind an array is still one into it; the gaps between arrays are larger.
AROUND = GLOBAL_ALIGN // 2


class LoadedValues:
    """What the loads of a launch read, as far as `placed_values.py` asks for it.

    constants: by load of a constant at an index, where in the bank it read. pointers: by load and pair of
    words, what those point to, with its name: arrays, the stack, functions.
    """

    def __init__(self, arrays: SpaceLayout, functions: Collection[int]) -> None:
        self.constants: dict[int, set[int]] = {}
        self.pointers: dict[tuple[int, int], dict[Hashable, str]] = {}
        self._arrays = arrays
        self._functions = np.array(sorted(functions), np.int64)

    def constant(self, instruction: int, places: np.ndarray) -> None:
        """Words of a constant bank were read, from so many places."""
        self.constants.setdefault(instruction, set()).update(np.unique(places).tolist())

    def pair(self, instruction: int, number: int, values: np.ndarray) -> None:
        """The two words of `number` were read, together int64."""
        lowest, highest = int(values.min()), int(values.max())
        found: dict[Hashable, str] = {}
        arrays = self._arrays
        if highest >= arrays.base - AROUND and lowest < arrays.end + AROUND:
            inside = values[(values >= arrays.base - AROUND) & (values < arrays.end + AROUND)]
            owners = np.searchsorted(np.array(arrays.starts, np.int64) - AROUND, inside, side="right") - 1
            for owner in np.unique(owners[owners >= 0]).tolist():
                found[arrays.buffers[owner]] = arrays.buffers[owner].name
        if highest >= LOCAL_WINDOW and lowest < LOCAL_WINDOW + WINDOW_SIZE:
            found[STACK] = NAMES[STACK]
        if len(self._functions) and np.isin(values, self._functions).any():
            found[CODE] = NAMES[CODE]
        if found:
            self.pointers.setdefault((instruction, number), {}).update(found)
