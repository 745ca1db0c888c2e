"""Read-modify-write of places that several lanes may share: as one lane after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.state.updates import UPDATE, update_elements

PLACES = np.array([3, 1, 3, 3, 0, 1])
B = np.array([2, 9, 5, 2, 7, 1], np.uint32)
C = np.array([10, 11, 12, 13, 14, 15], np.uint32)
SCALAR: dict[str, Any] = {
    "add": lambda old, b, c: old + b,
    "min": lambda old, b, c: min(old, b),
    "max": lambda old, b, c: max(old, b),
    "and": lambda old, b, c: old & b,
    "or": lambda old, b, c: old | b,
    "xor": lambda old, b, c: old ^ b,
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: c if old == b else old,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
}


@pytest.mark.parametrize("start", [[0, 1, 8, 2], [7, 9, 3, 5], [1, 0, 0, 0]])
@pytest.mark.parametrize("returns", [True, False])
@pytest.mark.parametrize("operation", UPDATE)
def test_one_lane_after_the_other(operation: str, returns: bool, start: list[int]) -> None:
    wanted, seen = list(start), []
    for place, b, c in zip(PLACES, B.tolist(), C.tolist()):
        seen.append(wanted[place])
        wanted[place] = SCALAR[operation](wanted[place], b, c)
    view = np.array(start, np.uint32)
    found = update_elements(view, PLACES, operation, B, C, returns, None)
    assert view.tolist() == wanted
    assert found is None or found.tolist() == seen
    assert found is not None or not returns


def test_no_lanes_and_a_function_of_its_own() -> None:
    view = np.array([4, 4], np.float32)
    none = np.zeros(0, np.int64)
    nothing = update_elements(view, none, "add", np.zeros(0, np.float32), None, True, None)
    assert nothing is not None and nothing.size == 0
    places, ones = np.array([0, 0]), np.ones(2, np.float32)
    halved = update_elements(view, places, "add", ones, None, True, lambda old, b, c: old / 2)
    assert halved is not None and halved.tolist() == [4, 2] and view.tolist() == [1, 4]


@pytest.mark.parametrize("kind", [np.uint32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("operation", ["add", "min", "max", "exch", "cas"])
def test_a_crowd_at_one_place_is_as_one_lane_after_the_other(operation: str, kind: type) -> None:
    """Some places have a crowd, others a few lanes; what a swap leaves is what later ones expect, or not."""
    chance = np.random.default_rng(7)
    for number in range(20):
        lanes = int(chance.integers(1, 400))
        places = np.minimum(chance.integers(0, 40, lanes), chance.integers(0, 12))
        values = chance.integers(0, 4 if number % 2 else 1 << 20, (2, lanes)).astype(kind)
        b, c = values / kind(3) if np.dtype(kind).kind == "f" else values
        start = chance.integers(0, 4, 40).astype(kind)
        wanted, seen = start.copy(), np.zeros(lanes, kind)
        for lane, place in enumerate(places):
            seen[lane] = wanted[place]
            wanted[place] = SCALAR[operation](wanted[place], b[lane], c[lane])
        view = start.copy()
        found = update_elements(view, places, operation, b, c, True, None)
        assert found is not None and found.tobytes() == seen.tobytes()
        assert view.tobytes() == wanted.tobytes()
