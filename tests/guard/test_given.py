"""A compiled file whose source has changed without it is refused, or said to be in doubt; its twin passes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import memsim
from memsim.cli import main
from memsim.compile.cuda_source import compile_cubin
from studies.kernel_ptx import compile_cuda
from tests.assembler import needs_assembler
from tests.guard.conftest import Folder

HEADER = "#define PAD 0\n"
SOURCE = """#include "pad.h"
extern "C" __global__ void k(const float *in, float *out) {
    __shared__ float tile[32][32 + PAD];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
"""
Run = Callable[..., tuple[int, str]]
CONFIG = """[[targets]]
file = "k.{suffix}"
grid = 1
block = [32, 32]
args = ["f32[1024]", "f32[1024]"]
"""


def compiled(folder: Path, suffix: str, lines: bool) -> Path:
    """What `nvcc -ptx` or `nvcc -cubin` writes, with `-lineinfo` or without; later than the sources."""
    path = folder / f"k.{suffix}"
    if suffix == "cubin":
        path.write_bytes(compile_cubin(folder / "k.cu").cubin)
    else:
        text = compile_cuda(folder / "k.cu")
        kept = (line for line in text.splitlines() if lines or (".file" not in line and ".loc" not in line))
        path.write_text("\n".join(kept) + "\n")
    written(path, 10)
    return path


def written(path: Path, seconds: int) -> None:
    """The file was written so long after the sources."""
    os.utime(path, (1_700_000_000 + seconds,) * 2)


@pytest.fixture(
    params=[
        pytest.param(("ptx", True), marks=needs_assembler, id="ptx -lineinfo"),
        pytest.param(("ptx", False), marks=needs_assembler, id="ptx"),
        pytest.param(("cubin", True), id="cubin"),
    ]
)
def project(request: pytest.FixtureRequest, folder: Folder) -> tuple[str, bool]:
    tmp_path = folder.path
    suffix, lines = request.param
    for name, text in (("k.cu", SOURCE), ("pad.h", HEADER)):
        (tmp_path / name).write_text(text)
        written(tmp_path / name, 0)
    compiled(tmp_path, suffix, lines)
    (tmp_path / "memsim.toml").write_text(CONFIG.format(suffix=suffix))
    return suffix, lines


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str]:
        code = main([*arguments, "--jobs", "1"])
        out, err = capsys.readouterr()
        return code, err + out

    return run


def edit(name: str, seconds: int) -> None:
    path = Path(name)
    path.write_text(path.read_text().replace("PAD 0", "PAD 1") + "// edited\n")
    written(path, seconds)


@pytest.mark.some(1)
@pytest.mark.parametrize(("edited", "seconds"), [("k.cu", 5), ("pad.h", 20)])
def test_a_source_that_changed_alone_is_refused(
    project: tuple[str, bool], run: Run, edited: str, seconds: int
) -> None:
    """By the digests of the baseline, whatever the times are, as after a clone."""
    assert run("baseline")[0] == 0
    assert run("check")[0] == 0
    edit(edited, seconds)
    code, said = run("check")
    assert code == 2
    assert f"{edited} has changed since the baseline, and k.{project[0]} has not" in said


@pytest.mark.slow
@pytest.mark.parametrize("edited", ["k.cu", "pad.h"])
def test_compiled_anew_it_is_judged(project: tuple[str, bool], run: Run, edited: str) -> None:
    assert run("baseline")[0] == 0
    edit(edited, 5)
    path = compiled(Path(), *project)
    path.write_bytes(path.read_bytes() + b"\n")  # a comment alone would give the same bytes
    written(path, 10)
    code, said = run("check")
    assert code == 0 and ("better than the baseline" in said) == (edited == "pad.h")
    assert "since the baseline, and" not in said
    assert run("baseline")[0] == 0 and run("check")[0] == 0


@pytest.mark.slow
def test_without_a_baseline_there_is_a_doubt(project: tuple[str, bool], run: Run) -> None:
    config = Path("memsim.toml")
    config.write_text(config.read_text() + 'budgets = ["sectors_per_request <= 4"]\n')
    code, said = run("check")
    assert code == 0 and "note:" not in said
    edit("k.cu", 20)
    doubt = f"k.cu is newer than k.{project[0]}, which may be out of date"
    code, said = run("check")
    assert code == 0 and said.startswith(f"note: k: {doubt}")
    assert doubt in analyzed(project[0]).splitlines()[0]
    written(compiled(Path(), *project), 30)
    assert "note:" not in run("check")[1]
    assert "newer" not in analyzed(project[0])


def analyzed(suffix: str) -> str:
    arrays = [memsim.ArrayArg((1024,))] * 2
    return str(memsim.analyze(memsim.load(f"k.{suffix}")["k"], 1, (32, 32), arrays))


@pytest.mark.some(1)
def test_a_baseline_of_a_doubtful_file_proves_nothing(project: tuple[str, bool], run: Run) -> None:
    edit("k.cu", 20)
    assert "note: k: k.cu is newer" in run("baseline")[1]
    code, said = run("check")
    assert code == 0 and "note: k: k.cu is newer" in said
