"""What a machine instruction's name says."""

from __future__ import annotations

import pytest

from memsim.instruction import condition_of, guard_of, opcode_of
from memsim.validate.profiles import access_of


@pytest.mark.parametrize(
    ("sass", "access"),
    [
        ("LDS R6, [R21+UR4]", "shared load"),
        ("@!P3 LDS.U8 R6, [R21+UR4]", "shared load"),
        ("LDS.S16 R6, [R21]", "shared load"),
        ("LDS.64 R2, [R6]", "shared load"),
        ("STS.128 [R0+UR4], RZ", "shared store"),
        ("LDSM.16.M88.4 R12, [R16+UR4]", "shared ldmatrix"),
        ("STSM.16.MT88.2 [R4], R6", "shared stmatrix"),
        ("ATOMS.POPC.INC.32 RZ, [R4+UR4]", "shared atomic"),
        ("@P0 LDG.E.128.CONSTANT R4, desc[UR4][R8.64]", "global load"),
        ("STG.E.U8 desc[UR4][R8.64], RZ", "global store"),
        ("ATOMG.E.ADD.64.STRONG.GPU PT, R4, desc[UR4][R6.64], R8", "global atomic"),
        ("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", "global atomic"),
        ("LDL R1, [R2]", "local load"),
        ("STL.128 [R1+0x10], R4", "local store"),
        ("LDC.64 R2, c[0x3][R4+0x10]", "constant load"),
        ("LDGSTS.E.BYPASS.128 desc[UR6][R2.64], [R7]", "cp.async"),
    ],
)
def test_accesses(sass: str, access: str) -> None:
    assert access_of(sass) == access


@pytest.mark.parametrize(
    "sass", ["FFMA R1, R2, R3, R4", "LDC.64 R2, c[0x0][0x210]", "BAR.SYNC.DEFER_BLOCKING 0x0"]
)
def test_everything_else_is_no_access(sass: str) -> None:
    assert access_of(sass) is None


def test_guards() -> None:
    assert opcode_of("@!P0 LDG.E R4, desc[UR4][R2.64]") == "LDG.E"
    assert (guard_of("@P6 STS [R1], R2"), guard_of("@!P2 STS [R1], R2"), guard_of("STS [R1], R2")) == (
        "P6",
        "!P2",
        "",
    )
    copy = "LDGSTS.E.BYPASS.128 [R200+0xc00], desc[UR16][R14.64]"
    assert (condition_of(f"{copy}, P0"), condition_of(f"{copy}, !P1"), condition_of(copy)) == ("P0", "P1", "")
    assert condition_of("ISETP.GE.AND P0, PT, R2, R3, PT") == ""
