"""A program made ready for one launch: instructions as steps, constants filled in.

In: a `Program`, the constant banks of a launch, and which instructions to execute. Out: `Code`: segments of
Python closures `step(engine)`, what control instructions read, and the table of access sites. One runner
handles guards and unknown values for all instructions. Left out: the order in which lanes run them
(engine.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memsim.errors import MemsimError
from memsim.isa.integer import Combined
from memsim.isa.op import SLOTS, Effect, Flow, Immediate, Op, Predicate, Program, Register
from memsim.isa.reach import spaces_written
from memsim.isa.readers import Binder
from memsim.isa.registry import Unsupported
from memsim.isa.results import targets_of
from memsim.simt.dataflow import Dataflow
from memsim.simt.listener import Site
from memsim.state.memory import Buffer
from memsim.state.partial import Partial, covers, on_known_lanes
from memsim.state.registers import Part, Poison, Poisoned, both, choose, either, plus

if TYPE_CHECKING:
    from memsim.simt.engine import Engine

Step = Callable[["Engine"], None]
#: Slots behind the registers: what the last block barrier with a reduction gave.
COUNT_SLOT, ANSWER_SLOT = SLOTS, SLOTS + 1


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps from a program counter up to the next control instruction, or place that lanes branch to."""

    steps: tuple[Step, ...]
    stop: int
    control: Op | None
    size: int


class Code:
    """What a launch executes. `needed`: instructions whose values are wanted, all of them if None.

    pointers: arrays by the root of the parameter that points to them; numbers: other arguments of 8 bytes,
    likewise.
    externals: names of functions of the system, by the address that the kernel calls them by.
    """

    cluster: tuple[int, int, int] = (1, 1, 1)

    def __init__(
        self,
        dataflow: Dataflow,
        binder: Binder,
        needed: frozenset[int] | None,
        externals: Mapping[int, str],
    ) -> None:
        self.program: Program = dataflow.program
        self.slots = max(self.program.slots, ANSWER_SLOT + 1)
        self.dataflow = dataflow
        self.binder = binder
        self.externals = externals
        self.conditions: dict[int, Callable[[list[Any]], bool | Part]] = {}
        self.values: dict[int, Callable[[list[Any]], Any]] = {}
        self.votes: dict[int, Callable[[list[Any]], Any]] = {}
        self.barrier_operands: dict[int, tuple[Any, Any]] = {}
        self.sites: dict[tuple[int, str, str], Site] = {}
        self.pointers: dict[int, Buffer] = {}
        self.numbers: dict[int, tuple[str, int]] = {}
        self.segments = {start: self._segment(start, end, needed) for start, end in dataflow.blocks}
        for op in self.program.ops:
            if op.flow is not None:
                self._bind_known_control(op)

    def _bind_known_control(self, op: Op) -> None:
        try:
            self._bind_control(op)
        except (Unsupported, IndexError, ValueError) as error:
            raise MemsimError(f"{op.name} has another form than is known: {error}", **_place(op)) from None

    def live(self, pc: int) -> int:
        """Slots that are read from a place on."""
        return self.dataflow.live.get(pc, 0)

    def slots_of(self, bits: int) -> list[int]:
        """A bit set of slots as their numbers."""
        return slots_of(bits)

    def site(self, op: Op, kind: str, space: str, width: int) -> Site:
        """The access site of an instruction in a state space, made on first sight."""
        key = (op.index, kind, space)
        if key not in self.sites:
            number = sum(one[0] == op.index for one in self.sites)
            self.sites[key] = Site(op.index * 8 + number, op, kind, space, width)
        return self.sites[key]

    def sites_of(self, op: Op) -> list[Site]:
        """The sites that an instruction is known to have."""
        return [site for (index, _, _), site in self.sites.items() if index == op.index]

    def called(self, op: Op, registers: list[Any]) -> str | None:
        """The system's function that a call through a register leads to; None if it is none."""
        read = self.values.get(op.index)
        if read is None:
            return None
        try:
            address = read(registers)
        except Poisoned:
            return None
        return self.externals.get(address) if type(address) is int else None

    # --- making -------------------------------------------------------------------------

    def _segment(self, start: int, end: int, needed: frozenset[int] | None) -> Segment:
        ops = self.program.ops[start:end]
        control = ops[-1] if ops[-1].flow is not None else None
        steps = []
        for op in ops:
            if op.effect in (Effect.NONE, Effect.CONTROL) or op.guard == NEVER:
                continue
            wanted = needed is None or op.index in needed
            if wanted or op.effect is Effect.MEMORY:
                steps.append(self._step(op, wanted))
        return Segment(tuple(steps), end, control, end - start)

    def _step(self, op: Op, data: bool) -> Step:
        """The step of an instruction; a poisoning one where this form of it is not executed."""
        record = op.record
        guard = self.binder.guard(op.guard)
        try:
            if record.build is None:
                raise Unsupported(op.name)
            made = record.build(op.form, self.binder)
        except (Unsupported, Poisoned, IndexError, ValueError):  # the last of a form with too few operands
            return self._unexecuted(op, guard)
        if op.effect is Effect.MEMORY:
            return memory_step(op, guard, made, data)
        return value_step(op, guard, made, targets_of(op.form, record))

    def _unexecuted(self, op: Op, guard: Callable[[list[Any]], bool | Part] | None) -> Step:
        """An instruction that is not executed: all that it may write is unknown from here on."""
        why = "is not executed by the emulator" if op.record.known else "is in no table of instructions"
        poison = Poison(f"{op.name} {why}", op)

        def run(engine: Engine) -> None:
            active: Any = engine.mask
            if guard is not None:
                with suppress(Poisoned):
                    active = both(engine.mask, guard(engine.slots))
            if active is False:
                return
            if not op.record.known:
                engine.listener.unsure(f"{op.name} at {op.where} {why}: it may do anything")
            unknown_effects(engine, op, poison, active)

        return run

    def _bind_control(self, op: Op) -> None:
        """What a control instruction reads."""
        predicates = [operand for operand in op.form.operands if isinstance(operand, Predicate)]
        guard = self.binder.guard(op.guard)
        if op.flow is Flow.BLOCK_BARRIER:
            if predicates:
                self.votes[op.index] = self.binder.predicate(predicates[-1])
            numbers = [operand for operand in op.form.operands if not isinstance(operand, Predicate)]
            reads: list[Any] = [self.binder.word(operand) for operand in numbers[:2]]
            first, second = (*reads, None, None)[:2]
            self.barrier_operands[op.index] = first or (lambda r: 0), second
            predicates = []
        conditions = [guard, *(self.binder.guard(predicate) for predicate in predicates)]
        present = [read for read in conditions if read is not None]
        if len(present) == 1:
            self.conditions[op.index] = present[0]
        elif present:
            a, b = present[:2]
            self.conditions[op.index] = lambda r: both(a(r), b(r))
        self._bind_value(op)

    def _bind_value(self, op: Op) -> None:
        """The register that says who or where."""
        operands = op.form.operands
        register = next((operand for operand in operands if isinstance(operand, Register)), None)
        immediate = next((operand for operand in operands if isinstance(operand, Immediate)), None)
        if op.flow in (Flow.RETURN, Flow.CALL) and register is not None:
            far = "ABS" in op.form.modifiers
            self.values[op.index] = self.binder.pair(register) if far else self.binder.word(register)
        elif op.flow is Flow.INDEXED and register is not None:
            base = self.binder.word(register)
            offset = int(immediate.value) if immediate is not None else 0
            self.values[op.index] = lambda r: plus(base(r), offset)
        elif op.flow in (Flow.WARP_SYNC, Flow.BRANCH_DIVERGED):
            if register is not None:
                self.values[op.index] = self.binder.word(register)
            elif immediate is not None:
                mask = int(immediate.value)
                self.values[op.index] = lambda r: mask


