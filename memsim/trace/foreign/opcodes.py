"""What an opcode of machine code does to memory, as traces of other tools name it: `LDG.E.128`.

In: an opcode with its modifiers. Out: operation, space, width. Source: CUDA Binary Utilities, "Instruction
Set Reference"; which shared atomic is which: docs/model.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memsim.arch.units import WARP

SPACES = {
    **{"LDG": "global", "STG": "global", "ATOMG": "global", "RED": "global", "REDG": "global"},
    **{"LDS": "shared", "STS": "shared", "ATOMS": "shared", "LDSM": "shared", "STSM": "shared"},
    **{"LD": "generic", "ST": "generic", "ATOM": "generic"},
    "LDGSTS": "copy",
}
#: What is no access to shared or global memory that is counted, and how a report calls it.
ASIDE = {
    **dict.fromkeys(("LDL", "STL"), "local memory"),
    **dict.fromkeys(("LDC", "LDCU", "ULDC"), "constant memory"),
    **dict.fromkeys(
        ("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKPF", "UBLKRED"), "bulk copies"
    ),
    **dict.fromkeys(("TEX", "TLD", "TLD4", "TXD", "TMML", "SULD", "SUST", "SUATOM", "SURED"), "textures"),
}
LOADS, STORES = ("LDG", "LDS", "LD"), ("STG", "STS", "ST")
MATRICES = {"LDSM": "ldmatrix", "STSM": "stmatrix"}
BITS = re.compile(r"[USFB]?(?:F)?(8|16|32|64|128)")
DEFAULT_WIDTH = 4


@dataclass(frozen=True, slots=True)
class Opcode:
    """What an opcode does. lanes: how many lanes, from 0 on, give an address that counts."""

    op: str
    space: str
    width: int
    lanes: int = WARP


@lru_cache(maxsize=4096)
def read_opcode(text: str) -> Opcode | str | None:
    """What an opcode does to memory; a text: what it is instead; None: it is no known access."""
    name, *modifiers = text.split(".")
    if name in ASIDE:
        return ASIDE[name]
    if name not in SPACES:
        return None
    space = SPACES[name]
    if name in MATRICES:
        counts = [int(m) for m in modifiers if m in ("2", "4")]
        return Opcode(MATRICES[name], space, 16, 8 * (counts[-1] if counts else 1))
    width = _width(modifiers)
    if name == "LDGSTS":
        return Opcode("cp_async_cg" if "BYPASS" in modifiers else "cp_async", space, width)
    if name in LOADS or name in STORES:
        return Opcode("load" if name in LOADS else "store", space, width)
    if name in ("RED", "REDG"):
        return Opcode("reduction", space, width)
    return Opcode(_atomic(modifiers) if name == "ATOMS" else "atomic", space, width)


def _width(modifiers: list[str]) -> int:
    """Bytes a lane: the bits that a modifier names; 4 if none does."""
    for modifier in modifiers:
        bits = BITS.fullmatch(modifier)
        if bits:
            return int(bits[1]) // 8
    return DEFAULT_WIDTH


def _atomic(modifiers: list[str]) -> str:
    if "CAST" in modifiers:
        return "atomic_loop"
    if "CAS" in modifiers:
        return "atomic_cas"
    return "atomic_inc" if "POPC" in modifiers else "atomic"
