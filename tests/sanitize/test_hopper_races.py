"""Races of copies by TMA, mbarriers, proxies and clusters, each beside its good twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import RACE, SYNC, Sanitized
from tests.simt.cuda import HOPPER, machine_kernel

STORE = """
__device__ void put(void *to, const void *from, u32 n) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\\n"
                 "cp.async.bulk.commit_group;" :: "l"(to), "r"(at(from)), "r"(n) : "memory"); }
__device__ void get(void *to, const void *from, u32 n, u32 b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(from), "r"(n), "r"(b) : "memory"); }
#define DONE asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define FENCE asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
"""


def sanitized(body: str, grid: int = 1, block: int = 64, head: str = "", cluster: Any = None) -> Sanitized:
    text = f"{HOPPER}{STORE}\n__global__ {head} void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
    args = [np.zeros(1 << 12, np.float32)]
    found = sanitize_job(job_of(machine_kernel(text), grid, block, args, cluster=cluster), tools=(RACE,))
    return replace(found, findings=tuple(one for one in found.findings if one.space == "shared"))


LOAD = """
__shared__ alignas(128) float s[64];
__shared__ alignas(8) u64 b;
if (t == 0) { init(at(&b)); expect(at(&b), 256); }
__syncthreads();
if (t == 0)
get(s, o, 256, at(&b));
{0}
o[t + 64] = s[t];
"""


@pytest.mark.some(1)
@pytest.mark.parametrize("grid", [1, 4])
def test_a_load_by_tma_is_there_for_those_that_wait_for_its_phase(grid: int) -> None:
    assert not sanitized(LOAD.replace("{0}", "wait(at(&b));"), grid).findings
    found = sanitized(LOAD.replace("{0}", ""), grid)
    assert len(found.findings) == 1 and found.findings[0].count == 64 * grid
    assert found.findings[0].cure.startswith("a wait for the phase")
    one_waits = LOAD.replace("{0}", "if (t < 32) wait(at(&b));")
    assert sanitized(one_waits, grid).findings[0].count == 32 * grid
    assert not sanitized(LOAD.replace("{0}", "if (t < 32) wait(at(&b)); __syncthreads();"), grid).findings


@pytest.mark.parametrize(
    ("bytes", "lacks"),
    [(256, ""), (260, "; 4 bytes are missing"), (128, "; 128 bytes more have come than it expects")],
)
def test_a_phase_that_never_completes_says_what_it_lacks(bytes: int, lacks: str) -> None:
    body = LOAD.replace("256);", f"{bytes});").replace("{0}", "wait(at(&b));")
    text = f"{HOPPER}{STORE}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
    job = job_of(machine_kernel(text), 1, 64, [np.zeros(1 << 12, np.float32)])
    found = sanitize_job(job, tools=(SYNC,)).findings
    assert len(found) == bool(lacks) and all(one.kind.endswith(lacks) for one in found)


@pytest.mark.slow
def test_an_mbarrier_is_initialized_before_others_use_it() -> None:
    body = """
__shared__ alignas(8) u64 b;
if (t == 0) init(at(&b), 64);
{0}
asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at(&b)) : "memory");
wait(at(&b));
"""
    assert not sanitized(body.replace("{0}", "__syncthreads();")).findings
    found = sanitized(body.replace("{0}", "__syncwarp();")).findings
    assert {(one.array, one.first.does, one.second.does) for one in found} == {("b", "initializes", "uses")}
    assert {one.second.thread for one in found} == {32}
    alone = "if (t >= 32) return;\n" + body.replace("&b), 64", "&b), 32").replace("{0}", "__syncwarp();")
    assert not sanitized(alone).findings


SENT = """
__shared__ alignas(128) float s[64];
s[t] = o[t];
{0}
__syncthreads();
{1}
if (t == 0) { put(o + 64, s, 256); {2} }
__syncthreads();
s[t] = t;
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("fence", "late_fence", "wait", "kinds"),
    [
        ("FENCE;", "", "DONE;", []),
        ("", "if (t == 0) FENCE;", "DONE;", []),  # the fence is on the way, by whoever
        ("", "if (t == 32) FENCE;", "DONE;", ["a copy by TMA is not ordered"]),
        ("", "", "DONE;", ["a copy by TMA is not ordered"]),
        ("if (t < 32) FENCE;", "", "DONE;", ["a copy by TMA is not ordered"]),
        ("FENCE;", "", "", ["nothing orders the two accesses"]),
    ],
)
def test_a_store_by_tma_needs_a_proxy_fence_before_and_a_wait_behind(
    fence: str, late_fence: str, wait: str, kinds: list[str]
) -> None:
    found = sanitized(SENT.replace("{0}", fence).replace("{1}", late_fence).replace("{2}", wait))
    assert [any(one.kind.startswith(kind) for kind in kinds) for one in found.findings] == [True] * len(kinds)
    if kinds and not wait:
        assert found.findings[0].first.thread == 0 and found.findings[0].second.does == "stores"


@pytest.mark.slow
def test_a_ring_of_buffers_needs_who_reads_to_say_that_it_has_read() -> None:
    body = """
__shared__ alignas(128) float s[32];
__shared__ alignas(8) u64 full, empty, other;
if (t == 0) { init(at(&full)); init(at(&empty), 32); init(at(&other)); }
__syncthreads();
if (t == 0) {
    expect(at(&full), 128); get(s, o, 128, at(&full));
    {0}
    expect(at(&other), 128); get(s, o + 32, 128, at(&other)); }
if (t >= 32) { wait(at(&full)); o[t + 64] = s[t - 32];
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at(&empty)) : "memory"); }
"""
    assert not sanitized(body.replace("{0}", "wait(at(&empty));")).findings
    found = sanitized(body.replace("{0}", "wait(at(&full));"))
    assert len(found.findings) == 1
    assert {found.findings[0].first.does, found.findings[0].second.does} == {"loads", "copies to"}


