"""Decodes each line of a listing into an `Op` of a `Program`: its operands as nvdisasm prints them (`R4`,
`-R5.H0_H0`, `c[0x0][0x210]`, `desc[UR6][R2.64+0x10]`, ...), its predicates and modifiers.

Semantics are in `memsim.isa`; which of the operands an instruction writes its signature says
(`memsim.isa.signature`).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

import memsim.isa.table  # noqa: F401  (which defines all opcodes)
from memsim.errors import MemsimError
from memsim.isa.definitions import Meaning, meaning_of
from memsim.isa.op import (
    BARRIER,
    PREDICATE,
    RETURN_PC,
    UNIFORM,
    UNIFORM_PREDICATE,
    VECTOR,
    Address,
    Barrier,
    Constant,
    Form,
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Special,
    Symbolic,
)
from memsim.isa.program import Op, Program
from memsim.isa.stack import with_spills
from memsim.sass.listing import Listing, ListingLine

_REGISTER = re.compile(
    r"^(?P<sign>[-~|!]*)(?P<kind>U?R)(?P<number>\d+|Z)(?P<suffix>(?:\.[A-Za-z0-9_]+)*)\|?(?P<after>(?:\.[A-Za-z0-9_]+)*)$"
)
_PREDICATE = re.compile(r"^(!?)(U?P)(\d|T)$")
_CONSTANT = re.compile(
    r"^(?P<sign>[-~|]*)c\[(?P<bank>0x[0-9a-f]+)\]\s*\[(?P<inside>[^\]]*)\](?P<suffix>(?:\.[A-Za-z0-9_]+)*)\|?(?P<after>(?:\.[A-Za-z0-9_]+)*)$"
)
_ADDRESS = re.compile(r"^(?:g?desc\[(?P<descriptor>UR\w+)\])?\[(?P<inside>[^\]]*)\](?P<suffix>(?:\.\w+)*)$")
_TERM = re.compile(r"^(?P<register>U?R(?:\d+|Z))(?P<suffix>(?:\.\w+)*)$")
_RELOCATED = re.compile(r"^32@(lo|hi)\((.+)\)$")
#: A label as a place in its function: where a call returns to.
_IN_FUNCTION = re.compile(r"^\([^\s()]+ \+ (\.\w+)@srel\)$")
#: Where each kind of register begins, and how many there are; one more is RZ, URZ, PT or UPT.
_REGISTERS = {
    **{"R": (VECTOR, 255), "UR": (UNIFORM, 80), "B": (BARRIER, 16)},
    **{"P": (PREDICATE, 7), "UP": (UNIFORM_PREDICATE, 7)},
}
_HINTS = (".reuse",)
RETURN_PC_HALVES = ("Rpc.LO", "Rpc.HI")
_FLOATS = {"INF": math.inf, "QNAN": math.nan, "SNAN": math.nan}


def split_operands(text: str) -> list[str]:
    """Split operands at commas; there are none inside brackets."""
    return [part.strip() for part in text.split(",")] if text else []


@lru_cache(maxsize=1 << 14)
def parse_operand(text: str) -> Operand | None:
    """One operand; None if its form is unknown. Labels keep their name and get an address later."""
    for hint in _HINTS:
        text = text.replace(hint, "")
    text = text.strip()
    if match := _PREDICATE.match(text):
        return Predicate(None if match[3] == "T" else _slot(match[2], match[3]), bool(match[1]))
    if match := _REGISTER.match(text):
        return _register(match)
    if match := _CONSTANT.match(text):
        return _constant(match)
    if text.startswith("`("):
        return Label(text[2:].rstrip(")"), None)
    if match := _ADDRESS.match(text):
        return _sum(match["inside"])
    if text == "SRZ" or text.startswith("SR_"):
        return Special(text)
    if text in RETURN_PC_HALVES:
        return Register(RETURN_PC + RETURN_PC_HALVES.index(text))
    if re.fullmatch(r"B\d+", text):
        return Barrier(_slot("B", text[1:]))
    if match := _RELOCATED.match(text):
        return Symbolic(match[2], match[1] == "hi")
    return _immediate(text)


def _slot(kind: str, number: str) -> int:
    """Where a register is kept.

    Raises:
        MemsimError: there are not so many, so that it would be another one's place.
    """
    first, count = _REGISTERS[kind]
    if int(number) >= count:
        raise MemsimError(f"{kind}{number} is not a register: {kind}{count - 1} is the last one")
    return first + int(number)


def _register(match: re.Match[str]) -> Register:
    parts = [part for part in (match["suffix"] + match["after"]).split(".") if part]
    return Register(
        None if match["number"] == "Z" else _slot(match["kind"], match["number"]),
        negated="-" in match["sign"],
        absolute="|" in match["sign"],
        inverted="~" in match["sign"] or "!" in match["sign"],
        part=".".join(part for part in parts if part != "64"),
        wide="64" in parts,
    )


def _constant(match: re.Match[str]) -> Operand | None:
    parts = [part for part in (match["suffix"] + match["after"]).split(".") if part]
    inside = _sum(match["inside"])
    if inside is None or (inside.uniform is not None and inside.base is not None):
        return None
    sign = match["sign"]
    return Constant(
        int(match["bank"], 16),
        inside.offset,
        inside.base or inside.uniform,
        negated="-" in sign,
        absolute="|" in sign,
        inverted="~" in sign,
        part=".".join(parts),
    )


def _sum(inside: str) -> Address | None:
    """`R2.64+UR4+-0x800`, `RZ`, `0x10`, `R3.X4+0x20`."""
    base = uniform = None
    pair, offset, scale = False, 0, 1
    for term in inside.split("+"):
        term = term.strip()
        if not term:
            continue
        if match := _TERM.match(term):
            register = parse_operand(match["register"])
            assert isinstance(register, Register)
            parts = [part for part in match["suffix"].split(".") if part]
            if match["register"].startswith("UR"):
                uniform = register
            else:
                base, pair = register, "64" in parts
            for part in parts:
                if part.startswith("X"):
                    scale = int(part[1:])
                elif part not in ("64", "U32"):
                    return None
            continue
        try:
            offset += int(term, 16) if "0x" in term else int(term)
        except ValueError:
            return None
    return Address(base, uniform, offset, pair, scale)


def _immediate(text: str) -> Immediate | None:
    if re.fullmatch(r"-?0x[0-9a-f]+", text):
        return Immediate(int(text, 16))
    bare = text.lstrip("+-")
    if bare in _FLOATS:
        return Immediate(-_FLOATS[bare] if text.startswith("-") else _FLOATS[bare])
    try:
        return Immediate(float(text))
    except ValueError:
        return None


_INDEXED_TARGET = re.compile(r"^(U?R\d+)\s+(-?0x[0-9a-f]+)")
_REMARK = re.compile(r'\(\*"[^"]*"\*\)')
_NAN = re.compile(r"[-+]?[QS]NAN")
_TARGETS = re.compile(r'\(\*"(?:BRANCH|INDIRECT_CALL)_TARGETS ([^"]*)"\*\)')


def decode(listing: Listing, code: bytes = b"") -> Program:
    """A kernel's instructions, including those of the device functions in its section.

    code: the section's bytes. They give the payload of a NaN immediate, which the listing prints as `-QNAN`.

    Raises:
        MemsimError: there are none.
    """
    if not listing.lines:
        raise MemsimError(f"the listing of {listing.name} has no instructions")
    at = {line.address: index for index, line in enumerate(listing.lines)}
    ops = tuple(_op(index, line, listing, at, code) for index, line in enumerate(listing.lines))
    functions = {name: at[address] for name, address in listing.labels.items() if address in at}
    return with_spills(Program(listing.name, ops, at, functions))


def _op(index: int, line: ListingLine, listing: Listing, at: dict[int, int], code: bytes) -> Op:
    text = line.text
    if "NAN" in text and not text.startswith("H"):
        text = _NAN.sub(lambda match: _number_at(code, line.address) or match[0], text)
    meaning = meaning_of_text(text)
    if meaning.form.opcode == "LEPC" or "@srel" in text:
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

    def placed(operand: Operand) -> Operand:
        if isinstance(operand, Label):
            return Label(operand.name, listing.labels.get(operand.name))
        if isinstance(operand, Symbolic) and (inside := _IN_FUNCTION.match(operand.symbol)):
            address = listing.labels.get(inside[1])
            return operand if address is None else Immediate(0 if operand.high else address)
        return operand

    return Form(form.opcode, form.modifiers, tuple(map(placed, form.operands)))


@lru_cache(maxsize=1 << 15)
def meaning_of_text(text: str) -> Meaning:
    """An instruction without its guard."""
    return meaning_of(parse_form(text))


def parse_form(text: str) -> Form:
    """Opcode, modifiers and operands from an instruction's text."""
    targets: list[Label] = []
    if "(*" in text:
        if listed := _TARGETS.search(text):
            targets = [Label(name.strip(), None) for name in listed[1].split(",")]
        text = _REMARK.sub("", text)
    text = text.strip()
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.split(".")
    rest = rest.strip()
    if match := _INDEXED_TARGET.match(rest):
        register = parse_operand(match[1])
        assert register is not None
        return Form(opcode, tuple(modifiers), (register, Immediate(int(match[2], 16)), *targets))
    pieces = [piece for part in split_operands(rest) for piece in _split_label(part)]
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
