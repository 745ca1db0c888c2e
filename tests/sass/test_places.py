"""Where machine code finds its memory: variables, windows of generic addresses, constants of the launch."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.analysis import Analysis
from memsim.errors import MemsimError
from tests.simt.cuda import kernels_of, machine_kernel

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def analyzed(source: str, *args: object, grid: int = 1) -> Analysis:
    return memsim.analyze(machine_kernel(source), grid, 32, args)


def test_the_driver_places_each_variable_by_itself() -> None:
    """As an H200 counts it: 4 sectors for 128 bytes, wherever the variable lies in its section."""
    source = """
    __device__ double first = 3.0;
    __device__ int table[32] = {1, 2, 3};
    __device__ int *pointer = table;
    extern "C" __global__ void k(int *out) {
        out[threadIdx.x] = table[threadIdx.x] + (int)first + pointer[threadIdx.x ^ 1];
    }"""
    analysis = analyzed(source, memsim.ArrayArg((32,), "int32"))
    assert analysis.totals[SECTORS] == 4 + 1 + 1 + 4
    out = np.zeros(32, np.int32)
    memsim.run(machine_kernel(source), 1, 32, [out])
    assert out.tolist() == [6, 6, 6, 6] + [3] * 28


@pytest.mark.parametrize("n, local, shared", [(3, 8, 0), (5, 0, 2)])
def test_generic_loads_count_in_the_space_of_their_addresses(n: int, local: int, shared: int) -> None:
    source = """
    extern "C" __global__ void k(int *out, int n) {
        __shared__ int shared[64];
        int mine[8];
        for (int i = 0; i < 8; i++) mine[(i * n) & 7] = i, shared[(threadIdx.x + i * n) & 63] = i;
        volatile int *p = n == 3 ? mine : shared;
        out[threadIdx.x] = p[n] + p[n + 1];
    }"""
    analysis = analyzed(source, memsim.ArrayArg((32,), "int32"), n)
    assert analysis.totals[SECTORS] == 0
    assert analysis.totals["l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"] == local
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == shared
    assert analysis.trace.uncertain == ()


GENERIC = """
__device__ __noinline__ void fill(int *p, int n, int by) { for (int i = 0; i < n; i++) p[i] = by * i; }
__device__ __noinline__ int sum(const int *p, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += p[i];
    return s;
}
__device__ __noinline__ void mix(char *a, short *b, double *c, float4 *d) {
    char first = a[1];
    a[1] = a[2];
    a[2] = first;
    b[0] += b[1];
    c[1] = c[0] * 2;
    d[1] = d[0];
}
extern "C" __global__ void spread(int *out, int n) {  // lanes of one request in three memories
    int own[16], t = threadIdx.x;
    __shared__ int s[32];
    int *p = t % 3 == 0 ? own : t % 3 == 1 ? s : out + 32;
    if (t % 3 == 0) fill(own, 16, t);
    s[t] = t;
    out[32 + t] = 1000 + t;
    __syncthreads();
    out[t] = sum(p, n);
}
extern "C" __global__ void widths(int *out, int i) {
    char a[4] = {1, 2, 3, 4};
    short b[2] = {5, 6};
    double c[2] = {0.5 * threadIdx.x, 0};
    float4 d[2];
    d[0] = make_float4(1, 2, 3, threadIdx.x);
    mix(a, b, c, d);
    out[threadIdx.x] = a[i & 3] + 100 * b[i & 1] + (int)(10000 * c[1]) + (int)(1000000 * d[1].w);
}
extern "C" __global__ void adds(int *out, int i) {
    int own[4] = {1, 2, 3, 4};
    __shared__ int s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = 10;
    __syncthreads();
    int before = atomicAdd((i == 0 ? own : i == 1 ? s : out + 32) + (threadIdx.x & 3), 5);
    __syncthreads();
    out[threadIdx.x] = 1000 * before + own[i & 3] + s[0];
}
"""


@pytest.mark.slow
def test_generic_addresses_in_local_memory_hold_what_was_written() -> None:
    t = np.arange(32)

    def ran(name: str, argument: int) -> np.ndarray:
        out = np.zeros(64, np.int32)
        memsim.run(machine_kernel(GENERIC, name), 1, 32, [out, argument])
        return out

    spread = np.where(t % 3 == 0, 28 * t, np.where(t % 3 == 1, 28, 8028))
    assert (ran("spread", 8)[:32] == spread).all()
    assert (ran("widths", 1)[:32] == 1010000 * t + 600 + 3).all()
    assert (ran("widths", 2)[:32] == 1010000 * t + 1100 + 2).all()
    place, turn = t & 3, t >> 2
    assert (ran("adds", 0)[:32] == 1000 * (place + 1) + np.where(place == 0, 6, 1) + 10).all()
    assert (ran("adds", 1)[:32] == 1000 * (10 + 5 * turn) + 2 + 50).all()
    out = ran("adds", 2)
    assert (out[:32] == 1000 * 5 * turn + 3 + 10).all() and (out[32:36] == 40).all()


def test_narrow_requests_with_lanes_in_global_and_local_memory_are_uncertain() -> None:
    def analyzed_of(name: str, argument: int) -> memsim.Analysis:
        kernel = machine_kernel(GENERIC, name)
        return memsim.analyze(kernel, 1, 32, [memsim.ArrayArg((64,), "int32"), argument])

    assert any("in local and in global memory" in why for why in analyzed_of("spread", 8).trace.uncertain)
    assert analyzed_of("widths", 1).trace.uncertain == ()


@pytest.mark.parametrize("place, wavefronts, ops", [(1, 8, {"atomic"}), (2, 1, {"atomic_unmade"})])
def test_a_generic_atomic_takes_a_wavefront_of_shared_memory_wherever_its_lanes_are(
    place: int, wavefronts: int, ops: set[str]
) -> None:
    arguments = [memsim.ArrayArg((64,), "int32"), place]
    analysis = memsim.analyze(machine_kernel(GENERIC, "adds"), 1, 32, arguments)
    assert {site.op for site in analysis.sites if site.space == "shared" and "atomic" in site.op} == ops
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] == wavefronts


@pytest.mark.some(1)
@pytest.mark.parametrize("use, known", [("%nctaid.x", True), ("%gridid", False)])
def test_what_only_the_driver_knows_is_unknown(use: str, known: bool) -> None:
    kind, letter = ("u64", "l") if use == "%gridid" else ("u32", "r")
    source = f"""
    extern "C" __global__ void k(int *out) {{
        unsigned {"long long" if kind == "u64" else ""} x;
        asm("mov.{kind} %0, {use};" : "={letter}"(x));
        out[(threadIdx.x + x) % 32] = 1;
    }}"""
    analysis = analyzed(source, memsim.ArrayArg((32,), "int32"))
    stores = analysis.totals["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]
    assert stores == (4 if known else None)


@pytest.mark.slow
def test_words_that_are_not_known_stay_so_alone() -> None:
    """A clock is stored in one word of an array; the others are read as before."""
    source = """
    extern "C" __global__ void k(int *out, int place) {
        __shared__ int s[32];
        s[threadIdx.x] = threadIdx.x;
        __syncwarp();
        if (threadIdx.x == 5) s[5] = clock();
        __syncwarp();
        out[s[threadIdx.x >= 16 ? threadIdx.x : place]] = 1;
    }"""
    stores = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    array = memsim.ArrayArg((32,), "int32")
    assert analyzed(source, array, 4).totals[stores] == 3
    assert analyzed(source, array, 5).totals[stores] is None


def test_an_unknown_result_is_not_copied_back() -> None:
    kernel = kernels_of(
        'extern "C" __global__ void k(int *out, int n) { if (n) out[threadIdx.x] = clock(); }'
    )["k"]
    memsim.run(kernel, 1, 32, [np.zeros(32, np.int32), 0])
    with pytest.raises(MemsimError, match="the result is unknown"):
        memsim.run(kernel, 1, 32, [np.zeros(32, np.int32), 1])
