"""`memsim init`: a memsim.toml that works, with what sources say of their launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.cli import main
from memsim.targets.project import read_project
from tests.cli.conftest import Run

WHOLE = """\
__global__ void twice(float *data) { data[threadIdx.x] *= 2; }
int main() { float *d; cudaMalloc(&d, 1024 * 4); twice<<<4, 256>>>(d); }
"""
OPEN = "__global__ void scale(float *data, int n) { if (threadIdx.x < n) data[threadIdx.x] = 0; }\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_what_is_written_can_be_guarded(memsim: Run, project: Path) -> None:
    (project / "src" / "twice.cu").write_text(WHOLE)
    done = memsim("init")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "wrote memsim.toml: 1 target"
    written = (project / "memsim.toml").read_text()
    assert '[[targets]]\nfile = "src/twice.cu"\n' in written and "args" not in written
    assert memsim("baseline").code == 0
    assert memsim("check").code == 0


def test_constants_of_headers_are_found_where_they_are_said_to_be(memsim: Run, project: Path) -> None:
    (project / "inc").mkdir()
    (project / "inc" / "sizes.h").write_text("#pragma once\nconstexpr int BLOCKS = 4;\n#define THREADS 256\n")
    launched = WHOLE.replace("<<<4, 256>>>", "<<<BLOCKS, THREADS>>>")
    (project / "src" / "twice.cu").write_text(f'#include "sizes.h"\n{launched}')
    assert memsim("init").out.startswith("wrote memsim.toml: 0 targets; 1 other kernel")
    (project / "memsim.toml").unlink()
    assert memsim("init -I inc").out.startswith("wrote memsim.toml: 1 target\n")
    assert 'options = ["-Iinc"]' in (project / "memsim.toml").read_text()
    (target,) = read_project(project / "memsim.toml").targets
    assert (target.launch.grid, target.launch.block) == ((4, 1, 1), (256, 1, 1))


@pytest.mark.slow
def test_what_lacks_a_value_is_a_comment_that_says_so(memsim: Run, project: Path) -> None:
    (project / "src" / "scale.cu").write_text(OPEN)
    (project / "twice.cu").write_text(WHOLE)
    assert memsim("init").out.splitlines()[0] == (
        "wrote memsim.toml: 1 target; 1 other kernel at its end, with the values to add"
    )
    written = (project / "memsim.toml").read_text()
    assert "\n# src/scale.cu\n#   scale: GRID, BLOCK, data_SIZE, n\n" in written
    assert memsim("baseline").code == 0  # of the other target


def test_a_project_of_comments_alone_says_what_to_do(memsim: Run, project: Path) -> None:
    (project / "scale.cu").write_text(OPEN)
    assert "next: write a target for one of these kernels" in memsim("init").out
    done = memsim("check")
    assert done.code == 2 and "write targets for the kernels" in done.out and "kernel_v4" not in done.out


@pytest.mark.slow
def test_two_kernels_of_one_name_have_names_of_their_own(memsim: Run, project: Path) -> None:
    for name in ("a", "b"):
        (project / "src" / f"{name}.cu").write_text(WHOLE)
    assert memsim("init").code == 0
    assert memsim("baseline").code == 0
    assert (project / "memsim-baseline.toml").read_text().count('array = "data"') == 4


def test_what_is_there_stays(memsim: Run, project: Path) -> None:
    (project / "twice.cu").write_text(WHOLE)
    (project / "memsim.toml").write_text("# mine\n")
    memsim("init").refused("the file already exists")
    assert (project / "memsim.toml").read_text() == "# mine\n"


def test_captured_launches_are_targets(memsim: Run, project: Path) -> None:
    """Other programs have files of that name, too."""
    for folder in ("run/000_a", "run/001_a"):
        memsim(f"analyze transpose_naive --size 32,32 --save-launch {folder}").fine()
    (project / ".vscode").mkdir()
    (project / ".vscode" / "launch.json").write_text('{"version": "0.2.0", "configurations": []}')
    (project / "src" / "launch.json").write_text("{ // of an editor\n")
    assert memsim("init").fine()[0] == "wrote memsim.toml: 2 targets"
    written = (project / "memsim.toml").read_text()
    assert '[[targets]]\nname = "run/001_a"\nfile = "run/001_a/launch.json"\n' in written
    assert memsim("baseline --jobs 1").code == 0
    assert memsim("check --jobs 1").out.splitlines()[0].startswith("OK: 2 kernels")


def test_a_folder_without_kernels(memsim: Run, project: Path) -> None:
    memsim("init", project / "src").refused("contains a kernel")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_MEMSIM_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0 and f"_MEMSIM_COMPLETE={shell}_complete" in capsys.readouterr().out


INSTANCE = """\
template <int N> __global__ void fill(float *data) { data[threadIdx.x] = N; }
int main() { float *d; cudaMalloc(&d, 1024 * 4); fill<2><<<1, 32>>>(d); }
"""


def test_files_and_kernels_of_one_name_are_targets_of_their_own(memsim: Run, project: Path) -> None:
    """In two folders, files of one name; in one folder, two files that launch one instance."""
    for folder in ("a", "b"):
        (project / folder).mkdir()
        (project / folder / "twice.cu").write_text(WHOLE)
    for name in ("one", "two"):
        (project / "a" / f"{name}.cu").write_text(INSTANCE)
    (project / "a" / "alone.cu").write_text(WHOLE)
    assert memsim("init").out.startswith("wrote memsim.toml: 5 targets")
    targets = read_project(project / "memsim.toml").targets
    names = ["alone", "a/one/fill<2>", "a/twice", "a/two/fill<2>", "b/twice"]
    assert sorted(target.name for target in targets) == sorted(names)


@pytest.mark.slow
def test_a_kernel_of_a_header_beside_it_is_guarded(memsim: Run, project: Path) -> None:
    kernel, main = WHOLE.splitlines()
    (project / "src" / "twice.cuh").write_text(f"{kernel}\n")
    (project / "src" / "main.cu").write_text(f'#include "twice.cuh"\n{main}\n')
    assert memsim("init").out.startswith("wrote memsim.toml: 1 target\n")
    assert memsim("baseline").code == 0
