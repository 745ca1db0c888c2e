"""What TMA writes to global memory, and reads of it: races, bounds, unwritten memory; beside good twins."""

# ruff: noqa: E501 (lines of PTX)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim import TensorMap
from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import BOUNDS, INIT, RACE, SYNC, Hazard
from tests.sanitize.test_hopper_races import STORE
from tests.simt.cuda import HOPPER, machine_kernel

ADD = """
__device__ void add(void *to, const void *from, u32 n) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;\\n"
                 "cp.async.bulk.commit_group;" :: "l"(to), "r"(at(from)), "r"(n) : "memory"); }
__device__ void box(const Map *m, const void *from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\\n"
                 "cp.async.bulk.commit_group;" :: "l"(m), "r"(x), "r"(y), "r"(at(from)) : "memory"); }
__device__ void fetch(const Map *m, void *to, int x, int y, u32 b) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" :: "r"(at(to)), "l"(m), "r"(x), "r"(y), "r"(b) : "memory"); }
#define WRITTEN asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define LEFT(n) asm volatile("cp.async.bulk.wait_group " #n ";" ::: "memory")
"""
#: A block's 64 numbers in shared memory, which TMA may read.
FILLED = """
__shared__ alignas(128) float s[64];
s[t] = o[t + 512]; FENCE; __syncthreads();
"""


def sanitized(
    body: str, grid: int = 1, tool: str = RACE, block: int = 64, unwritten: Any = (), tensor: Any = None
) -> tuple[Hazard, ...]:
    """The findings but for those in shared memory."""
    text = f"{HOPPER}{STORE}{ADD}\n__global__ void k(float *o, const __grid_constant__ Map m, unsigned *f) {{"
    kernel = machine_kernel(f"{text}\nint t = threadIdx.x, b = blockIdx.x;\n{FILLED}{body}\n}}")
    array = np.zeros((16, 64), np.float32)
    maps = TensorMap(array, (4, 16)) if tensor is None else tensor
    job = job_of(kernel, grid, block, [np.zeros(1024, np.float32), maps, np.zeros(4, np.uint32)])
    found = sanitize_job(job, tools=(tool,), unwritten=unwritten)
    assert not found.limits and (found.findings or not found.unjudged)
    return tuple(one for one in found.findings if one.space != "shared")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("wait", "count"),
    [
        ("if (t == 0) WRITTEN; __syncthreads();", 0),
        ("if (t == 0) DONE; __syncthreads();", 64),  # it has only read
        ("__syncthreads(); if (t == 0) WRITTEN;", 32),  # the other warp does not wait
        ("__syncthreads();", 64),
    ],
)
def test_who_reads_what_tma_writes_waits_for_it(wait: str, count: int) -> None:
    found = sanitized(f"if (t == 0) put(o, s, 256);\n{wait}\no[t + 256] = o[t];")
    assert [one.count for one in found] == [count] * bool(count)
    if count:
        (one,) = found
        assert (one.array, one.element, one.first.does, one.second.does) == (
            "o",
            one.element,
            "copies to",
            "loads",
        )
        assert one.first.thread == -1 and one.cure.startswith("cp.async.bulk.wait_group (without .read)")


@pytest.mark.slow
def test_a_wait_may_leave_the_latest_groups() -> None:
    body = "if (t == 0) {{ put(o, s, 256); put(o + 64, s, 256); LEFT({0}); }}\n__syncthreads();\no[t + 256] = {1};"
    assert not sanitized(body.format(1, "o[t]"))
    assert [one.count for one in sanitized(body.format(1, "o[t + 64]"))] == [64]
    assert not sanitized(body.format(0, "o[t] + o[t + 64]"))


@pytest.mark.slow
def test_two_copies_to_one_place_are_not_ordered() -> None:
    body = "if (t == 0) {{ put(o, s, 256); {0}; put(o + {1}, s, 128); }}"
    assert [one.count for one in sanitized(body.format("DONE", 32))] == [32]
    assert not sanitized(body.format("WRITTEN", 32)) and not sanitized(body.format("DONE", 64))


