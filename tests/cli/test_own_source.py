"""A user's own `.cu` file: what there is in it, what is missing, what may be left out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from memsim.api.loading import Module, load
from memsim.argument_types import ArrayArg
from memsim.arguments import check_elements
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from memsim.sass.machine_code import MachineKernel
from tests.assembler import needs_assembler
from tests.cli.conftest import Run

SOURCE = """\
#include <vector>
template <typename T, int TILE>
__global__ void shift(const T *in, T *out, int n) {
    __shared__ T tile[TILE];
    tile[threadIdx.x] = in[blockIdx.x * TILE + threadIdx.x];
    __syncthreads();
    out[blockIdx.x * TILE + threadIdx.x] = tile[(threadIdx.x + n) % TILE];
}
int main(int argc, char **argv) {
    const int N = 256;
    int by = std::stoi(argv[1]);
    float *in, *out;
    cudaMalloc(&in, N * sizeof(float));
    cudaMalloc(&out, N * sizeof(float));
    shift<float, 64><<<N / 64, 64>>>(in, out, by);
}
"""
OTHER = "__global__ void other(double *x) { x[0] = 1; }\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("memsim.compile.cuda_source.find_nvcc", lambda: None)
    (tmp_path / "mine.cu").write_text(SOURCE)
    return tmp_path / "mine.cu"


@pytest.mark.parametrize("verb", ["analyze", "list"])
def test_a_file_alone_says_what_there_is(file: Path, verb: str, memsim: Run) -> None:
    done = memsim(verb, "mine.cu")
    assert done.code == 0
    assert done.out.splitlines() == [
        "shift<typename T, int TILE>(const T *in, T *out, int n)   mine.cu:3",
        "  launched in line 15: shift<float, 64><<<N / 64, 64>>>(in, out, by)",
        "  memsim analyze mine.cu --kernel 'shift<float, 64>' --let by=...",
        "  with values for by",
    ]


def test_a_kernel_of_a_file_is_named_behind_a_colon(file: Path, memsim: Run) -> None:
    file.write_text(SOURCE.replace("std::stoi(argv[1])", "3") + OTHER)
    for target in ("mine.cu:shift", "'mine.cu:shift<float, 64>'"):
        done = memsim("analyze", target)
        assert (done.code, done.out.split(":")[0]) == (0, "shift<float,64>"), done.err
    memsim("analyze", "mine.cu:shif").refused("mine.cu: it has no kernel shif")
    memsim("analyze", "mine.cu:shift", "--kernel other").refused("shift and --kernel other are two kernels")
    memsim("analyze", "gone.cu:shift").refused("gone.cu: there is no such file")
    assert memsim("list", "mine.cu:shift").out == memsim("list", "mine.cu").out


def test_a_colon_in_the_name_of_a_file_is_of_its_name(file: Path, memsim: Run) -> None:
    file.with_name("mine.cu:shift.cu").write_text(OTHER)
    assert memsim("list", "mine.cu:shift.cu").out.startswith("other(double *x)")


def test_command_lines_repeat_the_options_for_the_compiler(file: Path, memsim: Run) -> None:
    line = "memsim analyze mine.cu -DX=1 -Iinclude --kernel 'shift<float, 64>' --let by=..."
    assert f"  {line}\n" in memsim("analyze mine.cu -I include -D X=1").out
    memsim("analyze mine.cu -I include -D X=1 --kernel shift --block 64").refused(line.replace("...", ""))
    file.write_text(SOURCE + OTHER)
    memsim("analyze mine.cu -D X=1 --block 64").refused("memsim analyze mine.cu -DX=1 --kernel other --grid")


@pytest.mark.slow
def test_what_the_source_leaves_open_is_given_by_name(file: Path, memsim: Run) -> None:
    done = memsim("analyze mine.cu --let by=2")
    assert done.code == 0, done.err
    taken = "--grid 4,1,1 --block 64,1,1 --arg 'f32[256]' --arg 'f32[256]' --arg 2"
    assert f"note: launch taken from the source: {taken}\n" in done.err
    assert memsim("analyze mine.cu").out.count("--let by=...") == 1


@pytest.mark.parametrize(
    ("let", "message"),
    [
        ("by", "'by' is not a name and its value, such as M=1024"),
        ("by=x", "is not a name and its value"),
        ("bye=2", "--let bye: no launch in the source uses it\nhint: names without a value: by\n"),
    ],
)
def test_a_name_or_value_that_is_none(file: Path, memsim: Run, let: str, message: str) -> None:
    memsim("analyze mine.cu --let", let).refused(message)
    other = memsim("analyze kernel_v4 --let by=2")
    assert other.code == 2 and "--let does not apply to a catalogue kernel" in other.err


COMPUTED = """\
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))
#define ROWS 16  // of a tile
inline int cdiv(int a, int b) { return (a + b - 1) / b; }
template <int B> __global__ void scale(float *data, float by, int n) {
    int i = (blockIdx.y * gridDim.x + blockIdx.x) * B + threadIdx.x;
    if (i < n) data[i] *= by;
}
void run(float by, int width, int height) {
    float *data;
    int n = width * height;
    cudaMalloc(&data, n * sizeof(float));
    dim3 grid(CEIL_DIV(width, ROWS), cdiv(height, std::max(ROWS, 4)));
    scale<ROWS * ROWS><<<grid, ROWS * (int)ceil(ROWS / 1.0f), height * sizeof(float)>>>(data, by, n);
}
"""


@pytest.mark.slow
def test_what_a_launch_computes_is_computed_from_values_of_names(file: Path, memsim: Run) -> None:
    file.write_text(COMPUTED)
    offered = memsim("analyze mine.cu").out.splitlines()[2]
    let = "--let width=... --let height=... --let by=..."
    assert offered == f"  memsim analyze mine.cu --kernel 'scale<256>' {let}"
    done = memsim("analyze mine.cu --let width=40 --let height=32 --let by=0.5")
    assert done.code == 0, done.err
    shape = "--grid 3,2,1 --block 256,1,1 --shared-bytes 128"
    assert f"{shape} --arg 'f32[1280]' --arg 0.5 --arg 1280" in done.err
    assert "128 B dynamic shared memory" in done.out
    open_ = memsim("analyze mine.cu --let width=40 --let by=0.5")
    assert open_.code == 2 and "needs --let height\n" in open_.err
    assert "--let height=... --let width=40 --let by=0.5\n" in open_.err


@pytest.mark.slow
def test_values_of_names_in_a_project(file: Path, memsim: Run) -> None:
    file.write_text(COMPUTED)
    config = file.with_name("memsim.toml")
    target = '[[targets]]\nfile = "mine.cu"\nlet = { width = 40, height = 32, by = 0.5 }\n'
    config.write_text(target + 'budgets = ["sectors <= 320"]\n')
    good = memsim("check")
    assert good.code == 0, good.out + good.err
    config.write_text(target + 'budgets = ["sectors <= 319"]\n')
    assert memsim("check").code == 1
    config.write_text(target.replace("40", '"many"'))
    bad = memsim("check")
    assert bad.code == 2 and "let[...]: Expected `int | float`, got `str`" in bad.out + bad.err


@pytest.mark.slow
def test_a_size_that_is_read_at_run_time_is_asked_for_by_its_name(file: Path, memsim: Run) -> None:
    at_run_time = "int many = atoi(argv[1]);\n    shift<float, 64><<<N / 64, many"
    file.write_text(SOURCE.replace("shift<float, 64><<<N / 64, 64", at_run_time))
    line = memsim("analyze mine.cu").out.splitlines()[2]
    assert line.endswith("--kernel 'shift<float, 64>' --let many=... --let by=...")
    done = memsim("analyze mine.cu --let many=64 --let by=1")
    assert done.code == 0, done.err
    assert "block (64,1,1)" in done.out


@pytest.mark.slow
def test_a_launch_that_calls_what_is_not_in_the_file(file: Path, memsim: Run) -> None:
    file.write_text(SOURCE.replace("N / 64, 64>>>", "blocks_for(N), 64, bytes()>>>"))
    line = memsim("analyze mine.cu").out.splitlines()[2]
    assert line.endswith("--grid GRID --shared-bytes SHARED_BYTES --let by=...")
    memsim("analyze mine.cu --let by=1").refused("needs --grid, --shared-bytes\n")
    assert memsim("analyze mine.cu --let by=1 --grid 4 --shared-bytes 0").code == 0


@pytest.mark.slow
def test_variables_that_never_change_are_values(file: Path, memsim: Run) -> None:
    text = SOURCE.replace("const int N = 256;", "int N = 1 << 8; size_t bytes = N * 4;")
    text = text.replace("int by = std::stoi(argv[1]);", "int by = 3;").replace("N * sizeof(float)", "bytes")
    file.write_text(text)
    line = memsim("list mine.cu").out.splitlines()[2]
    assert line.endswith(" --grid 4 --block 64 --arg 'f32[256]' --arg 'f32[256]' --arg 3")
    assert memsim("analyze mine.cu --kernel 'shift<float, 64>'").code == 0
    file.write_text(text.replace("int by = 3;", "int by = 3; if (argc > 1) by = atoi(argv[1]);"))
    assert memsim("list mine.cu").out.endswith("with values for by\n")


def test_of_several_instances_one_is_chosen(file: Path, memsim: Run) -> None:
    file.write_text(SOURCE.replace(", by);", ", 1);\n    shift<float, 32><<<8, 32>>>(in, out, 1);"))
    several = memsim("analyze mine.cu --kernel shift")
    several.refused("it launches 2 instances of shift; choose one", "--kernel 'shift<float, 32>' --grid 8")
    memsim("analyze mine.cu --kernel shifted").refused("it has no kernel shifted")


@pytest.mark.slow
def test_elements_of_a_byte_are_as_many_as_its_bytes(file: Path, memsim: Run) -> None:
    """No sizeof says so; of larger elements there are as many as fit."""
    bytes_ = SOURCE.replace("const int N = 256", "int N = argc > 1 ? std::stoi(argv[2]) : 256")
    bytes_ = bytes_.replace(" * sizeof(float)", "").replace("by);", "1);")
    file.write_text(bytes_.replace("float", "char"))
    assert memsim("list mine.cu").out.splitlines()[-1] == "  with values for N"
    assert "--arg 'i8[512]'" in memsim("bound mine.cu --let N=512").err
    file.write_text(bytes_)
    assert memsim("list mine.cu").out.splitlines()[-1] == "  with values for N"
    assert "--arg 'f32[128]'" in memsim("bound mine.cu --let N=512").err


@pytest.mark.slow
def test_what_the_launch_says_may_be_left_out(file: Path, memsim: Run) -> None:
    arguments = "--arg 'f32[256]' --arg 'f32[256]' --arg 1"
    short = memsim("analyze mine.cu", arguments)
    assert short.code == 0, short.err
    whole = memsim("analyze mine.cu --kernel 'shift<float, 64>' --grid 4 --block 64", arguments)
    assert short.out == whole.out
    assert "shift<float,64>" in short.out and "host code set aside" in short.out


@pytest.mark.slow
def test_another_instance_is_made_when_it_is_asked_for(file: Path, memsim: Run) -> None:
    words = "--block 32 --arg 'f64[64]' --arg 'f64[64]' --arg 1"
    done = memsim("analyze mine.cu --grid 2x1 --kernel 'shift<double, 32>'", words)
    assert done.code == 0, done.err
    assert "shift<double,32>" in done.out and "grid (2,1,1)" in done.out
    bad = memsim("analyze mine.cu --grid 2 --kernel 'shift<what, 32>'", words)
    assert bad.code == 2 and 'identifier "what" is undefined' in bad.err


def test_all_that_is_missing_is_said_at_once(file: Path, memsim: Run) -> None:
    file.write_text(SOURCE.replace("N / 64, 64>>>", "blocks, threads>>>"))
    done = memsim("analyze mine.cu --arg 'f32[256]'")
    assert done.code == 2
    needs = "needs --arg for T *out, --arg for int n, --let blocks, --let threads"
    assert needs in done.err
    assert "--kernel 'shift<float, 64>' --let blocks=... --let threads=... --let by=..." in done.err


@pytest.mark.slow
def test_of_several_kernels_one_is_chosen(file: Path, memsim: Run) -> None:
    file.write_text(SOURCE + OTHER)
    memsim("analyze mine.cu --arg 'f64[4]'").refused("has 2 kernels", "--kernel other")
    good = memsim("analyze mine.cu --kernel other --grid 1 --block 32 --arg 'f64[4]'")
    assert good.code == 0, good.err


def test_an_array_of_other_elements_is_refused(file: Path, memsim: Run) -> None:
    file.write_text(OTHER)
    bad = memsim("analyze mine.cu --grid 1 --block 32 --arg 'f32[4]'")
    assert bad.code == 2
    assert "x is double *, but got an array of float32" in bad.err
    assert memsim("analyze mine.cu --grid 1 --block 32 --arg 'f64[4]'").code == 0


def test_smaller_elements_may_be_loaded_as_vectors() -> None:
    """16 bytes of halves as `int4`; but not larger elements, nor others of the same size."""
    for dtype in (np.float16, np.int8, np.int32):
        check_elements([np.zeros(16, dtype)], ["a"], ["const int4 *"])
    for declared, dtype in (("int4 *", np.float32), ("float2 *", np.float64), ("int *", np.float16)):
        with pytest.raises(MemsimError, match="but got an array of"):
            check_elements([np.zeros(16, dtype)], ["a"], [declared])


def test_a_buffer_of_bytes_may_be_of_any_elements() -> None:
    """If it is whole elements: packed sequences, hashes, images."""
    for declared in ("const uint32_t *", "float *", "double2 *", "short *"):
        for array in (np.zeros(64, np.uint8), ArrayArg((8, 8), "int8")):
            check_elements([array], ["a"], [declared])
    with pytest.raises(
        MemsimError, match=r"a is uint32_t \*, but got an array of uint8, and 63 bytes are no mult"
    ):
        check_elements([np.zeros(63, np.uint8)], ["a"], ["uint32_t *"])
    with pytest.raises(MemsimError, match=r"but got an array of uint16\n"):
        check_elements([np.zeros(64, np.uint16)], ["a"], ["uint32_t *"])


def test_one_argument_too_many_is_told_before_their_elements(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text(OTHER)
    kernel = load(tmp_path / "mine.cu")["other"]
    with pytest.raises(MemsimError, match="takes 1 arguments, but 2 were given"):
        analyze(kernel, 1, 32, [np.zeros(4, np.float32), np.zeros(4, np.float64)])
    with pytest.raises(MemsimError, match="got an array of float32"):
        analyze(kernel, 1, 32, [np.zeros(4, np.float32)])


@pytest.mark.slow
def test_a_file_without_kernels_is_told(file: Path, memsim: Run) -> None:
    file.write_text("int main() {}\n")
    for verb in ("analyze", "list"):
        memsim(verb, "mine.cu").refused("no kernel was found in it")
    file.write_text("#define K(name) __global__ void name(float *x) { x[N] = 0; }\nK(one)\nK(two)\n")
    line = "memsim analyze mine.cu -DN=3 --kernel two --grid GRID --block BLOCK --arg ARG\n"
    assert f"two(8 B)\n  {line}" in memsim("analyze mine.cu -D N=3").out
    file.write_text("__global__ void one(float *x) {\n    x[0] = 1\n}\n")
    for verb in ("analyze", "list"):
        memsim(verb, "mine.cu").refused('mine.cu:3: does not compile: expected a ";"')
    assert memsim("list absent.cu").code == 2


def test_an_instance_that_nothing_launches_says_what_it_needs(file: Path, memsim: Run) -> None:
    done = memsim("analyze mine.cu --kernel 'shift<double, 8>' --grid 4")
    assert done.code == 2
    assert "needs --block, --arg for const T *in, --arg for T *out, --arg for int n" in done.err
    assert "--kernel 'shift<double, 8>' --grid 4 --block BLOCK --arg 'f64[256]'" in done.err
    assert "has no kernel" not in done.err
    assert "has no kernel shif<int>" in memsim("analyze mine.cu --kernel 'shif<int>'").err


@pytest.mark.slow
def test_a_templates_elements_are_those_of_the_instance(file: Path, memsim: Run) -> None:
    arguments = "--arg 'f32[256]' --arg 'f32[256]' --arg 1"
    assert memsim("analyze mine.cu", arguments).code == 0
    memsim("analyze mine.cu --arg 'f32[256]' --arg 'f64[256]' --arg 1").refused(
        "out is float *, but got an array of float64"
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("verb", ["analyze", "list"])
def test_a_file_of_machine_code_says_what_there_is(file: Path, verb: str, memsim: Run) -> None:
    from memsim.compile.cuda_source import compile_cubin

    (file.parent / "one.cubin").write_bytes(compile_cubin(OTHER).cubin)
    (file.parent / "two.cubin").write_bytes(compile_cubin(OTHER + OTHER.replace("other", "more")).cubin)
    one, two = (memsim(verb, f"{name}.cubin") for name in ("one", "two"))
    assert (one.code, two.code) == (0, 0)
    assert one.out == "other(8 B)\n  memsim analyze one.cubin --grid GRID --block BLOCK --arg ARG\n"
    assert "memsim analyze two.cubin --kernel more --grid GRID --block BLOCK --arg ARG" in two.out
    assert memsim(verb, "three.cubin").code == 2


@needs_assembler
@pytest.mark.parametrize("verb", ["analyze", "list"])
def test_a_ptx_file_says_what_there_is(file: Path, verb: str, memsim: Run) -> None:
    from studies.kernel_ptx import compile_cuda

    (file.parent / "one.ptx").write_text(compile_cuda(OTHER))
    done = memsim(verb, "one.ptx")
    assert done.code == 0
    assert done.out == "other(8 B)\n  memsim analyze one.ptx --grid GRID --block BLOCK --arg ARG\n"
    (file.parent / "two.ptx").write_bytes(b"\xff")
    memsim(verb, "two.ptx").refused("it is not UTF-8 text")


TILED = """\
#ifndef TILE
#define TILE 32
#endif
__global__ void fill(float *x) { x[blockIdx.x * TILE + threadIdx.x] = 1; }
int main() {
    float *x;
    cudaMalloc(&x, 1024 * sizeof(float));
    fill<<<1024 / TILE, TILE>>>(x);
}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("option", ["", "-D TILE=64"])
@pytest.mark.parametrize("built", ["", "-DTILE=128"])
def test_a_macro_that_is_given_changes_the_launch_as_it_changes_the_code(
    file: Path, memsim: Run, option: str, built: str
) -> None:
    file.write_text(TILED)
    (file.parent / "compile_commands.json").write_text(
        f'[{{"directory": ".", "file": "mine.cu", "command": "nvcc {built} mine.cu"}}]'
    )
    done = memsim("analyze mine.cu --arg 'f32[1024]'", option)
    assert "128 global sectors, all needed" in done.out, done.err


