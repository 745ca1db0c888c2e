"""Kernels written at random, as an H200 counted them: equal, or said not to be certain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import memsim
from memsim.analysis import analyze_trace
from memsim.api.running import job_of, trace_job
from memsim.job import Job
from memsim.validate.code_recording import load_code_recording
from memsim.validate.compare_instructions import DIFFERS, UNCERTAIN, compare_code
from tests.few import few
from tests.random_kernels.generate import GLOBAL_BYTES, RandomKernel, random_kernel
from tests.random_kernels.more import more_random_kernel
from tests.validate.conftest import TRACES

PATHS = sorted(TRACES.glob("*/random/*.json"), key=lambda path: int(path.stem))
#: Those from this seed on are of the second kind.
MORE = 200
#: Those that differ from the chip: warps copy to the same place; lanes wait for each other's atomics.
DIFFERENT = {
    "11": "it overwrites copies that may be in flight",
    "93": "while others of their warp have: the order is not known",
}
#: In one, lanes yield in a loop; in another, the counters of atomics show arbitration.
KEPT = ("3", "11", "32", "50", "200")


def made(seed: int) -> RandomKernel:
    """The kernel of a seed."""
    return more_random_kernel(seed) if seed >= MORE else random_kernel(seed)


def job(folder: Path, seed: int) -> Job:
    """The launch of a random kernel, compiled here."""
    kernel = made(seed)
    path = folder / f"{kernel.name}.cu"
    path.write_text(kernel.text)
    words = GLOBAL_BYTES // 4
    table, x = np.arange(64) * 29 % 64, np.arange(words) * 37 % 64
    args = [table.astype(np.int32), x.astype(np.int32), np.zeros(words, np.int32), kernel.n]
    return job_of(memsim.load(path)[kernel.name], kernel.grid, kernel.block, args, kernel.dynamic)


@pytest.mark.some(1)
@pytest.mark.parametrize("path", few(PATHS, KEPT, name=lambda path: path.stem))
def test_counts_are_the_chip_s_or_not_certain(path: Path, tmp_path: Path) -> None:
    recording, launch = load_code_recording(path), job(tmp_path, int(path.stem))
    origin = launch.loaded.origin
    if origin.digest != recording.code.digest:
        pytest.skip(f"recorded was code of {recording.code.compiler}, and here {origin.compiler} makes other")
    analysis = analyze_trace(trace_job(launch))
    comparison = compare_code(recording.profiles, analysis)
    assert comparison.verdict != DIFFERS
    assert (comparison.verdict == UNCERTAIN) == (path.stem in DIFFERENT)
    if path.stem in DIFFERENT:
        assert any(DIFFERENT[path.stem] in why for why in analysis.trace.uncertain)


def test_they_access_every_space_in_every_kind_of_control_flow() -> None:
    assert len(PATHS) == 96 + 48
    texts = [made(int(path.stem)).text for path in PATHS]
    for piece in (
        "atomicAdd(&",
        "atomicMax((int *)y",
        "cp.async.cg",
        "cp.async.ca",
        "ldmatrix",
        "own",
        "called(",
        "__hfma2",
        "__match_any_sync",
        "__reduce_add_sync",
        "? (int *)",
        "fixed[",
        "bar.sync 3",
        "stmatrix",
        "__syncthreads_count",
        "atomicCAS(&own_word[id]",
    ):
        assert any(piece in text for text in texts), piece
    for piece in (
        "while (",
        "switch (",
        "break;",
        "continue;",
        "else {",
        "return;",
        "__shfl",
        "__ballot_sync",
    ):
        assert any(piece in text for text in texts), piece


def test_a_seed_always_makes_the_same_kernel() -> None:
    assert random_kernel(7) == random_kernel(7) != random_kernel(8)
    assert more_random_kernel(200) == more_random_kernel(200) != more_random_kernel(201)
