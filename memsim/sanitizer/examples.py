"""What is found as a launch runs: by instructions, with one example of each and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Pair(NamedTuple):
    """Two instructions that race, the earlier one first.

    by_copy: the earlier one is `cp.async`. same_warp: by lanes of one warp. together: in one execution of one
    instruction. unfenced: they are ordered, but by different proxies without a proxy fence. far: one is by
    another block.
    """

    earlier: int
    later: int
    by_copy: bool
    same_warp: bool
    together: bool
    unfenced: bool = False
    far: bool = False


class Unwritten(NamedTuple):
    """An instruction that reads what nobody wrote; `partly`: of what a lane reads at once."""

    instruction: int
    partly: bool


@dataclass(slots=True)
class Example:
    """One of what is found: the threads, -1 if it is none, and the first byte.

    phase: block barriers behind each access. count: of late accesses in all blocks. other: the block of the
    earlier access, -1 if it is the same.
    """

    block: int
    earlier: int = -1
    later: int = -1
    place: int = 0
    phase: int = 0
    count: int = 0
    other: int = -1


Found = dict[Pair | Unwritten, Example]
