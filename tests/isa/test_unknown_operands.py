"""What becomes unknown where an operand of an access to memory is: no more, and no less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim.isa.op import PREDICATE
from memsim.state.address_spaces import GLOBAL_BASE, SHARED_BASE
from memsim.state.partial import Partial
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array
from tests.isa.test_memory import LANES, Machine, each, pointers

WHY = Poison("never written", None)
EVERY = np.arange(LANES)
BASE = {"global": GLOBAL_BASE, "shared": SHARED_BASE}


def but(lanes: list[int], value: Any) -> Any:
    """A register that is unknown in these lanes."""
    known: Any = from_bools(~np.isin(EVERY, lanes)[None])
    return Partial(value, known, WHY)


def unknown_words(machine: Machine, space: str, count: int) -> list[int]:
    """Which of the first words are unknown."""
    places = from_array(BASE[space] + 4 * EVERY[None].astype(np.int64))
    lost = machine.stores[space].lost(places, np.int32, True)
    found = np.broadcast_to(to_bools(lost), (1, LANES))[0]
    return [i for i in range(count) if found[i]]


def unknown_lanes(value: Any) -> list[int]:
    """The lanes in which a register is unknown."""
    if isinstance(value, Poison):
        return list(range(LANES))
    if not isinstance(value, Partial):
        return []
    return np.flatnonzero(~np.broadcast_to(to_bools(value.known), (1, LANES))[0]).tolist()


def atomic(machine: Machine, text: str, **registers: Any) -> Machine:
    low, high = pointers([4 * (lane % 8) for lane in range(LANES)])
    return machine.run(text, R2=low, R3=high, **registers)


ADD = "ATOMG.E.ADD.STRONG.GPU PT, R4, desc[UR4][R2.64], R8"


def test_an_unknown_operand_of_an_atomic_spoils_its_word_alone() -> None:
    machine = atomic(Machine(), ADD, R8=but([3, 12], each([1] * LANES)))
    assert unknown_words(machine, "global", 8) == [3, 4]
    assert unknown_lanes(machine.slots[4]) == [lane for lane in range(LANES) if lane % 8 in (3, 4)]
    content, found = machine.content["global"], machine.bytes_of("global")
    for word in (0, 1, 2, 5, 6, 7):
        before, after = (int.from_bytes(one[4 * word :][:4], "little") for one in (content, found))
        assert after == (before + 4) % 2**32
        assert machine.slots[4].poison.story() == f"never written: {ADD} (machine code at 0x0)"


def test_an_atomic_with_an_operand_that_nobody_knows_spoils_what_it_reaches() -> None:
    machine = atomic(Machine(), ADD, R8=WHY)
    assert unknown_words(machine, "global", 32) == list(range(8))
    assert unknown_lanes(machine.slots[4]) == list(range(LANES))


def test_an_atomic_on_an_unknown_word_is_unknown_in_its_lanes() -> None:
    machine = Machine()
    machine.stores["global"].forget(GLOBAL_BASE + 20, np.int32, True, Poison("not loaded", None))
    atomic(machine, ADD, R8=1)
    assert unknown_words(machine, "global", 8) == [5]
    assert unknown_lanes(machine.slots[4]) == [lane for lane in range(LANES) if lane % 8 == 5]
    assert machine.slots[4].poison.reason == "not loaded"


def test_a_generic_atomic_with_an_unknown_operand_was_made_all_the_same() -> None:
    machine = Machine()
    low, high = pointers([4 * (lane % 8) for lane in range(LANES)])
    text = "ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, R4, desc[UR4][R2.64], R8"
    machine.run(text, R2=low, R3=high, R8=but([1], each([0] * LANES)))
    assert machine.slots[PREDICATE] is True
    assert unknown_lanes(machine.slots[4]) == [lane for lane in range(LANES) if lane % 8 == 1]


def test_whether_a_swap_was_made_is_unknown_where_its_operand_is() -> None:
    machine = Machine()
    low, _ = pointers([4 * lane for lane in range(LANES)], SHARED_BASE)
    text = "ATOMS.CAST.SPIN P0, [R2], R8, R10"
    machine.run(text, R2=low, R8=but([6], each([1] * LANES)), R10=5)
    assert unknown_lanes(machine.slots[PREDICATE]) == [6]
    assert unknown_words(machine, "shared", 32) == [6]


@pytest.mark.parametrize(
    "text", ["TLD.LZ R10, R8, R4, R6, 0x0, 1D, 0x7", "TEX.LL R10, R8, R4, R9, R6, 0x0, 2D"]
)
def test_a_fetch_of_an_unknown_texture(text: str) -> None:
    machine = Machine().run(text, R4=0, R5=0, R6=WHY, R7=0, R9=0, R11=3)
    channels = [8, 9, 10] if text.startswith("TLD") else [8, 9, 10, 11]
    assert all(unknown_lanes(machine.slots[slot]) == list(range(LANES)) for slot in channels)
    assert machine.touched == [("texture request", "", 0)]
    assert text.startswith("TEX") or machine.slots[11] == 3


def test_what_an_unknown_word_meets_in_wider_operands_becomes_unknown() -> None:
    """Elements of 8 bytes: lane 0 changes words 0 and 1, lane 1 words 2 and 3."""
    machine = Machine()
    low, high = pointers([8 * (lane % 2) for lane in range(LANES)])
    given = {"R8": but([1], each([1] * LANES)), "R9": 0}
    machine.run("ATOMG.E.ADD.64.STRONG.GPU PT, R4, desc[UR4][R2.64], R8", R2=low, R3=high, **given)
    assert unknown_words(machine, "global", 8) == [2, 3]
    for slot in (4, 5):
        assert unknown_lanes(machine.slots[slot]) == list(range(1, LANES, 2))


@pytest.mark.parametrize("text", ["ATOMS.ADD R4, [R2], R8", "LDS R4, [R2]"])
def test_an_unknown_address_in_shared_memory(text: str) -> None:
    machine = Machine().run(text, R2=WHY, R8=1)
    assert unknown_lanes(machine.slots[4]) == list(range(LANES))
    assert machine.touched == [("lost", "shared", 4)]
    spoiled = machine.stores["shared"].poison is not None
    assert spoiled == text.startswith("ATOMS")  # a load changes nothing


def test_lanes_that_do_not_execute_it_lose_nothing() -> None:
    machine = Machine().run("LDS R4, [R2]", False, R2=WHY, R4=7)
    assert machine.slots[4] == 7
    machine.run("STS [R2], R4", False, R2=WHY)
    assert machine.stores["shared"].poison is None


@pytest.mark.parametrize(("text", "adds"), [("RZ", 0), ("R8", 5)])
def test_a_reduction_with_rz_adds_nothing(text: str, adds: int) -> None:
    machine = atomic(Machine(), f"REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], {text}", R8=5)
    before, after = (
        int.from_bytes(one[:4], "little") for one in (machine.content["global"], machine.bytes_of("global"))
    )
    assert after == (before + 4 * adds) % 2**32


def test_counting_up_needs_no_operand() -> None:
    machine = Machine()
    low, _ = pointers([4 * (lane % 8) for lane in range(LANES)], SHARED_BASE)
    machine.run("ATOMS.POPC.INC.32 RZ, [R2+URZ]", R2=low)
    before, after = (
        int.from_bytes(one[:4], "little") for one in (machine.content["shared"], machine.bytes_of("shared"))
    )
    assert after == (before + 4) % 2**32
    assert machine.touched == [("atomic_inc", "shared", 4)]


def test_a_copy_from_an_unknown_address_spoils_its_destination() -> None:
    machine = Machine()
    at, high = pointers([16 * lane for lane in range(LANES)], SHARED_BASE)
    machine.run("LDGSTS.E.BYPASS.128 [R4], desc[UR4][R2.64]", R2=WHY, R3=high, R4=at)
    assert machine.touched == [("lost", "shared", 16), ("lost", "global", 16)]
    assert machine.stores["shared"].poison is not None and machine.stores["global"].poison is None
    untouched = Machine().run("LDGSTS.E.128 [R4], desc[UR4][R2.64]", False, R2=WHY, R3=high, R4=at)
    assert untouched.stores["shared"].poison is None


def test_unknown_bytes_are_copied_as_unknown_ones() -> None:
    machine = Machine()
    machine.stores["global"].forget(GLOBAL_BASE + 16, np.int32, True, WHY)
    low, high = pointers([16 * lane for lane in range(LANES)])
    at, _ = pointers([4 * lane for lane in range(LANES)], SHARED_BASE)
    machine.run("LDGSTS.E [R4], desc[UR4][R2.64]", R2=low, R3=high, R4=at)
    assert 1 in unknown_words(machine, "shared", 32)


def test_a_matrix_of_an_unknown_register_is_stored_as_unknown() -> None:
    machine = Machine()
    rows, _ = pointers([16 * (lane % 8) for lane in range(LANES)], SHARED_BASE)
    machine.run("STSM.16.M88 [R2], R8", R2=rows, R8=WHY)
    assert unknown_words(machine, "shared", 32) == list(range(32))
    assert machine.stores["global"].poison is None


def test_an_unknown_address_of_a_matrix_is_unknown_in_all_lanes() -> None:
    machine = Machine().run("LDSM.16.M88.2 R4, [R2]", R2=WHY)
    assert [unknown_lanes(machine.slots[slot]) for slot in (4, 5)] == [list(range(LANES))] * 2
    assert machine.touched == [("lost", "shared", 16)]


class Beyond(Machine):
    """The odd lanes' addresses are outside of every array."""

    def touch(self, *given: Any) -> Any:
        return from_bools(EVERY[None] % 2 == 1)


