"""Accesses out of bounds, reads of what nobody wrote, deadlocks; what is allowed, and the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.cli import main
from memsim.errors import MemsimError
from memsim.sanitizer.hazards import BOUNDS, INIT, SYNC, Sanitized, read_allowance
from memsim.views.sanitize_text import headline, picture, title
from tests.simt.cuda import HOPPER, machine_kernel

ALL, LOW = "~0u", "0xffff"


def sanitized(body: str, tool: str, block: Any = 64, grid: Any = 1, head: str = "") -> Sanitized:
    text = f"{head}\n__global__ void k(float *o, float *p) {{ int t = threadIdx.x;\n{body}\n}}"
    args = [np.zeros(64, np.float32), np.zeros(256, np.float32)]
    return sanitize_job(job_of(machine_kernel(text), grid, block, args), tools=(tool,))


@pytest.mark.slow
def test_each_access_out_of_bounds_is_found_and_the_launch_goes_on() -> None:
    found = sanitized("p[t] = o[t + 4];\no[t - 1] = 1;\np[t + 100] = 2;", BOUNDS)
    kinds = {one.first.does: (one.kind, one.count, one.first.thread) for one in found.findings}
    assert kinds == {
        "loads": ("4 bytes beyond the end of o, which has 256 bytes", 4, 60),
        "stores": ("4 bytes beyond the beginning of o, which has 256 bytes", 1, 0),
    }
    assert not found.unjudged and found.exit_code == 1
    assert not sanitized("p[t] = o[t];\no[t] = 1;", BOUNDS).findings


def test_a_misaligned_access_is_found() -> None:
    found = sanitized("*(float2 *)(p + 2 * t + 1) = make_float2(1, 2);", BOUNDS)
    assert found.findings[0].kind.endswith("is misaligned for 8 bytes") and found.findings[0].count == 64
    assert headline(found) == "1 misaligned access" and title(found.findings[0]).startswith(
        "misaligned access:"
    )
    assert not sanitized("*(float2 *)(p + 2 * t) = make_float2(1, 2);", BOUNDS).findings


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("char *c = (char *)o; c[t + 193] = 1;", "1 byte beyond the end of o, which has 256 bytes"),
        (
            "float a[8];\n#pragma unroll 1\nfor (int j = 0; j < 9; j++) a[j] = p[j]; o[t] = a[t & 7];",
            "4 bytes beyond the end of local memory, which has 32 bytes",
        ),
    ],
)
def test_it_says_by_how_much_an_access_leaves_its_array(body: str, kind: str) -> None:
    assert [one.kind for one in sanitized(body, BOUNDS).findings] == [kind]


@pytest.mark.slow
def test_a_shared_array_has_its_own_extent() -> None:
    body = "__shared__ float s[64];\n__shared__ float q[64];\ns[t] = q[t] = 1;\n__syncthreads();\n"
    found = sanitized(
        body + "s[t + {0}] = 2;\n__syncthreads();\no[t] = s[t] + q[t];".replace("{0}", "8"), BOUNDS
    )
    one = found.findings[0]
    assert one.doubt and one.array in ("s", "q") and one.count == 8
    assert not sanitized(body + "s[t] = 2;\n__syncthreads();\no[t] = s[t] + q[t];", BOUNDS).findings
    beyond = sanitized(body + "o[t] = s[t + 64];\no[t] += q[t];", BOUNDS).findings
    assert [(one.array, one.count, bool(one.doubt)) for one in beyond] == [("s", 64, True)]
    pointer = "float *at = q - 64;\no[t] = s[t] * at[t + 64];\no[t] += q[t];"
    assert not sanitized(body + pointer, BOUNDS).findings


@pytest.mark.slow
def test_shared_memory_that_nobody_wrote_is_found() -> None:
    body = "__shared__ float s[64];\nif (t < {0}) s[t] = o[t];\n__syncthreads();\no[t] = s[63 - t];"
    found = sanitized(body.replace("{0}", "60"), INIT)
    assert [(one.element, one.count, one.first.thread) for one in found.findings] == [("s[63]", 4, 0)]
    assert not sanitized(body.replace("{0}", "64"), INIT).findings


@pytest.mark.slow
def test_lanes_that_wait_forever_are_found_with_what_they_wait_for() -> None:
    lost = sanitized(
        "__shared__ alignas(8) u64 b;\nif (t == 0) init(at(&b), 2);\n__syncthreads();\n"
        "if (t == 0) expect(at(&b), 0);\nwait(at(&b));\no[t] = 1;",
        SYNC,
        head=HOPPER,
    )
    assert "1 arrival is missing" in lost.findings[0].kind and lost.exit_code == 1
    bar = 'asm volatile("bar.sync {0}, 64;");'
    two = f"if (t < 32) {bar.replace('{0}', '1')} else {bar}\no[t] = 1;"
    assert sanitized(two.replace("{0}", "2"), SYNC).findings[0].first.does == "waits"
    assert not sanitized(two.replace("{0}", "1"), SYNC).findings


@pytest.mark.some(1)
@pytest.mark.parametrize(("what", "arrives", "waits"), [("arrival", 1, 0), ("wait", 0, 1)])
def test_an_mbarrier_is_initialized(what: str, arrives: int, waits: int) -> None:
    body = (
        "__shared__ alignas(8) u64 b[2];\nif (t == 0) { init(at(b)); expect(at(b + {0}), 0); }\n"
        "__syncthreads();\nwait(at(b + {1}));\no[t] = 1;"
    )
    wrong = body.replace("{0}", str(arrives)).replace("{1}", str(waits))
    (one,) = sanitized(wrong, SYNC, head=HOPPER).findings
    assert one.kind.endswith(f"{what} at an mbarrier that was never initialized")
    right = sanitized(body.replace("{0}", "0").replace("{1}", "0"), SYNC, head=HOPPER)
    assert right.exit_code == 0
    assert not sanitized(wrong, BOUNDS, head=HOPPER).findings


PART_OF_WARP = "PTX leaves bar.sync by a part of a warp undefined: a chip may go on"


@pytest.mark.slow
def test_threads_that_meet_at_different_barriers_are_found() -> None:
    body = "if (t < {0}) {\no[t] = 1;\n__syncthreads();\n} else {\np[t] = 2;\n__syncthreads();\n}\no[t] = 3;"
    (one,) = sanitized(body.replace("{0}", "32"), SYNC).findings
    assert one.kind == "threads of a block meet at different barriers" and one.second is not None
    assert sorted((one.first.thread, one.second.thread)) == [0, 32]
    parted = sanitized(body.replace("{0}", "40"), SYNC).findings[0].kind
    assert ("never reach" in parted and parted.endswith("0 to 7; " + PART_OF_WARP)) or "of one warp" in parted
    assert not sanitized(body.replace("{0}", "64"), SYNC).findings
    numbered = body.replace("__syncthreads();", 'asm volatile("bar.sync 1;" ::: "memory");')
    assert not sanitized(numbered.replace("{0}", "32"), SYNC).findings


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("if (t < 16) __syncthreads();\no[t] = 1;", 48),  # lanes of a warp, and a whole warp
        ("if (t < 32) {\no[t] = 1;\n__syncthreads();\n}\np[t] = 2;", 32),
        ("for (int i = t; i < 96; i += 32) {\no[t] += 1;\n__syncthreads();\n}\np[t] = 2;", 32),
        ("if (t < 32) return;\n__syncthreads();\no[t] = 1;", 0),
        ("if (t < 32) { p[t] = 3; return; }\n__syncthreads();\no[t] = 1;", 0),
        ("for (int i = 0; i < 3; ++i) {\nif (t >= 64 - 32 * i) return;\n__syncthreads();\n}\np[t] = 2;", 0),
        ("__syncthreads();\nif (t < 32) return;\np[t] = 3;\n__syncthreads();\no[t] = 1;", 0),
    ],
)
def test_threads_that_skip_a_barrier_and_exit_are_found(body: str, count: int) -> None:
    found = sanitized(body, SYNC, grid=2).findings
    assert [(one.kind, one.count, bool(one.doubt)) for one in found] == [
        ("threads go past a barrier at which others of their block wait", 2 * count, True)
    ] * (count > 0)


@pytest.mark.slow
def test_a_barrier_under_a_condition_is_that_of_an_early_return_if_nothing_lies_behind() -> None:
    """A chip does not wait for who has exited, which is right (PTX ISA, `exit`), and the two are one code."""
    of_store = "o[t] = 1;\n__syncthreads();\no[t ^ 1] = 2;"
    bodies = f"if (t < 40) {{\n{of_store}\n}}", f"if (t >= 40) return;\n{of_store}"
    kernels = [
        machine_kernel(f"__global__ void k(float *o) {{ int t = threadIdx.x;\n{one}\n}}") for one in bodies
    ]
    under, early = ([op.text for op in one.executable.program.ops] for one in kernels)
    assert under == early
    assert not sanitized(bodies[0], SYNC).findings


#: Warp functions, the mask that is wrong, what is said of it, how many threads, and a mask that is not.
MASKS = [
    (
        "if (t < 16) o[t] = __shfl_sync({0}, p[t], t ^ 1);",
        ALL,
        "of the mask that do not come: 16 to 31",
        16,
        LOW,
    ),
    (
        "if (p[t] > 3) o[t] = __ballot_sync({0}, t);",
        ALL,
        "of the mask that do not come: 0 to 3",
        28,
        "0xfffffff0",
    ),
    ("if (t < 16) { o[t] = 1; __syncwarp({0}); p[t ^ 1] = 2; }", ALL, "that do not come: 16 to 31", 16, LOW),
    ("if (t < 16) { o[t] = 1; __syncwarp({0}); p[t ^ 1] = 2; }", "0xff", "its mask does not name", 8, LOW),
    ("if (t < 16) o[t] = __any_sync({0}, p[t]);", "0xfe", "its mask does not name", 9, LOW),
    (
        "if (t == 5) return;\nif (t < 16) { o[t] = 1; __syncwarp({0}); p[t ^ 1] = 2; }",
        "0xfff7",
        "its mask does not name",
        1,
        LOW,
    ),
]


@pytest.mark.some(1)
@pytest.mark.parametrize(("body", "mask", "kind", "count", "good"), MASKS)
def test_a_mask_names_the_lanes_that_come_and_no_others(
    body: str, mask: str, kind: str, count: int, good: str
) -> None:
    """A mask may name lanes that have exited: no others wait for them (PTX ISA, `bar.warp.sync`). The barrier
    keeps those that do not come from exiting.
    """
    text = (
        "__global__ void k(float *o, float *p) { int t = threadIdx.x;\n{body}\n__syncthreads(); p[t] = 4;\n}"
    )
    args = [np.zeros(64, np.float32), np.arange(64, dtype=np.float32)]

    def found(mask: str) -> Sanitized:
        kernel = machine_kernel(text.replace("{body}", body.replace("{0}", f"unsigned({mask})")))
        return sanitize_job(job_of(kernel, 2, 32, args), tools=(SYNC,))

    (one,) = found(mask).findings
    assert kind in one.kind and one.count == 2 * count and not one.doubt
    assert found(good).exit_code == 0


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("body", "lanes", "count"),
    [
        ("if (t < 16) o[t] = __shfl_down_sync(0xffff, p[t], 8);", (8, 16), 8),
        ("if (t < 16) o[t] = __shfl_down_sync(0xffff, p[t], 8, 16);", None, 0),  # beyond its end itself
        ("if (t > 3) return; o[t] = __shfl_xor_sync(~0u, p[t], 4);", (0, 4), 4),
        ("if (t > 3) return; o[t] = __shfl_xor_sync(~0u, p[t], 2);", None, 0),
        ("if (t & 1) o[t] = __shfl_sync(0xaaaaaaaa, p[t], 0);", (1, 0), 16),
        ("if (t & 1) o[t] = __shfl_sync(0xaaaaaaaa, p[t], 31);", None, 0),
        ("o[t] = __shfl_up_sync(~0u, p[t], 1);", None, 0),
    ],
)
def test_a_shuffle_reads_from_lanes_that_execute_it(
    body: str, lanes: tuple[int, int] | None, count: int
) -> None:
    found = sanitized(body if "return" in body else f"t &= 31;\n{body}", SYNC, 64, 3).findings
    assert len(found) == (lanes is not None)
    if lanes is not None:
        assert f"lane {lanes[0]} reads from lane {lanes[1]}" in found[0].kind and found[0].doubt
        assert found[0].count == count * 3 * (1 if "return" in body else 2)


@pytest.mark.parametrize(
    ("body", "lanes", "count"),
    [
        ("if (t > 3) return;\no[t] = __shfl_sync(~0u, p[t], (int)p[t] + 4);", (0, 4), 4),
        ("if (t > 3) return;\no[t] = __shfl_sync(~0u, p[t], (int)p[t] / 2);", None, 0),
        ("if (t > 3) return;\no[t] = __shfl_down_sync(~0u, p[t], (int)p[1] + 1);", (3, 4), 1),
        ("if (t > 3) return;\no[t] = __shfl_xor_sync(~0u, p[t], (int)p[1] + 1);", None, 0),
        ("o[t] = __shfl_sync(~0u, p[t], (int)p[t] + 4);", None, 0),
        (
            "for (int d = 4; d; d /= 2) { if (t >= 2 * d) return;\no[t] += __shfl_down_sync(~0u, o[t], d); }",
            (4, 8),
            8 // 2 + 2 + 1,
        ),
        (
            "for (int d = 4; d; d /= 2) { if (t >= 2 * d) return;\no[t] += __shfl_xor_sync(~0u, o[t], d); }",
            None,
            0,
        ),
    ],
)
def test_a_shuffle_from_a_computed_lane(body: str, lanes: tuple[int, int] | None, count: int) -> None:
    found = sanitized("#pragma unroll 1\n" + body, SYNC)
    assert len(found.findings) == (lanes is not None) and not found.limits
    for one in found.findings:
        assert f"lane {lanes[0]} reads from lane {lanes[1]}" in one.kind and one.doubt
        assert one.count == count


def test_a_shuffle_from_an_unknown_lane_is_named_where_a_part_of_a_warp_executes_it() -> None:
    lane = 'unsigned lane; asm volatile("mov.u32 %0, %%smid;" : "=r"(lane));\n'
    body = lane + "{0} o[t] = __shfl_sync(__activemask(), p[t], lane);"
    (limit,) = sanitized(body.replace("{0}", "if (t > 3) return;"), SYNC).limits
    assert limit == "from which lanes the shuffle at k.cu:4 reads"


@pytest.mark.slow
def test_a_shuffle_reads_from_no_lane_that_there_is_not() -> None:
    body = "o[t] = __shfl_xor_sync(~0u, p[t], {0});"
    assert [one.count for one in sanitized(body.replace("{0}", "16"), SYNC, 16).findings] == [16]
    assert not sanitized(body.replace("{0}", "8"), SYNC, 16).findings


def test_a_deadlock_says_who_waits_for_whom() -> None:
    body = """if (t < 32) asm volatile("bar.sync 1, 64;");
