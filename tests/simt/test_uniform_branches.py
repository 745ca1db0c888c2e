"""Branches without a BSYNC on approximations that all lanes of a warp share: they decide no access."""

from __future__ import annotations

import pytest

import memsim
from memsim.api.loading import from_text
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from tests.simt.listings import listing

#: 1 / z as NVRTC 12.0 compiles it for a z that all lanes load from one place.
RECIPROCAL = """
    MUFU.EX2 R1, R20
    {store}
    BAR.SYNC.DEFER_BLOCKING 0x0
    {load}
    VIADD R5, R0, 0x1800000
    LOP3.LUT R5, R5, 0x7f800000, RZ, 0xc0, !PT
    ISETP.GT.U32.AND P0, PT, R5, 0x1ffffff, PT
    @P0 BRA `(.fast)
    MOV R10, {{behind}}
    CALL.REL.NOINC `(.slow)
    BRA `(.end)
.fast:
    MUFU.RCP R5, R0
    {fast}
.end:
    LDG.E R7, desc[UR4][R8.64]
    FMUL R7, R7, R5
    STG.E desc[UR4][R12.64], {result}
    EXIT
.slow:
    SHF.L.U32 R5, {operand}, 0x1, RZ
    ISETP.NE.AND P0, PT, R5, RZ, PT
    @!P0 MUFU.RCP R5, R0
    @!P0 BRA `(.done)
    FMUL R5, R0, 2
    {slow}
.done:
    MOV R11, 0x0
    RET.REL.NODEC R10 `(kernel)
"""
CERTAIN = {
    "store": "STS [UR4], R1",
    "load": "LDS R0, [UR4]",
    "fast": "",
    "slow": "",
    "operand": "R0",
    "result": "R7",
}


def decided(**parts: str) -> list[str]:
    """What the last bit of MUFU decides."""
    dataflow = Dataflow(decode(listing(RECIPROCAL.format(**{**CERTAIN, **parts}))))
    dataflow.needed()
    return list(dataflow.uncertain())


@pytest.mark.parametrize("load", ["LDS R0, [UR4]", "LDS R0, [RZ+0x40]", "R2UR UR6, R1 \n MOV R0, UR6"])
def test_lanes_do_not_part_at_a_value_that_they_share(load: str) -> None:
    assert not decided(load=load)


@pytest.mark.parametrize(
    "parts",
    [
        {"load": "LDS R0, [R2]"},
        {"load": "LDS R0, [UR4] \n @P1 MOV R0, R1"},
        {"load": "LDS R0, [UR4] \n SHFL.IDX PT, R0, R0, R3, R4"},
        {"store": "", "load": "MOV R0, R1"},
        {"operand": "R1"},  # lanes part in the function
    ],
    ids=["by address", "by guard", "by a shuffle", "by register", "inside"],
)
def test_they_may_part_at_another(parts: dict[str, str]) -> None:
    assert any("decides the branch" in reason for reason in decided(**parts))


@pytest.mark.parametrize("way", ["fast", "slow"])
@pytest.mark.parametrize("what", ["LDG.E R6, desc[UR4][R8.64]", "BAR.SYNC.DEFER_BLOCKING 0x0", "@P2 EXIT"])
def test_a_way_that_does_more_than_compute(way: str, what: str) -> None:
    assert any("decides the branch" in reason for reason in decided(**{way: what}))


def test_what_the_ways_compute_depends_on_it() -> None:
    assert not decided(result="R7")
    through = RECIPROCAL.replace("[R12.64], {result}", "[R4.64], R7")
    dataflow = Dataflow(decode(listing(through.format(**CERTAIN))))
    dataflow.needed()
    assert any("decides the address" in reason for reason in dataflow.uncertain())


#: A kernel as a user writes it.
SCALED = """
extern "C" __global__ void k(const float *x, float *y)
{
    __shared__ float total;
    float e = __expf(x[threadIdx.x]);
    if (threadIdx.x == 0) total = e;
    __syncthreads();
    float scale = 1.0f / total;
    y[threadIdx.x] = %s;
}
"""


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("result", "arch", "is_certain"),
    [
        ("x[threadIdx.x ^ 1] * scale", "sm_80", True),
        ("x[(int)scale & 63]", "sm_80", False),
        ("x[(int)scale & 63]", "sm_90", True),
    ],
)
def test_a_softmax_of_a_block_is_certain(result: str, arch: str, is_certain: bool) -> None:
    kernel = from_text(SCALED % result, arch=arch)["k"]
    analysis = memsim.analyze(kernel, grid=2, block=64, args=["f32[64]", "f32[64]"], arch=arch)
    assert is_certain == (not analysis.trace.uncertain)
