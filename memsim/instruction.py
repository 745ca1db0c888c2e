"""An instruction as reports name it: its text, and where it stands in the source and in the machine code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A source line; `callers` are the lines into which it was inlined, innermost first.

    file: "" for PTX without line information, whose own line it is then.
    """

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
        """`kernel.cu:12`, or `PTX:12`, or the address."""
        return (
            f"{self.source.file or 'PTX'}:{self.source.line}" if self.source else f"address {self.address:#x}"
        )
