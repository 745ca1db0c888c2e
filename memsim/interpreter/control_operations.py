"""Control flow, as operations. The rules are those of `memsim.simt.control_flow`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from memsim.interpreter.lowered_op import Goto, LoweredOp
from memsim.interpreter.vector_operations import Place, RegisterPlace, VectorOperation, constant
from memsim.isa.control import ASSERTION, driver_function
from memsim.isa.op import Flow, Immediate, Predicate, Register, Trait
from memsim.simt.control_graph import barrier_slot

#: Of block barriers: they have a number, and a count; they only arrive; how they vote is in the bits above.
_NUMBERED, _COUNTED, _ARRIVES, _VOTES = 1, 2, 8, 4
_HOW_MANY, _ALL, _ANY = 1, 2, 3


def lower_control(one: LoweredOp) -> None:
    """The operations of an instruction of control flow.

    Raises:
        NotLowered: there are none.
    """
    assert one.op.flow is not None
    lower = _LOWERED.get(one.op.flow)
    if lower is None:
        raise one.refuse()
    predicates = [operand for operand in one.op.form.operands if isinstance(operand, Predicate)]
    of_flow = [] if one.op.flow is Flow.BLOCK_BARRIER else predicates
    for predicate in (one.op.guard, *of_flow):
        one.guard(predicate, skips=False)
    lower(one)


def _target(one: LoweredOp) -> Goto:
    if not one.op.targets:  # a function without code
        raise one.refuse()
    return Goto(one.op.targets[0])


def _register(one: LoweredOp) -> Register | None:
    return next((operand for operand in one.op.form.operands if isinstance(operand, Register)), None)


def _immediate(one: LoweredOp) -> int | None:
    found = (operand for operand in one.op.form.operands if isinstance(operand, Immediate))
    return next((int(operand.value) for operand in found), None)


def _mask(one: LoweredOp) -> Place:
    """The lanes that are asked for; all if none are named."""
    register, immediate = _register(one), _immediate(one)
    if register is not None:
        return one.word(register)
    return constant(-1 if immediate is None else immediate, 4)


def _branch(one: LoweredOp) -> None:
    one.add("branch", k=int(Trait.UNANIMOUS in one.op.traits), n=_target(one))


def _branch_any(one: LoweredOp) -> None:
    one.add("branch_any", n=_target(one))


def _branch_diverged(one: LoweredOp) -> None:
    one.add("branch_diverged", None, _mask(one), k=int(Trait.CONVERGED in one.op.traits), n=_target(one))


def _jump(one: LoweredOp, added: int = 0) -> None:
    """To the address in a register."""
    register = _register(one)
    place = one.pair(register) if Trait.ABSOLUTE in one.op.traits else one.sign_extended(one.word(register))
    one.operations.append(VectorOperation("indexed", None, place, None, one.op.index, 0, added))


def _call(one: LoweredOp) -> None:
    if driver_function(one.op) == ASSERTION:
        _trap(one)
    elif _register(one) is None:
        _branch(one)
    else:
        _jump(one)


def _indexed(one: LoweredOp) -> None:
    _jump(one, one.op.address + 16 + (_immediate(one) or 0))


def _at_barrier(name: str, one: LoweredOp) -> None:
    one.add(name, RegisterPlace(barrier_slot(one.op)))


def _wait_barrier(one: LoweredOp) -> None:
    place = RegisterPlace(barrier_slot(one.op))
    one.add("wait_barrier", place, place, n=Goto(one.meeting[one.op.index]))


def _warp_sync(one: LoweredOp) -> None:
    apart = not one.op.traits.isdisjoint((Trait.EXCLUSIVE, Trait.COLLECTIVE))
    one.add("warp_sync", None, _mask(one), k=int(apart), n=Goto(one.op.index + 1))


def _block_barrier(one: LoweredOp) -> None:
    traits, operands = one.op.traits, one.op.form.operands
    numbers = [operand for operand in operands if not isinstance(operand, Predicate)]
    places: list[Place | None] = [one.word(operand) for operand in numbers[:2]]
    kind = (0, _NUMBERED, _NUMBERED | _COUNTED)[len(places)]
    places += [None] * (2 - len(places))
    if Trait.REDUCES in traits:
        voted = [operand for operand in operands if isinstance(operand, Predicate)][-1]
        places.append(one.truth(voted))
        kind |= (_HOW_MANY if Trait.COUNTS in traits else _ALL if Trait.ALL_OF in traits else _ANY) << _VOTES
    one.add("block_barrier", None, *places, k=kind | (_ARRIVES if Trait.ARRIVES in traits else 0))


def _trap(one: LoweredOp) -> None:
    one.add("trap", n=one.op.index)


_LOWERED: dict[Flow, Callable[[LoweredOp], None]] = {
    Flow.EXIT: lambda one: one.add("exit"),
    Flow.BRANCH: _branch,
    Flow.BRANCH_ANY: _branch_any,
    Flow.BRANCH_DIVERGED: _branch_diverged,
    Flow.INDEXED: _indexed,
    Flow.CALL: _call,
    Flow.RETURN: _jump,
    Flow.SET_BARRIER: partial(_at_barrier, "set_barrier"),
    Flow.LEAVE_BARRIER: partial(_at_barrier, "leave_barrier"),
    Flow.WAIT_BARRIER: _wait_barrier,
    Flow.WARP_SYNC: _warp_sync,
    Flow.END_COLLECTIVE: lambda one: None,
    Flow.BLOCK_BARRIER: _block_barrier,
    Flow.YIELD: lambda one: one.add("yield"),
    Flow.SLEEP: lambda one: one.add("sleep"),
    Flow.TRAP: _trap,
}
