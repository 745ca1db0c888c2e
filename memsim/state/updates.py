"""What atomics make of elements that several lanes may share: as one lane after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: Lanes at one place from which on they are taken together.
CROWD = 16
#: A new element of the old one and up to two operands.
Change = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]

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
    seen = np.zeros(places.size, view.dtype)
    if operation == "add" and view.dtype.kind in "iu" and change is None:
        # Integer sums wrap, so the sum of those before a lane is the same as adding one after the other.
        running: np.ndarray = np.cumsum(b[order], dtype=view.dtype)
        before = running - b[order]
        seen[order] = view[ordered] + before - before[start]
        np.add.at(view, places, b)
        return seen
    if change is None and (operation in UFUNC or operation in ("exch", "cas")):
        begin = np.flatnonzero(first)
        size = np.diff(np.r_[begin, ordered.size])
        for at, count in zip(begin[size > CROWD], size[size > CROWD]):
            who = order[at : at + count]
            seen[who], view[ordered[at]] = _by_a_crowd(view[ordered[at]], operation, b[who], c, who)
        alone = np.repeat(size <= CROWD, size)
        order, start = order[alone], (start - np.cumsum(~alone))[alone]
    rank = np.arange(order.size) - start
    turns = np.split(order[np.argsort(rank, kind="stable")], np.cumsum(np.bincount(rank))[:-1])
    for who in turns:  # of those at one place, one each turn
        where = places[who]
        seen[who] = view[where]
        there = change or UPDATE[operation]
        view[where] = there(view[where], b[who], None if c is None else c[who]).astype(view.dtype)
    return seen


def _by_a_crowd(
    old: np.generic, operation: str, b: np.ndarray, c: np.ndarray | None, who: np.ndarray
) -> tuple[np.ndarray, np.generic]:
    """What lanes `who` find at one place, one after the other, and what it holds then."""
    if operation != "cas":
        values = np.concatenate([[old], b]).astype(b.dtype)
        found: np.ndarray = values if operation == "exch" else UFUNC[operation].accumulate(values)
        return found[:-1], found[-1]
    assert c is not None
    swapped, found, begin = c[who], np.empty(b.size, b.dtype), 0
    while begin < b.size:
        match = int((near := b[begin : begin + CROWD] == old).argmax())
        if not near[match]:  # most often no lane after the first one expects what is there
            match = int((all_others := b[begin:] == old).argmax())
            if not all_others[match]:
                break
        found[begin : begin + match + 1], old = old, swapped[begin + match]
        begin += match + 1
    found[begin:] = old
    return found, old
