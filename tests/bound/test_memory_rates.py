"""Rates of the L2 cache and DRAM: attained by a stream on each GPU, and exceeded by no launch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.experiments import RATES
from lab.rates import judge_rates as judging
from lab.rates.judge_rates import CYCLES, STREAM, RateLaunch, chip_at, judge_rates
from memsim.arch import SM_90, Arch
from memsim.arch.chip import MemoryRates
from memsim.data import data_folder
from memsim.validate.device import slug

TRACES = data_folder("traces")
GPUS = sorted({path.parents[1].name for path in TRACES.glob("*/rates/*.json")})
_L2 = "lts__t_sectors_srcunit_tex"
_DRAM = "dram__sectors_{}.sum"
OF_MEMORY = ("l2_read", "l2_written", "dram", "l2_read_of_one", "l2_written_of_one")


def recorded(gpu: str) -> tuple[Arch, list[RateLaunch]]:
    """The chip with the GPU's memory, and the launches whose traffic was counted: not the loops."""
    recording = RATES.newest(TRACES, gpu)
    counted = [launch for launch in recording.launches if f"{_L2}.sum" in launch.counters]
    return SM_90.on(recording.device.gpu), counted


LAUNCHES = [
    pytest.param(launch, chip, id=f"{gpu}-{launch.name}")
    for gpu in GPUS
    for chip, launches in [recorded(gpu)]
    for launch in launches
]


def shares(launch: RateLaunch, chip: Arch) -> dict[str, float]:
    """Of each rate, what the chip's counters say that the launch attained."""
    chip, of = chip_at(launch, chip), launch.counters
    rates = chip.memory
    assert rates is not None
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    read, written = (of[f"{_L2}_op_{way}.sum"] / of[CYCLES] for way in ("read", "write"))
    dram = 32 * (of[_DRAM.format("read")] + of[_DRAM.format("write")]) / of[CYCLES]
    found = {
        "l2_read": read / rates.l2_read,
        "l2_written": written / rates.l2_written,
        "dram": dram / chip.dram_bytes_a_cycle,
    }
    if blocks == 1:
        found["l2_read_of_one"] = read / rates.l2_read_of_one
        found["l2_written_of_one"] = written / rates.l2_written_of_one
    return found


@pytest.mark.parametrize(("launch", "chip"), LAUNCHES)
def test_no_launch_moves_data_faster(launch: RateLaunch, chip: Arch) -> None:
    assert max(shares(launch, chip).values()) <= 1


@pytest.mark.parametrize(("launch", "chip"), LAUNCHES)
def test_the_l2_cache_was_asked_for_at_least_these_sectors(launch: RateLaunch, chip: Arch) -> None:
    of = launch.counters
    assert launch.l2_read + launch.l2_written <= of[f"{_L2}.sum"]
    assert launch.l2_read <= of[f"{_L2}_op_read.sum"]
    assert launch.dram_bytes <= 32 * (of[_DRAM.format("read")] + of[_DRAM.format("write")])


@pytest.mark.parametrize("gpu", GPUS)
def test_streams_ask_the_l2_cache_for_what_they_are_made_to(gpu: str) -> None:
    """Except atomics, which are neither loads nor stores to it."""
    for launch in recorded(gpu)[1]:
        if launch.name.startswith(STREAM) and "add" not in launch.name:
            ways = (launch.counters[f"{_L2}_op_{way}.sum"] for way in ("read", "write"))
            assert (launch.l2_read, launch.l2_written) == tuple(ways), launch.name


@pytest.mark.parametrize("gpu", GPUS)
def test_each_rate_is_attained(gpu: str) -> None:
    """Nearly: start and end of a stream take some per cent of it."""
    best = dict.fromkeys(OF_MEMORY, 0.0)
    chip, launches = recorded(gpu)
    for launch in launches:
        for rate, share in shares(launch, chip).items():
            best[rate] = max(best[rate], share)
    assert min(best.values()) > 0.96


def test_each_gpu_with_rates_of_memory_was_measured() -> None:
    """And its product is named as the driver names it."""
    assert [slug(board.product) for board in SM_90.boards] == GPUS[::-1]
    assert SM_90.on("NVIDIA GH200").memory is None


def test_bounds_hold_on_every_board() -> None:
    """Without its name, the fastest of each rate counts."""
    slow = MemoryRates("slow", l2_read=50, l2_written=90, l2_read_of_one=1, l2_written_of_one=2, dram=1e9)
    both = replace(SM_90, boards=(slow, *SM_90.boards)).memory
    own = SM_90.memory
    assert own is not None
    assert both == replace(own, l2_written=90, l2_written_of_one=2)


def test_a_rate_that_is_too_low_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the rate of DRAM: what was recorded is faster than its bound."""
    slow = replace(SM_90, boards=tuple(replace(board, dram=board.dram / 2) for board in SM_90.boards))
    monkeypatch.setattr(judging, "SM_90", slow)
    fails = {rated.launch.name for rated in judge_rates(RATES.newest(TRACES, GPUS[-1])) if not rated.holds}
    assert "stream_dram_read" in fails and "stream_l2_read" not in fails
