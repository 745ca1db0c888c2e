"""Moves between registers and spilled registers, each word of which has a slot of its own (stack.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memsim.arch.units import WORD
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory_access import address_of
from memsim.isa.op import Form
from memsim.isa.program import Op
from memsim.isa.stack import is_part_of_a_word
from memsim.state.partial import or_zero
from memsim.state.poison import Poisoned
from memsim.state.registers import fit, from_array, ints, to_array

_SIGNED = {8: np.int8, 16: np.int16}


def load_spilled(machine: MemoryMachine, op: Op, slots: Sequence[int | None], active: Mask) -> None:
    """LDL: registers `slots` get what was spilled; None is not written."""
    for slot, word in zip(slots, op.spills):
        if slot is not None:
            value = machine.slots[word]
            if is_part_of_a_word(op.form):
                value = _part(op, value)
            machine.write(slot, value, active)


def store_spilled(machine: MemoryMachine, op: Op, slots: Sequence[int | None], active: Mask) -> None:
    """STL: registers `slots` are spilled; None is zero.

    Of a word that is stored by a piece, what nobody wrote is zero.
    """
    for slot, word in zip(slots, op.spills):
        value = 0 if slot is None else machine.slots[slot]
        if is_part_of_a_word(op.form):
            value = _with_part(op, machine.slots[word], value)
        machine.write(word, value, active)


def _place(form: Form) -> tuple[int, int]:
    """(first bit in the word, bits) of a piece of a word."""
    return 8 * (address_of(form)[1].offset % WORD), 8 if {"U8", "S8"} & set(form.modifiers) else 16


def _part(op: Op, word: Any) -> Any:
    first, bits = _place(op.form)
    try:
        piece = to_array(ints(or_zero(word))) >> first & (1 << bits) - 1
    except Poisoned as unknown:
        return unknown.poison.through(op)
    if {"S8", "S16"} & set(op.form.modifiers):
        piece = piece.astype(_SIGNED[bits]).astype(np.int64)
    return from_array(piece)


def _with_part(op: Op, word: Any, value: Any) -> Any:
    first, bits = _place(op.form)
    mask = (1 << bits) - 1 << first
    try:
        old, new = to_array(ints(or_zero(word))), to_array(ints(or_zero(value)))
    except Poisoned as unknown:
        return unknown.poison.through(op)
    return fit(from_array(old & ~mask | new << first & mask), 32)
