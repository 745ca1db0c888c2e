"""Access sites that are not of a kernel's code: of index math in Python, and of other tools' traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memsim.isa.op import Place as Place


@dataclass(frozen=True, slots=True)
class Statement:
    """What makes the access, in the role of an instruction: a line of Python, or an opcode that a tool named.

    address: of machine code; -1 if there is none.
    """

    text: str
    source: Place | None = None
    address: int = -1

    @property
    def line(self) -> int:
        """Of the source; 0 if unknown."""
        return self.source.line if self.source else 0

    @property
    def column(self) -> int:
        """Of the source; 0 if unknown."""
        return self.source.column if self.source else 0

    @property
    def name(self) -> str:
        """Its name in explanations."""
        return self.text


@dataclass(frozen=True, slots=True)
class PlainSite:
    """A place that accesses memory, as the recorder takes it."""

    index: int
    instruction: Statement
    op: str
    space: str
    width: int


@dataclass(frozen=True)
class CopySource:
    """The other side of a copy: the lanes' addresses there, and which lanes read."""

    address: Any
    active: Any
