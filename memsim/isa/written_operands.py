"""Which operands of an instruction are written, and which are read."""

from __future__ import annotations

import re

from memsim.isa.definitions import DEFINITIONS, meaning_of
from memsim.isa.op import (
    PREDICATE,
    UNIFORM_PREDICATE,
    Address,
    Barrier,
    Constant,
    Form,
    Operand,
    Predicate,
    Register,
    Special,
)
from memsim.isa.registry import OpcodeRecord

#: Names of all predicates of a kind, as bits.
_ALL_PREDICATES = {"PR": 0x7F << PREDICATE, "UPR": 0x7F << UNIFORM_PREDICATE}


def result_count(form: Form, record: OpcodeRecord) -> int:
    """The number of leading operands that are written.

    Raises:
        ValueError: a result that every form of the opcode has is missing: this form is not known.
    """
    place = 0
    for token in re.findall(r"[RP]\??", record.results):
        operand = form.operands[place] if place < len(form.operands) else None
        fits = isinstance(operand, (Register, Barrier)) if token[0] == "R" else isinstance(operand, Predicate)
        last = token.endswith("?") and place == len(form.operands) - 1 and form.opcode.startswith("VOTE")
        if fits and not last:
            place += 1
        elif not token.endswith("?"):
            raise ValueError(f"{form.name} writes to no {token}")
    return place


def targets_of(form: Form, record: OpcodeRecord) -> list[int | None]:
    """The slots that an instruction writes, in the order of its results; None for RZ and PT."""
    if form.opcode in DEFINITIONS and (meaning := meaning_of(form)):
        return list(meaning.targets)
    widths = record.widths_of(form)
    found: list[int | None] = []
    for place in range(result_count(form, record)):
        operand = form.operands[place]
        span = widths.get(place, 1)
        slot = getattr(operand, "slot", None)
        found += [None if slot is None else slot + i for i in range(span)]
    return [*found, *(record.written(form) if record.written else ())]


def slots_of_form(form: Form, record: OpcodeRecord) -> tuple[int, int, int]:
    """(slots read, written, read for addresses and predicates), as bit sets."""
    if form.opcode in DEFINITIONS and record.known:
        meaning = meaning_of(form)
        if meaning is None:
            raise ValueError
        return meaning.reads, meaning.writes, meaning.addresses
    widths = record.widths_of(form)
    count = result_count(form, record)
    reads = writes = addresses = 0
    for place, operand in enumerate(form.operands):
        span = widths.get(place, 1)
        if place < count:
            writes |= _slots(operand, span)
            continue
        if isinstance(operand, Address):
            found = _address_slots(operand, widths.get(place, 1 if is_narrow(record, place) else 2))
        else:
            found = _slots_read(operand, span)
        reads |= found
        if isinstance(operand, (Address, Constant, Predicate)):
            addresses |= found
    for slot in record.also_read(form) if record.also_read else ():
        reads |= 1 << slot
    for slot in record.written(form) if record.written else ():
        writes |= 1 << slot
    if form.opcode in ("BSSY", "BREAK"):
        writes |= reads
    return reads, writes, addresses


def is_narrow(record: OpcodeRecord, place: int) -> bool:
    """Does an address use a single register? Shared and local addresses have 32 bits.

    If accesses depend on the form, its record names the second one (`also_read`); of an address that is not
    accessed it gives the width.
    """
    spaces = set() if callable(record.touches) else {space for _, space in record.touches}
    return spaces <= {"shared", "local"} or (record.opcode == "LDGSTS" and place == 0)


def _address_slots(operand: Address, span: int) -> int:
    """The slots that an address of so many registers uses."""
    base = _slots(operand.base, span) if operand.base is not None else 0
    return base | (_slots(operand.uniform, span) if operand.uniform is not None else 0)


def _slots(operand: Operand, span: int) -> int:
    slot = getattr(operand, "slot", None)
    return 0 if slot is None else ((1 << span) - 1) << slot


def _slots_read(operand: Operand, span: int) -> int:
    """The slots that an operand uses."""
    if isinstance(operand, (Register, Predicate, Barrier)):
        return _slots(operand, span)
    if isinstance(operand, Constant) and operand.register is not None:
        return _slots(operand.register, 1)
    if isinstance(operand, Special):
        return _ALL_PREDICATES.get(operand.name, 0)
    return 0
