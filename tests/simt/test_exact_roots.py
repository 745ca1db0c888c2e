"""Roots that are exact whatever the last bit of MUFU.RSQ."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.isa.multi_function import FUNCTIONS
from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from memsim.state.rounding import fma32
from tests.simt.listings import listing

#: As nvcc 13 compiles `out[(int)sqrtf(x)] = 0`.
ROOT = """
    {before}
    MUFU.RSQ R3, R0
    VIADD R2, R0, 0xf3000000
    {between}
    ISETP.GT.U32.AND P0, PT, R2, 0x727fffff, PT
    @!P0 BRA `(.fast)
    MOV R2, R6
    BRA `(.end)
.fast:
    FMUL.FTZ R5, R0, {of}
    FMUL.FTZ R2, R3, {half}
    {inside}
    FFMA R0, -R5, R5, R0
    FFMA R8, R0, R2, R5
    {after}
.end:
    STG.E desc[UR4][R8.64], R9
    EXIT
"""
PLAIN = {"before": "", "between": "", "of": "R3", "half": "0.5", "inside": "", "after": ""}


def is_certain(text: str) -> bool:
    text = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    dataflow = Dataflow(decode(listing(text)))
    dataflow.needed()
    return not dataflow.uncertain()


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"inside": "MOV R7, R6"},
        {"after": "MOV R5, R6 \n STG.E desc[UR4][R8.64], R5"},
        {"before": "I2FP.F32.U32 R0, R7"},
    ],
)
def test_exact(change: dict[str, str]) -> None:
    assert is_certain(ROOT.format(**PLAIN | change))


@pytest.mark.parametrize(
    "change",
    [
        {"before": "MUFU.EX2 R0, R7"},
        {"between": "FADD R0, R0, 1"},
        {"between": "@P1 MOV R3, R6"},
        {"inside": "FADD R5, R5, 1"},
        {"inside": "MOV R8, R5 \n STG.E desc[UR4][R8.64], R5"},
        {"after": "MOV R8, R5"},
        {"half": "0.25"},
        {"of": "-R3"},
        {"of": "R7"},
        {"after": "MOV R8, R3"},
    ],
)
def test_not_exact(change: dict[str, str]) -> None:
    assert not is_certain(ROOT.format(**PLAIN | change))


def test_slow_path() -> None:
    """The negated square as an instruction of its own."""
    slow = """
        MUFU.RSQ R3, R0
        FMUL.FTZ R5, R0, R3
        FMUL.FTZ R3, R3, 0.5
        FADD.FTZ R2, -R5, -RZ
        FFMA R2, R5, R2, R0
        FFMA R8, R2, R3, R5
        {after}STG.E desc[UR4][R8.64], R9
        EXIT
    """
    assert is_certain(slow.format(after=""))
    assert not is_certain(slow.format(after="FADD R8, R8, R2 \n "))


def root_of(x: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The computation by its single roundings."""
    half = np.float32(0.5)
    g, h = x * r, r * half
    found: np.ndarray = fma32(fma32(-g, g, x), h, g)
    return found


@pytest.mark.parametrize(
    "last", [pytest.param(16, id="some"), pytest.param(24, id="all", marks=pytest.mark.slow)]
)
def test_every_mantissa(last: int) -> None:
    """Of [1, 4): with the emulator's MUFU.RSQ the result is the root, correctly rounded."""
    for exponent in (0, 1):
        numbers = np.arange(1 << 23, 1 << 24, 1 << (24 - last), dtype=np.int64)
        x = np.ldexp(numbers.astype(np.float64), exponent - 23)
        r = FUNCTIONS["RSQ"](x.astype(np.float32))
        assert (root_of(x.astype(np.float32), r) == np.sqrt(x).astype(np.float32)).all()
