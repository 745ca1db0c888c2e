"""Rules of one line each, against the same written lane by lane."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from memsim.arch import ARCHS, SM_90, Arch
from memsim.arch.texel_places import FIRST, NEXT, NONE, NOTHING, pack_texels
from memsim.model.alike import active_lanes
from memsim.model.checked_requests import distinct, equal, first, lane_words, together
from memsim.model.choice import fewest_sectors, global_cost, group_wavefronts, why_no_cost
from memsim.model.coalescing import cost_of_lanes, global_access, local_access, words_of
from memsim.model.counters import COUNTERS, may_count_in
from memsim.model.cp_async import limits_of_copies
from memsim.model.occupancy import Needs, next_cliffs, occupancy
from memsim.model.operations import operation
from memsim.model.pipes import EXECUTED, pipe_of, pipe_use, tensor_cycles
from memsim.model.shared import costliest_round, rounds_of_one_warp
from memsim.model.texture_fetches import texture_access, texture_limits, touched_sectors

RANDOM = np.random.default_rng(9)
LANES = np.arange(32)


def requests(count: int, width: int, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Aligned addresses of some lanes, at least one of each request."""
    active = RANDOM.random((count, 32)) < RANDOM.random((count, 1))
    active[~active.any(axis=1), 5] = True
    return RANDOM.integers(0, reach, (count, 32)) * width + (1 << 33), active


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("reach", [3, 40, 5000])
def test_sectors_and_lines_are_those_of_a_set(width: int, reach: int) -> None:
    addresses, active = requests(40, width, reach)
    made = global_access(addresses, width, "load", active)
    by_lane = cost_of_lanes(addresses[active], np.count_nonzero(active, axis=1), width, SM_90)
    for number, (row, on) in enumerate(zip(addresses, active)):
        held = set(row[on].tolist())
        wanted = (
            len({at // 32 for at in held}),
            len({at // 128 for at in held}),
            -(-len(held) * width // 32),
        )
        for cost in (made, by_lane):
            assert (cost.sectors[number], cost.lines[number], cost.ideal_sectors[number]) == wanted


@pytest.mark.parametrize("width", [1, 4, 8, 16])
def test_local_memory_is_interleaved(width: int) -> None:
    addresses, active = requests(20, width, 6)
    made, words = local_access(addresses, width, "load", active), max(1, width // 4)
    assert words_of(width, SM_90) == words
    for number, (row, on) in enumerate(zip(addresses, active)):
        sectors = {
            (at // 4 + word, lane // 8) for lane, at in enumerate(row) if on[lane] for word in range(words)
        }
        assert made.sectors[number] == len(sectors)
        assert made.requests[number] == words
        assert made.ideal_sectors[number] == words * len({lane // 8 for lane in LANES[on].tolist()})


def test_lanes_compared() -> None:
    keys, active = np.array([[3, 1, 3, 1, 2]]), np.array([[False, True, True, True, True]])
    assert first(equal(keys), active).tolist() == [[False, True, True, False, True]]
    assert distinct((keys,), active).tolist() == [3] and distinct((keys,), None).tolist() == [3]
    assert distinct((keys, np.array([[0, 0, 1, 1, 0]])), None).tolist() == [5]
    assert together(active)[0, 1].tolist() == active[0].tolist() and not together(active)[0, 0].any()


def test_lanes_are_counted_and_made_words() -> None:
    held = np.zeros((2, 32), bool)
    held[1, [0, 4, 31]] = True
    assert active_lanes(held).tolist() == [0, 3]
    assert lane_words(held).tolist() == [0, 1 | 1 << 4 | 1 << 31]


def test_operands_of_a_group_are_read_line_by_line() -> None:
    assert [group_wavefronts(width) for width in (4, 8, 16)] == [1, 2, 4]


def test_the_address_0_of_global_memory_is_read_like_any_other() -> None:
    """A lane whose partner is -1 reads nothing; one whose partner is 0 does."""
    on = np.ones((1, 32), np.bool_)
    to = LANES[None, :] * 128
    for access in ("cp_async", "cp_async_cg"):
        width = 4 if access == "cp_async" else 16
        copy = operation("shared", access)
        near = [
            limits_of_copies(copy, width, to, on, partner + LANES[None, :] * 128, SM_90)
            for partner in (0, 1 << 20)
        ]
        assert [str(found) for found in near[:1]] == [str(found) for found in near[1:]]
    zeros = limits_of_copies(operation("shared", "cp_async_cg"), 16, to, on, -on.astype(np.int64), SM_90)
    assert zeros[1] is None


def test_why_there_is_no_cost() -> None:
    on = np.ones((1, 32), np.bool_)
    partner = LANES[None, :] * 16
    assert why_no_cost(4, "load", "shared", on, -1, SM_90) is None
    assert "of 32 bytes per lane has no rule" in str(why_no_cost(32, "load", "shared", on, -1, SM_90))
    assert why_no_cost(16, "cp_async_cg", "global", on, partner, SM_90) is None
    assert "write to the same address" in str(
        why_no_cost(16, "cp_async_cg", "global", on, partner * 0, SM_90)
    )


def test_fewest_sectors() -> None:
    for access in ("load", "reduction"):
        asked = operation("global", access)
        lanes = np.array([1, 32])
        wanted = [min(asked.least, lane) for lane in (1, 32)] if asked.remote else asked.least
        assert np.array_equal(fewest_sectors(asked, lanes), wanted)


@pytest.mark.parametrize(("name", "most"), [("cluster_bulk_store", 2), ("bulk_multicast", 32)])
def test_some_operations_have_two_sectors_at_least(name: str, most: int) -> None:
    """Of one that is counted by lanes, no more than it has lanes; none without lanes."""
    addresses, active = requests(60, 16, 40)
    active[0] = False
    active[1] = LANES == 3
    addresses[2], active[2] = 1 << 33, True
    found = global_cost(addresses, 16, name, active, addresses, SM_90)
    for row in range(60):
        sectors = {int(at) // 32 for at in addresses[row][active[row]]}
        least = min(2, np.count_nonzero(active[row]) if most == 2 else 2)
        assert found.sectors[row] == (max(len(sectors), least) if sectors else 0)
        assert found.lines[row] == len({sector // 4 for sector in sectors})


def test_what_may_count_where() -> None:
    """What is not counted makes the totals unknown of those counters alone that might have it."""
    spaces = {counter.space for counter in COUNTERS}
    for what, wanted in {
        **{"texture request": {"texture"}, "local memory request": {"local"}, "something else": spaces},
        **{"bulk copy request": set(), "constant memory request": set()},
        **{call: {"global", "local"} for call in ("printf call", "malloc call", "free call")},
    }.items():
        for counter in COUNTERS:
            atomic = what.endswith("call") and "_op_atom" in counter.metric
            assert may_count_in(what, counter) == (counter.space in wanted or atomic), (what, counter.metric)


@pytest.mark.parametrize("chip", ARCHS.values(), ids=str)
def test_blocks_that_fit(chip: Arch) -> None:
    """Shared memory is taken with the system's part, in whole units; each cliff is the first that helps."""
    for shared in (0, 1, chip.shared_granule_bytes, 10_000, chip.shared_block_bytes):
        needs = Needs(64, 32, shared)
        units = math.ceil((shared + chip.shared_reserved_bytes) / chip.shared_granule_bytes)
        taken = units * chip.shared_granule_bytes
        found = occupancy(needs, chip)
        assert found.limits["shared memory"] == (chip.shared_multiprocessor_bytes // taken if taken else None)
        assert found.warps == 2 and found.share == found.blocks * 2 / chip.resident_warps
        for less, blocks in next_cliffs(needs, chip):
            assert occupancy(less, chip).blocks == blocks > found.blocks
    above = occupancy(Needs(64, 32, chip.shared_block_bytes + 1), chip)
    assert above.blocks == 0 and above.limited_by == ("shared memory",)


def test_cycles_of_pipes() -> None:
    one = pipe_use({"FADD": 10, "IMAD": 3, "IMAD.WIDE": 1, "HFMA2": 2, "MUFU.RCP": 4, "IADD3": 5, "LDG.E": 0})
    # Heavy: 3 * 2 + 4 + 2 * 2; light: 10 * 2 + 2 * 2.
    assert one.cycles == {"issue": 25, "alu": 10, "fma": 19, "fp64": 0, "xu": 32, "tensor": 0, "uniform": 0}
    assert one.counters[EXECUTED] == 25
    assert one.counters["sm__inst_executed_pipe_fma.sum"] == 16
    assert one.counters["sm__inst_executed_pipe_fma_type_fp16.sum"] == 2
    assert pipe_use({"IMAD": 9, "FADD": 2}).cycles["fma"] == 18  # heavy work is not divided
    parted = pipe_use({"BSYNC": 2, "BRA": 3, "FADD": 4})
    assert parted.counters[EXECUTED] is None and parted.cycles["issue"] == 4
    assert pipe_use({"BRA": 3, "FADD": 4}).cycles["issue"] == 7
    other = pipe_use({"NOSUCH": 1, "FADD": 1, "HMMA.9999": 1})
    assert (
        other.unknown == ("HMMA.9999", "NOSUCH") and other.counters["sm__inst_executed_pipe_fma.sum"] is None
    )
    clocked = pipe_use(
        {"FADD": 4, "MUFU.RCP": 2, "IADD3": 3}, [("MUFU.EX2", 16), ("MUFU.RCP", 12), ("FADD", 2)]
    )
    assert (clocked.cycles["xu"], clocked.cycles["fma"], clocked.cycles["alu"]) == (24, 8, 6)


def test_cycles_of_matrix_products() -> None:
    asked = {
        "HMMA.16816.F32": 6, "HMMA.1688.F32": 4, "HMMA.1688.F32.TF32": 6, "IMMA.16832.S8": 6,
        "DMMA.8x8x4": 16, "HGMMA.64x128x16.F32": 64, "HGMMA.SP.64x128x16": None, "HGMMA.64x8x16.SP": None,
        "HGMMA.64x8": None, "HGMMA.64x8x16x2": None, "HGMMA.64xNx16": None,
        "QGMMA.64x8x32": 4, "HMMA": None, "HGMMA": None, "HFMA2.MMA": 2,
    }  # fmt: skip
    for form, cycles in asked.items():
        opcode, *modifiers = form.split(".")
        assert tensor_cycles(opcode, modifiers) == cycles, form
    pipes = {"HFMA2.MMA": "tensor", "HFMA2": "fma", "FFMA.MMA": "fma", "IADD3.MMA": "alu", "NOSUCH.MMA": None}
    for form, pipe in pipes.items():
        opcode, *modifiers = form.split(".")
        assert pipe_of(opcode, modifiers) == pipe, form


def test_the_costliest_round() -> None:
    on = np.ones((2, 32), np.bool_)
    on[1, 1:] = False
    to = np.stack([LANES * 4, LANES * 128])
    assert costliest_round(to, 4, on) == (2, 1, 0, 32)
    assert costliest_round(to[:, ::-1] * 2, 8, on) == (4, 2, 0, 32)
    assert costliest_round(to[1:], 4, np.ones((1, 32), np.bool_)) == (2, 32, 31, 32)
    assert costliest_round(to, 4, ~on & on) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (LANES, (1, 2, 1, 0, 32)),
        (LANES * 0, (32, 64, 32, 0, 32 * 33 // 2)),
        (LANES // 2, (2, 4, 2, 0, 48)),
        (
            LANES * 32,
            (32, 64, 32 * 33 // 2, 32 * 31 // 2, 32 * 33 // 2),
        ),  # one bank: others are not even tried
    ],
)
def test_a_round_tries_one_lane_of_each_bank(words: np.ndarray, expected: tuple[int, ...]) -> None:
    every = np.ones((1, 32), bool)
    found = rounds_of_one_warp(words[None] * 4, 4, every, True)
    assert tuple(int(column[0]) for column in found) == expected


def test_half_warps_of_8_bytes_are_tried_one_after_the_other() -> None:
    every = np.ones((1, 32), bool)
    one_word = np.zeros((1, 32), np.int64)
    changed, same = (rounds_of_one_warp(one_word, 8, every, changes) for changes in (True, False))
    assert (changed.rounds[0], changed.swaps[0]) == (32, 16 * 4 + 16 * 2)
    assert (same.rounds[0], same.swaps[0]) == (16, 16 * 4)


def texels_of(number: int, width: int, op: str) -> list[tuple[object, object, object]]:
    """(texel, sector, tag) of each texel that a lane's fetch touches."""
    if op == "fetch":
        return [(number, number // 32, number // 128)]
    first = number & 2**18 - 1, number >> 18 & 2**17 - 1, number >> 35 & 2**16 - 1
    second = [number >> 51 + 2 * axis & 3 for axis in range(3)]
    along = [[at] if how == NONE else [at, at + 1 if how == NEXT else 0] for at, how in zip(first, second)]
    found = []
    for x, y, z in itertools.product(*along):
        sector = (x * width // 32, y, z) if op.endswith("_pitched") else (x * width // 16, y // 2, z)
        found.append(((x, y, z), sector, (x * width // 32, y // 4, z)))
    return found


def fetches(op: str, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of 30 fetches near each other, and which lanes are active; some touch nothing."""
    if op == "fetch":
        places = RANDOM.integers(0, 40, (30, 32)) * width
    else:
        firsts = [RANDOM.integers(0, most, (30, 32)) for most in (9, 7, 3)]
        kinds = [NONE, NEXT, FIRST] if op.startswith("filtered") else [NONE]
        places = pack_texels(firsts, [RANDOM.choice(kinds, (30, 32)) for _ in firsts])
    return np.where(RANDOM.random((30, 32)) < 0.9, places, NOTHING), RANDOM.random((30, 32)) < 0.8


@pytest.mark.parametrize(
    ("op", "shares"),
    [
        *((f"cluster_{name}", True) for name in ("load", "store")),
        *((f"cluster_{name}", False) for name in ("atomic", "atomic_cas", "async_store", "async_reduction")),
        *((name, False) for name in ("async_store", "async_reduction")),
    ],
)
def test_lanes_that_reach_one_word_of_another_block_share_it_or_not(op: str, shares: bool) -> None:
    one_word, active = np.full((1, 32), 1 << 24), np.ones((1, 32), np.bool_)
    words = np.arange(32)[None] * 4 + (1 << 24)
    same, apart = (int(global_cost(at, 4, op, active, at, SM_90).sectors[0]) for at in (one_word, words))
    assert operation("shared", op).shares is shares
    assert (same <= apart) if shares else (same > apart)


FETCHES = "fetch", "point", "point_pitched", "filtered", "filtered_pitched", "gather"


@pytest.mark.parametrize(
    ("op", "width"), [(op, width) for op in FETCHES for width in SM_90.widths("texture", op)]
)
def test_lanes_of_a_fetch_that_are_served_together_ask_once(op: str, width: int) -> None:
    places, active = fetches(op, width)
    cost, together = texture_access(places, width, op, active), 8 if op == "fetch" and width < 16 else 4
    for number, (row, on) in enumerate(zip(places.tolist(), (active & (places != NOTHING)).tolist())):
        lanes = [texels_of(at, width, op) if is_on else [] for at, is_on in zip(row, on)]
        groups = [[*itertools.chain(*lanes[i : i + together])] for i in range(0, 32, together)]
        wanted = [sum(map(bool, groups))]
        wanted += [sum(len({texel[key] for texel in group}) for group in groups) for key in (1, 2)]
        wanted.append(sum(-(-len({texel[0] for texel in group}) * width // 32) for group in groups))
        columns = cost.requests, cost.sectors, cost.tags, cost.ideal_sectors
        assert [int(column[number]) for column in columns] == wanted
    sectors = {texel[1] for row, on in zip(places, active) for at in row[on & (row != NOTHING)].tolist()
               for texel in texels_of(at, width, op)}  # fmt: skip
    assert len(touched_sectors(places, width, op, active)) == len(sectors)


@pytest.mark.parametrize("op", ["filtered_3d", "filtered_wide", "filtered_wide_pitched", "filtered_wide_one"])
def test_two_lanes_of_four_are_served_together_in_one_way_or_the_other(op: str) -> None:
    places, active = fetches(op, 16)
    found, passes = texture_limits(places, 16, op, active), operation("texture", op).passes
    for number, (row, on) in enumerate(zip(places.tolist(), (active & (places != NOTHING)).tolist())):
        lanes = [texels_of(at, 16, op) if is_on else [] for at, is_on in zip(row, on)]
        quads = [lanes[i : i + 4] for i in range(0, 32, 4)]
        ways = [[(a + b, c + d), (a + c, b + d)] for a, b, c, d in quads]
        counts = [
            [[sum(len({texel[key] for texel in pair}) for pair in way) for way in quad] for quad in ways]
            for key in (1, 2)
        ]
        wanted = [sum(any(quad) for quad in quads)]
        wanted += [passes * sum(map(which, of_key)) for of_key in counts for which in (min, max)]
        ideal = [
            min(sum(-(-len({texel[0] for texel in pair}) * 16 // 32) for pair in way) for way in quad)
            for quad in ways
        ]
        columns = found.requests, found.fewest_sectors, found.most_sectors, found.fewest_tags, found.most_tags
        assert [int(column[number]) for column in columns] == wanted
        assert found.ideal_sectors[number] == passes * sum(ideal)
