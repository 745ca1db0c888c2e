"""Files with host code in them: what is set aside, what stays, and whose errors are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memsim.compile import device_code
from memsim.compile.compilers import NvrtcResult, find_nvcc, run_nvrtc
from memsim.compile.cuda_source import compile_cubin
from memsim.compile.host_code import set_aside
from memsim.errors import MemsimError
from memsim.sass.cubin import read_cubin
from tests.compile.samples import GOOD, files_of

DEVICE = """\
__constant__ float weights[4];
template <typename T> struct Pair {
    T a, b;
    Pair(const std::vector<T> &from) : a(from[0]), b(from[1]) {}
    __device__ T sum() const { return a + b; }
};
__device__ float twice(float x) { return 2.0f * x; }
__global__ void scale(Pair<float> *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i].a = twice(x[i].sum()) * weights[i % 4] + std::max(FACTOR, 1.0f);
}
"""
HOST = """\
#include <cstdio>
#include <iostream>
#include <vector>
#include <torch/extension.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#define FACTOR 3.0f
#define CHECK(call) do { if ((call) != cudaSuccess) std::exit(1); } while (0)
"""
MAIN = """\
static std::vector<int> sizes = {1, 2};
torch::Tensor forward(torch::Tensor x) { CHECK(cudaDeviceSynchronize()); return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
int main(int argc, char **argv) {
    scale<<<1, 32>>>(nullptr, 0);
    std::cout << "done" << std::endl;
}
"""
WHOLE = HOST + DEVICE + MAIN


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The instances that NVRTC is asked for, run by run."""
    asked: list[tuple[str, ...]] = []

    def run(*values: Any, **more: Any) -> NvrtcResult:
        asked.append(tuple(more.get("instances", values[5] if len(values) > 5 else ())))
        return run_nvrtc(*values, **more)

    monkeypatch.setattr("memsim.compile.cuda_source.run_nvrtc", run)
    return asked


def kernels(text: str, *options: str, **more: list[str]) -> list[str]:
    return list(read_cubin(compile_cubin(text, options, **more).cubin).kernels)  # type: ignore[arg-type]


def test_what_no_kernel_needs_is_blank_and_the_rest_stays_in_place() -> None:
    text = set_aside({"a.cu": WHOLE}, "a.cu")["a.cu"]
    kept, whole = text.splitlines(), WHOLE.splitlines()
    assert [len(line) for line in kept] == [len(line) for line in whole]
    for line in ("__constant__ float weights[4];", "    T a, b;", "#define FACTOR 3.0f"):
        assert kept[whole.index(line)] == line
    for word in ("main", "PYBIND11", "forward", "sizes", "from[0]"):
        assert word not in text
    assert "__device__ float twice" in text and "sum() const" in text


@pytest.mark.slow
def test_a_file_with_main_compiles_without_nvcc(no_nvcc: None) -> None:
    compiled = compile_cubin(WHOLE)
    assert compiled.compiler.endswith(", host code set aside")
    assert [name for name in read_cubin(compiled.cubin).kernels if "scale" in name]


def test_what_nvrtc_takes_as_it_is_is_not_touched(no_nvcc: None) -> None:
    assert "set aside" not in compile_cubin(GOOD).compiler


@pytest.mark.slow
def test_tree_sitter_is_imported_only_where_host_code_stands_in_the_way() -> None:
    code = (
        "import sys, memsim\nfrom memsim.compile.cuda_source import compile_cubin\n"
        "compile_cubin('__global__ void k() {}\\n')\nprint('tree_sitter' in sys.modules)\n"
        "compile_cubin('#include <vector>\\n__global__ void k() {}\\n')\n"
        "print('tree_sitter' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("wrong", "line", "column"),
    [("wrong", 15, 42), pytest.param("FACTOR + also", 18, 80, marks=pytest.mark.slow)],
)
def test_an_error_of_device_code_keeps_its_place(no_nvcc: None, wrong: str, line: int, column: int) -> None:
    old = {"wrong": "2.0f", "FACTOR + also": "FACTOR"}[wrong]
    text = HOST + DEVICE.replace(old, wrong, 1) + MAIN
    with pytest.raises(MemsimError) as caught:
        compile_cubin(text, name="mine.cu")
    error = caught.value
    name = wrong.split()[-1]
    assert error.message == f'does not compile: identifier "{name}" is undefined'
    assert (error.file, error.line, error.column) == ("mine.cu", line, column)
    assert text.splitlines()[line - 1][column - 1 :].startswith(name)


@pytest.mark.some(1)
@pytest.mark.parametrize(("body", "says"), [("x[0] = nothing;", "nothing"), ("x[0] = two();", None)])
def test_a_host_function_beside_it_hides_no_error(no_nvcc: None, body: str, says: str | None) -> None:
    """There is no main(): NVRTC complains of the function first."""
    text = f"constexpr int two() {{ return 2; }}\n__global__ void k(int *x) {{ {body} }}\n"
    if says is None:
        assert read_cubin(compile_cubin(text).cubin).kernels
        return
    with pytest.raises(MemsimError, match=says) as caught:
        compile_cubin(text)
    assert "host function" not in str(caught.value)


@pytest.mark.slow
def test_limits_are_those_of_the_library_if_it_has_them(no_nvcc: None) -> None:
    """Without a warning that a macro is defined twice, and the same without libcu++'s headers."""
    body = "o[0] = SHRT_MIN + INT_MAX + UINT32_MAX + CHAR_BIT + FLT_MAX"
    for more in ("", " + std::numeric_limits<int>::max()"):
        text = f"#include <iostream>\n__global__ void k(float *o) {{ {body}{more}; }}\nint main() {{}}\n"
        compiled = compile_cubin(text)
        assert "host code set aside" in compiled.compiler and "redefinition" not in compiled.log


@pytest.mark.slow
def test_lines_of_a_header_are_its_own(tmp_path: Path, no_nvcc: None) -> None:
    (tmp_path / "parts.h").write_text(
        "#pragma once\n#include <string>\nstd::string name();\n"
        "inline __device__ float half_of(const float *x) { return *x / 2; }\n"
    )
    (tmp_path / "k.cu").write_text(
        '#include "parts.h"\n#include <iostream>\n'
        "__global__ void k(float *x) { x[0] = half_of(x + 1); }\nint main() {}\n"
    )
    assert files_of(compile_cubin(tmp_path / "k.cu", name="k.cu")) == ["k.cu", "parts.h"]


@pytest.mark.slow
def test_headers_that_are_missing_are_told_all_at_once(tmp_path: Path, no_nvcc: None) -> None:
    text = (
        '#include <vector>\n#include "one.h"\n#include "two.h"\n__global__ void k(float *x) { x[0] = ONE; }\n'
    )
    (tmp_path / "k.cu").write_text(text)
    with pytest.raises(MemsimError) as caught:
        compile_cubin(tmp_path / "k.cu", name="k.cu")
    assert "2 headers are missing: one.h (k.cu:2), two.h (k.cu:3)" in caught.value.message
    assert (caught.value.file, caught.value.line) == ("k.cu", 2)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "one.h").write_text("#define ONE 1\n")
    found = compile_cubin(tmp_path / "k.cu", name="k.cu")  # two.h is of no use to the kernel
    assert any("include/one.h" in note for note in found.notes)


