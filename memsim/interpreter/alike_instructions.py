"""Instructions that differ in their registers alone, which are lowered once for all of them.

Registers get new numbers in the order in which an instruction names them. Those beside each other stay so,
because pairs and longer vectors are named by their first register.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from memsim.interpreter.memory_operations import AccessShape
from memsim.interpreter.vector_operations import Place, RegisterPlace, VectorOperation
from memsim.isa.op import BARRIER, PREDICATE, UNIFORM, UNIFORM_PREDICATE, VECTOR, slots_of
from memsim.isa.program import Op
from memsim.sass.decode import meaning_of_text

FIRST = {"R": VECTOR, "UR": UNIFORM, "P": PREDICATE, "UP": UNIFORM_PREDICATE}
_NAME = re.compile(r"\b(U?[RP])(\d+)(?:\.reuse)?\b")


class RenamedOp(NamedTuple):
    """An instruction with new registers; back: by slot which it was."""

    op: Op
    back: Mapping[int, int]


def representative_of(op: Op) -> RenamedOp | None:
    """The instruction that stands for all that are like this one; None if it does more than its text says."""
    guard = op.text[: op.text.index(" ") + 1] if op.text.startswith("@") else ""
    plain = op.text.removeprefix(guard)
    if op.flow is not None or op.spills or meaning_of_text(plain) is not op.meaning:
        return None
    named = [(FIRST[match[1]], int(match[2])) for match in _NAME.finditer(op.text)]
    slots = _new_slots([first + number for first, number in named], slots_of(op.reads | op.writes))

    def new_name(match: re.Match[str]) -> str:
        first = FIRST[match[1]]
        return f"{match[1]}{slots[first + int(match[2])] - first}"

    text = _NAME.sub(new_name, plain)
    kept = (
        op.guard
        if op.guard is None or op.guard.slot is None
        else replace(op.guard, slot=slots[op.guard.slot])
    )
    new = replace(op, text=_NAME.sub(new_name, guard) + text, guard=kept, meaning=meaning_of_text(text))
    return RenamedOp(new, {now: was for was, now in slots.items()})


def _new_slots(named: Iterable[int], used: Iterable[int]) -> dict[int, int]:
    """The new slot of each: of those beside each other, too, with one left free between others."""
    runs: dict[int, range] = {}
    start = end = -1
    for slot in sorted({*named, *used}):
        if slot != end or slot in FIRST.values():
            start = slot
        end = slot + 1
        runs.update(dict.fromkeys(range(start, end), range(start, end)))
    found: dict[int, int] = {}
    free = {first: first for first in FIRST.values()}
    for slot in (*named, *used):
        if slot >= BARRIER or slot in found:
            continue
        first = max(first for first in free if first <= slot)
        for one in runs[slot]:
            found[one] = free[first]
            free[first] += 1
        free[first] += 1
    return found


def with_registers(
    operations: Iterable[VectorOperation], slots: Mapping[int, int]
) -> Iterator[VectorOperation]:
    """The operations with other registers.

    Raises:
        KeyError: one uses a register that is not among these.
    """

    def other(place: Place | None) -> Place | None:
        return RegisterPlace(_slot(place.slot, slots)) if isinstance(place, RegisterPlace) else place

    for one in operations:
        n = _with_slots(one.n, slots) if isinstance(one.n, AccessShape) else one.n
        yield VectorOperation(one.name, other(one.d), other(one.a), other(one.b), other(one.c), one.k, n)


def _with_slots(shape: AccessShape, slots: Mapping[int, int]) -> AccessShape:
    return replace(
        shape,
        registers=tuple(None if slot is None else slots[slot] for slot in shape.registers),
        answer=None if shape.answer is None else slots[shape.answer],
        operands=tuple(slot if slot < 0 else slots[slot] for slot in shape.operands),
    )


def _slot(slot: int, slots: Mapping[int, int]) -> int:
    """Barriers and what only the emulator has keep their slots."""
    return slot if slot >= BARRIER else slots[slot]