MATRICES = """\
typedef struct { int width, stride; float *elements; } Matrix;
__global__ void scale(Matrix m, float2 by) {
    m.elements[threadIdx.x * m.stride + blockIdx.x] *= by.x + by.y;
}
__global__ void clear(float *x) { x[blockIdx.x * 32 + threadIdx.x] = 0; }
int main() {
    Matrix m;
    m.width = m.stride = 32;
    cudaMalloc(&m.elements, 1024 * sizeof(float));
    scale<<<32, 32>>>(m, make_float2(1, 2));
    clear<<<32, 32>>>(m.elements);
}
"""


@pytest.mark.slow
def test_a_struct_is_to_be_written_and_a_vector_offered_by_its_members(file: Path, memsim: Run) -> None:
    file.write_text(MATRICES)
    said = memsim("analyze mine.cu").out
    words = "--kernel scale --grid 32 --block 32"
    assert f"{words} --arg m --arg 'f32(by.x,by.y)'\n" in said
    assert "with values for m, by.x, by.y\n" in said
    assert "--kernel clear --grid 32 --block 32 --arg 'f32[1024]'\n" in said
    memsim("analyze mine.cu --kernel scale").refused("needs --arg for Matrix m, --arg for float2 by", words)
    done = memsim("analyze mine.cu --kernel scale --arg 'i32(32,32)+f32[1024]' --arg 'f32(1,2)'")
    assert "32.0 sectors per request instead of 4.0" in done.out, done.err