def test_kernels_that_a_macro_makes() -> None:
    text = (
        "#include <vector>\n#define KERNEL(name, op) __global__ void name(int *x) { x[0] = x[1] op x[2]; }\n"
    )
    calls = "KERNEL(add, +)\nKERNEL(subtract, -)\nTORCH_LIBRARY(mine, m) { m.def(1); }\n"
    assert len(kernels(text + calls)) == 2


def test_code_that_is_no_cpp_spoils_only_itself() -> None:
    text = "#include <vector>\nREGISTER(a, { b: 1 } %) what ever;\n__global__ void k(int *x) { x[0] = 1; }\n"
    assert len(kernels(text + "int main() { @ }\n")) == 1


MATRIX = """\
#include <iostream>
#define HOST_DEVICE __host__ __device__
#define HOST_ONLY __host__
template <typename T, int N> struct vec { T at[N]; };
template <typename T, int N, int M> struct mat {
    vec<T, N> m[M];
    HOST_DEVICE mat(T scalar) { for (int i = 0; i < M; i++) m[i].at[0] = scalar; }
    HOST_DEVICE static constexpr mat<T, N, M> zero() { return mat<T, N, M>((T)0); }
    HOST_ONLY static mat<T, N, M> read() { mat<T, N, M> x(1); std::cin >> x.m[0].at[0]; return x; }
    HOST_DEVICE vec<T, N> operator[](int i) const { return m[i]; }
};
extern "C" __global__ void k(float *o) { o[threadIdx.x] = mat<float, 3, 2>::zero()[1].at[0]; }
int main() { std::cout << "done"; }
"""


