"""Fences of the whole system, as recorded: on some machines each of them makes a store that no code shows.

For each warp that executes `MEMBAR.SYS`, an H100 executed nine instructions more, one of which stores to one
sector of global memory; an H200 with the same driver did not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.api.loading import Module
from memsim.validate.code_recording import load_code_recording
from tests.validate.conftest import H100, H200, TRACES

SOURCE = Path(__file__).parent / "data" / "fences.cu"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
PATHS = sorted(TRACES.glob("*/fences/*.json"))
# Instructions and stores that a fence adds.
ADDED = {H100: (9, 1), H200: (0, 0)}


@cache
def module() -> Module:
    return memsim.load(SOURCE)


def predicted(name: str) -> Analysis:
    kernel = module()["nothing" if name == "none" else name]
    return memsim.analyze(kernel, 2, 64, [np.arange(512, dtype=np.int32), np.zeros(128, np.int32)])


@pytest.mark.some(4)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_fence_of_the_system_may_store_and_is_told(path: Path) -> None:
    recording = load_code_recording(path)
    instructions, stores = ADDED[recording.device.slug]
    first = recording.profiles[0]
    executed = zip(first.sass, first.figures["inst_executed"], strict=True)
    fences = sum(times or 0 for text, times in executed if "MEMBAR" in text and ".SYS" in text)
    counted = {name: counted.value for name, counted in first.counters.items()}
    assert counted["smsp__inst_executed.sum"] == counted["inst_executed"] + instructions * fences
    analysis = predicted(path.stem)
    for name in (REQUESTS, SECTORS):
        known = analysis.undecided[name].estimate if fences else analysis.totals[name]
        assert counted[name] - stores * fences == known
    told = [reason for reason in analysis.trace.uncertain if "some machines make a store" in reason]
    assert bool(told) == bool(fences)


def test_fences_of_every_kind_are_recorded() -> None:
    assert len(PATHS) == 2 * 19
    assert {"membar_sys", "membar_gpu", "fence_sc_sys", "st_release_sys", "red_relaxed_sys"} <= {
        path.stem for path in PATHS
    }
