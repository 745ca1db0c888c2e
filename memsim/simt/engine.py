"""The machine for programs of `Op`s: all threads of a chunk of blocks, in step; lanes part as the code says.

In: a `Code` (a program made ready for one launch), the launch, a listener. Out: effects on memory, and one
call of the listener for each execution of an access.

Lanes of a warp that are at one place form a group. Groups part at branches, and come together only where the
code says so: at BSYNC and WARPSYNC; where the chip may join others, the listener is told. Groups of different
warps at the same place run together, which changes nothing for any of them. The group that is farthest behind
runs first, but one that goes round a loop for long lets others pass, because it may wait for them. Registers
of lanes that do not run are kept by merging, and only where they will still be read. Left out on purpose:
timing, caches, the order of warps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.isa.memory import Copy, own_shared
from memsim.isa.op import PREDICATE, Effect, Flow, Op
from memsim.launch import Launch
from memsim.simt.block_barriers import BlockBarriers
from memsim.simt.bounds import Bounds, place_in_source, resolve_generic
from memsim.simt.code import ANSWER_SLOT, COUNT_SLOT, Code, Segment
from memsim.simt.convergence import Convergence
from memsim.simt.listener import Listener
from memsim.simt.special_registers import special_register
from memsim.state.memory import SHARED_BASE, SHARED_WINDOW, WINDOW_SIZE, Memory
from memsim.state.partial import merged, on_known_lanes
from memsim.state.registers import (
    Part,
    Poison,
    Poisoned,
    both,
    either,
    from_bools,
    invert,
    plus,
    to_array,
    to_bools,
)
from memsim.state.sums import Int

#: Spaces whose accesses have rows; the others are counted beside them, under these names.
COUNTED = ("shared", "global")
ASIDE = {"local": "local memory", "const": "constants at an index", "texture": "texture fetches"}
#: Slots that a called function need not keep: R4-R15, P0-P6.
SCRATCH = (*range(4, 16), *range(PREDICATE, PREDICATE + 7))
#: How often a group goes round loops before others that are ready pass it.
PATIENCE = 1000


@dataclass(eq=False)
class Group:
    """Lanes with one program counter, of one or of many warps; `turns` counts their ways back."""

    pc: int
    mask: Any
    turns: int = 0


def only_reads(kind: str, space: str) -> bool:
    """Does an access of this kind write nothing in this space?"""
    return kind == "load" or (kind.startswith("cp_async") and space == "global")


class Engine:
    """Runs chunks of blocks of one launch.

    allow_out_of_bounds: a load outside of every array is counted, and what it gives is not known.
    """

    def __init__(
        self,
        code: Code,
        memory: Memory,
        launch: Launch,
        listener: Listener,
        budget: int,
        allow_out_of_bounds: bool = False,
    ) -> None:
        self.code = code
        self.memory = memory
        self.launch = launch
        self.listener = listener
        self.threads = launch.warps * 32
        self.budget = self.steps_left = budget
        self.allow_out_of_bounds = allow_out_of_bounds
        self.blocks: np.ndarray = np.zeros(0, np.int64)
        self.slots: list[Any] = []
        self.mask: Any = True
        self.alive: Any = True
        self.executing: Any = True
        self.protected = 0
        self.ready: list[Group] = []
        self.parked: list[Group] = []
        self.convergence = Convergence(self)
        self.barriers = BlockBarriers(self)
        self.bounds = Bounds(self)
        self.controls: dict[Flow, Callable[[Op, Any, Any], int | None]] = {
            Flow.EXIT: self._exit,
            Flow.BRANCH: self._branch,
            Flow.BRANCH_ANY: self._branch_any,
            Flow.BRANCH_DIVERGED: self._branch_diverged,
            Flow.INDEXED: self._indexed,
            Flow.CALL: self._call,
            Flow.RETURN: self._return,
            Flow.SET_BARRIER: self.convergence.set,
            Flow.WAIT_BARRIER: self.convergence.wait,
            Flow.LEAVE_BARRIER: self.convergence.leave,
            Flow.WARP_SYNC: self.convergence.warp_sync,
            Flow.BLOCK_BARRIER: self.barriers.reach,
            Flow.TRAP: self._trap,
            Flow.YIELD: self._go_on,
            Flow.SLEEP: self._sleep,
            Flow.UNKNOWN: self._unknown,
        }

    # --- running ------------------------------------------------------------------------

    def run(self, blocks: np.ndarray) -> None:
        """Run blocks with these linear numbers (int64 [B]) to their end.

        Raises:
            MemsimError: deadlock, out of bounds, misaligned, endless, or an unknown branch.
        """
        self.blocks = blocks
        self.slots = [None] * self.code.slots
        self.memory.start_chunk(len(blocks), self.threads)
        whole = self.launch.threads == self.threads
        self.alive = True if whole else from_bools((np.arange(self.threads) < self.launch.threads)[None, :])
        self.steps_left = self.budget
        self.convergence.start()
        self.barriers.start()
        self.bounds = Bounds(self)
        self.listener.start_chunk(self)
        self.ready = [Group(0, self.alive)]
        self.parked = []
        while True:
            while self.ready:
                self.advance(self.next_group())
            if self.barriers.release():
                continue
            if self.parked:
                self.ready, self.parked = self.parked, []
                continue
            if not self.barriers.waiting and not self.convergence.waiting:
                return
            raise self.barriers.deadlock() or self.convergence.deadlock()

    def next_group(self) -> Group:
        """The group that is farthest behind, with those of other warps at the same place."""
        first = min(self.ready, key=lambda group: group.pc)
        self.ready.remove(first)
        others = [group for group in self.ready if group.pc == first.pc]
        if others:
            taken = self.warps_of(first.mask)
            for other in others:
                warps = self.warps_of(other.mask)
                if not (taken & warps).any():
                    self.ready.remove(other)
                    first = Group(first.pc, either(first.mask, other.mask), max(first.turns, other.turns))
                    taken = taken | warps
                elif not self.joins_at_once(first.pc):
                    where = self.code.program.ops[first.pc].where
                    self.listener.unsure(
                        f"lanes of a warp that are at the same time at {where} may go on together: "
                        "nothing there joins them"
                    )
        return first

    def joins_at_once(self, pc: int) -> bool:
        """Is no more than a barrier or the end ahead, so that it is all the same who comes together?"""
        segment = self.code.segments[pc]
        control = segment.control
        ends = control is not None and (
            control.flow in (Flow.WAIT_BARRIER, Flow.WARP_SYNC)
            or (control.flow is Flow.EXIT and control.guard is None)
        )
        return ends and not any(op.effect is Effect.MEMORY for op in self.code.program.ops[pc : segment.stop])

    def advance(self, group: Group) -> None:
        """Run a group until it parts, waits, ends, or others come first."""
        self.mask, pc, turns = group.mask, group.pc, group.turns
        self.protected = self.read_by_others()
        segments, count = self.code.segments, len(self.code.program.ops)
        while True:
            segment = segments[pc]
            self.steps_left -= segment.size
            if self.steps_left < 0:
                raise self.endless(segment)
            self.listener.executed(pc, segment.stop, self.mask)
            for step in segment.steps:
                step(self)
            control, following = segment.control, segment.stop
            if control is not None:
                reached = self.control(control)
                if reached is None:
                    return
                following = reached
            if following >= count:
                self.finish(self.mask)
                return
            if self.ready:
                is_waiting = control is not None and control.flow in (Flow.YIELD, Flow.SLEEP)
                if following <= pc or is_waiting:
                    turns += PATIENCE // 10 if is_waiting else 1
                    if turns > PATIENCE:
                        self.listener.unsure(
                            f"how often lanes go round the loop at {self.code.program.ops[pc].where} depends "
                            "on when others, for which they wait, are done"
                        )
                        self.parked.append(Group(following, self.mask))
                        return
                if any(other.pc <= following for other in self.ready):
                    self.ready.append(Group(following, self.mask, turns))
                    return
            pc = following

    def read_by_others(self) -> int:
        """Slots (a bit set) that lanes outside the running group will still read."""
        live = self.code.live
        found = self.convergence.live() | self.barriers.live()
        for other in (*self.ready, *self.parked):
            found |= live(other.pc)
        return found

    def is_alone(self) -> bool:
        """Are all threads that have not ended in the running group?"""
        return not (self.ready or self.parked or self.barriers.waiting or self.convergence.waiting)

    # --- control ------------------------------------------------------------------------

    def control(self, op: Op) -> int | None:
        """Execute a control instruction; gives the next program counter, None if the group stops here."""
        assert op.flow is not None
        try:
            taken = self.taken(op)
        except Poisoned as unknown:
            raise self.unknown_branch(op, unknown.poison) from None
        if taken is False and op.flow is not Flow.BRANCH_ANY:
            return op.index + 1
        active = both(self.mask, taken)
        if active is False:
            return op.index + 1
        rest = False if taken is True else both(self.mask, invert(taken))
        return self.controls[op.flow](op, active, rest)

    def taken(self, op: Op) -> bool | Part:
        """Where the guard and the predicate operand of a control instruction hold."""
        read = self.code.conditions.get(op.index)
        if read is None:
            return True
        try:
            return read(self.slots)
        except Poisoned as unknown:
            found, known = on_known_lanes(
                self.slots,
                self.code.slots_of(op.reads),
                lambda: self.mask,
                lambda: read(self.slots),
                unknown.poison,
            )
            if known is not True:
                raise
            return found  # type: ignore[no-any-return]

    def part(self, ways: Sequence[tuple[int, Any]]) -> int | None:
        """The running group goes several ways."""
        ways = [(pc, mask) for pc, mask in ways if mask is not False]
        if len(ways) == 1:
            self.mask = ways[0][1]
            return ways[0][0]
        self.ready.extend(Group(pc, mask) for pc, mask in ways)
        return None

    def _go_on(self, op: Op, active: Any, rest: Any) -> int:
        return op.index + 1

    def _sleep(self, op: Op, active: Any, rest: Any) -> int:
        asleep = self.words_of(active)
        if ((asleep != 0) & (self.words_of(self.alive) & ~asleep != 0)).any():
            self.listener.unsure(
                f"where a warp comes together, lanes that sleep at {op.where} may be left behind"
            )
        return op.index + 1

    def _exit(self, op: Op, active: Any, rest: Any) -> int | None:
        self.finish(active)
        if rest is False:
            return None
        self.mask = rest
        self.protected = self.read_by_others()
        return op.index + 1

    def finish(self, mask: Any) -> None:
        """These threads have ended."""
        self.alive = both(self.alive, invert(mask)) if mask is not True else False
        self.convergence.check()

    def _branch(self, op: Op, active: Any, rest: Any) -> int | None:
        target = self.target(op)
        if rest is False:
            return target
        return self.part([(op.index + 1, rest), (target, active)])

    def target(self, op: Op) -> int:
        """Where a branch or call leads."""
        if not op.targets:
            raise self.refused(op, "leads to a place that is not in the listing")
        return op.targets[0]

    def _branch_any(self, op: Op, active: Any, rest: Any) -> int | None:
        """A whole group goes if one of its lanes does."""
        going = both(self.mask, self.whole_warps(active))
        return self.part([(op.index + 1, both(self.mask, invert(going))), (self.target(op), going)])

    def whole_warps(self, mask: Any) -> Any:
        """All lanes of the warps with a lane in the mask."""
        if isinstance(mask, bool):
            return mask
        return from_bools(np.repeat(self.warps_of(mask), 32, axis=1))

    def _branch_diverged(self, op: Op, active: Any, rest: Any) -> int | None:
        """Lanes of warps in which a lane of the mask is elsewhere go the slow way."""
        read = self.code.values[op.index]
        try:
            members = self.known_value(op, read)
        except Poisoned as unknown:
            raise self.unknown_branch(op, unknown.poison) from None
        missing = (self.lane_words(members) & self.words_of(self.alive) & ~self.words_of(active)) != 0
        away = both(both(self.mask, self.whole_warps(active)), from_bools(missing))
        return self.part([(op.index + 1, both(self.mask, invert(away))), (self.target(op), away)])

    def _indexed(self, op: Op, active: Any, rest: Any) -> int | None:
        """Each lane goes to the address that its register says, relative to the next instruction."""
        read = self.code.values[op.index]
        try:
            where = plus(self.known_value(op, read), op.address + 16)
        except Poisoned as unknown:
            raise self.unknown_branch(op, unknown.poison) from None
        return self._spread(op, where, active, rest)

    def _spread(self, op: Op, where: Int, active: Any, rest: Any) -> int | None:
        """Lanes go to the addresses `where`, the rest to the next instruction."""
        at = self.code.program.at
        if type(where) is int:
            ways = [(where, active)]
        else:
            array = np.broadcast_to(to_array(where), self.shape)
            found = np.unique(array[self.full(active)])
            ways = [(int(address), both(active, from_bools(to_array(where) == address))) for address in found]
        wrong = next((address for address, _ in ways if address not in at), None)
        if wrong is not None:
            raise self.refused(op, f"leads to address {wrong:#x}, where no instruction is")
        if op.flow is Flow.INDEXED and op.targets:
            wrong = next((address for address, _ in ways if at[address] not in op.targets), None)
            if wrong is not None:
                raise self.refused(op, f"leads to address {wrong:#x}, which is none of its targets")
        return self.part([(op.index + 1, rest), *((at[address], mask) for address, mask in ways)])

    def _call(self, op: Op, active: Any, rest: Any) -> int | None:
        if op.index not in self.code.values:
            return self._branch(op, active, rest)
        if "REL" in op.form.modifiers:
            return self._return(op, active, rest)
        name = self.code.called(op, self.slots)
        if name is None:
            raise self.refused(op, "calls through a pointer, which is not executed")
        poison = Poison(f"{name} is a function of the system, whose code is not here", op)
        for kind in ("load", "store", "atomic"):
            self.lose(op, kind, "global", 4, poison, active)
        self.lose(op, "atomic", "shared", 4, poison, active)
        for slot in SCRATCH:
            self.write(slot, poison, True if rest is False else active)
        return op.index + 1

    def _return(self, op: Op, active: Any, rest: Any) -> int | None:
        read = self.code.values[op.index]
        try:
            where = self.known_value(op, read)
        except Poisoned as unknown:
            raise self.unknown_branch(op, unknown.poison) from None
        return self._spread(op, where, active, rest)

    def _trap(self, op: Op, active: Any, rest: Any) -> int | None:
        what = "assertion failed in" if op.called.startswith("call") else "trap executed by"
        raise MemsimError(f"{what} {self.places(active)}", **place_in_source(op))

    def _unknown(self, op: Op, active: Any, rest: Any) -> int | None:
        raise self.refused(op, "is not executed")

    def known_value(self, op: Op, read: Callable[[list[Any]], Any]) -> Any:
        """An operand of a control instruction, in all lanes of the group.

        Raises:
            Poisoned: a lane's is not known.
        """
        try:
            return read(self.slots)
        except Poisoned as unknown:
            slots = self.code.slots_of(op.reads)
            found, known = on_known_lanes(
                self.slots, slots, lambda: self.mask, lambda: read(self.slots), unknown.poison
            )
            if known is not True:
                raise
            return found

    # --- masks --------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(blocks of the chunk, threads with padding)."""
        return len(self.blocks), self.threads

    def full(self, mask: Any) -> np.ndarray:
        """A mask written out as bool (B, T)."""
        return np.broadcast_to(to_bools(mask), self.shape)

    def by_warp(self, array: np.ndarray) -> np.ndarray:
        """An array over threads as (rows, warps, 32)."""
        rows = array.shape[0]
        return np.broadcast_to(array, (rows, self.threads)).reshape(rows, -1, 32)

    def warps_of(self, mask: Any) -> np.ndarray:
        """Which warps have a lane in the mask, bool (rows, W)."""
        return np.asarray(self.by_warp(to_bools(mask)).any(2))

    def words_of(self, mask: Any) -> np.ndarray:
        """The mask as a 32-bit word of the warp in each lane, int64 (rows, T)."""
        if mask is True:
            return np.full((1, 1), 0xFFFFFFFF, np.int64)
        if mask is False:
            return np.zeros((1, 1), np.int64)
        part = mask.derived("words", self._words)
        return part.array  # type: ignore[no-any-return]

    def _words(self, array: np.ndarray) -> np.ndarray:
        rows = self.by_warp(array)
        words = (rows.astype(np.int64) << np.arange(32)).sum(2)
        return np.repeat(words, 32, axis=1)

    def lane_words(self, value: Int) -> np.ndarray:
        """A register that holds a mask of lanes, unsigned."""
        return to_array(value) & 0xFFFFFFFF

    def active(self) -> np.ndarray:
        """The lanes that execute the instruction, bool (rows, warps, 32)."""
        return self.by_warp(to_bools(self.executing))

    # --- registers ----------------------------------------------------------------------

    def write(self, slot: int, value: Any, active: Any) -> None:
        """Write a register in those running lanes for which `active` holds."""
        registers = self.slots
        if active is True or active is self.mask:
            if not self.protected >> slot & 1:
                registers[slot] = value
                return
            active = self.mask
        elif self.protected >> slot & 1:
            active = both(self.mask, active)
        registers[slot] = merged(active, value, registers[slot])

    def special(self, name: str) -> Any:
        """What a special register holds."""
        return special_register(name, self)

    def barrier_result(self) -> tuple[Any, Any]:
        """What the last block barrier with a reduction gave."""
        return self.slots[COUNT_SLOT], self.slots[ANSWER_SLOT]

    def barrier_members(self, slot: int) -> Any:
        """The lanes that a convergence barrier register names."""
        value = self.slots[slot]
        return 0 if value is None else value

    def texture(self, handle: Any) -> Any:
        """The texture object that a handle names.

        Raises:
            Poisoned: it is of none.
        """
        low = {key & 0xFFFFFFFF: texture for key, texture in self.memory.textures.items()}
        found = low.get(handle & 0xFFFFFFFF) if type(handle) is int else None  # compilers drop the high word
        if found is None:
            raise MemsimError(
                "a texture fetch through a handle that is no texture object",
                hint="pass memsim.launch.Texture1D(array) for a cudaTextureObject_t parameter",
            )
        return found

    # --- memory -------------------------------------------------------------------------

    def touch(
        self, op: Op, kind: str, space: str, width: int, address: Int, active: Any, other: Copy | None = None
    ) -> Any:
        """Lanes `active` access `address`: check it and tell the listener.

        Gives the lanes that read outside of every array, where that is allowed.
        """
        if space == "elsewhere":
            self.lose(
                op, kind, "shared", width, Poison("shared memory of another block of the cluster", op), active
            )
            return False
        self.bounds.outside = False
        self.bounds.only_reads = only_reads(kind, space)
        is_generic = any(declared == "generic" for _, declared in op.touches)
        if space in ("local", "const"):
            if active is not False and space == "local":
                self.bounds.check(op, space, width, address, active)
            if is_generic:
                # The chip counts it as a request of global memory; one to local memory also as one of shared.
                poison = Poison(f"a generic address in {space} memory", op)
                for counted in ("global", "shared") if space == "local" else ("global",):
                    self.lose(op, kind, counted, width, poison, active)
                return self.bounds.outside
            self.listener.aside(ASIDE[space], active)
            return self.bounds.outside
        arrays: frozenset[str] = frozenset()
        if active is not False:
            arrays = self.bounds.check(op, space, width, address, active)
            if is_generic and kind == "atomic" and space == "global":
                # Some take a wavefront of shared memory as well; which ones is not known.
                self.lose(op, kind, "shared", width, Poison("a generic address in global memory", op), active)
        site = self.code.site(op, kind, space, width)
        if space == "shared":
            address = plus(address, -SHARED_BASE)
        if other is not None and space == "global":
            other = Copy(plus(other.address, -SHARED_BASE), other.active)
        self.listener.access(site, address, self.mask, active, arrays, other)
        if self.bounds.outside is not False:
            self.listener.aside("reads outside of every array", self.bounds.outside)
        return self.bounds.outside

    def lose(self, op: Op, kind: str, space: str, width: int, poison: Poison, active: Any) -> None:
        """An access whose addresses are not known."""
        if space not in COUNTED:
            self.listener.aside(ASIDE.get(space, f"{space} accesses"), active)
            return
        site = self.code.site(op, kind, space, width)
        if active is False:
            self.listener.access(site, 0, self.mask, False, frozenset(), None)
            return
        self.listener.unknown(site, poison, self.mask, active)

    def skip(self, op: Op) -> bool:
        """An access that no lane of the group makes is executed all the same; False if its sites are new."""
        sites = self.code.sites_of(op)
        for site in sites:
            self.listener.access(site, 0, self.mask, False, frozenset(), None)
        return bool(sites)

    def resolve(self, address: Int, active: Any) -> list[tuple[str, Int, Any]]:
        """(space, address in it, lanes) of a generic address, one for each space that is hit."""
        found = resolve_generic(address, active)
        if self.code.cluster != (1, 1, 1):
            return self._of_cluster(address, active) or found
        return [(name, own_shared(at) if name == "shared" else at, part) for name, at, part in found]

    def _of_cluster(self, address: Int, active: Any) -> list[tuple[str, Int, Any]] | None:
        """The same where shared addresses have a block's rank in bits 24 and up.

        None if none is in shared memory.
        """
        array = to_array(address)
        inside = both(
            active, from_bools((array >= SHARED_WINDOW) & (array < SHARED_WINDOW + 16 * WINDOW_SIZE))
        )
        if inside is False:
            return None
        own = from_bools((array - SHARED_WINDOW) >> 24 == to_array(self.special("SR_CgaCtaId")))
        ways = [
            ("shared", own_shared(address), both(inside, own)),
            ("elsewhere", address, both(inside, invert(own))),
        ]
        rest = both(active, invert(inside))
        ways += resolve_generic(address, rest) if rest is not False else []
        return [way for way in ways if way[2] is not False]

    def aside(self, what: str, active: Any = None) -> None:
        """Lanes access memory by a way that is not counted."""
        self.listener.aside(what, self.executing if active is None else active)

    def overwritten(self, op: Op, width: int, address: Int, active: Any) -> None:
        """A copy past the L1 cache: do lanes that its guard switches off name the places of others?

        The chip counts fewer sectors then (on an H200 28,930 where 30,720 were asked for), not by a rule
        that is known.
        """
        off = False if op.guard is None else both(self.mask, invert(active))
        if off is False:
            return
        places = self.by_warp(to_array(address) // width)
        ons, offs = self.by_warp(to_bools(active)), self.by_warp(to_bools(off))
        same = places[..., :, None] == places[..., None, :]
        if (same & ons[..., :, None] & offs[..., None, :]).any():
            self.listener.unsure(
                f"sectors of the cp.async.cg at {op.where}: lanes that its guard switches off have the "
                "destinations of others"
            )

    # --- errors -------------------------------------------------------------------------

    def place(self, position: tuple[int, int]) -> str:
        """`thread (x, y, z) of block (x, y, z)` of a (block, thread) position in the chunk."""
        block, thread = int(self.blocks[position[0]]), position[1]

        def coordinates(index: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
            return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])

        return (
            f"thread {coordinates(thread, self.launch.block)} of block {coordinates(block, self.launch.grid)}"
        )

    def places(self, mask: Any) -> str:
        """The first thread of a mask, and how many there are."""
        full = self.full(mask)
        first = np.unravel_index(int(np.argmax(full)), full.shape)
        return f"{self.place((int(first[0]), int(first[1])))} ({int(full.sum())} threads in all)"

    def unknown_branch(self, op: Op, poison: Poison) -> MemsimError:
        """The error for control flow that depends on a value nobody knows."""
        return MemsimError(
            f"cannot go on: {op.text} depends on an unknown value: {poison.story()}", **place_in_source(op)
        )

    def refused(self, op: Op, why: str) -> MemsimError:
        """The error for an instruction that cannot be executed."""
        return MemsimError(f"cannot go on: {op.text} {why}", **place_in_source(op))

    def endless(self, segment: Segment) -> MemsimError:
        """The error for a kernel that does not end."""
        op = self.code.program.ops[segment.stop - 1]
        return MemsimError(
            f"the kernel has not ended after {self.budget:,} instructions; it is still in this loop",
            hint="--max-steps, or max_steps, allows more if the kernel is really this long",
            **place_in_source(op),
        )
