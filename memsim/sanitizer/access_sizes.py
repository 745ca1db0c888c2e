"""Which accesses are strong, and whether two of them that overlap are of one size: those that overlap only in
part race with each other, even if both are atomics (PTX ISA, Morally strong operations).

An atomic has the size of its element. What machine code loads or stores at once may be a vector, whose
elements count as accesses of their own (Vector Data-types).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memsim.arch.units import WORD
from memsim.isa.atomics import atomic_size
from memsim.isa.memory_access import bytes_of_piece, is_of_block, is_strong, register_count
from memsim.isa.op import Unsupported
from memsim.isa.program import GLOBAL, Op
from memsim.model.operations import operation


def is_strong_access(op: Op) -> bool:
    """Whether it is an atomic in global memory, or another strong access."""
    ways = (way for way, space in op.touches if space in (GLOBAL, "generic"))
    updates = any(operation(GLOBAL, way).verb == "update" for way in ways)
    return updates or is_strong(op.form)


def of_narrow_scope(*ops: Op) -> Op | None:
    """The first of strong accesses whose scope is only that of a block; None if not all are strong."""
    are_strong = all(is_strong(op.form) for op in ops)
    return next((op for op in ops if is_of_block(op.form)), None) if are_strong else None


class Sizes(NamedTuple):
    """Bytes of the smallest and the largest access that an instruction may be for the memory model; 0: not
    known.
    """

    least: int
    most: int


def sizes_of(op: Op) -> Sizes:
    """Of a lane's load, store or atomic."""
    if op.is_atomic:
        try:
            size = atomic_size(op.form)
        except Unsupported:
            size = 0
        return Sizes(size, size)
    if op.accesses in ({"load"}, {"store"}):
        most = bytes_of_piece(op.form) * register_count(op.form)
        return Sizes(min(most, WORD), most)
    return Sizes(0, 0)


def are_mixed(one: Op, other: Op) -> bool | None:
    """Whether they are of different sizes; None if they may be."""
    first, second = sizes_of(one), sizes_of(other)
    if first.most == second.most or 0 in (first.most, second.most):
        return False
    return True if first.most < second.least or second.most < first.least else None


def mixed_with(op: Op, others: Iterable[Op]) -> frozenset[int]:
    """Those, by index, that are or may be of another size."""
    return frozenset(other.index for other in others if are_mixed(op, other) is not False)