DISPATCHED = """\
#include <torch/extension.h>
namespace {
template <typename scalar_t> __global__ void twice(scalar_t *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
__global__ void other(float *x) { x[threadIdx.x] = 0; }
}
void run(at::Tensor x) {
    const int n = x.numel();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
        twice<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), n);
    });
    other<<<1, 32>>>(x.data_ptr<float>());
}
"""


@pytest.mark.slow
def test_an_instance_of_a_dispatched_template_is_named_and_has_the_launch(file: Path, memsim: Run) -> None:
    file.write_text(DISPATCHED)
    assert "with values for scalar_t, n, x_BYTES\n" in memsim("analyze mine.cu").out
    done = memsim("analyze mine.cu --kernel 'twice<double>' --let n=1000 --let x_SIZE=1000")
    assert "(anonymous namespace)::twice<double>: coalesced: 500 global sectors" in done.out, done.err
    assert "--grid 4,1,1 --block 256,1,1 --arg 'f64[1000]' --arg 1000" in done.err
    memsim("analyze mine.cu --kernel 'thrice<double>' --grid 1 --block 32").refused(
        "no kernel 'thrice<double>'"
    )


def test_names_in_an_anonymous_namespace_change_with_each_compilation() -> None:
    def compiled(digest: str, *kernels: str) -> Module:
        machines = {
            f"_ZN10_GLOBAL__{digest}{kernel}": cast(
                "MachineKernel", SimpleNamespace(name=kernel, own_source={})
            )
            for kernel in kernels
        }
        instance = partial(compiled, digest[::-1], "5otherEPf", "5twiceIdEEvPT_i")
        return Module(machines, {"k.cu": DISPATCHED}, lambda _: instance())

    found = compiled("N12", "5otherEPf")["twice<double>"]
    assert found.machine.name.startswith("5twice")
    with pytest.raises(MemsimError, match="no kernel 'thrice<double>'"):
        compiled("N12", "5otherEPf")["thrice<double>"]