@pytest.mark.parametrize(
    "text",
    [
        "LDG.E R4, desc[UR4][R2.64]",
        "LDG.E.64 R4, desc[UR4][R2.64]",
        "ATOMG.E.ADD.STRONG.GPU PT, R4, desc[UR4][R2.64], R8",
        "ATOMG.E.EXCH.STRONG.GPU PT, R4, desc[UR4][R2.64], R8",
        "STG.E desc[UR4][R2.64], R8",
    ],
)
def test_what_lies_outside_of_every_array(text: str) -> None:
    """What is read there is unknown in the lanes that do; nothing is written there."""
    low, high = pointers([8 * lane for lane in range(LANES)])
    inside, machine = Machine(), Beyond()
    for one in (inside, machine):
        one.run(text, R2=low, R3=high, R8=5)
    written = [4, 5] if ".64 R4" in text else [] if text.startswith("STG") else [4]
    for slot in written:
        assert unknown_lanes(machine.slots[slot]) == list(range(1, LANES, 2))
        assert "outside of every array" in machine.slots[slot].poison.story()
        known = [int(to_array(ints(one))[0, 2]) for one in (machine.slots[slot].value, inside.slots[slot])]
        assert known[0] == known[1]
    before, after = machine.content["global"], machine.bytes_of("global")
    for lane in range(LANES):
        of = inside.bytes_of("global") if lane % 2 == 0 else before
        assert after[8 * lane : 8 * lane + 8] == of[8 * lane : 8 * lane + 8]
