"""A PRMT that keeps the half of a register which nobody reads does not read it."""

from __future__ import annotations

import pytest

from memsim.sass.decode import decode
from memsim.simt.unused_parts import without_unused_halves
from tests.simt.listings import listing

LOWER, STORE = "PRMT R5, R4, 0x9910, RZ", "STG.E desc[UR4][R8.64], R5"


def kept(text: str) -> bool:
    """Does the first PRMT that writes R4 read it, too?"""
    text = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    program = without_unused_halves(decode(listing(f"{text}\nEXIT")))
    first = next(op for op in program.ops if op.form.opcode == "PRMT" and op.writes >> 4 & 1)
    named = any(getattr(operand, "slot", None) == 4 for operand in first.form.operands[1:])
    assert named == bool(first.reads >> 4 & 1)
    return named


@pytest.mark.parametrize(
    "text",
    [
        f"PRMT R4, RZ, 0x7610, R4 \n {LOWER} \n {STORE}",
        f"PRMT R4, R4, 0x3254, R6 \n {LOWER} \n {STORE}",
        # In another basic block, through a guard, and through a further insertion.
        f"PRMT R4, RZ, 0x7610, R4 \n BAR.SYNC.DEFER_BLOCKING 0x0 \n {LOWER} \n {STORE}",
        f"PRMT R4, RZ, 0x7610, R4 \n @P0 PRMT R4, R6, 0x7610, R4 \n {LOWER} \n {STORE}",
        f"PRMT R4, RZ, 0x7610, R4 \n {LOWER} \n MOV R4, R6 \n {STORE} \n STG.E desc[UR4][R8.64], R4",
        # In a loop.
        f".loop: \n PRMT R4, RZ, 0x7610, R4 \n {LOWER} \n {STORE} \n @P0 BRA `(.loop)",
    ],
)
def test_not_read(text: str) -> None:
    assert not kept(text)


@pytest.mark.parametrize(
    "text",
    [
        "PRMT R4, RZ, 0x7610, R4 \n STG.E desc[UR4][R8.64], R4",
        f"PRMT R4, RZ, 0x7610, R4 \n PRMT R5, R4, 0x9932, RZ \n {STORE}",
        f"PRMT R4, RZ, 0x7610, R4 \n PRMT R5, R6, 0x7610, R4 \n {STORE}",
        f"PRMT R4, RZ, 0x3250, R4 \n {LOWER} \n {STORE}",
        # A lower half that is kept, a number that is not one, an old value behind a guard.
        f"PRMT R4, RZ, 0x5410, R4 \n PRMT R5, R4, 0x9932, RZ \n {STORE}".replace("0x5410", "0x1054"),
        f"PRMT R4, RZ, R7, R4 \n {LOWER} \n {STORE}",
        f"PRMT R4, RZ, 0x7610, R4 \n @P0 MOV R4, R6 \n {LOWER} \n {STORE} \n STG.E desc[UR4][R8.64], R4",
        f".loop: \n {LOWER} \n {STORE} \n PRMT R4, RZ, 0x7610, R4 \n STG.E desc[UR4][R8.64], R4"
        " \n @P0 BRA `(.loop)",
    ],
)
def test_read(text: str) -> None:
    assert kept(text)
