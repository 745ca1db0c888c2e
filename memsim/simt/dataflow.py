"""Dataflow analysis of a program: live registers, and the slice that addresses and branches need."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import cached_property

from memsim.isa.control import is_fence_of_system
from memsim.isa.multi_function import is_approximate
from memsim.isa.op import Effect, Trait, slots_of
from memsim.isa.program import GLOBAL, SHARED, Op, Program, spaces_read, spaces_written
from memsim.simt.control_graph import ControlGraph
from memsim.simt.decided_by import AccessedPlaces, Places, decided_by, is_atomic, meet
from memsim.simt.exact_functions import begins_exact_division, begins_exact_root
from memsim.simt.harmless_branches import PassedBranch, branches_to_pass, ways_past
from memsim.simt.needed_slots import Needed, guards_of_operands
from memsim.simt.pointer_roots import ANYWHERE, roots_of_accesses
from memsim.simt.stores_of_others import StoresBehind, spinning_loads, swap_loops


class Dataflow(ControlGraph):
    """Analyses of one program, each computed on first use.

    functions_measured: whether what MUFU computes was measured on the chip that the program is for.
    """

    def __init__(self, program: Program, functions_measured: bool = False) -> None:
        super().__init__(program)
        self.functions_measured = functions_measured
        self._asked: tuple[object, ...] = ()
        self.pointers = -1
        self.spaces: Mapping[int, str] = {}
        self.same: dict[int, int] = {}
        self.looked_at: Mapping[int, int] = {}
        #: Those to global memory of what addresses or branches may depend on, after `needed`.
        self.stores_read_again: frozenset[int] = frozenset()
        self._needed_values: frozenset[int] = frozenset()
        #: The branches that need not be known, after `needed`.
        self.passed: dict[int, PassedBranch] = {}

    @cached_property
    def live(self) -> dict[int, int]:
        """Live slots at the first instruction of each basic block."""
        effects = {}
        for start in self.basic_blocks:
            used = killed = 0
            for op in self.block(start):
                used |= op.reads & ~killed
                if op.guard is None:
                    killed |= op.writes
            effects[start] = used, killed
        return self.backward(lambda start, out: effects[start][0] | (out & ~effects[start][1]), 0)

    def needed(
        self,
        pointers: int = -1,
        same: dict[int, int] | None = None,
        spaces: Mapping[int, str] | None = None,
        every_branch: bool = False,
        looked_at: Mapping[int, int] | None = None,
    ) -> frozenset[int]:
        """Instructions whose values addresses, guards and branches depend on.

        It includes a store if a load in it may read what is stored. `pointers`: the roots that are pointers.
        `same`: which of them may alias, as bits -> bits. `spaces`: the state space of each root's memory, as
        far as it is known; "" for a number, which is no address. every_branch: those that decide no access,
        too; otherwise they are `passed` by. looked_at: slots whose values matter at other instructions, by
        the index of these; what they store matters, too, and who executes them.
        """
        asked = pointers, same or {}, spaces or {}, every_branch, dict(looked_at or {})
        if asked == self._asked:  # a launch is replayed several times
            return self._needed_values
        self._asked = asked
        self.spaces = spaces or {}
        self.pointers = pointers | ANYWHERE
        self.same = same or {}
        self.looked_at = looked_at or {}
        stored: frozenset[tuple[str, int]] = frozenset()
        readers: frozenset[int] = frozenset()
        self.passed = {}
        if not every_branch:
            may_be = self._may_be_passed.items()
            self.passed = {at: one for at, one in may_be if one.ways.isdisjoint(self.looked_at)}
        while True:
            found, loaded, chosen = self._needed(stored, readers)
            reading = frozenset(at for at in found if SHARED in spaces_read(self.ops[at]))
            if chosen:
                self.passed = {at: branch for at, branch in self.passed.items() if at not in chosen}
            elif loaded <= stored and reading <= readers:
                self._needed_values = found
                return found
            stored, readers = stored | loaded, readers | reading

    def _may_be_read(self, store: Op, stored: Places, readers: frozenset[int]) -> bool:
        """May a store write what is needed? readers: of shared memory."""
        written = self.places_written(store)
        if not meet(written, stored):
            return False
        elsewhere = frozenset(place for place in written if place[0] != SHARED)
        if meet(elsewhere, stored):
            return True
        return any(not self._stores_behind.is_behind(reader, store.index) for reader in readers)

    @cached_property
    def _stores_behind(self) -> StoresBehind:
        return StoresBehind(self)

    def _needed(self, stored: Places, readers: frozenset[int]) -> tuple[frozenset[int], Places, set[int]]:
        """One iteration: with the data of stores to `stored` (space, roots) needed, of those to shared memory
        that `readers` may read. Returns what is needed, where that loads from, and the branches of `passed`
        that decide something of it.
        """
        ops, predicates = self.ops, self.program.predicates
        wanted, chosen = set[int](), set[int]()
        loads: set[tuple[str, int]] = set()
        wants_data = {
            op.index
            for op in ops
            if op.effect is Effect.MEMORY
            and (op.index in self.looked_at or (stored and self._may_be_read(op, stored, readers)))
        }
        in_global = frozenset(place for place in stored if place[0] == GLOBAL)
        self.stores_read_again = frozenset(
            index for index in wants_data if meet(self.places_written(ops[index]), in_global)
        )

        def step(op: Op, need: Needed) -> None:
            index = op.index
            if op.effect is Effect.NONE:
                return
            if op.effect is Effect.CONTROL:
                if index in self.passed:
                    if need.guards(self.passed[index].writes):
                        chosen.add(index)
                    return
                need.written(op.writes & predicates)
                need.read(op.reads, None)
                return
            loads.update(self.maps_read(op))
            users = need.guards(op.writes)
            if users:
                need.killed(op.writes, op.guard)
            if op.writes & predicates:
                need.written(op.writes & predicates)
            if op.effect is not Effect.MEMORY:
                if users:
                    wanted.add(index)
                for guard in guards_of_operands(op, users):
                    need.read(op.reads, guard)
                return
            if users or index in wants_data:
                wanted.add(index)
                loads.update(self.places_read(op))
                need.read(op.reads, op.guard)
            else:
                need.read(op.addresses, op.guard)

        def transfer(start: int, out: Needed) -> Needed:
            need = out | Needed()
            for op in reversed(self.block(start)):
                step(op, need)
                if op.index in self.looked_at:
                    need.read(self.looked_at[op.index], op.guard)
            return need

        self.backward(transfer, Needed(), ways_past(self, self.passed))
        return frozenset(wanted), frozenset(loads), chosen

    def decides(self, index: int) -> bool:
        """Whether the value of an instruction is needed; call it after `needed`."""
        return index in self._needed_values

    @cached_property
    def _may_be_passed(self) -> dict[int, PassedBranch]:
        return branches_to_pass(self)

    @property
    def accessed(self) -> AccessedPlaces:
        """Where memory instructions access."""
        return AccessedPlaces(self.places_read, self.places_written, self.maps_read)

    def places_read(self, op: Op) -> Places:
        """Where a memory instruction reads."""
        return _places(self._reached(op, spaces_read(op)), self._data_roots(op))

    def maps_read(self, op: Op) -> Places:
        """Where in global memory the tensor map may lie that says what an instruction accesses."""
        roots = self.merged(self.roots_of(op.index)) if Trait.READS_MAP in op.traits else 0
        return frozenset(((GLOBAL, roots),) if roots else ())

    def _data_roots(self, op: Op) -> int:
        """Of what is read or written in global memory; of a tensor they do not follow from its map."""
        return 0 if Trait.READS_MAP in op.traits else self.merged(self.roots_of(op.index))

    def places_written(self, op: Op) -> Places:
        """Where a memory instruction writes."""
        spaces = self._reached(op, spaces_written(op))
        roots = self._data_roots(op) if GLOBAL in spaces else 0
        return _places(spaces, roots)

    def _reached(self, op: Op, spaces: frozenset[str]) -> frozenset[str]:
        """Which of these spaces an instruction may access: a generic address is in that of a root."""
        if not self.spaces or any(space != "generic" for _, space in op.touches):
            return spaces
        found: set[str] = set()
        for slot in slots_of(self.roots_of(op.index)):
            space = self.spaces.get(1 << slot)
            if space is None:
                return spaces
            found.add(space)
        return spaces & found if found - {""} else spaces

    def is_approximate(self, op: Op, reached: Container[int] | None = None) -> bool:
        """Does its result depend on how the chip approximates a function, and is that not measured?

        reached: as for `uncertain`.
        """
        if self.functions_measured or not is_approximate(op):
            return False
        return not (
            begins_exact_root(self, self.live, op, reached)
            or begins_exact_division(self, self.live, op, reached)
        )

    def places_written_elsewhere(self, op: Op) -> Places:
        """Where a memory instruction writes, but for global memory."""
        return frozenset(place for place in self.places_written(op) if place[0] != GLOBAL)

    def merged(self, roots: int) -> int:
        """Those of the roots that are pointers, with others that may alias them."""
        roots &= self.pointers
        for bit, others in self.same.items():
            if roots & bit:
                roots |= others
        return roots

    def roots_of(self, index: int) -> int:
        """The roots of a memory instruction's global address, as bits."""
        return self._roots.get(index, ANYWHERE)

    @cached_property
    def _roots(self) -> dict[int, int]:
        return roots_of_accesses(self, self.live)

    def read_again(self) -> frozenset[int]:
        """Instructions that store to global memory what addresses or branches may depend on, and those that
        may read it again. Call it after `needed`.
        """
        stores = self.stores_read_again
        places = frozenset[tuple[str, int]]().union(*(self.places_written(self.ops[at]) for at in stores))
        loads = (at for at in self._needed_values if self.ops[at].effect is Effect.MEMORY)
        of_global = frozenset(place for place in places if place[0] == GLOBAL)
        maps = (op.index for op in self.ops if meet(self.maps_read(op), of_global))
        return stores.union((at for at in loads if meet(self.places_read(self.ops[at]), of_global)), maps)

    def uncertain(
        self,
        depends: bool = True,
        reads_back: bool = True,
        reached: Container[int] | None = None,
        settled: Container[int] = (),
    ) -> tuple[str, ...]:
        """Reasons why counts depend on the order of warps and blocks, or on the machine; () if they do not.

        depends, reads_back: as `GlobalOrder`, of the instructions `read_again` in a launch; True if unknown.
        reached: the instructions that warps came to; None for all. settled: those whose results are certain
        though they depend on approximations of the same basic block.

        Call it after `needed`. An atomic returns what others left; a load may come before or after another
        block's store; a loop may wait for another warp's store (not that of an atomic, whose counts have
        limits); what chips approximate is not known to the last bit where it was not measured; and on some
        machines a warp stores to global memory once for each fence of the system. Source: docs/model.md.
        """
        ops = [op for op in self.ops if reached is None or op.index in reached]
        indices = {op.index for op in ops}
        found = []
        loops = swap_loops(self.ops)
        finds = frozenset(loop.load.index for loop in loops)
        swaps = frozenset(loop.swap.index for loop in loops)
        ends = frozenset(loop.branch.index for loop in loops)
        atomics = frozenset(op.index for op in ops if is_atomic(op)) | finds & indices
        rounded = frozenset(op.index for op in ops if self.is_approximate(op, reached))
        written = self.places_written if depends or reads_back else self.places_written_elsewhere
        places = replace(self.accessed, written=written)
        causes = ("the result of an atomic", atomics, ()), ("the last bit of MUFU", rounded, settled)
        for cause, sources, certain in causes:
            for op in decided_by(self, sources, places, settled=certain) if sources else ():
                if op.index not in ends:
                    what = "the branch" if op.effect is Effect.CONTROL else "the address"
                    found.append(f"{cause} decides {what} at {op.where}")
        for op in spinning_loads(self, self._needed_values):
            if op.index in indices - finds - swaps:
                found.append(f"a loop waits for what other warps store in shared memory at {op.where}")
        for op in filter(is_fence_of_system, ops):
            found.append(f"some machines make a store to global memory for the fence at {op.where}")
        stores = self.stores_read_again & indices if depends else frozenset[int]()
        if stores and self._decides(stores, indices):
            for store in (self.ops[index] for index in sorted(stores)):
                found.append(
                    f"addresses or branches depend on what the kernel itself writes at {store.where}"
                )
        return tuple(dict.fromkeys(found))

    def _decides(self, stores: frozenset[int], indices: Container[int]) -> bool:
        """Does what these instructions store to global memory decide an access or control flow?

        indices: of the instructions that are looked at. `needed` looks at functions from all calls at once;
        here they are followed from each.
        """
        written = (place for at in stores for place in self.places_written(self.ops[at]))
        stored = frozenset(place for place in written if place[0] == GLOBAL)
        found = decided_by(self, (), self.accessed, stored)
        return any(op.index in indices for op in found)


def _places(spaces: frozenset[str], roots: int) -> Places:
    return frozenset((space, roots if space == GLOBAL else 0) for space in spaces)
