"""Accesses before `griddepcontrol.wait`, when another launch may run (PTX ISA, `griddepcontrol`)."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import RACE, Sanitized
from tests.simt.cuda import machine_kernel

WAIT = 'asm volatile("griddepcontrol.wait;" ::: "memory");'


def sanitized(body: str, grid: int = 2) -> Sanitized:
    text = f"""__global__ void k(float *o, const float *w) {{ int t = threadIdx.x, i = blockIdx.x * 64 + t;
{body.replace("WAIT", WAIT)}
}}"""
    args = [np.zeros(256, np.float32), np.ones(256, np.float32)]
    return sanitize_job(job_of(machine_kernel(text), grid, 64, args), tools=(RACE,))


@pytest.mark.parametrize(
    "body",
    [
        "o[i] = w[i];",
        "WAIT o[i] = w[i];",
        "if (t == 0) { WAIT }\n__syncthreads();\no[i] = w[i];",
        'if (t < 32) { WAIT }\nasm volatile("bar.sync 1, 64;" ::: "memory");\no[i] = w[i];',
    ],
)
def test_what_comes_behind_the_wait_is_ordered(body: str) -> None:
    found = sanitized(body)
    assert not found.findings and not found.limits and not found.unjudged


@pytest.mark.parametrize(
    ("body", "does", "count"),
    [
        ("o[i] = w[i];\nWAIT", "stores", 128),
        ("float v = *(volatile float *)(o + i);\nWAIT o[i] = v + 1;", "loads", 128),
        ("atomicAdd(o + i, 1.f);\nWAIT", "updates", 128),
        ("if (t < 32) { WAIT }\no[i] = 1;", "stores", 64),
        ("if (t == 0) { WAIT }\no[i] = 1;\n__syncthreads();", "stores", 64),
    ],
)
def test_what_comes_before_the_wait_to_an_array_that_the_launch_writes(
    body: str, does: str, count: int
) -> None:
    (one,) = sanitized(body).findings
    assert (one.array, one.first.does, one.count) == ("o", does, count)
    assert one.doubt and one.second is None and "griddepcontrol.wait before" in one.cure


def test_what_is_only_loaded_before_the_wait_is_named() -> None:
    found = sanitized("float v = *(volatile const float *)(w + i);\nWAIT o[i] = v;")
    assert not found.findings
    assert found.limits == ("whether the launch before writes w, loaded before griddepcontrol.wait",)
