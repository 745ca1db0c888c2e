"""Common parts of instructions that access memory: forms, addresses, and their execution frame.

They report the accessed addresses to the machine and, if data is wanted, move it. Costs are in
`memsim.model`. Source: compiled CUDA code, run on an H100 and an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.op import Address, Form, Register, Unsupported, require
from memsim.isa.program import Op
from memsim.isa.readers import Binder, IntReader
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, from_bools, invert
from memsim.state.registers import fit
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int, low_bits


class GenericAtomic(NamedTuple):
    """Kinds of an atomic with a generic address: on lanes in shared memory, if no lane is there, and on lanes
    in that of other blocks.
    """

    shared: str
    unmade: str
    elsewhere: str


#: Executes an instruction: (machine, op, executing lanes, whether data is wanted).
Run = Callable[[MemoryMachine, Op, Mask, bool], None]

#: Moves data: (machine, op, the bytes of the space, address, lanes).
Move = Callable[[MemoryMachine, Op, SpaceBytes, Int, Mask], None]
#: The addresses of an access are unknown: (machine, op, why, lanes, spaces).
Forget = Callable[[MemoryMachine, Op, Poison, Mask, tuple[str, ...]], None]

#: Modifiers that do not affect addresses: cache policies, scopes, memory orders.
HINTS = frozenset(
    "E CONSTANT STRONG WEAK RELAXED ACQUIRE RELEASE MMIO PRIVATE U ZD SPARSE "
    "GPU SYS CTA SM CLUSTER VC EF EL LU NA EU LTC64B LTC128B LTC256B".split()
)
_ELEMENTS: dict[str, tuple[type, int]] = {
    "U8": (np.uint8, 1),
    "S8": (np.int8, 1),
    "U16": (np.uint16, 1),
    "S16": (np.int16, 1),
    "64": (np.int32, 2),
    "128": (np.int32, 4),
    "32": (np.int32, 1),
}
#: Memory orders by which accesses are strong (PTX ISA, Memory Consistency Model).
_STRONG = frozenset(("STRONG", "RELAXED", "ACQUIRE", "RELEASE", "MMIO"))
SPACES = {"G": "global", "S": "shared", "L": "local", "": "generic"}
#: Spaces that an unknown generic address may refer to.
GENERIC = ("global", "shared", "local")


def shape_of(form: Form) -> tuple[type, int, int]:
    """(element, registers, bytes) of a lane's load or store.

    Raises:
        Unsupported: a modifier that may affect the address.
    """
    require(set(form.modifiers) <= HINTS | _ELEMENTS.keys())
    sized = [name for name in form.modifiers if name in _ELEMENTS]
    require(len(sized) <= 1)
    element, count = _ELEMENTS[sized[0]] if sized else (np.int32, 1)
    return element, count, np.dtype(element).itemsize * count


def register_count(form: Form) -> int:
    """Registers that hold the data."""
    return 4 if "128" in form.modifiers else 2 if "64" in form.modifiers else 1


def bytes_of_piece(form: Form) -> int:
    """Bytes that a load or store moves of each register: 4, or fewer."""
    return min(
        (np.dtype(_ELEMENTS[name][0]).itemsize for name in form.modifiers if name in _ELEMENTS), default=4
    )


def of_size(text: str) -> Callable[[Form], str]:
    """A signature in which `R#` is as many registers as the form names."""
    return lambda form: text.replace("#", str(register_count(form)))


def consecutive_slots(register: Register, count: int) -> list[int | None]:
    """The slots of consecutive registers; None for RZ."""
    return [None if register.slot is None else register.slot + i for i in range(count)]


def unknown_results(slots: Sequence[int | None]) -> Forget:
    """For `framed`: what registers would have got becomes unknown."""

    def forget(machine: MemoryMachine, op: Op, poison: Poison, active: Mask, spaces: tuple[str, ...]) -> None:
        for slot in slots:
            if slot is not None:
                machine.write(slot, poison, active)

    return forget


def is_strong(form: Form) -> bool:
    """Does it name a memory order by which it is a strong access?"""
    return not _STRONG.isdisjoint(form.modifiers)


def is_of_block(form: Form) -> bool:
    """Is a strong access so for threads of its block only (PTX ISA, Scope)?"""
    return not {"SM", "CTA"}.isdisjoint(form.modifiers)


def address_of(form: Form) -> tuple[int, Address]:
    """The address operand and its index."""
    for place, operand in enumerate(form.operands):
        if isinstance(operand, Address):
            return place, operand
    raise Unsupported


def execution_frame(
    read: IntReader,
    binder: Binder,
    space: str,
    access: str,
    width: int,
    move: Move,
    forget: Forget,
    lanes: int = WARP,
    generic: GenericAtomic | None = None,
    spins: bool = False,
) -> Run:
    """The execution frame of memory instructions.

    read: the address. lanes: only so many of a warp supply one. generic: of an atomic, its kinds in shared
    memory if its address is generic. spins: it is part of a loop, of which only the first round is reported.
    """
    constants: Any = binder.window() if space in ("generic", "constant") else None

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if lanes < WARP:
            active = both(active, from_bools((np.arange(machine.threads) % WARP < lanes)[None, :]))
        try:
            address = read(machine.slots)
        except Poisoned as unknown:
            poison, spaces = unknown.poison.through(op), GENERIC if space == "generic" else (space,)
            for where in spaces:
                machine.lose(op, access, where, width, poison, active)
            if active is not False:
                forget(machine, op, poison, active, spaces)
            return
        if space == "generic":
            pieces = machine.resolve(address, active)
            machine.in_spaces(op, generic and generic.unmade, width, pieces)
        elif space == "shared":
            pieces = [(space, own_shared(address), active)]
        elif space == "local":
            pieces = [(space, fit(address, 32), active)]
        else:
            pieces = [(space, address, active)]
        for name, at, part in pieces:
            called = access
            if generic and space == "generic" and name in ("shared", "elsewhere"):
                called = generic.shared if name == "shared" else generic.elsewhere
            told = machine.first_round(op, part) if spins else part
            outside = machine.touch(op, called, name, width, at, told)
            if outside is not False:
                forget(machine, op, Poison(OUTSIDE, op), outside, ())
                part = both(part, invert(outside))
            if not data or part is False:
                continue
            if name == "elsewhere":
                store, place = machine.elsewhere(at, part)
                move(machine, op, store, place, part)
            else:
                move(machine, op, constants if name == "constant" else machine.memory.space(name), at, part)

    return run


#: Why a value is unknown that was read outside of every array.
OUTSIDE = "it reads outside of every array"


def own_shared(address: Int) -> Int:
    """A shared address without the rank of the block in its cluster, which is in bits 24 and up."""
    return low_bits(address, 24)


def forget_memory(
    machine: MemoryMachine, op: Op, poison: Poison, active: Mask, spaces: tuple[str, ...]
) -> None:
    """Something was written to an unknown address: all of these spaces becomes unknown."""
    for name in spaces:
        machine.memory.spoil(name, poison)