@pytest.mark.slow
def test_a_macro_before_a_type_with_arguments_is_no_type(no_nvcc: None) -> None:
    """The parser alone would take `mat<T, N, M>` for what is declared, and cut the function's body off."""
    text = set_aside({"a.cu": MATRIX}, "a.cu")["a.cu"].splitlines()
    whole = MATRIX.splitlines()
    assert text[4:8] == whole[4:8] and text[9] == whole[9]
    assert not text[8].strip() and not text[-1].strip()  # `read` and `main` are the host's
    assert kernels(MATRIX) == ["k"]


@pytest.mark.slow
def test_operators_and_standard_names_of_device_code() -> None:
    text = (
        "#include <limits>\n#include <cmath>\n#include <iostream>\nusing namespace std;\n"
        "__device__ float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }\n"
        "__global__ void k(float2 *x) { x[0] = 2.0f * x[1];\n"
        "x[2].x = std::numeric_limits<float>::max() + M_PI; }\n"
        "__global__ void j(uint32_t *x) { assert(x[0] < UINT_MAX); x[0] = std::min(x[1], x[2]); }\n"
    )
    assert len(kernels(text)) == 2


@pytest.mark.slow
def test_instances_that_the_source_launches_and_those_that_are_asked_for(no_nvcc: None) -> None:
    text = (
        "#include <vector>\ntemplate <typename T, int N> __global__ void fill(T *x) { x[threadIdx.x] = N; }\n"
        "int main() { const int W = 4; float *x; fill<float, W * 2><<<1, 32>>>(x); }\n"
    )
    assert kernels(text) == ["_Z4fillIfLi8EEvPT_"]
    assert kernels(text, instances=["fill<double, 3>"]) == ["_Z4fillIdLi3EEvPT_"]
    with pytest.raises(
        MemsimError, match=r'fill<what, ?3> cannot be instantiated: identifier "what" is undefined'
    ):
        compile_cubin(text, instances=["fill<what, 3>"])


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
def test_nvcc_makes_instances_too() -> None:
    text = "template <typename T, int N> __global__ void fill(T *x) { x[threadIdx.x] = N; }\nint main() {}\n"
    compiled = compile_cubin(text, compiler="nvcc", instances=["fill<double, 3>"])
    assert compiled.compiler.startswith("nvcc ")
    assert list(read_cubin(compiled.cubin).kernels) == ["_Z4fillIdLi3EEvPT_"]


@pytest.mark.slow
def test_options_of_nvcc_are_translated_or_ignored(no_nvcc: None) -> None:
    compiled = compile_cubin(WHOLE, ["-O3", "-Xcompiler", "-fPIC", "--expt-relaxed-constexpr", "-lcublas"])
    assert compiled.notes == (
        "options ignored because they do not change device code: "
        "-O3 -Xcompiler -fPIC --expt-relaxed-constexpr -lcublas",
    )
    with pytest.raises(MemsimError, match="does not accept these options"):
        compile_cubin(WHOLE, ["--no-such-option"])


