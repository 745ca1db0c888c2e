"""CUDA text to kernels, for tests: each text is compiled once for all of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from memsim.api.loading import Module, from_text
from memsim.kernel import Kernel
from tests.ptx_front.loading import PtxKernels, load_cuda

#: Instructions of sm_90 as functions of CUDA: addresses, mbarriers, copies in bulk, blocks of a cluster.
HOPPER = """
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map { char bytes[128]; };
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u32 b, u32 n = 1) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(b), "r"(n) : "memory"); }
__device__ void expect(u32 b, u32 n) {
    asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }"
                 :: "r"(b), "r"(n) : "memory"); }
__device__ void wait(u32 b) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W; }"
                 :: "r"(b) : "memory"); }
__device__ void finish() {
    asm volatile("cp.async.bulk.commit_group;\\ncp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ u32 of(u32 a, u32 r) {
    u32 v; asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(r)); return v; }
__device__ u32 rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\\nbarrier.cluster.wait.aligned;" ::: "memory"); }
"""


def kernel(text: str, name: str = "k", code: str | None = "ptx", **defines: Any) -> Kernel:
    """A kernel of `text`; lines in errors are lines of `text`. code: "sass", or "ptx" for PTX that
    is lowered without optimization.
    """
    return kernels_of(text, code, *(f"-D{key}={value}" for key, value in defines.items()))[name]


def machine_kernel(text: str, name: str = "k") -> Kernel:
    """The same as machine code."""
    return kernel(text, name, "sass")


@cache
def kernels_of(text: str, code: str | None = None, *options: str) -> Module | PtxKernels:
    """All kernels of `text`."""
    return load_cuda(text, options) if code == "ptx" else from_text(text, options, name="k.cu")
