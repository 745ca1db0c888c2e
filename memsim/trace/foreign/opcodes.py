"""Memory operations by opcode, as traces of other tools name it: `LDG.E.128`.

Source: CUDA Binary Utilities, "Instruction Set Reference"; which shared atomic is which: docs/model.md.
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
#: Opcodes that are not counted as accesses to shared or global memory, with their names in reports.
UNCOUNTED = {
    **dict.fromkeys(("LDL", "STL"), "local memory"),
    **dict.fromkeys(("LDC", "LDCU", "ULDC"), "constant memory"),
    **dict.fromkeys(("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UBLKCP", "UBLKPF", "UBLKRED"), "bulk copy"),
    **dict.fromkeys(("TEX", "TLD", "TLD4", "TXD", "TMML", "SULD", "SUST", "SUATOM", "SURED"), "texture"),
}
LOADS, STORES = ("LDG", "LDS", "LD"), ("STG", "STS", "ST")
MATRICES = {"LDSM": "ldmatrix", "STSM": "stmatrix"}
BITS = re.compile(r"[USFB]?(?:F)?(8|16|32|64|128)")
DEFAULT_WIDTH = 4


@dataclass(frozen=True, slots=True)
class Opcode:
    """The memory operation of an opcode. lanes: how many lanes, from 0 on, supply an address."""

    access: str
    space: str
    width: int
    lanes: int = WARP


@lru_cache(maxsize=4096)
def read_opcode(text: str) -> Opcode | str | None:
    """The memory operation; a text: the name of an uncounted one; None: not a known access."""
    name, *modifiers = text.split(".")
    if name in UNCOUNTED:
        return UNCOUNTED[name]
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
    """Bytes per lane, from the modifier with a number of bits; default 4."""
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
