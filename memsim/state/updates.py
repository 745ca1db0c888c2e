"""Read-modify-write of memory: the effect of an atomic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: A new element of the old one and up to two operands.
Change = Callable[[Any, Any, Any], Any]

UFUNC: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _by_ufunc(ufunc: np.ufunc) -> Change:
    return lambda old, b, c: ufunc(old, b)


UPDATE: dict[str, Change] = {
    **{name: _by_ufunc(ufunc) for name, ufunc in UFUNC.items()},
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, c: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - 1),
}


def update_elements(
    view: np.ndarray,
    places: np.ndarray,
    operation: str,
    b: np.ndarray,
    c: np.ndarray | None,
    returns: bool,
    change: Change | None,
) -> np.ndarray | None:
    """Read-modify-write of elements at places [n], one after the other, by operands [n].

    Returns what each one found [n]; None if that is not wanted. change: the function of `operation`, unless
    it is numpy's.
    """
    if not returns and operation in UFUNC and change is None:
        UFUNC[operation].at(view, places, b)
        return None
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if ordered.size else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    rank = np.arange(ordered.size) - start
    seen = np.zeros(places.size, view.dtype)
    if operation == "add" and view.dtype.kind in "iu" and change is None:
        # Integer sums wrap, so the sum of those before a lane is the same as adding one after the other.
        running: np.ndarray = np.cumsum(b[order], dtype=view.dtype)
        before = running - b[order]
        seen[order] = view[ordered] + before - before[start]
        np.add.at(view, places, b)
        return seen
    for turn in range(int(rank.max(initial=-1)) + 1):  # of those at one place, one each turn
        who = order[rank == turn]
        where = places[who]
        seen[who] = view[where]
        there = change or UPDATE[operation]
        view[where] = there(view[where], b[who], None if c is None else c[who]).astype(view.dtype)
    return seen
