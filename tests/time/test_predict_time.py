"""The estimated time of launches of the catalogue."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.errors import MemsimError
from memsim.targets.target import catalogue_job
from memsim.time import block_streams
from memsim.time.block_streams import MOST_REQUESTS
from memsim.time.latencies import Latencies
from memsim.time.multiprocessor import ABLATIONS, REASONS
from memsim.time.predict_time import PreparedTime, predict_time
from memsim.time.replayed_launch import middle_block
from memsim.time.timed_instructions import timed_instructions
from memsim.views.time_text import footer
from tests.cli.conftest import Run
from tests.cli.conftest import memsim as memsim
from tests.simt.cuda import machine_kernel

SMALL = {"kernel_v4": "256,256,256", "transpose_naive": "512,512", "kernel_v1": "256,256,256"}


@cache
def prepared(name: str) -> PreparedTime:
    return PreparedTime(catalogue_job(name, {"size": SMALL[name]}))


@pytest.mark.some(1)
@pytest.mark.parametrize("name", SMALL)
def test_every_instruction_of_the_block_is_issued(name: str) -> None:
    """As the exact counts say, and whatever waits for whatever."""
    launch = prepared(name)
    found = launch.predict()
    blocks = len(launch.recorder.chosen)
    executed = launch.some.executed // blocks  # all blocks execute the same
    assert found.issued == executed.sum() * launch.blocks
    assert [one.executed for one in found.instructions] == (executed * launch.blocks).tolist()
    assert sum(map(len, launch.streams)) == launch.some.executed.sum()


@pytest.mark.some(1)
@pytest.mark.parametrize("name", SMALL)
def test_an_estimate_is_not_below_the_bound_of_issue_and_memory_pipe(name: str) -> None:
    """Of the units that both know, the busiest multiprocessor's work."""
    launch = prepared(name)
    found = launch.predict()
    wavefronts = sum(row.wavefronts or 0 for row in launch.analysis.sites)
    assert found.cycles >= found.issued / launch.chip.partitions
    assert found.cycles >= wavefronts * launch.blocks / len(launch.recorder.chosen)
    assert found.elapsed > found.cycles


@pytest.mark.slow
def test_what_repeats_changes_nothing() -> None:
    quick, slow = (prepared("kernel_v4").predict(skips=skips) for skips in (True, False))
    assert quick == slow
    assert quick.is_whole


def test_the_reasons_are_ncus_and_add_up() -> None:
    found = prepared("transpose_naive").predict()
    assert set(found.stalls) <= set(REASONS)
    assert sum(found.stalls.values()) == sum(one.warp_cycles for one in found.instructions)
    assert found.stalls["selected"] == found.issued
    barrier = max(found.instructions, key=lambda one: one.stalls.get("barrier", 0))
    before = next(one for one in found.instructions if one.address == barrier.address - 16)
    assert before.text.startswith("BAR.SYNC")


@pytest.mark.some(1)
@pytest.mark.parametrize("unit", sorted(set(ABLATIONS) - {"tag stage", "atomics' turns"}))
def test_each_unit_that_is_switched_off_changes_a_launch(unit: str) -> None:
    changed = {
        name: prepared(name).predict(off=(unit,)).cycles - prepared(name).predict().cycles for name in SMALL
    }
    assert any(changed.values())


def test_atomics_of_all_blocks_to_one_word_take_turns() -> None:
    kernel = machine_kernel(
        "__global__ void k(int *x, int n) { atomicAdd(x + threadIdx.x % n, threadIdx.x); }"
    )
    one, many = (job_of(kernel, 132, 256, [np.zeros(256, np.int32), n]) for n in (1, 256))
    turns = 132 * 256 * Latencies().turn // 100
    assert 0 < predict_time(one).cycles - turns < 1500
    assert predict_time(one, off=("atomics' turns",)).cycles < turns / 10
    assert predict_time(many).cycles < turns / 10


def test_a_warm_cache_and_shorter_latencies_are_faster() -> None:
    launch = prepared("transpose_naive")
    cold, warm = launch.predict(), launch.predict("warm")
    assert warm.cycles < cold.cycles
    assert launch.predict(set_to=Latencies(dram=500)).cycles < cold.cycles
    assert cold.seconds == cold.elapsed / cold.clock


def test_a_copy_to_shared_memory_is_one_request() -> None:
    launch = PreparedTime(catalogue_job("tile_64x64x32", {"size": "64,64,64,1"}))
    copies = [op.index for op in launch.ops if op.form.opcode == "LDGSTS" and launch.some.executed[op.index]]
    requests = launch.recorder.global_requests()
    assert copies
    assert [(requests.op == op).sum() for op in copies] == launch.some.executed[copies].tolist()


@pytest.mark.parametrize("size, spare", [("352,1024", True), ("256,1024", False), ("704,768", False)])
def test_few_multiprocessors_may_take_the_last_blocks(size: str, spare: bool) -> None:
    """Of blocks in two places on each of 132: 88 more than fit, fewer than fit, and twice as many."""
    launch = PreparedTime(catalogue_job("transpose_naive", {"size": size}))
    assert launch.resident == 2 and not launch.is_weighed
    assert launch.spare is spare


