"""A kernel of a launch, lowered: its operations as native/interpreter.c takes them.

What computes on registers alone is traced (`traced.py`); for lanes, memory and control flow the interpreter
has operations of its own, whose rules are those of `memsim.isa` and `memsim.simt`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from memsim.interpreter.alike_instructions import representative_of, with_registers
from memsim.interpreter.control_operations import lower_control
from memsim.interpreter.lane_operations import OF_LANES
from memsim.interpreter.lowered_op import Goto, LoweredOp, NotLowered, OfThreads
from memsim.interpreter.memory_operations import OF_MEMORY, AccessShape
from memsim.interpreter.scratch_vectors import reuse_scratch, without_copies
from memsim.interpreter.traced import NotTraced
from memsim.interpreter.vector_operations import (
    ConstantPlace,
    Place,
    RegisterPlace,
    ScratchPlace,
    VectorOperation,
)
from memsim.isa.lanes import shuffle
from memsim.isa.op import Effect, Unsupported, slots_of
from memsim.isa.program import Op
from memsim.isa.readers import Answers, Binder
from memsim.simt.code import NEVER, Code
from memsim.simt.dataflow import Dataflow
from memsim.simt.machine import ANSWER_SLOT, COUNT_SLOT
from memsim.state.poison import Poisoned

#: Bytes of a register, and of a vector of the widest numbers.
REGISTER, VECTOR = 128, 256
PLACE_BITS = 24
IN_SCRATCH, IN_CONSTANTS = 1 << PLACE_BITS, 2 << PLACE_BITS

OPERATION = np.dtype(
    [
        ("code", "u2"),
        ("k", "u2"),
        ("d", "i4"),
        ("a", "i4"),
        ("b", "i4"),
        ("c", "i4"),
        ("next", "i4"),
        ("n", "i8"),
    ],
    align=True,
)
ACCESS = np.dtype(
    [
        *((name, "i4") for name in ("space", "size", "count", "is_signed")),
        ("registers", "i4", 4),
        *((name, "i4") for name in ("instruction", "operation", "type", "answer")),
        ("operands", "i4", 2),
        ("uppers", "i4", 2),
        ("content", "u8"),
        ("bytes", "i8"),
        ("allocation", "i8"),
    ],
    align=True,
)


#: What a function raises that asks a traced array for something else than it has.
_NOT_TRACED: tuple[type[Exception], ...] = (
    *(NotTraced, Unsupported, Poisoned, ArithmeticError, AssertionError, AttributeError),
    *(LookupError, TypeError, ValueError),
)


def _lower_values(one: LoweredOp) -> None:
    one.write_values(one.op.meaning.bind(one.binder)(one.registers))


def _lower_by_builder(one: LoweredOp) -> None:
    lower = _BY_BUILDER.get(one.op.builder)
    if lower is None:
        raise one.refuse()
    lower(one)


_BY_BUILDER = {**OF_LANES, **OF_MEMORY}
_LOWERED: dict[Effect, Callable[[LoweredOp], None]] = {
    Effect.ALU: _lower_values,
    Effect.LANES: _lower_by_builder,
    Effect.MEMORY: _lower_by_builder,
}


def lower_instruction(one: LoweredOp) -> list[VectorOperation]:
    """All operations of an instruction.

    Raises:
        NotLowered: there is no operation for something that it does.
    """
    op = one.op
    try:
        if op.flow is not None:
            lower_control(one)
        elif op.effect in _LOWERED and op.guard != NEVER:
            one.guard(op.guard)
            _LOWERED[op.effect](one)
            if op.guard is not None:
                one.add("all")
    except _NOT_TRACED as error:
        raise NotLowered(f"{op.text}: {type(error).__name__} {error}") from error
    return one.operations


class LoweredInstruction(NamedTuple):
    """An instruction's operations for some lanes of a warp, and for all of them; is_fixed: of any launch."""

    some: list[VectorOperation]
    whole: list[VectorOperation]
    is_fixed: bool


