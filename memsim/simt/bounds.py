"""Whose bytes an access touches, and whether it may.

In: an address (values.py), the threads that use it, the layout of memory. Out: the names of the
buffers, or an error that names thread, block, buffer and source line. In global memory an access
must stay in a buffer that its address starts from, where the program tells which (ptx/slice.py): an
index far outside of one array does not become an access to another. Shared arrays lie side by side
on the chip, too, so there the bytes alone count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.errors import MemsimError
from memsim.ptx.demangle import short_name
from memsim.ptx.program import Instruction
from memsim.ptx.slice import ANYWHERE
from memsim.simt.arguments import POINTER_BYTES, is_struct
from memsim.simt.plan import where_in_source
from memsim.state.memory import (
    CONSTANT_WINDOW,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW_SIZE,
    Buffer,
    Layout,
)
from memsim.state.registers import Part, Sum, both, bounds, from_bools, invert, low_zeros, plus, to_array

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


class Bounds:
    """Checks the accesses of the blocks that run now."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.known: dict[tuple[int, ...], tuple[int, int]] = {}
        self.origins: dict[int, tuple[Buffer, ...]] = {}

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
        origins = self.origins_of(instruction) if space == "global" else ()
        if buffer is not None and (not origins or buffer in origins):
            return frozenset((buffer.name,))
        array = np.broadcast_to(to_array(address), self.machine.shape)
        owners = self.owners(layout, array, width)
        mask = self.machine.full(active)
        may = np.array([*(not origins or one in origins for one in layout.buffers), False])
        wrong = mask & ~may[owners]  # owner -1, no buffer, is the False at the end
        if wrong.any():
            self.leave(instruction, space, width, address, wrong)
        return frozenset(layout.buffers[i].name for i in np.unique(owners[mask & ~wrong]))

    def owners(self, layout: Layout, addresses: np.ndarray, width: int) -> np.ndarray:
        """Index of the buffer of each access, -1 where it is in none."""
        return layout.owners(addresses, width)

    def leave(
        self, instruction: Instruction, space: str, width: int, address: int | Sum, wrong: np.ndarray
    ) -> None:
        """These threads access no buffer that they may.

        Raises:
            MemsimError: always here.
        """
        raise self.error(instruction, space, width, address, wrong, "out-of-bounds")

    def origins_of(self, instruction: Instruction) -> tuple[Buffer, ...]:
        """The buffers in global memory that an instruction's address starts from; remembered."""
        key = id(instruction)
        if key not in self.origins:
            self.origins[key] = self.starts(instruction, "global")[0]
        return self.origins[key]

    def starts(self, instruction: Instruction, space: str) -> tuple[tuple[Buffer, ...], dict[str, int]]:
        """What an instruction's addresses in a space start from: buffers, and arguments that are numbers.

        Both are empty where the program does not tell.
        """
        plan, layout = self.machine.plan, self.layout(space)
        roots = plan.roots.of_instruction(instruction)
        parameters = [parameter for parameter in plan.function.parameters if parameter.name in roots]
        if ANYWHERE in roots or any(map(is_struct, parameters)):  # which pointer of a struct is not known
            return (), {}
        variables = [plan.memory.symbols[root] for root in sorted(roots & plan.memory.symbols.keys())]
        found = [layout.at(address) for kind, address in variables if kind == layout.space]
        numbers: dict[str, int] = {}
        for parameter in parameters if space == "global" else ():
            if parameter.size == POINTER_BYTES:
                value = int.from_bytes(plan.parameters[parameter.name], "little", signed=True)
                found.append(layout.find(value, value + 1))  # a view lies within its array
                if found[-1] is None:
                    numbers[plan.names.get(parameter.name, parameter.name)] = value
        return tuple(buffer for buffer in found if buffer is not None), numbers

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
        where, hint = self.where(instruction, space, at)
        return MemsimError(
            f"{what} {instruction.name} of {width} bytes{where} by {self.machine.places(from_bools(wrong))}",
            hint=hint,
            **self.place_of(instruction),
        )

    def place_of(self, instruction: Instruction) -> dict[str, Any]:
        """Where an instruction stands, for errors."""
        return where_in_source(instruction)

    def where(self, instruction: Instruction, space: str, at: int) -> tuple[str, str | None]:
        """An address in words, from the buffer it starts from, else the nearest; and what to do about it."""
        layout = self.layout(space)
        buffers, numbers = self.starts(instruction, space)
        if numbers and not buffers:
            said = ", ".join(f"argument {name} is {value}" for name, value in numbers.items())
            missing = f"give an array for {next(iter(numbers))} if it is a pointer"
            return f" at address {at:#x}, which is in no array ({said}),", missing
        if not layout.buffers:
            return f" at address {at:#x}, and the kernel has no {space} memory,", None
        buffer = min(buffers or layout.buffers, key=lambda one: max(one.start - at, at - one.end + 1, 0))
        size = buffer.end - buffer.start
        named = f"{short_name(buffer.name)} ({size} bytes)"
        hint = None
        if space == "shared" and buffer.start == self.machine.memory.dynamic_shared:
            hint = "the launch has to ask for dynamic shared memory by --shared-bytes (shared_bytes)"
        if at < buffer.start:
            return f", {buffer.start - at} bytes before {named},", hint
        return f" at byte {at - buffer.start} of {named}", hint


_WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("const", CONSTANT_WINDOW))


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
