"""Accesses and control flow that depend on where arrays lie in memory, other than by an address that is an
array's first byte and a number: on the order of two arrays, on bits of a pointer, on the distance of two
allocations, on the address of a function or of the stack. A system places these as it likes.

Every register that may hold a pointer is followed along the ways of a program, with what it is a sum of.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from memsim.isa.op import Address, Constant, Effect, Flow, Operand, Predicate, Register, Symbolic, slots_of
from memsim.isa.program import LOCAL, Op
from memsim.isa.stack import OVERWRITTEN, words_of_frame
from memsim.simt.control_graph import DEEPEST, Callers, Where, gathers
from memsim.simt.dataflow import Dataflow
from memsim.simt.decided_by import meet
from memsim.simt.harmless_branches import region_of, uniform_region_of
from memsim.simt.placed_arithmetic import PlacedOperands, PlacedSources, constant_read, results
from memsim.simt.placed_slots import PlacedSlots, State, opposite
from memsim.simt.placed_words import (
    NAMES,
    STACK_POINTER,
    Placed,
    Product,
    Value,
    first_byte,
    names_of,
    other,
    sum_of_words,
    sums_of,
)

#: Where the addresses in registers may be those of instructions.
JUMPS = (Flow.CALL, Flow.RETURN, Flow.INDEXED)
#: After so many visits of a basic block its pointers are told apart no further.
MOST_VISITS = 40
#: What loaded pointers point to, if to more than two arrays.
IN_MEMORY = "the arrays of loaded pointers"


def decided_by_places(
    graph: Dataflow, sources: PlacedSources, reached: Container[int], *, cautious: bool = False
) -> list[tuple[Op, frozenset[str]]]:
    """The accesses and the control flow that depend on where something lies, and the names of that.

    reached: the instructions that warps came to. cautious: also those that do so only if a register that
    holds a pointer on one way to a place, and a number on another, is read as both; or if a word that is
    loaded is half of a pointer. Call it after `graph.needed`.
    """
    stored = StoredPlaces()
    while True:
        found = _Followed(graph, sources, stored, reached, cautious)
        found.run()
        if found.stored == stored:
            return [(graph.ops[at], names) for at, names in sorted(found.decided.items()) if at in reached]
        stored = found.stored


@dataclass
class StoredPlaces:
    """Where in memory numbers are that depend on places, by the names of these.

    pointers: what the pointers point to that are stored, by name. halves: where these are.
    """

    places: frozenset[tuple[str, int]] = frozenset()
    halves: frozenset[tuple[str, int]] = frozenset()
    names: frozenset[str] = frozenset()
    pointers: frozenset[str] = frozenset()


class _Followed:
    """One iteration; `stored` may grow."""

    def __init__(
        self,
        graph: Dataflow,
        sources: PlacedSources,
        stored: StoredPlaces,
        reached: Container[int],
        cautious: bool,
    ) -> None:
        self.cautious = cautious
        self.graph = graph
        self.reached = reached
        self.sources = sources
        self.stored = replace(stored)
        self.before = stored
        self.ends = graph.basic_blocks
        self.decided: dict[int, frozenset[str]] = {}
        self.arrivals: dict[Where, dict[Where, PlacedSlots]] = {}
        self.entry: dict[Where, PlacedSlots] = {}
        self.lost: dict[Where, dict[int, Value]] = {}
        self.visits: dict[Where, int] = {}
        self.work: list[Where] = [(0, ())]
        self.frames = graph.program.slots  # from this slot on: words of the stack, by the depth of calls
        self.sources_of = {
            op.index
            for op in graph.ops
            if any(token.kind == "L" or self._is_source(operand) for token, operand in op.meaning.sources)
        }

    def _is_source(self, operand: Operand | None) -> bool:
        if isinstance(operand, Constant):
            words = (operand.offset + 4 * more for more in range(4))
            return any((operand.bank, word) in self.sources.constants for word in words)
        return isinstance(operand, Symbolic) and operand.symbol in self.sources.symbols

    def run(self) -> None:
        """Until nothing changes."""
        while self.work:
            place = self.work.pop()
            self.visits[place] = self.visits.get(place, 0) + 1
            if self.visits[place] > MOST_VISITS:
                continue
            held = self._joined(place)
            if self.entry.get(place) == held:
                continue
            self.entry[place] = held.at(-1)
            for way in self._through(place, held):
                if way[0] not in self.ends or way[0] not in self.reached:
                    continue  # what no warp executes makes nothing of a pointer
                arrives = self._on(way, place, held).at(self.graph.live[way[0]] | -1 << self.frames)
                arrivals = self.arrivals.setdefault(way, {})
                if way not in self.entry or arrivals.get(place) != arrives:
                    arrivals[place] = arrives
                    self.work.append(way)

    def _on(self, way: Where, place: Where, held: PlacedSlots) -> PlacedSlots:
        """What is held in the lanes that go one of the ways of a guarded branch, or past a call."""
        branch = self.graph.block(place[0])[-1]
        if branch.flow is Flow.CALL and way[0] == branch.index + 1:
            return held.at(~OVERWRITTEN)
        if branch.guard is None or branch.flow not in (Flow.BRANCH, Flow.EXIT):
            return held
        goes = way[0] in branch.targets
        lanes = branch.guard if goes else opposite(branch.guard)
        conditions = any(isinstance(operand, Predicate) for operand in branch.form.operands)
        if lanes not in held.under or branch.index + 1 in branch.targets or (conditions and not goes):
            return held
        return replace(held, slots={**held.slots, **held.under[lanes]})

    def _joined(self, place: Where) -> PlacedSlots:
        """What registers hold at the start of a basic block."""
        arrivals = self.arrivals.get(place, {})
        ways = [arrivals[key] for key in sorted(arrivals, key=repr)]
        if len(ways) == 1:
            found = ways[0].at(-1)
        else:
            found = PlacedSlots(self.cautious)
            names: dict[tuple[object, ...], int] = {}
            for slot in sorted(set().union(*(way.slots for way in ways))):
                values = [way.slots.get(slot) for way in ways]
                sums = sums_of(values)
                number = slot if sums is None else names.setdefault(sums, slot)
                found.set(slot, found.on_ways(("joined", place, number), values))
            for slot in set().union(*(way.since for way in ways)):
                since = {way.since.get(slot, -1) for way in ways}
                found.since[slot] = since.pop() if len(since) == 1 else -2 - place[0]
        found.slots.update(self.lost.get(place, {}))
        return found

    def _through(self, place: Where, held: PlacedSlots) -> list[Where]:
        """Change what is held as a basic block does; the ways behind it."""
        start, callers = place
        graph, end = self.graph, self.ends[start]
        ways = graph.following(start, callers)
        if gathers(graph.ops[end - 1]) or graph.ops[end - 1].flow is Flow.END_COLLECTIVE:
            ways = [(end, callers)]  # the other ways are those of lanes that it gathers
        placed = held.placed
        for op in graph.ops[start:end]:
            if op.effect is Effect.NONE:
                continue
            if op.effect is Effect.CONTROL:
                if op.reads & placed & ~graph.program.barriers:
                    ways = self._control(op, place, held.slots, ways)
                continue
            touched = op.reads | op.addresses | op.writes
            if touched & placed or op.index in self.sources_of or op.effect is Effect.MEMORY:
                self._step(op, held, self._frame(op, callers))
                placed = held.placed
            else:
                held.forget(op.writes)
            for slot in slots_of(op.writes & graph.program.predicates):
                held.since[slot] = op.index
        return ways

    def _frame(self, op: Op, callers: Callers) -> tuple[int, ...]:
        """The slots of words of a function's frame that an access stores or loads, as registers are saved."""
        depth = DEEPEST + 1 if callers is None else len(callers)
        return tuple(self.frames + (DEEPEST + 2) * word + depth for word in words_of_frame(op))

    def _step(self, op: Op, held: PlacedSlots, frame: tuple[int, ...]) -> None:
        """Change what is held as an instruction does. frame: the slots of words of the stack."""
        guard = op.guard
        state = {**held.slots, **held.under.get(guard, {})} if guard is not None else held.slots
        words = PlacedOperands(state, held.since, self.sources)
        values = self._memory(op, words, frame) if op.effect is Effect.MEMORY else results(op, words)
        found = {slot: value for slot, value in zip(op.meaning.targets, values) if slot is not None}
        stored = op.spills or frame
        writes = op.writes
        if stored and not op.meaning.targets:
            data = next(one for _, one in op.meaning.sources if not isinstance(one, Address))
            found = {slot: words.word(data, more) for more, slot in enumerate(stored)}
            writes |= sum(1 << slot for slot in stored)
        condition = words.word(guard) if guard is not None else None
        written = {slot: found.get(slot) for slot in slots_of(writes)}
        if condition is not None:
            written = {slot: other([condition, value]) for slot, value in written.items()}
        held.write(writes, written, guard)

    def _memory(self, op: Op, words: PlacedOperands, frame: tuple[int, ...]) -> list[Value]:
        """The values that an access reads; notes what decides it and what it stores."""
        self._access(op, words)
        count = len(op.meaning.targets)
        if constant_read(op) is not None:
            return results(op, words)
        if op.spills:
            return [words.state.get(slot) for slot in op.spills] if count else []
        data = (words.state.get(slot) for slot in slots_of(op.reads & ~op.addresses))
        stored: list[Value] = [value for value in data if value is not None]
        reads = self.graph.places_read(op)
        found: list[Value] = [words.state.get(slot) for slot in frame] if count else []
        if any(value is not None for value in found):
            pass
        elif meet(reads, self.stored.places):
            found = [Placed(None, False, 0, self.stored.names)] * count
            stored += found
        elif count >= 2:
            found = [word for pair in range(count // 2) for word in self._loaded(op.index, pair)]
        elif self.cautious and count and meet(reads, self.stored.halves):
            found = [Placed(None, False, 0, self.stored.pointers)]
        if stored:
            self._store(self.graph.places_written(op), stored)
        return found

    def _loaded(self, instruction: int, pair: int) -> tuple[Value, Value]:
        """Two words that a load has read: those of a pointer into one array, or into one of several.

        Which of several, differs between lanes. What looks like an address of the stack or of a function is a
        number unless such addresses are stored.
        """
        known = self.sources.loaded.get((instruction, pair), {})
        found = {
            what: name for what, name in known.items() if what not in NAMES or name in self.before.pointers
        }
        if not found:
            return None, None
        names = frozenset(found.values() if len(found) <= 2 else (IN_MEMORY,))
        what = next(iter(found)) if len(found) == 1 else ("loaded", instruction, pair)
        low, high = first_byte(what, "")
        return replace(low, names=names), replace(high, names=names)

    def _store(self, places: frozenset[tuple[str, int]], values: list[Value]) -> None:
        """Values are stored: pointers, on the stack by words, or what depends on places otherwise."""
        words = [value for value in values if isinstance(value, Placed) and _is_address(value)]
        both = [word.high for word in words] == [False, True] * (len(words) // 2)
        if len(words) == len(values) and (both or all(space == LOCAL for space, _ in places)):
            self.stored.pointers |= names_of(values)
            self.stored.halves |= places
        else:
            self.stored.places |= places
            self.stored.names |= names_of(values)

    def _access(self, op: Op, words: PlacedOperands) -> None:
        """Is an access made, or its address computed, by where something lies?"""
        deciding = [words.word(op.guard)] if op.guard is not None else []
        for slot in slots_of(op.addresses):
            value = words.state.get(slot)
            if not isinstance(value, Placed) or value.sum is None:
                deciding.append(value)
        for operand in op.form.operands:
            if isinstance(operand, Address):
                total = sum_of_words(_terms(operand, words))
                if total is not None and not _is_address(total):
                    deciding.append(total)
        self._decide(op, deciding)

    def _decide(self, op: Op, values: Iterable[Value]) -> None:
        names = names_of(values)
        if names:
            self.decided[op.index] = self.decided.get(op.index, frozenset()) | names

    def _control(self, op: Op, place: Where, state: State, ways: list[Where]) -> list[Where]:
        """The ways behind control flow that depends on where something lies; what it decides is noted."""
        callers = place[1]
        slots = slots_of(op.reads & ~self.graph.program.barriers)
        values = [value for slot in slots if (value := state.get(slot)) is not None]
        if op.flow in JUMPS:
            values = [value for value in values if not isinstance(value, Placed) or value.sum is None]
        if not values:
            return ways
        lost = other(values)
        if (region := region_of(self.graph, op, callers)) is not None:
            for end in region.ends:
                self.lost.setdefault(end, {}).update(dict.fromkeys(slots_of(region.writes), lost))
                self.work.append(end)
        elif (region := uniform_region_of(self.graph, op, callers)) is not None:
            state.update(dict.fromkeys(slots_of(region.writes), lost))
            return list(region.ends)
        else:
            self._decide(op, values)
        return ways


def _is_address(word: Placed) -> bool:
    """Is it a sum of one place, of the stack pointer or of both, and of what does not depend on places?"""
    factors = {what is STACK_POINTER: by for what, by in word.sum or ()}
    return len(factors) == len(word.sum or ()) > 0 and set(factors.values()) == {1}


def _terms(address: Address, words: PlacedOperands) -> list[Product]:
    """What an address is the sum of, by its lower words."""
    parts = ((address.base, address.scale), (address.uniform, 1))
    return [(words.word(one), scale) for one, scale in parts if isinstance(one, Register)]
