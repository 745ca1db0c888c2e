"""Cubins in which a loop of 128 instructions is what a pattern says, in place of that of banks.cu.

A pattern is texts separated by blanks: an instruction's name, its stall count, and maybe which counter is
released when its result is there (`>0`) or its operands are read (`)0`), and which it waits for (`<0`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from lab.time.register_banks import loop_of
from memsim.time.control_codes import NO_COUNTER, SHIFT, SIZE, ControlCode

#: What it is, and its lower and upper eight bytes without control bits. `_`: with a guard that is never true.
FORMS = {
    "FFMA": ("FFMA RZ, RZ, RZ, RZ", 0x000000FFFFFF7223, 0xFF),
    "_FFMA": ("@!PT FFMA RZ, RZ, RZ, RZ", 0x000000FFFFFFF223, 0xFF),
    "IADD3": ("IADD3 RZ, RZ, RZ, RZ", 0x000000FFFFFF7210, 0x07FFE0FF),
    "IMAD": ("IMAD RZ, RZ, RZ, RZ", 0x000000FFFFFF7224, 0x078E02FF),
    "MOV": ("MOV RZ, RZ", 0x000000FF00FF7202, 0xF00),
    "ISETP": ("ISETP.GE.AND PT, PT, RZ, RZ, PT", 0x000000FFFF00720C, 0x03FFE270),
    "DFMA": ("DFMA RZ, RZ, RZ, RZ", 0x000000FFFFFF722B, 0xFF),
    "HMMA": ("HMMA.1688.F32 RZ, RZ, RZ, RZ", 0x000000FFFFFF723C, 0x10FF),
    "MUFU": ("MUFU.RCP R0, RZ", 0x000000FF00FF7308, 0x1000),
    "_MUFU": ("@!PT MUFU.RCP RZ, RZ", 0x000000FF00FFF308, 0x1000),
    "VOTE": ("VOTE.ANY R0, PT, PT", 0x0000000000FF7806, 0x038E0100),
    "CS2R": ("CS2R R0, SR_CLOCKLO", 0x0000000000FE7805, 0x15000),
    "S2R": ("S2R R0, SR_TID.X", 0x0000000000FF7919, 0x2100),
    "S2UR": ("S2UR URZ, SR_CgaCtaId", 0x00000000003F79C3, 0x8800),
    "LDC": ("LDC R0, c[0x0][0x210]", 0x00008400FFFF7B82, 0x800),
    "ULDC": ("ULDC URZ, c[0x0][0x208]", 0x00008200003F7AB9, 0x800),
    "UMOV": ("UMOV URZ, 0x400", 0x00000400003F7882, 0),
    "SHFL": ("SHFL.BFLY PT, R0, RZ, 0x1, 0x1f", 0x0C201F00FFFF7F89, 0x000E0000),
    "LDS": ("LDS R0, [RZ+0x400]", 0x00040000FFFF7984, 0x800),
    "_LDS": ("@!PT LDS R0, [RZ+0x400]", 0x00040000FFFFF984, 0x800),
    "LDSW": ("LDS.128 RZ, [RZ+0x400]", 0x00040000FFFF7984, 0xC00),
    "STS": ("STS [RZ+0x400], RZ", 0x000400FFFF007388, 0x800),
    "STSW": ("STS.128 [RZ+0x400], RZ", 0x000400FFFF007388, 0xC00),
    "_LDG": ("@!PT LDG.E RZ, desc[UR6][RZ.64]", 0x00000006FFFFF981, 0x0C1E1900),
    "NOP": ("NOP", 0x0000000000007918, 0),
    "WARPSYNC": ("WARPSYNC.ALL", 0x0000000000007948, 0x03800000),
    "MEMBAR": ("MEMBAR.SC.CTA", 0x0000000000007992, 0),
    "BAR": ("BAR.SYNC.DEFER_BLOCKING 0x0", 0x0000000000007B1D, 0x10000),
    "BRA": ("BRA `(.L_x_1)", 0x0000000000007947, 0x03800000),  # to the next one
    "_BRA": ("@!PT BRA `(.L_x_1)", 0x000000000000F947, 0x03800000),
    "BSSY": ("BSSY B5, `(.L_x_1)", 0x0000000000057945, 0x03800000),  # to the next BSYNC: `patched`
    "BSYNC": ("BSYNC B5", 0x0000000000057941, 0x03800000),
    "_EXIT": ("@!PT EXIT", 0x000000000000F94D, 0x03800000),
}
#: They write to a register, which has to be one that nothing else needs.
_WRITE = frozenset("MUFU VOTE CS2R S2R LDC SHFL LDS _LDS".split())
_TEXT = re.compile(r"(_?[A-Z]+3?|[A-Z]+\d?[A-Z]+)(\d)((?:[<>)]\d)*)$")


class Asked(NamedTuple):
    """An instruction of a pattern. name: of `FORMS`."""

    name: str
    control: ControlCode


def asked(text: str) -> Asked:
    """One text of a pattern."""
    found = _TEXT.match(text)
    assert found is not None and found[1] in FORMS, text
    counters = dict(re.findall(r"([<>)])(\d)", found[3]))
    result, operands = (int(counters[sign]) if sign in counters else None for sign in ">)")
    waits = (int(counters["<"]),) if "<" in counters else ()
    return Asked(found[1], ControlCode(int(found[2]), False, result, operands, waits, 0))


def patched(content: bytes, patterns: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(pattern, cubin) of each pattern, repeated as often as there is room. content: that of banks.cu."""
    start, places, free = loop_of(content)
    pair = next(number for number in free if number % 2 == 0 and number + 1 in free)
    for pattern in patterns:
        ones = [asked(text) for text in pattern.split()]
        times = len(places) // len(ones)
        filled = list(chain(ones * times, [asked("NOP1")] * (len(places) - times * len(ones))))
        made = bytearray(content)
        for number, (place, one) in enumerate(zip(places, filled)):
            names = [other.name for other in filled[number:]] if one.name == "BSSY" else ["BSYNC"]
            code = _encoded(one, pair, names.index("BSYNC"))
            made[start + place * SIZE : start + (place + 1) * SIZE] = code
        yield pattern, bytes(made)


def _encoded(one: Asked, pair: int, ahead: int) -> bytes:
    """The bytes of an instruction. pair: of registers to write to. ahead: instructions to a BSYNC."""
    _, lower, upper = FORMS[one.name]
    if one.name in _WRITE:
        lower = lower & ~(0xFF << 16) | pair << 16
    lower += ahead * SIZE << 32
    control, counters = one.control, (one.control.result, one.control.operands)
    bits = control.stall | 1 << 4 | sum(1 << 11 + number for number in control.waits)
    for shift, counter in zip((5, 8), counters):
        bits |= (NO_COUNTER if counter is None else counter) << shift
    return lower.to_bytes(8, "little") + (upper | bits << SHIFT).to_bytes(8, "little")