@pytest.mark.slow
def test_blocks_copy_to_places_of_their_own() -> None:
    body = "if (t == 0) {{ {0}(o + {1}, s, 256); WRITTEN; }}"
    assert not sanitized(body.format("put", "64 * b"), 3)
    assert [one.count for one in sanitized(body.format("put", "32 * b"), 3)] == [64]
    (one,) = sanitized(body.format("put", "0"), 2)
    assert one.first.block != one.second.block and one.array == "o"
    assert not sanitized(body.format("add", "0"), 3)  # atomically
    plain = "if (b == 1) o[t] = 1;\n" + body.format("add", "0")
    assert sanitized(plain, 3) and not sanitized(plain.replace("o[t] = 1", "atomicAdd(o + t, 1)"), 3)


FLAG = """
if (b == 0 && t == 0) { put(o, s, 256); {0}; __threadfence(); atomicExch(f, 1u); }
if (b == 1) { if (t == 0) { while (atomicAdd(f, 0u) == 0); __threadfence(); } __syncthreads(); o[t + 256] = o[t]; }
"""


@pytest.mark.slow
def test_a_flag_tells_of_a_copy_that_was_waited_for() -> None:
    assert not sanitized(FLAG.replace("{0}", "WRITTEN"), 2)
    assert [one.count for one in sanitized(FLAG.replace("{0}", ""), 2)] == [64]


BOX = "if (t == 0) {{ box(&m, s, {0}, {1}); {2}; }}\n"


@pytest.mark.slow
def test_boxes_of_a_tensor_are_written_where_they_lie() -> None:
    own = BOX.format("16 * b", "0", "WRITTEN")
    assert not sanitized(own, 4)
    assert [one.count for one in sanitized(BOX.format("12 * b", "0", "WRITTEN"), 4)] == [3 * 4 * 4]
    assert not sanitized(BOX.format("48", "b ? 16 : 0", "WRITTEN"), 2)  # all of the second is outside
    (one,) = sanitized(BOX.format("0", "4 * (b / 2)", "WRITTEN"), 4)
    assert (one.array, one.first.does, one.second.does) == (
        "m",
        "copies to",
        "copies to",
    ) and one.count == 128


@pytest.mark.slow
def test_what_tma_reads_was_written_before() -> None:
    load = """
__shared__ alignas(128) float q[64]; __shared__ alignas(8) u64 w;
if (t == 0) {{ init(at(&w)); {0}; {1}; }}
__syncthreads();
if (t == 0) {{ expect(at(&w), 256); fetch(&m, q, 0, {2}, at(&w)); }}
wait(at(&w)); o[t] = q[t];"""
    box = "box(&m, s, 0, 0)"
    assert not sanitized(load.format(box, "WRITTEN", 0)) and not sanitized(load.format(box, "DONE", 4))
    (one,) = sanitized(load.format(box, "DONE", 0))
    assert (one.first.does, one.second.does, one.count) == ("copies to", "copies from", 64)
    assert not sanitized(load.format(box, "WRITTEN", 0), tool=INIT, unwritten=["m"])
    (one,) = sanitized(load.format(box, "WRITTEN", 4), tool=INIT, unwritten=["m"])
    assert one.array == "m" and one.offset == 4 * 64 * 4 and one.first.does == "copies from" and not one.doubt


@pytest.mark.parametrize(("swizzle", "swizzled"), [(0, ""), (64, "^ (t >> 3 & 12)")])
def test_a_box_is_not_read_where_it_is_outside_of_the_tensor(swizzle: int, swizzled: str) -> None:
    """Rows in shared memory are padded so, against bank conflicts."""
    body = """
__shared__ alignas(512) float q[64];
if (t % 16 < {0}) q[t {1}] = 1; FENCE; __syncthreads();
if (t == 0) {{ box(&m, q, {2}, 0); WRITTEN; }}"""
    maps = TensorMap(np.zeros((16, 64), np.float32), (4, 16), swizzle=swizzle)

    def found(written: int, column: int) -> list[tuple[str, int, int]]:
        text = f"{HOPPER}{STORE}{ADD}\n__global__ void k(const __grid_constant__ Map m) {{"
        kernel = machine_kernel(f"{text} int t = threadIdx.x; {body.format(written, swizzled, column)} }}")
        findings = sanitize_job(job_of(kernel, 1, 64, [maps]), tools=(INIT,)).findings
        return [(one.array, one.offset, one.count) for one in findings]

    assert not found(16, 0) and not found(12, 52)
    assert found(12, 0) == [("q", 48, 16)]
    assert found(8, 52) == [("q", 32, 16)]


