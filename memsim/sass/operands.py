"""Parser for operands of machine instructions as nvdisasm prints them: `R4`, `-R5.H0_H0`, `c[0x0][0x210]`,
`desc[UR6][R2.64+0x10]`, ...

Which of them an instruction writes its signature says (`memsim.isa.signature`).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

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
    Immediate,
    Label,
    Operand,
    Predicate,
    Register,
    Special,
    Symbolic,
)

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
_HINTS = (".reuse",)
RETURN_PC_HALVES = ("Rpc.LO", "Rpc.HI")
_FLOATS = {"INF": math.inf, "QNAN": math.nan, "SNAN": math.nan}


def split(text: str) -> list[str]:
    """Split operands at commas; there are none inside brackets."""
    return [part.strip() for part in text.split(",")] if text else []


@lru_cache(maxsize=1 << 14)
def parse_operand(text: str) -> Operand | None:
    """One operand; None if its form is unknown. Labels keep their name and get an address later."""
    for hint in _HINTS:
        text = text.replace(hint, "")
    text = text.strip()
    if match := _PREDICATE.match(text):
        base = PREDICATE if match[2] == "P" else UNIFORM_PREDICATE
        return Predicate(None if match[3] == "T" else base + int(match[3]), bool(match[1]))
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
        return Barrier(BARRIER + int(text[1:]))
    if match := _RELOCATED.match(text):
        return Symbolic(match[2], match[1] == "hi")
    return _immediate(text)


def _slot(kind: str, number: str) -> int | None:
    return None if number == "Z" else (UNIFORM if kind == "UR" else VECTOR) + int(number)


def _register(match: re.Match[str]) -> Register:
    parts = [part for part in (match["suffix"] + match["after"]).split(".") if part]
    return Register(
        _slot(match["kind"], match["number"]),
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
