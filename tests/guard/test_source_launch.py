"""A target whose own launch is no longer what its source launches does not pass."""

from __future__ import annotations

import json

import pytest

from memsim.targets.project import read_project
from memsim.targets.source_launch import Followed, follow
from tests.guard.conftest import Folder

HEADER = "#pragma once\nconstexpr int TILE = 32;\n#define ROWS 8\n"
TURN = """\
#include "tile.h"
template <typename T, int N> __global__ void turn(const T *in, T *out, int n) {
    __shared__ T tile[N][N + 1];
    int x = blockIdx.x * N + threadIdx.x, y = blockIdx.y * N;
    for (int i = threadIdx.y; i < N; i += blockDim.y)
        if (x < n && y + i < n) tile[i][threadIdx.x % N] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * N + threadIdx.x, y = blockIdx.x * N;
    for (int i = threadIdx.y; i < N; i += blockDim.y)
        if (x < n && y + i < n) out[(y + i) * n + x] = tile[threadIdx.x % N][i];
}
int main() {
    const int n = 128;
    float *a, *b;
    cudaMalloc(&a, n * n * sizeof(float));
    cudaMalloc(&b, n * n * sizeof(float));
    dim3 block(TILE, ROWS);
    dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    turn<float, TILE><<<grid, block>>>(a, b, n);
}
"""
OWN = """\
budgets = ["ways <= 1"]
[[targets]]
file = "turn.cu"
kernel = "turn<float, 32>"
grid = [4, 4]
block = [32, 8]
args = ["f32[128,128]", "f32[16384]", 128]
options = ["-Iinc"]
"""
SAID = "turn<float, 32><<<(4, 4), (32, 8)>>>(f32[16384], f32[16384], 128)"
HERE, BLOCK, N = "in the target and", "dim3 block(TILE, ROWS)", "int n = 128"
CHANGES = [
    ("turn.cu", BLOCK, "dim3 block(ROWS, TILE)", f"block is (32, 8) {HERE} (8, 32) in the source"),
    ("turn.cu", BLOCK, "dim3 block(TILE, 16)", f"block is (32, 8) {HERE} (32, 16) in the source"),
    ("turn.cu", BLOCK, "dim3 block(TILE, 4)", f"block is (32, 8) {HERE} (32, 4) in the source"),
    ("turn.cu", "turn<float, TILE><<<", "turn<double, TILE><<<", f"<float, 32> {HERE} turn<double, 32>"),
    ("inc/tile.h", "TILE = 32", "TILE = 16", f"turn<float, 32> {HERE} turn<float, 16> in the source"),
    ("turn.cu", N, "int n = 130", f"grid is (4, 4) {HERE} (5, 5) in the source"),
    ("turn.cu", N, "int n = 256", f"n is 128 {HERE} 256 in the source"),
    ("turn.cu", "dim3 grid((n + TILE", "dim3 grid(2 * (n + TILE", f"grid is (4, 4) {HERE} (9, 4)"),
]


@pytest.fixture
def turn(folder: Folder) -> Folder:
    folder.write("inc/tile.h", HEADER)
    folder.write("turn.cu", TURN)
    folder.write("memsim.toml", OWN)
    return folder


def followed(folder: Folder) -> Followed:
    """How the only target of a project compares with its source."""
    project = read_project(folder.path / "memsim.toml")
    (job,) = project.targets
    said = project.from_source[job.name]
    return follow(job, said.instead_of, said.let)


@pytest.mark.parametrize(("file", "old", "new", "said"), CHANGES)
def test_a_launch_that_changes_beside_the_target_is_noticed(
    turn: Folder, file: str, old: str, new: str, said: str
) -> None:
    turn.edit(file, old, new)
    stale = followed(turn).stale
    assert stale is not None
    assert stale.message.startswith("the target is not what the source launches: ")
    assert said in stale.message


@pytest.mark.slow
def test_a_check_fails_where_the_launch_has_changed(turn: Folder) -> None:
    assert turn.run("check").out == "OK: 1 kernel, 1 check passed\n"
    turn.edit("turn.cu", N, "int n = 256")
    done = turn.run("check")
    assert done.code == 2
    assert "error: turn<float, 32>: turn.cu:19: the target is not what the source launches" in done.out


def test_the_launch_as_it_is_passes(turn: Folder) -> None:
    assert followed(turn) == Followed()
    turn.edit("turn.cu", "const int n = 128", "constexpr unsigned n = 4 * TILE")
    turn.edit("turn.cu", "<<<grid, block>>>", "<<<dim3(4, 4), dim3(TILE, ROWS)>>>")
    assert followed(turn) == Followed()


@pytest.mark.parametrize(("file", "old", "new", "said"), CHANGES)
def test_another_launch_is_meant_in_place_of_one_that_is_still_made(
    turn: Folder, file: str, old: str, new: str, said: str
) -> None:
    """`instead_of` records the launch that a target was derived from."""
    turn.edit("memsim.toml", "grid = [4, 4]", "grid = [2, 2]")
    stale = followed(turn).stale
    assert stale is not None and f"instead_of = '{SAID}'" in str(stale.hint)
    turn.edit("memsim.toml", "grid = [2, 2]", f"grid = [2, 2]\ninstead_of = '{SAID}'")
    assert followed(turn) == Followed()
    turn.edit(file, old, new)
    stale = followed(turn).stale
    assert stale is not None and f"the source no longer launches {SAID}" in stale.message


