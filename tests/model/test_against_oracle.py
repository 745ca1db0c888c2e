"""The vectorised models equal the scalar oracle on random and on structured requests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.arch import SM_90
from memsim.errors import MemsimError
from memsim.model import global_access, shared_access
from memsim.model.checked_requests import CHUNK
from memsim.model.coalescing import constant_access, local_access
from memsim.model.operations import operation
from tests.model import oracle

LANES = np.arange(32)
# The operands of wgmma are read for a group of warps: no lane asks for them. tests/model/test_remote.py has
# an oracle of its own for other blocks' shared memory.
SHARED_KINDS = [
    (e.op, w)
    for e in SM_90.rules
    if e.space == "shared" and operation("shared", e.op).is_of_lanes
    for w in e.widths
]
GLOBAL_KINDS = [(e.op, w) for e in SM_90.rules if e.space == "global" for w in e.widths]


@st.composite
def requests(draw: st.DrawFn, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Addresses and active lanes of one request: random, strided, few distinct, paired, almost paired."""
    reach = draw(st.sampled_from([2, 4, 16, 64, 2048]))
    kind = draw(st.sampled_from(["random", "stride", "swizzle"]))
    if kind == "random":
        units = np.array(draw(st.lists(st.integers(0, reach - 1), min_size=32, max_size=32)))
    elif kind == "stride":
        units = LANES * draw(st.integers(0, 40))
    else:
        units = (LANES * draw(st.integers(1, 33))) ^ draw(st.integers(0, 31))

    # The pair rule: whole warp, a different distance in each half, and with one lane that breaks it.
    for half in (slice(0, 16), slice(16, 32)):
        lanes = LANES[half]
        units[half] = units[lanes & ~draw(st.sampled_from([0, 0, 1, 2, 3, 16]))]
    for _ in range(draw(st.integers(0, 2))):
        units[draw(st.integers(0, 31))] = draw(st.integers(0, reach - 1))

    active = draw(
        st.one_of(
            st.just([True] * 32),
            st.lists(st.booleans(), min_size=32, max_size=32),
            st.integers(0, 32).map(lambda n: [lane < n for lane in range(32)]),
            st.sampled_from([1, 2, 4, 8, 16]).map(lambda bit: [not lane & bit for lane in range(32)]),
        )
    )
    base = draw(st.sampled_from([0, 128, 2**34 - 256, 2**47, -(2**20)]))
    addresses = base + units.astype(np.int64) * width
    if width < 4:  # anywhere in a word, but aligned to the width
        addresses += width * draw(st.integers(0, 3))
    return addresses, np.array(active)


@given(st.data())
def test_shared_equals_the_oracle(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(SHARED_KINDS))
    addresses, active = data.draw(requests(width))
    found = oracle.counts_of(shared_access(addresses, width, op, active))
    assert found == oracle.shared(addresses.tolist(), width, op, active.tolist())


@given(st.data())
def test_global_equals_the_oracle(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(GLOBAL_KINDS))
    addresses, active = data.draw(requests(width))
    found = oracle.counts_of(global_access(addresses, width, op, active))
    assert found == oracle.global_(addresses.tolist(), width, active.tolist())


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [8, 16])
def test_the_requests_reach_both_sides_of_the_pair_rule(width: int) -> None:
    """The strategy is no use if it never merges, never refuses to, or never merges with a conflict."""
    seen: set[str] = set()

    @settings(max_examples=300, database=None, derandomize=True)
    @given(requests(width))
    def collect(request: tuple[np.ndarray, np.ndarray]) -> None:
        addresses, active = (column.tolist() for column in request)
        if sum(active) < 8:
            return
        holds = oracle.pairs_hold(addresses, active)
        conflict = oracle.shared(addresses, width, "load", active)["conflicts"] > 0
        seen.add(f"{holds} {conflict}")

    collect()
    assert seen == {"True True", "True False", "False True", "False False"}


@given(st.data())
def test_what_no_rule_can_change(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(SHARED_KINDS))
    addresses, active = data.draw(requests(width))
    cost = shared_access(addresses, width, op, active)
    assert (cost.wavefronts > 0) == active.any()
    assert cost.ideal <= cost.wavefronts
    assert cost.conflicts <= cost.wavefronts - (cost.ways > 0)
    assert cost.ways <= cost.wavefronts
    assert (cost.conflicts == 0) == (cost.ways <= 1)

    elsewhere = addresses + 128 * data.draw(st.integers(0, 2**30))
    for alike in (elsewhere, np.where(active, addresses, 13)):
        assert oracle.counts_of(shared_access(alike, width, op, active)) == oracle.counts_of(cost)


@pytest.mark.parametrize(("op", "width"), SHARED_KINDS)
def test_a_batch_equals_its_requests_one_by_one(op: str, width: int) -> None:
    """More requests than one chunk, so that both sides of a seam are compared."""
    rng = np.random.default_rng(width)
    addresses = rng.integers(0, 64, (CHUNK + 20, 32)) * width
    active = rng.random((CHUNK + 20, 32)) < 0.8
    addresses[CHUNK + 3] += 2**40  # this chunk needs wide keys, the other does not
    cost = shared_access(addresses, width, op, active)
    for row in (*range(5), *range(CHUNK - 5, CHUNK + 20)):
        expected = oracle.shared(addresses[row].tolist(), width, op, active[row].tolist())
        assert oracle.counts_of(cost, row) == expected


