"""Bounds checks: which buffers an access touches, and whether it is allowed to.

In global memory an access must stay in a buffer that its address is derived from, if the program tells which
(dataflow.py): an index far out of bounds of one array does not become an access to another. Shared arrays are
adjacent on the chip, so for them only the total size counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from memsim.isa.op import Trait
from memsim.isa.program import Op
from memsim.names.demangle import short_name
from memsim.simt.active_lanes import Lanes
from memsim.simt.dataflow import Dataflow
from memsim.simt.faults import KernelFault, place_in_source
from memsim.simt.pointer_roots import ANYWHERE
from memsim.state.address_spaces import (
    CONSTANT_WINDOW,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW_SIZE,
    Buffer,
    SpaceLayout,
    align,
)
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask, Part
from memsim.state.predicates import both, either, from_bools, invert
from memsim.state.registers import Sum, bounds, low_zeros, plus, to_array
from memsim.state.sums import Int


@dataclass(frozen=True)
class Origins:
    """What addresses in global memory are derived from.

    pointers: arrays by the root (a bit of `dataflow.roots_of`) of the parameter or variable that points to
    them. numbers: name and value of other 8-byte arguments, likewise.
    """

    dataflow: Dataflow
    pointers: Mapping[int, Buffer] = field(default_factory=dict)
    numbers: Mapping[int, tuple[str, int]] = field(default_factory=dict)


#: What to do where no dynamic shared memory was given, or too little.
DYNAMIC = "set the size of dynamic shared memory by --shared-bytes (shared_bytes)"


class Bounds:
    """Checks the accesses of the running blocks. collect: takes the errors; None: they are raised."""

    def __init__(
        self,
        lanes: Lanes,
        memory: Memory,
        origins: Origins,
        allow_out_of_bounds: bool,
        collect: Callable[[KernelFault], None] | None,
    ) -> None:
        self.collect = collect
        self.lanes = lanes
        self.memory = memory
        self.of_program = origins
        self.allow_out_of_bounds = allow_out_of_bounds
        self.known: dict[tuple[int, ...], tuple[int, int]] = {}
        self.origins: dict[int, tuple[Buffer, ...]] = {}
        #: Whether the access being checked only reads, and its lanes that are out of bounds.
        self.only_reads = False
        self.outside: Mask = False

    def layout(self, space: str) -> SpaceLayout:
        """The buffers of a state space."""
        return self.memory.layouts[space]

    def check(self, op: Op, space: str, width: int, address: int | Sum, active: Mask) -> frozenset[str]:
        """Names of the buffers that contain the access.

        In shared memory compilers merge accesses to adjacent arrays, and read 16 bytes of which the source
        uses only the first.

        Raises:
            MemsimError: misaligned or outside of every buffer.
        """
        return (
            self._of_shared(op, width, address, active)
            if space == "shared"
            else self._of_buffers(op, space, width, address, active)
        )

    def _of_shared(self, op: Op, width: int, address: int | Sum, active: Mask) -> frozenset[str]:
        layout = self.layout("shared")
        if 1 << low_zeros(address) >= width:
            buffer = self.only_buffer(layout, width, address, active)
            if buffer is not None:
                return frozenset((buffer.name,))
        array = np.broadcast_to(to_array(address), self.lanes.shape)
        mask = self.lanes.full(active)
        inside = array[mask]
        end = align(layout.end, 16)
        if inside.min() < layout.base or inside.max() + width > end or (inside & (width - 1)).any():
            return self._of_buffers(op, "shared", width, address, active)
        owners = layout.owners(array, 1)
        return frozenset(layout.buffers[i].name for i in np.unique(owners[mask]) if i >= 0)

    def _of_buffers(self, op: Op, space: str, width: int, address: int | Sum, active: Mask) -> frozenset[str]:
        if 1 << low_zeros(address) < width:
            self.check_alignment(op, space, width, address, active)
        layout = self.layout(space)
        buffer = self.only_buffer(layout, width, address, active)
        origins = self.origins_of(op) if space == "global" else ()
        if buffer is not None and (not origins or buffer in origins):
            return frozenset((buffer.name,))
        array = np.broadcast_to(to_array(address), self.lanes.shape)
        # A 4-byte word at an array's end is inside if its first byte is: atomics on 2-byte numbers access
        # whole words, and every allocation consists of whole words.
        owners = layout.owners(array, 1 if width == 4 else width)
        mask = self.lanes.full(active)
        may = np.array([*(not origins or one in origins for one in layout.buffers), False])
        wrong = mask & ~may[owners]  # owner -1, no buffer, is the False at the end
        if wrong.any():
            self.leave(op, space, width, address, wrong)
        return frozenset(layout.buffers[i].name for i in np.unique(owners[mask & ~wrong]))

    def only_buffer(self, layout: SpaceLayout, width: int, address: int | Sum, active: Mask) -> Buffer | None:
        """The one that all threads access, or all active ones; None if there are several, or none."""
        low, high = bounds(address)
        buffer = layout.find(low, high + width)
        if buffer is None and isinstance(address, Sum) and isinstance(active, Part):
            low, high = self.of_active(address, active)
            buffer = layout.find(low, high + width)
        return buffer

    def leave(self, op: Op, space: str, width: int, address: int | Sum, wrong: np.ndarray) -> None:
        """These threads are out of bounds; where that is allowed, record them.

        Raises:
            MemsimError: it is not allowed.
        """
        if self.only_reads and self.allow_out_of_bounds:
            self.outside = from_bools(wrong)
            return
        error = self.error(op, space, width, address, wrong, "out-of-bounds")
        if error.hint is None:
            error.hint = "\n".join(self.ways_out(op, space, width, address, wrong)) or None
        self.stop(error, wrong)

    def stop(self, error: KernelFault, wrong: np.ndarray) -> None:
        """A GPU stops here. Where errors are collected, these threads go on without the access.

        Raises:
            KernelFault: they are not.
        """
        if self.collect is None:
            raise error
        self.collect(error)
        self.outside = either(self.outside, from_bools(wrong))

    def ways_out(
        self, op: Op, space: str, width: int, address: int | Sum, wrong: np.ndarray
    ) -> Iterator[str]:
        """What the user can do: an array may be too small, or be exceeded on purpose."""
        at = np.broadcast_to(to_array(address), self.lanes.shape)[wrong]
        buffers, _ = self.starts(op, space)
        if len(buffers) == 1 and at.min() >= buffers[0].end:
            needed = int(at.max()) + width - buffers[0].start
            yield f"{short_name(buffers[0].name)} may be too small: this access needs {needed:,} bytes of it"
        if self.only_reads:
            yield "--allow-out-of-bounds (allow_out_of_bounds) counts it if the kernel does that on purpose"

    def origins_of(self, op: Op) -> tuple[Buffer, ...]:
        """The buffers in global memory that an instruction's address is derived from; cached."""
        if op.index not in self.origins:
            self.origins[op.index] = self.starts(op, "global")[0]
        return self.origins[op.index]

    def starts(self, op: Op, space: str) -> tuple[tuple[Buffer, ...], dict[str, int]]:
        """What an instruction's addresses in a space are derived from: buffers, and arguments that are
        numbers.

        Both are empty if the program does not tell, as of tensors, which only their maps do.
        """
        if space != "global" or Trait.READS_MAP in op.traits:
            return (), {}
        program = self.of_program
        roots = program.dataflow.roots_of(op.index)
        if roots & ANYWHERE:
            return (), {}
        found = [buffer for bit, buffer in program.pointers.items() if roots & bit]
        numbers = (
            {} if found else {name: value for bit, (name, value) in program.numbers.items() if roots & bit}
        )
        return tuple(found), numbers

    def map_may_be_made(self, op: Op) -> bool:
        """Does the tensor map that an instruction reads lie where the kernel itself may have made it?"""
        roots = self.of_program.dataflow.roots_of(op.index)
        return any(roots & bit for bit in (ANYWHERE, *self.of_program.pointers))

    def check_alignment(self, op: Op, space: str, width: int, address: int | Sum, active: Mask) -> None:
        """Is every active thread's address a multiple of the width?"""
        off = np.broadcast_to((to_array(address) & (width - 1)) != 0, self.lanes.shape)
        wrong = self.lanes.full(active) & off
        if wrong.any():
            self.stop(self.error(op, space, width, address, wrong, "misaligned"), wrong)

    def of_active(self, address: Sum, active: Part) -> tuple[int, int]:
        """Smallest and largest address of the active threads; cached without the constant."""
        if address.f is not None and active.shape == address.f.shape:
            inside = address.f.only(active)
            return inside.lo + address.s, inside.hi + address.s
        key = (*(part.uid for part in address.parts), active.uid)
        if key not in self.known:
            if len(self.known) > 4096:
                self.known.clear()
            inside = np.broadcast_to(address.array, self.lanes.shape)[self.lanes.full(active)]
            self.known[key] = int(inside.min()) - address.s, int(inside.max()) - address.s
        lo, hi = self.known[key]
        return lo + address.s, hi + address.s

    def error(
        self,
        op: Op,
        space: str,
        width: int,
        address: int | Sum,
        wrong: np.ndarray,
        what: str,
    ) -> KernelFault:
        """The error for the first thread whose access is wrong."""
        first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        position = int(first[0]), int(first[1])
        at = int(np.broadcast_to(to_array(address), self.lanes.shape)[position])
        where, hint = self.where(op, space, at)
        return KernelFault(
            f"{what} {op.name} of {width} bytes{where} by {self.lanes.places(from_bools(wrong))}",
            "alignment" if what == "misaligned" else "address",
            self.lanes.wrong(op, from_bools(wrong), space, width, where.rstrip(",")),
            hint=hint,
            **place_in_source(op),
        )

    def where(self, op: Op, space: str, at: int) -> tuple[str, str | None]:
        """An address in words, relative to the buffer it is derived from or the nearest one; and a hint."""
        layout = self.layout(space)
        buffers, numbers = self.starts(op, space)
        if numbers and not buffers:
            said = ", ".join(f"argument {name} is {value}" for name, value in numbers.items())
            missing = f"pass an array for {next(iter(numbers))} if it is a pointer"
            return f" at address {at:#x}, outside of every array ({said}),", missing
        if not layout.buffers:
            hint = DYNAMIC if space == "shared" else None
            return f" at address {at:#x}, but the launch has no {space} memory,", hint
        buffer = min(buffers or layout.buffers, key=lambda one: max(one.start - at, at - one.end + 1, 0))
        size = buffer.end - buffer.start
        named = f"{short_name(buffer.name)} ({size} bytes)"
        is_dynamic = space == "shared" and buffer.start == self.memory.dynamic_shared
        hint = DYNAMIC if is_dynamic else None
        if at < buffer.start:
            return f", {buffer.start - at} bytes before {named},", hint
        return f" at byte {at - buffer.start} of {named}", hint


_WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("constant", CONSTANT_WINDOW))


def resolve_generic(address: int | Sum, active: Mask) -> list[tuple[str, Int, Mask]]:
    """(space, address in it, threads) of a generic address, for each space accessed."""
    lo, hi = bounds(address)
    for space, start in _WINDOWS:
        if start <= lo and hi < start + WINDOW_SIZE:
            return [(space, plus(address, -start), active)]
    if lo >= GLOBAL_BASE:
        return [("global", address, active)]
    array = to_array(address)
    left = active
    found: list[tuple[str, Int, Mask]] = []
    for space, start in _WINDOWS:
        inside = from_bools((array >= start) & (array < start + WINDOW_SIZE))
        part = both(left, inside)
        if part is not False:
            found.append((space, plus(address, -start), part))
            left = both(left, invert(inside))
    return [*found, ("global", address, left)] if left is not False else found
