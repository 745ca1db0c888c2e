"""Lanes that are gathered: registers as they hold them, and launches with the same requests as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.running import trace
from memsim.simt import engine, gathered_lanes
from memsim.simt.gathered_lanes import Gathered, Own, is_sparse, plain
from memsim.state.partial import Partial
from memsim.state.parts import Part
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes, from_bools, to_bools
from memsim.state.registers import Sum, from_array, to_array
from tests.benchmarks.irregular import SOURCE, case
from tests.few import few
from tests.trace.test_whole_kernels import assert_same

RANDOM = np.random.default_rng(5)
SHAPE = 40, 32
MASK = RANDOM.random(SHAPE) < 0.2
UNKNOWN = Poison("of a test", None)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.integers(-(2**31), 2**31, shape)


def bools(*shape: int) -> Part:
    return Part(RANDOM.random(shape) < 0.5)


INTS = {
    "one number": 7,
    "of blocks": Sum(3, u=Part(numbers(40, 1))),
    "of threads": Sum(-3, v=Part(numbers(1, 32))),
    "of blocks and threads": Sum(5, u=Part(numbers(40, 1)), v=Part(numbers(1, 32))),
    "of all": Sum(1, f=Part(numbers(40, 32))),
    "own": Own(numbers(40, 32)),
}
BOOLS = {"true": True, "of blocks": bools(40, 1), "of threads": bools(1, 32), "of all": bools(40, 32)}


def array_of(value: Any) -> np.ndarray:
    value = plain(value)
    array = to_bools(value) if isinstance(value, (bool, Part)) else to_array(value)
    return np.broadcast_to(array, SHAPE)


@pytest.mark.parametrize("held", [*INTS.values(), *BOOLS.values()], ids=[*INTS, *BOOLS])
def test_lanes_hold_what_all_threads_hold(held: Any) -> None:
    lanes = Gathered(Part(MASK))
    found = plain(lanes.gathered(held))
    one_each = to_bools(found) if isinstance(found, (bool, Part)) else to_array(found)
    assert np.broadcast_to(one_each, (len(lanes), 1))[:, 0].tolist() == array_of(held)[MASK].tolist()


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("held", INTS.values(), ids=INTS)
def test_lanes_write_a_register(held: Any, same: bool, is_read: bool) -> None:
    lanes = Gathered(Part(MASK))
    before = array_of(held).copy()
    new = np.full((len(lanes), 1), 11) if same else numbers(len(lanes), 1)
    found = array_of(lanes.written(11 if same else from_array(new), held, is_read))
    assert (found[MASK] == new[:, 0]).all()
    assert not is_read or (found[~MASK] == before[~MASK]).all()


@pytest.mark.parametrize("held", BOOLS.values(), ids=BOOLS)
def test_lanes_write_a_predicate(held: Any) -> None:
    lanes = Gathered(Part(MASK))
    new = RANDOM.random((len(lanes), 1)) < 0.5
    found = array_of(lanes.written(from_bools(new), held, True))
    assert (found[MASK] == new[:, 0]).all() and (found[~MASK] == array_of(held)[~MASK]).all()


def test_what_lanes_write_into_nothing_else_holds() -> None:
    held = Sum(0, f=Part(numbers(40, 32)))
    kept = held.array.copy()
    lanes = Gathered(Part(MASK))
    first = lanes.written(from_array(numbers(len(lanes), 1)), held, True)
    second = lanes.written(from_array(numbers(len(lanes), 1)), first, True)
    assert second is first and (held.array == kept).all()


def test_unknown_values_stay_unknown() -> None:
    known = Part(RANDOM.random(SHAPE) < 0.5)
    lanes = Gathered(Part(MASK))
    some = lanes.gathered(Partial(Sum(0, f=Part(numbers(40, 32))), known, UNKNOWN))
    assert isinstance(some, Partial)
    assert some.known.array[:, 0].tolist() == known.array[MASK].tolist()
    of_none = Part(MASK & ~known.array)
    assert Gathered(of_none).gathered(Partial(5, known, UNKNOWN)) is UNKNOWN
    assert lanes.gathered(None) is None
    found = lanes.written(UNKNOWN, 5, True)
    assert isinstance(found, Partial) and found.value == 5
    assert (found.known.array == ~MASK).all()
    written = lanes.written(some, 5, True)
    assert (written.known.array == np.where(MASK, known.array, True)).all()


def test_warps_of_lanes() -> None:
    lanes = ScatteredLanes(np.flatnonzero(MASK))
    used = MASK.any(1)
    assert lanes.warps.tolist() == np.flatnonzero(used).tolist()
    assert lanes.counts.tolist() == MASK.sum(1)[used].tolist()


@pytest.mark.parametrize(
    ("mask", "sparse"),
    [(True, False), (Part(MASK), True), (Part(~MASK), False), (Part(MASK[:, :1]), False)],
)
def test_few_lanes_of_many_warps_are_sparse(mask: Any, sparse: bool) -> None:
    assert is_sparse(mask, SHAPE) == sparse


@pytest.mark.parametrize("name", few(["spmv", "bfs", "join"], ("join",)))
def test_requests_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes gathered whenever they can be, and never."""
    made = case(name, 1500, seed=4)
    launch = memsim.load(SOURCE)[name], made.grid, made.block, made.arguments
    ran = []
    run = gathered_lanes.run_gathered
    monkeypatch.setattr(engine, "run_gathered", lambda *given: (ran.append(1), run(*given)))
    monkeypatch.setattr(
        engine, "is_sparse", lambda mask, shape: isinstance(mask, Part) and mask.array.shape == shape
    )
    gathered = trace(*launch)
    assert len(ran) > 10
    monkeypatch.setattr(engine, "is_sparse", lambda *_: False)
    other = trace(*launch)
    assert_same(gathered, other)
    assert gathered.uncertain == other.uncertain
    assert len(ran) > 10