@pytest.mark.some(1)
@pytest.mark.parametrize("barrier", ["meet();", "", "__syncthreads();"])
def test_shared_memory_of_another_block_is_ordered_by_the_clusters_barrier(barrier: str) -> None:
    body = f"""
__shared__ float s[64];
s[t] = t;
{barrier}
u32 there = of(at(s + (t ^ 32)), rank() ^ 1); float v;
asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
o[t] = v;
meet();
"""
    found = sanitized(body, grid=4, cluster=2)
    assert len(found.findings) == (barrier != "meet();")
    for one in found.findings:
        assert one.count == 64 * 4 and "cluster.sync()" in one.cure and one.second is not None
        assert {one.first.block, one.second.block} == {0, 1} and one.second.thread >= 0


def test_who_stores_to_another_block_is_a_thread_there() -> None:
    body = """
__shared__ float s[64];
meet();
asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(of(at(s + t), rank() ^ 1)), "f"(1.f) : "memory");
__syncthreads();
o[t] = s[t];
meet();
"""
    (one,) = sanitized(body, grid=2, cluster=2).findings
    assert one.second is not None and (one.first.block, one.second.block) == (1, 0)
    assert one.first.does == "stores" and one.second.does == "loads" and "cluster.sync()" in one.cure


@pytest.mark.some(1)
@pytest.mark.parametrize("waits", ["wait(at(&b));", ""])
def test_an_asynchronous_store_is_there_for_those_that_wait_for_its_phase(waits: str) -> None:
    """PTX ISA, `st.async`: who waits for the phase of its mbarrier sees what it stored."""
    body = f"""
__shared__ float s[64];
__shared__ alignas(8) u64 b;
if (t == 0) {{ init(at(&b)); expect(at(&b), 256); }}
meet();
asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
             :: "r"(of(at(s + t), rank() ^ 1)), "r"(t), "r"(of(at(&b), rank() ^ 1)) : "memory");
{waits}
o[t] = s[t];
meet();
"""
    found = sanitized(body, grid=4, cluster=2)
    assert [one.count for one in found.findings] == ([] if waits else [64 * 4])
    if not waits:
        assert {found.findings[0].first.does, found.findings[0].second.does} == {"stores", "loads"}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("arrive", "wait", None),
        ("", "wait", "have not arrived there"),
        ("arrive", "", "have not waited since they arrived"),
    ],
)
def test_threads_arrive_at_a_clusters_barrier_and_wait_in_turn(
    first: str, second: str, kind: str | None
) -> None:
    body = "".join(
        f'asm volatile("barrier.cluster.{one}.aligned;" ::: "memory");\n' for one in (first, second) if one
    )
    text = f"{HOPPER}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}o[t] = 1;\nmeet();\n}}"
    job = job_of(machine_kernel(text), 4, 64, [np.zeros(64, np.float32)], cluster=2)
    found = sanitize_job(job, tools=(SYNC,)).findings
    assert [kind is not None and kind in one.kind for one in found] == [True] * (kind is not None)


#: Other blocks access the memory of block 0, whose threads wait for one thread of each of `{2}` of them.
HANDED = """__shared__ float s[64]; __shared__ alignas(8) u64 b;
if (t == 0) init(at(&b), {2});
s[t] = 1;
meet();
if (rank()) {
u32 there = of(at(s + t), 0), far = of(at(&b), 0); float v = 0;
{0}
o[t + rank() * 64] = v;
{1}
if (t == 0 && rank() <= {2})
asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far) : "memory");
} else {
wait(at(&b));
o[t] = s[t];
s[t] = 2;
}
meet();"""
FAR_LOAD = 'asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");'
FAR_STORE = 'asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(there), "f"(v) : "memory");'


@pytest.mark.parametrize("access", [FAR_LOAD, FAR_STORE], ids=["load", "store"])
def test_a_thread_that_arrives_in_another_block_tells_of_its_own_block(access: str) -> None:
    """What its barrier has ordered before."""
    body = HANDED.replace("{0}", access).replace("{2}", "1")
    assert not sanitized(body.replace("{1}", "__syncthreads();"), 2, cluster=2).findings
    found = sanitized(body.replace("{1}", ""), 2, cluster=2).findings
    assert found and {one.element for one in found} == {"s[32]"}  # what the other warp accessed


def test_each_block_that_accesses_memory_of_another_one_is_waited_for() -> None:
    """Not only the one that did so last."""
    body = HANDED.replace("{0}", FAR_LOAD).replace("{1}", "__syncthreads();")
    assert not sanitized(body.replace("{2}", "3"), 4, cluster=4).findings
    for waits in (1, 2):
        (one,) = sanitized(body.replace("{2}", str(waits)), 4, cluster=4).findings
        assert one.first.block > waits and one.count == 64 * (3 - waits)


@pytest.mark.parametrize(("waits", "is_race"), [("", False), ("if (t)", True)])
def test_each_warp_that_copies_a_tile_is_waited_for(waits: str, is_race: bool) -> None:
    """Not only the one that copied it last."""
    body = f"""__shared__ alignas(128) float s[64];
s[t] = t; FENCE;
__syncthreads();
if (t % 32 == 0) {{ put(o + 2 * t, s, 256); {waits} DONE; }}
__syncthreads();
s[t] = 2;"""
    found = sanitized(body).findings
    assert [(one.first.does, one.second and one.second.does, one.count) for one in found] == [
        ("copies from", "stores", 64)
    ] * is_race