class OperationNames:
    """Numbers of operations by name (`memsim_operations` of native/interpreter.c).

    words: those with a result of 32 bits in each lane.
    """

    #: The last of those that native/lane_functions.h has for one lane.
    LAST_OF_LANES = "fma_d"

    def __init__(self, listed: str) -> None:
        pairs = [one.partition(":") for one in listed.split()]
        self.numbers = {name: number for number, (name, _, _) in enumerate(pairs)}
        self.words = {name for name, _, kind in pairs if kind in ("w", "i", "f")}

    def is_of_lanes(self, name: str) -> bool:
        """Whether an operation computes on each lane by itself, by a function of native/lane_functions.h."""
        return name == "write" or self.numbers[name] <= self.numbers[self.LAST_OF_LANES]


#: State spaces in the order of native/interpreter.h.
SPACES = ("global", "shared", "local", "generic", "constant")


class CompiledStretches(NamedTuple):
    """Of kernels of one form: where each stretch begins and ends in their operations, and its function."""

    rows: np.ndarray
    addresses: np.ndarray


class KnownInstructions:
    """The lowered instructions of a kernel's launches, with what they were told of their launch; likewise why
    there is none of one. seconds: that they took, and how many they were. kernels: of launches that were told
    something else each, the last one first. stretches: by the form of their operations.
    """

    def __init__(self) -> None:
        self.seconds, self.launches = 0.0, 0
        self.kernels: list[LoweredKernel] = []
        self.stretches: dict[bytes, CompiledStretches] = {}
        self.lowered: dict[int, tuple[Answers, LoweredInstruction]] = {}
        self.refused: tuple[Answers, str] | None = None


#: The lowered instructions of all kernels by their text with new registers, and whether there is a clock.
_ALIKE: dict[tuple[str, bool], list[tuple[Answers, LoweredInstruction]]] = {}
#: Texts that are kept, and of each those of so many launches; likewise of a kernel.
MOST_ALIKE, MOST_ANSWERS, MOST_KERNELS = 1 << 15, 16, 8


@lru_cache(maxsize=256)
def known_of(dataflow: Dataflow) -> KnownInstructions:
    """What is known of all launches of a kernel; nothing yet."""
    return KnownInstructions()


def lowered_kernel(code: Code, names: OperationNames, has_clock: bool) -> LoweredKernel:
    """The operations of a launch: those of one before it that was told the same.

    Raises:
        NotLowered: something has no operation.
    """
    kernels = known_of(code.dataflow).kernels
    for one in kernels:
        if (one.names, one.has_clock) == (names, has_clock) and code.binder.agrees(one.answers):
            kernels.remove(one)
            break
    else:
        one = LoweredKernel(code, names, has_clock)
    kernels[:] = [one, *kernels[: MOST_KERNELS - 1]]
    return one