def test_what_chance_decides_is_told_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = PreparedTime(catalogue_job("kernel_v4", {"size": "2048,2304,8"}))
    found = launch.predict(both_ways=True)
    assert replace(found, cycles_otherwise=None) == launch.predict()
    assert found.blocks == launch.blocks + 1
    assert found.cycles_otherwise is not None and found.cycles_otherwise < found.cycles
    said = "\n".join(footer(found))
    assert f"if it does not, about {found.cycles_otherwise:,} active cycles." in said
    monkeypatch.setattr(PreparedTime, "spare", False)
    without = launch.predict(both_ways=True)
    assert (without.cycles, without.blocks) == (found.cycles_otherwise, launch.blocks)
    assert without.cycles_otherwise is None and "chance" not in "\n".join(footer(without))


def test_a_block_more_that_is_not_estimated_is_told_too() -> None:
    """With more places than two, blocks that end apart leave none; by chance they may."""
    launch = PreparedTime(catalogue_job("guide_v4", {"size": "896,992,64"}))
    found = launch.predict(both_ways=True)
    assert launch.spare and found.blocks == launch.blocks
    assert found.cycles_otherwise is not None and found.cycles_otherwise > found.cycles
    assert "if it does, about" in "\n".join(footer(found))


def test_a_board_has_its_own_memory() -> None:
    launch = prepared("transpose_naive")
    found = {board: launch.on(board).predict() for board in ("h200", "H100 80GB")}
    assert found["h200"] == launch.predict()
    assert found["h200"].chip == "NVIDIA H200" and found["H100 80GB"].chip == "NVIDIA H100 80GB HBM3"
    assert found["H100 80GB"].cycles > found["h200"].cycles
    for wrong in ("A100", "NVIDIA"):
        with pytest.raises(MemsimError, match="not one of the boards that were measured: NVIDIA H200, NVI"):
            launch.on(wrong)


def test_the_block_in_the_middle() -> None:
    assert middle_block((1, 1, 1)) == 0
    assert middle_block((8, 4, 2)) == 3 + 8 * (1 + 4 * 0)
    assert middle_block((9, 5, 3)) == 4 + 9 * (2 + 5 * 1)


def test_what_cannot_be_is_refused() -> None:
    launch = prepared("transpose_naive")
    with pytest.raises(MemsimError, match="no unit 'cache'"):
        launch.predict(off=("cache",))
    with pytest.raises(MemsimError, match="l2 must be cold or warm, not 'hot'"):
        launch.predict("hot")
    with pytest.raises(MemsimError, match="not known on sm_80"):
        predict_time(catalogue_job("transpose_naive", {"arch": "sm_80"}))


def test_the_verb_says_that_it_estimates(memsim: Run) -> None:
    lines = memsim("time transpose_naive --size 256,256 --without greedy").fine()
    text = " ".join(lines)
    assert lines[0].startswith("transpose_naive: about ")
    assert "an estimate: of the catalogue's kernels 5 % off in the mean" in text
    assert "Left out: greedy." in lines
    memsim("time transpose_naive --without cache").refused("cache")
    assert "(NVIDIA H100 80GB HBM3)" in " ".join(memsim("time transpose_naive --board h100").fine())
    memsim("time transpose_naive --size 256,256 --board A100").refused("A100")
    memsim("time run.npz").refused("run.npz")


def test_textures_are_named_whatever_is_known_of_their_requests() -> None:
    fetches, plain = (
        PreparedTime(catalogue_job(name, {"size": "128,128,64"}))
        for name in ("sgemm_128x128x8_texld", "kernel_v4")
    )
    assert timed_instructions(fetches.ops, fetches.codes, {}, Latencies())[1] == ("texture units",)
    assert timed_instructions(plain.ops, plain.codes, {}, Latencies())[1] == ()


def test_accesses_of_which_too_many_requests_are_made_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not prepared("kernel_v1").predict().lacks
    monkeypatch.setattr(block_streams, "MOST_REQUESTS", 100)
    found = PreparedTime(catalogue_job("kernel_v1", {"size": "64,64,64"})).predict()
    assert found.lacks == (f"caches, for accesses that make more than {MOST_REQUESTS:,} requests",)


SWAP = "for (int old = x[0], seen = ~old; old != seen;) { seen = old; old = atomicCAS(x, seen, seen + 1); }"
AGAIN = "compare-and-swaps that are tried again"


def test_what_the_driver_and_other_threads_do_is_told_as_not_modelled() -> None:
    text = "__global__ void k(int *x) {{ {} x[threadIdx.x] = 1; }}"
    found = []
    for call in ("", 'printf("%d", x[0]);', "x[1] = *(int *)malloc(4);", SWAP):
        kernel = machine_kernel(text.format(call))
        found.append(predict_time(job_of(kernel, 1, 32, [np.zeros(32, np.int32)])).lacks)
    assert found == [(), (), ("malloc calls", "accesses with unknown addresses"), (AGAIN,)]
