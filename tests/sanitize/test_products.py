"""What `wgmma` reads in shared memory, and its registers: when it may, each rule beside its good twin."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Literal

import numpy as np
import pytest

from memsim.api.loading import from_text
from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.kernel import Kernel
from memsim.sanitizer.hazards import INIT, RACE, Sanitized
from tests.sanitize.deleted import ordering, without

TEXT = r"""
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ unsigned long long matrix(const void *p) {  // rows of 8 x 16 bytes side by side
    return (unsigned long long)(at(p) >> 4 & 0x3fff) | (8ull << 16) | (16ull << 32); }
__device__ void multiply(float (&d)[4], const void *a, const void *b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(matrix(a)), "l"(matrix(b))); }
#define PROXY asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define BEGIN asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned " #n ";" ::: "memory")
#define SUM(v) (v[0] + v[1] + v[2] + v[3])
#define KERNEL(NAME, ROWS, EARLY, LATE)                                                              \
extern "C" __global__ void NAME(float *o, const uint4 *p) {                                         \
    __shared__ alignas(1024) uint4 a[128], b[16];  /* 64 x 16 and 8 x 16 halves */                  \
    int t = threadIdx.x; float d[4] = {0, 0, 0, 0}, e[4] = {1, 1, 1, 1};                            \
    a[t] = p[t]; if (t < 2 * ROWS) b[t] = p[t];                                                     \
    PROXY; __syncthreads();                                                                         \
    BEGIN; multiply(d, a, b); COMMIT;                                                               \
    multiply(e, a, b); COMMIT;                                                                      \
    WAIT(1); o[t] = SUM(d); EARLY; a[t] = p[t + 128]; LATE; o[t + 128] = SUM(e); }
KERNEL(k, 8, WAIT(0), )
KERNEL(late, 8, , WAIT(0))
KERNEL(few, 4, WAIT(0), )
"""


@cache
def kernel(name: str = "k", compiler: Literal["nvrtc", "nvcc"] | None = None) -> Kernel:
    return from_text(TEXT, ("-arch=sm_90a",), name="k.cu", compiler=compiler)[name]


def sanitized(one: Kernel, tools: tuple[str, ...] = (RACE,)) -> Sanitized:
    args = [np.zeros(256, np.float32), np.zeros((256, 4), np.int32)]
    return sanitize_job(job_of(one, 1, 128, args), tools=tools)


def found_without(*begins: str, which: slice = slice(None)) -> list[str]:
    """What is found where instructions are deleted that begin so."""
    whole = kernel()
    addresses = [op.address for op in ordering(whole, begins)][which]
    assert addresses
    return [one.kind for one in sanitized(without(whole, *addresses)).findings]


@pytest.mark.slow
def test_a_product_of_what_is_ordered_has_no_finding() -> None:
    found = sanitized(kernel(), (RACE, INIT))
    assert not found.findings and not found.limits and not found.unjudged


def test_a_product_reads_what_threads_wrote_behind_a_proxy_fence() -> None:
    """PTX ISA, Proxies: `wgmma` reads shared memory by the async proxy."""
    (one,) = sanitized(without(kernel(), *(op.address for op in ordering(kernel(), ("FENCE",))))).findings[:1]
    assert one.kind.startswith("a product by wgmma") and one.cure.startswith("fence.proxy.async behind")
    assert one.first.does == "stores" and one.second is not None and one.second.does == "multiplies"


def test_a_product_reads_what_other_warps_wrote_behind_a_barrier() -> None:
    assert "nothing orders the two accesses" in found_without("BAR.")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="older compilers wait for each product")
def test_what_a_product_reads_is_overwritten_behind_a_wait_for_its_group() -> None:
    """PTX ISA, `wgmma.wait_group`."""
    (one,) = sanitized(kernel("late", "nvcc")).findings
    assert one.first.does == "multiplies" and one.second is not None and one.second.does == "stores"
    assert "wgmma.wait_group" in one.cure
    assert one.count == 128 * 4


@pytest.mark.slow
def test_shared_memory_that_nobody_wrote_is_multiplied() -> None:
    found = sanitized(kernel("few"), (INIT,)).findings
    assert {one.array for one in found} == {"b"}


@pytest.mark.parametrize(
    ("begins", "which", "kind"),
    [
        ("WARPGROUP.ARRIVE", slice(None), "no wgmma.fence"),
        ("WARPGROUP.DEPBAR", slice(0, 1), "before wgmma.wait_group"),
        ("WARPGROUP.DEPBAR", slice(1, 2), "before wgmma.wait_group"),
    ],
)
def test_registers_of_a_product_are_fenced_and_waited_for(begins: str, which: slice, kind: str) -> None:
    """PTX ISA, `wgmma.fence` and `wgmma.wait_group`; the compiler would insert what is deleted here."""
    assert any(kind in one for one in found_without(begins, which=which))
