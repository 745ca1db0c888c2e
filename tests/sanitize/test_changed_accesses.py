"""Accesses changed in the machine code: the sanitizer and a graph of the launch agree on what is an error."""

from __future__ import annotations

import numpy as np
import pytest

from docs.changed_accesses import DROPPED, FURTHER, INSIDE, REPLACED, changes, reason
from docs.deleted_barriers import FOUND, NOT_NEEDED, verdict
from docs.deleted_reasons import UNCHECKED
from memsim.api.running import job_of, trace_job
from memsim.sanitizer.hazards import TOOLS
from tests.sanitize.deleted import job_with
from tests.simt.cuda import machine_kernel

HEAD = """__global__ void k(const int *a, int *o) {
    __shared__ int s[64]; int t = threadIdx.x, i = 64 * blockIdx.x + t;"""
COPY = "s[t] = a[i]; __syncthreads(); o[i] = s[63 - t];"
TWICE = "s[t] = 0; __syncthreads(); s[t ^ 1] = a[i]; __syncthreads(); o[i] = s[63 - t];"
GUARDED = "s[t] = t < 60 ? a[i] : 0; __syncthreads(); if (t < 60) o[i] = s[t];"


@pytest.mark.parametrize(
    ("body", "elements", "expected"),
    [
        (COPY, 128, {"LDG": FOUND, "STS": FOUND, "LDS": FOUND, "STG": FOUND, "dropped STS": FOUND}),
        (COPY, 256, {"LDG": INSIDE, "STS": FOUND, "LDS": FOUND, "STG": INSIDE, "dropped STG": REPLACED}),
        (TWICE, 256, {"dropped STS": REPLACED}),
        (GUARDED, 128, {"LDG": INSIDE, "LDS": INSIDE, "STG": INSIDE, "STS": FOUND}),
    ],
)
def test_an_error_is_found_by_both_or_by_none(body: str, elements: int, expected: dict[str, str]) -> None:
    arrays = [np.zeros(elements, np.int32) for _ in "ao"]
    job = job_of(machine_kernel(f"{HEAD} {body} }}"), 2, 64, arrays)
    times, told = trace_job(job).executed, dict[str, str]()
    for op, what, text in changes(job, 0):
        changed = job_with(job, {op.address: text})
        says = verdict(changed, int(times[op.index]), TOOLS, ())
        why = reason(job, changed, op, what, np.arange(2))
        assert (says == FOUND, says == NOT_NEEDED) == (why == UNCHECKED, why != UNCHECKED), (op.text, text)
        name = op.form.opcode if what == FURTHER else f"{DROPPED} {op.form.opcode}"
        told[name] = FOUND if says == FOUND else why
    assert expected.items() <= told.items()
