"""A dynamic array that several pointers use one after the other: each has a layout of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from memsim.analysis import Analysis
from memsim.argument_types import ArrayArg
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.suggest.proposals import advise
from memsim.suggest.prove import differing_results, prove
from memsim.suggest.suggestions import suggest
from tests.suggest.kernels import Case, analyzed, launched

TRANSPOSED = """
__device__ void fill(float *to, const float *in) {
    to[threadIdx.y * 32 + threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
}
extern "C" __global__ void k(const float *in, float *out) {
    extern __shared__ unsigned char memory[];
    float *tile = (float *)memory;
    double *wide = (double *)memory;
    int x = threadIdx.x, y = threadIdx.y;
    fill(tile, in);
    __syncthreads();
    float turned = tile[x * 32 + y];
    __syncthreads();
    wide[x * 16 + y % 16 + y / 16 * 512] = turned;
    __syncthreads();
    out[y * 32 + x] = wide[y * 32 + x];
}
"""


def job_of(text: str, folder: Path, size: int = 8192) -> Job:
    """The kernel with so many bytes of dynamic shared memory."""
    job = Case(text, (32, 32), ((1024, "float32"), (1024, "float32"))).job(folder)
    return replace(job, launch=replace(job.launch, shared_bytes=size))


def conflicts(analysis: Analysis) -> int:
    """The wavefronts of bank conflicts in shared memory."""
    return sum(site.wavefronts_of_conflicts for site in analysis.sites if site.space == "shared")


def test_each_pointer_to_the_beginning_has_a_layout_of_its_own(tmp_path: Path) -> None:
    job = job_of(TRANSPOSED, tmp_path)
    before = analyzed(job)
    found = suggest(before, job)
    assert [entry.tile.name for entry in found.advice] == ["tile", "wide"]
    assert sum(entry.conflicts for entry in found.advice) == conflicts(before)
    proof = found.proof
    assert proof is not None
    assert proof.counted == proof.forecast
    assert conflicts(proof.analysis) == 0
    assert differing_results(job, proof.job) == ()
    changes = {each.tile.name: each.change for each in proof.proposals}
    assert changes["tile"] != changes["wide"]
    sizes = {name: change.size(job.launch.shared_bytes) for name, change in changes.items()}
    assert proof.job.launch.shared_bytes <= max(
        sizes.values()
    )  # of the same memory, not one behind the other


@pytest.mark.slow
def test_the_launch_in_the_file_has_room_for_the_larger_one(tmp_path: Path) -> None:
    main = "int main() { float *p = 0; k<<<1, dim3(32, 32), 8192>>>(p, p); }\n"
    job = job_of(TRANSPOSED.replace('extern "C" ', "") + main, tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    grown = found.proof.job.launch.shared_bytes
    line = next(line for line in found.proof.edit.new.splitlines() if "<<<" in line)
    paddings = [each for each in found.proof.proposals if each.extra]
    assert grown == 8192 + max((each.extra for each in paddings), default=0)
    assert line.count("<<<1, dim3(32, 32), ") == 1


@pytest.mark.parametrize("main", ["int main() { float *p = 0; k<<<1, dim3(32, 32), 4096>>>(p, p); }\n", ""])
def test_a_static_array_s_change_and_a_dynamic_one_s_bring_the_launch_if_it_is_there(
    main: str, tmp_path: Path
) -> None:
    text = """
__global__ void k(const float *in, float *out) {
    __shared__ float tile[32][32];
    extern __shared__ float more[];
    int x = threadIdx.x, y = threadIdx.y;
    tile[y][x] = more[y * 32 + x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x][y] + more[x * 32 + y];
}
"""
    job = launched(tmp_path, text + main, [ArrayArg((1024,)), ArrayArg((1024,))], (32, 32))
    job = replace(job, launch=replace(job.launch, shared_bytes=4096))
    proof = suggest(analyzed(job), job).proof
    assert proof is not None
    assert proof.counted == {"tile": 64, "more": 64}
    assert proof.job.launch.shared_bytes == 4224
    assert proof.edit.brings_launch == bool(main)
    assert differing_results(job, proof.job) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The array is indexed by its own name, too.
        (
            "double *wide = (double *)memory;",
            "double *wide = (double *)memory;\n    if (x > 99) memory[y] = 0;",
        ),
        # A function is given both.
        ("wide[x * 16", "if (out == in) fill((float *)wide, in);\n    wide[x * 16"),
        # There is one pointer, and one behind it.
        ("(double *)memory", "(double *)(memory + 8)"),
    ],
)
def test_it_is_one_array_where_the_pointers_are_not_apart(tmp_path: Path, before: str, after: str) -> None:
    text = TRANSPOSED.replace("    int x", "    const int x", 1)
    lines = text.splitlines()
    moved = next(line for line in lines if "const int x" in line)
    lines.remove(moved)
    lines.insert(next(n for n, line in enumerate(lines) if "float *tile" in line), moved)
    changed = "\n".join(lines).replace(before, after)
    assert changed != "\n".join(lines)
    analysis = analyzed(job_of(changed, tmp_path, 8200))
    assert [entry.tile.name for entry in advise(analysis)] == ["memory"]


def test_bytes_that_another_pointer_loads_make_the_results_differ(tmp_path: Path) -> None:
    text = TRANSPOSED.replace("= turned;", "= turned + wide[y * 16];")
    job = job_of(text, tmp_path)
    found = suggest(analyzed(job), job)
    assert found.proof is not None
    with pytest.raises(MemsimError, match="the changed kernel fails: the result is unknown"):
        differing_results(job, found.proof.job)


# Two tiles, one behind the other: the wide one is stored and loaded 16 bytes at a time.
TWO_TILES = """
#define N 32
__device__ void down(float *to, const float *in, int x, int y) { to[x * N + y] = in[y * N + x]; }
extern "C" __global__ void k(const float *in, float *out) {
    extern __shared__ float memory[];
    float *turned = memory;
    float *wide = turned + N * N;
    const int x = threadIdx.x, y = threadIdx.y;
    down(turned, in, x, y);
    if (y < 8) ((float4 *)wide)[x * 8 + y] = ((const float4 *)in)[y * N + x];
    __syncthreads();
    float sum = turned[y * N + x];
    sum += wide[y * N + x];
    out[y * N + x] = sum;
}
"""


def test_each_part_behind_another_has_a_layout_of_its_own(tmp_path: Path) -> None:
    job = job_of(TWO_TILES, tmp_path)
    before = analyzed(job)
    found = suggest(before, job)
    assert [(entry.tile.name, entry.tile.size) for entry in found.advice] == [
        ("turned", 4096),
        ("wide", 4096),
    ]
    assert sum(entry.conflicts for entry in found.advice) == conflicts(before) > 0
    proof = found.proof
    assert proof is not None
    assert conflicts(proof.analysis) == 0
    assert differing_results(job, proof.job) == ()
    whole = advise(analyzed(job_of(TWO_TILES.replace("wide = turned +", "wide = memory +"), tmp_path)))
    assert [entry.tile.name for entry in whole] == ["turned", "wide"]


def test_a_part_makes_room_for_what_is_behind_it(tmp_path: Path) -> None:
    job = job_of(TWO_TILES, tmp_path)
    found = suggest(analyzed(job), job)
    padded = next(each for each in found.proposals if each.extra and each.tile.name == "turned")
    assert padded.edit is not None
    proof = prove(job, [padded])
    assert "float *wide = turned + N * (N + 1);" in proof.edit.new
    assert proof.job.launch.shared_bytes == 8192 + 128
    assert differing_results(job, proof.job) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("turned + N * N", "turned + n * n"),  # n is not known
        ("turned + N * N", "turned + N * N / 2"),  # one reaches into the other
        ("    float sum", "    down(wide, in, x, y);\n    float sum"),  # a function is given both
    ],
)
def test_parts_are_one_array_where_they_are_not_told_apart(tmp_path: Path, before: str, after: str) -> None:
    text = TWO_TILES.replace("    extern", "    int n = in == out ? 1 : N;\n    extern")
    changed = text.replace(before, after)
    assert changed != text
    assert [entry.tile.name for entry in advise(analyzed(job_of(changed, tmp_path)))] == ["memory"]


# Two buffers that functions are given in turn, one of which walks along them, and a third behind them.
BUFFERS = """
#define N 32
__device__ void down(float *to, const float *in, int x, int y) { to[x * N + y] = in[y * N + x]; }
__device__ float halves(const float *from, int x, int y) {
    const float *p = from + y % 16 * N + x;
    float sum = 0;
    for (int i = 0; i < 2; ++i) {
        sum += *p;
        p += 16 * N;
    }
    return sum;
}
extern "C" __global__ void k(const float *in, float *out) {
    extern __shared__ float memory[];
    float *first = memory;
    float *second = first + N * N;
    float *wide = second + N * N;
    const int x = threadIdx.x, y = threadIdx.y;
    down(first, in, x, y);
    down(second, in, y, x);
    if (y < 8) ((float4 *)wide)[x * 8 + y] = ((const float4 *)in)[y * N + x];
    __syncthreads();
    float sum = halves(first, x, y) + halves(second, y, x);
    sum += wide[y * N + x];
    out[y * N + x] = sum;
}
"""


@pytest.mark.slow
def test_buffers_of_one_function_have_the_layout_of_one(tmp_path: Path) -> None:
    job = job_of(BUFFERS, tmp_path, 3 * 4096)
    found = suggest(analyzed(job), job)
    assert [(entry.tile.name, entry.tile.size) for entry in found.advice] == [("first", 8192), ("wide", 4096)]
    proof = found.proof
    assert proof is not None
    assert conflicts(proof.analysis) == 0
    assert "int p = y % 16 * N + x;" in proof.edit.new
    assert differing_results(job, proof.job) == ()
    alone = prove(job, [next(each for each in found.proposals if each.tile.name == "wide" and each.edit)])
    assert "const float *p = from" in alone.edit.new


def test_parts_in_turn_with_others_are_one_array(tmp_path: Path) -> None:
    lines = (
        BUFFERS.replace("float *wide = second", "float *wide = first")
        .replace("float *second = first", "float *second = wide")
        .splitlines()
    )
    second, wide = (
        next(n for n, line in enumerate(lines) if f"*{name} =" in line) for name in ("second", "wide")
    )
    lines[second], lines[wide] = lines[wide], lines[second]
    found = advise(analyzed(job_of("\n".join(lines), tmp_path, 3 * 4096)))
    assert [entry.tile.name for entry in found] == ["memory"]


# Dynamic memory of any type, by a struct with an operator; another kernel uses it, too.
BY_OPERATOR = """
template <class T> struct Dynamic {
    __device__ inline operator T *() {
        extern __shared__ int of_any_type[];
        return (T *)of_any_type;
    }
    __device__ inline operator const T *() const {
        extern __shared__ int of_any_type[];
        return (T *)of_any_type;
    }
};
template <class T> __global__ void other(T *out) {
    T *tile = Dynamic<T>();
    out[threadIdx.x] = tile[threadIdx.x];
}
template <class T> __global__ void k(const T *in, T *out) {
    T *tile = Dynamic<T>();
    int x = threadIdx.x, y = threadIdx.y;
    tile[y * 32 + x] = in[y * 32 + x];
    __syncthreads();
    out[y * 32 + x] = tile[x * 32 + y];
}
"""


@pytest.mark.slow
def test_a_struct_with_an_operator_stands_for_dynamic_memory(tmp_path: Path) -> None:
    case = Case(BY_OPERATOR, (32, 32), ((1024, "float32"), (1024, "float32")))
    job = case.job(tmp_path)
    job = replace(
        job, kernel=replace(job.kernel, name="k<float>"), launch=replace(job.launch, shared_bytes=4096)
    )
    found = suggest(analyzed(job), job)
    proof = found.proof
    assert proof is not None
    assert conflicts(proof.analysis) == 0
    assert differing_results(job, proof.job) == ()
    before_it, _, ours = proof.edit.new.partition("void k(")
    assert before_it == BY_OPERATOR.partition("void k(")[0]
    assert "tile[x * 33 + y]" in ours


def test_an_operator_whose_pointers_are_not_found_gives_no_edit(tmp_path: Path) -> None:
    text = BY_OPERATOR.replace(
        "T *tile = Dynamic<T>();\n    int x", "Dynamic<T> d;\n    T *tile = d;\n    int x"
    )
    job = Case(text, (32, 32), ((1024, "float32"), (1024, "float32"))).job(tmp_path)
    job = replace(
        job, kernel=replace(job.kernel, name="k<float>"), launch=replace(job.launch, shared_bytes=4096)
    )
    (advice,) = advise(analyzed(job))
    assert advice.proposals
    assert all(each.edit is None for each in advice.proposals)
