"""Kernels of our own that an H200 ran: loops, branches, votes, atomics and copies of every kind.

What was recorded is compared with what is compiled now, if that is the same machine code.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api.loading import Module
from memsim.api.running import trace_job
from memsim.job import Job
from memsim.launch import Launch, dim3
from memsim.validate.code_recording import load_code_recording
from memsim.validate.compare_instructions import DIFFERS, UNCERTAIN, compare_code
from tests.few import few
from tests.validate.conftest import H100, TRACES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KERNELS = Path(__file__).parents[1] / "sass" / "kernels"
PATHS = sorted(TRACES.glob("*/own/*.json"))
# Of a fence of the whole system the driver makes a routine on this machine (test_fences.py).
FENCES = "mem_atomic_scopes"
ITS_STORES = {f"l1tex__t_{what}_pipe_lsu_mem_global_op_st.sum" for what in ("requests", "sectors")}
KEPT = ("div_nested_if", "mem_ldmatrix", "scan_blelloch")


@cache
def launches() -> dict[str, dict[str, Any]]:
    entries = tomllib.loads((KERNELS / "launches.toml").read_text("utf-8"))["kernel"]
    return {entry["name"]: entry for entry in entries}


@cache
def module(file: str) -> Module:
    return memsim.load(KERNELS / file)


def prepared(name: str) -> Job:
    """The launch of a kernel of our own."""
    entry = launches()[name]
    launch = Launch(dim3(entry["grid"], "grid"), dim3(entry["block"], "block"), entry["shared_bytes"])
    return Job(module(entry["file"])[name], launch, entry["args"])


@pytest.mark.some(1)
@pytest.mark.parametrize("path", few(PATHS, KEPT, name=lambda path: path.stem))
def test_every_instruction_and_every_counter_is_equal(path: Path) -> None:
    recording = load_code_recording(path)
    job = prepared(recording.launch.kernel)
    kernel = job.loaded
    if kernel.origin.digest != recording.code.digest:
        pytest.skip(
            f"recorded was code of {recording.code.compiler}, and here {kernel.origin.compiler} makes other"
        )
    assert (job.launch.grid, job.launch.block) == (recording.launch.grid, recording.launch.block)
    comparison = compare_code(recording.profiles, analyze_trace(trace_job(job)))
    is_routine = (path.stem, recording.device.slug) == (FENCES, H100)
    assert set(comparison.differences) == (ITS_STORES if is_routine else set())
    assert comparison.verdict != DIFFERS and (comparison.verdict == UNCERTAIN) == is_routine


def test_kernels_of_all_kinds_are_recorded() -> None:
    files = {launches()[path.stem]["file"] for path in PATHS}
    assert len(PATHS) >= 24
    assert files >= {"divergence.cu", "memory.cu", "merge.cu", "integer.cu", "float.cu", "sort.cu", "scan.cu"}


@pytest.mark.parametrize("name, is_told", [("div_goto", True), ("div_nested_if", False)])
def test_lanes_that_meet_where_nothing_joins_them_are_told(name: str, is_told: bool) -> None:
    """Two runs of div_goto on a GPU differ in how many lanes went on together."""
    uncertain = trace_job(prepared(name)).uncertain
    assert any("the code has no barrier there" in told for told in uncertain) == is_told
