"""Tells `SharedRaces` what happens in a launch, phase by phase.

Between two barriers of all threads a loop mostly does what it did before. What happens there is kept until
the second one, and what was looked at before is not looked at again: it races as it did. As soon as anything
else orders accesses (copies, named barriers, mbarriers, clusters), each is looked at as it comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from memsim.access import Site, Stretches
from memsim.arch.units import WARP
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import Flow
from memsim.isa.program import GLOBAL, SHARED, Executable
from memsim.launch import Launch
from memsim.model.operations import operation
from memsim.order.order_listener import Threads
from memsim.order.warp_clocks import COPIES, ClockListener, WarpClocks
from memsim.sanitizer.access_sizes import mixed_with
from memsim.sanitizer.block_lifetimes import BlockLifetimes, Outside
from memsim.sanitizer.examples import Example, Found, Pair, Unwritten
from memsim.sanitizer.shared_races import GROUP, READS, UPDATES, WRITES, SharedRaces
from memsim.simt.faults import cluster_of
from memsim.simt.stores_of_others import swap_loops
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.poison import Poisoned
from memsim.state.predicates import both, from_bools, to_bools
from memsim.state.registers import content, plus, to_array
from memsim.state.sums import Int, low_bits

MBARRIER_BYTES = 8
#: The agents and the groups of products of warpgroups.
PRODUCTS = "products"
WAYS = {"load": READS, "store": WRITES, "update": UPDATES, "copy": WRITES}


class MixedBarriers(NamedTuple):
    """Two instructions at which threads of a block, or lanes of a warp, wait for each other."""

    first: int
    second: int
    in_warp: bool


class RaceListener(ClockListener):
    """Finds races in shared memory, and reads of what nobody wrote there: `found`. met: barriers that release
    threads that wait at different instructions. unknown: products of unknown operands,
    by instruction, with the reason.

    unit: bytes of the smallest access to shared memory. apart: blocks access each other's memory. swapped: by
    loads that are a part of an atomic made of a loop, its compare-and-swap, which they count as. mixed: by an
    atomic, those of other sizes.
    """

    def __init__(
        self, unit: int, apart: bool, swapped: Mapping[int, int], mixed: Mapping[int, frozenset[int]]
    ) -> None:
        self.unit, self.apart, self.swapped, self.mixed = unit, apart, swapped, mixed
        self.found: Found = {}
        self._pending: list[Callable[[], None]] = []
        self._key: list[object] = []
        self._is_kept = True
        self.unknown: set[tuple[int, str]] = set()
        self.met: dict[MixedBarriers, Example] = {}
        self.outlived: dict[Outside, Example] = {}
        self._lifetimes: BlockLifetimes | None = None

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self.finish()
        self.threads = threads
        self.layout = memory.layouts["shared"]
        self._is_used, self._base = memory.shared_bytes > 0, self.layout.base
        blocks, of_block, size = threads.blocks, threads.shape[1], memory.shared_size
        self._races = SharedRaces(blocks, of_block, size, self.unit, self.apart, self.found)
        self._races.mixed = self.mixed
        self._races.written_before = memory.system_shared
        self._lifetimes = BlockLifetimes(blocks, self.outlived)
        self._is_kept = True
        self._active: dict[object, Mask] = {}
        self._known: dict[tuple[object, ...], Counter[Pair | Unwritten]] = {}

    def finish(self) -> None:
        """The running blocks have ended."""
        self._end_phase()
        if self._lifetimes is not None:
            self._lifetimes.end(self._races.clocks, self._races.classes.of)

    def run_together(self, mask: Mask) -> None:
        if self._is_used:
            alive, run = self.threads.alive, self._races.run
            self._later(("run", content(mask), content(alive)), lambda: run(mask, alive))

    def shared_access(self, site: Site, address: Int, active: Mask) -> Callable[[], bool] | None:
        """Lanes access shared memory; returns what does it again."""
        kind = operation("shared", site.access)
        if active is False or kind.unmade or kind.verb not in WAYS or kind.engine or kind.grouped:
            return None
        copies = kind.verb == "copy"
        if "async" in site.access and not copies:  # told as `async_store`
            return None
        if copies or kind.remote:
            self._at_once()
        peers = self.threads.peers if kind.remote else None
        if peers is not None:
            self._races.clocks.use()
        made, access = site.place, self._races.access
        way = UPDATES if made in self.swapped else WAYS[kind.verb]
        index = self.swapped.get(made, made)
        key = site.index, content(active), content(address)
        lanes = key[1:] if peers is None else None

        def make() -> None:
            access(way, index, address, site.width, active, copies, peers, lanes)

        def again() -> bool:
            self._active[key[1]] = active
            self._later(key, make)
            return True

        again()
        return again

    def use_mbarrier(
        self, instruction: int, address: Int, active: Mask, initializes: bool, is_near: bool
    ) -> None:
        """An mbarrier is a word that is stored where it is initialized, and then changed by atomics."""
        self._at_once()
        way, place = WRITES if initializes else UPDATES, plus(low_bits(address, 32), -self._base)
        if not is_near:
            self._races.clocks.use()
            self._races.access(way, instruction, place, MBARRIER_BYTES, active, peers=self.threads.peers)
            return
        place = low_bits(place, 24)
        if initializes:  # lanes of a warp with one address do it once
            lanes = self.threads.full(active)
            rows, threads = np.nonzero(lanes)
            places = np.broadcast_to(to_array(place), lanes.shape)[lanes]
            _, first = np.unique([rows, threads // WARP, places], axis=1, return_index=True)
            once = np.zeros(lanes.shape, np.bool_)
            once[rows[first], threads[first]] = True
            active = from_bools(once)
        self._races.access(way, instruction, place, MBARRIER_BYTES, active)

    def block_barrier(self, mask: Mask = True) -> None:
        """What a warp accessed that has exited since, a barrier of the others does not order."""
        races = self._races
        if not self._is_used or mask is False:
            return
        alive = self.threads.alive
        if alive is not True and self._have_exited(alive):
            warps = self._warps(both(alive, mask))
            self._meet(("barrier", 0), *warps)
            return
        here, living = (np.any(to_bools(one), axis=1) for one in (mask, alive))
        blocks = np.broadcast_to(here | ~living, len(self.threads.blocks))
        if self._is_kept and blocks.all():
            self._end_phase()
        else:
            self._at_once()
        if blocks.all():
            self._active = {}
        races.barrier(blocks)

    def meet(self, lanes: Sequence[tuple[int, Mask]]) -> None:
        """Keep of each pair of instructions the first thread at each, and whether a warp is at both."""
        full = self.threads.full
        for (one, here), (other, there) in combinations(lanes, 2):
            if one == other:
                continue
            both_here, warps = np.stack([full(here), full(there)]), self.threads.shape[1] // WARP
            by_warp: np.ndarray = np.all(both_here.reshape(2, -1, warps, WARP).any(3), axis=0)
            in_warp = bool(by_warp.any())
            every: np.ndarray = np.all(both_here.any(2), axis=0)
            rows = np.flatnonzero(by_warp.any(1) if in_warp else every)
            if not len(rows):
                continue
            block, row = int(self.threads.blocks[rows[0]]), rows[0]
            threads = [int(mask[row].argmax()) for mask in both_here]
            key = MixedBarriers(min(one, other), max(one, other), in_warp)
            first, second = threads if one < other else threads[::-1]
            self.met.setdefault(key, Example(block, first, second)).count += len(rows)

    def _have_exited(self, alive: Mask) -> bool:
        """Whether a warp has, all of whose lanes are not alive, that accessed memory in this phase."""
        ended = from_bools(~np.repeat(self.threads.warps_of(alive), WARP, axis=1))
        return ended is not False and any(
            both(ended, active) is not False for active in self._active.values()
        )

    # --- events that are looked at later -------------------------------------------------------

    def _later(self, key: tuple[object, ...], act: Callable[[], None]) -> None:
        if not self._is_kept:
            act()
            return
        self._pending.append(act)
        self._key.append(key)

    def _at_once(self) -> None:
        """From here on nothing is kept."""
        if self._is_kept:
            self._look()
            self._is_kept = False

    def _end_phase(self) -> None:
        key = tuple(self._key)
        known = self._known.get(key) if self._pending else Counter()
        if known is None:
            before = {pair: one.count for pair, one in self.found.items()}
            self._look()
            after = Counter({pair: one.count for pair, one in self.found.items()})
            after.subtract(before)
            self._known[key] = +after
        else:
            self._pending, self._key = [], []
            for pair, count in known.items():
                self.found[pair].count += count

    def _look(self) -> None:
        pending, self._pending, self._key = self._pending, [], []
        for act in pending:
            act()

    # --- what orders warps besides barriers of whole blocks -------------------------------------

    @property
    def _clocks(self) -> WarpClocks:
        self._at_once()
        self._races.clocks.use()
        return self._races.clocks

    def _warps(self, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
        races = self._races
        races.tell_apart(races.classes.split_by(0, mask))
        return races.classes.warps(mask, races.threads)

    def _of_classes(self, rows: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, ...]:
        """Events of blocks `rows` [n], with these columns, as those of classes."""
        self._at_once()
        races = self._races
        races.tell_apart(races.classes.split_by_events(rows, columns))
        of = races.classes.of[rows]
        first = races.classes.first[of] == rows
        return (of[first], *(column[first] for column in columns))

    def _stretches(self, made: Stretches, columns: np.ndarray | None = None) -> tuple[Stretches, np.ndarray]:
        """The same of stretches and, of each, the mbarrier where it completes; from the first byte of the
        kernel's shared memory.
        """
        columns = np.zeros_like(made.rows) if columns is None else columns
        rows, start, *more, columns = self._of_classes(
            made.rows, made.start, made.length, made.warps, columns
        )
        return Stretches(rows, start - self._base, *more), columns

    def arrive(self, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, columns: np.ndarray) -> None:
        far = blocks - rows
        of, warps, far, columns = self._of_classes(rows, warps, far, columns)
        super().arrive(of, warps, of + far, columns)

    def copies_arrive(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        super().copies_arrive(*self._of_classes(rows, warps, columns))

    def complete_phase(self, rows: np.ndarray, columns: np.ndarray) -> None:
        super().complete_phase(*self._of_classes(rows, columns))

    def pass_phase(self, rows: np.ndarray, warps: np.ndarray, columns: np.ndarray) -> None:
        super().pass_phase(*self._of_classes(rows, warps, columns))

    def _meet(self, where: Hashable, rows: np.ndarray, warps: np.ndarray) -> None:
        """Warps [n] have waited for each other."""
        clocks = self._clocks
        holder = clocks.holder(where)
        clocks.tell(rows, warps, holder)
        clocks.learn(rows, warps, holder)
        clocks.forget(rows, holder)

    def fence_proxies(self, instruction: int, mask: Mask, space: str) -> None:
        if space != GLOBAL:
            clocks = self._clocks
            clocks.fence(*self._warps(mask))

    def visit(
        self, instruction: int, rows: np.ndarray, warps: np.ndarray, blocks: np.ndarray, is_async: bool
    ) -> None:
        clocks, of = self._clocks, self._races.classes.of
        lives, every = self._lives, np.arange(clocks.warps)
        if not is_async:
            agents = self._foreign(rows, warps)
            lives.access(instruction, blocks, agents, clocks.ages[of[blocks]], rows, warps)
        theirs = self._foreign(np.repeat(blocks, len(every)), np.tile(every, len(blocks)))
        lives.begin(clocks, of[rows], instruction, rows, warps, theirs.reshape(-1, len(every)))

    @property
    def _lives(self) -> BlockLifetimes:
        assert self._lifetimes is not None
        return self._lifetimes

    def bulk_store(self, instruction: int, written: Stretches, columns: np.ndarray) -> None:
        self._copied(instruction, written.rows, columns)
        of_classes, columns = self._stretches(written, columns)
        self._races.bulk_access(WRITES, instruction, of_classes, self._copies(columns))

    def async_store(self, instruction: int, written: Stretches, columns: np.ndarray, updates: bool) -> None:
        self._copied(instruction, written.rows, columns)
        of_classes, columns = self._stretches(written, columns)
        way, agents = UPDATES if updates else WRITES, self._copies(columns)
        self._races.bulk_access(way, instruction, of_classes, agents, proxy=False)

    def _copied(self, instruction: int, rows: np.ndarray, columns: np.ndarray) -> None:
        """Asynchronous operations write shared memory of blocks until mbarriers there say so."""
        agents, ages = self._copies(columns), self._clocks.ages[self._races.classes.of[rows]]
        self._lives.access(instruction, rows, agents, ages, rows, np.full(len(rows), -1))

    def _copies(self, columns: np.ndarray) -> np.ndarray:
        """The agents of what completes at mbarriers [n]."""
        clocks = self._clocks
        each = {column: clocks.agent(("copies", column)) for column in np.unique(columns).tolist()}
        return np.array([each[column] for column in columns.tolist()], np.int64)

    def bulk_load(self, instruction: int, read: Stretches) -> None:
        self._clocks.use()
        of_classes, _ = self._stretches(read)
        self._races.bulk_access(READS, instruction, of_classes, COPIES + of_classes.warps)

    def read_operands(
        self, instruction: int, read: Callable[[], Stretches], mask: Mask, commits: bool
    ) -> None:
        """A product is of a warpgroup: who waits for it waits for what all four warps read."""
        groups = self._products
        try:
            of_classes, _ = self._stretches(read())
        except Poisoned as unknown:
            self.unknown.add((instruction, unknown.poison.story()))
        else:
            self._races.bulk_access(READS, instruction, of_classes, groups[of_classes.warps // GROUP])
        if commits:
            self._clocks.commit(*self._warps(mask), PRODUCTS)

    def wait_for_products(self, mask: Mask, left: int) -> None:
        groups, (rows, warps) = self._products, self._warps(mask)
        self._clocks.wait(rows, warps, left, PRODUCTS, groups[warps // GROUP])

    @property
    def _products(self) -> np.ndarray:
        """The agents of the products of each warpgroup."""
        count = -(-self._races.warps // GROUP)
        return np.arange(count) + self._clocks.agent(PRODUCTS, count)


def setting_of(
    executable: Executable, launch: Launch
) -> tuple[int, bool, dict[int, int], dict[int, frozenset[int]]]:
    """Bytes of the smallest access to shared memory, whether blocks access that of others, the atomic of each
    load that is a part of one made of a loop, and by each atomic those of other sizes.
    """
    program = executable.program
    shared = [op for op in program.ops if any(space in (SHARED, "generic") for _, space in op.touches)]
    unit = min((bytes_of_piece(op.form) for op in shared), default=4)
    loads = {loop.load.index: loop.swap.index for loop in swap_loops(program.ops)}
    met = any(op.flow in (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER) for op in program.ops)
    atomics = [op for op in shared if any(operation(SHARED, way).verb == "update" for way, _ in op.touches)]
    mixed = {op.index: others for op in atomics if (others := mixed_with(op, atomics))}
    return unit, met or cluster_of(executable, launch) not in (None, (1, 1, 1)), loads, mixed
