"""Loops that wait for a store to shared memory by another warp: how often they go round is not certain."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import trace
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from tests.simt.cuda import kernels_of
from tests.simt.listings import listing

WAITING = "a loop waits for what other warps store in shared memory at k.cu:"

#: `flag` is 0 until warp 1 stores to it; each body is executed by thread 0.
KERNEL = """
__shared__ volatile int flag; __shared__ volatile int keys[64]; __shared__ int sums[64];
#define KERNEL(name, ...) extern "C" __global__ void name(int *out, int n) { \\
    int id = threadIdx.x; \\
    keys[id] = id; if (id == 0) flag = 0; \\
    __syncthreads(); \\
    __VA_ARGS__ \\
    if (id == 40) flag = 1; \\
    out[id] = id; }
"""
BODIES = {
    "spins": "if (id == 0) while (flag == 0) {}",
    "counts": "if (id == 0) { int i = 0; while (flag == 0) i++; out[i & 63] = 1; }",
    "gives_up": "if (id == 0) for (int i = 0; i < n && flag == 0; i++) sums[i & 63]++;",
    "returns": "if (id == 0) while (true) if (flag) return;",
    "searches": "int i = 0; for (int s = 32; s; s /= 2) if (keys[i + s - 1] < n) i += s; out[i & 63] = 1;",
    "follows": "int i = id; while (keys[i & 63] != 3) i++; out[i & 63] = 1;",
    "in_rounds": "for (int i = 0; i < n; i++) { __syncthreads(); if (flag == 2) break; __syncthreads(); }",
    "compares": "int b = 0; for (int i = 0; i < n; i++) if (keys[5] * i % 7 > b) b = i; out[b & 63] = 1;",
}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", BODIES)
def test_a_loop_that_waits_for_another_warp_is_not_certain(name: str) -> None:
    """And one that looks at other places, or after a barrier, or does not end by it, is."""
    text = KERNEL + "".join(f"\nKERNEL({name}, {body})" for name, body in BODIES.items())
    found = trace(kernels_of(text, "sass")[name], 1, 64, [np.zeros(64, np.int32), 9])
    waits = [reason for reason in found.uncertain if reason.startswith(WAITING)]
    assert len(waits) == (name in ("spins", "counts", "gives_up", "returns"))


#: Divides by a number of shared memory, and by another one; what is rare is in a function that both call.
TWO_DIVISIONS = """
    MOV R4, {behind}
    CALL.REL.NOINC `(.slow)
    LDS R3, [R0]
    FCHK P0, R1, R3
    @!P0 BRA `(.fast)
    MOV R4, {behind}
    CALL.REL.NOINC `(.slow)
.fast:
    STG.E desc[UR4][R8.64], R2
    {end}
    EXIT
.slow:
    FMUL R2, R1, 2
    RET.REL.NODEC R4 `(kernel)
"""


@pytest.mark.parametrize(
    ("end", "waits"), [("", False), ("@P0 BRA `(kernel)", True)], ids=["no loop", "loop"]
)
def test_a_function_returns_to_its_own_call(end: str, waits: bool) -> None:
    dataflow = Dataflow(decode(listing(TWO_DIVISIONS.replace("{end}", end))))
    dataflow.needed()
    found = [reason for reason in dataflow.uncertain() if reason.startswith("a loop waits")]
    assert len(found) == waits


ENDS = "ISETP.NE.AND P0, PT, R2, RZ, PT \n @P0 EXIT \n"
AGAIN = "BRA `(.again) \n"


@pytest.mark.parametrize(
    ("lines", "waits"),
    [
        (f"LDS R2, [R0] \n {ENDS} {AGAIN}", True),
        (f"LDS R2, [R0] \n ISETP.NE.AND P0, PT, R2, RZ, PT \n @!P0 {AGAIN} EXIT \n", True),
        (f"LDS R2, [R0] \n MOV R2, R3 \n {ENDS} {AGAIN}", False),
        (f"IADD3 R0, R0, 4, RZ \n LDS R2, [R0] \n {ENDS} {AGAIN}", False),
        (f"LDS R2, [R0] \n {ENDS} BAR.SYNC 0x0 \n {AGAIN}", False),
    ],
)
def test_a_loop_may_end_with_the_kernel(lines: str, waits: bool) -> None:
    dataflow = Dataflow(decode(listing(f".again: \n {lines}")))
    dataflow.needed()
    assert len(dataflow.uncertain()) == waits
