"""A check that passed says so again without working anything out, and only as long as nothing has changed."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from memsim.cli import check, cli, run
from memsim.reads import Reads, note_content, watch_reads
from tests.cli.conftest import Done, Run
from tests.cli.test_imports import imported

SOURCE = """\
#include "stride.cuh"
extern "C" __global__ void copy(const int *index, float *out) {
    __shared__ float tile[1024];
    tile[threadIdx.x * STRIDE % 1024] = threadIdx.x;
    __syncthreads();
    out[index[threadIdx.x] % 64] = tile[threadIdx.x];
}
"""
PROJECT = """\
budgets = ["{budget}"]
[[targets]]
file = "copy.cu"
grid = 1
block = 64
args = ["@index.npy", "f32[64]"]
options = ["-Ifirst", "-Isecond"]
"""
OK = "OK: 1 kernel, 1 check passed\n"


@pytest.fixture
def memsim(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line as that of this process."""

    def ask(command: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["memsim", *shlex.split(command)])
        code = run(cli, None, "memsim")
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return ask


@pytest.fixture
def worked_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The checks that were worked out, in a project of the test's own."""
    done: list[object] = []
    real = check.check_project
    monkeypatch.setattr(
        check,
        "check_project",
        lambda *given: done.append(given) or real(*given),  # type: ignore[func-returns-value]
    )
    monkeypatch.setenv("MEMSIM_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    for folder in ("first", "second"):
        Path(folder).mkdir()
    Path("second", "stride.cuh").write_text("#define STRIDE 1\n")
    Path("copy.cu").write_text(SOURCE)
    Path("memsim.toml").write_text(PROJECT.format(budget="ways <= 1"))
    np.save("index.npy", np.arange(64, dtype=np.int32))
    return done


@pytest.mark.slow
def test_what_passed_passes_again(memsim: Run, worked_out: list[object]) -> None:
    first = memsim("check")
    assert (first.code, first.out, len(worked_out)) == (0, OK, 1)
    assert memsim("check") == first and len(worked_out) == 1
    assert memsim("check copy") == first and len(worked_out) == 2  # asked otherwise
    assert memsim("check --no-cache") == first and len(worked_out) == 3
    assert memsim("check --format json").code == 0 and len(worked_out) == 4


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("second/stride.cuh", "#define STRIDE 2\n"),
        ("first/stride.cuh", "#define STRIDE 2\n"),  # a header that is found before the one that was read
        ("copy.cu", SOURCE.replace("STRIDE", "4")),
        ("memsim.toml", PROJECT.format(budget="ways < 1")),
    ],
)
def test_what_has_changed_is_worked_out(file: str, text: str, memsim: Run, worked_out: list[object]) -> None:
    assert memsim("check").code == 0
    before = Path(file).read_text() if Path(file).exists() else None
    Path(file).write_text(text)
    assert (memsim("check").code, len(worked_out)) == (1, 2)
    assert (memsim("check").code, len(worked_out)) == (1, 3)  # what failed is told in full each time
    if before is None:
        Path(file).unlink()
    else:
        Path(file).write_text(before)
    assert (memsim("check").out, len(worked_out)) == (OK, 3)


@pytest.mark.slow
def test_files_of_arguments_count(memsim: Run, worked_out: list[object]) -> None:
    assert memsim("check").code == 0
    np.save("index.npy", np.zeros(64, np.int32))
    assert memsim("check").code == 0 and len(worked_out) == 2


@pytest.mark.slow
def test_a_second_configuration_is_an_error_at_once(memsim: Run, worked_out: list[object]) -> None:
    assert memsim("check").code == 0
    Path("pyproject.toml").write_text("[tool.memsim]\n")
    assert memsim("check").code == 2


@pytest.mark.slow
def test_a_baseline_that_comes_or_changes_counts(memsim: Run, worked_out: list[object]) -> None:
    Path("memsim.toml").write_text(PROJECT.format(budget="baseline"))
    assert memsim("check").code == 2
    assert memsim("baseline").code == 0
    assert (memsim("check").out, memsim("check").out, len(worked_out)) == (OK, OK, 2)
    baseline = Path("memsim-baseline.toml")
    baseline.write_text(baseline.read_text().replace("requests = 2", "requests = 1"))
    assert memsim("check").code == 1


@pytest.mark.slow
def test_it_needs_no_numpy(tmp_path: Path) -> None:
    (tmp_path / "memsim.toml").write_text('budgets = ["conflicts == 0"]\n[[targets]]\nkernel = "kernel_v4"\n')
    assert "numpy" in imported(tmp_path, "check")
    found = imported(tmp_path, "check")
    assert "memsim.targets.kept_answers" in found
    assert not found & {"numpy", "rich", "msgspec", "memsim.job", "memsim.guard.judge"}


def test_what_changes_while_it_is_watched_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"new")
    with watch_reads() as reads:
        note_content(file, b"new")
    assert reads.hold and Reads(reads.seen).hold
    with watch_reads() as reads:
        note_content(file, b"old")
        note_content(file, b"new")
    assert not reads.hold
    file.unlink()
    with watch_reads() as reads:
        note_content(file, None)
    assert reads.hold
    os.mkfifo(file)
    assert reads.hold  # a pipe is no file, and nobody waits for it