@pytest.mark.slow
def test_a_box_that_a_chip_refuses_and_a_copy_beyond_its_array_are_out_of_bounds() -> None:
    assert not sanitized(BOX.format(16, 12, "DONE"), tool=BOUNDS)
    assert not sanitized(BOX.format(56, 14, "DONE"), tool=BOUNDS)  # what is outside is dropped
    (one,) = sanitized(BOX.format(3, 0, "DONE"), tool=BOUNDS)
    assert "an H200 rejects boxes" in one.kind
    put = "if (t == 0) {{ put(o + {0}, s, 256); DONE; }}"
    assert not sanitized(put.format(960), tool=BOUNDS)
    (one,) = sanitized(put.format(992), tool=BOUNDS)
    assert one.array == "o" and one.kind == "128 bytes beyond the end of o, which has 4,096 bytes"


@pytest.mark.slow
def test_a_block_waits_for_what_reads_its_shared_memory_before_it_ends() -> None:
    body = "if (t == 0) {{ put(o + 64 * b, s, 256); {0} }}"
    assert not sanitized(body.format("DONE;"), 3, SYNC) and not sanitized(body.format("WRITTEN;"), 3, SYNC)
    (one,) = sanitized(body.format(""), 3, SYNC)
    assert one.kind.startswith("a block may end") and one.count == 3 and one.first.thread == -1
    twice = "if (t == 0) {{ put(o, s, 256); put(o + 64, s, 256); {0} }}"
    assert not sanitized(twice.format("LEFT(0);"), 1, SYNC)
    assert [one.count for one in sanitized(twice.format("LEFT(1);"), 1, SYNC)] == [1]
    other = "if (t == 0) put(o, s, 256);\nif (t == 32) DONE;"  # only who copies can wait
    assert sanitized(other, 1, SYNC) and not sanitized(other.replace("t == 32", "t == 0"), 1, SYNC)


LOADED = """
__shared__ alignas(128) float q[64]; __shared__ alignas(8) u64 w, x;
if (t == 0) {{ init(at(&w)); init(at(&x), 64); expect(at(&w), 256); get(q, o, 256, at(&w)); }}
{0}
o[t + {1}] = q[t];"""
ARRIVE = 'asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" :: "r"(at(&x)) : "memory");'


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("wait", "count"),
    [
        ("__syncthreads(); wait(at(&w));", 0),
        ("__syncthreads(); if (t < 32) wait(at(&w)); __syncthreads();", 0),
        ("__syncthreads(); if (t < 32) wait(at(&w)); ARRIVE wait(at(&x));", 0),
        ("__syncthreads(); if (t < 32) wait(at(&w));", 32),
        ("__syncthreads();", 64),
        ("__syncthreads(); ARRIVE wait(at(&x));", 64),
    ],
)
def test_who_overwrites_what_tma_reads_waits_for_it(wait: str, count: int) -> None:
    wait = wait.replace("ARRIVE", ARRIVE)
    found = sanitized(LOADED.format(wait, 0))
    assert [one.count for one in found] == [count] * bool(count)
    assert not sanitized(LOADED.format(wait, 64))
    if count:
        (one,) = found
        assert (one.first.does, one.second.does, one.first.thread) == ("copies from", "stores", -1)
        assert one.cure.startswith("a wait for the phase of the mbarrier")


