"""The memory that numpy arrays are views of."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


def owner(array: np.ndarray) -> np.ndarray:
    """The array that a view is a part of; the array itself if it is not a view."""
    found, base = array, array.base
    while base is not None:
        found = base if isinstance(base, np.ndarray) else found
        base = getattr(base, "base", None)  # as_strided inserts an object between a view and its array
    return found


def allocation(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory that an array is a view of, as bytes without a copy, and the offset of its first element."""
    whole = owner(array)
    bounds = (*np.lib.array_utils.byte_bounds(whole), *np.lib.array_utils.byte_bounds(array))
    low, high = min(bounds), max(bounds)
    first = int(array.__array_interface__["data"][0])
    return memory_at(low, high - low, whole), first - low


def memory_at(start: int, size: int, keeper: Any) -> np.ndarray:
    """The bytes at an address, kept alive by `keeper`."""
    memory = (ctypes.c_uint8 * size).from_address(start)
    memory._keeper = keeper  # type: ignore[attr-defined]
    return np.ctypeslib.as_array(memory)


class Copies:
    """Copies arrays with the allocations that they are views of, each allocation once."""

    def __init__(self) -> None:
        self.copies: dict[tuple[int, int], np.ndarray] = {}

    def __call__(self, array: Any) -> Any:
        """A view of the copy with the same layout as `array`; one that is only described as it is."""
        if not isinstance(array, np.ndarray):
            return array
        memory, offset = allocation(array)
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self.copies:
            self.copies[place] = memory.copy()
        view: np.ndarray = np.ndarray(array.shape, array.dtype, self.copies[place], offset, array.strides)
        return view
