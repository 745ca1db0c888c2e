"""Lanes that wait at a WARPSYNC for others that wait, too. Such kernels ended on an H200, or never did."""

from __future__ import annotations

import numpy as np
import pytest

import memsim
from memsim import MemsimError
from memsim.kernel import Kernel

SYNC = 'asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");'


def of(body: str) -> Kernel:
    text = f"""
extern "C" __global__ void k(volatile int *o, int n) {{
    int t = threadIdx.x, sum = 0;
    {body}
    o[32 + t] = o[t ^ 1] + 1;
}}"""
    return memsim.load(text)["k"]


#: Two lanes wait for all; the others go round a loop, and wait where the two ways meet.
APART = f"if (t < 2) {{ {SYNC} o[t] = 7; }} else {{ for (int i = 0; i < n; i++) sum += o[i]; o[t] = sum; }}"


def test_the_others_go_on_where_the_ways_meet_and_end() -> None:
    out = np.zeros(64, np.int32)
    memsim.run(of(APART), 1, 32, [out, 3])
    assert out.tolist() == [7] * 2 + [0] * 30 + [8] * 2 + [1] * 30


def test_lanes_that_go_on_make_requests_of_their_own() -> None:
    """The load and the store behind are made by 30 lanes, and then by two."""
    analysis = memsim.analyze(of(APART), 1, 32, [np.zeros(64, np.int32), 0])
    assert analysis.trace.uncertain == ()
    assert sum(site.requests for site in analysis.sites) == 6
    together = memsim.analyze(of(APART.replace(SYNC, "")), 1, 32, [np.zeros(64, np.int32), 0])
    assert sum(site.requests for site in together.sites) == 4


def test_lanes_that_run_are_waited_for() -> None:
    """Here they come to a WARPSYNC of the same mask in their own way, which is the same one."""
    out = np.zeros(64, np.int32)
    body = f"if (t < 2) o[t] = 7; else for (int i = 0; i < n; i++) sum += o[i]; {SYNC} o[t] += 2;"
    memsim.run(of(body), 1, 32, [out, 3])
    assert out.tolist() == [9] * 2 + [2] * 30 + [10] * 2 + [3] * 30


def test_two_that_wait_for_each_other_never_end() -> None:
    with pytest.raises(MemsimError, match=r"wait forever at WARPSYNC.* for lanes of the mask"):
        memsim.run(of(f"{APART} {SYNC}"), 1, 32, [np.zeros(64, np.int32), 3])
