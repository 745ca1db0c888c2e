"""Loops that wait for others: some end, and of those that never do it is said soon, and for certain."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import MemsimError, analyze
from memsim.api.running import job_of
from memsim.api.sanitizing import sanitize_job
from memsim.sanitizer.hazards import SYNC, Sanitized
from tests.simt.cuda import machine_kernel

NEVER = "a loop that never ends"


def text(body: str) -> str:
    return f"__global__ void k(volatile int *f, int *o) {{ int t = threadIdx.x;\n{body}\n}}"


def sanitized(body: str, grid: int = 1, blocks: int | None = None) -> Sanitized:
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    job = job_of(machine_kernel(text(body)), grid, 64, args, blocks=blocks)
    return sanitize_job(job, tools=(SYNC,))


PING = """if (t == 0) for (int n = 1; n < 5; n++) { while (f[0] != n) ; f[1] = n; }
if (t == 32) for (int n = 1; n < 5; n++) { f[0] = n; while (f[1] != n) ; }"""


@pytest.mark.parametrize(
    "body",
    [
        PING,
        "int n = 0; while (f[0] == 0 && n < 9000) n++;\no[t] = n;",
        "unsigned n = 1; for (int i = 0; i < 9000; i++) n = n * 3 + (n >> 7);\nf[n & 63] = 1;",
    ],
    ids=["flags", "limit", "long"],
)
def test_a_loop_that_ends_is_waited_for(body: str) -> None:
    found = sanitized(body)
    assert found.exit_code == 0 and not found.unjudged


@pytest.mark.parametrize(
    ("body", "threads"),
    [
        ("while (f[0] == 0) ;\no[t] = 1;", 64),
        ("if (t == 0) while (f[0] == 0) ;\n__syncthreads();\no[t] = 1;", 1),
        ("while (atomicCAS(o, 0, 1)) ;\nif (t > 64) atomicExch(o, 0);", 63),
        ("if (t < 32) { while (f[0] == 0) ; f[1] = 1; } else { while (f[1] == 0) ; f[0] = 1; }", 32),
        ("unsigned n = 8; while (f[0] == 0) { __nanosleep(n); if (n < 256) n *= 2; }\no[t] = 1;", 64),
    ],
    ids=["flag", "barrier", "lock", "each other", "sleep"],
)
def test_one_that_nothing_ends_is_a_finding(body: str, threads: int) -> None:
    (one,) = sanitized(body).findings
    assert one.kind.startswith(NEVER) and (one.count, one.doubt) == (threads, "") and not one.second


def test_an_analysis_says_so_too() -> None:
    with pytest.raises(MemsimError, match=NEVER):
        analyze(machine_kernel(text("while (f[0] == 0) ;")), 1, 64, [np.zeros(8, np.int32)] * 2)


COUNTER = "if (t == 0) { atomicAdd(o, 1); while (atomicAdd(o, 0) < {0}) ; }\n__syncthreads();\nf[1] = 1;"


def test_of_what_blocks_would_do_that_do_not_run_nothing_is_certain() -> None:
    assert not sanitized(COUNTER.replace("{0}", "2"), grid=2).findings
    (one,) = sanitized(COUNTER.replace("{0}", "3"), grid=2).findings
    assert one.kind.startswith(NEVER)
    found = sanitized(COUNTER.replace("{0}", "2"), grid=2, blocks=1)
    assert not found.findings and found.exit_code == 2
    assert "unless blocks that have not begun do" in found.unjudged[0]