@pytest.mark.slow
def test_options_of_a_build_are_read(tmp_path: Path, no_nvcc: None) -> None:
    source = tmp_path / "src" / "k.cu"
    source.parent.mkdir()
    source.write_text(
        "#include <vector>\n#include <inside.h>\n__global__ void k(float *x) { x[0] = FACTOR + INSIDE; }\n"
    )
    with pytest.raises(MemsimError, match=r"inside\.h"):
        compile_cubin(source)
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "inside.h").write_text("#define INSIDE 1\n")
    (tmp_path / "build").mkdir()
    command = "nvcc -DFACTOR=2 -I../headers -O3 -gencode=arch=compute_90a,code=[sm_90a] -c ../src/k.cu -o k.o"
    entry = {"directory": str(tmp_path / "build"), "file": "../src/k.cu", "command": command}
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps([entry]))
    compiled = compile_cubin(source)
    assert any("compile_commands.json" in note for note in compiled.notes) and compiled.arch == "sm_90a"
    (tmp_path / "build" / "compile_commands.json").write_text("{ no json")
    with pytest.raises(MemsimError, match=r"inside\.h"):
        compile_cubin(source)


BARRIER = """
#include <iostream>
extern "C" __global__ void turn(float *out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads()%s
    out[threadIdx.x] = tile[63 - threadIdx.x];
}
int main() { std::cout << 1; }
"""


@pytest.mark.slow
def test_a_call_without_its_semicolon_is_an_error_and_not_set_aside(tmp_path: Path) -> None:
    source = tmp_path / "turn.cu"
    source.write_text(BARRIER % "")
    with pytest.raises(MemsimError) as error:
        compile_cubin(source, compiler="nvrtc")
    assert error.value.line == 7
    source.write_text(BARRIER % ";")
    assert compile_cubin(source, compiler="nvrtc").compiler.endswith("host code set aside")


LEGACY = """\ufeff#include <cstdio>
#define EXTENSION __extension__
const float one = 1.5f;
const float less = -one;
typedef struct {
    EXTENSION union {
        struct { float x, y; } parts;
        float2 both;
    };
    int count;
} Pair;
__global__ void k(Pair *pairs, float *out) {
    register float sum = pairs[0].both.x + pairs[0].parts.y;
    __asm__ __volatile__("add.f32 %0, %0, %1;" : "+f"(sum) : "f"(one));
    out[threadIdx.x] = sum * one + less;
}
int main() { k<<<1, 32>>>(0, 0); }
"""


@pytest.mark.slow
def test_older_code_compiles(tmp_path: Path, no_nvcc: None) -> None:
    """A byte order mark, constants of constants, `register`, words of gcc's in front of a union."""
    file = tmp_path / "legacy.cu"
    file.write_text(LEGACY, encoding="utf-8")
    assert set(read_cubin(compile_cubin(file).cubin).kernels) == {"_Z1kP4PairPf"}


@pytest.mark.slow
def test_instances_that_do_not_compile_are_told_and_the_others_are_made(no_nvcc: None) -> None:
    code = """
#include <cstdio>
template <int N> __global__ void k(int *x) { static_assert(N < 8, ""); x[0] = N; }
void run(int *x) {
    k<1><<<1, 1>>>(x);
    k<9><<<1, 1>>>(x);
    k<3><<<1, 1>>>(x);
    k<unknown><<<1, 1>>>(x);
    k<5><<<1, 1>>>(x);
}
"""
    made = compile_cubin(code)
    assert set(read_cubin(made.cubin).kernels) == {f"_Z1kILi{n}EEvPi" for n in (1, 3, 5)}
    assert made.notes[-1] == "launched in the source but not compiled: k<9>, k<unknown>"


def test_an_instance_that_is_written_by_a_macro_is_known_by_its_value(
    no_nvcc: None, runs: list[tuple[str, ...]]
) -> None:
    launched = "".join(f"    k<{n}><<<1, 1>>>(x);\n" for n in ("1", "TILE", "2", "3", "4"))
    code = f"""
#include <cstdio>
#define TILE 32
template <int N> __global__ void k(int *x) {{ x[0] = N; }}
template <int N, typename T> __global__ void two(T *x) {{ x[0] = N; }}
void run(int *x) {{
{launched}    two<TILE><<<1, 1>>>(x);
}}
"""
    made = compile_cubin(code)
    assert {f"_Z1kILi{n}EEvPi" for n in (1, 2, 3, 4, 32)} <= set(read_cubin(made.cubin).kernels)
    assert made.notes[-1] == "launched in the source but not compiled: two<32>"
    assert runs[-1] == tuple(f"k<{n}>" for n in (1, 32, 2, 3, 4))
    assert len(runs) <= 4


