"""Tells whether the accesses of a few blocks are regular, before many of them run at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.access import AccessSide, Site
from memsim.errors import MemsimError
from memsim.isa.machine_protocol import Mask
from memsim.launch import Launch
from memsim.simt.bounds import Origins
from memsim.simt.code import Code
from memsim.simt.engine import Engine
from memsim.state.launch_memory import Memory
from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.state.sums import Int


def are_regular(code: Code, memory: Memory, origins: Origins, launch: Launch, max_steps: int) -> bool:
    """Whether the blocks at both ends of the grid are regular, where guards leave some threads out.

    Blocks far from each other are tried apart, as addresses in two words are sums only within 4 GiB.
    memory: of its own for this trial.
    """
    ears = RegularAccesses()
    tried = Engine(code, memory, origins, launch, ears, max_steps)
    for end in (0, 1):
        x, y, z = np.meshgrid(*(_two(number, end) for number in launch.grid), indexing="ij")
        try:
            tried.run(np.sort((x + launch.grid[0] * (y + launch.grid[1] * z)).ravel()))
        except MemsimError:  # the launch itself says which block it is
            return False
        if not (ears.are_regular and memory.is_unused):
            return False
    return True


def _two(number: int, end: int) -> np.ndarray:
    """The first or the last two of a number of blocks."""
    return np.unique((0, min(1, number - 1)) if end == 0 else (max(0, number - 2), number - 1))


class RegularAccesses:
    """A listener for the blocks.

    are_regular: every address was a sum of a block's part and a thread's part, and which lanes executed an
    instruction or accessed memory depended on the block or on the thread, but not on both.
    """

    def __init__(self) -> None:
        self.are_regular = True

    def access(
        self,
        site: Site,
        address: Int,
        mask: Mask,
        active: Mask,
        arrays: frozenset[str],
        other: AccessSide | None = None,
    ) -> None:
        """Look at the address and the lanes."""
        for place, lanes in (
            [AccessSide(address, active)] if other is None else [AccessSide(address, active), other]
        ):
            if (isinstance(place, Sum) and place.f is not None) or _is_of_each_thread(lanes):
                self.are_regular = False

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Look at the lanes that execute something."""
        if _is_of_each_thread(mask):
            self.are_regular = False

    def irregular(self, *event: Any) -> None:
        """Accesses of single lanes, and copies that are known warp by warp."""
        self.are_regular = False

    def ignore(self, *event: Any) -> None:
        """Nothing to see."""

    scattered = stretches = irregular
    start_chunk = issued = unknown = uncounted = noted = uncertain = passed_by = ignore


def _is_of_each_thread(lanes: Mask) -> bool:
    return isinstance(lanes, Part) and min(lanes.shape) > 1
