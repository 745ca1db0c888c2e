"""Races in global memory, each beside its good twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.describe import MIXED
from memsim.sanitizer.doubts import MAYBE_VECTOR, NARROWED, WHOLE
from memsim.sanitizer.hazards import RACE, Sanitized, read_allowance
from memsim.simt import engine
from tests.simt.cuda import machine_kernel


def sanitized(body: str, grid: Any = 4, block: Any = 64) -> Sanitized:
    text = f"""
__global__ void k(float *o, float *p) {{ int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;
{body}
}}"""
    args = [np.zeros(512, np.float32), np.zeros(1024, np.float32)]
    return sanitize_job(job_of(machine_kernel(text), grid, block, args), tools=(RACE,))


@pytest.mark.slow
def test_blocks_are_not_ordered() -> None:
    found = sanitized("p[i] = 1;\n__syncthreads();\no[i] = p[(i + 64) % 256];")
    (one,) = found.findings
    assert (one.array, one.space, one.count) == ("p", "global", 256)
    assert one.first.block != one.second.block and not one.doubt and "another launch" in one.cure
    assert not sanitized("p[i] = 1;\n__syncthreads();\no[i] = p[i ^ 32];").findings
    assert not sanitized("o[i] = p[(i + 64) % 256];").findings


@pytest.mark.slow
def test_warps_of_a_block_are_ordered_by_its_barriers() -> None:
    body = "p[i] = 1;\n{0}\no[i] = p[i ^ 32];"
    (one,) = sanitized(body.replace("{0}", "")).findings
    assert one.first.block == one.second.block and "__syncthreads()" in one.cure
    assert not sanitized(body.replace("{0}", "__syncthreads();")).findings


@pytest.mark.slow
def test_reading_what_another_block_overwrites_later_is_a_race() -> None:
    found = sanitized("float v = p[(i + 64) % 256];\np[i] = v + 1;")
    assert {one.first.does for one in found.findings} | {one.second.does for one in found.findings} == {
        "loads",
        "stores",
    }
    read_by_all = sanitized("o[i] = p[0];\nif (i == 3) p[0] = 1;")
    assert len(read_by_all.findings) == 1 and read_by_all.findings[0].element == "p[0]"
    assert not sanitized("float v = p[i];\np[i] = v + 1;").findings


@pytest.mark.slow
def test_atomics_race_with_plain_accesses_only() -> None:
    assert not sanitized("atomicAdd(p + t % 4, 1.f);").findings
    assert sanitized("atomicAdd(p + t % 4, 1.f);\no[i] = p[1];").findings
    assert sanitized("p[t % 4] += 1;").findings


WIDE = "atomicAdd((unsigned long long *)p, 1ull);"


@pytest.mark.parametrize(
    ("body", "doubts"),
    [
        (f"atomicAdd((int *)p + t % 2, 1); {WIDE}", {WHOLE}),
        (f"atomicAdd((int *)p + 2 + t % 2, 1); {WIDE}", set()),
        (f"{WIDE} o[i] = *(volatile int *)p;", {NARROWED}),
        (f"{WIDE} if (t == 3) *(volatile int *)p = 1;", {""}),
        (f"{WIDE} o[i] = *(volatile long long *)p;", set()),
        ("atomicAdd((int *)p, 1); o[i] = *(volatile long long *)p;", {MAYBE_VECTOR}),
    ],
)
def test_atomics_of_different_sizes_race_where_they_overlap(body: str, doubts: set[str]) -> None:
    found = sanitized(body).findings
    assert {one.doubt for one in found} == doubts and {one.kind for one in found} <= {MIXED}


@pytest.mark.parametrize(("barrier", "count"), [("", 64), ("__syncthreads();", 0)], ids=["none", "barrier"])
def test_a_loop_comes_back_to_places_that_others_have_stored_to(barrier: str, count: int) -> None:
    """Only then is there anything to compare, with what was before that, too."""
    body = (
        f"for (int n = 0; n < 3; n++) {{ o[t + n * 128] = n;\n{barrier}\no[(t + 32 * (n == 2)) % 64] = n; }}"
    )
    found = sanitized(body, grid=1).findings
    assert sum(one.count for one in found) == count
    assert all(one.first.thread // 32 != one.second.thread // 32 for one in found if one.second is not None)


LAST = """p[i] = 1;
/*fence*/ __threadfence();
/*barrier*/ __syncthreads();
__shared__ bool last;
if (t == 0) last = atomicAdd((int *)o, 1) == 3;
__syncthreads();
/*acquire*/ __threadfence();
if (last) o[64 + t] = p[t] + p[t + 64] + p[t + 128] + p[t + 192];"""


@pytest.mark.some(1)
@pytest.mark.parametrize("without", ["/*fence*/", "/*barrier*/", "/*acquire*/"])
def test_the_last_block_knows_what_is_behind_fences(without: str) -> None:
    assert not sanitized(LAST).findings
    (one,) = sanitized(LAST.replace(without, "//")).errors
    assert (one.array, one.first.does, one.second.does, one.doubt) == ("p", "stores", "loads", "")
    assert ("has told" in one.kind) == (without == "/*acquire*/")


@pytest.mark.slow
def test_one_thread_that_stores_and_counts_needs_no_barrier() -> None:
    one_stores = LAST.replace("p[i] = 1", "if (t == 0) p[b * 64] = 1").replace("/*barrier*/", "//")
    assert not sanitized(one_stores).errors
    volatile = LAST.replace("/*acquire*/", "//").replace("p[i]", "q[i]").replace("p[t", "q[t")
    assert not sanitized("volatile float *q = p;" + volatile).errors


def test_a_fence_of_a_block_orders_nothing_for_others() -> None:
    assert sanitized(LAST.replace("/*fence*/ __threadfence()", "__threadfence_block()")).errors
    assert not sanitized(LAST.replace("/*fence*/ __threadfence()", "__threadfence_system()")).errors


@pytest.mark.slow
def test_atomics_of_a_block_race_with_those_of_others() -> None:
    assert not sanitized("atomicAdd(p, 1.f);").errors
    (one,) = sanitized("atomicAdd_block(p, 1.f);").errors
    assert one.element == "p[0]" and one.first.block != one.second.block
    assert "of the scope of a block" in one.kind and "the scope of the device" in one.cure
    found = sanitized("if (b) atomicAdd_block(p, 1.f);\nif (b == 0) o[t] = p[0];").errors
    assert {one.kind for one in found if "loads" in (one.first.does, one.second and one.second.does)} == {
        "nothing orders the two accesses"
    }
    assert not sanitized("atomicAdd_block(p + b, 1.f);").errors


#: A block waits for the one before it. {0}: the kind of its flag.
CHAIN = """volatile int *flags = (volatile int *)o; __shared__ float before;
if (t == 0) {
  if (b) { while (flags[b - 1] == 0) ; /*acquire*/ __threadfence(); before = p[b - 1]; }
  p[b] = before + 1;
  /*release*/ __threadfence();
  flags[b] = 1;
}
__syncthreads();
p[64 + i] = before;"""


@pytest.mark.slow
def test_decoupled_look_back_by_volatile_flags() -> None:
    assert not sanitized(CHAIN).errors and not sanitized(CHAIN).unjudged
    for without in ("/*acquire*/ __threadfence();", "/*release*/ __threadfence();"):
        (one,) = sanitized(CHAIN.replace(without, "")).errors
        assert (one.array, one.first.does, one.second.does) == ("p", "stores", "loads")
    weak = sanitized(CHAIN.replace("flags[b] = 1", "((int *)o)[b] = 1"))
    assert {one.array for one in weak.errors} == {"o", "p"}


@pytest.mark.slow
def test_acquire_and_release_of_the_library() -> None:
    body = CHAIN.replace("volatile int *flags = (volatile int *)o", "int v").replace(
        "/*acquire*/ __threadfence();", ""
    )
    load = 'asm volatile("ld.{0}.gpu.s32 %0, [%1];" : "=r"(v) : "l"((int *)o + b - 1) : "memory")'
    store = 'asm volatile("st.{0}.gpu.s32 [%0], 1;" :: "l"((int *)o + b) : "memory")'
    body = body.replace("while (flags[b - 1] == 0) ;", f"do {load}; while (v == 0);")
    body = body.replace("/*release*/ __threadfence();", "").replace("flags[b] = 1", store)

    def errors(acquire: str, release: str) -> int:
        head, tail = body.split("p[b] = before")
        return len(
            sanitized(head.replace("{0}", acquire) + "p[b] = before" + tail.replace("{0}", release)).errors
        )

    assert not errors("acquire", "release")
    assert errors("relaxed", "release") and errors("acquire", "relaxed")


@pytest.mark.slow
def test_a_thread_that_does_not_look_at_a_flag_has_not_waited() -> None:
    body = "p[i] = 1;\n__threadfence();\n__syncthreads();\n{0}\n__threadfence();\no[128 + i] = p[1];"
    assert sanitized(body.replace("{0}", "atomicAdd((int *)o, 1);")).errors
    waits = "atomicAdd((int *)o, 1);\nwhile (*(volatile int *)o < 256) ;"
    assert not sanitized(body.replace("{0}", waits)).errors


@pytest.mark.slow
def test_named_barriers_order_global_memory() -> None:
    body = "p[i] = 1;\n{0}\no[i] = p[i ^ 32];"
    meet = 'asm volatile("bar.sync 1, 64;" ::: "memory");'
    one = body.replace("{0}", meet)
    assert not sanitized(one, block=64).errors
    assert not sanitized(f"if (t < 64) {{ {one} }}", block=96).errors
    other = one.replace("sync 1,", "sync %0,").replace(":::", ':: "r"(1 + t / 32) :').replace("64;", "32;")
    assert sanitized(f"if (t < 64) {{ {other} }}", block=96).errors


@pytest.mark.slow
def test_all_blocks_meet() -> None:
    body = "p[i] = 1;\n{0}\no[i] = p[(i + 64) % 256];"
    meet = "cooperative_groups::this_grid().sync();"
    assert sanitized(body.replace("{0}", "__syncthreads();")).errors
    found = sanitized(body.replace("{0}", meet))
    assert not found.errors and not found.unjudged


@pytest.mark.slow
def test_stores_of_one_constant_are_told_apart() -> None:
    (one,) = sanitized("if (p[i] < 5) o[0] = 1;").errors
    assert one.doubt == "all store the same value"
    (two,) = sanitized("if (p[i] < 5) o[1] = 2;\nelse o[1] = 2;").errors[:1]
    assert two.doubt == "all store the same value"
    for other in ("o[0] = t;", "o[0] = b;", "o[0] = t == b;"):
        (one, *_) = sanitized(other).errors
        assert not one.doubt and one.kind == "threads store different values to one place at once"
    apart = sanitized("if (t == 0) o[1] = 2;\n__syncthreads();\nif (t == 1) o[1] = 3;").errors
    assert {one.doubt for one in apart if one.first.instruction != one.second.instruction} == {""}


#: Stores to one place, and whether they store the same value where p is 0 in all places but one.
VALUES = [
    ("o[0] = p[i] < 5 ? 1 : 2;", True),
    ("o[0] = p[i] < 1 ? 1 : 2;", False),
    ("o[0] = p[b] * 0.f + gridDim.x;", True),
    ("((char *)o)[t % 3] = p[0] + t % 3 + 256 * (t & 1);", True),
    ("((char *)o)[t % 3] = p[0] + t % 4;", False),
    ("*(float4 *)(o + t % 4 * 4) = make_float4(p[0], 2, t % 4, p[1]);", True),
    ("*(float4 *)(o + t % 4 * 4) = make_float4(p[0], 2, t % 8, p[1]);", False),
    ("if (t % 3) o[5] = p[0] + 1; else o[5] = p[1] + 1;", True),
    ("if (t % 3) o[5] = p[0] + 1; else o[5] = p[1] + 2;", False),
    ("for (int i = 0; i < 3; i++) o[t / 32] = p[i] + 7;", True),
    ("for (int i = 0; i < 3; i++) o[t / 32] = p[i] + i;", False),
    ("__shared__ float s[4]; s[t % 4] = p[t % 4]; __syncthreads(); o[i] = s[t & 3];", True),
    ("__shared__ float s[4]; s[t % 4] = p[t % 4] + t; __syncthreads(); o[i] = s[t & 3];", False),
]


@pytest.mark.some(3)
@pytest.mark.parametrize(("body", "are_same"), VALUES)
def test_stores_of_one_value_that_is_known_at_run_time_only(body: str, are_same: bool) -> None:
    head = "int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t;"
    text = f"__global__ void k(float *o, float *p) {{ {head}\n{body} }}"
    given = np.zeros(512, np.float32)
    given[200] = 3
    found = sanitize_job(job_of(machine_kernel(text), 4, 64, [np.zeros(512, np.float32), given])).errors
    assert found and all(one.tool == RACE for one in found)
    same = [one.doubt == "all store the same value" for one in found]
    assert all(same) == are_same


def test_what_stores_store_that_is_not_known() -> None:
    clock = 'unsigned v; asm volatile("mov.u32 %0, %%smid;" : "=r"(v));\n'
    (one,) = sanitized(clock + "o[0] = v;").errors
    assert one.doubt == "whether they store different values is not known"


def test_stores_of_one_value_can_be_allowed_as_such() -> None:
    job = job_of(
        machine_kernel("__global__ void k(float *o) { o[0] = 1; }"), 2, 64, [np.zeros(4, np.float32)]
    )
    found = sanitize_job(job, allowances=[read_allowance("all store the same value:a flag")])
    assert found.exit_code == 0 and found.findings[0].allowed == "a flag"


#: Lanes of a warp in the two ways of a branch. {0}: in both, {1}: behind the branch.
APART = """#pragma unroll 1
if (t % 32 < 16) {
  #pragma unroll 1
  for (int j = 0; j < t % 32; j++) atomicAdd(o + i, 1.f);
  p[i] = 1; {0}
} else {
  #pragma unroll 1
  for (int j = 0; j < 40 - t % 32; j++) atomicAdd(o + i, 2.f);
  {0} o[i] = {1};
}
{2}"""


@pytest.mark.slow
def test_lanes_that_diverged_are_ordered_by_syncwarp() -> None:
    def of_p(*parts: str) -> list[Any]:
        text = APART
        for number, part in enumerate(parts):
            text = text.replace(f"{{{number}}}", part)
        return [one for one in sanitized(text).findings if one.array == "p"]

    (one,) = of_p("", "p[i - 16]", "")
    assert one.first.block == one.second.block and one.first.thread // 32 == one.second.thread // 32
    assert "__syncwarp()" in one.cure and one.count == 4 * 2 * 16 and not one.doubt
    assert not of_p("__syncwarp();", "p[i - 16]", "")
    assert not of_p("", "1", "o[i] += p[i ^ 16];")  # where the branch ends they meet
    assert not of_p("", "p[i]", "")


def test_reads_by_lanes_that_diverged_are_kept_apart() -> None:
    """A lane overwrites what lanes in the other way of a branch, and then its own way, have read."""
    text = """#pragma unroll 1
