"""What L2 and DRAM deliver to a multiprocessor while all of them ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memsim.arch import SM_90
from memsim.time.behind_l1 import BehindL1
from memsim.time.latencies import Latencies
from memsim.trace.footprint import Footprint

H100 = SM_90.on("NVIDIA H100 80GB HBM3")
RATES = H100.memory
MIB = (1 << 20) // 32  # sectors
#: A wave of blocks that reads each of its 8 MiB once, and writes as much.
COPY = BehindL1(H100, 132, 1, Footprint(8 * MIB, 8 * MIB), 8 * MIB, 8 * MIB, 8 * MIB, 132, True)
SET_TO = Latencies()


def test_what_several_ask_for_is_seen_less_often() -> None:
    assert COPY.seen(SET_TO) == (1.0, 1.0)
    shared = replace(COPY, asked=80 * MIB)
    assert shared.once == pytest.approx(0.1)
    at_first, later = shared.seen(SET_TO)
    assert at_first == pytest.approx(1 - 0.9 * (1 - SET_TO.together / 100))
    assert at_first < later < 1
    assert shared.ways("warm", SET_TO)[0].read_cost < COPY.ways("warm", SET_TO)[0].read_cost
    assert shared.seen_at_l2(SET_TO) == pytest.approx(80 * MIB * at_first)


def test_what_is_asked_for_again_may_be_under_way() -> None:
    """Of what is new: all that the first wave asks for, and nothing of the next one."""
    assert COPY.under_way(SET_TO) == 0
    shared = replace(COPY, asked=80 * MIB)
    assert shared.under_way(SET_TO) == pytest.approx(0.9 * 80 * MIB * SET_TO.under_way / 100)
    assert replace(shared, blocks=264).under_way(SET_TO) < 0.5 * shared.under_way(SET_TO)


def test_nothing_is_known_of_a_launch_whose_reads_are_not() -> None:
    assert replace(COPY, of_wave=0, of_all=0, asked=0.0).once == 1


@pytest.mark.parametrize("megabytes, share", [(16, 0.0), (32, 0.0), (48, 1.0), (64, 1.0)])
def test_a_warm_cache_has_what_fits(megabytes: int, share: float) -> None:
    launch = replace(COPY, footprint=Footprint(megabytes * MIB, 0), of_wave=0)
    assert launch.not_there("warm") == share
    assert launch.not_there("cold") == 1.0


def test_what_both_halves_read_is_there_twice() -> None:
    """Half of what one multiprocessor reads, and nearly all of what many do."""
    launch = replace(COPY, footprint=Footprint(28 * MIB, 0), of_wave=28 * MIB, asked=28.0 * MIB)
    assert launch.not_there("warm") == 0
    assert launch.not_there("cold") == 1
    assert 0.2 < replace(launch, asked=28.0 * 16 * MIB).not_there("warm") < 0.5
    more = replace(launch, footprint=Footprint(36 * MIB, 0), of_wave=36 * MIB)
    assert more.not_there("warm") < 0.3 and replace(more, asked=36.0 * 16 * MIB).not_there("warm") == 1


@pytest.mark.parametrize(("blocks", "times"), [(144, 12), (288, 18)])
def test_a_product_of_1536_cubed_finds_its_matrices_in_a_warm_cache(blocks: int, times: int) -> None:
    """`l2_states_large.json`: 0 to 2 % of what a cold one has to fetch, where all blocks fit."""
    read, written = 18 * MIB, 9 * MIB
    launch = replace(
        COPY,
        blocks=blocks,
        footprint=Footprint(read, written),
        of_wave=read,
        of_all=read,
        asked=float(times * read),
    )
    assert launch.not_there("warm") < 0.05


def test_a_copy_from_dram_is_held_back_by_what_it_writes_to_l2() -> None:
    assert RATES is not None
    assert COPY.read_cost(1.0, 1.0, 0.0) == pytest.approx(2 * 132 / RATES.l2_written)
    # What leaves L2 goes to DRAM too, which is slower.
    assert COPY.read_cost(1.0, 1.0, 1.0) == pytest.approx(2 * 132 * 32 / H100.dram_bytes_a_cycle)
    assert COPY.read_cost(0.0, 1.0, 1.0) == pytest.approx(132 / RATES.l2_read)


@pytest.mark.parametrize("megabytes, share", [(8, 0.0), (17, 0.0), (35, 0.5), (70, 0.75)])
def test_what_was_written_before_the_rest_filled_l2_has_left_it(megabytes: int, share: float) -> None:
    launch = replace(COPY, footprint=Footprint(megabytes * MIB, megabytes * MIB))
    assert launch.leaves("cold") == pytest.approx(share)
    assert launch.leaves("warm") == 1


def test_the_farthest_multiprocessor_ends_a_launch_of_one_wave() -> None:
    def mean(blocks: int) -> tuple[float, float]:
        way = replace(COPY, blocks=blocks).ways("cold", SET_TO)[0]
        return sum(way.near) / len(way.near), sum(way.far) / len(way.far)

    l2, dram = mean(132)
    assert mean(1) == pytest.approx((SET_TO.l2, SET_TO.dram), abs=1)
    assert (l2, dram) == pytest.approx((SET_TO.l2 + SET_TO.l2_far, SET_TO.dram + SET_TO.dram_far), abs=1)
    assert mean(1) < mean(2) < mean(132) and mean(264) == mean(1)


def test_later_waves_wait_for_dram_by_what_is_new() -> None:
    launch = replace(COPY, blocks=264, of_all=8 * MIB, asked=16.0 * MIB)
    first, later = launch.ways("cold", SET_TO)
    assert later.read_cost < first.read_cost
    assert launch.ways("warm", SET_TO)[0].far == launch.ways("warm", SET_TO)[0].near


def test_multiprocessors_share_l2_and_dram_as_far_as_they_ask() -> None:
    """All of them, two, one; and no more than there are."""
    costs = [
        (one.read_cost(1.0, 1.0, 1.0), one.write_cost(), one.fill_cost(1.0, 1.0))
        for one in (replace(COPY, times_busiest=times) for times in (500.0, 132.0, 2.0, 1.0, 0.5))
    ]
    assert costs[0] == costs[1] > costs[2] and costs[3] == costs[4]
    assert costs[1][2] == pytest.approx(66 * costs[2][2])