STENCIL = """\
#pragma once
#include "types.cuh"
#ifndef BLOCK
#define BLOCK 64
#endif
namespace sim {
template <int R> __global__ void shift(const real *in, real *out, Grid g) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i + R < g.nx) out[i] = in[i + R] * g.dx;
}
}
"""
TYPES = """\
using real = float;
struct Grid { int nx, ny; real dx; };
"""
STEP = """\
#include "stencil.cuh"
void step(float *a, float *b, Grid g) { sim::shift<2><<<1024 / BLOCK, BLOCK>>>(a, b, g); }
"""


@pytest.fixture
def headers(file: Path) -> Path:
    """`mine.cu` launches a template of a header in another folder, whose types are in a header of its own."""
    (file.parent / "include").mkdir()
    (file.parent / "include/stencil.cuh").write_text(STENCIL)
    (file.parent / "include/types.cuh").write_text(TYPES)
    file.write_text(STEP)
    return file


@pytest.mark.slow
def test_kernels_of_headers_that_a_source_launches_are_its_own(headers: Path, memsim: Run) -> None:
    assert memsim("analyze mine.cu -I include").out.splitlines() == [
        "sim::shift<int R>(const real *in, real *out, Grid g)   stencil.cuh:7",
        "  launched in line 2: sim::shift<2><<<1024 / BLOCK, BLOCK>>>(a, b, g)",
        "  memsim analyze mine.cu -Iinclude --kernel 'sim::shift<2>' --grid 16 --block 64"
        " --arg 'f32[in_SIZE]' --arg 'f32[out_SIZE]' --arg g",
        "  with values for in_SIZE, out_SIZE, g",
    ]
    arguments = "--arg 'f32[1024]' --arg 'f32[1024]' --arg 'i32(1024,1)+f32(0.5)'"
    for kernel in ("", "--kernel 'shift<2>'", "--kernel 'sim::shift<2>' -D BLOCK=128"):
        done = memsim("analyze mine.cu -I include", kernel, arguments)
        assert done.out.startswith("sim::shift<2>: worst is the load at stencil.cuh:9: 5.0 sectors"), done.err
    memsim("analyze mine.cu").refused("no kernel was found in it", "a header that -I leads to")


