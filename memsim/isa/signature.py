"""The signature of a form: which operands it writes and reads, how wide they are, and as what they are bound.

`"W P?P? <- UUU P?P?"`: a word and up to two predicates are written, three unsigned words and up to two
predicates read. A letter (`KINDS`) is an operand, a number behind it says that it spans so many registers,
`?` that it may be missing, and `+` that a result is read, too, or a source written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from memsim.isa.op import (
    PREDICATE,
    UNIFORM,
    UNIFORM_PREDICATE,
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
    Unsupported,
    require,
)
from memsim.isa.readers import Binder

VALUE = (Register, Constant, Immediate, Symbolic)
#: Names of all predicates of a kind, as bits.
ALL_PREDICATES = {"PR": 0x7F << PREDICATE, "UPR": 0x7F << UNIFORM_PREDICATE}


def _itself(binder: Binder, operand: Operand) -> Operand:
    return operand


def is_indexed(constant: Constant) -> bool:
    """Does it read a constant bank at an index that may differ between lanes?"""
    return constant.register is not None and constant.register.slot is not None


def first_slot(operand: Register | Address) -> int:
    """The first of consecutive uniform registers, in brackets or not.

    Raises:
        Unsupported: the operand is not one.
    """
    register = operand.uniform if isinstance(operand, Address) else operand
    require(not isinstance(operand, Address) or (operand.base is None and not operand.offset))
    if register is None or register.slot is None:
        raise Unsupported
    return register.slot


def descriptor_slot(operand: Special) -> int | None:
    """The first of the four registers of `gdesc[URn]`, which describe two matrices; None of others."""
    match = re.match(r"gdesc\[UR(\d+)\]", operand.name)
    return UNIFORM + int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class OperandKind:
    """What a letter stands for: how many registers, which operands, and what its builder gets of one."""

    span: int
    operands: tuple[type, ...]
    bind: Callable[[Binder, Any], object] = _itself
    also: Callable[[Any], bool] | None = None


#: Numbers are bound as functions that read them. The others are given as they are.
KINDS: dict[str, OperandKind] = {
    "W": OperandKind(1, VALUE, Binder.word),
    "U": OperandKind(1, VALUE, Binder.unsigned_word),
    "K": OperandKind(1, VALUE, Binder.kept_word),  # of which a part may be undefined
    "D": OperandKind(2, VALUE, Binder.pair),
    "E": OperandKind(2, VALUE, Binder.unsigned_pair),
    "F": OperandKind(1, VALUE, Binder.single),
    "G": OperandKind(2, VALUE, Binder.double),
    "H": OperandKind(1, VALUE, Binder.halves),
    "J": OperandKind(1, VALUE, Binder.bfloat_halves),
    "P": OperandKind(1, (Predicate,), Binder.predicate),
    "A": OperandKind(2, (Address,), Binder.address),  # of 64 bits
    "a": OperandKind(1, (Address,), Binder.short_address),  # of 32 bits
    "I": OperandKind(0, (Immediate,), Binder.literal),
    "R": OperandKind(1, (Register,)),
    "V": OperandKind(1, VALUE),
    "X": OperandKind(2, VALUE),
    "T": OperandKind(1, (Register, Address), lambda binder, operand: first_slot(operand)),
    "C": OperandKind(0, (Constant,), also=lambda constant: not is_indexed(constant)),
    "c": OperandKind(0, (Constant,), also=lambda constant: is_indexed(constant)),
    "B": OperandKind(1, (Barrier,)),
    "S": OperandKind(0, (Special,)),
    "Q": OperandKind(0, (Special,)),  # all predicates
    "g": OperandKind(4, (Special,), also=lambda special: descriptor_slot(special) is not None),
    "h": OperandKind(4, (Special,), also=lambda special: descriptor_slot(special) is not None),
    "L": OperandKind(0, (Label,)),
}


@dataclass(frozen=True, slots=True)
class Token:
    """One operand of a signature; `kind` is one of `KINDS`. What is written is a register.

    both: a result that is read, too, or a source that is written.
    """

    kind: str
    span: int
    written: bool = False
    optional: bool = False
    both: bool = False

    def fits(self, operand: Operand) -> bool:
        """May the operand be this one?"""
        kind = KINDS[self.kind]
        if self.written:
            return isinstance(operand, Predicate if self.kind == "P" else (Register, Barrier))
        if isinstance(operand, kind.operands):
            return kind.also is None or kind.also(operand)
        return self.kind == "P" and isinstance(operand, Register) and operand.part == "SIGN"

    def slots(self, operand: Operand | None) -> int:
        """The slots that the operand occupies, as a bit set."""
        if isinstance(operand, Address):
            return span_of(operand.base, self.span) | span_of(operand.uniform, self.span)
        if isinstance(operand, Constant):
            return span_of(operand.register, 1)
        if isinstance(operand, Special) and self.kind in "gh":  # of A in registers, only that of B is read
            first = descriptor_slot(operand) or 0
            return (0b1111 if self.kind == "g" else 0b1100) << first
        if isinstance(operand, Special) and self.kind == "Q":
            return ALL_PREDICATES.get(operand.name, 0)
        return span_of(operand, self.span)


def span_of(operand: object, span: int) -> int:
    """The slots of consecutive registers from this one on, as a bit set; none for RZ, PT and others."""
    slot = getattr(operand, "slot", None)
    return 0 if slot is None else ((1 << span) - 1) << slot


#: Tokens with their operands, None for one that is missing.
Matched = tuple[tuple[Token, "Operand | None"], ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a form writes and reads, in the order of its operands."""

    results: tuple[Token, ...]
    sources: tuple[Token, ...]

    def match(self, form: Form) -> tuple[Matched, Matched] | None:
        """(results, sources) of a form; None if its operands are others."""
        tokens, operands = (*self.results, *self.sources), form.operands
        if operands and isinstance(operands[-1], Special) and operands[-1].name.startswith("desc["):
            operands = operands[:-1]  # of a tensor copy: the descriptor of a cache policy moves no byte
        found: list[Operand | None] = []

        def fill(place: int, at: int) -> bool:
            """Match the tokens and operands from these on; what may be missing is tried as there first."""
            if place == len(tokens):
                return at == len(operands)
            token = tokens[place]
            if at < len(operands) and token.fits(operands[at]):
                found.append(operands[at])
                if fill(place + 1, at + 1):
                    return True
                found.pop()
            if not token.optional:
                return False
            found.append(None)
            if fill(place + 1, at):
                return True
            found.pop()
            return False

        if len(operands) == len(tokens):  # all are there
            if not all(token.fits(one) for token, one in zip(tokens, operands)):
                return None
            found += operands
        elif len(operands) > len(tokens) or not fill(0, 0):
            return None
        count = len(self.results)
        return tuple(zip(self.results, found)), tuple(zip(self.sources, found[count:]))

    def match_results(self, form: Form) -> tuple[Matched, Matched] | None:
        """As `match`, of a form whose results alone are known: its other operands may be anything."""
        at = 0
        results: list[tuple[Token, Operand | None]] = []
        for token in self.results:
            operand = form.operands[at] if at < len(form.operands) else None
            if operand is not None and token.fits(operand):
                results.append((token, operand))
                at += 1
            elif token.optional:
                results.append((token, None))
            else:
                return None
        sources: list[tuple[Token, Operand | None]] = []
        expected = list(self.sources)
        for one in form.operands[at:]:
            while expected and expected[0].optional and not expected[0].fits(one):
                expected.pop(0)
            token = expected.pop(0) if expected else Token("V", 2 if isinstance(one, Address) else 1)
            sources.append((token if token.fits(one) else replace(token, kind="V"), one))
        return tuple(results), tuple(sources)