class LoweredKernel:
    """of_threads: names of special registers, tables of them in order. where: the first operation of each
    instruction; of_blocks: that of each basic block for whole warps. The operations have addresses of tables
    and constant banks, which live as long as this.

    Each basic block is there twice: for some lanes of a warp, and, behind all of these, for all of them.
    is_hastened: stretches of its operations are functions. answers: what it was told of the launch.

    Raises:
        NotLowered: something has no operation.
    """

    def __init__(self, code: Code, names: OperationNames, has_clock: bool) -> None:
        self.code, self.names, self.has_clock, self.is_hastened = code, names, has_clock, False
        self.answers: Answers = {}
        self.of_threads: list[str] = []
        self._banks: list[np.ndarray] = []
        self._tables: list[np.ndarray] = []
        self._slots: dict[int, int] = {}
        self._constants: dict[ConstantPlace, int] = {}
        self._accesses: list[tuple[AccessShape, int]] = []
        known = known_of(code.dataflow)
        if known.refused is not None and code.binder.agrees(known.refused[0]):
            raise NotLowered(known.refused[1])
        for slot in slots_of(self._unwritten()):
            self.register(slot)
        self._zeroed_bytes = len(self._slots) * REGISTER
        self._assemble([self._lowered(op, known) for op in code.program.ops])

    def _unwritten(self) -> int:
        """Slots that may be read where nothing was written: by a lane, or of another one."""
        found = self.code.live(0)
        for op in self.code.program.ops:
            if op.builder is shuffle:
                found |= op.reads
        return found

    def _lowered(self, op: Op, known: KnownInstructions) -> LoweredInstruction:
        """That of a launch before if all that it was told is the same."""
        found = known.lowered.get(op.index)
        if found is None or not self.code.binder.agrees(found[0]):
            found = self._as_alike(op)
        if found is None:
            binder = self.code.binder.anew()
            try:
                found = binder.asked, self._made(op, binder)
            except NotLowered as why:
                known.refused = binder.asked, str(why)
                raise
        known.lowered[op.index] = found
        self.answers |= found[0]
        return found[1]

    def _as_alike(self, op: Op) -> tuple[Answers, LoweredInstruction] | None:
        """As one of any kernel that differs in its registers alone; None if none is of use."""
        other = representative_of(op)
        if other is None:
            return None
        if len(_ALIKE) > MOST_ALIKE:
            _ALIKE.clear()
        known = _ALIKE.setdefault((other.op.text, self.has_clock), [])
        found = next((one for one in known if self.code.binder.agrees(one[0])), None)
        try:
            if found is None:
                binder = self.code.binder.anew()
                found = binder.asked, self._made(other.op, binder)
                known[:] = [found, *known[: MOST_ANSWERS - 1]]
            asked, made = found
            some, whole = ([*with_registers(each, other.back)] for each in made[:2])
            return asked, LoweredInstruction(some, whole, made.is_fixed)
        except (NotLowered, KeyError):
            return None

    def _made(self, op: Op, binder: Binder) -> LoweredInstruction:
        code = self.code
        made = lower_instruction(
            LoweredOp(op, binder, code.program.predicates, code.dataflow.meeting, self.has_clock)
        )
        whole = reuse_scratch(without_copies(made, self.names.words))
        return LoweredInstruction(reuse_scratch(made), whole, not binder.asked)

    def _assemble(self, instructions: list[LoweredInstruction]) -> None:
        ends = self.code.dataflow.basic_blocks
        self.where: list[int] = []
        count = 0
        for index, one in enumerate(instructions):
            self.where.append(count)
            count += len(one.some) + (index in ends)
        self.where.append(count)
        self.instructions, self.of_blocks, count = instructions, dict[int, int](), count + 1
        for start, end in ends.items():
            self.of_blocks[start] = count
            count += sum(len(one.whole) for one in instructions[start:end]) + 1
        rows = []
        for index, one in enumerate(instructions):
            following = self.where[index + 1]
            if index in ends:
                leader = VectorOperation("leader", c=index, n=ends[index] - index)
                rows.append(self._row(leader, index, self.of_blocks[index], following))
            rows += [self._row(operation, index, following, following) for operation in one.some]
        rows.append(self._row(VectorOperation("end"), len(instructions), 0, 0))
        for start, end in ends.items():
            at = self.of_blocks[start]
            for index in range(start, end):
                at += len(instructions[index].whole)
                following = self.where[index + 1]
                rows += [
                    self._row(operation, index, following, at) for operation in instructions[index].whole
                ]
            rows.append(self._row(VectorOperation("goto"), end, self.where[end], 0))
        self.operations = np.array(rows, OPERATION)
        self.constants = self._constant_bytes()
        self.accesses = self._access_rows()
        self.register_bytes = max(1, len(self._slots)) * REGISTER

    def _row(self, one: VectorOperation, index: int, following: int, skipped: int) -> tuple[int, ...]:
        """An operation with numbers for all places. skipped: the first operation behind its instruction."""
        n, c = one.n, one.c
        if isinstance(n, Goto):
            n = skipped if one.name == "guard" else self.where[n.instruction]
        elif isinstance(n, AccessShape):
            self._accesses.append((n, index))
            n = len(self._accesses) - 1
        elif isinstance(n, OfThreads):
            n = self._table(n.name)
        elif isinstance(n, np.ndarray):
            table = np.ascontiguousarray(n)  # its length in bytes is a multiple of 4
            self._tables.append(table)
            n, c = table.ctypes.data, len(table) if c is None else c
        c = c if isinstance(c, int) else self.place(c)
        number = self.names.numbers[one.name]
        return number, one.k, self.place(one.d), self.place(one.a), self.place(one.b), c, following, n

    @cached_property
    def form(self) -> bytes:
        """What its operations have in common with those of other launches, before they are hastened: all but
        their numbers.
        """
        fields = [self.operations[name].tobytes() for name in OPERATION.names or () if name != "n"]
        return blake2b(b"".join((*fields, bytes(one.size for one in self._constants)))).digest()

    def _table(self, name: str) -> int:
        if name not in self.of_threads:
            self.of_threads.append(name)
        return self.of_threads.index(name)

    def place(self, place: Place | None) -> int:
        """Where a vector is, as an operand."""
        if place is None:
            return 0
        if isinstance(place, RegisterPlace):
            return self.register(place.slot)
        if isinstance(place, ScratchPlace):
            return IN_SCRATCH + place.number * VECTOR
        return IN_CONSTANTS + self._constants.setdefault(place, len(self._constants)) * VECTOR

    def register(self, slot: int) -> int:
        """The place of a register."""
        return self._slots.setdefault(slot, len(self._slots)) * REGISTER

    def addresses(self) -> dict[str, int]:
        """What `Launch` of native/interpreter.h has of the kernel; valid as long as this lives."""
        results = ("count_place", COUNT_SLOT), ("answer_place", ANSWER_SLOT)
        places = {name: self._slots[slot] * REGISTER if slot in self._slots else -1 for name, slot in results}
        return places | {
            "operations": self.operations.ctypes.data,
            "constants": self.constants.ctypes.data,
            "accesses": self.accesses.ctypes.data,
            "register_bytes": self.register_bytes,
            "zeroed_bytes": self._zeroed_bytes,
        }

    def _constant_bytes(self) -> np.ndarray:
        found = np.zeros((len(self._constants), VECTOR), np.uint8)
        for place, number in self._constants.items():
            word = np.frombuffer(place.bits.to_bytes(place.size, "little"), np.uint8)
            found[number, : 32 * place.size] = np.tile(word, 32)
        return found.reshape(-1)

    def _access_rows(self) -> np.ndarray:
        found = np.zeros(max(1, len(self._accesses)), ACCESS)
        for row, (shape, index) in zip(found, self._accesses):
            row["space"], row["size"], row["count"] = SPACES.index(shape.space), shape.size, shape.count
            row["is_signed"], row["instruction"], row["allocation"] = shape.is_signed, index, -1
            row["registers"] = [
                *map(self._register_or_none, shape.registers),
                *[-1] * (4 - len(shape.registers)),
            ]
            row["operation"], row["type"] = shape.operation, shape.type
            row["answer"] = self._register_or_none(shape.answer)
            row["operands"], row["uppers"] = -1, -1
            for place, slot in enumerate(shape.operands):
                row["operands"][place] = slot if slot < 0 else self.register(slot)
                if shape.size == 8 and slot >= 0:
                    row["uppers"][place] = self.register(slot + 1)
            if shape.bank is not None:
                content = self.code.binder.whole(shape.bank).content
                self.answers[shape.bank] = self.code.binder.asked[shape.bank]
                self._banks.append(content)
                row["content"], row["bytes"] = content.ctypes.data, len(content)
        return found

    def _register_or_none(self, slot: int | None) -> int:
        return -1 if slot is None else self.register(slot)
