"""Why a barrier, fence or wait that was deleted is not missed, checked by other means than the sanitizer's.

Accesses to one place are compared pair by pair on a graph of what the launch does without the instruction;
what the registers of `wgmma`, proxy fences and lanes of a warp need follows from the ways that warps take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from memsim.access import SiteAccess, Stretches
from memsim.api.running import execute_job
from memsim.arch.units import WARP
from memsim.isa.mbarrier import INITIALIZES
from memsim.isa.op import UNIFORM, Effect, Flow
from memsim.isa.program import GLOBAL, SHARED, Op, spaces_written
from memsim.job import Job
from memsim.model.operations import operation
from memsim.order.order_listener import OrderListener, Threads
from memsim.state.parts import Mask
from memsim.state.registers import to_array
from tests.sanitize.deleted import job_without

REGISTERS = "no other instruction accesses the registers of the products between it and the neighbouring one"
INITIALIZED = "of all writes to shared memory, only `mbarrier.init` comes before it"
PAIRS = "all pairs of accesses to one place are ordered without it"
WAITED = "each access to another block's memory is waited for there without it"
TOGETHER = "the lanes of each warp come there together"
BARRIER_BEHIND = "nothing is accessed between it and the block barrier behind it"
ONE_BLOCK = "the launch has one block"
REASONS = (REGISTERS, INITIALIZED, PAIRS, WAITED, TOGETHER, BARRIER_BEHIND, ONE_BLOCK)
UNCHECKED = "not checked"

_OWN = (1 << UNIFORM) - 1
Node = int
Place = tuple[int, int]


def reason(job: Job, op: Op, blocks: np.ndarray | None = None) -> str:
    """Why the launch is as right without an instruction; blocks: by their linear numbers, those whose
    accesses are compared.
    """
    name = op.form.name
    if name.startswith("WARPGROUP"):
        return REGISTERS if _registers_are_apart(job, op) else UNCHECKED
    if name.startswith("FENCE"):
        return INITIALIZED if _only_initializes_before(job, op) else UNCHECKED
    if name.startswith("MEMBAR"):
        return ONE_BLOCK if job.launch.blocks == 1 else UNCHECKED
    if name.startswith("WARPSYNC"):
        return _of_warps(job, op)
    graph = graph_of(job_without(job, op.address), blocks)
    if name.startswith("UCGABAR"):
        return WAITED if graph.are_waited_for() else UNCHECKED
    return PAIRS if graph.unordered() <= graph_of(job, blocks).unordered() else UNCHECKED


def graph_of(job: Job, blocks: np.ndarray | None = None) -> Graph:
    """What a launch does, or some of its blocks."""
    graph = Graph()
    how: dict[str, Any] = {"everything": False, "judges_order": False, "blocks": blocks}
    execute_job(job, graph, None, order=graph, **how)
    return graph


def _of_warps(job: Job, op: Op) -> str:
    """Why no lanes of a warp have to meet at a WARPSYNC."""
    parts = Parts(op.index)
    execute_job(job, parts, None, everything=False, order=parts, judges_order=False)
    parts.finish()
    if not parts.are_there:
        return TOGETHER
    behind = [*_ways(job, op, ("BAR",), True)]
    accesses = any(one.touches or one.effect is Effect.LANES or one.flow is Flow.EXIT for one in behind)
    return UNCHECKED if accesses else BARRIER_BEHIND


class Deaf:
    """Listens to accesses or to order, which have events of one name, and to none of them."""

    def ignore(self, *event: Any) -> None:
        """Nothing to do."""

    access = scattered = stretches = issued = ignore
    unknown = uncounted = noted = uncertain = passed_by = executed = ignore


class Parts(Deaf, OrderListener):
    """Whether only a part of the lanes of a warp that are to meet at an instruction come there at once: of
    those that its mask names, or of all, and have not exited.
    """

    def __init__(self, index: int) -> None:
        self.index, self.are_there = index, False
        self._here: Mask = False

    def start_chunk(self, threads: Any, memory: Any = None) -> None:
        if memory is not None:
            self.finish()
            self._threads: Threads = threads

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        self.finish()
        if start <= self.index < stop:
            self._here = mask

    def name_lanes(self, instruction: int, named: np.ndarray, mask: Mask) -> None:
        if instruction == self.index:
            bits = np.broadcast_to(named, self._threads.shape).reshape(-1, WARP)
            here = self._threads.full(mask).reshape(-1, WARP)
            words = np.bitwise_or.reduce(np.where(here, bits, 0), axis=1)
            self._come(mask, words[:, None] >> np.arange(WARP) & 1 == 1)
            self._here = False

    def finish(self) -> None:
        """Those that came last have named no lanes: all are to meet."""
        if self._here is not False:
            self._come(self._here, True)
            self._here = False

    def _come(self, mask: Mask, wanted: Any) -> None:
        here, alive = (self._threads.full(one).reshape(-1, WARP) for one in (mask, self._threads.alive))
        self.are_there |= bool((here.any(1) & (wanted & alive & ~here).any(1)).any())


# --- on the ways that warps take ---------------------------------------------------------------


class Ways(Deaf, OrderListener):
    """Which instruction warps execute behind which one."""

    def __init__(self) -> None:
        self.following: dict[int, set[int]] = defaultdict(set)

    def start_chunk(self, threads: Any, memory: Any = None) -> None:
        if memory is not None:  # as a listener to order
            self._threads, self._last = threads, dict[Place, int]()

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        for at in range(start, stop - 1):
            self.following[at].add(at + 1)
        for place in _warps(self._threads, mask):
            if place in self._last:
                self.following[self._last[place]].add(start)
            self._last[place] = stop - 1


def _ways(job: Job, op: Op, stops: tuple[str, ...], forward: bool) -> Iterator[Op]:
    """The instructions on the ways that warps take from one to the next, or last before, that begins so."""
    ops, ways = job.loaded.executable.program.ops, Ways()
    execute_job(job, ways, None, everything=False, order=ways, judges_order=False)
    following: Mapping[int, set[int]] = ways.following
    if not forward:
        before: dict[int, set[int]] = defaultdict(set)
        for at, found in ways.following.items():
            for way in found:
                before[way].add(at)
        following = before
    work, seen = [*following.get(op.index, ())], set[int]()
    while work:
        at = work.pop()
        if at in seen:
            continue
        seen.add(at)
        if not ops[at].form.name.startswith(stops):
            yield ops[at]
            work += following.get(at, ())


def _registers_are_apart(job: Job, op: Op) -> bool:
    """Whether other instructions between a fence or a wait and those beside it access no register of products
    there. A fence is for the accesses before it and the products behind it, a wait for the reverse.
    """
    kind = "WARPGROUP.ARRIVE" if op.form.name.startswith("WARPGROUP.ARRIVE") else "WARPGROUP.DEPBAR"
    is_fence = kind.endswith("ARRIVE")
    products = [one for one in _ways(job, op, (kind,), is_fence) if one.is_product]
    if not is_fence:  # those in flight may be older: all there are
        products = [one for one in job.loaded.executable.program.ops if one.is_product]
    others = [one for one in _ways(job, op, (kind,), not is_fence) if not one.is_product]
    if is_fence and any(one.index == 0 for one in others):
        return False  # the first one of a warp is always needed
    if not is_fence and any(map(_tells, others)):
        return False  # what the products have read in shared memory may be overwritten
    read, written = (_union(getattr(one, way) for one in products) for way in ("reads", "writes"))
    touched, changed = (
        _union(one.reads | one.writes for one in others),
        _union(one.writes for one in others),
    )
    return not (touched & written | changed & read) & _OWN


def _tells(op: Op) -> bool:
    """Whether an instruction writes shared memory, or others may do so behind it."""
    barriers = op.form.opcode == "SYNCS" or op.flow in (Flow.BLOCK_BARRIER, Flow.ARRIVE_CLUSTER)
    return barriers or SHARED in spaces_written(op)


def _union(slots: Iterable[int]) -> int:
    found = 0
    for one in slots:
        found |= one
    return found


def _only_initializes_before(job: Job, op: Op) -> bool:
    """Whether nothing but `mbarrier.init` writes shared memory before a fence."""
    before = _ways(job, op, ("FENCE.VIEW.ASYNC",), False)
    return all(one.form.name.startswith(INITIALIZES) for one in before if SHARED in spaces_written(one))


# --- pair by pair ------------------------------------------------------------------------------


class Graph(Deaf, OrderListener):
    """What the warps and copies of a launch do, as nodes, with the nodes before each as bits.

    visits: to memory of other blocks, and to which.
    """

    def __init__(self) -> None:
        self.visits: list[tuple[Node, int]] = []
        self._before: list[int] = []
        self._accesses: dict[tuple[Any, ...], dict[tuple[Node, str, int], None]] = defaultdict(dict)

    def are_waited_for(self) -> bool:
        """Whether some warp of each block comes behind all accesses to its memory by others."""
        return all(
            any(self._before[last] >> node & 1 for place, last in self._last.items() if place[0] == row)
            for node, row in self.visits
        )

    def unordered(self) -> set[tuple[Any, ...]]:
        """Accesses to one place that are not ordered, one of which writes: the place, both instructions."""
        return {
            (*where, first, second)
            for where, accesses in self._accesses.items()
            for (one, does, first), (other, then, second) in combinations(accesses, 2)
            if {does, then} not in ({"reads"}, {"updates"})
            and one != other
            and not self._before[other] >> one & 1
        }

    # --- nodes ---------------------------------------------------------------------------------

    def _node(self, *before: Node) -> Node:
        bits = 0
        for one in before:
            bits |= self._before[one] | 1 << one
        self._before.append(bits)
        return len(self._before) - 1

    def _step(self, place: Place, *before: Node) -> Node:
        """What a warp does next."""
        last = (self._last[place],) if place in self._last else ()
        self._last[place] = self._node(*last, *before)
        return self._last[place]

    def _note(self, node: Node, op: int, does: str, where: tuple[Any, ...], start: int, length: int) -> None:
        for word in range(start // 4, -(-(start + length) // 4)):
            self._accesses[(*where, word)][node, does, op] = None

    def _of_shared(self, row: int, address: int, is_far: bool) -> tuple[tuple[Any, ...], int]:
        """Whose shared memory an address is in, and where; is_far: it has the rank of a block."""
        row = int(self._threads.peers[row, address >> 24]) if is_far else row
        return (SHARED, int(self._threads.blocks[row])), address & 0xFFFFFF

    def _warps(self, mask: Mask) -> list[Place]:
        return _warps(self._threads, mask)

    # --- events --------------------------------------------------------------------------------

    def start_chunk(self, threads: Any, memory: Any = None) -> None:
        if memory is None:  # as a listener to accesses
            return
        self._threads: Threads = threads
        self._base = memory.layouts["shared"].base
        self._chunk = len(self._before)
        self._last: dict[Place, Node] = {}
        self._held: dict[Any, list[Node]] = defaultdict(list)
        self._begun: dict[Place, list[Node]] = defaultdict(list)
        self._groups: dict[Place, list[list[Node]]] = defaultdict(list)

    def access(self, made: SiteAccess | int, *event: Any) -> None:
        """As a listener to accesses, and to what orders them."""
        if not isinstance(made, SiteAccess):
            return
        site, address, active = made.site, made.address, made.active
        kind = operation(site.space, site.access)
        if "async_" in site.access and kind.verb != "copy":  # told as `async_store`
            return
        if site.space not in (SHARED, GLOBAL) or active is False or kind.engine or kind.grouped:
            return
        lanes = self._threads.full(active)
        places = np.broadcast_to(to_array(address), lanes.shape)
        copies = kind.verb == "copy" and site.space == SHARED
        does = {"load": "reads", "store": "writes", "update": "updates"}.get(kind.verb, "reads")
        for place in self._warps(active):
            node = self._node(self._step(place)) if copies else self._step(place)
            if copies:
                self._begun[place].append(node)
            row, own = place[0], slice(WARP * place[1], WARP * place[1] + WARP)
            op = site.index // 8
            for start in places[row, own][lanes[row, own]].tolist():
                where, at = (GLOBAL,), start
                if site.space == SHARED:
                    where, at = self._of_shared(row, start, kind.remote)
                self._note(node, op, "writes" if copies else does, where, at, site.width)

    def use_mbarrier(
        self, instruction: int, address: Any, active: Mask, initializes: bool, is_near: bool
    ) -> None:
        lanes = self._threads.full(active)
        places = np.broadcast_to(to_array(address), lanes.shape)
        for row, warp in self._warps(active):
            node, own = self._step((row, warp)), slice(WARP * warp, WARP * warp + WARP)
            for start in {*places[row, own][lanes[row, own]].tolist()}:
                where, at = self._of_shared(row, (start & 0xFFFFFFFF) - self._base, not is_near)
                self._note(node, instruction, "writes" if initializes else "updates", where, at, 8)

    def visit(self, instruction: int, rows: Any, warps: Any, blocks: Any, is_async: bool) -> None:
        for row, warp, block in () if is_async else zip(*(one.tolist() for one in (rows, warps, blocks))):
            self.visits.append((self._step((row, warp)), block))

    def async_store(self, instruction: int, written: Stretches, columns: np.ndarray, updates: bool) -> None:
        does = "updates" if updates else "writes"
        for (row, first, size, _), column in zip(_each(written), columns.tolist()):
            node, where = self._node(), (SHARED, int(self._threads.blocks[row]))
            self._note(node, instruction, does, where, first - self._base, size)
            self.visits.append((node, row))
            self._held[row, column].append(node)

    def arrive_cluster(self, mask: Mask) -> None:
        for row, warp in self._warps(mask):
            self._held["cluster", int(self._threads.peers[row].min())].append(self._step((row, warp)))

    def pass_cluster(self, mask: Mask) -> None:
        for row, warp in [] if mask is False else self._warps(mask):
            self._step((row, warp), *self._held["cluster", int(self._threads.peers[row].min())])

    def block_barrier(self, mask: Mask = True) -> None:
        rows = {row for row, _ in self._warps(mask)}
        for row in rows:
            every = [place for place in self._last if place[0] == row]
            node = self._node(*(self._last[place] for place in every))
            self._last |= dict.fromkeys([*every, *(one for one in self._warps(mask) if one[0] == row)], node)

    def arrive_named(self, number: int, mask: Mask) -> None:
        for place in self._warps(mask):
            self._held["named", place[0], number].append(self._step(place))

    def pass_named(self, number: int, mask: Mask) -> None:
        self.arrive_named(number, mask)
        for place in self._warps(mask):
            self._step(place, *self._held["named", place[0], number])
        for row in {row for row, _ in self._warps(mask)}:
            self._held.pop(("named", row, number))

    def arrive(self, rows: Any, warps: Any, blocks: Any, columns: Any) -> None:
        for row, warp, block, column in {*zip(*(one.tolist() for one in (rows, warps, blocks, columns)))}:
            self._held[block, column].append(self._step((row, warp)))

    def copies_arrive(self, rows: Any, warps: Any, columns: Any) -> None:
        for row, warp, column in {*zip(*(one.tolist() for one in (rows, warps, columns)))}:
            groups = [node for group in self._groups[row, warp] for node in group]
            self._held[row, column] += [*self._begun[row, warp], *groups]

    def complete_phase(self, rows: Any, columns: Any) -> None:
        for row, column in {*zip(rows.tolist(), columns.tolist())}:
            self._held["over", row, column] += self._held.pop((row, column), [])

    def pass_phase(self, rows: Any, warps: Any, columns: Any) -> None:
        for row, warp, column in {*zip(*(one.tolist() for one in (rows, warps, columns)))}:
            self._step((row, warp), *self._held["over", row, column])

    def bulk_store(self, instruction: int, written: Stretches, columns: np.ndarray) -> None:
        for (row, first, size, warp), column in zip(_each(written), columns.tolist()):
            node = self._node(*([self._step((row, warp))] if warp >= 0 else []))
            where = SHARED, int(self._threads.blocks[row])
            self._note(node, instruction, "writes", where, first - self._base, size)
            self._held[row, column].append(node)

    def bulk_load(self, instruction: int, read: Stretches) -> None:
        for row, first, size, warp in _each(read):
            node, where = self._node(self._step((row, warp))), (SHARED, int(self._threads.blocks[row]))
            self._note(node, instruction, "reads", where, first - self._base, size)
            self._begun[row, warp].append(node)

    def bulk_global(self, instruction: int, access: str, made: Stretches) -> None:
        does = {"store": "writes", "update": "updates"}.get(operation(GLOBAL, access).verb, "reads")
        for row, first, size, warp in _each(made):
            node = self._node(self._step((row, warp)))
            self._note(node, instruction, does, (GLOBAL,), first, size)

    def commit(self, mask: Mask) -> None:
        for place in self._warps(mask):
            self._groups[place].append(self._begun.pop(place, []))

    def wait(self, mask: Mask, left: int) -> None:
        for place in self._warps(mask):
            groups = self._groups[place]
            done = max(0, len(groups) - left)
            self._step(place, *(node for group in groups[:done] for node in group))
            self._groups[place] = groups[done:]


def _each(made: Stretches) -> Iterator[tuple[int, ...]]:
    """(row, first byte, bytes, warp) of each."""
    return zip(*(one.tolist() for one in (made.rows, made.start, made.length, made.warps)))


def _warps(threads: Threads, mask: Mask) -> list[Place]:
    """The warps with a lane in a mask."""
    shape = threads.shape[0], threads.shape[1] // WARP
    return [
        (int(row), int(warp)) for row, warp in np.argwhere(np.broadcast_to(threads.warps_of(mask), shape))
    ]
