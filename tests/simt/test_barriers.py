"""Barriers: blocks, named groups of warps, and threads that never come."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import MemsimError
from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from tests.simt.cuda import kernel


def test_threads_see_what_others_wrote_before_the_barrier() -> None:
    k = kernel("""
extern "C" __global__ void k(int *out) {
    __shared__ int s[96];
    s[threadIdx.x] = threadIdx.x * 3 + blockIdx.x;
    __syncthreads();
    out[blockIdx.x * 96 + threadIdx.x] = s[95 - threadIdx.x];
}""")
    out = np.zeros((5, 96), np.int32)
    run(k, 5, 96, [out])
    assert (out == (95 - np.arange(96)) * 3 + np.arange(5)[:, None]).all()


def test_blocks_with_different_trip_counts_pass_their_barriers() -> None:
    k = kernel("""
extern "C" __global__ void k(int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    for (int i = 0; i <= blockIdx.x; i++) {
        __syncthreads();
        int v = s[(threadIdx.x + 1) % 64];
        __syncthreads();
        s[threadIdx.x] = v;
    }
    out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];
}""")
    out = np.zeros((4, 64), np.int32)
    run(k, 4, 64, [out])
    assert (out == (np.arange(64) + np.arange(4)[:, None] + 1) % 64).all()


PRODUCER = """
extern "C" __global__ void k(int *out) {
    __shared__ int s[64];
    int lane = threadIdx.x % 64;
    if (threadIdx.x < 64) {
        for (int i = 0; i < 3; i++) {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            s[lane] = lane * 10 + i;
            asm volatile("bar.sync 2, 128;" ::: "memory");
        }
    } else {
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
            sum += s[63 - lane];
        }
        out[blockIdx.x * 64 + lane] = sum;
    }
}"""


GROUPS = """
extern "C" __global__ void k(const int *rounds, int *out) {
    __shared__ int s[3][64];
    int group = threadIdx.x / 64, lane = threadIdx.x % 64;
    int sum = 0;
    for (int i = 0; i < rounds[group]; i++) {
        s[group][lane] = lane * 10 + i;
        asm volatile("bar.sync %0, 64;" :: "r"(NUMBER) : "memory");
        sum += s[group][63 - lane];
        asm volatile("bar.sync %0, 64;" :: "r"(NUMBER) : "memory");
    }
    out[threadIdx.x] = sum;
}"""


def test_groups_of_warps_wait_at_barriers_that_a_register_names() -> None:
    k = kernel(GROUPS, NUMBER="group+1")
    rounds, out = np.array([5, 0, 2], np.int32), np.zeros((3, 64), np.int32)
    run(k, 1, 192, [rounds, out])
    lanes = 63 - np.arange(64)
    assert (out == [[sum(10 * lane + i for i in range(n)) for lane in lanes] for n in rounds]).all()


def test_lanes_of_a_warp_do_not_name_different_barriers() -> None:
    k = kernel(GROUPS, NUMBER="lane%2")
    with pytest.raises(MemsimError, match="differs between the lanes of a warp"):
        run(k, 1, 192, [np.array([1, 1, 1], np.int32), np.zeros((3, 64), np.int32)])


def test_named_barriers_pair_producers_with_consumers() -> None:
    k = kernel(PRODUCER)
    out = np.zeros((2, 64), np.int32)
    run(k, 2, 128, [out])
    assert (out == (63 - np.arange(64)) * 30 + 3).all()


def test_a_named_barrier_that_waits_for_too_many_is_a_deadlock() -> None:
    k = kernel(PRODUCER.replace('"bar.sync 1, 128;"', '"bar.sync 1, 192;"'))
    with pytest.raises(MemsimError, match=r"never reach: 128 of 192 threads wait at bar.sync 1") as error:
        run(k, 2, 128, [np.zeros((2, 64), np.int32)])
    assert error.value.exit_code == 2


def test_arrive_lets_the_producer_go_on() -> None:
    k = kernel("""
extern "C" __global__ void k(int *out) {
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = threadIdx.x + 7;
        asm volatile("bar.arrive 3, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 3, 64;" ::: "memory");
        out[threadIdx.x - 32] = s[63 - threadIdx.x];
    }
}""")
    out = np.zeros(32, np.int32)
    run(k, 1, 64, [out])
    assert (out == 31 - np.arange(32) + 7).all()


def test_warps_that_have_ended_do_not_hold_up_the_others() -> None:
    k = kernel("""
extern "C" __global__ void k(int *out) {
    __shared__ int s[64];
    if (threadIdx.x >= 64) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[63 - threadIdx.x];
}""")
    out = np.zeros(64, np.int32)
    run(k, 1, 128, [out])
    assert (out == 63 - np.arange(64)).all()


UNREACHED = """
extern "C" __global__ void k(int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    if (threadIdx.x < LIMIT) {
        __syncthreads();
        s[threadIdx.x] += 1;
    }
    out[threadIdx.x] = s[threadIdx.x];
}"""


def test_a_barrier_that_some_threads_never_reach_names_line_and_thread() -> None:
    with pytest.raises(
        MemsimError, match=r"48 of 64 threads wait at .*thread \(48, 0, 0\) of block"
    ) as error:
        run(kernel(UNREACHED, LIMIT=48), 1, 64, [np.zeros(64, np.int32)])
    assert error.value.line == 6
    assert error.value.file is not None and error.value.file.endswith("k.cu")


def test_the_same_kernel_with_all_threads_is_fine() -> None:
    out = np.zeros(64, np.int32)
    run(kernel(UNREACHED, LIMIT=64), 1, 64, [out])
    assert (out == 2).all()


def test_reductions_at_a_barrier() -> None:
    k = kernel("""
extern "C" __global__ void k(int *out, int limit) {
    int t = threadIdx.x;
    out[(blockIdx.x * 3 + 0) * 96 + t] = __syncthreads_count(t < limit + (int)blockIdx.x);
    out[(blockIdx.x * 3 + 1) * 96 + t] = __syncthreads_and(t < limit) != 0;
    out[(blockIdx.x * 3 + 2) * 96 + t] = __syncthreads_or(t == limit) != 0;
}""")
    for limit in (0, 50, 96):
        out = np.full((2, 3, 96), -1, np.int32)
        run(k, 2, 96, [out, limit])
        for block in range(2):
            assert (out[block, 0] == min(96, limit + block)).all()
            assert (out[block, 1] == (limit == 96)).all()
            assert (out[block, 2] == (limit < 96)).all()


# `cuda::barrier` in the instructions that it is made of: all arrive, and each waits for the others.
OBJECT = """
extern "C" __global__ void k(int *out, const int *at) {
    __shared__ unsigned long long bar;
    __shared__ int s[64];
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(b) : "memory");
    __syncthreads();
    s[threadIdx.x] = at[threadIdx.x];
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
    WAITS {
        int done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(b), "l"(state) : "memory");
    }
    out[s[63 - threadIdx.x]] = threadIdx.x;
}"""


def test_a_wait_at_an_object_is_over_when_all_are_there() -> None:
    k = kernel(OBJECT.replace("WAITS", ""))
    out, at = np.zeros(64, np.int32), np.arange(64, dtype=np.int32)[::-1].copy()
    run(k, 1, 64, [out, at])
    assert (out[at[63 - np.arange(64)]] == np.arange(64)).all()
    analysis = analyze(k, 1, 64, [out, at])
    assert [note.partition(" (")[0] for note in analysis.trace.notes] == ["mbarrier operations"]
    assert [site.unresolved for site in analysis.sites] == [None] * len(analysis.sites)
