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
INDEXED = re.compile(r"\]\[R[0-9]")  # c[0x3][R4+0x10]


def opcode(sass: str) -> str:
    """`@!P0 LDG.E.128 R4, desc[UR4][R2.64]` -> `LDG.E.128`."""
    words = sass.split()
    return words[1] if words[0].startswith("@") else words[0]


def access_of(sass: str) -> str | None:
    """The kind of access, such as "shared load"; None if it is not a memory access."""
    name = opcode(sass).partition(".")[0]
    return None if name == "LDC" and not INDEXED.search(sass) else ACCESSES.get(name)


def never_runs(sass: str) -> bool:
    """`@!PT LDS RZ, [RZ]`, which ptxas inserts between other instructions; PT is always true."""
    return sass.startswith("@!PT ")
