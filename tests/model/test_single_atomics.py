"""Single atomics as an H200 counted them, on global memory and in clusters of sixteen (`atomics.npz`).

Row d of a launch was executed 64**d times.
"""

from __future__ import annotations

import numpy as np
import pytest

from memsim.model.remote import (
    global_atomic_access,
    is_same_anywhere,
    limits_anywhere,
    remote_access,
)
from tests.validate.conftest import H200, TRACES

FILE = np.load(TRACES / H200 / "atomics.npz")
TIMES = 64 ** np.arange(3)
KERNELS = [name.removesuffix("_tables") for name in FILE.files if name.endswith("_tables")]
ON_GLOBAL = [kernel for kernel in KERNELS if not kernel.startswith("c_")]
WIDTHS = {"128": 16, "v4": 16, "64": 8, "v2": 8, "": 4}


def rows_of(kernel: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(places, active lanes) [launches, rows, 32], and counters [launches, 3]."""
    table = FILE[f"{kernel}_tables"].astype(np.int64)
    return table & 0x7FFFFFFF, table >> 31 > 0, FILE[f"{kernel}_counters"]


def width_of(kernel: str) -> int:
    return next(width for end, width in WIDTHS.items() if kernel.endswith(end))


@pytest.mark.parametrize("kernel", ON_GLOBAL)
def test_where_no_place_is_in_two_lines_counts_do_not_depend_on_the_array(kernel: str) -> None:
    places, active, counters = rows_of(kernel)
    width, passes = width_of(kernel), 2 if "cas" in kernel else 1
    cost = global_atomic_access(places, width, passes, active)
    expected = np.stack([np.ones_like(cost.lines), cost.sectors, cost.lines], axis=-1)
    equal = ((expected * TIMES[:, None]).sum(axis=1) == counters).all(axis=1)
    sure = is_same_anywhere(places.reshape(-1, 32), width, active.reshape(-1, 32)).reshape(6, 3).all(axis=1)
    assert sure.sum() == 5 and np.array_equal(equal, sure)  # the array starts where no program can know
    sectors, lines = limits_anywhere(
        places[sure].reshape(-1, 32), width, passes, active[sure].reshape(-1, 32)
    )
    assert all(np.array_equal(limit, cost.sectors[sure].reshape(-1)) for limit in sectors)
    assert all(np.array_equal(limit, cost.lines[sure].reshape(-1)) for limit in lines)


@pytest.mark.parametrize("kernel", ON_GLOBAL)
def test_counts_lie_within_their_limits_wherever_the_array_lies(kernel: str) -> None:
    places, active, counters = rows_of(kernel)
    asked = (places.reshape(-1, 32), width_of(kernel), 2 if "cas" in kernel else 1, active.reshape(-1, 32))
    for counted, limits in zip(counters[:, 1:].T, limits_anywhere(*asked), strict=True):
        least, most = ((limit.reshape(6, 3) * TIMES).sum(axis=1) for limit in limits)
        assert ((least <= counted) & (counted <= most)).all()
        assert (least < most).sum() == 1


def test_every_kind_of_atomic_is_there() -> None:
    assert len(ON_GLOBAL) == 21


@pytest.mark.parametrize(
    ("kernel", "width", "op"),
    [("c_add", 4, "cluster_atomic"), ("c_exch64", 8, "cluster_atomic"), ("c_cas", 4, "cluster_atomic_cas")],
)
def test_lanes_in_sixteen_blocks(kernel: str, width: int, op: str) -> None:
    places, active, counters = rows_of(kernel)
    active &= places >> 24 != FILE[f"{kernel}_ranks"][:, None, None]  # those are in the block itself
    cost = remote_access(places, width, op, active)
    expected = np.stack([active.any(axis=-1), cost.sectors, cost.lines], axis=-1)
    assert np.array_equal((expected * TIMES[:, None]).sum(axis=1), counters)
    assert len(counters) == (16 if kernel == "c_add" else 6)
