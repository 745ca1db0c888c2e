"""Prepares a program for one launch: instructions become Python closures `step(machine)`, with constants
filled in.

How a step runs is in steps.py, in which order in engine.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from memsim.errors import MemsimError
from memsim.isa.memory_access import address_of
from memsim.isa.op import Effect, Flow, Immediate, Predicate, Register, Trait, Unsupported
from memsim.isa.program import Op, Program
from memsim.isa.readers import Answers, Binder, IntReader, PredicateReader, Registers
from memsim.simt.dataflow import Dataflow
from memsim.simt.faults import place_in_source
from memsim.simt.machine import ANSWER_SLOT, Machine
from memsim.simt.margin_steps import with_margins
from memsim.simt.steps import Step, fence_step, look_step, memory_step, unknown_effects, value_step
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both
from memsim.state.registers import plus


@dataclass(frozen=True, slots=True)
class Segment:
    """Steps from a program counter up to the next control instruction or branch target."""

    steps: tuple[Step, ...]
    stop: int
    control: Op | None
    size: int


#: A guard or a predicate operand of control flow: the slots that it reads, and how.
Condition = tuple[list[int], PredicateReader]


#: Steps by instruction and whether its data is wanted, with what they were told of their launch.
KnownSteps = dict[tuple[int, bool], tuple[Answers, Step]]


class Code:
    """The executable form of a program. `needed`: instructions whose values are needed, all of them if None.

    externals: names of system functions, by the address by which the kernel calls them. known: steps of the
    program's launches before; new ones are added. looked_at: those that `OrderListener.look` is told of.
    """

    def __init__(
        self,
        dataflow: Dataflow,
        binder: Binder,
        needed: frozenset[int] | None,
        externals: Mapping[int, str],
        cluster: tuple[int, int, int] = (1, 1, 1),
        known: KnownSteps | None = None,
        looked_at: frozenset[int] = frozenset(),
    ) -> None:
        self.program: Program = dataflow.program
        self.slots = max(self.program.slots, ANSWER_SLOT + 1)
        self.dataflow = dataflow
        self.binder = binder
        self.externals = externals
        self.needed = needed
        self.passed = dataflow.passed if needed is not None else {}
        self.cluster = cluster
        self.looked_at = looked_at
        self.known: KnownSteps = {} if known is None else known
        self.conditions: dict[int, list[Condition]] = {}
        self.values: dict[int, IntReader] = {}
        self.votes: dict[int, PredicateReader] = {}
        self.barrier_operands: dict[int, tuple[IntReader, IntReader | None]] = {}
        self.phases: dict[int, tuple[IntReader, IntReader]] = {}
        self._by_lane: dict[int, tuple[int, int] | None] = {}
        for op in self.program.ops:
            if op.flow is not None:
                self._bind_known_control(op)

    @cached_property
    def segments(self) -> dict[int, Segment]:
        """The steps of each basic block; a launch that is executed in machine code has no use for them."""
        return {start: self._segment(start) for start in self.dataflow.basic_blocks}

    def _bind_known_control(self, op: Op) -> None:
        try:
            self._bind_control(op)
        except (Unsupported, IndexError, ValueError) as error:
            why = str(error) or op.text
            raise MemsimError(f"{op.name} has an unsupported form: {why}", **place_in_source(op)) from None

    def live(self, pc: int) -> int:
        """Slots that are live at a place."""
        return self.dataflow.live.get(pc, 0)

    def by_lane(self, pc: int) -> tuple[int, int] | None:
        """Slots (bit sets) that the steps from a place may read, and that they may write and that are needed
        afterwards; None if other lanes affect the steps.
        """
        if pc not in self._by_lane:
            segment = self.segments[pc]
            ops = [op for op in self.program.ops[pc : segment.stop] if op.flow is None]
            touched = written = after = 0
            for op in ops:
                touched |= op.reads | op.addresses | op.writes
                written |= op.writes
            for following in self.dataflow.next_basic_blocks[pc]:
                after |= self.live(following)
            if segment.control is not None:
                after |= segment.control.reads
            alone = bool(segment.steps) and all(map(works_on_lane, ops))
            alone = alone and self.looked_at.isdisjoint(op.index for op in ops)
            self._by_lane[pc] = (touched & self.live(pc), written & after) if alone else None
        return self._by_lane[pc]

    def called(self, op: Op, registers: Registers) -> str | None:
        """The system function that an indirect call leads to; None if it is not one."""
        read = self.values.get(op.index)
        if read is None:
            return None
        try:
            address = read(registers)
        except Poisoned:
            return None
        return self.externals.get(address) if type(address) is int else None

    # --- construction -------------------------------------------------------------------------

    def _segment(self, start: int) -> Segment:
        ops = self.dataflow.block(start)
        control = ops[-1] if ops[-1].flow is not None else None
        steps = []
        follows = False  # limits of approximations
        for op in ops:
            if not FENCES.isdisjoint(op.traits):
                steps.append(fence_step(op))
            if op.index in self.looked_at and op.effect is not Effect.CONTROL:
                steps.append(look_step(op, self.binder.guard(op.guard)))
            if op.effect in (Effect.NONE, Effect.CONTROL) or op.guard == NEVER:
                continue
            wanted = self.needed is None or op.index in self.needed
            if wanted or op.effect is Effect.MEMORY:
                step = self._step(op, wanted)
                approximates = wanted and self.needed is not None and self.dataflow.is_approximate(op)
                if approximates or follows:
                    step = self._with_margins(op, step, not follows, approximates)
                    follows = True
                steps.append(step)
        return Segment(tuple(steps), start + len(ops), control, len(ops))

    def _with_margins(self, op: Op, step: Step, starts: bool, approximates: bool) -> Step:
        """A step that follows the limits of approximations."""
        binder, compute = self.binder.anew(), None
        if op.effect is Effect.ALU:
            with suppress(Unsupported, Poisoned, IndexError, ValueError):
                single = binder.single(op.form.operands[-1]) if approximates else None
                compute = single or op.meaning.bind(binder)
        return with_margins(op, binder.guard(op.guard), compute, step, starts, approximates)

    def _step(self, op: Op, data: bool) -> Step:
        """The step of an instruction: that of a launch before if all that it was told is the same."""
        known = self.known.get((op.index, data))
        if known is not None and self.binder.agrees(known[0]):
            return known[1]
        binder = self.binder.anew()
        step = self._new_step(op, data, binder)
        self.known[op.index, data] = binder.asked, step
        return step

    def _new_step(self, op: Op, data: bool, binder: Binder) -> Step:
        """A step that poisons if this form of the instruction is not supported."""
        guard = binder.guard(op.guard)
        try:
            made = op.meaning.bind(binder)
        except (Unsupported, Poisoned, IndexError, ValueError):  # a form with too few operands
            return self._unexecuted(op, guard)
        if op.effect is Effect.MEMORY:
            return memory_step(op, guard, made, data)
        return value_step(op, guard, made, op.meaning.targets)

    def _unexecuted(self, op: Op, guard: PredicateReader | None) -> Step:
        """An instruction that is not executed: everything that it may write becomes unknown."""
        why = "is not executed by the emulator" if op.is_known else "is not a known instruction"
        poison = Poison(f"{op.name} {why}", op)

        def run(machine: Machine) -> None:
            active: Mask = machine.mask
            if guard is not None:
                with suppress(Poisoned):
                    active = both(machine.mask, guard(machine.slots))
            if active is False:
                return
            if not op.is_known:
                machine.listener.uncertain(f"{op.name} at {op.where} {why}: it may do anything")
            unknown_effects(machine, op, poison, active)

        return run

    def _bind_control(self, op: Op) -> None:
        """Bind the operands of a control instruction."""
        predicates = [operand for operand in op.form.operands if isinstance(operand, Predicate)]
        if op.flow is Flow.BLOCK_BARRIER:
            if predicates:
                self.votes[op.index] = self.binder.predicate(predicates[-1])
            numbers = [operand for operand in op.form.operands if not isinstance(operand, Predicate)]
            reads: list[IntReader | None] = [self.binder.word(operand) for operand in numbers[:2]]
            first, second = (*reads, None, None)[:2]
            self.barrier_operands[op.index] = first or (lambda r: 0), second
            predicates = []
        if op.flow is Flow.WAIT_PHASE:
            place, operand = address_of(op.form)
            parity = self.binder.unsigned_word(op.form.operands[place + 1])
            self.phases[op.index] = self.binder.short_address(operand), parity
            predicates = []
        for predicate in (op.guard, *predicates):
            read = self.binder.guard(predicate)
            if predicate is not None and read is not None:
                slots = [] if predicate.slot is None else [predicate.slot]
                self.conditions.setdefault(op.index, []).append((slots, read))
        self._bind_value(op)

    def _bind_value(self, op: Op) -> None:
        """Bind the register that holds the mask or target."""
        operands = op.form.operands
        register = next((operand for operand in operands if isinstance(operand, Register)), None)
        immediate = next((operand for operand in operands if isinstance(operand, Immediate)), None)
        if op.flow in (Flow.RETURN, Flow.CALL) and register is not None:
            far = Trait.ABSOLUTE in op.traits
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


def works_on_lane(op: Op) -> bool:
    """Is what it does in a lane the same, whatever other lanes do?"""
    if op.effect is Effect.MEMORY:
        return set(op.touches) <= LANEWISE
    return FENCES.isdisjoint(op.traits) and op.effect is not Effect.LANES and bool(op.is_known)


#: Of instructions that order what warps access in memory.
FENCES = frozenset((Trait.FENCES, Trait.FENCES_BLOCK, Trait.REFRESHES))

#: Accesses that every lane makes for itself.
LANEWISE = {("load", "global"), ("store", "global"), ("load", "constant")}

#: The guard `@!PT` of instructions that never execute, such as the loads of RZ before LDGSTS.
NEVER = Predicate(None, True)
