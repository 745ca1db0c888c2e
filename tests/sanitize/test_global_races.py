"""Races in global memory, each beside its good twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.api.running import job_of
from memsim.sanitizer.hazards import RACE
from memsim.sanitizer.sanitize import Sanitized, sanitize_job
from tests.simt.cuda import machine_kernel


def sanitized(body: str, grid: Any = 4, block: Any = 64) -> Sanitized:
    text = f"""
__global__ void k(float *o, float *p) {{ int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t;
{body}
}}"""
    args = [np.zeros(512, np.float32), np.zeros(1024, np.float32)]
    return sanitize_job(job_of(machine_kernel(text), grid, block, args), tools=(RACE,))


def test_blocks_are_not_ordered() -> None:
    found = sanitized("p[i] = 1;\n__syncthreads();\no[i] = p[(i + 64) % 256];")
    (one,) = found.findings
    assert (one.array, one.space, one.count) == ("p", "global", 256)
    assert one.first.block != one.second.block and not one.doubt and "another launch" in one.cure
    assert not sanitized("p[i] = 1;\n__syncthreads();\no[i] = p[i ^ 32];").findings
    assert not sanitized("o[i] = p[(i + 64) % 256];").findings


def test_warps_of_a_block_are_ordered_by_its_barriers() -> None:
    body = "p[i] = 1;\n{0}\no[i] = p[i ^ 32];"
    (one,) = sanitized(body.replace("{0}", "")).findings
    assert one.first.block == one.second.block and "__syncthreads()" in one.cure
    assert not sanitized(body.replace("{0}", "__syncthreads();")).findings


def test_reading_what_another_block_overwrites_later_is_a_race() -> None:
    found = sanitized("float v = p[(i + 64) % 256];\np[i] = v + 1;")
    assert {one.first.does for one in found.findings} | {one.second.does for one in found.findings} == {
        "loads",
        "stores",
    }
    read_by_all = sanitized("o[i] = p[0];\nif (i == 3) p[0] = 1;")
    assert len(read_by_all.findings) == 1 and read_by_all.findings[0].element == "p[0]"
    assert not sanitized("float v = p[i];\np[i] = v + 1;").findings


def test_atomics_race_with_plain_accesses_only() -> None:
    assert not sanitized("atomicAdd(p + t % 4, 1.f);").findings
    assert sanitized("atomicAdd(p + t % 4, 1.f);\no[i] = p[1];").findings
    assert sanitized("p[t % 4] += 1;").findings


def test_behind_a_fence_a_race_is_possible_only() -> None:
    body = (
        "p[i] = 1; __threadfence(); __shared__ int last;\nif (t == 0) last = atomicAdd((int *)o, 1) == 3;\n"
        "__syncthreads();\nif (last) o[1 + t] = p[t] + p[t + 64] + p[t + 128] + p[t + 192];"
    )
    found = sanitized(body)
    assert all("a flag in memory may order" in one.doubt for one in found.findings)