@pytest.mark.slow
def test_an_error_of_no_instance_is_not_looked_for_in_each(
    no_nvcc: None, runs: list[tuple[str, ...]]
) -> None:
    launched = "".join(f"k<{n}><<<1, 1>>>(x); " for n in range(20))
    code = f"""
#include <cstdio>
template <int N> __global__ void k(int *x) {{ x[0] = N; }}
__global__ void wrong(int *x) {{ x[0] = unknown; }}
void run(int *x) {{ {launched} }}
"""
    with pytest.raises(MemsimError, match='"unknown" is undefined'):
        compile_cubin(code)
    assert len(runs) == 3 and runs[-1] == ()
    assert len(read_cubin(compile_cubin(code.replace("unknown", "7")).cubin).kernels) == 21


@pytest.mark.some(1)
@pytest.mark.parametrize(("included", "value"), [("#include <cuda.h>", 7), ("", 5)])
def test_the_release_is_known_where_the_driver_s_header_is_included(
    no_nvcc: None, included: str, value: int
) -> None:
    code = f"""
#include <vector>
{included}
#if CUDA_VERSION >= 12000
#define VALUE 7
#else
#define VALUE 5
#endif
template <int N> __global__ void k(int *x) {{ x[0] = N; }}
void run(int *x) {{ k<VALUE><<<1, 1>>>(x); }}
"""
    assert list(read_cubin(compile_cubin(code).cubin).kernels) == [f"_Z1kILi{value}EEvPi"]


@pytest.mark.parametrize("header", ["cuda.h", "cudaTypedefs.h"])
def test_a_tensor_map_is_a_type_of_the_driver_s(no_nvcc: None, header: str) -> None:
    code = (
        f"#include <{header}>"
        + """
#include <vector>
static PFN_cuTensorMapEncodeTiled_v12000 encode;
__global__ void k(const __grid_constant__ CUtensorMap m, int *x) { x[0] = 1; }
void run(CUtensorMap m, int *x) { k<<<1, 1>>>(m, x); }
"""
    )
    assert list(read_cubin(compile_cubin(code).cubin).kernels) == ["_Z1k14CUtensorMap_stPi"]


ASSERTED = """\
#include <iostream>
#include <vector>
struct Row { float x[4]; std::vector<int> more; };
constexpr int BLOCK = 64, WARP = 32;
static_assert(sizeof(Row) == 40, "of the host, whose vector has no size here");
static_assert(BLOCK % WARP == 0, "whole warps");
__global__ void k(float *x) { x[threadIdx.x] = 1; }
int main() { k<<<1, BLOCK>>>(nullptr); std::cout << sizeof(Row); }
"""


@pytest.mark.slow
def test_an_assertion_beside_host_code_is_held(no_nvcc: None) -> None:
    """Of constants that only the host has, too; one that cannot be read without the host's headers is not."""
    assert kernels(ASSERTED) == ["_Z1kPf"]
    with pytest.raises(MemsimError, match='static assertion failed with "whole warps"') as caught:
        compile_cubin(ASSERTED.replace("BLOCK = 64", "BLOCK = 48"))
    assert caught.value.line == 6
    assert "vector" not in str(caught.value)


@pytest.mark.slow
def test_an_assertion_of_a_header_is_held(tmp_path: Path, no_nvcc: None) -> None:
    (tmp_path / "sizes.h").write_text("enum { TILE = 4 };\nstatic_assert(TILE == 4);\n")
    file = tmp_path / "k.cu"
    file.write_text('#include <vector>\n#include "sizes.h"\n__global__ void k(int *x) { *x = TILE; }\n')
    assert kernels(file) == ["_Z1kPi"]
    (tmp_path / "sizes.h").write_text("enum { TILE = 4 };\nstatic_assert(TILE == 8);\n")
    with pytest.raises(MemsimError, match="static assertion failed") as caught:
        compile_cubin(file)
    assert (Path(caught.value.file or "").name, caught.value.line) == ("sizes.h", 2)


