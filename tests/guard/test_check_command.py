"""`memsim check` and `memsim baseline`: exit codes, the last line, and every kind of emptiness."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable

import pytest

from memsim.targets.project import read_project
from studies.kernel_ptx import compile_cuda
from tests.assembler import needs_assembler
from tests.guard.conftest import TARGET, TILE, Folder

Tile = Callable[..., Folder]
# Where a block runs is nothing that memsim could know.
UNKNOWN = """\
extern "C" __global__ void scatter(const float *A, float *C) {
    __shared__ float tile[32];
    int lane = threadIdx.x;
    unsigned where;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
    tile[lane] = A[lane];
    __syncthreads();
    C[where & 31] = tile[lane];
}
"""
SCATTER = '[[targets]]\nfile = "scatter.cu"\ngrid = 1\nblock = 32\nargs = ["f32[32]", "f32[32]"]\n'


def verdict(text: str) -> str:
    """The last line, or the one before the command that explains it."""
    *_, last = [line for line in text.splitlines() if not line.startswith("memsim explain ")]
    return last


def test_a_budget_that_holds(tile: Tile) -> None:
    done = tile("ways <= 1", "excess < 1%").run("check")
    assert (done.code, done.err) == (0, "")
    assert verdict(done.out) == "OK: 1 kernel, 2 checks passed"


@pytest.mark.slow
def test_a_budget_that_is_broken_says_everything(tile: Tile) -> None:
    project = tile("ways <= 1")
    assert project.run("baseline").code == 0
    project.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    done = project.run("check")
    assert done.code == 1
    assert verdict(done.out) == "FAILED: 1 of 1 check failed, in tile"
    (row,) = [line for line in done.out.splitlines() if line.strip().startswith("tile.cu:6  ")]
    assert [cell.strip() for cell in row.split("  ") if cell] == [
        "tile.cu:6", "C[y * n + x] = tile[x][y];", "shared load 4 B", "tile", "ways", "1", "32", "<= 1",
    ]  # fmt: skip
    assert "lanes 0-31 of warp 0, block (0,0,0) meet in bank 0: 32 different words" in done.out


def test_the_baseline_is_the_budget_where_there_is_none(tile: Tile) -> None:
    project = tile()
    assert project.run("check").code == 2
    written = project.run("baseline")
    assert written.code == 0
    assert "1 kernel, 4 accesses" in written.out
    assert project.run("check").out.splitlines()[-1] == "OK: 1 kernel, 1 check passed"
    assert "nothing changed" in project.run("baseline").out


@pytest.mark.slow
def test_worse_fails_and_better_says_so(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    project.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    worse = project.run("check")
    assert worse.code == 1
    assert "worse than the baseline" in worse.out
    assert "changed: tile" in project.run("baseline").out
    project.edit("memsim.toml", "-DPAD=0", "-DPAD=1")
    better = project.run("check")
    assert better.code == 0
    assert verdict(better.out) == "OK: 1 kernel, 1 check passed; improved: run memsim baseline"


def test_another_argument_is_another_launch(tile: Tile) -> None:
    project = tile()
    project.write("tile.cu", TILE)
    project.run("baseline")
    assert 'arguments = "f32[1024], f32[1024], 32"' in project.read("memsim-baseline.toml")
    project.edit("memsim.toml", '"f32[1024]", 32]', '"f32[1024]", 31]')
    done = project.run("check")
    assert done.code == 2
    assert "another launch" in done.out and "arguments f32[1024], f32[1024], 31" in done.out
    project.run("baseline")
    assert project.run("check").code == 0


def test_a_baseline_without_arguments_is_read_as_before(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    kept = project.read("memsim-baseline.toml").splitlines(keepends=True)
    project.write("memsim-baseline.toml", "".join(line for line in kept if "arguments = " not in line))
    assert project.run("check").code == 0
    project.run("baseline")
    assert project.read("memsim-baseline.toml") == "".join(kept)


def test_another_depth_is_another_launch_although_the_grid_is_the_same(folder: Folder) -> None:
    target = '[[targets]]\nkernel = "kernel_v1"\nname = "v1"\nsize = "64,64,{}"\n'
    folder.write("memsim.toml", target.format(32))
    folder.run("baseline")
    assert 'arguments = "M 64, N 64, K 32"' in folder.read("memsim-baseline.toml")
    assert folder.run("check").code == 0
    folder.write("memsim.toml", target.format(16))
    done = folder.run("check")
    assert done.code == 2
    assert "arguments M 64, N 64, K 16" in done.out


@pytest.mark.slow
def test_new_and_vanished_are_told_apart_from_changed(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    project.edit("tile.cu", "    C[y", "    tile[0][y] = 1.0f;\n    C[y")
    done = project.run("check")
    assert done.code == 1
    assert "tile: new access\n" in done.out
    assert "tile.cu:6: a new access" in done.out
    project.run("baseline")
    project.write("tile.cu", TILE)
    done = project.run("check")
    assert done.code == 1
    assert "tile: access vanished\n" in done.out
    assert "the kernel no longer makes this access" in done.out


# --- what explains a failure


@pytest.mark.slow
def test_the_last_line_is_the_command_that_explains_it(tile: Tile) -> None:
    project = tile("ways <= 1")
    project.edit("memsim.toml", 'file = "tile.cu"', 'file = "tile.cu"\nname = "a tile"')
    assert project.run("check").out.splitlines()[-1].startswith("OK: ")
    project.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    done = project.run("check")
    assert done.out.splitlines()[-2:] == [
        "FAILED: 1 of 1 check failed, in a tile",
        "memsim explain 'a tile' --line 6",
    ]
    explained = project.run(*shlex.split(done.out.splitlines()[-1])[1:])
    assert explained.code == 0
    assert "32-way" in explained.out


def test_a_kernel_that_ships_is_explained_at_its_size(folder: Folder) -> None:
    folder.write(
        "k.toml", "budgets = ['ways <= 1']\n[[targets]]\nkernel = 'transpose_naive'\nsize = '64,64'\n"
    )
    last = folder.run("check", "--config", "k.toml").out.splitlines()[-1]
    assert last.startswith("memsim explain transpose_naive --size 64,64 --line ")
    assert folder.run(*last.split()[1:]).code == 0


def test_what_no_command_can_explain_gets_none(tile: Tile, folder: Folder) -> None:
    project = tile("ways <= 1")
    project.edit("memsim.toml", "-DPAD=1", "-DPAD=0")
    (project.path / "memsim.toml").rename(project.path / "other.toml")
    assert project.run("check", "--config", "other.toml").out.splitlines()[-1].startswith("FAILED")


# --- a guard that cannot fail


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (TARGET, "", "there are no targets"),
        ("tile.cu", "gone.cu", "there is no file gone.cu"),
        ("'ways <= 1'", "'sites(array=gone).ways <= 1'", "this budget applies to"),
        ("'ways <= 1'", "'way <= 1'", "no quantity 'way'"),
        ("block = [32, 32]", "block = [32, 33]", "has 1056 threads"),
        ("-DPAD=1", "-DPADD=1", "does not compile"),
        ('["f32[1024]", ', "[", "takes 3 arguments"),
        ('"f32[1024]", 32]', '"f32[1024]", 64]', "out-of-bounds"),
        ("budgets = ['ways <= 1']", "budgets = ['ways <= 1']\naccept = ['sites(load)']", "accepts nothing"),
    ],
)
def test_what_cannot_be_judged_is_exit_code_2(tile: Tile, old: str, new: str, message: str) -> None:
    project = tile("ways <= 1")
    assert project.run("check").code == 0
    project.edit("memsim.toml", old, new)
    done = project.run("check")
    assert done.code == 2
    assert message in done.out + done.err


@pytest.mark.slow
def test_a_kernel_that_no_longer_compiles(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    project.edit("tile.cu", "__syncthreads();", "__syncthreads()")
    done = project.run("check")
    assert done.code == 2
    assert "tile.cu:6" in done.out
    assert verdict(done.out) == "NOT JUDGED: 1 problem"
    assert project.run("baseline").code == 2
    project.edit("tile.cu", "__syncthreads()", "__syncthreads();")
    assert project.run("check").code == 0


@pytest.mark.some(1)
@pytest.mark.parametrize("spoiled", ["", "schema = 1\n", "not toml at all", "<<<<<<< ours\n"])
def test_a_baseline_that_cannot_be_read(tile: Tile, spoiled: str) -> None:
    project = tile("ways <= 1")  # which needs no baseline
    project.run("baseline")
    assert project.run("check").code == 0
    project.write("memsim-baseline.toml", spoiled)
    done = project.run("check")
    assert done.code == 2
    assert "memsim-baseline.toml" in done.out


def test_a_target_that_was_taken_out(folder: Folder) -> None:
    both = '[[targets]]\nkernel = "permuted_write*"\nsize = "64,64"\n'
    folder.write("memsim.toml", both)
    folder.run("baseline")
    assert folder.run("check").code == 0
    folder.write("memsim.toml", both.replace("write*", "write"))
    done = folder.run("check")
    assert done.code == 2
    assert "permuted_write_fixed@64,64 is in the baseline but is no longer a target" in done.out
    folder.run("baseline")
    assert folder.run("check").code == 0


def test_a_target_that_the_baseline_does_not_have(tile: Tile) -> None:
    project = tile()
    project.run("baseline")
    project.edit("memsim.toml", 'file = "tile.cu"', 'file = "tile.cu"\nname = "other"')
    done = project.run("check", "other")
    assert done.code == 2
    assert "kernel other is not in the baseline" in done.out


def test_a_filter_that_names_nothing(folder: Folder) -> None:
    folder.write(
        "memsim.toml",
        'budgets = ["ways <= 1", "sectors <= ideal"]\n'
        '[[targets]]\nkernel = "transpose_padded"\nsize = "64,64"\n'
        '[[targets]]\nkernel = "opt_2_naive"\nsize = "64,64,64"\n',
    )
    assert folder.run("check").code == 0
    some = folder.run("check", "opt_*")  # whose kernel has no shared memory: ways are not about it
    assert (some.code, verdict(some.out)) == (0, "OK: 1 kernel, 1 check passed")
    done = folder.run("check", "opt_*", "nothing*")
    assert done.code == 2
    assert "no target is called 'nothing*'" in done.out


def test_no_configuration(folder: Folder) -> None:
    done = folder.run("check")
    assert done.code == 2
    assert "there is no memsim.toml" in done.out
    assert "[[targets]]" in done.out
    assert verdict(done.out) == "NOT JUDGED: 1 problem"


@pytest.mark.slow
def test_an_access_that_could_not_be_analyzed_breaks_what_it_might_fall_under(folder: Folder) -> None:
    folder.write("scatter.cu", UNKNOWN)
    folder.write("memsim.toml", "budgets = ['ways <= 1', 'sectors_per_request <= 4']\n" + SCATTER)
    done = folder.run("check")
    assert done.code == 1
    assert "scatter: access not analyzed: sectors_per_request <= 4" in done.out
    assert "scatter.cu:8: could not be analyzed:" in done.out
    assert verdict(done.out) == "FAILED: 1 of 2 checks failed, in scatter"

    folder.edit("memsim.toml", "[[targets]]", "accept = ['sites(global, store)']\n[[targets]]")
    assert folder.run("check").code == 0
    folder.edit("memsim.toml", "'ways <= 1', ", "'ways <= 1', 'baseline', ")
    assert folder.run("baseline").code == 0
    assert "unresolved = " in folder.read("memsim-baseline.toml")
    assert folder.run("check").code == 0
    folder.edit("memsim.toml", "accept = ['sites(global, store)']\n", "")
    assert folder.run("check").code == 1


@pytest.mark.slow
@needs_assembler
def test_a_ptx_file(tile: Tile) -> None:
    project = tile("ways <= 1")
    ptx = compile_cuda(TILE, ["-DPAD=1"], name="tile.cu")
    project.write("build/tile.ptx", ptx)
    target = TARGET.replace("tile.cu", "build/tile.ptx")
    project.write("memsim.toml", f"budgets = ['ways <= 0']\n{target}")
    assert "options does not apply to a PTX file" in project.run("check").out
    project.edit("memsim.toml", 'options = ["-DPAD=1"]', "")
    done = project.run("check", "--format", "json")
    assert done.code == 1
    (finding, *_) = json.loads(done.out)["checks"][0]["findings"]
    assert finding["line"] == 4
    project.edit("memsim.toml", "ways <= 0", "ways <= 1")
    assert project.run("check").code == 0


@pytest.mark.slow
def test_folders_of_headers_are_the_project_s(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("include/tile.cuh", TILE)
    folder.write("src/tile.cu", '#include "tile.cuh"')
    target = TARGET.replace("tile.cu", "src/tile.cu").replace('"-DPAD=1"', '"-DPAD=0", "-Iinclude"')
    folder.write("memsim.toml", f"budgets = ['ways <= 1']\n{target}")
    monkeypatch.chdir(folder.path / "src")
    done = folder.run("check", "--format", "json")
    assert done.code == 1
    (finding,) = json.loads(done.out)["checks"][0]["findings"]
    assert (finding["file"], finding["line"]) == ("include/tile.cuh", 6)


# --- options


def test_the_cache_changes_nothing(tile: Tile) -> None:
    project = tile("sites(load).ways <= 1")
    assert project.run("check").out == project.run("check", "--no-cache").out


ARITHMETIC = """\
extern "C" __global__ void pick(float *m, int n) {
    int i = threadIdx.x;
    m[i] = m[(abs(i - n) * 4 %% n + __popc(i) + %d) %% 256];
}
"""


@pytest.mark.slow
def test_processes_change_nothing(folder: Folder) -> None:
    """Kernels with `%`, `abs` and `__popc`, too: what executes these cannot be carried to another process."""
    targets = []
    for name in ("a", "b"):
        folder.write(f"{name}.cu", ARITHMETIC % ord(name))
        targets.append(f'[[targets]]\nfile = "{name}.cu"\ngrid = 1\nblock = 256\nargs = ["f32[256]", 200]\n')
    folder.write("memsim.toml", "".join(targets))
    one = folder.run("baseline", "--no-cache")
    written = folder.read("memsim-baseline.toml")
    two = folder.run("baseline", "--no-cache", "--jobs", "2")
    assert (one.code, two.code, two.err) == (0, 0, "")
    assert "2 kernels, 4 accesses; nothing changed" in two.out
    assert folder.read("memsim-baseline.toml") == written
    checked = folder.run("check", "--no-cache", "--jobs", "2")
    assert checked.code == 0 and verdict(checked.out).startswith("OK: 2 kernels")


def test_another_configuration(tile: Tile) -> None:
    project = tile("ways <= 1")
    project.write("strict.toml", project.read("memsim.toml").replace("ways <= 1", "ways <= 0"))
    assert project.run("check").code == 0
    assert project.run("check", "--config", "strict.toml").code == 1
    assert project.run("check", "--config", "none.toml").code == 2


def test_output_to_a_file(tile: Tile) -> None:
    project = tile("ways <= 1")
    done = project.run("check", "--format", "json", "--output", "out.json")
    assert verdict(done.out) == "OK: 1 kernel, 1 check passed"
    assert json.loads(project.read("out.json"))["verdict"] == verdict(done.out)
    assert json.loads(project.run("check", "--format", "json").out)["exit_code"] == 0
    unnamed = project.run("check", "--format", "sarif", "-o")
    assert unnamed.out.splitlines()[-1] == "written: memsim-check.sarif"
    assert json.loads(project.read("memsim-check.sarif"))["version"] == "2.1.0"
    assert project.run("check", "--output", "out.json").code == 2
    assert project.run("check", "--format", "json", "--output", "no/folder/out.json").code == 2


def test_files_are_relative_to_the_configuration(tile: Tile, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tile("ways <= 0")
    inside = project.path / "deep" / "down"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    done = project.run("check")
    assert done.code == 1
    assert str(read_project(project.path / "memsim.toml").folder / "tile.cu") in done.out


# --- reproductions


LOOPS = """\
extern "C" __global__ void k(float *o, const float *a, const int *idx) {
    __shared__ float s[32][33];
    __shared__ float h[64];
    s[threadIdx.x][threadIdx.y] = 0; __syncthreads();
    atomicAdd(&s[threadIdx.x][threadIdx.y], a[threadIdx.x]);
    if (threadIdx.y < 2) h[threadIdx.y * 32 + threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&h[idx[threadIdx.x] & 63], 1.0f); __syncthreads();
    o[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y] + h[threadIdx.x];
}
"""
LOOPS_TARGET = """
[[targets]]
file = "k.cu"
grid = [1]
block = [32, 32]
args = ["f32[1024]", "f32[1024]", "i32[1024]=iota"]
"""


@pytest.mark.slow
def test_what_is_accepted_of_one_array_is_accepted_of_no_other(folder: Folder) -> None:
    folder.write("k.cu", LOOPS)
    folder.write("memsim.toml", 'budgets = ["ways <= 1"]\naccept = ["sites(array=h)"]\n' + LOOPS_TARGET)
    done = folder.run("check")
    assert done.code == 1
    assert "k.cu:5: could not be analyzed:" in done.out
    assert "k.cu:8: could not be analyzed:" not in done.out
    folder.edit("memsim.toml", "array=h", "array=h, array=s")
    assert folder.run("check").code == 0


def test_every_alternative_has_to_mean_something(tile: Tile) -> None:
    project = tile("sites(array=tile, array=tile_b).ways <= 1")
    done = project.run("check")
    assert done.code == 2
    assert "memsim.toml:1:31: the alternative array=tile_b matches no access of tile" in done.out
    project.edit("memsim.toml", ", array=tile_b", "")
    assert project.run("check").code == 0


@pytest.mark.slow
def test_a_new_race_fails_and_one_of_the_baseline_does_not(tile: Tile) -> None:
    project = tile("ways <= 1")
    assert project.run("check").code == 0
    project.edit("tile.cu", "    __syncthreads();\n", "")
    done = project.run("check", "--format", "github")
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("::error")]
    assert line.startswith("::error file=tile.cu,line=5,") and "no race" in line
    assert "which tile.cu:4 stores and tile.cu:5 loads: nothing orders the two accesses" in line
    results = json.loads(project.run("check", "--format", "sarif").out)["runs"][0]["results"]
    assert [one["locations"][0]["physicalLocation"]["region"]["startLine"] for one in results] == [5]
    assert project.run("baseline").code == 0
    project.edit("tile.cu", "    int x = threadIdx.x", "\n    int x = threadIdx.x")
    assert project.run("check").code == 0
    project.edit("tile.cu", "    C[y * n + x] = tile[x][y];", "    C[y * n + x] = tile[x][y] + 1;")
    assert project.run("check").code == 1
