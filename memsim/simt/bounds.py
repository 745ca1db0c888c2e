"""Whose bytes an access touches, and whether it may.

In: an address (values.py), the threads that use it, the layout of memory. Out: the names of the
buffers, or an error that names thread, block, buffer and source line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.errors import MemsimError
from memsim.ptx.program import Instruction
from memsim.simt.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, WINDOW_SIZE, Layout
from memsim.simt.plan import where_in_source
from memsim.simt.values import Part, Sum, both, bounds, from_bools, invert, low_zeros, plus, to_array

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


class Bounds:
    """Checks the accesses of the blocks that run now."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.known: dict[tuple[int, ...], tuple[int, int]] = {}

    def layout(self, space: str) -> Layout:
        """The buffers of a state space."""
        return self.machine.memory.layouts["local" if space == "param" else space]

    def check(
        self, instruction: Instruction, space: str, width: int, address: int | Sum, active: Any
    ) -> frozenset[str]:
        """Names of the buffers that hold the access.

        Raises:
            MemsimError: misaligned or outside every buffer.
        """
        if 1 << low_zeros(address) < width:
            self.check_alignment(instruction, space, width, address, active)
        layout = self.layout(space)
        lo, hi = bounds(address)
        buffer = layout.find(lo, hi + width)
        if buffer is None and isinstance(address, Sum) and active is not True:
            lo, hi = self.of_active(address, active)
            buffer = layout.find(lo, hi + width)
        if buffer is not None:
            return frozenset((buffer.name,))
        array = np.broadcast_to(to_array(address), self.machine.shape)
        owners = layout.owners(array, width)
        mask = self.machine.full(active)
        wrong = mask & (owners < 0)
        if wrong.any():
            raise self.error(instruction, space, width, address, wrong, "out-of-bounds")
        return frozenset(layout.buffers[i].name for i in np.unique(owners[mask]))

    def check_alignment(
        self, instruction: Instruction, space: str, width: int, address: int | Sum, active: Any
    ) -> None:
        """Is every active thread's address a multiple of the width?"""
        off = np.broadcast_to((to_array(address) & (width - 1)) != 0, self.machine.shape)
        wrong = self.machine.full(active) & off
        if wrong.any():
            raise self.error(instruction, space, width, address, wrong, "misaligned")

    def of_active(self, address: Sum, active: Part) -> tuple[int, int]:
        """Smallest and largest address of the active threads; remembered without the constant."""
        key = (*(part.uid for part in address.parts), active.uid)
        if key not in self.known:
            if len(self.known) > 4096:
                self.known.clear()
            inside = np.broadcast_to(address.array, self.machine.shape)[self.machine.full(active)]
            self.known[key] = int(inside.min()) - address.s, int(inside.max()) - address.s
        lo, hi = self.known[key]
        return lo + address.s, hi + address.s

    def error(
        self,
        instruction: Instruction,
        space: str,
        width: int,
        address: int | Sum,
        wrong: np.ndarray,
        what: str,
    ) -> MemsimError:
        """The error for the first thread whose access is wrong."""
        first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        position = int(first[0]), int(first[1])
        at = int(np.broadcast_to(to_array(address), self.machine.shape)[position])
        buffers = self.layout(space).buffers
        near = [buffer for buffer in buffers if buffer.start <= at] or buffers
        if near:
            buffer = near[-1]
            where = f"byte {at - buffer.start} of {buffer.name} ({buffer.end - buffer.start} bytes)"
        else:
            where = f"address {at:#x}, and the kernel has no {space} memory"
        return MemsimError(
            f"{what} {instruction.name} of {width} bytes at {where} by {self.machine.place(position)}"
            f" ({int(wrong.sum())} threads in all)",
            **where_in_source(instruction),
        )


_WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW))


def resolve_generic(address: int | Sum, active: Any) -> list[tuple[str, int | Sum, Any]]:
    """(space, address in it, threads) of a generic address, one for each space that is hit."""
    lo, hi = bounds(address)
    for space, start in _WINDOWS:
        if start <= lo and hi < start + WINDOW_SIZE:
            return [(space, plus(address, -start), active)]
    if lo >= GLOBAL_BASE:
        return [("global", address, active)]
    array = to_array(address)
    left = active
    found: list[tuple[str, int | Sum, Any]] = []
    for space, start in _WINDOWS:
        inside = from_bools((array >= start) & (array < start + WINDOW_SIZE))
        part = both(left, inside)
        if part is not False:
            found.append((space, plus(address, -start), part))
            left = both(left, invert(inside))
    return [*found, ("global", address, left)] if left is not False else found
