"""A decoded program: instructions with the registers they read and write, and their effects.

Front ends produce `Program` and `Op`; dataflow analysis and the emulator look at effects, not at names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memsim.instruction import Instruction
from memsim.isa.definitions import Meaning
from memsim.isa.op import BARRIER, PREDICATE, SLOTS, Effect, Flow, Form, Predicate, Trait


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Op(Instruction):
    """One instruction of a program.

    index: its number in the program. reads, writes: slots,
    as bit sets. A guarded write leaves the register unchanged in lanes whose guard is false. addresses: slots
    read for an address, a predicate or the guard, not as data. targets: indices of the targets of a branch,
    call or barrier. meaning: what is known of its form. called: the instruction of
    the source program that it is a part of, if that is not its form. spills: the slots that stand for the
    words of the stack that it loads or stores (`memsim.isa.stack`).
    """

    index: int
    guard: Predicate | None
    effect: Effect
    reads: int
    writes: int
    addresses: int
    flow: Flow | None
    targets: tuple[int, ...]
    meaning: Meaning
    called: str = ""
    spills: tuple[int, ...] = ()

    @property
    def form(self) -> Form:
        """Its opcode, modifiers and operands."""
        return self.meaning.form

    @property
    def name(self) -> str:
        """The opcode with its modifiers."""
        return self.called or self.form.name

    @property
    def traits(self) -> frozenset[Trait]:
        """What else the emulator asks of it."""
        return self.meaning.traits

    @property
    def is_known(self) -> bool:
        """Is its opcode known? If not, it may do anything."""
        return self.meaning.definition.known

    @property
    def touches(self) -> tuple[tuple[str, str], ...]:
        """(access, state space) of each access that it makes."""
        return self.meaning.definition.touches


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel's instructions in order. `functions`: start of device functions in it, by name.

    branches: targets of indexed branches are looked up by address: `at` maps addresses to indices. slots:
    their number; predicates, barriers: which of them hold these, as bit sets.
    """

    name: str
    ops: tuple[Op, ...]
    at: Mapping[int, int]
    functions: Mapping[str, int]
    slots: int = SLOTS
    predicates: int = 0xFFFF << PREDICATE
    barriers: int = 0xFFFF << BARRIER
