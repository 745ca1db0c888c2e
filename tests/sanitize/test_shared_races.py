"""Races in shared memory of kernels, each beside its good twin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.kernels import catalog
from memsim.sanitizer.describe import MIXED
from memsim.sanitizer.doubts import VOLATILE, WHOLE
from memsim.sanitizer.hazards import RACE, Hazard, Sanitized
from memsim.targets.target import read_job
from tests.sanitize.deleted import job_without, ordering
from tests.simt.cuda import machine_kernel

COPY = """
__device__ void copy(float *to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory"); }
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT asm volatile("cp.async.wait_group 0;" ::: "memory")
"""
NAMED = """
#define ARRIVE(n, c) asm volatile("bar.arrive %0, %1;" :: "r"(n), "r"(c) : "memory")
#define SYNC(n, c) asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(c) : "memory")
"""


def sanitized(body: str, block: Any = 64, grid: Any = 1, head: str = "", args: Any = None) -> Sanitized:
    text = f"{head}\n__global__ void k(float *o) {{ int t = threadIdx.x;\n{body}\n}}"
    given = [np.zeros(1 << 12, np.float32)] if args is None else args
    found = sanitize_job(job_of(machine_kernel(text), grid, block, given), tools=(RACE,))
    return replace(found, findings=tuple(one for one in found.findings if one.space == "shared"))


def lines(found: Sanitized) -> list[tuple[int, int]]:
    """Of each finding, those of both accesses, counted from the first line of the body."""
    first = found.findings[0].first.instruction.source if found.findings else None
    text = found.sources[first.file] if first else ""
    head = text.split("threadIdx.x;")[0].count("\n")
    return [(one.places[0][1] - head - 1, one.places[1][1] - head - 1) for one in found.findings]


WIDE = """__shared__ unsigned long long s[2]; if (t < 2) s[t] = 0;
__syncthreads();
atomicAdd((int *)s + t % 2, 1); atomicAdd(s + {0}, 1ull);
__syncthreads();
o[t] = s[0];"""


def test_atomics_of_different_sizes_race_where_they_overlap() -> None:
    (one,) = sanitized(WIDE.format(0)).findings
    assert (one.kind, one.doubt, one.first.does, one.second.does) == (MIXED, WHOLE, "updates", "updates")
    assert not sanitized(WIDE.format(1)).findings


@pytest.mark.parametrize(
    ("store", "load", "is_certain"),
    [
        ("s[t]", "s[t ^ 32]", False),
        ("d[t]", "d[t ^ 32]", True),
        ("d[t]", "((volatile int *)d)[t ^ 32]", True),
        ('asm volatile(""); d[t]', 't; asm volatile(""); o[t] = d[t ^ 32]', True),
    ],
)
def test_machine_code_does_not_show_what_is_volatile_in_shared_memory(
    store: str, load: str, is_certain: bool
) -> None:
    head = "__shared__ volatile int s[64]; __shared__ int d[64];"
    (one,) = sanitized(f"{head}\n{store} = t;\no[t] = {load};").findings
    assert one.doubt == ("" if is_certain else VOLATILE)


PLAIN = "__global__ void k(float *o) { int t = threadIdx.x;\n{0}\n}"
SHIFT = "__shared__ float s[64];\ns[t] = t;\n{0}\no[t] = t >= 32 ? s[t - 32] : s[t];"


@pytest.mark.slow
def test_a_load_of_what_another_warp_stores_is_a_race() -> None:
    found = sanitized(SHIFT.format(""))
    one: Hazard = found.findings[0]
    assert len(found.findings) == 1 and lines(found) == [(2, 4)]
    assert (one.first.does, one.first.thread, one.first.block) == ("stores", 0, 0)
    assert (one.second.does, one.second.thread) == ("loads", 32)
    assert (one.array, one.element, one.offset, one.width, one.count) == ("s", "s[0]", 0, 4, 32)
    assert one.cure == "__syncthreads() between k.cu:4 and k.cu:6" and not one.doubt
    assert not sanitized(SHIFT.format("__syncthreads();")).findings


@pytest.mark.parametrize(
    ("barrier", "is_race"), [("__syncthreads();", False), ("", True)], ids=["barrier", "none"]
)
def test_the_next_turn_of_a_loop_overwrites_what_others_load(barrier: str, is_race: bool) -> None:
    body = (
        "__shared__ float s[64]; float sum = 0;\nfor (int i = 0; i < 8; i++) {\ns[t] = o[t + i];\n"
        f"__syncthreads();\nsum += s[t ^ 32];\n{barrier}\n}}\no[t] = sum;"
    )
    found = sanitized(body.replace("\nfor", "\n#pragma unroll 1\nfor"), grid=3)
    assert bool(found.findings) == is_race
    if is_race:
        assert {(6, 4)} == {*lines(found)}
        assert found.findings[0].count == 64 * 7 * 3  # each turn but the last one, in each block
        assert "in the loop, behind" in found.findings[0].cure


@pytest.mark.slow
def test_lanes_that_diverged_are_ordered_by_syncwarp() -> None:
    loop = "#pragma unroll 1\nfor (int i = 0; i < (int)o[40]; i++)"
    body = (
        "__shared__ float s[32]; volatile float *v = s;\nif (t < 16) {\n" + loop + "\nv[t] = o[t]; {0} } "
        "else {\n" + loop + "\no[t] = 1; {0}\no[t] = v[t - 16]; }"
    )
    given = np.full(64, 2, np.float32)
    found = sanitized(body.replace("{0}", ""), 32, args=[given])
    assert lines(found) == [(5, 9)]
    assert found.findings[0].first.thread < 16 <= found.findings[0].second.thread
    assert "a barrier that both threads pass" in found.findings[0].cure
    assert not sanitized(body.replace("{0}", "__syncwarp();"), 32, args=[given]).findings


@pytest.mark.slow
def test_lanes_that_diverged_before_a_barrier_are_forgotten_behind_it() -> None:
    loop = "#pragma unroll 1\nfor (int i = 0; i < (int)o[40]; i++)\n"
    body = (
        "__shared__ float s[32]; volatile float *v = s;\nv[t] = t;\n__syncthreads();\n"
        "if (t & 1) {\n" + loop + "o[t] = v[t - 1]; }\n__syncthreads();\no[t] = v[t];\n"
        "if (!(t & 1)) {\n" + loop + "{ o[t] = v[t]; v[t] = 1; } }\n{0}"
    )
    given = np.full(64, 1, np.float32)
    assert not sanitized(body.replace("{0}", ""), 32, args=[given]).findings
    assert sanitized(body.replace("{0}", "else {\n" + loop + "o[t] = v[t - 1]; }"), 32, args=[given]).findings


@pytest.mark.parametrize("read", ["v[t - 1]", "v[t]"])
def test_lanes_that_exit_after_they_diverged_are_not_ordered_with_those_that_are_left(read: str) -> None:
    """Even lanes store; odd ones, which never come together with them again, load that, or their own."""
    loop = "#pragma unroll 1\nfor (int i = 0; i < (int)o[40]; i++)\n"
    body = (
        "__shared__ float s[32]; volatile float *v = s;\nv[t] = t;\n__syncthreads();\n"
        f"if (!(t & 1)) {{\n{loop}{{ o[t] = v[t]; v[t] = 1; }} }}\nelse {{\n{loop}o[t] = {read}; }}"
    )
    found = sanitized(body, 32, args=[np.full(64, 1, np.float32)]).findings
    assert bool(found) == (read == "v[t - 1]")


def test_blocks_that_all_differ_keep_their_own_lanes() -> None:
    """Block 0 has more lanes than the others, and the classes are not in the order of the blocks."""
    body = (
        "__shared__ int s[64]; int b = blockIdx.x;\nint n = (int)o[b];\nif (t < n) s[t] = (int)o[b];\n"
        "__syncthreads();\nif (t < n) o[t + 64] = o[s[t ^ 1]];"
    )
    given = np.zeros(256, np.float32)
    given[:4] = 8, 2, 6, 4
    found = sanitize_job(job_of(machine_kernel(PLAIN.replace("{0}", body)), 4, 64, [given]), tools=("init",))
    assert not found.findings
    given[2] = 5
    found = sanitize_job(job_of(machine_kernel(PLAIN.replace("{0}", body)), 4, 64, [given]), tools=("init",))
    (one,) = found.findings
    assert (one.first.block, one.first.thread, one.element, one.count) == (2, 4, "s[5]", 1)


@pytest.mark.slow
def test_atomics_race_with_plain_accesses_only() -> None:
    body = "__shared__ int s[1];\nif (t == 0) s[0] = 0;\n{0}\natomicAdd(s, t);\n{1}\nif (t == 0) o[0] = s[0];"
    sync = "__syncthreads();"
    assert not sanitized(body.format(sync, sync)).findings
    assert lines(sanitized(body.format("", sync))) == [(2, 4)]
    assert lines(sanitized(body.format(sync, ""))) == [(4, 6)]


@pytest.mark.slow
def test_an_atomic_that_is_a_loop_is_an_atomic() -> None:
    body = (
        "__shared__ float s[1];\nif (t == 0) s[0] = 0;\n{0}\natomicAdd(s, o[t]);\n__syncthreads();\n"
        "if (t == 0) o[0] = s[0];"
    )
    assert not sanitized(body.format("__syncthreads();")).findings
    assert sanitized(body.format("")).findings


@pytest.mark.slow
def test_copies_are_there_for_those_that_wait_behind_a_barrier() -> None:
    body = "__shared__ float s[64];\ncopy(s + t, o + t);\nCOMMIT;\n{0}\n{1}\no[t] = s[t ^ {2}];"
    assert not sanitized(body.format("WAIT;", "__syncthreads();", 32), head=COPY).findings
    assert not sanitized(body.format("WAIT;", "", 0), head=COPY).findings
    for wait, barrier, other in (("", "__syncthreads();", 32), ("WAIT;", "", 32), ("", "", 0)):
        found = sanitized(body.format(wait, barrier, other), head=COPY)
        assert lines(found)[0][1] == 6 and found.findings[0].first.does == "copies to"


def test_many_groups_of_copies_are_told_apart() -> None:
    body = """__shared__ float s[40][64];
for (int j = 0; j < 40; j++) { copy(&s[j][t], o + t); COMMIT; }
asm volatile("cp.async.wait_group 30;" ::: "memory");
__syncthreads();
o[t] = s[{0}][t ^ 32];"""
    assert not sanitized(body.replace("{0}", "9"), head=COPY).findings
    assert [one.element for one in sanitized(body.replace("{0}", "10"), head=COPY).findings] == ["s[10][32]"]


@pytest.mark.slow
def test_named_barriers_order_those_that_meet_there() -> None:
    body = (
        "__shared__ float s[96];\nif (t < 32) {{ s[t] = o[t]; {0} }}\n"
        "else if (t < 64) {{ {1} o[t] = s[t - 32]; }}"
    )
    good = body.format("ARRIVE(1, 64);", "SYNC(1, 64);")
    assert not sanitized(good, 96, head=NAMED).findings
    assert lines(sanitized(body.format("", ""), 96, head=NAMED)) == [(2, 3)]
    late = (
        "__shared__ float s[96];\nif (t < 32) { ARRIVE(1, 64); s[t] = o[t]; }\n"
        "else if (t < 64) { SYNC(1, 64); o[t] = s[t - 32]; }"
    )
    assert lines(sanitized(late, 96, head=NAMED)) == [(2, 3)]


@pytest.mark.slow
def test_lanes_of_one_instruction_that_store_to_one_place_are_possible_races() -> None:
    found = sanitized("__shared__ float s[8];\ns[t / 8] = o[t];\n__syncthreads();\no[t] = s[t / 8];")
    assert lines(found) == [(2, 2)] and found.findings[0].doubt
    assert not sanitized("__shared__ float s[64];\ns[t] = o[t];\n__syncthreads();\no[t] = s[t];").findings


@pytest.mark.slow
def test_blocks_that_do_other_things_are_told_apart() -> None:
    body = (
        "__shared__ float s[64];\ns[t] = o[t];\nif (blockIdx.x != 5) __syncthreads();\n"
        "o[t + blockIdx.x * 64] = s[t ^ 32];"
    )
    found = sanitized(body, grid=16)
    assert len(found.findings) == 1 and found.findings[0].count == 64
    assert found.findings[0].first.block == found.findings[0].second.block == 5
    of_data = (
        "__shared__ float s[64];\nint at = (int)o[blockIdx.x * 64 + t];\ns[at] = t;\n__syncthreads();\n"
        "o[t] = s[t];"
    )
    data = np.tile(np.arange(64, dtype=np.float32), 16)
    assert not sanitized(of_data, grid=16, args=[data]).findings
    data[9 * 64 + 40] = 3
    found = sanitized(of_data, grid=16, args=[data])
    assert [(one.first.block, one.element) for one in found.findings] == [(9, "s[3]")]


def test_indices_are_those_of_the_declared_array() -> None:
    found = sanitized("__shared__ float s[2][33];\ns[t / 32][t % 32] = t;\no[t] = s[1][t % 32];")
    assert found.findings[0].element == "s[1][0]" and found.findings[0].offset == 132


@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["kernel_v4", "permuted_write_fixed", "transpose_xor"])
def test_each_barrier_of_a_kernel_is_missed_if_it_is_deleted(name: str) -> None:
    job = read_job(name, {})
    assert name in catalog() and not sanitize_job(job).findings
    barriers = [op.address for op in ordering(job.loaded)]
    assert barriers
    for address in barriers:
        assert sanitize_job(job_without(job, address)).errors
