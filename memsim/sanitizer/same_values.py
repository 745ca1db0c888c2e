"""Whether stores store the same value in every thread: a constant, as far as the machine code shows it."""

from __future__ import annotations

from memsim.isa.op import Effect, slots_of
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph

#: Instructions whose last operand is their value.
MOVES = ("MOV", "UMOV", "IMAD.MOV")


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
        if not store.form.opcode.startswith("ST"):
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
        if op.name.startswith(MOVES):
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
