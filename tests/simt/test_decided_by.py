"""What the result of an approximation decides: addresses, and branches that lead to other accesses."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import trace
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from tests.simt.cuda import kernel, machine_kernel
from tests.simt.listings import listing

STORE = "STG.E desc[UR4][R8.64], R1"
#: Lanes with a rare operand call a function, and the others compute; R2 depends on R1.
QUOTIENT = """
    BSSY B0, `(.done)
    FCHK P0, R1, R3
    @!P0 BRA `(.fast)
    MOV R4, {behind}
    CALL.REL.NOINC `(.slow)
    BRA `(.end)
.fast:
    FMUL R2, R1, R3
.end:
    BSYNC B0
.done:
"""
SLOW = """
.slow:
    FSETP.GT.AND P1, PT, R1, R3, PT
    @P1 BRA `(.huge)
    FMUL R2, R1, 2
    RET.REL.NODEC R4 `(kernel)
.huge:
    MUFU.RSQ R2, -QNAN
    RET.REL.NODEC R4 `(kernel)
"""


def decided(text: str) -> list[str]:
    """What the last bit of MUFU decides, as `address 0x30`."""
    dataflow = Dataflow(decode(listing(text)))
    dataflow.needed()
    return [reason.rpartition(" at ")[2] for reason in dataflow.uncertain()]


@pytest.mark.parametrize(
    "text",
    [
        f"MUFU.EX2 R1, R0 \n {STORE} \n EXIT",
        f"MUFU.EX2 R1, R0 \n {QUOTIENT} {STORE} \n EXIT {SLOW}",
        # The result of the first call depends on R1, that of the second does not: R12 is an address.
        f"MUFU.EX2 R1, R0 \n {QUOTIENT} MOV R1, R6 \n MOV R4, {{behind}} \n CALL.REL.NOINC `(.slow) \n"
        f" LDG.E R5, desc[UR4][R2.64] \n EXIT {SLOW}",
        "MUFU.RSQ R8, -QNAN \n STG.E desc[UR4][R8.64], R1 \n EXIT",
        # Where P0 holds R8 is another register; what the approximation left there is not read.
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n @P0 STG.E desc[UR4][R8.64], R1 \n EXIT",
        # The same in the next basic block.
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n BAR.SYNC.DEFER_BLOCKING 0x0 \n @P0 STG.E desc[UR4][R8.64], R1"
        " \n EXIT",
    ],
    ids=["stored", "quotient", "two calls", "no number", "guarded", "guarded behind a barrier"],
)
def test_certain(text: str) -> None:
    assert not decided(text)


@pytest.mark.parametrize(
    "text",
    [
        "MUFU.EX2 R8, R0 \n STG.E desc[UR4][R8.64], R1 \n EXIT",
        "MUFU.RSQ R8, 2 \n STG.E desc[UR4][R8.64], R1 \n EXIT",
        # What the ways of the branch compute depends on it, whatever they compute it from.
        f"MUFU.EX2 R1, R0 \n {QUOTIENT} LDG.E R5, desc[UR4][R2.64] \n EXIT {SLOW}",
        "MUFU.EX2 R1, R0 \n BSSY B0, `(.done) \n FSETP.GT.AND P0, PT, R1, R3, PT \n @P0 BRA `(.other)"
        " \n MOV R8, 4 \n BRA `(.end) \n .other: \n MOV R8, 8 \n .end: \n BSYNC B0 \n .done:"
        " \n STG.E desc[UR4][R8.64], R1 \n EXIT",
        # An access on one way, no BSYNC, an exit.
        "MUFU.EX2 R1, R0 \n BSSY B0, `(.done) \n FSETP.GT.AND P0, PT, R1, R3, PT \n @P0 BRA `(.end)"
        f" \n {STORE} \n .end: \n BSYNC B0 \n .done: \n EXIT",
        "MUFU.EX2 R1, R0 \n FSETP.GT.AND P0, PT, R1, R3, PT \n @P0 BRA `(.end) \n MOV R5, R6 \n .end:"
        f" \n {STORE} \n EXIT",
        f"MUFU.EX2 R1, R0 \n FSETP.GT.AND P0, PT, R1, R3, PT \n @P0 EXIT \n {STORE} \n EXIT",
        # Guards of another predicate, of one that has changed since, and of the other lanes.
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n @P1 STG.E desc[UR4][R8.64], R1 \n EXIT",
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n ISETP.GT.AND P0, PT, R6, R7, PT"
        " \n @P0 STG.E desc[UR4][R8.64], R1 \n EXIT",
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n @!P0 STG.E desc[UR4][R8.64], R1 \n EXIT",
        # On one of two ways only, and in a loop that makes it such a result again.
        "MUFU.EX2 R8, R0 \n @P1 BRA `(.end) \n @P0 MOV R8, R6 \n .end:"
        " \n @P0 STG.E desc[UR4][R8.64], R1 \n EXIT",
        "MOV R8, R0 \n @P0 MOV R8, R6 \n .end: \n @P0 STG.E desc[UR4][R8.64], R1 \n @P0 MUFU.EX2 R8, R0"
        " \n @P1 BRA `(.end) \n EXIT",
        "MUFU.EX2 R8, R0 \n @P0 MOV R8, R6 \n @P0 MUFU.EX2 R8, R0 \n @P0 STG.E desc[UR4][R8.64], R1 \n EXIT",
    ],
    ids=[
        *("address", "number", "quotient", "chosen", "access", "apart", "exit"),
        *("another guard", "changed guard", "other lanes", "one way", "a loop", "written again"),
    ],
)
def test_uncertain(text: str) -> None:
    text = "\n".join(part.strip() for part in text.replace(".other: ", ".other:\n").splitlines())
    assert decided(text)


def test_through_global_memory() -> None:
    """What is stored decides an address if it may be loaded again; a launch may show that it is not."""
    text = f"""
        LDC.64 R8, c[0x0][0x210]
        LDC.64 R10, c[0x0][0x218]
        LDG.E.64 R6, desc[UR4][R10.64]
        MUFU.EX2 R1, R0
        {STORE}
        LDG.E.64 R2, desc[UR4][R6.64]
        LDG.E R5, desc[UR4][R2.64]
        EXIT
    """
    dataflow = Dataflow(decode(listing(text)))
    dataflow.needed()
    assert dataflow.read_again() == {4, 5}
    of_store = "addresses or branches depend on what the kernel itself writes at"
    of_load = "the last bit of MUFU decides the address at"
    for depends, reads_back, expected in (
        (True, True, {of_load, of_store}),
        (True, False, {of_load, of_store}),
        (False, True, {of_load}),
        (False, False, set()),
    ):
        reasons = dataflow.uncertain(depends, reads_back)
        assert {reason.rpartition(" address ")[0] for reason in reasons} == expected


RARELY = """
extern "C" __global__ void k(const float *x, float *kept, int *count, int limit) {
    float v = x[threadIdx.x];
    if (v > limit) kept[atomicAdd(count, 1)] = v;
}
"""


def test_an_atomic_that_no_warp_comes_to_decides_nothing() -> None:
    for limit, decides in ((99, False), (3, True)):
        kept, count = np.zeros(64, np.float32), np.zeros(1, np.int32)
        arguments = [np.arange(64, dtype=np.float32), kept, count, limit]
        for made in (kernel, machine_kernel):
            found = trace(made(RARELY), 1, 64, arguments).uncertain
            assert any("the result of an atomic" in reason for reason in found) == decides
