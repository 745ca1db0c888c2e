"""Whether local memory holds spilled registers alone."""

from __future__ import annotations

import pytest

from memsim.isa.stack import local_name
from memsim.sass.decode import decode
from memsim.sass.listing import Listing, ListingLine

FRAME = ("LDC R1, c[0x0][0x28]", "IADD3 R1, R1, -0x10, RZ")
SPILL = ("STL [R1+0x8], R4", "LDL R4, [R1+0x8]", "STL.128 [R1], R8")


def named(*texts: str) -> str:
    lines = (ListingLine(16 * place, None, text, None) for place, text in enumerate((*FRAME, *texts, "EXIT")))
    return local_name(decode(Listing("kernel", tuple(lines), {})))


def test_fixed_places_behind_the_stack_pointer_are_spills() -> None:
    assert named(*SPILL) == "spills"
    assert named(*SPILL, "IADD3 R2, R4, 0x1, RZ") == "spills"


@pytest.mark.parametrize(
    "text",
    [
        "LDL R2, [R6]",  # an element of an array
        "IADD3 R2, R1, R6, RZ",  # its place, by an index
        "STL [R1], R1",  # a pointer to it is kept
        "STG.E desc[UR4][R2.64], R1",
        "IMAD.MOV.U32 R2, RZ, RZ, R1",
        "LEA R2, R6, R1, 0x2",
    ],
)
def test_any_other_way_there_may_lead_to_an_array(text: str) -> None:
    assert named(*SPILL, text) == "local memory"


def test_functions_that_are_called_save_registers_too() -> None:
    assert named(*SPILL, "CALL.REL.NOINC 0x0") == "stack"
