"""How long a kernel of the catalogue may take: what a dispatcher chooses by.

In: constants that were measured on one chip, and a grid. Out: nanoseconds. Left out on purpose: any claim
beyond the choice; what a launch takes at least is said by `memsim.bound`, and what it takes is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

MULTIPROCESSORS = 132  # of the chip that the constants are of, an H200


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a kernel whose blocks all do the same.

    start: nanoseconds of a block besides its lines. line: nanoseconds for a line of K where each
    multiprocessor has one block, two, ... up to as many as fit.
    """

    start: float
    line: tuple[float, ...]

    def nanoseconds(self, blocks: int, lines: float) -> float:
        """Of a launch: as many rounds as it takes, the last of which may not fill the multiprocessors."""
        rounds, rest = divmod(-(-blocks // MULTIPROCESSORS), len(self.line))
        full = rounds * (self.start + lines * self.line[-1])
        return full + (self.start + lines * self.line[rest - 1] if rest else 0.0)


@dataclass(frozen=True, slots=True)
class Adding:
    """What it takes to add parts: nanoseconds for a launch, and for each float that is read or written."""

    start: float
    each: float

    def nanoseconds(self, parts: int, floats: int) -> float:
        """For so many parts of so many floats; nothing where there is one."""
        return self.start + (2 * parts + 1) * floats * self.each if parts > 1 else 0.0