@pytest.mark.slow
def test_a_target_without_a_launch_of_its_own_follows(turn: Folder) -> None:
    for key in ("grid", "block", "args"):
        (line,) = [line for line in OWN.splitlines(keepends=True) if line.startswith(key)]
        turn.edit("memsim.toml", line, "")
    turn.edit("memsim.toml", '"ways <= 1"', '"ways <= 1", "baseline"')
    assert turn.run("baseline").code == 0
    assert turn.run("check").code == 0
    turn.edit("turn.cu", "dim3 block(TILE, ROWS)", "dim3 block(TILE, 16)")
    assert (
        "the baseline of turn<float, 32> is for another launch: grid 4x4x1, block 32x8x1"
        in turn.run("check").out
    )


SCALE = """\
__global__ void scale(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
}
"""
OPEN = "void run(float *data, int n) { scale<<<(n + 255) / 256, 256>>>(data, n); }\n"
TARGET = """\
budgets = ["sectors <= ideal"]
[[targets]]
file = "k.cu"
grid = 4
block = 256
args = ["f32[1000]", 1000]
"""


@pytest.mark.slow
def test_what_the_source_does_not_say_is_no_alarm(folder: Folder) -> None:
    folder.write("memsim.toml", TARGET)
    folder.write("k.cu", SCALE)
    assert followed(folder) == Followed(unknown="the source does not launch it")
    done = folder.run("check")
    assert done.code == 0
    assert done.out.startswith("launch not compared with the source's: k: the source does not launch it\n")
    folder.write("k.cu", SCALE + OPEN.replace("(n + 255) / 256", "sizes(n)"))
    assert followed(folder) == Followed(unknown="grid is sizes(n)")


def test_a_value_that_the_target_passes_counts_for_the_grid(folder: Folder) -> None:
    folder.write("memsim.toml", TARGET)
    folder.write("k.cu", SCALE + OPEN)
    assert followed(folder) == Followed()
    folder.edit("k.cu", "(n + 255) / 256", "(n + 127) / 128")
    stale = followed(folder).stale
    assert stale is not None and "grid is 4 in the target and 8 in the source" in stale.message


def test_one_of_several_launches_is_enough(folder: Folder) -> None:
    folder.write("memsim.toml", TARGET)
    folder.write("k.cu", SCALE + OPEN + "void other(float *data) { scale<<<1, 32>>>(data, 32); }\n")
    assert followed(folder) == Followed()
    folder.edit("k.cu", "/ 256, 256>>>", "/ 256, 128>>>")
    assert followed(folder).stale is not None


FILL = """\
using real = float;
template <typename T, int N> __global__ void fill(T *data) { data[threadIdx.x * N] = 0; }
void run(%s *data) { fill<%s, 2><<<1, 32>>>(data); }
"""


@pytest.mark.parametrize(
    ("mine", "theirs", "is_other"),
    [
        ("unsigned", "unsigned int", False),
        ("unsigned", "uint32_t", False),
        ("float", "real", False),
        ("float", "of_another_header", False),
        ("float", "int", True),
        ("double", "real", True),
        ("ns::mine", "mine", False),
        ("mine", "other", True),
    ],
)
def test_types_are_compared_as_far_as_they_are_known(
    folder: Folder, mine: str, theirs: str, is_other: bool
) -> None:
    folder.write("k.cu", FILL % (theirs, theirs))
    folder.write(
        "memsim.toml",
        f'[[targets]]\nfile = "k.cu"\nkernel = "fill<{mine}, 2>"\ngrid = 1\nblock = 32\nargs = ["u8[512]"]\n',
    )
    assert (followed(folder).stale is not None) is is_other


def test_dynamic_shared_memory_is_part_of_the_launch(folder: Folder) -> None:
    folder.write("memsim.toml", TARGET)
    folder.write("k.cu", SCALE + OPEN.replace("256>>>", "256, 1024>>>"))
    stale = followed(folder).stale
    assert stale is not None and "shared_bytes is 0 in the target and 1024 in the source" in stale.message
    folder.edit("memsim.toml", "block = 256", "block = 256\nshared_bytes = 1024")
    assert followed(folder) == Followed()


@pytest.mark.slow
def test_kernels_without_a_target_are_told(folder: Folder) -> None:
    folder.write("memsim.toml", TARGET)
    folder.write("k.cu", SCALE + OPEN)
    folder.write("src/red.cu", "\n\n__global__ void bad(float *x) { x[32 * threadIdx.x] = 0; }\n")
    folder.write(".hidden/no.cu", "__global__ void hidden(float *x) { *x = 0; }\n")
    (folder.path / "link.cu").symlink_to(folder.path / ".hidden/no.cu")
    folder.write("other/memsim.toml", TARGET)
    folder.write("other/own.cu", "__global__ void own(float *x) { *x = 0; }\n")
    done = folder.run("check")
    assert done.code == 0
    assert (
        done.out == "1 of 2 kernels guarded; unguarded: `bad` (src/red.cu:3)\nOK: 1 kernel, 1 check passed\n"
    )
    assert folder.run("check").out == done.out  # as it was kept
    folder.write("src/more.cu", "__global__ void more(float *x) { *x = 0; }\n")
    assert "1 of 3 kernels guarded; unguarded: `more` (src/more.cu:1), `bad`" in folder.run("check").out
    told = folder.run("check", "--format", "github").out.splitlines()[0]
    assert told.startswith("::notice title=memsim%3A coverage::1 of 3 kernels guarded; unguarded: `more`")
    document = json.loads(folder.run("check", "--format", "json").out)
    assert document["coverage"]["kernels"] == 3
    assert {"kernel": "bad", "file": "src/red.cu", "line": 3, "new": False} in document["coverage"][
        "unguarded"
    ]
