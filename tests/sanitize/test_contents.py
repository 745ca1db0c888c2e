"""What findings depend on contents that the caller has not given, beside those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim import ArrayArg, analyze
from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import Sanitized
from tests.simt.cuda import machine_kernel

DOUBT = "it depends on the contents of at, which are not given"
LIMIT = "what other contents of at would do, which are not given"
GIVEN = np.arange(128, dtype=np.int32)[::-1].copy()


def text(body: str) -> str:
    head = "__shared__ float s[64]; int t = threadIdx.x, i = blockIdx.x * 64 + t;"
    return f"__global__ void k(const int *at, float *o) {{ {head}\n{body} }}"


def sanitized(body: str, at: Any = "i32[128]") -> Sanitized:
    return sanitize_job(job_of(machine_kernel(text(body)), 2, 64, [at, "f32[128]"]))


@pytest.mark.parametrize(
    ("body", "tools"),
    [
        ("o[at[i]] = i;", {"race"}),
        ("o[at[i] + 200] = i;", {"bounds"}),
        ("if (at[i] > 3) o[200] = 1;", {"bounds"}),
        ("if (at[t] > 3) return;\no[i + 100] = 1;", {"bounds"}),
        ("s[at[i] & 63] = t; __syncthreads(); o[i] = s[t];", {"race", "init"}),
        ("for (int j = 0; j < at[0]; j++) { s[t] = j; o[i] += s[t ^ 32]; }", {"race"}),
        ("s[t] = t; if (at[0] > 200) __syncthreads(); o[i] = s[t ^ 32];", {"race"}),
        ("if (t < 32) s[t] = 0; if (at[0] > 200) s[t] = 1; __syncthreads(); o[i] = s[t];", {"init"}),
    ],
)
def test_what_contents_decide_that_are_not_given_is_possible(body: str, tools: set[str]) -> None:
    found = sanitized(body)
    assert {one.tool for one in found.findings} == tools and found.exit_code == 1
    assert {one.doubt for one in found.findings} == {DOUBT} and found.limits == (LIMIT,)
    given = sanitized(body, GIVEN)
    assert not any("contents" in one.doubt for one in given.findings) and not given.limits


@pytest.mark.parametrize(
    "body",
    ["o[i + 100] = at[i];", "s[t] = at[i]; o[i] = s[t ^ 32];", "if (at[i] > 3) o[i] = 1; o[i + 300] = 1;"],
)
def test_what_they_do_not_decide_is_certain(body: str) -> None:
    assert [one.doubt for one in sanitized(body).findings] == [""]


def test_contents_that_are_said_are_given() -> None:
    for fill in ("zeros", "iota"):
        (one,) = sanitized("o[at[i] + 200] = i;", ArrayArg((128,), "i32", fill)).findings
        assert not one.doubt


def test_an_analysis_tells_only_of_races_that_no_such_contents_decide() -> None:
    body = "s[t] = t; {0}o[i] = s[t ^ 32];"
    for barrier, count in (("", 1), ("if (at[0] > 200) __syncthreads(); ", 0)):
        found = analyze(machine_kernel(text(body.replace("{0}", barrier))), 2, 64, ["i32[128]", "f32[128]"])
        assert len(found.trace.races) == count
