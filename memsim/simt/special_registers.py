"""Special registers of machine code: `SR_TID.X` and its family.

In: a name and the running engine. Out: a value; `Poison` where only a chip knows it.
Source: PTX ISA, "Special Registers", and what compilers use them for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.simt.specials import compact, coordinate, coordinates
from memsim.state.memory import SHARED_WINDOW
from memsim.state.registers import Poison, fit

if TYPE_CHECKING:
    from memsim.simt.engine import Engine

_AXES = {"X": 0, "Y": 1, "Z": 2}
_LANE_MASKS = {
    "SR_EQMASK": lambda lane: np.int64(1) << lane,
    "SR_LTMASK": lambda lane: (np.int64(1) << lane) - 1,
    "SR_LEMASK": lambda lane: (np.int64(2) << lane) - 1,
    "SR_GTMASK": lambda lane: np.int64(-2) << lane,
    "SR_GEMASK": lambda lane: np.int64(-1) << lane,
}


def special_register(name: str, engine: Engine) -> Any:
    """What a special register holds in the current chunk of blocks."""
    launch, cluster = engine.launch, engine.code.cluster
    thread = np.arange(engine.threads, dtype=np.int64)[None, :]
    base, _, axis = name.partition(".")
    if axis in _AXES:
        at = _AXES[axis]
        if base == "SR_TID":
            return coordinate(thread, launch.block, at)
        if base == "SR_CTAID":
            return compact(coordinates(engine.blocks[:, None], launch.grid, at))
        block = coordinates(engine.blocks[:, None], launch.grid, at)
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
        x, y, z = (coordinates(thread, launch.block, at) for at in range(3))
        return fit(compact(x | (y << 16) | (z << 26)), 32)
    if name in _LANE_MASKS:
        return fit(compact(_LANE_MASKS[name](thread % 32)), 32)
    if name == "SR_LANEID":
        return compact(thread % 32)
    if name == "SR_CgaCtaId":
        i, j, k = (coordinates(engine.blocks[:, None], launch.grid, at) % cluster[at] for at in range(3))
        return compact(i + cluster[0] * (j + cluster[1] * k))
    if name == "SR_CgaSize":
        return cluster[0] * cluster[1] * cluster[2]
    if name in ("SR_SWINHI", "SR_SWINLO"):
        return SHARED_WINDOW >> 32 if name.endswith("HI") else 0
    return Poison(f"{name} is not known before the kernel runs on a chip", None)
