"""What memsim asks for where a source leaves a launch open, and that the command lines it prints work."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run

TILED = """\
#include "tile.h"
template <typename T, int N> __global__ void turn(const T *in, T *out, int n) {
    __shared__ T tile[N][N + 1];
    int x = blockIdx.x * N + threadIdx.x, y = blockIdx.y * N;
    for (int i = threadIdx.y; i < N; i += blockDim.y) tile[i][threadIdx.x] = in[(y + i) * n + x];
    __syncthreads();
    x = blockIdx.y * N + threadIdx.x, y = blockIdx.x * N;
    for (int i = threadIdx.y; i < N; i += blockDim.y) out[(y + i) * n + x] = tile[threadIdx.x][i];
}
int main() {
    int n = 64;
    float *a, *b;
    cudaMalloc(&a, n * n * sizeof(float));
    cudaMalloc(&b, n * n * sizeof(float));
    turn<float, TILE><<<dim3(n / TILE, n / TILE), dim3(TILE, ROWS)>>>(a, b, n);
}
"""
COPY = """\
__global__ void copy(const float *a, float *b, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) b[i] = a[i];
}
int main(int argc, char **argv) {
    int n = argc * 1000;
    float *a, *b;
    cudaMalloc(&a, n * 4);
    cudaMalloc(&b, n * 4);
    copy<<<(n + 255) / 256, 256>>>(a, b, n);
}
"""
STRUCT = """\
struct Params { float alpha; int n; const float *x; float *y; };
__global__ void saxpy(Params p) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < p.n) p.y[i] = p.alpha * p.x[i];
}
void run(float a, int n, float *x, float *y) { saxpy<<<n, 256>>>(Params{a, n, x, y}); }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "tile.h").write_text("#pragma once\nconstexpr int TILE = 32;\n#define ROWS 8\n")
    return tmp_path


def command(said: str) -> list[str]:
    """The words of the command line that memsim prints, without `memsim`."""
    (line,) = [line for line in said.splitlines() if "memsim analyze" in line]
    return shlex.split(line[line.index("memsim ") :])[1:]


@pytest.mark.slow
def test_the_constants_of_a_header_complete_a_launch(here: Path, memsim: Run) -> None:
    (here / "mine.cu").write_text(TILED)
    words = command(memsim("analyze mine.cu -I inc --kernel absent").err)
    assert words[:5] == ["analyze", "mine.cu", "-Iinc", "--kernel", "turn<float, 32>"]
    assert words[5:] == shlex.split("--grid 2,2 --block 32,8 --arg 'f32[4096]' --arg 'f32[4096]' --arg 64")
    done = memsim(shlex.join(words))
    assert "turn<float,32>: conflict-free" in done.out, done.err


@pytest.mark.slow
def test_an_instance_may_be_named_by_its_constants(here: Path, memsim: Run) -> None:
    (here / "mine.cu").write_text(TILED)
    for kernel in ("'turn<float, TILE>'", "'turn<float,32>'"):
        assert "turn<float,32>: conflict-free" in memsim("analyze mine.cu -I inc --kernel", kernel).out
    (here / "mine.cu").write_text(TILED.replace('"tile.h"', "SOME_HEADER"))
    said = memsim("analyze mine.cu -D 'SOME_HEADER=<tile.h>' -I inc")
    assert "--kernel 'turn<float, TILE>' --let TILE=... --let ROWS=..." in said.out
    values = "--let TILE=32 --let ROWS=8"
    done = memsim("analyze mine.cu -D 'SOME_HEADER=<tile.h>' -I inc --kernel 'turn<float, TILE>'", values)
    assert "turn<float,32>: conflict-free" in done.out, done.err


@pytest.mark.slow
def test_only_what_decides_something_is_asked_for(here: Path, memsim: Run) -> None:
    (here / "mine.cu").write_text(COPY)
    assert memsim("analyze mine.cu").out.endswith("--let argc=...\n  with values for argc\n")
    for value in ("n=1024", "argc=1"):
        assert memsim("analyze mine.cu --let", value).out.startswith("copy: coalesced")
    memsim("analyze mine.cu --let n=1024 --let b_SIZE=7").refused(
        "--let b_SIZE: no launch in the source uses it"
    )
    memsim("analyze mine.cu --let n=1024 --let argc=2").refused(
        "--let argc: it decides nothing", "n is enough"
    )
    arguments = "--arg 'f32[1024]' --arg 'f32[1024]' --arg 1024"
    memsim("analyze mine.cu --grid 4 --block 256", arguments, "--let n=7").refused(
        "--let n: it decides nothing"
    )


def test_a_struct_is_asked_for_and_how_to_write_one_is_said(here: Path, memsim: Run) -> None:
    (here / "mine.cu").write_text(STRUCT)
    words = command(memsim("analyze mine.cu").out)
    assert words[2:] == ["--block", "256", "--let", "n=...", "--arg", "p"]
    line = shlex.join(words[:-1]).replace("n=...", "n=4")
    memsim(line, "5").refused("a number for p, which is a struct of 24 bytes", "a struct 'f32(1,2)+i32(3)'")
    done = memsim(line, "'f32(2)+i32(1024)+f32[1024]+f32[1024]'")
    assert done.out.startswith("saxpy: coalesced"), done.err


def test_a_type_of_glibc_is_a_type(here: Path, memsim: Run) -> None:
    (here / "mine.cu").write_text(
        "template <int BM> __global__ void t(float *a) { a[blockIdx.x * BM + threadIdx.x] = 1; }\n"
        "void run(float *a, int N) { const uint B = 128; dim3 grid(N / B); dim3 block(B);"
        " t<B><<<grid, block>>>(a); }\n"
    )
    assert "--kernel 't<128>' --let N=... --let a_SIZE=...\n" in memsim("analyze mine.cu").out


OBJECTS = """#include <cuda.h>
__global__ void k(const __grid_constant__ CUtensorMap map, cudaTextureObject_t image, float *o) {
    asm volatile("prefetch.tensormap [%0];" :: "l"(&map));
    o[threadIdx.x] = tex2D<float>(image, threadIdx.x + .5f, .5f);
}
"""


@pytest.mark.slow
def test_the_command_line_of_textures_and_tensor_maps_works(here: Path, memsim: Run) -> None:
    """With sizes for its names."""
    (here / "k.cu").write_text(OBJECTS)
    asked = memsim("analyze k.cu").out
    for said in (
        "'tensormap(f32[map_HEIGHT,map_WIDTH],box=map_BOX)'",
        "'tex2d(f32[image_HEIGHT,image_WIDTH])'",
    ):
        assert f"--arg {said}" in asked
    sizes = {
        "map_HEIGHT": "32",
        "map_WIDTH": "32",
        "map_BOX": "8x8",
        "image_HEIGHT": "8",
        "image_WIDTH": "32",
        "o_SIZE": "32",
    }
    command = asked.splitlines()[1].strip().removeprefix("memsim ")
    for name, size in {**sizes, "GRID": "1", "BLOCK": "32"}.items():
        command = command.replace(name, size)
    done = memsim(command)
    assert done.code == 0 and "textures: " in done.out
