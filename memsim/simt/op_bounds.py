"""Whose bytes an access of a program touches, and whether it may: `Bounds` for machine code.

In: an address, the lanes that use it, the layout of memory. Out: the names of the arrays, or an error with
its place. Which array an address starts from is known by the parameter it comes from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.isa.op import Op
from memsim.simt.bounds import Bounds
from memsim.simt.dataflow import ANYWHERE
from memsim.state.memory import Buffer, Layout, align
from memsim.state.registers import Sum, bounds, from_bools, low_zeros, to_array

if TYPE_CHECKING:
    from memsim.simt.engine import Engine


def place_in_source(op: Op) -> dict[str, Any]:
    """The place of an instruction, for errors."""
    if op.source is not None:
        return {"file": op.source.file, "line": op.source.line}
    return {"file": f"machine code at {op.address:#x}"}


class OpBounds(Bounds):
    """Checks the accesses of the blocks that run now."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)  # type: ignore[arg-type]
        self.engine = engine
        #: Does the access that is checked write nothing, and the lanes of it that leave their arrays.
        self.only_reads = False
        self.outside: Any = False

    def check(
        self, instruction: Any, space: str, width: int, address: int | Sum, active: Any
    ) -> frozenset[str]:
        """As `Bounds.check`; in shared memory compilers merge accesses to arrays that lie side by side.

        They also read all 16 bytes of which the source wants only the first few.
        """
        if space != "shared":
            return super().check(instruction, space, width, address, active)
        layout = self.layout(space)
        low, high = bounds(address)
        if 1 << low_zeros(address) >= width:
            buffer = layout.find(low, high + width)
            if buffer is not None:
                return frozenset((buffer.name,))
        array = np.broadcast_to(to_array(address), self.engine.shape)
        mask = self.engine.full(active)
        inside = array[mask]
        end = align(layout.end, 16)
        if inside.min() < layout.base or inside.max() + width > end or (inside & (width - 1)).any():
            return super().check(instruction, space, width, address, active)
        owners = layout.owners(array, 1)
        return frozenset(layout.buffers[i].name for i in np.unique(owners[mask]) if i >= 0)

    def owners(self, layout: Layout, addresses: np.ndarray, width: int) -> np.ndarray:
        """As `Bounds.owners`; a word of four bytes at an array's end is its own if its first byte is.

        Atomics on numbers of two bytes are made of it, and every allocation holds whole words.
        """
        return super().owners(layout, addresses, 1 if width == 4 else width)

    def leave(self, instruction: Any, space: str, width: int, address: int | Sum, wrong: np.ndarray) -> None:
        """As `Bounds.leave`; where it is allowed, remembers who it was."""
        if self.only_reads and self.engine.allow_out_of_bounds:
            self.outside = from_bools(wrong)
            return
        error = self.error(instruction, space, width, address, wrong, "out-of-bounds")
        if self.only_reads and error.hint is None:
            error.hint = "--allow-out-of-bounds, or allow_out_of_bounds, counts it if the kernel is known to"
        raise error

    def starts(self, instruction: Any, space: str) -> tuple[tuple[Buffer, ...], dict[str, int]]:
        """What an instruction's addresses in a space start from: arrays, and arguments that are numbers."""
        if space != "global":
            return (), {}
        code = self.engine.code
        roots = code.dataflow.roots_of(instruction.index)
        if roots & ANYWHERE:
            return (), {}
        found = [buffer for bit, buffer in code.pointers.items() if roots & bit]
        numbers = {} if found else {name: value for bit, (name, value) in code.numbers.items() if roots & bit}
        return tuple(found), numbers

    def place_of(self, instruction: Any) -> dict[str, Any]:
        """Where an instruction stands."""
        return place_in_source(instruction)
