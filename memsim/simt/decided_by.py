"""What depends on the results of some instructions: the accesses and the control flow that they decide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass
from operator import itemgetter

from memsim.isa.op import Effect, Predicate
from memsim.isa.program import GLOBAL, Op
from memsim.simt.control_graph import ControlGraph, Sweeps, Where
from memsim.simt.harmless_branches import region_of, uniform_region_of
from memsim.simt.pointer_roots import ANYWHERE

#: (state space, of global memory the roots of the address as bits, of shared memory the parts that are told
#: apart, of others 0).
Places = frozenset[tuple[str, int]]
#: By guard the registers (a bit set) that have been written otherwise in its lanes.
Guarded = dict[Predicate, int]


@dataclass(frozen=True, slots=True)
class AccessedPlaces:
    """Where memory instructions read and write, and of which tensor maps."""

    read: Callable[[Op], Places]
    written: Callable[[Op], Places]
    maps: Callable[[Op], Places]


def decided_by(
    graph: ControlGraph,
    sources: Container[int],
    accessed: AccessedPlaces,
    places: Places = frozenset(),
    settled: Container[int] = (),
) -> list[Op]:
    """Accesses and control flow that depend on the results of some instructions, or on what is in some
    places, through memory as well.

    settled: instructions whose results do not depend on what the same basic block has computed before.
    """
    dirty = set(places)
    while True:
        before = len(dirty)
        found = _tainted(graph, dirty, sources, accessed, settled)
        if len(dirty) == before:
            return found


def meet(some: Iterable[tuple[str, int]], others: Collection[tuple[str, int]]) -> bool:
    """May these places be the same memory?"""
    return any(
        space == other
        and (part & mine or ((part | mine) & ANYWHERE if space == GLOBAL else not (part and mine)))
        for space, part in some
        for other, mine in others
    )


def _tainted(
    graph: ControlGraph,
    dirty: set[tuple[str, int]],
    sources: Container[int],
    accessed: AccessedPlaces,
    settled: Container[int],
) -> list[Op]:
    """One iteration; `dirty` are the places that contain such results, and may grow.

    A register that was written otherwise under a guard holds such a result only in the lanes without it: what
    the same guard reads afterwards does not depend on it. A branch that only chooses between
    computations makes such results of the registers that these write. Functions are followed from each call
    separately.
    """
    entry: dict[Where, tuple[int, Guarded]] = {}
    found: dict[int, Op] = {}
    work = Sweeps[Where](itemgetter(0))

    def reach(place: Where, state: int, others: Guarded) -> None:
        """On a way to a basic block registers hold this. Where one holds no such result on a way, it does so
        under every guard."""
        before = entry.get(place)
        if before is not None:
            held, kept = before
            others = {
                guard: (others.get(guard, 0) | ~state) & (kept.get(guard, 0) | ~held)
                for guard in others.keys() | kept.keys()
            }
            state |= held
        others = {guard: slots & state for guard, slots in others.items() if slots & state}
        if (state, others) != before:
            entry[place] = state, others
            work.add(place)

    def begins(op: Op) -> bool:
        """May registers hold such a result from here on, where none does?"""
        if op.index in sources:
            return True
        read = op.effect is Effect.MEMORY and bool(dirty)
        return read and (meet(accessed.read(op), dirty) or meet(accessed.maps(op), dirty))

    reach((0, ()), 0, {})
    while work:
        start, callers = place = work.pop()
        state, others = entry[place]
        ways = graph.following(start, callers)
        ops = graph.block(start)
        if not state:
            ops = ops[next((at for at, op in enumerate(ops) if begins(op)), len(ops)) :]
        before = state  # of it the registers that depend on more than this basic block
        for op in ops:
            if op.effect is Effect.NONE:
                continue
            held = state & ~others.get(op.guard, 0) if op.guard is not None else state
            if op.effect is Effect.CONTROL:
                if op.reads & held & ~graph.program.barriers:
                    if (region := region_of(graph, op, callers)) is not None:
                        for end in region.ends:
                            reach(end, region.writes, {})
                    elif (region := uniform_region_of(graph, op, callers)) is not None:
                        state, others, ways = state | region.writes, {}, list(region.ends)
                    else:
                        found[op.index] = op
                others = _kept(others, op.writes, op.writes)
                continue
            hit = bool(op.reads & held)
            if op.effect is Effect.MEMORY:
                if op.addresses & held or (dirty and meet(accessed.maps(op), dirty)):
                    found[op.index] = op
                hit = hit or (bool(dirty) and meet(accessed.read(op), dirty))
                if hit:
                    dirty |= accessed.written(op)
            hit = hit or op.index in sources
            depends = op.effect is not Effect.ALU or bool(op.reads & held & before)
            hit = hit and (depends or op.index not in settled)
            before = before | op.writes if hit and depends else before if op.guard else before & ~op.writes
            others = _kept(others, op.writes, op.writes if hit else 0)
            if hit:
                state |= op.writes
            elif op.guard is None:
                state &= ~op.writes
            elif op.guard.slot is None or not op.writes >> op.guard.slot & 1:
                others = {**others, op.guard: others.get(op.guard, 0) | op.writes}
        for way in ways:
            reach(way, state, others)
    return [found[index] for index in sorted(found)]


def _kept(others: Guarded, written: int, lost: int) -> Guarded:
    """What still holds after an instruction: no guard that it writes, and not of the registers `lost`."""
    return {
        guard: slots & ~lost
        for guard, slots in others.items()
        if guard.slot is None or not written >> guard.slot & 1
    }


def is_atomic(op: Op) -> bool:
    """Does its result depend on what other threads left in memory?"""
    return op.effect is Effect.MEMORY and any(access == "atomic" for access, _ in op.touches)
