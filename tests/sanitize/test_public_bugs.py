"""Errors that public threads report, in kernels of our own writing: each is found, and its fix is clean.

The kernels have what matters of each error, and none of the code of the projects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import RACE, SYNC
from tests.simt.cuda import HOPPER, machine_kernel

SYNCTHREADS = "__syncthreads();"


class PublicBug(NamedTuple):
    """thread: where it was reported. body: of a kernel, with the missing piece at `FIX`."""

    thread: str
    body: str
    fix: str = SYNCTHREADS
    tool: str = RACE
    block: int = 128


BUGS = (
    PublicBug(
        "ORNL/HeCBench#254: one thread stores a total that all threads load",
        """__shared__ float total[32];
        if (t == 0) total[31] = p[0];
        FIX
        o[t] = total[31];""",
    ),
    PublicBug(
        "ORNL/HeCBench#253: the next tile is loaded while others still read this one",
        """__shared__ float tile[128]; float sum = 0;
        #pragma unroll 1
        for (int i = 0; i < 3; i++) { tile[t] = p[128 * i + t]; __syncthreads();
            for (int j = 0; j < 128; j += 8) sum += tile[j];
            FIX }
        o[t] = sum;""",
    ),
    PublicBug(
        "ORNL/HeCBench#256: a stage of a systolic filter reads its neighbour's output of the last step",
        """__shared__ float out[128]; out[t] = 0; __syncthreads();
        #pragma unroll 1
        for (int i = 0; i < 4; i++) { float last = t ? out[t - 1] : p[i];
            FIX
            out[t] = last * 2; __syncthreads(); }
        o[t] = out[t];""",
    ),
    PublicBug(
        "ORNL/HeCBench#261: a row of distances is read and improved in place",
        """__shared__ float d[16 * 8]; d[t] = p[t]; __syncthreads();
        #pragma unroll 1
        for (int k = 0; k < 8; k++) { float via = d[t / 8 * 8 + k] + d[k * 8 + t % 8];
            FIX
            d[t] = fminf(d[t], via); __syncthreads(); }
        o[t] = d[t];""",
    ),
    PublicBug(
        "ggml-org/llama.cpp#24360: a scan overwrites its inputs for the next step while others read them",
        """__shared__ float b[16], c[16]; float sum = 0;
        #pragma unroll 1
        for (int i = 0; i < 4; i++) { if (t < 16) b[t] = p[16 * i + t];
            else if (t < 32) c[t - 16] = p[64 + t];
            __syncthreads();
            for (int j = 0; j < 16; j++) sum += b[j] * c[j];
            o[128 * i + t] = sum;
            FIX }""",
    ),
    PublicBug(
        "ggml-org/llama.cpp#28376: a warp reads what another warp has not finished to store",
        """__shared__ int ids[128];
        for (int i = t; i < 128; i += 64) ids[i] = (int)p[i];
        FIX
        int found = 0; for (int i = 0; i < 4; i++) found += ids[4 * (t % 32) + i]; o[t] = found;""",
        block=64,
    ),
    PublicBug(
        "tile-ai/tilelang#2699: a buffer is cleared while others read what was there before",
        """__shared__ float buffer[128]; buffer[t] = p[t]; __syncthreads();
        float q = buffer[127 - t];
        FIX
        buffer[t] = 0; __syncthreads(); atomicAdd(&buffer[t % 8], q); __syncthreads(); o[t] = buffer[t];""",
    ),
    PublicBug(
        "MoonshotAI/FlashKDA#24: TMA stores what threads wrote, without a proxy fence",
        """__shared__ alignas(128) float state[128]; state[t] = p[t];
        FIX
        __syncthreads();
        if (t == 0) { asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
                                   :: "l"(o), "r"(at(state)) : "memory"); finish(); }""",
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
    ),
    PublicBug(
        "ggml-org/llama.cpp#13469: a barrier that only some warps execute meets another one of the others",
        """__shared__ float s[128]; s[t] = p[t];
        if (t < 64) { FIX
            s[t] += 1; }
        __syncthreads();
        o[t] = s[127 - t];
        __syncthreads();""",
        "",
        SYNC,
    ),
)


@pytest.mark.some(1)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.thread.partition(":")[0] for bug in BUGS])
def test_the_error_is_found_and_its_fix_is_clean(bug: PublicBug) -> None:
    wrong = SYNCTHREADS if bug.tool == SYNC else ""
    for missing, is_wrong in ((wrong, True), (bug.fix, False)):
        body = bug.body.replace("FIX", missing)
        text = f"{HOPPER}\n__global__ void k(float *o, const float *p) {{ int t = threadIdx.x;\n{body}\n}}"
        args = [np.zeros(1024, np.float32), np.ones(1024, np.float32)]
        found = sanitize_job(job_of(machine_kernel(text), 1, bug.block, args), tools=(bug.tool,))
        assert bool(found.errors) == is_wrong, found.findings
        assert not any(one.doubt for one in found.errors) and not found.unjudged
