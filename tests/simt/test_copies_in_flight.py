"""Copies past the L1 cache that overwrite others in flight: their sectors are not certain."""

from __future__ import annotations

import pytest

import memsim
from memsim.api.loading import Module
from tests.simt.cuda import kernels_of

SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
RING = """
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 ring[BUFFERS][32];
    const int t = threadIdx.x;
    unsigned to = (unsigned)__cvta_generic_to_shared(&ring[0][t]);
    float sum = 0;
    for (int i = 0; i < 8 + AHEAD; ++i) {
        if (i < 8)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         :: "r"(to + i % BUFFERS * 512), "l"(in + i * 32 + t) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group %0;" :: "n"(AHEAD) : "memory");
        if (i >= AHEAD) sum += ring[(i - AHEAD) % BUFFERS][t].x;
    }
    out[t].x = sum;
}"""


# (buffers, groups in flight, whether the sectors are certain)
RINGS = [(1, 0, True), (2, 1, True), (4, 3, True), (2, 2, False), (4, 4, False)]


def ring(name: str, buffers: int, ahead: int, unrolled: bool) -> str:
    unroll = "#pragma unroll\n    for" if unrolled else "#pragma unroll 1\n    for"
    text = RING.replace("for (int i", f"\n{unroll} (int i", 1).replace("void k(", f"void {name}(")
    return text.replace("BUFFERS", str(buffers)).replace("AHEAD", str(ahead))


@pytest.fixture(scope="module")
def rings() -> Module:
    """A kernel for each ring, `rolled_2_1` and `unrolled_2_1`, compiled together."""
    texts = [
        ring(f"{'unrolled' if unrolled else 'rolled'}_{buffers}_{ahead}", buffers, ahead, unrolled)
        for buffers, ahead, _ in RINGS
        for unrolled in (False, True)
    ]
    return kernels_of("".join(texts))


@pytest.mark.some(3)
@pytest.mark.parametrize(("buffers", "ahead", "certain"), RINGS)
@pytest.mark.parametrize("unrolled", ["rolled", "unrolled"])
def test_a_ring_must_have_a_buffer_for_each_group_in_flight(
    rings: Module, buffers: int, ahead: int, certain: bool, unrolled: str
) -> None:
    """With one buffer less, an H200 counted 28,475, 28,122 and 28,516 of 30,720 sectors in three runs."""
    arguments = [memsim.ArrayArg((256, 4)), memsim.ArrayArg((32, 4))]
    analysis = memsim.analyze(rings[f"{unrolled}_{buffers}_{ahead}"], 1, 32, arguments)
    assert analysis.totals[SECTORS] == (8 * 16 if certain else None)
    assert certain or analysis.undecided[SECTORS].estimate == 8 * 16
    assert any("copies that may be in flight" in why for why in analysis.trace.uncertain) != certain


def test_guarded_lanes_with_the_destinations_of_others_change_nothing() -> None:
    """As in 100 of 100 patterns on an H200."""
    text = """
    extern "C" __global__ void k(const float4 *in, float4 *out) {
        __shared__ float4 tile[64];
        const int t = threadIdx.x, at = t / 16 * 4 + t % 16;
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[at]);
        asm volatile("{.reg .pred p; setp.lt.s32 p, %2, 4; @p cp.async.cg.shared.global [%0], [%1], 16;"
                     "cp.async.wait_all;}" :: "r"(to), "l"(in + t), "r"(t % 16) : "memory");
        out[t] = tile[at];
    }"""
    arguments = [memsim.ArrayArg((32, 4)), memsim.ArrayArg((32, 4))]
    analysis = memsim.analyze(kernels_of(text)["k"], 1, 32, arguments)
    assert analysis.totals[SECTORS] == 4
    assert analysis.trace.uncertain == ()


@pytest.mark.parametrize(("at", "certain"), [("t % 32", False), ("t", True)], ids=["one place", "own places"])
def test_warps_that_copy_to_the_same_place(at: str, certain: bool) -> None:
    """Eight warps of an H200 fetched 160 of 1,280 sectors."""
    text = f"""
    extern "C" __global__ void k(const float4 *in, float4 *out) {{
        __shared__ float4 tile[256];
        const int t = threadIdx.x;
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[{at}]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.wait_all;" :: "r"(to), "l"(in + t));
        __syncthreads();
        out[t] = tile[t];
    }}"""
    analysis = memsim.analyze(kernels_of(text)["k"], 1, 256, [memsim.ArrayArg((256, 4))] * 2)
    assert (not analysis.trace.uncertain) == certain


def test_copies_that_no_lane_reads_for_say_nothing_of_others() -> None:
    """The first copy writes zeros alone; the second fetches for all warps to one place."""
    copy = 'asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(in + t), "r"({}));'
    text = f"""
    extern "C" __global__ void k(const float4 *in, float4 *out, int n) {{
        __shared__ float4 tile[32];
        const int t = threadIdx.x;
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[t % 32]);
        {copy.format("n")}
        {copy.format("16 - n")}
        asm volatile("cp.async.wait_all;");
        __syncthreads();
        out[t] = tile[t % 32];
    }}"""
    arguments = [memsim.ArrayArg((256, 4)), memsim.ArrayArg((256, 4)), 0]
    analysis = memsim.analyze(kernels_of(text)["k"], 1, 256, arguments)
    assert any("copies that may be in flight" in why for why in analysis.trace.uncertain)
