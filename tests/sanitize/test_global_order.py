"""What orders accesses to global memory, and what does not: exits, scopes, several accesses to one place."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import RACE, Hazard
from tests.sanitize.test_shared_races import COPY
from tests.simt.cuda import HOPPER, machine_kernel


def races(body: str, grid: int = 4, head: str = "") -> tuple[Hazard, ...]:
    """Those of 64 threads a block on zeros."""
    text = f"""{head}
__global__ void k(float *o, float *p) {{ int t = threadIdx.x, b = blockIdx.x, i = b * 64 + t;
{body}
}}"""
    args = [np.zeros(512, np.float32), np.zeros(1024, np.float32)]
    return sanitize_job(job_of(machine_kernel(text), grid, 64, args), tools=(RACE,)).findings


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("if (t < 32) { p[i] = 1; return; }\n__syncthreads();\no[i] = p[i - 32];", 4 * 32),
        ("__syncthreads();\nif (t < 32) { p[i] = 1; return; }\n__syncthreads();\no[i] = p[i - 32];", 4 * 32),
        ("p[i] = 1;\n__syncthreads();\nif (t < 32) return;\no[i] = p[i - 32];\n__syncthreads();", 0),
        ("if (t < 32) return;\np[i] = 1;\n__syncthreads();\no[i] = p[i];\n__syncthreads();", 0),
    ],
)
def test_a_barrier_orders_nothing_that_a_thread_did_which_has_exited(body: str, count: int) -> None:
    found = races(body)
    assert [one.count for one in found] == [count] * (count > 0)
    assert all(one.cure.startswith("a barrier that both threads pass") for one in found)


LAST = """__shared__ bool last;
if (t < 32) { p[i] = 1; {0} }
__syncthreads();
if (t == 32) { __threadfence(); last = atomicAdd((int *)o, 1) == 3; }
__syncthreads();
__threadfence();
if (last) o[64 + t] = p[t - 32] + p[t + 32];"""


def test_nor_for_other_blocks() -> None:
    assert [(one.array, one.count) for one in races(LAST.replace("{0}", "return;"))] == [("p", 64)]
    assert not races(LAST.replace("{0}", ""))


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("body", "count"),
    [
        # The last thread of the launch, which is ordered with the threads of its own block only.
        ("o[i] = p[0];\n__syncthreads();\nif (i == 255) p[0] = 1;", 1),
        ("o[i] = p[b];\n__syncthreads();\nif (t == 63) p[b] = 1;", 0),
        ("atomicAdd(p, 1.f);\n__syncthreads();\nif (i == 255) o[0] = p[0];", 1),
        ("atomicAdd(p + b, 1.f);\n__syncthreads();\nif (t == 63) o[b] = p[b];", 0),
    ],
)
def test_each_of_many_accesses_counts_not_only_the_last_one(body: str, count: int) -> None:
    assert [one.count for one in races(body)] == [1] * count


STRONG = """volatile int *f = (int *)o;
if (t == 0 && b == 0) f[0] = 1;
if (t == 0 && b == 1) {0}
if (t == 0 && b == 2) {1}"""


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("other", "third", "is_race"),
    [
        ("p[0] = f[0];", "p[1] = ((int *)o)[0];", True),
        ("p[0] = f[0];", "p[1] = f[0];", False),
        ("while (f[0] == 0);", "p[1] = ((int *)o)[0];", True),
        ("{ while (f[0] == 0); p[1] = ((int *)o)[0]; }", ";", False),  # has seen what it loads
        ("{ atomicAdd((int *)o, 1); p[1] = ((int *)o)[0]; }", ";", True),
        ("if (atomicAdd((int *)o, 1) == 1) ((int *)o)[0] = 0;", ";", False),  # resets the counter
    ],
)
def test_a_strong_write_is_not_forgotten_behind_another_strong_access(
    other: str, third: str, is_race: bool
) -> None:
    assert bool(races(STRONG.replace("{0}", other).replace("{1}", third))) == is_race


#: A warp waits for the other one of its block.
FLAG = """volatile int *f = (int *)o;
if (t == 0) { p[b] = 3; {0} f[b] = 1; }
if (t == 32) { while (f[b] == 0); {1} o[64 + b] = p[b]; }"""
BLOCK_FENCE = "__threadfence_block();"


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("release", "acquire", "is_race"),
    [
        (BLOCK_FENCE, BLOCK_FENCE, False),
        (BLOCK_FENCE, "__threadfence();", False),
        ("", BLOCK_FENCE, True),
        (BLOCK_FENCE, "", True),
    ],
)
def test_a_fence_of_a_block_orders_its_threads(release: str, acquire: str, is_race: bool) -> None:
    found = races(FLAG.replace("{0}", release).replace("{1}", acquire))
    assert len(found) == is_race
    assert all(("has told" in one.kind) == (acquire == "") for one in found)


def test_a_fence_of_a_block_orders_no_threads_of_others() -> None:
    body = """volatile int *f = (int *)o;