#: The guard `@!PT`, of instructions that only stand there, such as the loads of RZ before LDGSTS.
NEVER = Predicate(None, True)


@lru_cache(maxsize=1 << 14)
def slots_of(bits: int) -> list[int]:
    """A bit set of slots as their numbers."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def value_step(
    op: Op,
    guard: Callable[[list[Any]], bool | Part] | None,
    compute: Callable[..., Any],
    targets: list[int | None],
) -> Step:
    """A step that computes from registers and writes the results."""
    lanes = op.effect is Effect.LANES
    written = [(place, slot) for place, slot in enumerate(targets) if slot is not None]
    many = len(targets) != 1
    if guard is None and not lanes and not many and written:
        return simple_step(op, compute, written[0][1])
    whole = many or not written
    reads = slots_of(op.reads)

    def run(engine: Engine) -> None:
        registers = engine.slots
        active: Any = True
        known: Any = True
        try:
            if guard is not None:
                active = guard(registers)
                if active is False:
                    return
            if lanes:
                engine.executing = both(engine.mask, active)
                if engine.executing is False:
                    return
                result = compute(registers, engine)
            else:
                result = compute(registers)
        except Poisoned as unknown:
            result, active, known = recovered(engine, op, guard, compute, reads, unknown)
            if active is False:
                return
        if isinstance(result, Poison):
            for _, slot in written:
                engine.write(slot, result, active)
            return
        for place, slot in written:
            value = result[place] if whole else result
            if known is not True and not isinstance(value, Poison):
                value = Partial(value, known, Poison("an operand is not known in some lanes", op))
            engine.write(slot, value, active)

    return run


def recovered(
    engine: Engine,
    op: Op,
    guard: Callable[[list[Any]], bool | Part] | None,
    compute: Callable[..., Any],
    reads: list[int],
    unknown: Poisoned,
) -> tuple[Any, Any, Any]:
    """(result or poison, lanes, lanes that it is known in) of an instruction that met an unknown value."""
    poison = unknown.poison.through(op)
    registers = engine.slots
    active: Any = True
    if guard is not None:
        with suppress(Poisoned):
            active = guard(registers)

    def lanes() -> Any:
        return both(engine.mask, active)

    def run() -> Any:
        nonlocal active
        if guard is not None:
            active = guard(registers)
            if active is False:
                return poison
        if op.effect is Effect.LANES:
            engine.executing = lanes()
            return compute(registers, engine)
        return compute(registers)

    try:
        result, known = on_known_lanes(registers, reads, lanes, run, unknown.poison)
    except Poisoned as still:
        result, known = still.poison.through(op), False
    if known is not True and isinstance(compute, Combined):
        result, known = with_decided(compute, registers, result, known, lanes)
    if isinstance(result, Poison):
        return result, active, True
    if known is not True and op.effect is Effect.LANES:
        return poison, active, True
    return result, active, known


def with_decided(
    compute: Combined, registers: list[Any], result: Any, known: Any, lanes: Callable[[], Any]
) -> tuple[Any, Any]:
    """(results, lanes that they are known in) with the lanes in which no comparison is needed."""
    try:
        decided, value = compute.decided(registers)
    except Poisoned:
        return result, known
    if decided is False:
        return result, known
    if isinstance(result, Poison):
        result, known = (value, value), decided
    else:
        result, known = tuple(choose(decided, value, one) for one in result), either(known, decided)
    return result, True if covers(known, lanes()) else known


def simple_step(op: Op, compute: Callable[[list[Any]], Any], target: int) -> Step:
    """The common case: one result, no guard."""
    bit = 1 << target
    reads = slots_of(op.reads)

    def run(engine: Engine) -> None:
        registers = engine.slots
        try:
            value = compute(registers)
        except Poisoned as unknown:
            value, _, known = recovered(engine, op, None, compute, reads, unknown)
            if known is not True:
                value = Partial(value, known, Poison("an operand is not known in some lanes", op))
        if engine.protected & bit:
            engine.write(target, value, True)
        else:
            registers[target] = value

    return run


def unknown_effects(engine: Engine, op: Op, poison: Poison, active: Any) -> None:
    """All that an instruction may write is unknown from here on, and what it accesses is listed.

    For instructions that are not executed, and for those of which nobody knows in which lanes they are.
    """
    for slot in slots_of(op.writes):
        engine.write(slot, poison, active)
    for kind, space in op.touches:
        for where in ("global", "shared") if space == "generic" else (space,):
            engine.lose(op, kind, where, 0, poison, active)
    for space in spaces_written(op):
        engine.memory.spoil(space, poison)


def memory_step(
    op: Op, guard: Callable[[list[Any]], bool | Part] | None, access: Callable[..., None], data: bool
) -> Step:
    """A step that accesses memory in the lanes for which the guard holds."""
    reads = slots_of(op.reads | op.addresses)
    counted = any(space in ("shared", "global") for _, space in op.touches)

    def run(engine: Engine) -> None:
        registers = engine.slots
        swapped = [(slot, registers[slot]) for slot in reads if isinstance(registers[slot], Partial)]
        if swapped:
            active = engine.mask
            for slot, value in swapped:
                registers[slot] = value.value
            with suppress(Poisoned):
                active = both(engine.mask, guard(registers)) if guard is not None else engine.mask
            for slot, value in swapped:
                if not covers(value.known, active):
                    registers[slot] = value
            access_lanes(engine)
            for slot, value in swapped:
                if registers[slot] is value.value:
                    registers[slot] = value
            return
        access_lanes(engine)

    def access_lanes(engine: Engine) -> None:
        active: Any = engine.mask
        if guard is not None:
            try:
                active = both(engine.mask, guard(engine.slots))
            except Poisoned as unknown:
                unknown_effects(engine, op, unknown.poison.through(op), engine.mask)
                return
            if active is False:
                if counted and not engine.skip(op):
                    access(engine, op, False, False)
                return
        access(engine, op, active, data)

    return run


def _place(op: Op) -> dict[str, Any]:
    """Where an instruction stands, for errors."""
    if op.source is None:
        return {"file": f"machine code at {op.address:#x}"}
    return {"file": op.source.file, "line": op.source.line}