else {0};"""
    other = 'asm volatile("bar.sync {1}, 64;")'
    (one,) = sanitized(body.replace("{0}", other.replace("{1}", "2")), SYNC).findings
    assert (
        "32 of 64 threads wait at" in one.kind and "thread (0, 0, 0) of block (0, 0, 0) waits at" in one.kind
    )
    assert one.kind.endswith("at k.cu:3, instead") and one.first.instruction.line == 4
    assert not sanitized(body.replace("{0}", other.replace("{1}", "1")), SYNC).findings


def test_a_deadlock_of_a_barrier_and_a_mask_says_both() -> None:
    body = "if (t < {0}) { o[t] = 1; __syncwarp(); p[t ^ 1] = 2; }\n__syncthreads();"
    (one,) = sanitized(body.replace("{0}", "16").replace("syncwarp()", "syncwarp(~0u)"), SYNC).findings
    assert "never reach" in one.kind and "lanes of the mask that do not come: 16 to 31" in one.kind
    assert not sanitized(body.replace("{0}", "32"), SYNC).findings


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("s:one value", "s"), ("k.cu:12:a flag", "k.cu:12"), ("k.cu:12->k.cu:15: both", "k.cu:12->k.cu:15")],
)
def test_an_allowance_has_a_pattern_and_a_reason(text: str, pattern: str) -> None:
    assert read_allowance(text).pattern == pattern


@pytest.mark.parametrize("text", ["s", "s:", ":x", "k.cu:12"])
def test_an_allowance_without_a_reason_is_refused(text: str) -> None:
    with pytest.raises(MemsimError, match="no pattern with a reason"):
        read_allowance(text)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    race = Path(__file__).parents[2] / "docs" / "sanitize" / "race.cu"
    launch = [str(race), "--grid", "1", "--block", "64", "--arg", "i32[64]"]
    assert main(["sanitize", *launch]) == 1
    said = capsys.readouterr().out
    assert "1 race" in said and "s[t] = t;" in said and "__syncthreads() between" in said
    assert main(["sanitize", *launch, "--tool", "bounds"]) == 0
    assert main(["sanitize", *launch, "--allow", "s:a test"]) == 0
    assert "Allowed: race: s[0]" in capsys.readouterr().out
    assert main(["sanitize", *launch, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert [one["thread"] for one in finding["accesses"]] == [0, 32] and finding["cure"]


def test_in_python(tmp_path: Path) -> None:
    kernel = machine_kernel(
        "__global__ void k(int *o) { __shared__ int s[64]; s[threadIdx.x] = 1; o[0] = s[63]; }"
    )
    found = memsim.sanitize(kernel, 1, 64, ["i32[64]"])
    assert [one.tool for one in found.errors] == ["race", "race"]
    assert "possible race: o[0]" in str(found) and "race: s[63]" in str(found)
    assert memsim.sanitize(kernel, 1, 64, ["i32[64]"], tools=["bounds"]).exit_code == 0
    allowed = memsim.sanitize(kernel, 1, 64, ["i32[64]"], allow=["s:a test", "o:all store one value"])
    assert allowed.exit_code == 0 and len(allowed.findings) == 2
    with pytest.raises(MemsimError, match="no tool 'races'"):
        memsim.sanitize(kernel, 1, 64, ["i32[64]"], tools=["races"])


def pictures(body: str, grid: int) -> list[str]:
    """Of the findings."""
    kernel = machine_kernel(f"__global__ void k(int *o, int *p) {{ int t = threadIdx.x;\n{body}\n}}")
    found = sanitize_job(job_of(kernel, grid, 64, [np.zeros(256, np.int32), np.zeros(4, np.int32)]))
    return ["\n".join(line for line in picture(found, one) if line) for one in found.findings]


@pytest.mark.slow
def test_a_picture_has_both_threads_and_the_word_on_a_line_of_time() -> None:
    body = (
        "__shared__ int s[64];\ns[t] = t;\n__syncthreads();\no[t + 64 * blockIdx.x] = s[t];\ns[t ^ 32] = 1;"
    )
    assert pictures(body, 2) == [
        "thread 1.0 --[barrier 1]--* loads line 5 ---------------->\n"
        "s[32]                     ^              ^\n"
        "thread 0.0 --[barrier 1]-----------------* stores line 6 >   no order between the two"
    ]
    assert pictures("p[blockIdx.x] = o[t];\nif (blockIdx.x) o[t] = 1;", 2)[0].splitlines()[:2] == [
        "thread 0.0 of block (0,0,0) --* loads line 2 ---------------->",
        "o[0]                          ^              ^",
    ]
    (one,) = pictures("p[0] = t;", 1)
    lines = one.splitlines()
    assert [line.index("*" if number != 1 else "|") for number, line in enumerate(lines)] == [14, 14, 14]
    assert lines[-1].endswith("at once")


@pytest.mark.parametrize("goes_on", ["*f == 0", "*f == 0 && n < 10000"])
def test_a_loop_that_does_not_end_is_named_with_who_waits_for_it(goes_on: str) -> None:
    """It never does if nothing changes in a turn; where turns are counted it has only not ended so far."""
    kernel = machine_kernel(
        "__global__ void k(float *o, volatile int *f) {\nint n = 0;\nif (threadIdx.x == 0)\n"
        f"while ({goes_on}) n++;\n__syncthreads();\no[threadIdx.x] = n;\nif (threadIdx.x == 32) *f = 1;\n}}"
    )
    job = job_of(kernel, 1, 64, [np.zeros(64, np.float32), np.zeros(1, np.int32)], max_steps=2000)
    found = sanitize_job(job)
    if "n" in goes_on:
        (reason,) = found.unjudged
        assert found.exit_code == 2 and not found.findings
        assert reason.startswith("what comes after k.cu:4: the kernel has not finished")
    else:
        (reason,) = (one.kind for one in found.findings)
        assert found.exit_code == 1 and not found.unjudged
        assert reason.startswith("a loop that never ends: thread (0, 0, 0)")
    assert "32 of 64 threads wait at" in reason
    assert re.search("lanes of (their warp|the mask) that do not come: 0", reason)
