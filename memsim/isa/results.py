"""Which operands of an instruction are written.

In: a form and its record. Out: how many of the leading operands, and the slots.
"""

from __future__ import annotations

import re

from memsim.isa.op import Barrier, Form, Predicate, Register
from memsim.isa.registry import Record


def result_count(form: Form, record: Record) -> int:
    """How many of the leading operands are written."""
    place = 0
    for token in re.findall(r"[RP]\??", record.results):
        operand = form.operands[place] if place < len(form.operands) else None
        fits = isinstance(operand, (Register, Barrier)) if token[0] == "R" else isinstance(operand, Predicate)
        last = token.endswith("?") and place == len(form.operands) - 1 and form.opcode.startswith("VOTE")
        if fits and not last:
            place += 1
        elif not token.endswith("?"):
            break
    return place


def targets_of(form: Form, record: Record) -> list[int | None]:
    """The slots that an instruction writes, in the order of its results; None for RZ and PT."""
    widths = record.widths(form)
    found: list[int | None] = []
    for place in range(result_count(form, record)):
        operand = form.operands[place]
        span = widths.get(place, 1)
        slot = getattr(operand, "slot", None)
        found += [None if slot is None else slot + i for i in range(span)]
    return [*found, *(record.written(form) if record.written else ())]
