"""Memory accesses by opcode, from SASS text as ncu prints it.

Textures, which memsim does not predict, are not recognized.
"""

from __future__ import annotations

import re

from memsim.model.operations import OPERATIONS

# Opcode -> access, as far as the opcode tells.
ACCESSES = {
    **{opcode: operation.access for operation in OPERATIONS.values() for opcode in operation.opcodes},
    **{"LD": "generic load", "ST": "generic store", "ATOM": "generic atomic"},
}
GUARD = re.compile(r"@(!?U?P[0-9])")
CONDITION = re.compile(r"\], !?(U?P[0-9])$")
INDEXED = re.compile(r"\]\[R[0-9]")  # c[0x3][R4+0x10]


def opcode(sass: str) -> str:
    """`@!P0 LDG.E.128 R4, desc[UR4][R2.64]` -> `LDG.E.128`."""
    words = sass.split()
    return words[1] if words[0].startswith("@") else words[0]


def access_of(sass: str) -> str | None:
    """The kind of access, such as "shared load"; None if it is not a memory access."""
    name = opcode(sass).partition(".")[0]
    return None if name == "LDC" and not INDEXED.search(sass) else ACCESSES.get(name)


def guard_of(sass: str) -> str:
    """The predicate that can switch lanes off, `P2` or `!P0`; "" if there is none."""
    found = GUARD.match(sass)
    return found[1] if found else ""


def condition_of(sass: str) -> str:
    """`P0` of `LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64], P0`: in which lanes a copy reads; others write
    zeros. "" if all read.
    """
    found = CONDITION.search(sass)
    return found[1] if found else ""


def never_runs(sass: str) -> bool:
    """`@!PT LDS RZ, [RZ]`, which ptxas inserts between other instructions; PT is always true."""
    return sass.startswith("@!PT ")
