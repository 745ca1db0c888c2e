"""Shared memory of a block that has not begun or has ended, and mbarriers of others, beside good twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import BOUNDS, RACE, SYNC, Sanitized
from tests.sanitize.test_hopper_races import STORE
from tests.simt.cuda import HOPPER, machine_kernel

REMOTE = """
__device__ void tell(u32 b) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(b) : "memory"); }
__device__ float load(u32 a) { float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(a) : "memory"); return v; }
__device__ void send(u32 a, u32 b) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], 1, [%1];"
                 :: "r"(a), "r"(b) : "memory"); }
"""
BEGINS = "a block may not have begun when another one accesses its shared memory"
ENDS = "a block may end before another one has accessed its shared memory"
COPIED = "a block may end before what is copied to its shared memory is there"


def sanitized(body: str, tool: str = SYNC, cluster: int | None = 2) -> Sanitized:
    text = f"{HOPPER}{STORE}{REMOTE}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
    return sanitize_job(
        job_of(machine_kernel(text), 4, 64, [np.zeros(1 << 12, np.float32)], cluster=cluster), tools=(tool,)
    )


LOAD = "__shared__ float s[64];\n{0}\no[t] = load(of(at(s + t), rank() ^ 1));\n{1}"


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("before", "behind", "kinds"),
    [
        ("meet();", "meet();", []),
        ("", "meet();", [BEGINS]),
        ("meet();", "", [ENDS]),
        ("__syncthreads();", "__syncthreads();", [BEGINS, ENDS]),
    ],
)
def test_a_block_has_begun_and_not_ended_when_another_one_accesses_its_memory(
    before: str, behind: str, kinds: list[str]
) -> None:
    found = sanitized(LOAD.replace("{0}", before).replace("{1}", behind)).findings
    assert {one.kind for one in found} == {*kinds}
    assert all(one.count == 4 * 2 and one.first.does == "loads" and one.first.thread == 0 for one in found)


RING = """
__shared__ alignas(8) u64 b;
if (t == 0) init(at(&b), 64);
{0}
tell(of(at(&b), rank() ^ 1));
{1}
"""


@pytest.mark.slow
def test_a_wait_for_the_arrivals_of_another_block_keeps_a_block_alive() -> None:
    def of(before: str, behind: str) -> set[str]:
        return {one.kind for one in sanitized(RING.replace("{0}", before).replace("{1}", behind)).findings}

    assert not of("meet();", "wait(at(&b));")
    assert of("meet();", "") == {ENDS}
    assert not of("meet();", "if (t < 32) wait(at(&b));")  # a block ends with its last thread


@pytest.mark.slow
def test_an_mbarrier_is_initialized_before_other_blocks_arrive_there() -> None:
    early = RING.replace("{1}", "wait(at(&b)); meet();")
    late = "meet();\n" + RING.replace("{1}", "wait(at(&b)); meet();")
    assert not sanitized(early.replace("{0}", "meet();"), RACE).findings
    found = sanitized(late.replace("{0}", "__syncthreads();"), RACE).findings
    assert ("b", "initializes", "uses") in [(one.array, one.first.does, one.second.does) for one in found]


COPY = """
__shared__ alignas(128) float s[64];
__shared__ alignas(8) u64 b;
if (t == 0) { init(at(&b)); expect(at(&b), 256); }
__syncthreads();
if (t == 0) get(s, o, 256, at(&b));
{0}
"""
SENT = """
__shared__ float s[64];
__shared__ alignas(8) u64 b;
if (t == 0) { init(at(&b)); expect(at(&b), 256); }
meet();
send(of(at(s + t), rank() ^ 1), of(at(&b), rank() ^ 1));
{0}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(("body", "cluster"), [(COPY, None), (SENT, 2)])
def test_a_block_does_not_end_before_what_is_copied_to_it_is_there(body: str, cluster: int | None) -> None:
    assert not sanitized(body.replace("{0}", "wait(at(&b));"), cluster=cluster).findings
    assert COPIED in {one.kind for one in sanitized(body.replace("{0}", ""), cluster=cluster).findings}


@pytest.mark.slow
def test_the_fence_behind_an_initialization_leaves_nothing_in_machine_code() -> None:
    """PTX ISA, `fence.mbarrier_init`: so code with it and without is one, and neither is an error."""
    fence = 'if (t == 0) asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");'
    texts = [
        f"{HOPPER}{STORE}{REMOTE}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
        for body in (
            RING.replace("{0}", f"{one}\nmeet();").replace("{1}", "wait(at(&b));") for one in ("", fence)
        )
    ]
    without, whole = (
        Counter(op.form.opcode for op in machine_kernel(text).executable.program.ops) for text in texts
    )
    for padding in ("NOP", "BRA"):  # BRA: behind the end, too
        del without[padding], whole[padding]
    assert without == whole and without["SYNCS"] > 0


@pytest.mark.parametrize(
    ("place", "kind", "count"),
    [
        ("of(at(s + t + 1), rank() ^ 1)", "4 bytes beyond the end of the shared memory of another block,", 4),
        ("of(at(s + t / 2), rank() ^ 1) + 2", "misaligned for 4 bytes", 256),
        ("of(at(s + t), 2 - t / 63)", "out of bounds in block 2 of a cluster of 2", 4 * 63),
        ("of(at(s + t), rank() ^ 1)", "", 0),
    ],
)
def test_an_access_to_another_block_stays_in_its_memory(place: str, kind: str, count: int) -> None:
    found = sanitized(f"__shared__ float s[64];\ns[t] = 1;\nmeet();\no[t] = load({place});\nmeet();", BOUNDS)
    assert [one.count for one in found.findings] == [count] * (count > 0)
    assert all(kind in one.kind and one.places[0][1] > 0 for one in found.findings)
