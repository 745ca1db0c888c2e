"""The total of `idc__requests`: indexed loads of constants, and those at fixed addresses."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from lab.experiments import HOPPER
from memsim.model.coalescing import constant_access
from tests.simt.cuda import machine_kernel
from tests.validate.conftest import TRACES

REQUESTS = "idc__requests.sum"
SOURCE = """
__constant__ unsigned table[256];
extern "C" __global__ void indexed(const int *in, unsigned *out) {
    out[threadIdx.x] = table[in[threadIdx.x] & 255];
}
extern "C" __global__ void guarded(const int *in, unsigned *out, int n) {
    unsigned v = table[in[threadIdx.x] & 255], more = 0;
    asm volatile("{.reg .pred p; setp.lt.s32 p, %1, 7; @p ld.const.u32 %0, [table+64];}"
                 : "+r"(more) : "r"(in[threadIdx.x]));
    out[threadIdx.x] = v + more;
}
extern "C" __global__ void plain(const int *in, unsigned *out) {
    out[threadIdx.x] = table[3] + in[threadIdx.x];
}
"""


@pytest.mark.parametrize(("different", "requests"), [(1, 1), (5, 5), (32, 32)])
def test_loads_at_fixed_addresses_make_a_request_of_each_warp(different: int, requests: int) -> None:
    kernel = machine_kernel(SOURCE, "indexed")
    index = np.arange(32, dtype=np.int32) % different
    arguments = [index, np.zeros(32, np.uint32)]
    analysis = memsim.analyze(kernel, 4, 32, arguments)
    loads = [text for _, text, *_ in analysis.trace.listing if text.startswith("LDC")]
    assert analysis.totals[REQUESTS] == 4 * (len(loads) - 1 + requests)


def test_no_total_without_an_index_or_under_a_guard() -> None:
    plain, with_guard = (machine_kernel(SOURCE, name) for name in ("plain", "guarded"))
    arguments = [np.arange(32, dtype=np.int32), np.zeros(32, np.uint32)]
    assert REQUESTS not in memsim.analyze(plain, 1, 32, arguments).totals
    guarded = memsim.analyze(with_guard, 1, 32, [*arguments, 3])
    assert any(text.startswith("@") and " LDC " in text for _, text, *_ in guarded.trace.listing)
    assert guarded.totals[REQUESTS] is None


def test_every_recorded_launch_makes_a_request_for_each_distinct_address() -> None:
    """`op_ldc` are the loads executed, one or two of them (16 bytes) at an index."""
    compared = 0
    for launch in HOPPER.load(TRACES / "nvidia-h200/hopper/probe.npz").parts["constants_and_local_memory"]:
        executed = launch.counters["smsp__inst_executed_op_ldc.sum"]
        more = 0
        if launch.kernel.startswith("c_ld"):
            width = int(launch.kernel.removeprefix("c_ld")) // 8
            row = launch.table[:32]
            addresses = (row & 0x7FFFFFFF).astype(np.int64) // width * width
            requests = int(constant_access(addresses, min(width, 8), active=(row >> 31).astype(bool)))
            more = max(1, width // 8) * (requests - 1)
        assert launch.counters[REQUESTS] == executed + more
        compared += 1
    assert compared == 162