GLOBAL_FENCE = 'asm volatile("fence.proxy.async.global;" ::: "memory");'
BOTH_FENCES = 'asm volatile("fence.proxy.async;" ::: "memory");'
THEN_LOADED = """
__shared__ alignas(128) float q[64]; __shared__ alignas(8) u64 w;
if (t == 0) {{ init(at(&w)); }}
o[t] = t;
{0}
__syncthreads();
{1}
if (t == 0) {{ expect(at(&w), 256); get(q, o + {2}, 256, at(&w)); }}
wait(at(&w)); o[t + 256] = q[t];"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("before", "behind", "count"),
    [
        (GLOBAL_FENCE, "", 0),
        (BOTH_FENCES, "", 0),
        ("", f"if (t == 0) {GLOBAL_FENCE}", 0),  # the fence is on the way, by whoever
        (f"if (t < 32) {GLOBAL_FENCE}", "", 32),
        ("", f"if (t == 32) {GLOBAL_FENCE}", 64),
        ("FENCE;", "", 64),  # of shared memory
        ("", "", 64),
    ],
)
def test_what_threads_write_and_tma_reads_needs_a_proxy_fence(before: str, behind: str, count: int) -> None:
    found = sanitized(THEN_LOADED.format(before, behind, 0))
    assert [one.count for one in found] == [count] * bool(count)
    assert not sanitized(THEN_LOADED.format(before, behind, 64))
    if count:
        assert found[0].kind.startswith("a copy by TMA is not ordered with an access by the generic proxy")
        assert found[0].cure.startswith("fence.proxy.async between")


HANDED = """
__shared__ alignas(128) float q[64]; __shared__ alignas(8) u64 w;
if (b == 0) {{ o[t] = t; {0} __syncthreads(); if (t == 0) {{ __threadfence(); atomicExch(f, 1u); }} }}
if (b == 1 && t == 0) {{ while (atomicAdd(f, 0u) == 0); __threadfence(); {1}
    init(at(&w)); expect(at(&w), 256); get(q, o, 256, at(&w)); wait(at(&w)); o[256] = q[0]; }}
"""


@pytest.mark.slow
def test_a_flag_hands_on_what_is_behind_a_proxy_fence() -> None:
    for before, behind in ((GLOBAL_FENCE, ""), ("", GLOBAL_FENCE), (BOTH_FENCES, ""), ("", BOTH_FENCES)):
        assert not sanitized(HANDED.format(before, behind), 2)
    assert [one.count for one in sanitized(HANDED.format("", ""), 2)] == [64]


@pytest.mark.slow
def test_a_proxy_fence_of_global_memory_is_none_of_shared_memory() -> None:
    text = f"{HOPPER}{STORE}__global__ void k(float *o) {{ int t = threadIdx.x; __shared__ alignas(128) float s[64];"
    body = "s[t] = t; {0} __syncthreads(); if (t == 0) {{ put(o, s, 256); DONE; }} }}"
    for fence, count in (("FENCE;", 0), (BOTH_FENCES, 0), (GLOBAL_FENCE, 1)):
        kernel = machine_kernel(text + body.format(fence))
        found = sanitize_job(job_of(kernel, 1, 64, [np.zeros(64, np.float32)]), tools=(RACE,))
        assert len(found.findings) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copy", "unit"),
    [
        ("put(o + 2, s, 256);", 16),
        ("put(o, s + 2, 128);", 16),
        ("put(o + 4, s + 4, 128);", 0),
        ("box(&m, s + 4, 0, 0);", 128),
        ("box(&m, s, 4, 1);", 0),
    ],
)
def test_addresses_of_copies_are_aligned(copy: str, unit: int) -> None:
    text = f"if (t == 0) {{ {copy} DONE; }}"
    if not unit:
        assert not sanitized(text, tool=BOUNDS)
        return
    kernel = machine_kernel(
        f"{HOPPER}{STORE}{ADD}\n__global__ void k(float *o, const __grid_constant__ Map m) {{\n"
        f"int t = threadIdx.x;\n{FILLED}{text}\n}}"
    )
    job = job_of(
        kernel, 1, 64, [np.zeros(1024, np.float32), TensorMap(np.zeros((16, 64), np.float32), (4, 16))]
    )
    (one,) = sanitize_job(job, tools=(BOUNDS,)).findings
    assert one.kind.endswith(f"is misaligned for {unit} bytes") and one.first.does.startswith("copies")
