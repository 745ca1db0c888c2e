"""What of a launch depends on the order of its threads: which accesses are followed, and what races decide.

`memsim.order` finds races and does not know instructions. Here is which of a program's instructions matter
to it, and what becomes of what it finds: a reason why counts are uncertain if, and only if, the value that a
race leaves open decides an address or a branch.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from memsim.arch.units import WORD
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import GLOBAL, SHARED, Op, Program, spaces_read, spaces_written
from memsim.order.global_order import GlobalListener, GlobalOrder
from memsim.order.order_listener import Race
from memsim.order.shared_listener import SharedListener
from memsim.simt.dataflow import Dataflow
from memsim.simt.decided_by import decided_by, is_atomic
from memsim.simt.listener import Listener
from memsim.simt.spins import swap_loops
from memsim.state.address_spaces import GLOBAL_BASE
from memsim.state.launch_memory import Memory

#: Reasons that are given. One missing barrier often leaves many lines unordered.
MOST_REASONS = 3
#: Accesses that happen where they stand among those of their thread.
FOLLOWED = frozenset(("load", "store", "reduction", "atomic"))
#: Larger memory is not followed: it would take this many times 16 bytes.
MOST_CELLS = 1 << 26


def listener_of_shared(
    program: Program, dataflow: Dataflow, needed: Iterable[int], listener: Listener
) -> SharedListener | None:
    """What finds races in shared memory and tells the listener of those that decide an access; None if no
    needed instruction loads from there.
    """
    ops = dataflow.ops
    places = dataflow.places_read, dataflow.places_written
    if not any(SHARED in spaces_read(ops[index]) for index in needed):
        return None
    told: set[str] = set()
    ends = {loop.branch.index for loop in swap_loops(ops)}

    @cache
    def decided(load: int, by_atomic: bool) -> Op | None:
        """The first access or branch that a load decides; what atomics make swap loops cost has limits."""
        found = decided_by(dataflow, lambda op: op.index == load, *places)
        return next((op for op in found if not (by_atomic and op.index in ends)), None)

    def report(race: Race) -> None:
        by_atomic = ("atomic", "shared") in ops[race.store].touches
        op = decided(race.load, by_atomic) if len(told) < MOST_REASONS else None
        if op is not None:
            what = f"the {'branch' if op.effect is Effect.CONTROL else 'address'} at {op.where}"
            told.add(reason := race.reason(ops[race.store].where, ops[race.load].where, what))
            listener.uncertain(reason)

    return SharedListener(report, meets_partly(program))


def meets_partly(program: Program) -> bool:
    """Whether anything but block barriers orders what warps do: copies, mbarriers, others."""
    others = (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.WAIT_PHASE)
    return any(
        op.flow in others
        or Trait.ORDERS in op.traits
        or (op.flow is Flow.BLOCK_BARRIER and (len(op.form.operands) > 1 or Trait.ARRIVES in op.traits))
        for op in program.ops
    )


def _learns(op: Op) -> bool:
    """Does it read global memory? An atomic without a result adds to what nobody has seen."""
    return GLOBAL in spaces_read(op) and (bool(op.writes) or not is_atomic(op))


def listener_of_global(dataflow: Dataflow, memory: Memory) -> GlobalListener | None:
    """What follows the accesses to global memory that counts may depend on; None if there are none, or if
    they cannot be followed.
    """
    ops = [dataflow.ops[index] for index in dataflow.read_again()]
    size = memory.layouts["global"].end - GLOBAL_BASE
    cell = min((bytes_of_piece(op.form) for op in ops), default=WORD)
    touched = {access for op in ops for access, _ in op.touches}
    if not ops or size > MOST_CELLS * cell or not touched <= FOLLOWED:
        return None
    ways = {op.index: (_learns(op), GLOBAL in spaces_written(op)) for op in ops}
    return GlobalListener(ways, GlobalOrder(GLOBAL_BASE, size, cell))
