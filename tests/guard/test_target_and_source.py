"""A target without a launch of its own is its source's, and kernels without a target are told."""

from __future__ import annotations

import json

import pytest

from tests.guard.conftest import Folder

TURN = """\
constexpr int TILE = 32;
#define ROWS 8
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
"""


@pytest.fixture
def turn(folder: Folder) -> Folder:
    folder.write("turn.cu", TURN)
    folder.write("memsim.toml", OWN)
    return folder


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
