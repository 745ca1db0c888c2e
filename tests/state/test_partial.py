"""Registers that are known in some lanes only, and how an unknown value is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.state.partial import (
    NEVER_WRITTEN,
    Partial,
    covers,
    known_in,
    merge_lanes,
    on_known_lanes,
    or_zero,
    split_partial,
    where_known,
)
from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned, place_of, poisoned_operand
from memsim.state.predicates import invert, to_bools
from memsim.state.registers import to_array

LOW = Part(np.arange(32)[None, :] < 16)
HIGH: Any = invert(LOW)
EVEN = Part(np.arange(32)[None, :] % 2 == 0)
WHY = Poison("unknown", None)


def test_lanes_that_are_covered() -> None:
    assert covers(True, LOW) and covers(LOW, False) and covers(LOW, LOW) and covers(False, False)
    assert not covers(LOW, True) and not covers(False, LOW) and not covers(LOW, EVEN)


def test_merged_lanes() -> None:
    assert merge_lanes(True, 1, 2) == 1 and merge_lanes(False, 1, 2) == 2
    both = to_array(merge_lanes(LOW, 1, 2))
    assert both.tolist() == [[1] * 16 + [2] * 16]
    for new, old, value, known in ((1, WHY, 1, LOW), (WHY, 2, 2, HIGH), (1, None, 1, LOW)):
        made = merge_lanes(LOW, new, old)
        assert isinstance(made, Partial)
        assert made.value == value and np.array_equal(made.known.array, known.array)
        assert made.poison is (WHY if WHY in (new, old) else NEVER_WRITTEN)
    assert merge_lanes(HIGH, 3, merge_lanes(LOW, 3, WHY)) == 3
    assert merge_lanes(LOW, WHY, merge_lanes(LOW, 3, WHY)) is WHY


def test_what_is_known_of_a_register() -> None:
    partial = Partial(5, LOW, WHY)
    assert split_partial(partial) == (5, LOW, WHY)
    assert (
        split_partial(WHY) == (None, False, WHY)
        and split_partial(None) == (None, False, None)
        and split_partial(4) == (4, True, None)
    )
    assert known_in(True, 5, WHY) == 5 and known_in(False, 5, WHY) is WHY
    assert or_zero(None) == 0 and or_zero(7) == 7 and or_zero(partial) is partial
    assert or_zero(Partial(5, LOW, NEVER_WRITTEN)) == 5


def test_operands_are_restricted_to_their_known_lanes() -> None:
    registers: list[Any] = [Partial(5, LOW, WHY), 7, Partial(1, EVEN, WHY)]
    before = list(registers)
    found, known = where_known(registers, (0, 1, 2), lambda: registers[0] + registers[1] + registers[2])
    assert found == 13
    assert np.array_equal(to_bools(known), LOW.array & EVEN.array)
    assert registers == before
    assert on_known_lanes(registers, (0, 1), lambda: LOW, lambda: registers[0], WHY) == (5, True)
    assert on_known_lanes(registers, (0, 1), lambda: EVEN, lambda: registers[0], WHY) == (5, LOW)
    with pytest.raises(Poisoned):
        on_known_lanes(registers, (1,), lambda: True, lambda: 1, WHY)
    with pytest.raises(ZeroDivisionError):
        where_known(registers, (0,), lambda: 1 // 0)
    assert registers == before


def instruction(name: str, where: str, source: str | None) -> Any:
    return SimpleNamespace(name=name, where=where, source=source)


def test_the_way_of_an_unknown_value() -> None:
    load = instruction("LDG", "k.cu:3", "k.cu")
    add = instruction("IADD3", "address 0x40", None)
    assert (place_of(load), place_of(add)) == ("k.cu:3", "machine code at 0x40")
    assert Poison("a call", None).story() == "a call"
    assert Poison("a call", None, (add,)).story() == "a call: IADD3 (machine code at 0x40)"
    assert (
        Poison("a call", load).through(add).story() == "a call: LDG (k.cu:3) -> IADD3 (machine code at 0x40)"
    )
    told = Poison("LDG of bytes", load).through(add).story()
    assert told == "LDG of bytes (k.cu:3) -> IADD3 (machine code at 0x40)"
    long = Poison("a call", load)
    for _ in range(20):
        long = long.through(add)
    assert len(long.via) == 8
    assert poisoned_operand(WHY).poison is WHY and poisoned_operand(Partial(1, LOW, WHY)).poison is WHY
    assert poisoned_operand(None).poison.reason == "read of a register that was never written"
