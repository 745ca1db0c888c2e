"""Special registers of machine code: `SR_TID.X` and others; `Poison` if only a chip knows the value.

Source: PTX ISA, "Special Registers", and what compilers use them for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.simt.active_lanes import Lanes, coordinates
from memsim.state.address_spaces import SHARED_WINDOW, align
from memsim.state.poison import Poison
from memsim.state.registers import Sum, fit, from_array, plus, times

#: Allocation unit of shared memory in bytes (PTX ISA, `%total_smem_size`).
SHARED_UNIT = 128
_AXES = {"X": 0, "Y": 1, "Z": 2}
_LANE_MASKS = {
    "SR_EQMASK": lambda lane: np.int64(1) << lane,
    "SR_LTMASK": lambda lane: (np.int64(1) << lane) - 1,
    "SR_LEMASK": lambda lane: (np.int64(2) << lane) - 1,
    "SR_GTMASK": lambda lane: np.int64(-2) << lane,
    "SR_GEMASK": lambda lane: np.int64(-1) << lane,
}


def special_register(name: str, lanes: Lanes, shared_bytes: int) -> Any:
    """The value of a special register in the running blocks. shared_bytes: shared memory per block."""
    launch, cluster = lanes.launch, lanes.cluster
    base, _, axis = name.partition(".")
    if axis in _AXES:
        at = _AXES[axis]
        if base == "SR_TID":
            return of_threads(lanes, partial(coordinates, shape=launch.block, at=at))
        if base == "SR_CTAID":
            return compact(coordinates(lanes.blocks[:, None], launch.grid, at))
        block = coordinates(lanes.blocks[:, None], launch.grid, at)
        clusters = {
            "SR_CLUSTERID": block // cluster[at],
            "SR_CLUSTER_CTAID": block % cluster[at],
            "SR_CgaCtaid": block % cluster[at],
        }
        if base in clusters:
            return compact(clusters[base])
        sizes = {
            "SR_NTID": launch.block[at],
            "SR_NCTAID": launch.grid[at],
            "SR_NCLUSTERID": launch.grid[at] // cluster[at],
        }
        if base in sizes:
            return sizes[base]
    if name == "SR_TID":
        x, y, z = (of_threads(lanes, partial(coordinates, shape=launch.block, at=at)) for at in range(3))
        return fit(plus(x, plus(times(y, 1 << 16), times(z, 1 << 26))), 32)
    if name in _LANE_MASKS:
        return fit(of_threads(lanes, lambda thread: _LANE_MASKS[name](thread % WARP)), 32)
    if name == "SR_LANEID":
        return of_threads(lanes, lambda thread: thread % WARP)
    if name == "SR_CgaCtaId":
        i, j, k = (coordinates(lanes.blocks[:, None], launch.grid, at) % cluster[at] for at in range(3))
        return compact(i + cluster[0] * (j + cluster[1] * k))
    if name == "SR_CgaSize":
        return cluster[0] * cluster[1] * cluster[2]
    if name == "SR_SMEMSZ":
        return align(shared_bytes, SHARED_UNIT)
    if name in ("SR_SWINHI", "SR_SWINLO"):
        return SHARED_WINDOW >> 32 if name.endswith("HI") else 0
    return Poison(f"{name} is not known before the kernel runs on a chip", None)


def of_threads(lanes: Lanes, value: Callable[[np.ndarray], np.ndarray]) -> int | Sum:
    """A function of the number of a thread in its block; if each warp is a row, worked out for one block."""
    if lanes.threads != WARP:
        return compact(value(lanes.numbers))
    of_block = value(np.arange(lanes.launch.warps * WARP).reshape(-1, WARP))
    found = compact(of_block)
    if type(found) is int or len(of_block) == 1:
        return found
    assert isinstance(found, Sum)
    warps = lanes.first[:, 0] // WARP
    if found.f is not None:
        return from_array(of_block[warps])
    of_warps = 0 if found.u is None else from_array(found.u.array[warps])
    return plus(of_warps, Sum(found.s, v=found.v))


def compact(array: np.ndarray) -> int | Sum:
    """An index array as a value; an int if all elements are equal."""
    if array.min() == array.max():
        return int(array.flat[0])
    row, lane = array[:, :1], array[:1] - array[0, 0]
    if array.shape[0] > 1 < array.shape[1] and (row + lane == array).all():
        return plus(from_array(row), from_array(lane))
    return from_array(np.ascontiguousarray(array))
