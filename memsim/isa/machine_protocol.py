"""What instructions need of the machine that executes them: the contract between their table and an emulator.

`memsim.simt.machine.Machine` fulfils it; the tests of single instructions have a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from memsim.access import AccessSide, Stretches
from memsim.argument_types import Texture
from memsim.errors import MemsimError
from memsim.isa.program import Op
from memsim.order.order_listener import OrderListener
from memsim.state.launch_memory import Memory
from memsim.state.mbarriers import Mbarriers
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.registers import Sum
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int


class Warps(Protocol):
    """The lanes that execute an instruction, by warp.

    threads: of a block, in whole warps. reads_idle: whether a shuffle reads from lanes that do not execute it
    (PTX ISA: undefined).
    """

    threads: int
    executing: Mask
    reads_idle: bool

    def active(self) -> np.ndarray:
        """The executing lanes, bool (rows, warps, 32)."""

    def special(self, name: str) -> int | Sum | Poison:
        """The value of a special register."""

    def barrier_members(self, slot: int) -> Value:
        """The lanes in a convergence barrier register, as a mask in each lane."""

    def barrier_result(self) -> tuple[Value, Value]:
        """Of the last block barrier with a reduction: a count, and whether it is not zero."""


class NotesLoads(Protocol):
    """Is told what loads read, by the number of the instruction."""

    def constant(self, instruction: int, places: np.ndarray) -> None:
        """Words of a constant bank were read, from so many places."""

    def pair(self, instruction: int, number: int, values: np.ndarray) -> None:
        """The two words of `number` were read, together int64."""


class MemoryMachine(Warps, Protocol):
    """Registers and memory of the running blocks, and those who count what is accessed.

    slots: the registers, a `Value` each. mask: the running lanes. loaded: is told what is
    read; None: nobody wants to know.
    """

    slots: list[Value]
    memory: Memory
    mask: Mask
    mbarriers: Mbarriers
    order: OrderListener
    loaded: NotesLoads | None

    @property
    def shape(self) -> tuple[int, int]:
        """(B, T)."""

    def write(self, slot: int, value: Value, active: Mask) -> None:
        """Write a register in the running lanes for which `active` holds."""

    # --- lanes ------------------------------------------------------------------------------

    def full(self, mask: Mask) -> np.ndarray:
        """A mask expanded to bool (B, T)."""

    def by_warp(self, array: np.ndarray) -> np.ndarray:
        """An array over threads as (rows, warps, 32)."""

    def first_round(self, op: Op, active: Mask) -> Mask:
        """The lanes of warps that come to a loop's compare-and-swap for the first time."""

    def goes_round(self, op: Op, active: Mask, done: Mask) -> None:
        """Lanes come to it again, but for those that are done."""

    # --- addresses --------------------------------------------------------------------------

    def resolve(self, address: Int, active: Mask) -> list[tuple[str, Int, Mask]]:
        """(space, address in it, lanes) of a generic address, for each space accessed."""

    def elsewhere(self, address: Int, active: Mask) -> tuple[SpaceBytes, Int]:
        """The shared memory of the blocks that lanes access, and the addresses there."""

    def of_shared(self, address: Int, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(owner's index in the chunk [m], address in its shared memory [m]) for lanes of a mask."""

    def in_cluster(self, blocks: np.ndarray, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `of_shared`, for addresses [m] in blocks [m] of the chunk."""

    # --- reports ----------------------------------------------------------------------------

    def touch(
        self,
        op: Op,
        access: str,
        space: str,
        width: int,
        address: Int,
        active: Mask,
        other: AccessSide | None = None,
    ) -> Mask:
        """Report an access of `width` bytes; the lanes whose address is outside of every array."""

    def lose(self, op: Op, access: str, space: str, width: int, poison: Poison, active: Mask) -> None:
        """Report an access with unknown addresses."""

    def visit(
        self, op: Op, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, is_async: bool = False
    ) -> None:
        """Report warps [n] of blocks `rows` whose access is to shared memory of `blocks`, perhaps several
        times.
        """

    def check_copies(self, op: Op, space: str, unit: int, made: Stretches) -> None:
        """Are the addresses of copies by TMA multiples of a unit?"""

    def stretches(self, op: Op, access: str, space: str, made: Stretches) -> None:
        """Report pieces of a copy by TMA."""

    def in_spaces(self, op: Op, unmade: str | None, width: int, pieces: list[tuple[str, Int, Mask]]) -> None:
        """Report what the chip does for a generic access beyond serving each space's lanes."""

    def issued(self, op: Op, lanes: int) -> None:
        """So many lanes executed a copy by TMA."""

    def operands(
        self, op: Op, width: int, active: Mask, read: Callable[[], Stretches], commits: bool
    ) -> None:
        """Four warps together read `width` bytes of the operands of a matrix product for each lane. read:
        gives where these lie. commits: the product ends a group.
        """

    def texture(self, handle: Int, active: Mask) -> Texture:
        """The texture object of a handle in the active lanes."""

    def fetch(self, op: Op, access: str, texture: Texture, places: Int, active: Mask) -> None:
        """Report texels that lanes fetch."""

    def lose_fetch(self, op: Op, access: str, texture: Texture, poison: Poison, active: Mask) -> None:
        """Report a fetch with unknown coordinates."""

    def copy_past_cache(self, op: Op, destination: Int, active: Mask) -> None:
        """A copy that bypasses the L1 cache: is its destination that of a copy in flight?"""

    def uncounted(self, what: str, active: Mask) -> None:
        """Report accesses whose cost is unknown."""

    def noted(self, what: str, active: Mask) -> None:
        """Report requests that no counter of ours has."""

    def at(self, error: MemsimError, op: Op) -> MemsimError:
        """An error with the place of an instruction."""
