"""What copies to shared memory, and accesses without an active lane, take of the data pipe."""

from __future__ import annotations

import json
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

from memsim.counts import SiteCounts
from memsim.targets.target import catalogue_job
from memsim.time.latencies import Latencies
from memsim.time.predict_time import PreparedTime
from memsim.time.timed_instructions import COMMIT, PARTS, timed_instructions

PATH = Path(__file__).resolve().parents[2] / "docs" / "validation" / "copies.json"
PROFILED = json.loads(PATH.read_text("utf-8"))["profiled"]
DATA_PIPE = "l1tex__data_pipe_lsu_wavefronts.sum"
COUNTED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
#: Ends of groups by each warp of a launch of lab/time/copies.cu.
GROUPS = 16
#: Of lanes that write 132 bytes apart the instruction counts 7, the pipe 4; warps whose copies begin within a
#: line do not all take as many.
OTHERS = ("words_scattered", "words_shifted")


def test_the_end_of_a_group_takes_as_many_wavefronts_as_ncu_counts_beside_the_copies() -> None:
    looked_at = [one for one in PROFILED if one["grid"] == 1 and one["form"] not in OTHERS]
    assert len(looked_at) == 23 * 3
    for one in looked_at:
        copies = (
            one["counters"][COUNTED] if one["bytes"] == 4 else 0
        )  # past L1 they are no copies of this pipe
        before_and_after = 6 + one["warps"]
        groups = one["counters"][DATA_PIPE] - copies - before_and_after
        assert groups == GROUPS * one["warps"] * Latencies().commit


def test_a_group_that_ends_goes_through_the_memory_pipe() -> None:
    launch = PreparedTime(catalogue_job("sgemm_128x256x8", {"size": "128,256,64"}))
    made, _ = timed_instructions(launch.ops, launch.codes, {}, Latencies())
    ends = [one for one, op in zip(made, launch.ops) if op.form.opcode == COMMIT]
    assert ends
    assert {(one.pipe, one.wavefronts, one.closes) for one in ends} == {("memory", 4 * PARTS, True)}


def test_a_load_of_shared_memory_without_an_active_lane_takes_a_wavefront() -> None:
    launch = PreparedTime(catalogue_job("kernel_v4", {"size": "128,128,64"}))
    number = next(op.index for op in launch.ops if op.form.opcode == "LDS")
    row = next(one for rows in launch.analysis.instructions for one in rows if one.address == number * 16)

    def wavefronts(counts: SiteCounts) -> int:
        costs = {row.address: [counts]}
        return timed_instructions(launch.ops, launch.codes, costs, Latencies())[0][number].wavefronts

    made, taken = row.counts.instructions, row.counts.wavefronts
    assert taken is not None and row.counts.requests == made
    assert wavefronts(row.counts) == PARTS * taken // made
    idle = replace(row.counts, instructions=3 * made)
    assert wavefronts(idle) == ceil(PARTS * (taken + 2 * made) / (3 * made))
    assert wavefronts(replace(idle, requests=None, wavefronts=None)) == 0


COPIED: list[dict[str, Any]] = json.loads((PATH.parent / "copied.json").read_text("utf-8"))["copied"]
#: Copies that each warp of lab/time/copied.cu makes, for each that it makes at once.
ROUNDS = 256


def test_a_copy_takes_as_many_cycles_as_wavefronts_wherever_its_conflicts_are() -> None:
    """Sixteen warps that keep the data stage busy, on what they read, on what they write, and on both."""
    looked_at = [
        one
        for one in COPIED
        if one["warps"] == one["each"] == 16 and one["grid"] == 1 and one["counters"][COUNTED] >= 8 * 65_536
    ]
    assert {(one["row"], one["pitch"]) for one in looked_at} == {
        (32, 32), (32, 64), (32, 128), (8, 32), (4, 4), (2, 4), (1, 4),
    }  # fmt: skip
    for one in looked_at:
        copies = ROUNDS * one["warps"] * one["each"]
        wavefronts = one["counters"][COUNTED] / copies
        taken = one["counters"]["sm__cycles_active.max"] / copies
        assert wavefronts == max(32 // one["row"], one["pitch"] // 4)
        assert wavefronts < taken < 1.12 * wavefronts + 4


def test_loads_wait_for_copies_whose_data_come() -> None:
    """In the mean the longer, the more wavefronts these take; without any a load takes 42 cycles."""
    warps = {
        one["pitch"]: one["mean"]
        for one in COPIED
        if one["warps"] == one["each"] == 16 and one["grid"] == 1 and one["row"] == 32
    }
    assert [*warps.values()] == sorted(warps.values()) and len(warps) == 6
    assert warps[4] > 1.9 * 42 and warps[128] > 11 * 42
