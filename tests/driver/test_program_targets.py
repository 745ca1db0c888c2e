"""A target of a project may be a program: its launches are guarded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memsim.driver import native_build
from memsim.errors import MemsimError
from memsim.targets.program_target import words_of
from memsim.targets.project import read_project
from tests.driver.test_programs import programs
from tests.guard.conftest import Folder, folder, traces_kept

__all__ = ["folder", "programs", "traces_kept"]
pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
    ),
]
needs_nvcc = pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")

BENCH = """\
#include <cstdlib>
__global__ void turn(float *a, int stride) {
  __shared__ float tile[32 * 32];
  tile[threadIdx.x * stride] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = tile[threadIdx.x * stride] + 1;
}
template <int N> __global__ void fill(float *a) { a[blockIdx.x * N + threadIdx.x] = N; }
__global__ void nothing() {}
int main(int count, char **words) {
  float *a;
  cudaMalloc(&a, 4096);
  nothing<<<1, 1>>>();
  fill<32><<<dim3(2, 2), 32, 256>>>(a);
  for (int i = 0; i < 3; ++i) turn<<<1, 32>>>(a, atoi(words[1]));
  return cudaDeviceSynchronize();
}
"""
TARGET = '[[targets]]\ncommand = "./bench {}"\nname = "small"\n'


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of three kinds of launches, and its source."""
    made = tmp_path_factory.mktemp("bench")
    (made / "bench.cu").write_text(BENCH)
    command = ["nvcc", "-arch=sm_90", "-lineinfo", "-cudart", "shared", "bench.cu", "-o", "bench"]
    subprocess.run(command, check=True, cwd=made)
    return made


@pytest.fixture
def project(
    bench: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Folder:
    """A project of the program and its source, which has no bank conflict."""
    for left in bench.iterdir():
        if left.is_dir():
            shutil.rmtree(left)
        elif left.stem != "bench":
            left.unlink()
    monkeypatch.chdir(bench)
    made = Folder(bench, capsys)
    made.write("memsim.toml", TARGET.format(1))
    return made


@pytest.mark.slow
@needs_nvcc
def test_each_kind_of_launch_is_guarded_by_the_baseline(project: Folder) -> None:
    assert project.run("baseline").out.startswith("memsim-baseline.toml: 3 kernels, 5 accesses; ")
    kept = project.read("memsim-baseline.toml")
    for name in ("nothing<<<1, 1>>>", "fill<32><<<(2,2), 32, 256>>>", "turn<<<1, 32>>>"):
        assert f'[kernels."small: {name}"]' in kept
    assert project.run("check").code == 0
    assert project.run("baseline").out.endswith("; nothing changed\n")
    project.write("memsim.toml", TARGET.format(32))
    done = project.run("check")
    assert done.code == 1
    assert "FAILED: 1 of 2 checks failed, in small: turn<<<1, 32>>>" in done.out
    assert "memsim exec --record launches -- ./bench 32  # writes a launch.json of each" in done.out
    assert "memsim suggest 'small" not in done.out  # which would not know it


@pytest.mark.slow
@needs_nvcc
def test_budgets_apply_to_the_launches_that_have_such_accesses(project: Folder) -> None:
    budgets = 'budgets = ["ways <= 1", "sites(kernel=small*, store, global).sectors_per_request <= 4"]\n'
    project.write("memsim.toml", budgets + TARGET.format(1))
    assert (project.run("check").code, project.run("check", "small").code) == (0, 0)
    project.write("memsim.toml", budgets + TARGET.format(2))
    assert "of 3 checks failed, in small: turn<<<1, 32>>>" in project.run("check", "small").out
    project.write("memsim.toml", TARGET.format(1) + 'budgets = ["sites(ldmatrix).ways <= 1"]\n')
    done = project.run("check")
    assert done.code == 2 and "applies to no access of small" in done.err + done.out


@needs_nvcc
def test_kernels_that_a_program_launches_are_guarded(project: Folder) -> None:
    project.write("more.cu", "__global__ void other(int *a) { *a = 1; }\n")
    project.run("baseline")
    assert "3 of 4 kernels guarded; unguarded: `other` (more.cu:1)" in project.run("check").out


@needs_nvcc
def test_a_launch_that_is_not_made_any_more_is_told_and_a_failure_keeps_the_entries(project: Folder) -> None:
    project.run("baseline")
    path = project.path / "memsim-baseline.toml"
    path.write_text(path.read_text().replace("turn<<<1, 32>>>", "turn<<<1, 64>>>"))
    done = project.run("check")
    assert done.code == 2
    assert "small: turn<<<1, 64>>> is in the baseline but ./bench 1 no longer launches it" in done.out
    assert "kernel small: turn<<<1, 32>>> is not in the baseline" in done.out
    before = path.read_text()
    other = "[[targets]]\nkernel = 'transpose_padded'\nsize = '64,64'\n"
    project.write("memsim.toml", other + TARGET.format("").replace("./bench ", "false"))
    assert "NOT ANALYZED: small, whose entry is as before" in project.run("baseline").out
    entries = before[before.index("[kernels") :].split("\n\n")
    assert all(entry.strip() in path.read_text() for entry in entries)


@pytest.mark.slow
@needs_nvcc
def test_a_program_of_a_branch_is_checked_against_the_branch(project: Folder) -> None:
    project.run("baseline")
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run(["git", *words], check=True, cwd=project.path, env={**os.environ, **names})
    project.write("memsim.toml", TARGET.format(32))  # which is not what the branch says
    (project.path / "memsim-baseline.toml").unlink()
    done = project.run("check", "--against", "main")
    assert (done.code, done.err) == (0, ""), done.out
    kept = subprocess.run(["git", "show", "main:memsim-baseline.toml"], capture_output=True, cwd=project.path)
    text = kept.stdout.decode().replace("turn<<<1, 32>>>", "turn<<<9, 32>>>")
    project.write("memsim.toml", TARGET.format(1))
    project.write("memsim-baseline.toml", text)
    for words in (["checkout", "-q", "-b", "more"], ["commit", "-qam", "y"]):
        subprocess.run(["git", *words], check=True, cwd=project.path, env={**os.environ, **names})
    done = project.run("check", "--against", "more")
    assert done.code == 2 and "no longer there: small: turn<<<9, 32>>>" in done.out


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("false", "false ended with exit code 1"),
        ("sh -c 'echo in vain; exit 3'", "hint: it printed last: in vain"),
        ("true", "true launched no kernel, so nothing is guarded"),
        ("./nothing-here", "cannot run ./nothing-here"),
    ],
)
@needs_nvcc
def test_a_program_that_does_not_run_is_an_error(folder: Folder, command: str, why: str) -> None:
    folder.write(
        "memsim.toml", f"budgets = ['ways <= 1']\n[[targets]]\nname = 'x'\ncommand = {json.dumps(command)}"
    )
    done = folder.run("check")
    assert done.code == 2 and why in done.out + done.err
    assert folder.run("baseline").code == 2 and not (folder.path / "memsim-baseline.toml").exists()


