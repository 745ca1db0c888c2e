"""Decodes each line of a listing into an `Op` of a `Program`. Semantics are in `memsim.isa`."""

from __future__ import annotations

import re
from functools import lru_cache

import memsim.isa.table  # noqa: F401  (which defines all opcodes)
from memsim.isa.definitions import Meaning, meaning_of
from memsim.isa.op import Form, Immediate, Label, Operand, Predicate, Special
from memsim.isa.program import Op, Program
from memsim.isa.stack import with_spills
from memsim.sass.listing import Listing, ListingLine
from memsim.sass.operands import parse_operand, split

_INDEXED_TARGET = re.compile(r"^(U?R\d+)\s+(-?0x[0-9a-f]+)")
_REMARK = re.compile(r'\(\*"[^"]*"\*\)')
_NAN = re.compile(r"[-+]?[QS]NAN")
_TARGETS = re.compile(r'\(\*"(?:BRANCH|INDIRECT_CALL)_TARGETS ([^"]*)"\*\)')


def decode(listing: Listing, code: bytes = b"") -> Program:
    """A kernel's instructions, including those of the device functions in its section.

    code: the section's bytes. They give the payload of a NaN immediate, which the listing prints as `-QNAN`.
    """
    at = {line.address: index for index, line in enumerate(listing.lines)}
    ops = tuple(_op(index, line, listing, at, code) for index, line in enumerate(listing.lines))
    functions = {name: at[address] for name, address in listing.labels.items() if address in at}
    return with_spills(Program(listing.name, ops, at, functions))


def _op(index: int, line: ListingLine, listing: Listing, at: dict[int, int], code: bytes) -> Op:
    text = line.text
    if "NAN" in text and not text.startswith("H"):
        text = _NAN.sub(lambda match: _number_at(code, line.address) or match[0], text)
    meaning = meaning_of_text(text)
    if meaning.form.opcode == "LEPC":
        meaning = meaning_of(_with_address(meaning.form, listing))
    form, reads, addresses = meaning.form, meaning.reads, meaning.addresses
    guard = parse_operand(line.guard) if line.guard else None
    assert guard is None or isinstance(guard, Predicate)
    if guard is not None and guard.slot is not None:
        reads |= 1 << guard.slot
        addresses |= 1 << guard.slot
    targets: tuple[int, ...] = ()
    if meaning.flow is not None:
        names = [operand.name for operand in form.operands if isinstance(operand, Label)]
        targets = tuple(at[listing.labels[name]] for name in names if listing.labels.get(name) in at)
    return Op(
        index=index,
        address=line.address,
        guard=guard,
        text=f"@{line.guard} {line.text}" if line.guard else line.text,
        source=line.source,
        effect=meaning.effect,
        reads=reads,
        writes=meaning.writes,
        addresses=addresses,
        flow=meaning.flow,
        targets=targets,
        meaning=meaning,
    )


def _number_at(code: bytes, address: int) -> str:
    """The immediate in an instruction's second word; "" if the code is not available."""
    word = code[address + 4 : address + 8]
    return f"{int.from_bytes(word, 'little'):#x}" if len(word) == 4 else ""


def _with_address(form: Form, listing: Listing) -> Form:
    """Labels used as values get their address."""
    operands = tuple(
        Label(operand.name, listing.labels.get(operand.name)) if isinstance(operand, Label) else operand
        for operand in form.operands
    )
    return Form(form.opcode, form.modifiers, operands)


@lru_cache(maxsize=1 << 15)
def meaning_of_text(text: str) -> Meaning:
    """An instruction without its guard."""
    return meaning_of(parse_form(text))


def parse_form(text: str) -> Form:
    """Opcode, modifiers and operands from an instruction's text."""
    listed = _TARGETS.search(text)
    targets = [Label(name.strip(), None) for name in listed[1].split(",")] if listed else []
    text = _REMARK.sub("", text).strip()
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.split(".")
    rest = rest.strip()
    if match := _INDEXED_TARGET.match(rest):
        register = parse_operand(match[1])
        assert register is not None
        return Form(opcode, tuple(modifiers), (register, Immediate(int(match[2], 16)), *targets))
    pieces = [piece for part in split(rest) for piece in _split_label(part)]
    operands: list[Operand] = []
    for piece in pieces:
        operand = parse_operand(piece)
        operands.append(Special(piece) if operand is None else operand)
    return Form(opcode, tuple(modifiers), tuple(_paired(opcode, operands)))


def _split_label(part: str) -> list[str]:
    """`R2 `(name)` is two operands without a comma."""
    head, separator, label = part.partition(" `(")
    return [head, f"`({label}"] if separator else [part]


def _paired(opcode: str, operands: list[Operand]) -> list[Operand]:
    """In instructions on two halves, two consecutive immediates are one operand, the high half first."""
    if not opcode.startswith(("H", "VH")):
        return operands
    found: list[Operand] = []
    for operand in operands:
        before = found[-1] if found else None
        if (
            isinstance(operand, Immediate)
            and isinstance(before, Immediate)
            and before.second is None
            and not (isinstance(before.value, int) and isinstance(operand.value, int))
        ):
            found[-1] = Immediate(before.value, float(operand.value))
        else:
            found.append(operand)
    return found
