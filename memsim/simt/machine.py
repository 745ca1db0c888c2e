"""The state that instructions act on: registers of all threads of a chunk of blocks, and memory.

Implements `memsim.isa.machine_protocol.MemoryMachine`. Registers of inactive lanes are preserved by merging,
and only while they are live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from memsim.access import Listener
from memsim.argument_types import Texture
from memsim.errors import MemsimError
from memsim.isa.op import PREDICATE, SLOTS, slots_of
from memsim.isa.program import GLOBAL, Op
from memsim.isa.readers import Registers
from memsim.launch import Launch
from memsim.simt.accesses import Accesses
from memsim.simt.active_lanes import Rows, special_register
from memsim.simt.bounds import Origins
from memsim.simt.faults import MBARRIER, KernelFault, place_in_source
from memsim.state.launch_memory import Memory
from memsim.state.mbarriers import MbarrierError, Mbarriers
from memsim.state.partial import Partial, Value, merge_lanes, on_known_lanes
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, to_bools
from memsim.state.registers import Sum, fit, from_array, ints, to_array
from memsim.state.sums import Int

#: Slots after the registers: the result of the last block barrier with a reduction.
COUNT_SLOT, ANSWER_SLOT = SLOTS, SLOTS + 1


Read = TypeVar("Read")


#: The lowest and the highest that a register may hold, float32 (B, T); None if they are not known.
Limits = tuple[np.ndarray, np.ndarray] | None


@dataclass
class Margins:
    """What the approximations of a launch move.

    limits: those of registers of the running basic block, by slot. met, moved: the instructions that were
    looked at, and those of them whose results may differ between chips; the others' are certain.
    """

    limits: dict[int, Limits] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)


class Machine(Accesses):
    """Registers (`slots`) and memory of the running blocks.

    protected: slots, as a bit set, that are live in lanes outside of the running group. before: values that
    such slots had before the running segment wrote them; `settle` restores them in those lanes. None: writes
    merge at once. own: slots, as a bit set, that gathered lanes may write into (gathered_lanes.py).
    """

    def __init__(
        self,
        slots: int,
        launch: Launch,
        cluster: tuple[int, int, int],
        memory: Memory,
        origins: Origins,
        listener: Listener,
        allow_out_of_bounds: bool,
    ) -> None:
        super().__init__(launch, cluster, memory, origins, listener, allow_out_of_bounds)
        self.slots: list[Any] = [None] * slots
        self.protected = 0
        self.before: dict[int, Value] | None = None
        self.own = 0
        self.mbarriers = Mbarriers(0)
        self.margins = Margins()

    def start(self, blocks: np.ndarray, apart: bool = False) -> None:
        """Start these blocks with undefined registers."""
        super().start(blocks, apart)
        self.own = 0
        unwritten = self.memory.unwritten_register
        self.slots = [*[unwritten] * PREDICATE, *[None] * (len(self.slots) - PREDICATE)]
        self.mbarriers = Mbarriers(len(blocks))
        self.mbarriers.completed = self.order.complete_phase

    def go_on(self, rows: Rows, slots: list[Any], alive: Mask) -> None:
        """Continue rows with their register contents; they have no memory of their own."""
        self.slots, self.alive = slots, alive
        self.place_rows(rows)

    def place_rows(self, rows: Rows) -> None:
        """Rows of other blocks and threads run now."""
        self.rows, self.repeats = rows, {}
        self.memory.go_on(*self.shape)

    def write(self, slot: int, value: Value, active: Mask) -> None:
        """Write a register in the running lanes for which `active` holds."""
        registers = self.slots
        whole = active is True or active is self.mask
        if self.protected >> slot & 1:
            if self.before is None:
                registers[slot] = merge_lanes(both(self.mask, active), value, registers[slot])
                return
            self.before.setdefault(slot, registers[slot])
        registers[slot] = value if whole else merge_lanes(active, value, registers[slot])

    def settle(self) -> None:
        """Restore overwritten slots in lanes outside of the running group."""
        for slot, held in (self.before or {}).items():
            self.slots[slot] = merge_lanes(self.mask, self.slots[slot], held)
        self.before = None

    def special(self, name: str) -> int | Sum | Poison:
        """The value of a special register."""
        clock = self.memory.clock(name)
        return clock if clock is not None else special_register(name, self, self.memory.shared_bytes)

    def barrier_result(self) -> tuple[Value, Value]:
        """The result of the last block barrier with a reduction."""
        return self.slots[COUNT_SLOT], self.slots[ANSWER_SLOT]

    def barrier_members(self, slot: int) -> Value:
        """The lanes in a convergence barrier register."""
        value = self.slots[slot]
        return 0 if value is None else value

    def members_of(self, slot: int) -> np.ndarray:
        """As `barrier_members`, for each lane the mask of lanes that it waits for; none if it was never set.

        Raises:
            MemsimError: they are unknown.
        """
        value = self.slots[slot]
        if isinstance(value, Poison):
            raise MemsimError(
                f"cannot go on: the lanes of a convergence barrier are unknown: {value.story()}"
            )
        held = value.value if isinstance(value, Partial) else value
        return self.lane_words(0 if held is None else ints(held))

    def set_members(self, slot: int, members: np.ndarray) -> None:
        """Write a convergence barrier register."""
        self.slots[slot] = fit(from_array(members), 32)

    def at(self, error: MemsimError, op: Op) -> MemsimError:
        """An error of a copy, with its instruction's place and a lane that makes it."""
        fault = error if isinstance(error, KernelFault) else None
        by = (fault and fault.by) or self.wrong(op, self.mask, GLOBAL)
        kind = MBARRIER if isinstance(error, MbarrierError) else fault.kind if fault else "address"
        return KernelFault(error.message, kind, by, hint=error.hint, **place_in_source(op))

    def texture(self, handle: Int, active: Mask) -> Texture:
        """The texture object of a handle in the active lanes; any one if there are none.

        What the others have is not looked at: compilers load a handle under the predicate of its fetch.

        Raises:
            Poisoned: there is none.
        """
        low = {key & 0xFFFFFFFF: texture for key, texture in self.memory.textures.items()}
        handles, lanes = np.broadcast_arrays(to_array(handle), to_bools(active))
        which = np.unique(handles[lanes] & 0xFFFFFFFF)  # compilers drop the high word
        found = [low.get(int(one)) for one in which] or [*low.values()][:1]
        if len(found) != 1 or found[0] is None:
            what = "whose lanes have several texture objects"
            if len(found) < 2:
                what = "with a handle that is not a texture object"
            raise MemsimError(
                f"a texture fetch {what}",
                hint="a cudaTextureObject_t parameter takes --arg 'tex2d(f32[64,64])', or 'tex1d(f32[64])'"
                " for tex1Dfetch; in Python memsim.Texture(array), or memsim.argument_types.Texture1D(array)",
            )
        return found[0]

    def known_value(
        self,
        op: Op,
        read: Callable[[Registers], Read],
        lanes: bool | Part = True,
        slots: Iterable[int] | None = None,
    ) -> Read:
        """An operand of a control-flow instruction in these lanes of the group, of all that it reads `slots`.

        Raises:
            Poisoned: it is unknown in one of them.
        """
        try:
            return read(self.slots)
        except Poisoned as unknown:
            found, known = on_known_lanes(
                self.slots,
                slots_of(op.reads) if slots is None else slots,
                lambda: both(self.mask, lanes),
                lambda: read(self.slots),
                unknown.poison,
            )
            if known is not True:
                raise
            value: Read = found
            return value
