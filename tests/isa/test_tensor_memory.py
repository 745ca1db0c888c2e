"""Kernels with tensor memory (sm_100) are analyzed but for what they do there, and that is said."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim.errors import MemsimError
from tests.assembler import needs_assembler

PTX = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry product(.param .u64 out) {
 .reg .pred %p<4>;
 .reg .b32 %r<9>;
 .reg .b64 %rd<9>;
 .shared .align 16 .b8 bar[16];
 .shared .align 16 .b8 place[16];
 .shared .align 1024 .b8 tile[8192];
 mov.u32 %r1, %tid.x;
 mov.u32 %r2, place;
 mov.u32 %r3, bar;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 32;
 setp.eq.u32 %p1, %r1, 0;
 @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
 bar.sync 0;
 ld.shared.u32 %r4, [%r2];
 mov.b64 %rd1, 4611756662049538048;
 mov.u32 %r5, 134283280;
 setp.ne.u32 %p2, %r1, %r1;
 @%p1 tcgen05.mma.cta_group::1.kind::f16 [%r4], %rd1, %rd1, %r5, %p2;
 @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r3];
WAIT:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra WAIT;
 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r4];
 tcgen05.wait::ld.sync.aligned;
 ld.param.u64 %rd2, [out];
 mul.wide.u32 %rd3, %r1, 4;
 add.u64 %rd4, %rd2, %rd3;
 st.global.u32 [%rd4], %r6;
 bar.sync 0;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
 ret;
}
"""
INDEXED = PTX.replace("mul.wide.u32 %rd3, %r1, 4", "mul.wide.u32 %rd3, %r6, 4")


def analyzed(ptx: str) -> memsim.Analysis:
    module = memsim.load(ptx, arch="sm_100")
    return memsim.analyze(module["product"], 1, 32, (memsim.ArrayArg((32,), "i32"),), arch="sm_100")


@needs_assembler
def test_the_rest_of_the_launch_is_counted_and_the_first_line_says_so() -> None:
    found = analyzed(PTX)
    assert "tensor memory operations are not counted" in found.verdict
    (store,) = (site for site in found.sites if site.space == "global")
    assert (store.op, store.requests, store.sectors) == ("store", 1, 4)
    assert "reserved by the system" in {site.array for site in found.sites}
    assert found.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] is None


@needs_assembler
def test_what_was_in_tensor_memory_is_unknown() -> None:
    (store,) = (site for site in analyzed(INDEXED).sites if site.space == "global")
    assert store.unresolved is not None and "what tensor memory holds" in store.unresolved
    out = np.zeros(32, np.int32)
    with pytest.raises(MemsimError, match="what tensor memory holds"):
        memsim.run(memsim.load(PTX, arch="sm_100")["product"], 1, 32, (out,))


@needs_assembler
def test_sanitize_says_what_it_does_not_judge() -> None:
    module = memsim.load(PTX, arch="sm_100")
    found = memsim.sanitize(module["product"], 1, 32, (memsim.ArrayArg((32,), "i32"),), arch="sm_100")
    assert found.exit_code == 2 and not found.errors
    assert any("operations on tensor memory" in why for why in found.unjudged)