if (t == 0 && b == 0) { p[0] = 3; {0} f[0] = 1; }
if (t == 0 && b == 1) { while (f[0] == 0); {0} o[64] = p[0]; }"""
    assert [one.array for one in races(body.replace("{0}", BLOCK_FENCE))] == ["p"]
    assert not races(body.replace("{0}", "__threadfence();"))


@pytest.mark.some(2)
@pytest.mark.parametrize(("order", "is_race"), [("release", False), ("relaxed", True)])
def test_acquire_and_release_of_the_scope_of_a_block(order: str, is_race: bool) -> None:
    """As of `cuda::atomic_ref<int, cuda::thread_scope_block>`."""
    body = f"""int v, *f = (int *)o + b;
if (t == 0) {{ p[b] = 3; asm volatile("st.{order}.cta.s32 [%0], 1;" :: "l"(f) : "memory"); }}
if (t == 32) {{
  do asm volatile("ld.acquire.cta.s32 %0, [%1];" : "=r"(v) : "l"(f) : "memory"); while (v == 0);
  o[64 + b] = p[b];
}}"""
    assert [one.array for one in races(body)] == ["p"] * is_race


COPIED = "__shared__ float s[64];\ncopy(s + t, p + i); COMMIT;\n{0}\no[i] = s[t];"
ARRIVES = """__shared__ alignas(8) u64 m; if (t == 0) init(at(&m), 64);
__syncthreads();
copy(s + t, p + i);
asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(&m)) : "memory");
{0} p[i ^ 32] = 3; {1}"""
RING = """__shared__ float s[2][64];
copy(s[0] + t, p + i); COMMIT;
for (int j = 0; j < 3; j++) {
  copy(s[~j & 1] + t, p + i + 256 * (j + 1)); COMMIT;
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  p[i + 256 * {0}] = s[j & 1][t];
}
WAIT;"""


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("body", "is_race"),
    [
        (COPIED.replace("{0}", "__syncthreads(); p[i ^ 32] = 3; WAIT;"), True),
        (COPIED.replace("{0}", "WAIT; __syncthreads(); p[i ^ 32] = 3;"), False),
        (COPIED.replace("{0}", "WAIT; p[i ^ 32] = 3; __syncthreads();"), True),
        (COPIED.replace("{0}", "p[i] = 3; WAIT;"), True),
        (COPIED.replace("{0}", "WAIT; p[i] = 3;"), False),
        (RING.replace("{0}", "j"), False),
        (RING.replace("{0}", "(j + 1)"), True),
        (COPIED.replace("{0}", ARRIVES.replace("{0}", "wait(at(&m));").replace("{1}", "WAIT;")), False),
        (COPIED.replace("{0}", ARRIVES.replace("{0}", "").replace("{1}", "wait(at(&m)); WAIT;")), True),
    ],
)
def test_what_cp_async_reads_is_overwritten_behind_a_wait(body: str, is_race: bool) -> None:
    found = [one for one in races(body, head=HOPPER + COPY) if one.array == "p"]
    assert bool(found) == is_race
    assert all((one.first.does, one.first.thread) == ("copies from", -1) for one in found)
