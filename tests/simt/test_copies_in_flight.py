"""Copies past the L1 cache that overwrite others in flight: their sectors are not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

import memsim

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


@pytest.mark.parametrize(
    ("buffers", "ahead", "certain"), [(1, 0, True), (2, 1, True), (4, 3, True), (2, 2, False), (4, 4, False)]
)
@pytest.mark.parametrize("unrolled", [False, True])
def test_a_ring_must_have_a_buffer_for_each_group_in_flight(
    buffers: int, ahead: int, certain: bool, unrolled: bool, tmp_path: Path
) -> None:
    """With one buffer less, an H200 counted 28,475, 28,122 and 28,516 of 30,720 sectors in three runs."""
    path = tmp_path / "k.cu"
    unroll = "#pragma unroll 1\n    for" if not unrolled else "#pragma unroll\n    for"
    text = RING.replace("for (int i", f"\n{unroll} (int i", 1)
    path.write_text(text.replace("BUFFERS", str(buffers)).replace("AHEAD", str(ahead)))
    arguments = [memsim.ArrayArg((256, 4)), memsim.ArrayArg((32, 4))]
    analysis = memsim.analyze(memsim.load(path)["k"], 1, 32, arguments)
    assert analysis.totals[SECTORS] == 8 * 16
    assert any("copies that may be in flight" in why for why in analysis.trace.uncertain) != certain


def test_guarded_lanes_with_the_destinations_of_others_change_nothing(tmp_path: Path) -> None:
    """As in 100 of 100 patterns on an H200."""
    path = tmp_path / "k.cu"
    path.write_text("""
    extern "C" __global__ void k(const float4 *in, float4 *out) {
        __shared__ float4 tile[64];
        const int t = threadIdx.x, at = t / 16 * 4 + t % 16;
        unsigned to = (unsigned)__cvta_generic_to_shared(&tile[at]);
        asm volatile("{.reg .pred p; setp.lt.s32 p, %2, 4; @p cp.async.cg.shared.global [%0], [%1], 16;"
                     "cp.async.wait_all;}" :: "r"(to), "l"(in + t), "r"(t % 16) : "memory");
        out[t] = tile[at];
    }""")
    arguments = [memsim.ArrayArg((32, 4)), memsim.ArrayArg((32, 4))]
    analysis = memsim.analyze(memsim.load(path)["k"], 1, 32, arguments)
    assert analysis.totals[SECTORS] == 4
    assert analysis.trace.uncertain == ()
