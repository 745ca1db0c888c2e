"""Checked conversion of array indices to byte addresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsim.errors import MemsimError
from memsim.sketch.element import Element

Indices = tuple[NDArray[np.int64], ...]


@dataclass(frozen=True)
class AccessingThreads:
    """The threads of an access. shape: (blocks, threads). active: mask that broadcasts to `shape`.

    name: describes the thread in a row and column of `shape`.
    """

    shape: tuple[int, int]
    active: NDArray[np.bool_]
    name: Callable[[int, int], str]

    def first(self, wrong: NDArray[np.bool_]) -> tuple[int, int] | None:
        """The first active thread for which `wrong` is true."""
        if not wrong.any():
            return None
        found = np.argwhere(np.broadcast_to(wrong & self.active, self.shape))
        return (int(found[0][0]), int(found[0][1])) if len(found) else None


def byte_addresses(element: Element, vector: int, lanes: AccessingThreads, first: int) -> NDArray[np.int64]:
    """The address of each thread, int64, in a shape that broadcasts to `lanes.shape`.

    Raises:
        MemsimError: indices that are not integers, too few of them, or outside of the array; `vector`
            elements that are not contiguous, have no valid access width, or are misaligned.
    """
    array = element.array
    index = _checked_index(element, lanes)
    offsets = array.layout(*index)
    width = array.itemsize * vector
    if vector != 1:
        _check_vector(element, index, offsets, vector, lanes)
    addresses: NDArray[np.int64] = np.atleast_2d(offsets * array.itemsize + first)
    at = lanes.first(addresses % width != 0)
    if at is not None:
        address = int(np.broadcast_to(addresses, lanes.shape)[at])
        raise MemsimError(
            f"misaligned access: {lanes.name(*at)} accesses {width} bytes at "
            f"{_name(element, index, lanes, at)}, which is byte {address} of {array.space} memory",
            hint=f"an access of {width} bytes must start at a multiple of {width}",
        )
    return addresses


def _checked_index(element: Element, lanes: AccessingThreads) -> Indices:
    array = element.array
    extents = array.shape
    if len(element.index) != len(extents):
        raise MemsimError(
            f"{array.name} has {len(extents)} axes but {len(element.index)} indices",
            hint=f"its shape is {extents}",
        )
    index = tuple(_integers(each, array.name, lanes.shape) for each in element.index)
    for axis, (each, extent) in enumerate(zip(index, extents, strict=True)):
        at = lanes.first((each < 0) | (each >= extent))
        if at is not None:
            which = f"index {int(np.broadcast_to(each, lanes.shape)[at])} of axis {axis}"
            raise MemsimError(
                f"{which} is outside of {array.name}, whose shape is {extents}: "
                f"{lanes.name(*at)} accesses {_name(element, index, lanes, at)}",
                hint="exclude threads by mask= or t.when",
            )
    return index


def _integers(value: Any, name: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        what = value if isinstance(value, slice) else array.dtype
        raise MemsimError(f"{name} is indexed by {what}; an index must be an integer", hint="divide by //")
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise MemsimError(
            f"an index of {name} has shape {array.shape}, but "
            f"there are {shape[0]} blocks of {shape[1]} threads",
            hint="compute indices from the thread's coordinates and constants",
        ) from None
    return np.atleast_2d(array.astype(np.int64, copy=False))


def _check_vector(
    element: Element, index: Indices, offsets: NDArray[np.int64], vector: int, lanes: AccessingThreads
) -> None:
    """Raise unless the elements are contiguous along some axis in every thread."""
    array = element.array
    width = array.itemsize * vector
    if vector < 1 or width not in (1, 2, 4, 8, 16):
        raise MemsimError(
            f"{vector} elements of {array.itemsize} bytes cannot be one access: it has 1, 2, 4, 8 or 16 bytes"
        )
    torn = [_torn(array.layout, index, axis, offsets, vector) for axis in range(len(index))]
    if all(lanes.first(wrong) is not None for wrong in torn):
        at = lanes.first(torn[-1]) or (0, 0)
        raise MemsimError(
            f"the {vector} elements starting at {_name(element, index, lanes, at)} are not contiguous in "
            f"{array.layout}: {lanes.name(*at)} cannot access them at once",
            hint="a swizzle must keep them together (its base), and their axis must be contiguous",
        )


def _torn(
    layout: Any, index: Indices, axis: int, offsets: NDArray[np.int64], vector: int
) -> NDArray[np.bool_]:
    """Where the elements along an axis are not contiguous, or not all inside the array."""
    wrong = index[axis] + vector > layout.extents[axis]
    for step in range(1, vector):
        beside = (*index[:axis], index[axis] + step, *index[axis + 1 :])
        wrong = wrong | (layout(*beside) != offsets + step)
    return np.asarray(wrong, np.bool_)


def _name(element: Element, index: Indices, lanes: AccessingThreads, at: tuple[int, int]) -> str:
    """`tile[3][4]`: the element that the thread at `at` accesses."""
    own = (int(np.broadcast_to(each, lanes.shape)[at]) for each in index)
    return element.array.name + "".join(f"[{each}]" for each in own)
