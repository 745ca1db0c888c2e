"""Instructions as operations on the lanes of a warp.

What computes on registers alone is traced (`traced.py`); for lanes, memory and control flow
native/interpreter.c has operations of its own, whose rules are those of `memsim.isa` and `memsim.simt`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from memsim.interpreter.traced import BOOL, INT64, NotTraced, Traced, TracedRegisters
from memsim.interpreter.vector_code import (
    ZERO,
    Place,
    RegisterPlace,
    ScratchPlace,
    VectorCode,
    VectorOperation,
    constant,
)
from memsim.isa.atomics import atomic_shape, change_of
from memsim.isa.memory_access import SPACES, address_of, consecutive_slots, register_count, shape_of
from memsim.isa.op import (
    Barrier,
    Constant,
    Effect,
    Flow,
    Immediate,
    Predicate,
    Register,
    Special,
    Trait,
    Unsupported,
    slots_of,
)
from memsim.isa.program import Op
from memsim.isa.readers import Binder
from memsim.isa.signature import is_indexed
from memsim.simt.control_graph import barrier_slot
from memsim.simt.machine import ANSWER_SLOT, COUNT_SLOT
from memsim.state import rounding
from memsim.state.parts import Part
from memsim.state.poison import Poisoned
from memsim.state.registers import Sum


class NotLowered(Exception):
    """A kernel does something that native/interpreter.c has no operation for."""


class Goto(NamedTuple):
    """The first operation of an instruction."""

    index: int


class OfThreads(NamedTuple):
    """A special register that depends on the thread alone."""

    name: str


@dataclass(frozen=True)
class AccessShape:
    """As `Access` of native/interpreter.h; registers are slots, None for none."""

    space: str
    size: int
    count: int = 1
    is_signed: bool = False
    registers: tuple[int | None, ...] = ()
    operation: int = 0
    type: int = 0
    answer: int | None = None
    operands: tuple[int, ...] = ()
    bank: int | None = None


SPACE_NUMBERS = {"global": 0, "shared": 1, "local": 2, "generic": 3, "constant": 4}
_UPDATES = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_TYPES = {"uint32": 0, "int32": 1, "uint64": 2, "int64": 3, "float32": 4, "float64": 5}
_FLUSHED, _HALVES = 6, 7
#: Operands of atomics that are no register: zero, and one.
NOTHING, ONE = -1, -2
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
_AXES = {"X": 0, "Y": 1, "Z": 2}


@contextmanager
def fused_multiply_adds_noted() -> Iterator[None]:
    """Fused multiply-adds are traced, too."""
    before = dict(rounding.IN_MACHINE_CODE)

    def noted(dtype: type) -> Callable[..., Any]:
        kind = np.dtype(dtype)

        def fused(*operands: Any) -> Any:
            found = [
                one.astype(kind) if isinstance(one, Traced) else np.asarray(one, kind).reshape(())[()]
                for one in operands
            ]
            return Traced("fma", tuple(found), kind)

        return fused

    try:
        for dtype in (np.float32, np.float64):
            rounding.IN_MACHINE_CODE[dtype] = noted(dtype)
        yield
    finally:
        rounding.IN_MACHINE_CODE.clear()
        rounding.IN_MACHINE_CODE.update(before)


def array_of(value: Any) -> Any:
    """What an instruction gives for a register, as one traced array or number."""
    if isinstance(value, Sum):
        return value.array
    if isinstance(value, Part):
        return value.array
    if isinstance(value, np.ndarray):
        return value.reshape(())[()] if value.size == 1 else _refuse("several numbers")
    if isinstance(value, (Traced, int, bool, np.generic)):
        return value
    return _refuse(f"a result of type {type(value).__name__}")


def _refuse(why: str) -> Any:
    raise NotLowered(why)


class LoweredOp(VectorCode):
    """The operations of one instruction of a launch, with the constants that the binder has for it.

    truths: slots of predicates, as a bit set. meeting: where lanes go on that wait at a barrier.
    """

    def __init__(self, op: Op, binder: Binder, truths: int, meeting: dict[int, int], has_clock: bool) -> None:
        super().__init__()
        self.op, self.binder, self.truths, self.meeting, self.has_clock = op, binder, truths, meeting, has_clock
        self.registers = TracedRegisters(truths)

    def lower(self) -> list[VectorOperation]:
        """All of them.

        Raises:
            NotLowered: there is no operation for it.
        """
        op = self.op
        try:
            if op.flow is not None:
                self._control()
            elif op.effect is Effect.NONE or (op.guard is not None and never(op.guard)):
                pass
            else:
                self._guard(op.guard)
                kinds = {Effect.LANES: self._lanes, Effect.MEMORY: self._memory, Effect.ALU: self._compute}
                kinds[op.effect]()
                if op.guard is not None:
                    self._add("all")
        except (NotTraced, Unsupported, Poisoned, IndexError, KeyError, ValueError, TypeError, AssertionError) as error:
            raise NotLowered(f"{op.text}: {type(error).__name__} {error}") from error
        except AttributeError as error:
            raise NotLowered(f"{op.text}: {error}") from error
        return self.operations

    def _add(self, name: str, d: Place | None = None, *operands: Place | None, k: int = 0, n: Any = 0) -> None:
        """An operation that has no result of its own."""
        a, b, c = (*operands, None, None, None)[:3]
        self.operations.append(VectorOperation(name, d, a, b, c, k, n))

    def _guard(self, guard: Predicate | None, skips: bool = True) -> None:
        if guard is None or (guard.slot is None and not guard.negated):
            return
        place = ZERO if guard.slot is None else RegisterPlace(guard.slot)
        negated = guard.negated and guard.slot is not None
        self._add("guard", None, place, k=int(negated), n=Goto(self.op.index + 1) if skips else 0)

    # --- values -----------------------------------------------------------------------------

    def _compute(self) -> None:
        with fused_multiply_adds_noted():
            self.write_all(self.op.meaning.bind(self.binder)(self.registers))

    def write_all(self, found: Any, uniform_by_warp: bool = False) -> None:
        """Write the results."""
        targets = self.op.meaning.targets
        results = [found] if len(targets) == 1 else list(found)
        places = [
            (slot, self.as_register(array_of(value))) for slot, value in zip(targets, results) if slot is not None
        ]
        written = {slot for slot, _ in places}
        for at, (slot, place) in enumerate(places):
            if isinstance(place, RegisterPlace) and place.slot in written and place.slot != slot:
                places[at] = slot, self.emit("or_w", place, ZERO)
        for slot, place in places:
            self.write(slot, place)

    def write(self, slot: int, place: Place) -> None:
        """Write a register in the executing lanes."""
        self._add("write", RegisterPlace(slot), place)

    def as_register(self, value: Any) -> Place:
        """A value as a register has it."""
        if isinstance(value, Traced) and value.dtype.kind == "f" and value.dtype.itemsize != 4:
            raise NotTraced(f"a register of {value.dtype}")
        return self.low(value)

    def value(self, read: Callable[[Any], Any]) -> Any:
        """What a reader reads, traced."""
        return array_of(read(self.registers))

    # --- lanes ------------------------------------------------------------------------------

    def _lanes(self) -> None:
        op, binder = self.op, self.binder
        opcode, modifiers, operands = op.form.opcode, op.form.modifiers, op.form.operands
        targets = op.meaning.targets
        sources = [one for _, one in op.meaning.sources]
        results = [one for _, one in op.meaning.results]
        if opcode in ("S2R", "S2UR", "CS2R", "CS2UR"):
            self._special(next(one for one in operands if isinstance(one, Special)).name, targets)
        elif opcode == "SHFL":
            value, by, limits = sources
            mode = ("IDX", "UP", "DOWN", "BFLY").index(modifiers[0])
            places = [self.low(self.value(binder.word(one))) for one in (value, by, limits)]
            found = [self.emit(name, *places, k=mode) for name in ("shuffle_valid", "shuffle")]
            self._write_places(targets, found)
        elif opcode in ("VOTE", "VOTEU"):
            yes = self.low(self.value(binder.predicate(sources[0])))
            made = []
            if isinstance(results[0], Register):
                made.append(self.emit("vote_mask", yes))
            if isinstance(results[-1], Predicate):
                made.append(self.emit("vote", yes, k=("ANY", "ALL", "EQ").index(modifiers[0])))
            self._write_places(targets, made)
        elif opcode == "MATCH":
            wide = "U64" in modifiers
            read = self.value((binder.pair if wide else binder.word)(sources[0]))
            place = self._long(read) if wide else self.low(read)
            if "ANY" in modifiers:
                made = [constant(1, 4), self.emit("match_64" if wide else "match", place)]
            else:
                agreed = self.emit("match_all_64" if wide else "match_all", place)
                made = [agreed, self.emit("members", agreed)]
            self._write_places(targets, made[-len(targets) :])
        elif opcode in ("REDUX", "CREDUX"):
            names = [one for one in modifiers if one.lower() in _UPDATES or one == "SUM"]
            name = "add" if names == ["SUM"] else names[0].lower() if names else "and"
            place = self.low(self.value(binder.word(sources[0])))
            self._write_places(
                targets, [self.emit("redux", place, k=_UPDATES.index(name), n=int("S32" in modifiers))]
            )
        elif opcode == "R2UR":
            word = self.low(self.value(binder.word(sources[0])))
            picked = self.emit("first", word)
            made = [picked]
            if results[0] is not None and isinstance(results[0], Predicate):
                other = self.emit("ne_w", word, picked)
                if "OR" in modifiers:
                    other = self.emit("or_w", other, self.low(self.value(binder.predicate(results[0]))))
                made = [other, picked]
            self._write_places(targets, made, of_warps=True)
        elif opcode == "ELECT":
            elected, lane = self.emit("elect"), self.emit("leader_lane")
            made = [
                place
                for (_, one), place in zip(op.meaning.results, (elected, lane, elected))
                if one is not None
            ]
            self._write_places(targets, made)
        elif opcode == "BMOV":
            source = sources[0]
            if isinstance(source, Barrier):
                self._write_places(targets, [RegisterPlace(source.slot)])
            else:
                self._write_places(targets, [self.low(self.value(binder.word(source)))])
        elif opcode == "B2R":
            self._write_places(targets, [RegisterPlace(COUNT_SLOT), RegisterPlace(ANSWER_SLOT)][: len(targets)])
        elif opcode == "QSPC":
            self.write_all(op.meaning.bind(binder)(self.registers, None))
        else:
            raise NotLowered(op.text)

    def _write_places(self, targets: tuple[int | None, ...], places: list[Place], of_warps: bool = False) -> None:
        if len(targets) != len(places):
            raise NotLowered(self.op.text)
        if of_warps and self.op.guard is not None:
            self._add("all")
        for slot, place in zip(targets, places):
            if slot is not None:
                self.write(slot, place)

    def _special(self, name: str, targets: tuple[int | None, ...]) -> None:
        found: list[Place] = []
        base, _, axis = name.partition(".")
        if name == "SRZ":
            found = [ZERO]
        elif name.startswith(_CLOCKS):
            if not self.has_clock:
                raise NotLowered(name)
            is_timer, is_high = "TIMER" in name, name.endswith("HI")
            found = [self.emit("clock", k=int(is_timer), n=int(is_high))]
            if len(targets) == 2:
                found.append(self.emit("clock", k=int(is_timer), n=1))
        elif base in ("SR_CTAID", "SR_CLUSTERID") and axis in _AXES:
            found = [self.emit("block", n=_AXES[axis])]
        else:
            found = [self.emit("thread", n=OfThreads(name))]
        self._write_places(targets, [*found, ZERO][: len(targets)], of_warps=self.op.form.opcode.endswith("UR"))

    # --- memory -----------------------------------------------------------------------------

    def _memory(self) -> None:
        op, form, binder = self.op, self.op.form, self.binder
        opcode, operands = form.opcode, form.operands
        if opcode in ("LDGDEPBAR", "FENCE") or op.name.startswith("DEPBAR.LE"):
            return
        if opcode in ("LDC", "LDCU", "ULDC"):
            self._constant()
        elif opcode in ("LDG", "LDS", "LDL", "LD", "STG", "STS", "STL", "ST"):
            element, count, _ = shape_of(form)
            kind = np.dtype(element)
            loads = opcode.startswith("LD")
            data = op.meaning.results[1][1] if loads else op.meaning.sources[1][1]
            if loads and op.meaning.results[0][1] is not None:
                raise NotLowered(op.text)
            slots = tuple(consecutive_slots(_register(data), count))
            signed = kind.kind == "i" and kind.itemsize < 4
            shape = AccessShape(SPACES[opcode[2:]], kind.itemsize, count, signed, slots)
            self._add("load" if loads else "store", None, self._address(), n=shape)
        elif opcode in ("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"):
            self._atomic()
        elif opcode == "LDGSTS":
            into, origin, reads = (one for _, one in op.meaning.sources)
            shape = AccessShape("shared", 4, register_count(form), operation=int("ZFILL" in form.modifiers))
            places: list[Place] = [
                self._long(self.value(binder.short_address(into))),
                self._long(self.value(binder.address(origin))),
            ]
            if reads is not None:
                places.append(self.low(self.value(binder.predicate(reads))))
            self._add("copy", None, *places, k=int(reads is not None), n=shape)
        elif opcode in ("LDSM", "STSM"):
            loads = opcode == "LDSM"
            count = next((int(name) for name in form.modifiers if name in ("2", "4")), 1)
            data = op.meaning.results[0][1] if loads else op.meaning.sources[1][1]
            slots = tuple(consecutive_slots(_register(data), count))
            shape = AccessShape("shared", 16, count, registers=slots, operation=int("MT88" in form.modifiers))
            self._add("load_matrix" if loads else "store_matrix", None, self._address(), n=shape)
        else:
            raise NotLowered(op.text)

    def _address(self) -> Place:
        """Of the access, in 64 bits."""
        place, operand = address_of(self.op.form)
        token = next(token for token, one in self.op.meaning.sources if one is operand)
        read = (self.binder.address if token.kind == "A" else self.binder.short_address)(operand)
        return self._long(self.value(read))

    def _constant(self) -> None:
        op, form = self.op, self.op.form
        source = next(one for one in form.operands if isinstance(one, Constant))
        if not is_indexed(source):
            self._compute()
            return
        element, count, _ = shape_of(form)
        kind = np.dtype(element)
        assert source.register is not None
        index = self.value(self.binder.word(source.register))
        place = self._long((index + source.offset).astype(np.uint32) if isinstance(index, Traced) else index + source.offset)
        slots = tuple(consecutive_slots(_register(op.meaning.results[0][1]), count))
        signed = kind.kind == "i" and kind.itemsize < 4
        self.binder.whole(source.bank)
        shape = AccessShape("constant", kind.itemsize, count, signed, slots, bank=source.bank)
        self._add("load", None, place, n=shape)

    def _atomic(self) -> None:
        op, form = self.op, self.op.form
        named, shape = atomic_shape(form)
        change = change_of(form, named, shape)
        counts_up, spins = "POPC" in form.modifiers, "CAST" in form.modifiers
        operation = "add" if counts_up and named == "inc" else named
        if shape.float:
            if shape.float != "f16" or shape.count != 2 or operation != "add":
                raise NotLowered(op.text)
            kind = _HALVES
        elif shape.count > 1 or shape.registers > 2:
            raise NotLowered(op.text)
        else:
            kind = _FLUSHED if change is not None else _TYPES[np.dtype(shape.element).name]
        results = [one for _, one in op.meaning.results]
        answer, target = (getattr(one, "slot", None) for one in (*results, None, None)[:2])
        written = () if target is None else tuple(target + i for i in range(shape.registers))
        operands = [] if not counts_up else [ONE]
        for one in [] if counts_up else [one for _, one in op.meaning.sources[1:3] if one is not None]:
            if not isinstance(one, Register) or one.negated:
                raise NotLowered(op.text)
            operands.append(NOTHING if one.slot is None else one.slot)
        space = {"S": "shared", "G": "global", "": "generic"}[opcode_space(form.opcode)]
        made = AccessShape(
            space, 4 * shape.registers, 1, spins, written, _UPDATES.index(operation), kind, answer, tuple(operands)
        )
        self._add("atomic", None, self._address(), n=made)

    # --- control flow -----------------------------------------------------------------------

    def _control(self) -> None:
        op, flow = self.op, self.op.flow
        if flow is Flow.BLOCK_BARRIER:
            self._block_barrier()
            self._add("all")
            return
        predicates = [one for one in op.form.operands if isinstance(one, Predicate)]
        for predicate in (op.guard, *predicates):
            self._guard(predicate, skips=False)
        if flow is Flow.EXIT:
            self._add("exit")
        elif flow is Flow.BRANCH:
            self._add("branch", n=self._target())
        elif flow is Flow.BRANCH_ANY:
            self._add("branch_any", n=self._target())
        elif flow is Flow.BRANCH_DIVERGED:
            members = self.low(self._word())
            self._add("branch_diverged", None, members, k=int(Trait.CONVERGED in op.traits), n=self._target())
        elif flow is Flow.CALL and not any(isinstance(one, Register) for one in op.form.operands):
            if not op.targets:
                raise NotLowered(f"{op.text}: a function without code")
            self._add("branch", n=self._target())
        elif flow is Flow.INDEXED:
            place = self._long(self._word())
            immediate = next((one for one in op.form.operands if isinstance(one, Immediate)), None)
            offset = op.address + 16 + (int(immediate.value) if immediate is not None else 0)
            self.operations.append(VectorOperation("indexed", None, place, None, op.index, 0, offset))
        elif flow in (Flow.RETURN, Flow.CALL):
            register = next(one for one in op.form.operands if isinstance(one, Register))
            far = Trait.ABSOLUTE in op.traits
            if flow is Flow.CALL and not far:
                raise NotLowered(op.text)
            place = self._long(self.value((self.binder.pair if far else self.binder.word)(register)))
            self.operations.append(VectorOperation("indexed", None, place, None, op.index, 0, 0))
        elif flow is Flow.SET_BARRIER:
            self._add("set_barrier", RegisterPlace(barrier_slot(op)))
        elif flow is Flow.LEAVE_BARRIER:
            self._add("leave_barrier", RegisterPlace(barrier_slot(op)))
        elif flow is Flow.WAIT_BARRIER:
            place = RegisterPlace(barrier_slot(op))
            self._add("wait_barrier", place, place, n=Goto(self.meeting[op.index]))
        elif flow is Flow.WARP_SYNC:
            if op.traits & {Trait.EXCLUSIVE, Trait.COLLECTIVE}:
                raise NotLowered(op.text)
            self._add("warp_sync", None, self.low(self._word()), n=Goto(op.index + 1))
        elif flow is Flow.YIELD:
            self._add("yield")
        elif flow is Flow.SLEEP:
            self._add("sleep")
        elif flow is Flow.TRAP:
            self._add("trap", n=op.index)
        else:
            raise NotLowered(op.text)

    def _word(self) -> Any:
        """The register that holds a mask or target; all lanes if there is none."""
        for one in self.op.form.operands:
            if isinstance(one, Register):
                return self.value(self.binder.word(one))
            if isinstance(one, Immediate) and self.op.flow is not Flow.INDEXED:
                return int(one.value)
        return -1

    def _target(self) -> Goto:
        if not self.op.targets:
            raise NotLowered(self.op.text)
        return Goto(self.op.targets[0])

    def _block_barrier(self) -> None:
        op = self.op
        self._guard(op.guard, skips=False)
        traits, operands = op.traits, op.form.operands
        numbers = [one for one in operands if not isinstance(one, Predicate)]
        predicates = [one for one in operands if isinstance(one, Predicate)]
        places: list[Place | None] = [self.low(self.value(self.binder.word(one))) for one in numbers[:2]]
        how = len(places)
        kind = 3 if len(places) == 2 else how
        places += [None] * (2 - len(places))
        if Trait.REDUCES in traits:
            places.append(self.low(self.value(self.binder.predicate(predicates[-1]))))
            kind |= (1 if Trait.COUNTS in traits else 2 if Trait.ALL_OF in traits else 3) << 4
        self._add("block_barrier", None, *places, k=kind | (8 if Trait.ARRIVES in traits else 0))


def never(guard: Predicate) -> bool:
    """Does it hold in no lane?"""
    return guard.slot is None and guard.negated


def opcode_space(opcode: str) -> str:
    """The letter of an atomic's space: `S`, `G`, or none."""
    return {"ATOM": "", "ATOMG": "G", "ATOMS": "S", "RED": "G", "REDG": "G", "REDS": "S"}[opcode]


def _register(operand: Any) -> Register:
    if not isinstance(operand, Register):
        raise Unsupported
    return operand
