"""Variables without a value that the compiler left in registers, each beside its good twin."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import INIT, Sanitized
from tests.simt.cuda import machine_kernel


def sanitized(body: str, n: int = 8, block: int = 64) -> Sanitized:
    text = f"__global__ void k(float *o, const float *p, int n) {{ int t = threadIdx.x;\n{body}\n}}"
    args = [np.zeros(1 << 10, np.float32), np.ones(1 << 10, np.float32), np.int32(n)]
    return sanitize_job(job_of(machine_kernel(text), 2, block, args), tools=(INIT,))


SUM = "float s{0};\n#pragma unroll 1\nfor (int i = t; i < n; i += 8) s += p[i];\no[t] = s;"
SEVERAL = """float s[4]{0};
for (int i = 0; i < n; i++) {
#pragma unroll
for (int j = 0; j < 4; j++) s[j] += p[4 * i + j]; }
#pragma unroll
for (int j = 0; j < 4; j++) o[4 * t + j] = s[j];"""


@pytest.mark.slow
def test_a_sum_without_a_first_value() -> None:
    assert not sanitized(SUM.replace("{0}", " = 0")).findings
    (one,) = sanitized(SUM.replace("{0}", ""), 64).findings
    assert one.doubt and one.count == 128 and one.element.startswith("register R")
    assert (one.first.does, one.first.instruction.line, one.first.thread) == ("reads", 4, 0)
    assert one.line.endswith("reads: its thread has not written it")


def test_threads_that_skip_the_loop_store_what_they_have_not_written() -> None:
    found = sanitized(SUM.replace("{0}", ""), 40).findings
    assert [(one.first.instruction.line, one.count) for one in found] == [(4, 2 * 40), (5, 2 * 24)]


@pytest.mark.slow
def test_an_array_in_registers_is_one_finding() -> None:
    assert not sanitized(SEVERAL.replace("{0}", " = {}")).findings
    (one,) = sanitized(SEVERAL.replace("{0}", "")).findings
    assert one.count >= 128 and one.tool == INIT


@pytest.mark.parametrize("block", [64, 40])
def test_a_variable_that_is_only_written_and_read_where_a_condition_holds(block: int) -> None:
    body = """float s;
#pragma unroll 1
for (int i = 0; i < n; i++) {
    if (i > 0) o[t + 64 * i] = s;
    s = p[t + i]; }"""
    assert not sanitized(body, block=block).findings


#: A store under a guard reads `s`, in the first turn before it is written.
GUARDED = """float s;
#pragma unroll 1
for (int i = 0; i < n; i++) {
    if ({0}) o[t + 64 * i] = s;
    s = p[t + i]; }"""


@pytest.mark.parametrize(("condition", "count"), [("p[i] < 2", 128), ("p[i] > 2", 0), ("p[t] < t % 3", 42)])
def test_what_lanes_read_where_a_condition_of_data_holds(condition: str, count: int) -> None:
    text = GUARDED.replace("{0}", condition)
    kernel = machine_kernel(
        f"__global__ void k(float *o, const float *p, int n) {{ int t = threadIdx.x;\n{text}\n}}"
    )
    stores = [op for op in kernel.executable.program.ops if op.form.opcode == "STG"]
    assert any(op.guard is not None for op in stores)  # else this is no test of that
    found = sanitized(text)
    assert sum(one.count for one in found.findings) == count and not found.limits
    assert all(one.doubt and one.first.instruction.line == 5 for one in found.findings)


@pytest.mark.slow
def test_a_value_on_one_way_only() -> None:
    body = """float s{0};
if (t < 40) { s = p[t]; o[t + 128] = s; }
__syncthreads();
o[t] = s;"""
    assert not sanitized(body.replace("{0}", " = 1")).findings
    found = sanitized(body.replace("{0}", "")).findings
    assert [one.count for one in found] == [2 * 24]


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "body",
    [
        "unsigned char s{0}, m{0}; for (int i = t; i < n; i += 8) { s += p[i]; if (p[i] < m) m = p[i]; }\n"
        "o[t] = s ^ m;",
        "short2 s; s.x{0}; s.y{0}; for (int i = t; i < n; i += 8) { s.x += (short)p[i]; s.y = s.x ^ i; }\n"
        "((short2 *)o)[t] = s;",
    ],
)
def test_a_variable_in_a_half_of_a_register(body: str) -> None:
    assert not sanitized(body.replace("{0}", " = 0"), 64).findings


@pytest.mark.slow
def test_a_variable_in_a_half_of_a_register_without_a_value() -> None:
    body = "short s{0};\n#pragma unroll 1\nfor (int i = t; i < n; i += 8) s += p[i];\n((short *)o)[t] = s;"
    assert not sanitized(body.replace("{0}", " = 0"), 64).findings
    assert len(sanitized(body.replace("{0}", ""), 64).findings) == 1


def test_a_variable_that_a_flag_says_is_set() -> None:
    body = "bool is = false; int w;\nfor (int i = t; i < n; i += 8) if (p[i] > 1) { is = true; w = i; }\n"
    assert not sanitized(body + "o[t] = is ? w : -1;", 64).findings


def test_a_launch_of_too_many_warps_is_not_followed_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    body = SUM.replace("{0}", "")
    assert not sanitized(body, 64).limits
    monkeypatch.setattr("memsim.sanitizer.unwritten.MOST_WARPS", 1)
    found = sanitized(body, 64)
    assert not found.findings and found.limits[0].startswith("registers that nobody wrote")
