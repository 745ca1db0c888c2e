"""Requests to other blocks' shared memory whose lanes do not share, against a scalar oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.experiments import HOPPER
from lab.hopper.lane_rules import GLOBAL, OF_GLOBAL
from memsim import MemsimError
from memsim.model.coalescing import global_access
from memsim.model.remote import global_atomic_access, is_same_anywhere, limits_anywhere, remote_access
from tests.validate.conftest import TRACES

OP = "cluster_async_store"
#: Lines of a block's shared memory that are in one bank of lines each, as lanes in three of them show on an
#: H200: a pair of lanes in a line, the second behind a lane at its place of another line.
SAME_BANK = {0: (5, 9, 12, 19, 22, 27, 30), 7: (2, 11, 14, 17, 20, 25, 28), 30: (0, 5, 9, 12, 19, 22, 27)}
lanes = st.lists(st.one_of(st.none(), st.integers(0, 1600 * 8)), min_size=32, max_size=32)


def bank(place: int) -> tuple[int, int]:
    bit = [place + 1024 >> n & 1 for n in range(28)]
    low = bit[7] ^ bit[9] ^ bit[11] ^ bit[12] ^ bit[14] ^ bit[16] ^ bit[24] ^ bit[25] ^ bit[26] ^ bit[27]
    return low, bit[8] ^ bit[10] ^ bit[11] ^ bit[13] ^ bit[14] ^ bit[15] ^ bit[17] ^ bit[25] ^ bit[27]


def oracle(places: list[int], width: int, line: int = 128) -> tuple[int, int, int]:
    """One line after the other."""
    sectors = lines = 0
    left = list(enumerate(places))
    while left:
        holders: dict[tuple[int, tuple[int, int]], int] = {}
        for lane, place in left:
            holders.setdefault((place % 128 // width, bank(place)), lane)
        served = [
            (lane, place)
            for lane, place in left
            if lane in holders.values() and place // line == left[0][1] // line
        ]
        sectors += len({place // 32 for _, place in served})
        lines += 1
        left = [one for one in left if one not in served]
    return sectors, lines, -(-len(places) * width // 32)


@given(st.lists(lanes, min_size=1, max_size=3), st.sampled_from([4, 8, 16]))
def test_lanes_are_served_as_the_oracles(rows: list[list[int | None]], width: int) -> None:
    addresses = np.array([[0 if lane is None else lane * 16 for lane in row] for row in rows])
    active = np.array([[lane is not None for lane in row] for row in rows])
    cost = remote_access(addresses, width, OP, active)
    found = zip(cost.sectors.tolist(), cost.lines.tolist(), cost.ideal_sectors.tolist())
    assert list(found) == [oracle([lane * 16 for lane in row if lane is not None], width) for row in rows]


@given(lanes)
def test_a_compare_and_swap_serves_half_a_line(row: list[int | None]) -> None:
    addresses, active = (
        np.array([lane or 0 for lane in row]) * 4,
        np.array([lane is not None for lane in row]),
    )
    cost = remote_access(addresses, 4, "cluster_atomic_cas", active)
    places = [lane * 4 for lane in row if lane is not None]
    assert (int(cost.sectors), int(cost.lines), int(cost.ideal_sectors)) == oracle(places, 4, 64)


def test_the_places_of_a_bank_of_lines_go_to_earlier_lanes() -> None:
    for line, others in SAME_BANK.items():
        for other in range(32):
            addresses = np.zeros(32, int)
            addresses[[0, 16, 31]] = 128 * line, 128 * other + 64, 128 * line + 64
            active = np.isin(np.arange(32), [0, 16, 31])
            waits = other in others
            if other != line:
                assert remote_access(addresses, 4, OP, active).lines == 2 + waits, (line, other)


@pytest.mark.parametrize(
    ("kernel", "width", "op", "launches"),
    [
        ("ex_add", 4, "cluster_atomic", 379),
        ("ex_exch64", 8, "cluster_atomic", 20),
        ("ex_cas", 4, "cluster_atomic_cas", 10),
    ],
)
def test_single_requests_are_as_an_h200_counted_them(kernel: str, width: int, op: str, launches: int) -> None:
    """Row d of a launch was executed 16**d times, by lanes whose words have bit 31 set."""
    file = np.load(TRACES / "nvidia-h200" / "remote_requests.npz")
    tables = file[f"{kernel}_tables"].astype(np.int64)
    cost = remote_access(tables & 0x7FFFFFFF, width, op, tables >> 31 > 0)
    expected = np.stack([cost.sectors, cost.lines], axis=-1) * (16 ** np.arange(4))[:, None]
    assert len(tables) == launches
    assert np.array_equal(expected.sum(axis=1), file[f"{kernel}_counters"])


def test_lanes_apart_cost_what_they_do_in_global_memory() -> None:
    addresses = np.arange(32) * 36 // 4 * 4
    alone, shared = remote_access(addresses, 4, OP), global_access(addresses, 4, "store")
    assert (alone.sectors, alone.lines, alone.ideal_sectors) == (
        shared.sectors,
        shared.lines,
        shared.ideal_sectors,
    )
    assert remote_access(np.zeros(32, int), 4, OP).lines == 32
    assert global_access(np.zeros(32, int), 4, "store").lines == 1


@pytest.mark.slow
def test_where_no_place_is_in_two_lines_the_counts_of_global_atomics_do_not_depend_on_the_array() -> None:
    """176 launches on an H200, of which these do not tell where the array is."""
    (launches,) = (
        found.parts["global_atomics"]
        for found in HOPPER.newest_of_each(TRACES, "nvidia-h200")
        if found.name == "lanes"
    )
    moved = np.random.default_rng(0).integers(1, 1 << 20, 8) * 128
    sure_ones = 0
    for launch in launches:
        width, end, passes = GLOBAL[launch.kernel]
        addresses, active = launch.lanes
        counts = {
            (int(cost.sectors), int(cost.lines))
            for start in moved
            for cost in [global_atomic_access(addresses + start, width, passes, active)]
        }
        measured = tuple(launch.counters[OF_GLOBAL.format(what, end)] for what in ("sectors", "set_accesses"))
        if is_same_anywhere(addresses[None], width, active[None]).all():
            assert counts == {measured}
            sure_ones += 1
    assert sure_ones >= 20


@given(lanes)
def test_wherever_an_array_lies_its_lines_and_sectors_are_within_the_limits(
    row: list[int | None],
) -> None:
    addresses = np.array([[0 if lane is None else lane * 4 for lane in row]])
    active = np.array([[lane is not None for lane in row]])
    limits = [(int(few[0]), int(most[0])) for few, most in limits_anywhere(addresses, 4, 1, active)]
    for start in np.random.default_rng(1).integers(0, 1 << 20, 6) * 128:
        cost = remote_access(addresses + start, 4, OP, active)
        for (few, most), count in zip(limits, (int(cost.sectors[0]), int(cost.lines[0]))):
            assert few <= count <= most


def test_lanes_at_one_place_of_many_lines_may_each_be_served_alone() -> None:
    """Lane 0 has the place; each of the four others may have to wait for one before it."""
    addresses, active = np.zeros((1, 32), int), np.zeros((1, 32), np.bool_)
    addresses[0, :5], active[0, :5] = np.arange(5) * 128, True
    (sectors, lines) = limits_anywhere(addresses, 4, 1, active)
    assert [int(count[0]) for count in (*sectors, *lines)] == [5, 5, 5, 5]
    addresses[0, :5] = 0  # the same word
    (sectors, lines) = limits_anywhere(addresses, 4, 1, active)
    assert [int(count[0]) for count in (*sectors, *lines)] == [5, 5, 5, 5]
    addresses[0, :5] = 0, 4, 128, 132, 8
    (sectors, lines) = limits_anywhere(addresses, 4, 1, active)
    assert [int(count[0]) for count in (*sectors, *lines)] == [2, 3, 2, 3]


def test_no_request_costs_nothing() -> None:
    none = np.zeros((0, 32), np.int64)
    for cost in (global_atomic_access(none, 4, 1), remote_access(none, 4, OP)):
        assert cost.sectors.shape == cost.lines.shape == cost.ideal_sectors.shape == (0,)


def test_what_is_not_modelled_is_refused() -> None:
    with pytest.raises(MemsimError, match="of 2 bytes per lane is not modelled"):
        remote_access(np.zeros(32, int), 2, OP)
    with pytest.raises(MemsimError, match="lanes of a warp"):
        remote_access(np.zeros(31, int), 4, OP)