@pytest.mark.slow
@needs_nvcc
def test_a_launch_that_fails_is_an_error(folder: Folder, programs: Path) -> None:
    target = f"[[targets]]\nname = 'x'\ncommand = [{str(programs)!r}, 'out_of_bounds']"
    folder.write("memsim.toml", f"budgets = ['requests <= 99']\n{target}")
    done = folder.run("check")
    assert done.code == 2 and "x: past_the_end<<<1, 32>>>" in done.out and "out-of-bounds" in done.out


def test_what_is_missing_is_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("memsim.toml", "budgets = ['ways <= 1']\n[[targets]]\ncommand = 'true'")
    monkeypatch.setattr(native_build, "c_compiler", lambda: None)
    done = folder.run("check")
    assert done.code == 2 and "needs a C compiler" in done.out


def test_an_untrusted_project_runs_no_program(folder: Folder) -> None:
    folder.write("memsim.toml", "budgets = ['ways <= 1']\n[[targets]]\ncommand = 'touch ran'")
    done = folder.run("check", "--untrusted")
    assert done.code == 2 and "--untrusted runs no program" in done.out
    assert not (folder.path / "ran").exists()


def test_verbs_of_one_launch_say_that_it_is_a_program(folder: Folder) -> None:
    folder.write("memsim.toml", "[[targets]]\ncommand = './bench -n 4'")
    done = folder.run("analyze", "bench")
    assert done.code == 2 and "memsim exec --analyze -- ./bench -n 4" in done.err
    assert "memsim exec --sanitize -- ./bench -n 4" in folder.run("sanitize").err


def test_a_command_is_split_into_words_as_a_shell_does() -> None:
    assert words_of("./bench --name 'a b' $HOME") == ("./bench", "--name", "a b", "$HOME")
    assert words_of(("./a program", "*")) == ("./a program", "*")
    for wrong in ("./bench 'a", "", ()):
        with pytest.raises(MemsimError, match="command"):
            words_of(wrong)


def test_keys_of_a_program(folder: Folder) -> None:
    path = folder.write("memsim.toml", "[[targets]]\ncommand = ['./bench']\nmax_steps = 9\narch = 'sm_80'")
    (program,) = read_project(path).programs
    assert (program.name, program.max_steps, program.arch.name) == ("bench", 9, "sm_80")
    for wrong in ("grid = 4", "max_steps = 0", "name = ''", "file = 'a.cu'"):
        with pytest.raises(MemsimError):
            read_project(folder.write("memsim.toml", f"[[targets]]\ncommand = './bench'\n{wrong}"))
