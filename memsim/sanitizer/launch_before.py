"""Accesses that may come before the launch before has ended: those before `griddepcontrol.wait`.

A thread that executes it waits until all launches before have completed and what they wrote is visible (PTX
ISA, `griddepcontrol`); others know of that behind what orders them with this thread. What the launch before
accesses is not known of one launch. Arrays that this one writes are no constants, so what comes too early
there may race; of others that are loaded too early, the limits say which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memsim.access import Stretches
from memsim.arch.units import WARP
from memsim.isa.op import Trait
from memsim.isa.program import GLOBAL, Program
from memsim.model.operations import operation
from memsim.names.demangle import short_name
from memsim.order.order_listener import OrderListener, Threads, warps_in
from memsim.sanitizer.examples import Example
from memsim.sanitizer.global_cells import LaneAccess
from memsim.state.launch_memory import Memory
from memsim.state.partial import Value
from memsim.state.parts import Mask


class TooEarly(NamedTuple):
    """An instruction that accesses an array before the launch before may have ended."""

    instruction: int
    array: str


class LaunchBefore(OrderListener):
    """Finds them. looked_at: the waits."""

    def __init__(self, program: Program) -> None:
        self.looked_at = {op.index: 0 for op in program.ops if Trait.WAITS_FOR_LAUNCH in op.traits}
        self._early: dict[TooEarly, Example] = {}
        self._written: set[str] = set()

    @property
    def is_used(self) -> bool:
        """Whether the kernel waits for the launch before."""
        return bool(self.looked_at)

    @property
    def found(self) -> dict[TooEarly, Example]:
        """Those to arrays that the launch writes."""
        return {key: one for key, one in self._early.items() if key.array in self._written}

    @property
    def limits(self) -> set[str]:
        """What is not known, in words."""
        names = sorted({short_name(key.array) for key in self._early if key.array not in self._written})
        said = f"whether the launch before writes {', '.join(names)}, loaded before griddepcontrol.wait"
        return {said} if names else set()

    # --- who has waited ------------------------------------------------------------------------

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads, self._layout = threads, memory.layouts[GLOBAL]
        self._waited = np.zeros((threads.shape[0], threads.shape[1] // WARP), np.bool_)

    def look(self, instruction: int, active: Mask | None, registers: Sequence[Value]) -> None:
        if instruction in self.looked_at and active is not None:
            rows, warps = warps_in(self._threads, active)
            self._waited[rows, warps] = True

    def block_barrier(self, mask: Mask = True) -> None:
        if self.is_used:
            self._learn(*warps_in(self._threads, mask))

    def pass_named(self, number: int, mask: Mask) -> None:
        self.block_barrier(mask)

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        if self.is_used:
            self._learn(rows, warps, of_cluster=True)

    def pass_cluster(self, mask: Mask) -> None:
        if self.is_used:
            self._learn(*warps_in(self._threads, mask), of_cluster=True)

    def _learn(self, rows: np.ndarray, warps: np.ndarray, of_cluster: bool = False) -> None:
        """Warps have waited for others, of their block or cluster: perhaps for one that knows."""
        know: np.ndarray = np.any(self._waited, axis=1)
        if of_cluster:
            peers = self._threads.peers
            know = np.any(know[peers] & (peers >= 0), axis=1)
        self._waited[rows, warps] |= know[rows]

    # --- accesses ------------------------------------------------------------------------------

    def hear(self, made: LaneAccess) -> None:
        """Lanes access global memory."""
        if self.is_used:
            rows, columns, places = made.lanes
            self._lanes(made.site.place, made.verb, places, rows, columns, made.threads)

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        if self.is_used:
            verb, nobody = operation(GLOBAL, access).verb, np.full(len(made), -1)
            self._lanes(instruction, verb, made.start, made.rows, made.warps * WARP, nobody)

    def _lanes(
        self,
        instruction: int,
        verb: str,
        places: np.ndarray,
        rows: np.ndarray,
        columns: np.ndarray,
        threads: np.ndarray,
    ) -> None:
        owners = self._layout.owners(places, 1)
        if verb in ("store", "update"):
            names = (self._layout.buffers[one].name for one in np.unique(owners[owners >= 0]).tolist())
            self._written.update(names)
        early = (owners >= 0) & ~self._waited[rows, columns // WARP]
        for owner in np.unique(owners[early]).tolist():
            at = np.flatnonzero(early & (owners == owner))
            buffer, first = self._layout.buffers[owner], int(at[0])
            key = TooEarly(instruction, buffer.name)
            if key not in self._early:
                place, block = int(places[first]) - buffer.start, int(self._threads.blocks[rows[first]])
                self._early[key] = Example(block, later=int(threads[first]), place=place)
            self._early[key].count += len(at)
