"""From which pointers the addresses of accesses come."""

from __future__ import annotations

import pytest

from memsim.sass.decode import decode
from memsim.simt.dataflow import Dataflow
from memsim.simt.pointer_roots import ANYWHERE, PARAMETER_BITS, SYMBOL_BITS
from tests.simt.listings import listing

FIRST, SECOND = (1 << PARAMETER_BITS + offset // 8 for offset in (0x210, 0x218))
#: R4 is the address of a load in the first round, and holds its 64 bits before the second.
LOOP = """
.again:
    @P0 LDC.64 R4, c[0x0][0x210]
    {between}
    {guard} LDG.E.64 R4, desc[UR4][R4.64]
    IADD3 R0, R0, 1, RZ
    ISETP.GT.AND P1, PT, R0, R9, PT
    @P1 BRA `(.again)
    EXIT
"""


def roots(text: str) -> list[int]:
    """The roots of each access to global memory."""
    dataflow = Dataflow(decode(listing(text)))
    return [dataflow.roots_of(op.index) for op in dataflow.ops if op.name.startswith(("LDG", "STG"))]


@pytest.mark.parametrize(
    ("guard", "between", "found"),
    [
        ("@P0", "", FIRST),
        ("@P0", "@P1 MOV R12, R4", FIRST),
        ("@P0", "@P1 LDC.64 R4, c[0x0][0x218]", FIRST | SECOND),
        ("@P0", "LDC.64 R4, c[0x0][0x218]", SECOND),
        ("", "", FIRST | ANYWHERE),
        ("@!P0", "", FIRST | ANYWHERE),
        ("@P0", "ISETP.GT.AND P0, PT, R0, R9, PT", FIRST | ANYWHERE),
    ],
)
def test_a_register_that_was_written_under_the_same_guard(guard: str, between: str, found: int) -> None:
    """What another guard, a guard that was written anew, or none reads may be what was there before."""
    assert roots(LOOP.format(guard=guard, between=between)) == [found]


def test_an_address_in_the_code_is_that_of_its_variable() -> None:
    """Half by half, as compilers write it."""
    text = """
    MOV R2, 32@lo(first)
    MOV R3, 32@hi(first)
    MOV R4, 32@lo(second)
    MOV R5, 32@hi(second)
    IMAD.WIDE R6, R0, 0x4, R2
    STG.E desc[UR4][R6.64], R0
    LDG.E R8, desc[UR4][R4.64]
    LDG.E R9, desc[UR4][R2.64]
    EXIT
"""
    first, second = (1 << SYMBOL_BITS + number for number in range(2))
    assert roots(text) == [first, second, first]
