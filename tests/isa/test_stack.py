"""Whether local memory holds spilled registers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memsim.isa.stack import load_spilled, local_name, store_spilled
from memsim.sass.decode import decode
from memsim.sass.listing import Listing, ListingLine
from memsim.state.poison import Poison
from memsim.state.registers import ints, to_array
from tests.isa.harness import words
from tests.isa.test_memory import LANES, ODD, Machine, each

#: A register in which a word of the stack is kept.
WORD_SLOT = 40

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


def spilling(text: str, word: int) -> Any:
    """An access to the word of the stack that is in a slot."""
    (op,) = decode(Listing("kernel", (ListingLine(0, None, text, None),), {})).ops
    return replace(op, spills=(word,))


@pytest.mark.parametrize(
    ("kind", "at", "size"),
    [("", 0, 4), *((f".{sign}8", at, 1) for sign in "US" for at in range(4)), (".U16", 2, 2), (".S16", 0, 2)],
)
def test_pieces_of_spilled_words(kind: str, at: int, size: int) -> None:
    """A byte or half is stored into its word, whose rest stays, or is zero if nobody wrote it."""
    value, word = words(LANES, 3), words(LANES, 4)
    for before in (each(word), None):
        machine = Machine()
        machine.slots[WORD_SLOT], machine.slots[4] = before, each(value)
        store_spilled(machine, spilling(f"STL{kind} [R1+{8 + at:#x}], R4", WORD_SLOT), [4], True)
        stored = np.broadcast_to(to_array(ints(machine.slots[WORD_SLOT])), (1, LANES))[0].tolist()
        load_spilled(machine, spilling(f"LDL{kind} R5, [R1+{8 + at:#x}]", WORD_SLOT), [5], True)
        loaded = machine.word("R5")
        for lane in range(LANES):
            raw = bytearray(word[lane].to_bytes(4, "little") if before is not None else bytes(4))
            raw[at : at + size] = value[lane].to_bytes(4, "little")[:size]
            assert stored[lane] & 0xFFFFFFFF == int.from_bytes(raw, "little")
            piece = int.from_bytes(raw[at : at + size], "little", signed=kind.startswith(".S"))
            assert loaded[lane] == piece % 2**32


@pytest.mark.parametrize("kind", ["", ".U8", ".S16"])
def test_spilled_words_that_are_unknown(kind: str) -> None:
    machine = Machine()
    for word, value, known in ((Poison("lost", None), 5, not kind), (7, Poison("lost", None), False)):
        machine.slots[WORD_SLOT], machine.slots[4] = word, value
        store_spilled(machine, spilling(f"STL{kind} [R1+0x8], R4", WORD_SLOT), [4], True)
        assert isinstance(machine.slots[WORD_SLOT], Poison) != known
    load_spilled(machine, spilling(f"LDL{kind} R5, [R1+0x8]", WORD_SLOT), [5], True)
    assert "lost" in machine.slots[5].story()
    load_spilled(machine, spilling(f"LDL{kind} RZ, [R1+0x8]", WORD_SLOT), [None], True)
    store_spilled(machine, spilling(f"STL{kind} [R1+0x8], RZ", WORD_SLOT), [None], ODD)
    machine.slots[WORD_SLOT] = 0x7FFFFFFF
    store_spilled(machine, spilling(f"STL{kind} [R1+0x8], RZ", WORD_SLOT), [None], ODD)
    size = {"": 4, ".U8": 1, ".S16": 2}[kind]
    found = np.broadcast_to(to_array(ints(machine.slots[WORD_SLOT])), (1, LANES))[0].tolist()
    assert found == [0x7FFFFFFF >> 8 * size << 8 * size if lane % 2 else 0x7FFFFFFF for lane in range(LANES)]
