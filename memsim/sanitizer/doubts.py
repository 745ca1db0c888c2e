"""Why what was found need not matter: stores that race store the same, or nothing uses what a load finds.

Whether stores store different values is known of a launch that executes what they store, and of constants as
far as the machine code shows them. Each word of shared and global memory remembers what one of these stores
stored there last. Stores of which one has come behind another without changing a word have all stored the
same, in whichever order they come.

A load may be the compiler's, before the condition under which the source makes it: what it finds is chosen or
combined under another condition (`SEL`, a guard), or on some way nothing reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from memsim.arch.units import WORD
from memsim.isa.memory_access import bytes_of_piece, consecutive_slots, register_count
from memsim.isa.moves import select, select_float, select_pair
from memsim.isa.op import Effect, Register, Trait, slots_of
from memsim.isa.program import Op, Program
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.access_sizes import are_mixed, sizes_of
from memsim.simt.control_graph import ControlGraph
from memsim.state.launch_memory import Memory
from memsim.state.partial import Value, known_bits
from memsim.state.parts import Mask
from memsim.state.registers import to_array
from memsim.state.sums import Int

NARROWED = "the compiler may load less than the source does"
#: Why a race of two atomics need not matter (PTX ISA, Limitations on Mixed-size Data-races).
WHOLE = "each atomic is performed as a whole, but no other rule of the memory model holds"
#: Why they may be of one size.
MAYBE_VECTOR = "one of both may be a vector, whose elements are accesses of their own"
#: Why accesses to shared memory need not be plain ones.
VOLATILE = "both lines name what is volatile; machine code does not show which accesses are"
#: Why it need not matter that some words are not written.
PARTLY = "the other words that the instruction loads are written; the code may use only these"
#: Why it need not matter that a word is not written.
UNUSED = "what is loaded is used under a condition only; the compiler may load it where the source does not"
#: Why it need not matter that a register is not written.
UNSET = "the code may not use what it computes of it"
#: Why it need not matter that threads skip a barrier.
EXITED = "these threads exit, and a chip does not wait for them; CUDA leaves it undefined"
#: Why it need not matter which of two stores comes last.
SAME = "all store the same value"
NOT_COMPARED = "whether they store different values is not known"
#: Why it need not matter that the launch before may still run.
OTHER_LAUNCH = "the launch before may not access it, or the launch may have no such attribute"
#: Why a race is only possible where more orders accesses than can be followed.
PARTIAL = "the launch has more fences and flags than are followed"


def doubt_of_sizes(one: Op, other: Op) -> str:
    """Why a race of two strong accesses of different sizes is only possible; "" if it is certain."""
    if one.is_atomic and other.is_atomic:
        return WHOLE
    narrow = min(one, other, key=lambda op: sizes_of(op).most)
    if "load" in narrow.accesses:
        return NARROWED
    return MAYBE_VECTOR if are_mixed(one, other) is None else ""


class StorePair(NamedTuple):
    """Two stores, by their instructions, the earlier one first; together: lanes of one execution."""

    earlier: int
    later: int
    together: bool


class AllDiffer(Exception):
    """Each pair of stores stores different values: nothing is left to find out."""


class StoredValues(OrderListener):
    """Compares them, of these pairs; raises `AllDiffer`."""

    def __init__(self, program: Program, pairs: Collection[StorePair]) -> None:
        self._pairs = frozenset(pairs)
        self._earlier: dict[int, list[int]] = defaultdict(list)
        for pair in pairs:
            if not pair.together:
                self._earlier[pair.later].append(pair.earlier)
        self._ops = {at: program.ops[at] for pair in pairs for at in (pair.earlier, pair.later)}
        self._unit = min((WORD, *map(bytes_of_piece, (op.form for op in self._ops.values()))))
        self._compared, self._differ, self._unknown = set[StorePair](), set[StorePair](), set[int]()
        self._words: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    @property
    def looked_at(self) -> dict[int, int]:
        """The stores, and slots that matter besides what they store: none."""
        return dict.fromkeys(self._ops, 0)

    def are_same(self, pair: StorePair) -> bool | None:
        """Whether both store the same values; None if that is not known."""
        if pair in self._differ:
            return False
        is_known = pair in self._compared and self._unknown.isdisjoint((pair.earlier, pair.later))
        return True if is_known else None

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads, self._memory = threads, memory
        self._shared = self._new(len(threads.blocks) * memory.shared_size)

    def _new(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Of each unit: what was stored, and by which instruction, counted from 1; 0 for none."""
        units = -(-size // self._unit)
        return np.zeros(units, np.uint32), np.zeros(units, np.int32)

    def look(self, instruction: int, active: Mask | None, registers: Sequence[Value]) -> None:
        if instruction in self._ops:
            op = self._ops[instruction]
            stored = op.form.operands[-1]
            assert isinstance(stored, Register)
            slots = consecutive_slots(stored, register_count(op.form))
            self._registers = [0 if slot is None else registers[slot] for slot in slots]

    def access(self, instruction: int, space: str, address: Int, width: int, active: Mask) -> None:
        if instruction not in self._ops or active is False or space not in ("shared", "global"):
            return
        rows, columns = np.nonzero(self._threads.full(active))
        shape = self._threads.shape
        places = np.broadcast_to(to_array(address), shape)[rows, columns]
        values = self._stored(width, active)
        if values is None:
            self._unknown.add(instruction)
            return
        each = width // self._unit
        parts = np.stack([np.broadcast_to(one, shape)[rows, columns] for one in values], 1).ravel()
        units = (places[:, None] // self._unit + np.arange(each)).ravel()
        if space == "shared":
            units += np.repeat(rows, each) * (len(self._shared[0]) // shape[0])
            self._compare(instruction, *self._shared, units, parts)
            return
        for words, first, here in self._by_array(places, each):
            self._compare(instruction, *words, units[here] - first, parts[here])

    def _stored(self, width: int, active: Mask) -> list[np.ndarray] | None:
        """What is stored in each unit of a lane, for all lanes; None if that is not known."""
        words = [known_bits(one, active) for one in self._registers]
        known = [one for one in words if one is not None]
        bits, parts = 8 * self._unit, min(width, WORD) // self._unit
        found = [one >> bits * part & (1 << bits) - 1 for one in known for part in range(parts)]
        return found if len(found) == width // self._unit else None

    def _by_array(
        self, places: np.ndarray, each: int
    ) -> Iterator[tuple[tuple[np.ndarray, np.ndarray], int, np.ndarray]]:
        """The words of each array in global memory that is accessed, the first unit, and which units are."""
        layout = self._memory.layouts["global"]
        owners = np.repeat(layout.owners(places, 1), each)
        for number in np.unique(owners[owners >= 0]).tolist():
            buffer = layout.buffers[number]
            if buffer.start not in self._words:
                self._words[buffer.start] = self._new(buffer.end - buffer.start)
            yield self._words[buffer.start], buffer.start // self._unit, np.flatnonzero(owners == number)

    def _compare(
        self, instruction: int, held: np.ndarray, by: np.ndarray, units: np.ndarray, values: np.ndarray
    ) -> None:
        """Lanes store values [n] to units [n]."""
        before, stored = by[units], values.astype(np.uint32)
        differ = held[units] != stored
        for earlier in self._earlier[instruction]:
            where = before == earlier + 1
            self._note(StorePair(earlier, instruction, False), bool(where.any()), bool(differ[where].any()))
        held[units], by[units] = stored, instruction + 1
        meet = len(np.unique(units)) < len(units)
        self._note(StorePair(instruction, instruction, True), meet, bool((held[units] != stored).any()))

    def _note(self, pair: StorePair, are_compared: bool, differ: bool) -> None:
        if are_compared:
            self._compared.add(pair)
        if differ:
            self._differ.add(pair)
            if self._differ >= self._pairs:
                raise AllDiffer


# --- what the machine code shows --------------------------------------------------------------


#: Accesses that store registers.
_STORES = frozenset(("store", "stmatrix", "async_store"))


class StoredConstants:
    """What the stores of a program store."""

    def __init__(self, graph: ControlGraph) -> None:
        self.graph = graph

    def are_same(self, one: Op, other: Op) -> bool:
        """Whether two stores, or two threads of one, store the same constant."""
        stored = self._stored(one)
        return stored is not None and stored == self._stored(other)

    def _stored(self, store: Op) -> tuple[str, ...] | None:
        """The words of a store, each as what makes it; None if they are not known to be constants."""
        if not store.accesses or not store.accesses <= _STORES:
            return None
        slots = slots_of(store.reads & ~store.addresses)
        made = [self._made(slot, store) for slot in slots]
        words = [one for one in made if one is not None]
        return tuple(words) if len(words) == len(made) else None

    def _made(self, slot: int, store: Op) -> str | None:
        """What makes the constant in a register at a store, on all ways there; None if it is none."""
        found: set[str | None] = set()
        graph = self.graph
        work, seen = [(graph.block_of(store.index), store.index)], set[int]()
        while work and None not in found and len(found) < 2:
            start, end = work.pop()
            writer = next((op for op in reversed(graph.ops[start:end]) if op.writes >> slot & 1), None)
            if writer is not None:
                found.add(self._constant(writer, slot, store))
            elif not (before := graph.previous_basic_blocks[start]):
                found.add(None)
            else:
                work += [(one, graph.basic_blocks[one]) for one in before if one not in seen]
                seen.update(before)
        return found.pop() if len(found) == 1 else None

    def _constant(self, op: Op, slot: int, store: Op) -> str | None:
        """What an instruction computes, if that is the same in all threads."""
        own = op.reads if op.guard is None else op.reads & ~self.graph.program.predicates
        thread = "SR_" in op.text
        if op.effect is not Effect.ALU or own or thread or not self._is_sure(op, store):
            return None
        words, operands = op.text.partition(op.name)[2].split(",", 1)[-1].split(","), op.name
        if Trait.MOVES in op.traits:
            words, operands = words[-1:], ""
        return f"{operands} {','.join(words).strip()} {slot - slots_of(op.writes)[0]}"

    def _is_sure(self, op: Op, store: Op) -> bool:
        """Whether lanes that execute the store have executed the instruction before."""
        if op.guard is None:
            return True
        between = self.graph.ops[op.index + 1 : store.index]
        predicates = self.graph.program.predicates & op.addresses
        block_of = self.graph.block_of
        here = block_of(op.index) == block_of(store.index) and op.index < store.index
        return here and op.guard == store.guard and not any(one.writes & predicates for one in between)


# --- loads before their condition --------------------------------------------------------------

#: What gives one of two words, as a predicate says.
_SELECTS = (select, select_pair, select_float)


def may_be_unused(graph: ControlGraph, load: Op) -> bool:
    """Whether on some way behind a load nothing depends on it. What is computed of it on the way counts as
    used; a choice by something else, and a write under a guard, as one of something else. What a copy
    moves to memory is used.
    """
    if not load.writes:
        return False
    ends, start = graph.basic_blocks, graph.block_of(load.index)
    work = [(load.index + 1, ends[start], start, load.writes, 0)]
    seen = set[tuple[int, int, int]]()
    while work:
        first, end, start, loaded, made = work.pop()
        for op in graph.ops[first:end]:
            found = _behind(op, loaded, made, graph.program.predicates)
            if found is None:
                break
            loaded, made = found
            if not loaded | made:
                return True
        else:
            ways = graph.next_basic_blocks[start]
            if not ways and not made:
                return True
            for way in ways:
                if (way, loaded, made) not in seen:
                    seen.add((way, loaded, made))
                    work.append((way, ends[way], way, loaded, made))
    return False


def _behind(op: Op, loaded: int, made: int, predicates: int) -> tuple[int, int] | None:
    """Slots with what was loaded, and what was made of it, behind an instruction; None if it uses them."""
    read = op.reads & (loaded | made)
    guard = 0 if op.guard is None or op.guard.slot is None else 1 << op.guard.slot
    if read & guard or (read and not guard and op.effect is not Effect.ALU):
        return None
    if guard:
        return loaded & ~op.writes, made & ~op.writes
    by_predicate = op.builder in _SELECTS and not read & predicates
    combined = not read & ~predicates and op.reads & ~read
    stays = 0 if not read or by_predicate or combined else op.writes
    return loaded & ~op.writes, made & ~op.writes | stays