@pytest.mark.slow
def test_kernels_that_a_header_launches_itself_are_the_source_s_too(headers: Path, memsim: Run) -> None:
    stencil = headers.parent / "include/stencil.cuh"
    run = "inline void step(float *a, float *b, Grid g) { sim::shift<2><<<16, BLOCK>>>(a, b, g); }\n"
    stencil.write_text(STENCIL + run)
    own = "__global__ void zero(float *x) { x[threadIdx.x] = 0; }\n"
    go = "void go(float *x) { zero<<<1, 32>>>(x); step(x, x, {}); }\n"
    headers.write_text(f'#include "stencil.cuh"\n{own}{go}')
    listed = [line for line in memsim("analyze mine.cu -I include").out.splitlines() if line[0] != " "]
    assert listed == [
        "zero(float *x)   mine.cu:2",
        "sim::shift<int R>(const real *in, real *out, Grid g)   stencil.cuh:7",
    ]
    done = memsim(
        "analyze mine.cu -I include --kernel 'sim::shift<2>' --grid 16 --block 64",
        "--arg 'f32[1024]' --arg 'f32[1024]' --arg 'i32(1024,1)+f32(0.5)'",
    )
    assert done.out.startswith("sim::shift<2>: worst is the load at stencil.cuh:9"), done.err
    stencil.write_text(STENCIL)  # launched by nobody
    assert memsim("analyze mine.cu -I include --arg 'f32[32]'").out.startswith("zero: ")


