"""What of a launch depends on the order of its threads: which accesses are followed, and what races decide.

`memsim.order` finds races and does not know instructions. Here is which of a program's instructions matter
to it, and what becomes of what it finds: a reason why counts are uncertain if, and only if, the value that a
race leaves open decides an address or a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from memsim.arch.units import WORD
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import GLOBAL, SHARED, Op, Program, spaces_read, spaces_written
from memsim.order.global_order import GlobalListener, GlobalOrder
from memsim.order.order_listener import Race
from memsim.order.shared_listener import SharedListener
from memsim.simt.dataflow import Dataflow
from memsim.simt.decided_by import AccessedPlaces, Places, decided_by, is_atomic
from memsim.simt.stores_of_others import swap_loops
from memsim.state.address_spaces import GLOBAL_BASE
from memsim.state.launch_memory import Memory

#: Reasons that are given. One missing barrier often leaves many lines unordered.
MOST_REASONS = 3
#: Accesses that happen where they stand among those of their thread, and copies, which do not.
FOLLOWED = frozenset(
    (
        *("load", "store", "reduction", "atomic", "cp_async"),
        *("bulk_load", "bulk_multicast", "bulk_store", "bulk_reduction"),
    )
)
#: Larger memory is not followed: it would take this many times 16 bytes.
MOST_CELLS = 1 << 26


def reasons_of_races(
    dataflow: Dataflow, races: Iterable[Race], reach: Mapping[int, tuple[int, int]], reads_back: bool
) -> Iterator[str]:
    """Why counts depend on the order of warps in shared memory; call it after the launch.

    reach: by instruction the first and last byte that it accessed. reads_back: as `GlobalOrder`. What a load
    decides goes on through the parts of shared memory that the launch keeps apart, and through global memory
    if the launch reads back what it stores there: an address that a race decides is found itself. What
    atomics make swap loops cost has limits.
    """
    parts = parts_of(reach)
    ops, told = dataflow.ops, set[tuple[str, str]]()
    ends = {loop.branch.index for loop in swap_loops(ops)}
    written = dataflow.places_written if reads_back else dataflow.places_written_elsewhere

    def apart(places: Places, op: Op) -> Places:
        part = parts.get(op.index, 0)
        return frozenset((space, part if space == SHARED else roots) for space, roots in places)

    in_parts = AccessedPlaces(
        lambda op: apart(dataflow.places_read(op), op), lambda op: apart(written(op), op), dataflow.maps_read
    )

    @cache
    def decided(load: int) -> tuple[Op, ...]:
        return tuple(decided_by(dataflow, (load,), in_parts))

    for race in races:
        store, load = ops[race.store], ops[race.load]
        lines = store.where, load.where  # which have many instructions, where loops are unrolled
        if lines in told:
            continue
        by_atomic = ("atomic", "shared") in store.touches
        op = next((op for op in decided(race.load) if not (by_atomic and op.index in ends)), None)
        if op is not None:
            what = f"the {'branch' if op.effect is Effect.CONTROL else 'address'} at {op.where}"
            told.add(lines)
            yield race.reason(*lines, what, by_atomic)
        if len(told) == MOST_REASONS:
            return


def listener_of_shared(
    program: Program, dataflow: Dataflow, needed: Iterable[int], report: Callable[[Race], None]
) -> SharedListener | None:
    """What finds races in shared memory; None if no needed instruction loads from there."""
    reads = any(SHARED in spaces_read(dataflow.ops[index]) for index in needed)
    return SharedListener(report, meets_partly(program)) if reads else None


def parts_of(reach: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """By instruction the part of shared memory that it accesses, as a bit; parts that meet are one.

    reach: by instruction its first and last byte.
    """
    found: dict[int, int] = {}
    bit, end = 1, -1
    for at in sorted(reach, key=reach.__getitem__):
        first, last = reach[at]
        if first > end:
            bit <<= 1
        found[at], end = bit, max(end, last)
    return found


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
    copies = frozenset(op.index for op in ops if ("cp_async", GLOBAL) in op.touches)
    return GlobalListener(ways, copies, GlobalOrder(GLOBAL_BASE, size, cell))
