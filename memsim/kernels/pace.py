"""Time estimates by which a dispatcher chooses a kernel.

The constants were measured on one chip and serve this choice only; lower bounds are in `memsim.bound`.
"""

from __future__ import annotations

from dataclasses import dataclass

MULTIPROCESSORS = 132  # of the chip on which the constants were measured, an H200


@dataclass(frozen=True, slots=True)
class Pace:
    """The time estimate of a kernel whose blocks all do the same.

    start: nanoseconds of a block besides its lines. line: nanoseconds per line of K if each multiprocessor
    has one block, two, ... up to as many as fit.
    """

    start: float
    line: tuple[float, ...]

    @property
    def wave(self) -> int:
        """As many blocks as fit the chip at a time."""
        return MULTIPROCESSORS * len(self.line)

    def nanoseconds(self, blocks: int, lines: int) -> float:
        """Of all blocks, in as many waves as needed; the last may not fill the multiprocessors."""
        waves, rest = divmod(-(-blocks // MULTIPROCESSORS), len(self.line))
        full = waves * (self.start + lines * self.line[-1])
        return full + (self.start + lines * self.line[rest - 1] if rest else 0.0)


@dataclass(frozen=True, slots=True)
class Adding:
    """The time estimate of adding parts: nanoseconds per launch, and per float read or written."""

    start: float
    each: float

    def nanoseconds(self, parts: int, floats: int) -> float:
        """For so many parts of so many floats; zero for a single part."""
        return self.start + (2 * parts + 1) * floats * self.each if parts > 1 else 0.0
