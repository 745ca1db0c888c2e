"""An instruction as reports name it: its text, and where it stands in the source and in the machine code."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GUARD = re.compile(r"@(!?U?P[0-9])")
_CONDITION = re.compile(r"\], !?(U?P[0-9])$")


@dataclass(frozen=True, slots=True)
class Place:
    """A source line; `callers` are the lines into which it was inlined, innermost first."""

    file: str
    line: int
    column: int = 0
    callers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """Also a line of Python that makes an access, and an opcode that another tool's trace names.

    address: its offset from the kernel's first byte; -1 if it has none.
    """

    text: str
    source: Place | None = None
    address: int = -1

    @property
    def name(self) -> str:
        """Its name in explanations."""
        return self.text

    @property
    def line(self) -> int:
        """The source line, 0 if unknown."""
        return self.source.line if self.source else 0

    @property
    def column(self) -> int:
        """The column in the source line; 0 if unknown, as for machine code."""
        return self.source.column if self.source else 0

    @property
    def where(self) -> str:
        """`kernel.cu:12`, or the address."""
        return f"{self.source.file}:{self.source.line}" if self.source else f"address {self.address:#x}"


def opcode_of(sass: str) -> str:
    """`LDG.E.128` of `@!P0 LDG.E.128 R4, desc[UR4][R2.64]`; "" of a text without one."""
    return next((word for word in sass.split() if not word.startswith("@")), "")


def guard_of(sass: str) -> str:
    """The predicate that can switch lanes off, `P2` or `!P0`; "" if there is none."""
    found = _GUARD.match(sass)
    return found[1] if found else ""


def condition_of(sass: str) -> str:
    """`P0` of `LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64], P0`: in which lanes a copy reads; others write
    zeros. "" if all read.
    """
    found = _CONDITION.search(sass)
    return found[1] if found else ""
