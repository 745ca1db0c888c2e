"""An access on its way from the emulator to the trace: the place that makes it, and its sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from memsim.instruction import Instruction
from memsim.state.sums import Int


@dataclass(frozen=True, slots=True)
class Site:
    """A place that accesses memory.

    index: its number, by which sites are ordered. access: what it does, by the name of an operation
    (`memsim.model.operations`). width: bytes per lane.
    """

    index: int
    instruction: Instruction
    access: str
    space: str
    width: int


class AccessSide(NamedTuple):
    """One side of an access, of which a copy has two: the lanes' addresses there, and the active lanes."""

    address: Int
    active: Any


def sides_of(address: Int, active: Any, other: AccessSide | None) -> list[AccessSide]:
    """The side of the site itself, and the other one of a copy."""
    own = AccessSide(address, active)
    return [own] if other is None else [own, other]


class Chunk(NamedTuple):
    """Blocks that run together: their linear numbers [B], and the threads of each, padded to whole warps.

    first: the number of the first of these threads in the block [B, 1]; not 0 if each warp is a row.
    """

    blocks: np.ndarray
    threads: int
    first: np.ndarray
