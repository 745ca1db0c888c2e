"""Which accesses to global memory a launch's counts may depend on, told to `GlobalOrder` as they are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.op import Op
from memsim.isa.reach import GLOBAL, spaces_read, spaces_written
from memsim.order.global_order import GlobalOrder, accesses_by
from memsim.simt.active_lanes import Lanes
from memsim.simt.dataflow import Dataflow
from memsim.state.address_spaces import GLOBAL_BASE
from memsim.state.launch_memory import Memory
from memsim.state.registers import to_array
from memsim.state.sums import Int

#: Accesses that happen where they stand among those of their thread.
FOLLOWED = frozenset(("load", "store", "reduction", "atomic"))
#: Modifiers of accesses that are narrower than a word, and their bytes.
NARROW = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}
#: Larger memory is not followed: it would take this many times 16 bytes.
MOST_CELLS = 1 << 26


class OrderedAccesses:
    """The accesses of the instructions `ops`: what each reads and writes of global memory, by its index."""

    def __init__(self, ops: dict[int, tuple[bool, bool]], order: GlobalOrder) -> None:
        self.ops = ops
        self.order = order

    def access(self, lanes: Lanes, op: Op, width: int, address: Int, active: Any) -> None:
        """Lanes `active` of the running group access global memory."""
        ways = self.ops.get(op.index)
        if ways is None or self.order.depends or active is False:
            return
        who = accesses_by(lanes.blocks[:, None], lanes.barriers[:, None], lanes.numbers)
        each = (np.broadcast_to(array, lanes.shape) for array in (to_array(address), who))
        where, who = (array.ravel() if active is True else array[lanes.full(active)] for array in each)
        self.order.access(where, width, who, *ways)

    def lost(self, op: Op) -> None:
        """An instruction's addresses are unknown."""
        self.order.depends |= op.index in self.ops


def ordered_accesses(dataflow: Dataflow, memory: Memory) -> OrderedAccesses | None:
    """What to follow in a launch; None if there is nothing, or if it cannot be followed."""
    ops = [dataflow.ops[index] for index in dataflow.read_again()]
    size = memory.layouts["global"].end - GLOBAL_BASE
    cell = min((NARROW.get(name, 4) for op in ops for name in op.form.modifiers), default=4)
    if (
        not ops
        or size > MOST_CELLS * cell
        or not all(access in FOLLOWED for op in ops for access, _ in op.touches)
    ):
        return None
    ways = {op.index: (GLOBAL in spaces_read(op), GLOBAL in spaces_written(op)) for op in ops}
    return OrderedAccesses(ways, GlobalOrder(GLOBAL_BASE, size, cell))