@cache
def signature(text: str) -> Signature:
    """`"W P? <- UU"` read."""
    results, sources = text.split("<-")
    return Signature(tuple(_tokens(results, True)), tuple(_tokens(sources, False)))


def _tokens(text: str, written: bool) -> Iterator[Token]:
    for letter, span, flags in re.findall(r"([A-Za-z])(\d*)([?+]*)", text):
        yield Token(letter, int(span) if span else KINDS[letter].span, written, "?" in flags, "+" in flags)


def slots_used(results: Matched, sources: Matched) -> tuple[int, int, int]:
    """(slots read, written, read for addresses and predicates), as bit sets."""
    reads = writes = addresses = 0
    for token, operand in results:
        writes |= token.slots(operand)
        reads |= token.slots(operand) if token.both else 0
    for token, operand in sources:
        slots = token.slots(operand)
        mask = sources[-1][1]
        if token.kind == "Q" and isinstance(mask, Immediate) and isinstance(mask.value, int):
            slots &= mask.value * (slots & -slots)  # of all predicates, those in the mask
        reads |= slots
        writes |= slots if token.both else 0
        if isinstance(operand, (Address, Constant, Predicate)) or token.kind in "gh":
            addresses |= slots
    return reads, writes, addresses


def targets_of(results: Matched) -> list[int | None]:
    """The slots that are written, one for each register of a result; None for RZ and PT."""
    found: list[int | None] = []
    for token, operand in results:
        if operand is not None:
            slot = getattr(operand, "slot", None)
            found += [None if slot is None else slot + i for i in range(token.span)]
    return found
