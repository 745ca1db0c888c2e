"""What is found in a launch: an error, with the accesses and threads that make it."""

from __future__ import annotations

from dataclasses import dataclass, field

from memsim.instruction import Instruction

#: Tools, by what they look for.
RACE = "race"
TOOLS = (RACE,)


@dataclass(frozen=True, slots=True)
class FoundAccess:
    """An access in a finding. does: "stores". block, thread: linear numbers."""

    instruction: Instruction
    does: str
    block: int
    thread: int


@dataclass(slots=True)
class Hazard:
    """One error, of all accesses of a pair of instructions.

    kind: in words. element: as `tile[3][0]`. offset: the first byte of `array` that the example accesses, of
    `width` that both do. count: late accesses, in all blocks. cure: what would order the two. doubt: why it
    is only possible; "" if it is certain. barriers: of the block, that both have behind them. allowed: the
    reason why it is allowed; None if it is not.
    """

    tool: str
    kind: str
    first: FoundAccess
    second: FoundAccess
    space: str
    array: str
    element: str
    offset: int
    width: int
    count: int
    cure: str
    doubt: str = ""
    barriers: int = 0
    allowed: str | None = field(default=None)

    @property
    def lines(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """(file, line) of both accesses."""
        places = (one.instruction.source for one in (self.first, self.second))
        first, second = (("", 0) if place is None else (place.file, place.line) for place in places)
        return first, second
