"""Verbs keep traces, and never show one of something that has changed since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.cli import options
from memsim.job import Job
from memsim.targets import cache
from memsim.trace.trace import Trace
from tests.cli.conftest import Run
from tests.few import few

VERBS = (
    *("analyze", "analyze --json", "analyze --sass", "heatmap", "explain", "bound", "suggest"),
    "report -o page.html",
)
COPY = """\
extern "C" __global__ void copy(const int *index, float *out) {
    __shared__ float tile[1024];
    tile[threadIdx.x * STRIDE % 1024] = threadIdx.x;
    __syncthreads();
    out[index[threadIdx.x]] = tile[threadIdx.x];
}
"""


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were executed, by verbs that keep their traces in a folder of the test's own."""
    made: list[str] = []
    real = cache.trace_job

    def trace_job(job: Job, progress: Any = None, **how: Any) -> Trace:
        made.append(job.loaded.name)
        return real(job, progress, **how)

    monkeypatch.setattr(cache, "trace_job", trace_job)
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr("memsim.cli.launch_options.open_cache", options.open_cache)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.some(1)
@pytest.mark.parametrize("verb", few(VERBS, VERBS[:2]))
def test_a_verb_executes_a_launch_once_and_says_the_same(verb: str, memsim: Run, traced: list[str]) -> None:
    command = f"{verb} kernel_v4_colmajor --size 64,64,8"
    first = memsim(command)
    page = Path("page.html").read_text("utf-8") if "report" in verb else ""
    assert (first.code, len(traced)) == (0, 1)
    assert memsim(command) == first and len(traced) == 1
    assert page == (Path("page.html").read_text("utf-8") if "report" in verb else "")
    assert memsim(command, "--no-cache") == first and len(traced) == 2


@pytest.mark.slow
def test_verbs_share_a_trace_but_for_what_they_tell_apart(memsim: Run, traced: list[str]) -> None:
    launch = "kernel_v4_colmajor --size 64,64,8"
    for verb in ("analyze", "heatmap", "explain", "bound"):
        assert memsim(verb, launch).code == 0
    assert len(traced) == 1
    assert memsim("suggest", launch).code == 0  # it looks at requests that cost the same
    assert len(traced) == 2


@pytest.mark.slow
def test_whatever_changes_is_analyzed_anew(tmp_path: Path, memsim: Run, traced: list[str]) -> None:
    """Source, header, option, launch, argument, file of an argument, rules: each makes another trace."""
    source, header, index = tmp_path / "copy.cu", tmp_path / "stride.cuh", tmp_path / "index.npy"
    header.write_text("#define STRIDE 1\n")
    source.write_text(f'#include "stride.cuh"\n{COPY}')
    np.save(index, np.arange(64, dtype=np.int32))
    command = "analyze copy.cu --grid 2 --block 64 --arg @index.npy --arg 'f32[4096]'"

    def said(more: str = "") -> str:
        return "\n".join(memsim(command, more).fine())

    outputs = [said()]
    assert said() == outputs[0] and len(traced) == 1
    header.write_text("#define STRIDE 2\n")
    outputs.append(said())
    source.write_text(source.read_text().replace("tile[threadIdx.x];", "tile[threadIdx.x ^ 1];"))
    outputs.append(said())
    np.save(index, np.arange(64, dtype=np.int32)[::-1] * 32)
    outputs.append(said())
    outputs.append(said("--blocks 1"))
    command = command.replace("--grid 2", "--grid 3")
    outputs.append(said())
    assert len(set(outputs)) == len(outputs) == len(traced)
    for text in (source, header):  # as they were at first
        text.write_text(text.read_text().replace(" ^ 1", "").replace("STRIDE 2", "STRIDE 1"))
    np.save(index, np.arange(64, dtype=np.int32))
    command = command.replace("--grid 3", "--grid 2")
    assert said() == outputs[0] and len(traced) == len(outputs)


@pytest.mark.slow
def test_what_is_said_of_the_compilation_is_said_again(
    tmp_path: Path, memsim: Run, traced: list[str]
) -> None:
    (tmp_path / "copy.cu").write_text(COPY.replace("STRIDE", "1") + "int main() { return missing(); }\n")
    command = "analyze copy.cu --grid 1 --block 64 --arg 'i32[64]=iota' --arg 'f32[64]'"
    first = memsim(command)
    assert first.code == 0
    assert memsim(command) == first and len(traced) == 1
