"""One instruction as operations on the lanes of a warp: its operands, guard and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from memsim.interpreter.traced import NotTraced, Traced, TracedOrNumber, TracedRegisters
from memsim.interpreter.vector_code import VectorCode
from memsim.interpreter.vector_operations import ZERO, Place, RegisterPlace, VectorOperation
from memsim.isa.definitions import Builder
from memsim.isa.op import Operand, Predicate
from memsim.isa.program import Op
from memsim.isa.readers import Binder, Registers
from memsim.state.parts import Part
from memsim.state.registers import Sum


class NotLowered(Exception):
    """A kernel does something that native/interpreter.c has no operation for."""


class Goto(NamedTuple):
    """The first operation of an instruction."""

    instruction: int


class OfThreads(NamedTuple):
    """A special register that depends on the thread alone."""

    name: str


class LoweredOp(VectorCode):
    """The operations of one instruction of a launch, with the constants that the binder has for it.

    truths: slots of predicates, as a bit set. meeting: where lanes go on that wait at a barrier.
    """

    def __init__(self, op: Op, binder: Binder, truths: int, meeting: dict[int, int], has_clock: bool) -> None:
        super().__init__()
        self.op, self.binder, self.meeting, self.has_clock = op, binder, meeting, has_clock
        self.registers = TracedRegisters(truths)
        self.modifiers = op.form.modifiers
        self.targets = op.meaning.targets
        self.results = [one for _, one in op.meaning.results]
        self.sources = [one for _, one in op.meaning.sources]

    def refuse(self) -> NotLowered:
        """That there is no operation for it."""
        return NotLowered(self.op.text)

    def add(
        self, name: str, d: Place | None = None, *operands: Place | None, k: int = 0, n: object = 0
    ) -> None:
        """An operation that has no result of its own."""
        a, b, c = (*operands, None, None, None)[:3]
        self.operations.append(VectorOperation(name, d, a, b, c, k, n))

    def guard(self, guard: Predicate | None, skips: bool = True) -> None:
        """Only lanes where it holds go on; if there are none, the rest of the instruction is skipped."""
        if guard is None or (guard.slot is None and not guard.negated):
            return
        place = ZERO if guard.slot is None else RegisterPlace(guard.slot)
        negated = guard.negated and guard.slot is not None
        self.add("guard", None, place, k=int(negated), n=Goto(self.op.index + 1) if skips else 0)

    # --- operands ---------------------------------------------------------------------------

    def traced(self, read: Callable[[Registers], object]) -> Any:
        """What a reader reads, as one traced array or number."""
        return array_of(read(self.registers))

    def word(self, operand: Operand | None) -> Place:
        """A word of each lane."""
        return self.low(self.traced(self.binder.word(_there(operand))))

    def truth(self, operand: Operand | None) -> Place:
        """A predicate."""
        return self.low(self.traced(self.binder.predicate(_there(operand))))

    def pair(self, operand: Operand | None) -> Place:
        """64 bits of each lane."""
        return self.long(self.traced(self.binder.pair(_there(operand))))

    def address(self, operand: Operand | None, is_short: bool) -> Place:
        """Of an access, in 64 bits."""
        read = self.binder.short_address if is_short else self.binder.address
        return self.long(self.traced(read(_there(operand))))

    # --- results ----------------------------------------------------------------------------

    def write(self, slot: int, place: Place) -> None:
        """Write a register in the executing lanes."""
        self.add("write", RegisterPlace(slot), place)

    def write_places(self, places: Sequence[Place], of_warps: bool = False) -> None:
        """Write the results. of_warps: in all lanes, if one executes the instruction."""
        if len(self.targets) != len(places):
            raise self.refuse()
        if of_warps and self.op.guard is not None:
            self.add("all")
        for slot, place in zip(self.targets, places):
            if slot is not None:
                self.write(slot, place)

    def write_values(self, found: Any) -> None:
        """Write what an instruction's function gives."""
        values = [found] if len(self.targets) == 1 else list(found)
        places = [
            (slot, self._as_register(array_of(value)))
            for slot, value in zip(self.targets, values)
            if slot is not None
        ]
        written = {slot for slot, _ in places}
        for at, (slot, place) in enumerate(places):
            if isinstance(place, RegisterPlace) and place.slot in written and place.slot != slot:
                places[at] = slot, self.emit("or_w", place, ZERO)  # before it is overwritten
        for slot, place in places:
            self.write(slot, place)

    def _as_register(self, value: TracedOrNumber) -> Place:
        if isinstance(value, Traced) and value.dtype.kind == "f" and value.dtype.itemsize != 4:
            raise NotTraced(f"a register of {value.dtype}")
        return self.low(value)


#: What adds the operations of instructions, by what makes these executable.
Lowered = Mapping[Builder | None, Callable[[LoweredOp], None]]


def _there(operand: Operand | None) -> Operand:
    assert operand is not None
    return operand


def array_of(value: object) -> Any:
    """What an instruction gives for a register, as one traced array or number.

    Raises:
        NotTraced: it is something else, such as several numbers that are known already.
    """
    if isinstance(value, (Sum, Part)):
        return value.array
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(())[()]
    if isinstance(value, (Traced, int, bool, np.generic)):
        return value
    raise NotTraced(f"a result of type {type(value).__name__}")
