"""Dataflow analysis: control flow, live registers, the slice that addresses need, and the origin
of pointers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

from memsim.isa.op import Address, Barrier, Constant, Effect, Flow, Op, Predicate, Program
from memsim.isa.reach import ALL_SPACES, GLOBAL, LOCAL, spaces_read, spaces_written
from memsim.isa.single import is_approximate

#: The root of an address of unknown origin: a pointer that was loaded from memory.
ANYWHERE = 1
#: The first bit of parameters, one per 8 bytes, and of module variables, one per entry of bank 4.
PARAMETER_BITS, VARIABLE_BITS = 1, 1 + 4096 // 8
#: Before this byte of constant bank 0 are dimensions and windows, and no pointers.
FIRST_POINTER = 0x40


def barrier_slot(op: Op) -> int:
    """The convergence barrier of a BSSY, BSYNC or BREAK; -1 for others."""
    return next((operand.slot for operand in op.form.operands if isinstance(operand, Barrier)), -1)


class _Need:
    """The slots that are needed at a point: in all lanes, or only in those for which a guard holds.

    A slot that is written under a guard stays needed only where the guard does not hold; after `@P0 R2 =
    ...`, a `@P0 ... = R2` does not need an older R2.
    """

    def __init__(self, everywhere: int) -> None:
        self.everywhere = everywhere
        self.where: dict[tuple[int, bool], int] = {}

    def all(self) -> int:
        """Slots needed in any lane."""
        found = self.everywhere
        for slots in self.where.values():
            found |= slots
        return found

    def has(self, slots: int) -> bool:
        """Is one of these needed in any lane?"""
        return bool(self.everywhere & slots) or any(own & slots for own in self.where.values())

    def killed(self, slots: int, guard: Predicate | None) -> None:
        """Backward over a write of `slots`: where the old values are still needed."""
        if guard is None or guard.slot is None:
            self.everywhere &= ~slots
            self.where = {key: own & ~slots for key, own in self.where.items() if own & ~slots}
            return
        holds, fails = (guard.slot, guard.negated), (guard.slot, not guard.negated)
        moved = self.everywhere & slots
        self.everywhere &= ~slots
        if holds in self.where:
            self.where[holds] &= ~slots
        if moved:
            self.where[fails] = self.where.get(fails, 0) | moved

    def written(self, predicates: int) -> None:
        """Backward over a write of predicates: guards by them have another meaning before it."""
        for key in [key for key in self.where if predicates >> key[0] & 1]:
            self.everywhere |= self.where.pop(key)

    def read(self, slots: int, guard: Predicate | None) -> None:
        """Backward over a read."""
        if guard is None or guard.slot is None:
            self.everywhere |= slots
            return
        self.everywhere |= 1 << guard.slot
        key = (guard.slot, guard.negated)
        self.where[key] = self.where.get(key, 0) | slots & ~(1 << guard.slot)


class Dataflow:
    """Analyses of one program, each computed on first use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops = program.ops
        self.pointers = -1
        self.in_global = 0
        self._stores_read_again: frozenset[int] = frozenset()

    @cached_property
    def meeting(self) -> dict[int, int]:
        """Where lanes continue after each BSYNC: the target of its BSSY."""
        places: dict[int, list[int]] = {}
        found: dict[int, int] = {}
        for op in self.ops:
            if op.flow is Flow.SET_BARRIER and op.targets:
                places.setdefault(barrier_slot(op), []).append(op.targets[0])
        for op in self.ops:
            if op.flow is Flow.WAIT_BARRIER:
                behind = [place for place in places.get(barrier_slot(op), ()) if place > op.index]
                found[op.index] = min(behind, default=op.index + 1)
        return found

    @cached_property
    def returns(self) -> tuple[int, ...]:
        """Where a return may lead: after every call."""
        return tuple(op.index + 1 for op in self.ops if op.flow is Flow.CALL)

    @cached_property
    def leaders(self) -> frozenset[int]:
        """The first instructions of basic blocks: branch targets, and instructions after control flow."""
        found = {0}
        for op in self.ops:
            if op.flow is not None:
                found.add(op.index + 1)
                found |= set(op.targets)
        found |= set(self.meeting.values())
        return frozenset(index for index in found if index < len(self.ops))

    def successors(self, op: Op) -> tuple[int, ...]:
        """The possible successors of an instruction that ends a block."""
        following = op.index + 1
        guarded = op.guard is not None
        if op.flow is None or op.flow in (
            Flow.SET_BARRIER,
            Flow.LEAVE_BARRIER,
            Flow.WARP_SYNC,
            Flow.BLOCK_BARRIER,
            Flow.WAIT_PHASE,
            Flow.ARRIVE_CLUSTER,
            Flow.WAIT_CLUSTER,
            Flow.YIELD,
            Flow.SLEEP,
        ):
            return (following,)
        if op.flow is Flow.EXIT or op.flow is Flow.TRAP or op.flow is Flow.UNKNOWN:
            conditional = guarded or any(isinstance(operand, Predicate) for operand in op.form.operands)
            return (following,) if conditional else ()
        if op.flow is Flow.WAIT_BARRIER:
            return (following, self.meeting[op.index])
        if op.flow is Flow.RETURN:
            return (*self.returns, *((following,) if guarded else ()))
        if op.flow is Flow.INDEXED:
            targets = op.targets or tuple(sorted(self.leaders))
            return (*targets, following) if guarded else targets
        if op.flow is Flow.CALL and not op.targets:
            return (following,)
        if op.flow is Flow.CALL and op.reads & ((1 << 256) - 1):
            entries = (at for name, at in self.program.functions.items() if not name.startswith("."))
            return (*entries, following)
        conditional = guarded or any(isinstance(operand, Predicate) for operand in op.form.operands)
        if op.flow in (Flow.BRANCH_DIVERGED, Flow.BRANCH_ANY) or conditional:
            return (*op.targets, following)
        return op.targets

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """(first, one past the last) of each block, in order."""
        starts = sorted(self.leaders)
        return tuple(zip(starts, [*starts[1:], len(self.ops)]))

    @cached_property
    def next_blocks(self) -> dict[int, tuple[int, ...]]:
        """The successors of each block, by first instruction."""
        count = len(self.ops)
        return {
            start: tuple(dict.fromkeys(s for s in self.successors(self.ops[end - 1]) if s < count))
            for start, end in self.blocks
        }

    # --- live registers -----------------------------------------------------------------

    @cached_property
    def live(self) -> dict[int, int]:
        """Live slots at the first instruction of each block."""
        effects = {}
        for start, end in self.blocks:
            used = killed = 0
            for op in self.ops[start:end]:
                used |= op.reads & ~killed
                if op.guard is None:
                    killed |= op.writes
            effects[start] = used, killed
        return self._backward(lambda start, out: effects[start][0] | (out & ~effects[start][1]))

    def _backward(self, transfer: object) -> dict[int, int]:
        """The least fixed point of a backward analysis on blocks."""
        at: dict[int, int] = {start: 0 for start, _ in self.blocks}
        before: dict[int, list[int]] = {start: [] for start in at}
        for start, ways in self.next_blocks.items():
            for one in ways:
                before[one].append(start)
        work = sorted(at)
        waiting = set(work)
        while work:
            start = work.pop()
            waiting.discard(start)
            out = 0
            for following in self.next_blocks[start]:
                out |= at[following]
            found = transfer(start, out)  # type: ignore[operator]
            if found != at[start]:
                at[start] = found
                for one in before[start]:
                    if one not in waiting:
                        waiting.add(one)
                        work.append(one)
        return at

    # --- the slice that addresses need ------------------------------------------------------------

    def needed(
        self, pointers: int = -1, same: dict[int, int] | None = None, in_global: int = 0
    ) -> frozenset[int]:
        """Instructions whose values addresses, guards and branches depend on.

        It includes a store if a load in it may read what is stored. `pointers`: the roots that are pointers.
        `same`: which of them may alias, as bits -> bits.
        """
        self.in_global = in_global
        self.pointers = pointers | ANYWHERE
        stored: frozenset[tuple[str, int]] = frozenset()
        while True:
            found, loaded = self._needed(stored, same or {})
            if loaded <= stored:
                return found
            stored |= loaded

    def _needed(
        self, stored: frozenset[tuple[str, int]], same: dict[int, int]
    ) -> tuple[frozenset[int], frozenset[tuple[str, int]]]:
        """One iteration: with the data of stores to `stored` (space, roots) needed."""
        ops, blocks = self.ops, dict(self.blocks)
        wanted: set[int] = set()
        loads: set[tuple[str, int]] = set()

        def data_wanted(op: Op) -> bool:
            spaces = spaces_written(op)
            if not spaces:
                return False
            roots = self.merged(self.roots_of(op.index), same) if GLOBAL in spaces else 0
            return any(
                space in spaces and (space != GLOBAL or roots & ANYWHERE or mine & ANYWHERE or roots & mine)
                for space, mine in stored
            )

        wants_data = {op.index for op in ops if op.effect is Effect.MEMORY and stored and data_wanted(op)}
        self._stores_read_again = frozenset(
            index for index in wants_data if GLOBAL in spaces_written(ops[index])
        )

        predicates = self.program.predicates

        def transfer(start: int, out: int) -> int:
            need = _Need(out)
            for index in range(blocks[start] - 1, start - 1, -1):
                op = ops[index]
                if op.effect is Effect.NONE:
                    continue
                if op.effect is Effect.CONTROL:
                    need.written(op.writes & predicates)
                    need.read(op.reads, None)
                    continue
                hit = need.has(op.writes)
                if hit:
                    need.killed(op.writes, op.guard)
                if op.writes & predicates:
                    need.written(op.writes & predicates)
                if op.effect is not Effect.MEMORY:
                    if hit:
                        wanted.add(index)
                        need.read(op.reads, op.guard)
                    continue
                if hit or index in wants_data:
                    wanted.add(index)
                    roots = self.merged(self.roots_of(index), same)
                    spaces = spaces_read(op)
                    if roots and not roots & ~self.in_global:
                        spaces &= {GLOBAL}
                    loads.update((space, roots if space == GLOBAL else 0) for space in spaces)
                    need.read(op.reads, op.guard)
                else:
                    need.read(op.reads if op.record.steers else op.addresses, op.guard)
            return need.all()

        self._backward(transfer)
        return frozenset(wanted), frozenset(loads)

    def merged(self, roots: int, same: dict[int, int]) -> int:
        """Those of the roots that are pointers, with others that may alias them."""
        roots &= self.pointers
        for bit, others in same.items():
            if roots & bit:
                roots |= others
        return roots

    # --- the origin of pointers -------------------------------------------------------

    def roots_of(self, index: int) -> int:
        """The roots of a memory instruction's global address, as bits."""
        return self._roots.get(index, ANYWHERE)

    @cached_property
    def _roots(self) -> dict[int, int]:
        ops = self.ops
        states: dict[int, dict[int, int]] = {0: {}}
        found: dict[int, int] = {}
        general = ~(self.program.predicates | self.program.barriers)  # these have no roots
        plans = {start: [_root_plan(op, general) for op in ops[start:end]] for start, end in self.blocks}
        work = [0, *(op.targets[0] for op in ops if op.flow is Flow.CALL and op.targets)]
        for start in work:
            states.setdefault(start, {})
        while work:
            start = work.pop()
            state = dict(states[start])
            for index, (own, sources, targets, keeps, address) in enumerate(plans[start], start):
                if address:
                    roots = 0
                    for slot in address:
                        roots |= state.get(slot, 0)
                    found[index] = found.get(index, 0) | roots | (own if not targets else 0)
                if not targets:
                    continue
                roots = own
                for slot in sources:
                    roots |= state.get(slot, 0)
                for slot in targets:
                    kept = roots | (state.get(slot, 0) if keeps else 0)
                    if kept:
                        state[slot] = kept
                    else:
                        state.pop(slot, None)
            for following in self.next_blocks[start]:
                live = self.live[following]
                arrives = {slot: roots for slot, roots in state.items() if live >> slot & 1}
                known = states.get(following)
                if known is None:
                    states[following] = arrives
                    work.append(following)
                    continue
                changed = False
                for slot, roots in arrives.items():
                    before = known.get(slot, 0)
                    if roots | before != before:
                        known[slot] = roots | before
                        changed = True
                if changed and following not in work:
                    work.append(following)
        return found

    # --- uncertainty ------------------------------------------------------------

    def uncertain(self) -> tuple[str, ...]:
        """Reasons why counts depend on the order of warps and blocks; empty if they do not.

        Call it after `needed`. An atomic returns what others left; a load may come before or after another
        block's store; and the chip's approximations are not reproduced to the last bit.
        """
        found = []
        causes = (("the result of an atomic", is_atomic), ("the last bit of MUFU", is_approximate))
        for cause, is_source in causes:
            if not any(map(is_source, self.ops)):
                continue
            for op in self._decided_by(is_source):
                what = "the branch" if op.effect is Effect.CONTROL else "the address"
                found.append(f"{cause} decides {what} at {op.where}")
        for index in sorted(self._stores_read_again):
            found.append(
                f"addresses or branches depend on what the kernel itself writes at {self.ops[index].where}"
            )
        return tuple(dict.fromkeys(found))

    def _decided_by(self, is_source: Callable[[Op], bool]) -> list[Op]:
        """Accesses and control flow that depend on the results of some instructions."""
        dirty: set[str] = set()
        while True:
            before = len(dirty)
            found = self._tainted(dirty, is_source)
            if len(dirty) == before:
                return found

    def _tainted(self, dirty: set[str], is_source: Callable[[Op], bool]) -> list[Op]:
        """One iteration; `dirty` are the state spaces that contain such results, and may grow."""
        entry = {start: 0 for start, _ in self.blocks}
        ends = dict(self.blocks)
        found: dict[int, Op] = {}
        work = list(entry)
        while work:
            start = work.pop()
            state = entry[start]
            for op in self.ops[start : ends[start]]:
                if op.effect is Effect.NONE:
                    continue
                if op.effect is Effect.CONTROL:
                    if op.reads & state & ~self.program.barriers:
                        found[op.index] = op
                    continue
                hit = bool(op.reads & state)
                if op.effect is Effect.MEMORY:
                    if op.addresses & state:
                        found[op.index] = op
                    if hit:
                        dirty |= spaces_written(op)
                    hit = hit or bool(spaces_read(op) & dirty)
                if hit or is_source(op):
                    state |= op.writes
                elif op.guard is None:
                    state &= ~op.writes
            for following in self.next_blocks[start]:
                if state & ~entry[following]:
                    entry[following] |= state
                    work.append(following)
        return [found[index] for index in sorted(found)]


