"""Halves of registers that nobody reads: where a `PRMT` keeps such a half of a register, it may as well be 0.

ptxas keeps 8- and 16-bit variables in the lower half of registers, assigned by `PRMT R, new, 0x7610, R`. The
upper half may never be set: without this, the whole register would be unknown.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from memsim.isa.definitions import meaning_of
from memsim.isa.op import Immediate, Operand, Register, Trait
from memsim.isa.program import Op, Program
from memsim.simt.control_graph import ControlGraph

ZERO = Register(None)
#: The bytes of a register that are its upper half.
UPPER = 0b1100


def without_unused_halves(program: Program) -> Program:
    """The program in which `PRMT` reads only registers of which it uses a byte that is used itself."""
    if not any(_selector(op) is not None and op.writes & op.reads for op in program.ops):
        return program
    graph = ControlGraph(program)
    ends = dict(graph.basic_blocks)
    changed: dict[int, Op] = {}

    def transfer(start: int, used: int) -> int:
        for op in reversed(program.ops[start : ends[start]]):
            selector = _selector(op)
            reads = op.reads | op.addresses
            if selector is not None:
                a, c = (_register(op.form.operands[place]) for place in (1, 3))
                bytes_used = _bytes_used(selector, bool(used & op.writes))
                of_a, of_c = bytes_used & 15, bytes_used >> 4
                reads &= ~(a | c)
                kept = (a if of_a else 0) | (c if of_c else 0)
                changed[op.index] = _reading(op, bool(of_a), bool(of_c), reads | kept)
                reads |= (a if of_a & UPPER else 0) | (c if of_c & UPPER else 0)
            if op.guard is None:
                used &= ~op.writes
            used |= reads
        return used

    # The last transfer of each basic block was with what holds behind it at the end.
    graph.backward(transfer, 0)
    return replace(program, ops=tuple(changed.get(op.index, op) for op in program.ops))


def _selector(op: Op) -> int | None:
    """The bytes that a PRMT selects, if they are a number and its operands plain."""
    form = op.form
    if Trait.PICKS_BYTES not in op.traits or form.modifiers or len(form.operands) != 4:
        return None
    selector = form.operands[2]
    if not isinstance(selector, Immediate) or not isinstance(selector.value, int):
        return None
    return selector.value


def _bytes_used(selector: int, upper: bool) -> int:
    """Which of the eight bytes of both operands a PRMT uses, as bits; `upper`: for its upper half, too."""
    picks = (selector >> 4 * byte & 7 for byte in range(4 if upper else 2))
    return reduce(or_, (1 << pick for pick in picks), 0)


def _register(operand: Operand) -> int:
    """The slot of an operand as a bit; 0 if it is none."""
    return 1 << operand.slot if isinstance(operand, Register) and operand.slot is not None else 0


def _reading(op: Op, a: bool, c: bool, reads: int) -> Op:
    """The PRMT with only those of its operands."""
    result, first, selector, second = op.form.operands
    operands = (result, first if a else ZERO, selector, second if c else ZERO)
    return replace(op, meaning=meaning_of(replace(op.form, operands=operands)), reads=reads)