if (t % 32 < 16) {
  #pragma unroll 1
  for (int j = 0; j < t % 32; j++) atomicAdd(o + i, 1.f);
  atomicAdd(o + i, {0});
} else {
  #pragma unroll 1
  for (int j = 0; j < 40 - t % 32; j++) atomicAdd(o + i, 2.f);
  atomicAdd(o + i, *(volatile float *)(p + i / 32 * 32 + 3));
  if (t % 32 == 20) p[i / 32 * 32 + 3] = 1;
}"""
    assert {one.array for one in sanitized(text.replace("{0}", "p[i / 32 * 32 + 3]")).errors} == {"p"}
    assert not sanitized(text.replace("{0}", "1.f")).errors


@pytest.mark.slow
def test_a_lock_orders_lanes_of_a_warp() -> None:
    text = """bool done = false; volatile float *q = p;
while (!done)
  if (atomicCAS((int *)o, 0, 1) == 0) {
    /*acquire*/ __threadfence();
    q[0] = q[0] + 1;
    /*release*/ __threadfence();
    atomicExch((int *)o, 0); done = true;
  }"""
    assert not sanitized(text, 1, 32).errors
    assert not sanitized(text, 2, 64).errors


def test_warps_that_run_for_long_do_not_leave_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no warp waits for another one, each is a row of its own; what is known of them goes by rows."""
    monkeypatch.setattr(engine, "FEWEST", 2)
    monkeypatch.setattr(engine, "WINDOW", 4)
    text = """__global__ void k(int *o, const int *n) { int t = threadIdx.x + blockIdx.x * blockDim.x;
for (int i = 0; i < n[t / 32]; ++i) if (t >> (i & 3) & 1) o[{0}] += i; }"""
    turns = np.where(np.arange(64) % 8, 2, 90).astype(np.int32)

    def found(index: str) -> Sanitized:
        kernel = machine_kernel(text.replace("{0}", index))
        return sanitize_job(job_of(kernel, 32, 64, [np.zeros(2048, np.int32), turns]), tools=(RACE,))

    assert found("t").exit_code == 0
    assert {one.count > 0 for one in found("t / 64").errors} == {True}
