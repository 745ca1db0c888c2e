"""Spilled registers, and what else a kernel keeps in local memory, from how its instructions address it.

ptxas keeps the stack pointer in R1: a spilled register is at a fixed offset from it, an element of an array
is not, nor is the target of a pointer. Each word of a spilled register has a slot of its own.
Source: compiled CUDA code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from memsim.arch.units import WORD
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import address_of, bytes_of_piece, register_count
from memsim.isa.op import SLOTS, Address, Effect, Flow, Form, Register
from memsim.isa.program import Op, Program
from memsim.launch import SPILLS
from memsim.state.partial import Value, or_zero
from memsim.state.parts import Mask
from memsim.state.poison import Poisoned
from memsim.state.registers import fit, from_array, ints, to_array

STACK_POINTER = 1
#: Registers that a function need not preserve, as bits: those before R16, with its arguments and results.
OVERWRITTEN = (1 << 16) - 1
FRAMES, ANYTHING = "stack", "local memory"


def local_name(program: Program) -> str:
    """`spills`: only spilled registers; `stack`: also what functions save."""
    if any(_leads_away(op) for op in program.ops):
        return ANYTHING
    return FRAMES if any(op.flow is Flow.CALL for op in program.ops) else SPILLS


def with_spills(program: Program) -> Program:
    """The program with a slot for each word of the stack, if only spilled registers are there.

    A spilled register is then a register like others: what is known of it, and which lanes share it, is not
    lost in memory. Loads and stores of spills are still accesses to local memory.
    """
    if local_name(program) != SPILLS:
        return program
    first = max(program.slots, SLOTS + 2)  # the machine has two of its own after those of machine code
    found = {op.index: words for op in program.ops if (words := _words(op, first))}
    if not found or any(words[0] < first for words in found.values()):  # below the stack pointer: not a frame
        return program
    ops = [_spilling(op, found[op.index]) if op.index in found else op for op in program.ops]
    last = max(max(words) for words in found.values())
    return replace(program, ops=tuple(ops), slots=last + 1)


def _words(op: Op, first: int) -> tuple[int, ...]:
    """The slots of the words that an access to the stack loads or stores."""
    if op.form.opcode not in ("LDL", "STL"):
        return ()
    start = first + address_of(op.form)[1].offset // WORD
    return tuple(range(start, start + register_count(op.form)))


def words_of_frame(op: Op) -> tuple[int, ...]:
    """The words from the stack pointer on that an access loads or stores; () if they are not fixed."""
    found = _words(op, 0)
    base = address_of(op.form)[1].base if found else None
    is_whole = base is not None and base.slot == STACK_POINTER and bytes_of_piece(op.form) == WORD
    return found if is_whole and found[0] >= 0 else ()


def _spilling(op: Op, words: tuple[int, ...]) -> Op:
    slots = sum(1 << word for word in words)
    if op.form.opcode == "LDL":
        return replace(op, reads=op.reads | slots, spills=words)
    kept = slots if bytes_of_piece(op.form) < WORD else 0
    return replace(op, reads=op.reads | kept, writes=op.writes | slots, spills=words)


def _leads_away(op: Op) -> bool:
    """Is the address in local memory computed, or the stack pointer used for other than spills?"""
    slots = [one.slot for one in op.form.operands if isinstance(one, Register)]
    if op.effect is Effect.MEMORY and any(space == "local" for _, space in op.touches):
        at = next((one for one in op.form.operands if isinstance(one, Address)), None)
        if at is None:  # a call that cannot be followed
            return True
        fixed = at.base is not None and at.base.slot == STACK_POINTER and at.uniform is None
        return not fixed or STACK_POINTER in slots
    reads = bool(op.reads >> STACK_POINTER & 1 or op.addresses >> STACK_POINTER & 1)
    moves = op.writes >> STACK_POINTER & 1  # R1 = R1 + frame size
    return reads and not moves


# --- moves between registers and the words of the stack --------------------------------------

_SIGNED = {8: np.int8, 16: np.int16}


def load_spilled(machine: MemoryMachine, op: Op, slots: Sequence[int | None], active: Mask) -> None:
    """LDL: registers `slots` get what was spilled; None is not written."""
    for slot, word in zip(slots, op.spills):
        if slot is not None:
            value = machine.slots[word]
            if bytes_of_piece(op.form) < WORD:
                value = _part(op, value)
            machine.write(slot, value, active)


def store_spilled(machine: MemoryMachine, op: Op, slots: Sequence[int | None], active: Mask) -> None:
    """STL: registers `slots` are spilled; None is zero.

    Of a word that is stored by a piece, what nobody wrote is zero.
    """
    for slot, word in zip(slots, op.spills):
        value = 0 if slot is None else machine.slots[slot]
        if bytes_of_piece(op.form) < WORD:
            value = _with_part(op, machine.slots[word], value)
        machine.write(word, value, active)


def _place(form: Form) -> tuple[int, int]:
    """(first bit in the word, bits) of a piece of a word."""
    return 8 * (address_of(form)[1].offset % WORD), 8 * bytes_of_piece(form)


def _part(op: Op, word: Value) -> Value:
    first, bits = _place(op.form)
    try:
        piece = to_array(ints(or_zero(word))) >> first & (1 << bits) - 1
    except Poisoned as unknown:
        return unknown.poison.through(op)
    if {"S8", "S16"} & set(op.form.modifiers):
        piece = piece.astype(_SIGNED[bits]).astype(np.int64)
    return from_array(piece)


def _with_part(op: Op, word: Value, value: Value) -> Value:
    first, bits = _place(op.form)
    mask = (1 << bits) - 1 << first
    try:
        old, new = to_array(ints(or_zero(word))), to_array(ints(or_zero(value)))
    except Poisoned as unknown:
        return unknown.poison.through(op)
    return fit(from_array(old & ~mask | new << first & mask), 32)