def test_curand_kernel_is_found_in_a_wheel_of_its_own(
    tmp_path: Path, no_nvcc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wheel").mkdir()
    (tmp_path / "wheel" / "curand_kernel.h").write_text("struct curandState { int seed; };\n")
    path = tmp_path / "project" / "k.cu"
    path.parent.mkdir()
    path.write_text("#include <curand_kernel.h>\n__global__ void k(curandState *s) { s->seed = 1; }\n")
    monkeypatch.setattr(device_code, "curand_folders", list)
    with pytest.raises(MemsimError, match="cannot open source file") as caught:
        compile_cubin(path, arch="sm_90")
    assert "nvidia-curand-cu12" in str(caught.value.hint)
    monkeypatch.setattr(device_code, "curand_folders", lambda: [tmp_path / "wheel"])
    assert compile_cubin(path, arch="sm_90").cubin


def test_a_class_behind_an_alignment_in_parentheses_stays(tmp_path: Path, no_nvcc: None) -> None:
    """`ALIGNED(sizeof(T) * N)` in front of its name is no function."""
    path = tmp_path / "k.cu"
    path.write_text(
        "#include <iostream>\n#define ALIGNED(n) alignas(n)\n"
        "template <typename T, int N> union ALIGNED(sizeof(T) * N) Pack { T v[N]; };\n"
        "__global__ void k(float *x) { Pack<float, 4> p = *(Pack<float, 4> *)x; x[4] = p.v[0]; }\n"
        "int main() { std::cout << 1; }\n"
    )
    assert compile_cubin(path, arch="sm_90").cubin


@pytest.mark.slow
def test_headers_of_another_release_beside_crt_are_not_taken(
    tmp_path: Path, no_nvcc: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel that has crt/mma.h shares its folder with the other headers of its release, if installed."""
    (tmp_path / "include" / "crt").mkdir(parents=True)
    (tmp_path / "include" / "crt" / "mma.h").write_text("")
    (tmp_path / "include" / "cuda_fp16.h").write_text("#error of another release")
    monkeypatch.setattr(device_code, "crt_folders", lambda: [tmp_path / "include"])
    source = (
        "#include <iostream>\n#include <{}>\n__global__ void k(float *x) {{ *x = 1; }}\nint main() {{}}\n"
    )
    path = tmp_path / "k.cu"
    path.write_text(source.format("cuda_fp16.h"))
    compile_cubin(path, arch="sm_90")
    (tmp_path / "include" / "other.h").write_text("#error of another release")
    path.write_text(source.format("other.h"))
    with pytest.raises(MemsimError, match="of another release"):
        compile_cubin(path, arch="sm_90")


@pytest.mark.parametrize(
    ("behind", "whole"),
    [
        ("void go() { twice<<<1, 32>>>(0); }", 0),
        ("#ifdef MAIN\nvoid go() { twice<<<1, 32>>>(0); }\n#endif", 1),
        ("#define GO twice<<<1, 32>>>(0)", 1),
        ("// twice<<<1, 32>>>(0)", 1),
    ],
    ids=["host code", "excluded", "macro", "comment"],
)
def test_a_source_that_launches_is_not_compiled_whole(
    behind: str, whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []

    def compile_it(text: str, *more: Any, **named: Any) -> NvrtcResult:
        texts.append(text)
        return run_nvrtc(text, *more, **named)

    monkeypatch.setattr("memsim.compile.cuda_source.run_nvrtc", compile_it)
    source = f"__global__ void twice(float *x) {{ x[threadIdx.x] *= 2; }}\n{behind}\n"
    assert ("set aside" in compile_cubin(source, compiler="nvrtc").compiler) is not bool(whole)
    assert [text == source for text in texts] == [bool(whole)]
