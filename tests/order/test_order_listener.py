"""What listeners are told of a launch, and what a block barrier is to each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.api.running import trace
from memsim.order.global_order import GlobalListener, GlobalOrder
from memsim.order.order_listener import Listeners, OrderListener
from tests.simt.cuda import kernels_of

THREADS = 128


class Noting(OrderListener):
    """Notes the instructions that it is told of."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def execute(self, instruction: int) -> None:
        self.told.append(instruction)


class NotingBarriers(Noting):
    """And block barriers."""

    def block_barrier(self, mask: Any = True) -> None:
        self.told.append(-1)


def test_each_listener_is_told_of_the_events_that_it_has() -> None:
    one, other = Noting(), NotingBarriers()
    both = Listeners(one, other)
    both.execute(7)
    both.block_barrier()
    both.arrive_named(1, True)
    assert (one.told, other.told) == ([7], [7, -1])


def test_nobody_need_listen() -> None:
    nobody = Listeners()
    nobody.execute(7)
    nobody.block_barrier()
    assert vars(nobody) == {}


def test_an_access_at_unknown_addresses_may_be_to_what_others_write() -> None:
    followed, left_out = 3, 4
    for instruction, space, active in ((left_out, "global", True), (followed, "shared", True)):
        listener = GlobalListener({followed: (True, False)}, (), GlobalOrder(0, 64, 4))
        listener.lose(instruction, space, active)
        listener.lose(followed, "global", False)
        assert not listener.order.depends
        listener.lose(followed, "global", True)
        assert listener.order.depends


#: A thread reads what another one of its block, in another warp, has written to `values` before a barrier.
KERNELS = """
#define KERNEL(name, barrier) \\
extern "C" __global__ void name##_shared(int *out, const int *in) { \\
    __shared__ int values[128]; values[threadIdx.x] = in[threadIdx.x]; barrier; \\
    out[((volatile int *)values)[threadIdx.x ^ 32]] = 1; } \\
extern "C" __global__ void name##_global(int *out, const int *in, int *values) { \\
    values += 128 * blockIdx.x; values[threadIdx.x] = in[threadIdx.x]; barrier; \\
    out[((volatile int *)values)[threadIdx.x ^ 32]] = 1; }
KERNEL(syncthreads, __syncthreads())
KERNEL(of_all, asm volatile("bar.sync 1, 128;" ::: "memory"))
KERNEL(of_half, asm volatile("bar.sync %0, 64;" :: "r"(1 + threadIdx.x / 64) : "memory"))
KERNEL(none, )
"""
#: Barriers, and whether what is behind them is ordered in shared and in global memory.
BARRIERS = {
    "syncthreads": (True, True),
    "of_all": (True, True),
    "of_half": (True, False),  # a named barrier, which is followed in shared memory only
    "none": (False, False),
}


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_block_barrier_is_the_same_in_shared_and_in_global_memory(barrier: str, blocks: int) -> None:
    module = kernels_of(KERNELS, "sass")
    out, values = np.zeros(1 << 12, np.int32), np.zeros(THREADS * blocks, np.int32)
    numbers = np.arange(THREADS, dtype=np.int32)
    shared = trace(module[f"{barrier}_shared"], blocks, THREADS, [out, numbers])
    of_global = trace(module[f"{barrier}_global"], blocks, THREADS, [out, numbers, values])
    assert (not shared.uncertain, not of_global.uncertain) == BARRIERS[barrier]


COPIES = """
#include <cuda_pipeline.h>
extern "C" __global__ void copies(int *out, int *in, int *to) {
    __shared__ int indices[128];
    __pipeline_memcpy_async(indices + threadIdx.x, in + threadIdx.x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[indices[threadIdx.x ^ 32]] = 1;
    to[threadIdx.x] = 2;
}
"""


def test_what_copies_read_may_lie_beside_what_the_launch_writes() -> None:
    """In one allocation, as PyTorch's tensors do; if it is the same, nothing orders a copy with the store."""
    kernel = kernels_of(COPIES, "sass")["copies"]
    memory = np.zeros(3 * THREADS, np.int32)
    out, values, beside = (memory[i * THREADS :][:THREADS] for i in range(3))
    assert not trace(kernel, 1, THREADS, [out, values, beside]).uncertain
    found = trace(kernel, 1, THREADS, [out, values, values]).uncertain
    said = "addresses or branches depend on what the kernel itself writes"
    assert found and all(reason.startswith(said) for reason in found)


ATOMICS = """
extern "C" __global__ void most(int *out) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    atomicMax(&found, (int)threadIdx.x);
    __syncthreads();
    out[found] = 1;
}
extern "C" __global__ void mixed(int *out) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (threadIdx.x % 2) atomicMax(&found, (int)threadIdx.x); else atomicMin(&found, (int)threadIdx.x);
    __syncthreads();
    out[found] = 1;
}
"""


def test_the_order_of_atomics_is_no_missing_barrier() -> None:
    """It decides nothing where all are the same and commute."""
    module, out = kernels_of(ATOMICS, "sass"), np.zeros(THREADS, np.int32)
    assert not trace(module["most"], 1, THREADS, [out]).uncertain
    found = trace(module["mixed"], 1, THREADS, [out]).uncertain
    assert found and all(reason.startswith("the order of atomics in shared memory at") for reason in found)
