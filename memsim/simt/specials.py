"""Special registers: `%tid` and its family.

In: a name and the running machine. Out: a value; `Poison` where only a chip knows it.
Source: PTX ISA, "Special Registers".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.state.memory import align
from memsim.state.registers import Poison, Sum, fit, from_array

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

#: Bytes that shared memory is given out by (ISA, `%total_smem_size`).
_SHARED_UNIT = 128
_AXES = {"x": 0, "y": 1, "z": 2}
_LANE_MASKS = {
    "lanemask_eq": lambda lane: np.int64(1) << lane,
    "lanemask_lt": lambda lane: (np.int64(1) << lane) - 1,
    "lanemask_le": lambda lane: (np.int64(2) << lane) - 1,
    "lanemask_gt": lambda lane: np.int64(-2) << lane,
    "lanemask_ge": lambda lane: np.int64(-1) << lane,
}


def special_value(name: str, machine: Machine) -> Any:
    """What a special register holds in the current chunk of blocks.

    Clusters are those that the kernel asks for; without, each block is one.
    """
    launch = machine.launch
    x, y, z = cluster = machine.plan.function.cluster or (1, 1, 1)
    base, _, axis = name.lstrip("%").partition(".")
    thread = np.arange(machine.threads, dtype=np.int64)[None, :]
    if axis == "w":
        return 0
    if axis:
        at = _AXES[axis]
        if base == "tid":
            return coordinate(thread, launch.block, at)
        if base in ("ctaid", "clusterid", "cluster_ctaid"):
            block = coordinates(machine.blocks[:, None], launch.grid, at)
            parts = {"ctaid": block, "clusterid": block // cluster[at], "cluster_ctaid": block % cluster[at]}
            return compact(parts[base])
        clusters = launch.grid[at] // cluster[at]
        sizes = {"ntid": launch.block[at], "nctaid": launch.grid[at], "nclusterid": clusters}
        return {**sizes, "cluster_nctaid": cluster[at]}[base]
    if base in _LANE_MASKS:
        return fit(compact(_LANE_MASKS[base](thread % 32)), 32)
    per_thread = {"laneid": thread % 32, "warpid": thread // 32}
    if base in per_thread:
        return compact(per_thread[base])
    if base == "cluster_ctarank":
        i, j, k = (coordinates(machine.blocks[:, None], launch.grid, at) % cluster[at] for at in range(3))
        return compact(i + x * (j + y * k))
    uniform = {
        "cluster_nctarank": x * y * z,
        "is_explicit_cluster": machine.plan.function.cluster is not None,
        "dynamic_smem_size": launch.shared_bytes,
        "total_smem_size": align(machine.memory.shared_bytes, _SHARED_UNIT),
    }
    if base in uniform:
        return uniform[base]
    return Poison(f"{name} is not known before the kernel runs on a chip", None)


def coordinate(index: np.ndarray, shape: tuple[int, int, int], at: int) -> int | Sum:
    """One coordinate of a linear thread or block number."""
    return compact(coordinates(index, shape, at))


def coordinates(index: np.ndarray, shape: tuple[int, int, int], at: int) -> np.ndarray:
    stride = (1, shape[0], shape[0] * shape[1])[at]
    return index // stride % shape[at]


def compact(array: np.ndarray) -> int | Sum:
    """An index array as a value; one int where all are equal."""
    if array.min() == array.max():
        return int(array.flat[0])
    return from_array(np.ascontiguousarray(array))