@pytest.mark.parametrize("idle", [0, -8, 2**45, 2**62])
@pytest.mark.parametrize("far", [0, 2**32 - 256, 2**36 + 128, 2**45, -(2**40)])
@pytest.mark.parametrize("apart", [128, 2**31, 2**36])
def test_addresses_far_up_count_as_those_below(far: int, idle: int, apart: int) -> None:
    """Near each other or not, with lanes off that are somewhere else."""
    rng = np.random.default_rng(5)
    addresses = rng.integers(0, 64, (40, 32)) * 4 + rng.integers(0, 2, (40, 32)) * apart + far
    active = rng.random((40, 32)) < 0.8
    cost = global_access(np.where(active, addresses, idle), 4, "load", active)
    for row in range(40):
        assert oracle.counts_of(cost, row) == oracle.global_(addresses[row].tolist(), 4, active[row].tolist())


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_every_integer_type_counts_alike(dtype: type[np.generic]) -> None:
    addresses = (LANES * 36) % 112 // 4 * 4
    assert shared_access(addresses.astype(dtype), 4).wavefronts == shared_access(addresses, 4).wavefronts == 1
    assert global_access(addresses.astype(dtype), 4).sectors == global_access(addresses, 4).sectors == 4


def test_leading_shapes() -> None:
    block = np.arange(2 * 3 * 32).reshape(2, 3, 32) * 4
    for addresses in (block, block.transpose(1, 0, 2), block[:, ::2]):
        cost = shared_access(addresses, 4, active=LANES < 16)
        assert cost.wavefronts.shape == addresses.shape[:-1]
        assert (cost.wavefronts == 1).all()
    assert shared_access(LANES * 4, 4).wavefronts.shape == ()
    assert shared_access(LANES.tolist(), 1).wavefronts == 1
    for empty in (shared_access(np.zeros((0, 32), int), 16), global_access(np.zeros((0, 32), int), 16)):
        first = next(getattr(empty, name) for name in empty.__slots__)
        assert first.shape == (0,)
        assert first.dtype == np.int64


def test_four_wavefronts_are_no_conflict() -> None:
    """32 lanes of 16 bytes are 512 bytes: four passes of 128."""
    cost = shared_access(LANES * 16, 16)
    assert (cost.wavefronts, cost.conflicts, cost.ways, cost.ideal) == (4, 0, 1, 4)


def test_ideal_can_be_less_than_a_conflict_free_load_needs() -> None:
    """16 float4, each read by two lanes: half-warps apart take 4, pairs of neighbours 2."""
    rows_of_16 = shared_access(LANES % 16 * 16, 16)
    neighbours = shared_access(LANES // 2 * 16, 16)
    assert (rows_of_16.wavefronts, rows_of_16.conflicts, rows_of_16.ideal) == (4, 0, 2)
    assert (neighbours.wavefronts, neighbours.conflicts, neighbours.ideal) == (2, 0, 2)


@given(st.data())
def test_local_memory_equals_the_oracle(data: st.DataObject) -> None:
    op, width = data.draw(st.sampled_from(["load", "store"])), data.draw(st.sampled_from([1, 2, 4, 8, 16]))
    addresses, active = data.draw(requests(width))
    found = oracle.counts_of(local_access(addresses, width, op, active))
    assert found == oracle.local(addresses.tolist(), width, active.tolist())
    moved = local_access(addresses + 128, width, op, active)  # requests that a trace takes for one
    assert int(moved.sectors) == found["sectors"]


@given(st.data())
def test_constants_equal_the_oracle(data: st.DataObject) -> None:
    width = data.draw(st.sampled_from([1, 2, 4, 8]))
    addresses, active = data.draw(requests(width))
    assert int(constant_access(addresses, width, "load", active)) == oracle.constant(
        addresses.tolist(), active.tolist()
    )


def test_what_a_spill_and_an_array_of_a_thread_take() -> None:
    spill = local_access(np.full(32, 64), 4, "store")
    assert (int(spill.requests), int(spill.sectors), int(spill.ideal_sectors)) == (1, 4, 4)
    wide = local_access(np.full(32, 64), 16)
    assert (int(wide.requests), int(wide.sectors), int(wide.ideal_sectors)) == (4, 16, 16)
    scattered = local_access(LANES * 4, 4)
    assert (int(scattered.requests), int(scattered.sectors), int(scattered.ideal_sectors)) == (1, 32, 4)
    half = local_access(np.full(32, 0), 4, "load", LANES < 9)
    assert (int(half.sectors), int(half.ideal_sectors)) == (2, 2)
    many = np.repeat(LANES[None] * 4, 5000, axis=0)  # more than are worked on at a time
    assert local_access(many, 4).sectors.tolist() == [32] * 5000
    assert int(local_access(LANES * 4, 4, "load", np.zeros(32, bool)).requests) == 0
    with pytest.raises(MemsimError, match="misaligned"):
        local_access(LANES * 4 + 2, 4)
    assert int(local_access(LANES * 4, 4, "atomic").sectors) == 32
    with pytest.raises(MemsimError, match="not modelled"):
        local_access(LANES * 8, 8, "atomic")
    assert constant_access(np.stack([LANES * 4, LANES * 0]), 4).tolist() == [32, 1]
    with pytest.raises(MemsimError, match="not modelled"):
        constant_access(LANES * 16, 16)
