"""Registers that are known in some lanes only (`Partial`).

An instruction computes in the known lanes; in lanes where an operand is unknown, so is its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, either, invert, to_bools
from memsim.state.registers import Sum, choose, ints, to_array

NEVER_WRITTEN = Poison("read of a register that was never written", None)


class Partial:
    """`value` in the lanes `known`; `poison` is why it is unknown in the others."""

    __slots__ = ("known", "poison", "value")

    def __init__(self, value: Value, known: Part, poison: Poison) -> None:
        self.value = value
        self.known = known
        self.poison = poison


#: What a register holds for all lanes of a chunk of blocks (`memsim.state.registers`): one number, parts by
#: block and thread, an array [B or 1, T or 1], truths, what is unknown and why, or nothing: never written.
T = TypeVar("T")
Value = int | bool | Sum | Part | np.ndarray | Poison | Partial | None


def or_zero(value: Value) -> Value:
    """A register's value, with 0 in lanes that never wrote it: for uses that cannot affect a result."""
    if value is None:
        return 0
    if isinstance(value, Partial) and value.poison is NEVER_WRITTEN:
        return value.value
    return value


def covers(known: bool | Part, lanes: bool | Part) -> bool:
    """Are all of these lanes known?"""
    if known is True or lanes is False:
        return True
    if known is False:
        return False
    return not (to_bools(lanes) & ~to_bools(known)).any()


def merge_lanes(where: bool | Part, new: Value, old: Value) -> Value:
    """A register with `new` in the lanes `where` and `old` in the others."""
    if where is True:
        return new
    if where is False or new is old:
        return old
    new_value, new_known, new_poison = split_partial(new)
    old_value, old_known, old_poison = split_partial(old)
    value: Value
    if new_known is True and old_known is True:
        value = choose(where, new_value, old_value)
        return value
    known = either(both(where, new_known), both(invert(where), old_known))
    if new_known is False:
        value = old_value
    elif old_known is False:
        value = new_value
    else:
        value = choose(where, new_value, old_value)
    return known_in(known, value, new_poison or old_poison or NEVER_WRITTEN)


def known_in(known: bool | Part, value: Value, poison: Poison) -> Value:
    """A register with `value` in the lanes `known`, unknown in the others."""
    if known is True:
        return value
    return poison if known is False else Partial(value, known, poison)


def split_partial(value: Value) -> tuple[Value, bool | Part, Poison | None]:
    """(a register's value, where it is known, why it is unknown elsewhere)."""
    if isinstance(value, Partial):
        return value.value, value.known, value.poison
    if isinstance(value, Poison):
        return None, False, value
    if value is None:
        return None, False, None
    return value, True, None


def known_bits(value: Value, lanes: bool | Part) -> np.ndarray | None:
    """A register read as an integer in some lanes, in its smallest shape; None if it is unknown in one."""
    value, known, _ = split_partial(value)
    return to_array(ints(value)) if covers(known, lanes) and value is not None else None


def on_known_lanes(
    registers: list[Value],
    slots: Iterable[int],
    lanes: Callable[[], bool | Part],
    compute: Callable[[], T],
    unknown: Poison,
) -> tuple[T, bool | Part]:
    """`compute()` with each register of `slots` restricted to its known lanes, and the lanes in which the
    result is valid.

    Raises:
        Poisoned: a register is unknown in all lanes.
    """
    slots = list(slots)
    if not any(isinstance(registers[slot], Partial) for slot in slots):
        raise Poisoned(unknown)
    result, known = where_known(registers, slots, compute)
    return result, True if covers(known, lanes()) else known


def where_known(
    registers: list[Value], slots: Iterable[int], compute: Callable[[], T]
) -> tuple[T, bool | Part]:
    """`compute()` with each register of `slots` restricted to its known lanes, and the lanes of all of them.

    Raises:
        Poisoned: a register is unknown in all lanes.
    """
    partial = [(slot, one) for slot in slots if isinstance(one := registers[slot], Partial)]
    known: bool | Part = True
    for slot, value in partial:
        known = both(known, value.known)
        registers[slot] = value.value
    try:
        result = compute()
    finally:
        for slot, value in partial:
            registers[slot] = value
    return result, known
