"""Shuffles from lanes that do not take part: what they read is undefined, and so is what it decides."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.analysis import analyze_trace
from memsim.api.running import trace
from memsim.errors import MemsimError
from tests.simt.cuda import kernels_of

#: The number that a lane of the first half of a warp has after a shuffle among these, and what it decides.
TEXT = """
#define KERNEL(name, SHUFFLE, USE) extern "C" __global__ void name(int *out, const int *in) { \\
    int id = threadIdx.x, lane = id & 31, x = in[id]; \\
    if (lane < 16) { for (int i = 0; i < (x & 7); i++) x += in[i]; x = SHUFFLE; } USE }
#define OF(source) __shfl_sync(0xffff, x, source)
KERNEL(address, OF(20), if (lane < 16) out[x & 255] = 1;)
KERNEL(address_good, OF(5), if (lane < 16) out[x & 255] = 1;)
KERNEL(branch, OF(20), if (x & 1) out[id] = 1;)
KERNEL(branch_good, OF(5), if (x & 1) out[id] = 1;)
KERNEL(exit_under_a_guard, OF(lane < 8 ? 20 : 5), if (lane >= 8 && (x & 1)) return; out[id] = 1;)
KERNEL(exit_without, OF(lane < 8 ? 20 : 5), if (lane >= 6 && (x & 1)) return; out[id] = 1;)
KERNEL(unused, x + __shfl_down_sync(0xffff, x, 8), if (lane < 8) out[x & 255] = 1;)
KERNEL(half_used, x + __shfl_down_sync(0xffff, x, 8), if (lane < 9) out[x & 255] = 1;)
"""
NUMBERS = np.random.default_rng(0).permutation(64).astype(np.int32)


def _is_known(name: str) -> bool:
    try:
        found = trace(kernels_of(TEXT, "sass")[name], 2, 64, [np.zeros(256, np.int32), NUMBERS])
    except MemsimError as error:
        assert "do not take part" in str(error)
        return False
    return all(site.requests is not None for site in analyze_trace(found).sites) and not found.uncertain


@pytest.mark.parametrize("name", ["address_good", "branch_good", "exit_under_a_guard", "unused"])
def test_what_takes_part_is_known(name: str) -> None:
    assert _is_known(name)


@pytest.mark.parametrize("name", ["address", "branch", "exit_without", "half_used"])
def test_what_does_not_take_part_is_unknown(name: str) -> None:
    assert not _is_known(name)