@pytest.mark.slow
def test_the_chip_s_own_instructions_are_compiled_where_they_are_asked_for(file: Path, memsim: Run) -> None:
    guarded = "#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n#define STEP 2\n#else\n#define STEP 1\n#endif\n"
    file.write_text(guarded + "__global__ void k(float *x) { x[STEP * threadIdx.x] = 1; }\n")
    launch = "analyze mine.cu --grid 1 --block 32 --arg 'f32[64]' --json"
    for chip, sectors in (("", 4), ("--arch sm_90", 4), ("--arch sm_90a", 8)):
        document = memsim(launch, chip).document()
        (access,) = document["sites"]
        assert (document["arch"], access["sectors"]) == ("sm_90", sectors)


@pytest.mark.slow
def test_another_instance_of_a_headers_template(headers: Path, memsim: Run) -> None:
    launch = "--grid 16 --block 64 --arg 'f32[1024]' --arg 'f32[1024]' --arg 'i32(1024,1)+f32(0.5)'"
    done = memsim("analyze mine.cu -I include --kernel 'sim::shift<8>'", launch)
    assert done.out.startswith("sim::shift<8>: "), done.err
    headers.write_text('#include "stencil.cuh"\n')
    done = memsim("analyze mine.cu -I include --kernel 'sim::shift<8>'", launch)
    assert done.out.startswith("sim::shift<8>: "), done.err
    memsim("analyze mine.cu -I include --kernel 'sim::swift<8>'", launch).refused("no kernel 'sim::swift<8>'")
