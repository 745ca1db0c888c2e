"""Read-modify-write of memory: the effect of an atomic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.state.parts import Part
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum
from memsim.state.space_bytes import SpaceBytes

UFUNC: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _by_ufunc(ufunc: np.ufunc) -> Callable[[Any, Any, Any], Any]:
    return lambda old, b, c: ufunc(old, b)


UPDATE: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{name: _by_ufunc(ufunc) for name, ufunc in UFUNC.items()},
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, c: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - 1),
}


def update(
    store: SpaceBytes,
    address: int | Sum,
    dtype: type,
    active: bool | Part,
    operation: str,
    values: list[np.ndarray],
    returns: bool,
    change: Callable[[Any, Any, Any], Any] | None = None,
) -> np.ndarray:
    """Read-modify-write of every active thread, in the order of thread and block numbers.

    Returns the values before each thread's update, shape (B, T). The hardware guarantees no order; this one
    is legal. `change`: the function of `operation`, unless it is numpy's.
    """
    store.check(address, dtype, active)
    view = store.view(dtype).reshape(-1)
    columns = store.view(dtype).shape[1]
    index = store.positions(address, dtype, active)
    if store.order is not None:
        places = store.positions(address, dtype, True)
        store.order.update(places, np.dtype(dtype).itemsize, active, operation)
    rows = np.broadcast_to(np.asarray(store.row_of()), store.shape)
    mask = np.broadcast_to(to_bools(active), store.shape)
    flat = (rows * columns + index)[mask]
    b, c = ([np.broadcast_to(v, store.shape)[mask] for v in values] + [None, None])[:2]
    old: np.ndarray = np.zeros(store.shape, dtype)
    if not returns and operation in UFUNC and change is None:
        UFUNC[operation].at(view, flat, b)
        return old
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if ordered.size else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    rank = np.arange(ordered.size) - start
    seen = np.zeros(flat.size, dtype)
    if operation == "add" and np.dtype(dtype).kind in "iu" and change is None:
        running: np.ndarray = np.cumsum(b[order], dtype=dtype)
        before = running - b[order]
        seen[order] = view[ordered] + before - before[start]
        np.add.at(view, flat, b)
    else:
        for turn in range(int(rank.max(initial=-1)) + 1):
            who = order[rank == turn]
            where = flat[who]
            seen[who] = view[where]
            there = change or UPDATE[operation]
            view[where] = there(view[where], b[who], None if c is None else c[who]).astype(dtype)
    old[mask] = seen
    return old