def is_atomic(op: Op) -> bool:
    """Does its result depend on what other threads left in memory?"""
    return op.effect is Effect.MEMORY and any(kind == "atomic" for kind, _ in op.touches)


def _root_plan(op: Op, general: int) -> tuple[int, list[int], list[int], bool, list[int]]:
    """(own roots, slots read, slots written, whether old roots are kept, slots of its global address).

    general: the slots that may hold addresses.
    """
    own = 0
    address: list[int] = []
    if op.effect in (Effect.NONE, Effect.CONTROL):
        return 0, [], [], False, []
    if op.effect is Effect.MEMORY:
        for operand in op.form.operands:
            if isinstance(operand, Address):
                for register in (operand.base, operand.uniform):
                    if register is not None and register.slot is not None:
                        address.append(register.slot)
        if _loads_pointers(op, op.writes & general):
            own = ANYWHERE
        return own, [], _slots(op.writes & general), op.guard is not None, address
    for operand in op.form.operands:
        if isinstance(operand, Constant):
            own |= _constant_roots(operand, 16 if "128" in op.form.modifiers else 8)
    return own, _slots(op.reads & general), _slots(op.writes & general), op.guard is not None, []


def _loads_pointers(op: Op, written: int) -> bool:
    """May it load a pointer: 64 bits, or half of a spilled one?"""
    spaces = spaces_read(op)
    return bool(spaces & ALL_SPACES) and (LOCAL in spaces or written.bit_count() > 1) and written != 0


def _constant_roots(operand: Constant, size: int) -> int:
    """Pointers in so many bytes of a constant bank: from sm_100 on, one instruction loads two of them."""
    if operand.register is not None and operand.register.slot is not None:
        return ANYWHERE
    first = {0: PARAMETER_BITS, 4: VARIABLE_BITS}.get(operand.bank)
    if first is None or (operand.bank == 0 and operand.offset < FIRST_POINTER):
        return 0
    word = operand.offset // 8
    return sum(1 << (first + word + more) for more in range(size // 8))


def _slots(bits: int) -> list[int]:
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


@lru_cache(maxsize=1 << 14)
def slots_of(bits: int) -> list[int]:
    """A bit set of slots as their numbers."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
