"""Why a deleted barrier is not missed, by a graph of what a launch does: told only where it is so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from docs.deleted_reasons import (
    BARRIER_BEHIND,
    INITIALIZED,
    ONE_BLOCK,
    PAIRS,
    TOGETHER,
    UNCHECKED,
    WAITED,
    reason,
)
from memsim.api.running import job_of
from memsim.job import Job
from tests.catalog.test_compiled import other_nvrtc
from tests.sanitize.deleted import ordering
from tests.sanitize.test_block_lifetimes import LOAD, REMOTE
from tests.sanitize.test_hopper_races import STORE
from tests.sanitize.test_products import kernel
from tests.simt.cuda import HOPPER, machine_kernel


def job(body: str, cluster: int | None = None) -> Job:
    text = f"{HOPPER}{STORE}{REMOTE}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
    args = [np.zeros(1 << 12, np.float32)]
    return job_of(machine_kernel(text), 2, 64, args, cluster=cluster)


def reasons(one: Job, *begins: str) -> list[str]:
    """Of each of these instructions."""
    return [reason(one, op) for op in ordering(one.loaded, begins)]


@pytest.mark.slow
def test_a_barrier_is_missed_where_a_pair_is_left_without_order() -> None:
    body = "__shared__ float s[64]; s[t] = t; __syncthreads(); o[t] = s[t ^ {0}];"
    assert reasons(job(body.replace("{0}", "1")), "BAR") == [PAIRS]  # within a warp
    assert reasons(job(body.replace("{0}", "32")), "BAR") == [UNCHECKED]


@pytest.mark.parametrize(("other", "found"), [("__syncthreads();", PAIRS), ("", UNCHECKED)])
def test_a_wait_for_a_phase_is_missed_unless_a_barrier_does_the_same(other: str, found: str) -> None:
    arrive = 'asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at(&b)) : "memory");'
    body = f"""__shared__ float s[64]; __shared__ alignas(8) u64 b; if (t == 0) init(at(&b), 64);
__syncthreads(); s[t] = t; {arrive} {other} wait(at(&b)); o[t] = s[t ^ 32];"""
    assert reasons(job(body), "SYNCS.PHASECHK")[0] == found


@pytest.mark.slow
def test_the_last_barrier_of_a_cluster_is_missed_behind_accesses_to_other_blocks() -> None:
    for behind, found in (("meet();", UNCHECKED), ("meet(); meet();", WAITED)):
        one = job(LOAD.replace("{0}", "s[t] = t; meet();").replace("{1}", behind), 2)
        assert reason(one, [*ordering(one.loaded, ("UCGABAR_WAIT",))][-1]) == found


@pytest.mark.slow
def test_a_proxy_fence_is_missed_behind_stores() -> None:
    body = """__shared__ alignas(128) float s[64]; __shared__ alignas(8) u64 b; {0}
if (t == 0) init(at(&b)); FENCE; __syncthreads(); if (t == 0) { put(o, s, 256); DONE; }"""
    assert {*reasons(job(body.replace("{0}", "")), "FENCE")} == {INITIALIZED}
    assert UNCHECKED in reasons(job(body.replace("{0}", "s[t] = t;")), "FENCE")


@pytest.mark.slow
def test_a_wait_for_a_product_is_missed_where_its_registers_are_read() -> None:
    whole = job_of(kernel(), 1, 128, [np.zeros(256, np.float32), np.zeros((256, 4), np.int32)])
    assert set(reasons(whole, "WARPGROUP.DEPBAR")) == {UNCHECKED}
    assert UNCHECKED in reasons(whole, "WARPGROUP.ARRIVE")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turns", "barrier", "found"),
    [
        ("t & 7", "syncwarp", UNCHECKED),
        ("t >> 5", "syncwarp", TOGETHER),
        ("t & 7", "syncthreads", BARRIER_BEHIND),
    ],
)
def test_lanes_that_come_together_or_to_a_barrier_need_not_meet(turns: str, barrier: str, found: str) -> None:
    loop = f"#pragma unroll 1\nfor (int i = 0; i < ({turns}); i++) s[t ^ 1] += i;\n"
    one = job(f"__shared__ int s[64]; s[t] = t;\n{loop}__{barrier}(); o[t] = s[t ^ 3];")
    if other_nvrtc() and not reasons(one, "WARPSYNC"):
        pytest.skip("NVRTC leaves WARPSYNC out, as the lanes have met at a BSYNC")
    assert reasons(one, "WARPSYNC") == [found]


def test_a_fence_is_missed_unless_the_launch_has_one_block() -> None:
    two = job("o[t + 64 * blockIdx.x] = 1; __threadfence(); o[t + 64 * blockIdx.x] = 2;")
    assert {*reasons(two, "MEMBAR")} == {UNCHECKED}
    one = replace(two, launch=replace(two.launch, grid=(1, 1, 1)))
    assert {*reasons(one, "MEMBAR")} == {ONE_BLOCK}


@pytest.mark.parametrize("mask", ["0xffffu", "~0u"])
def test_lanes_that_a_mask_names_need_not_meet_where_they_come_together(mask: str) -> None:
    lanes, unknown = 32 if mask == "~0u" else 16, f"({mask} << (o[t] > 4))"
    body = f"if (t % 32 < {lanes}) {{ s[t] = 1; __syncwarp({unknown}); o[t] = s[t ^ 3]; }}"
    apart = f"if (t % 2) {{ {body} }} else {{ __syncwarp({unknown}); atomicAdd(p + t, s[t ^ 1]); }}"
    for code, found in ((body, TOGETHER), (f"if (t % 32 >= {lanes}) return;\n{apart}", UNCHECKED)):
        one = job(f"__shared__ int s[64]; float *p = o + 64; s[t] = t;\n{code}")
        syncs = [op for op in ordering(one.loaded, ("WARPSYNC",)) if op.form.operands]
        assert syncs and {reason(one, op) for op in syncs} == {found}
