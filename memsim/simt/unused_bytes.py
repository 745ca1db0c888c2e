"""Bytes of loaded words on which nothing depends: a kernel that stores bytes may load the word around them,
and mask the others off, which it may never have written.

What an instruction makes of each bit is found by executing it.
"""

from __future__ import annotations

from dataclasses import replace

from memsim.arch.units import WORD
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import Immediate, Operand, Register, Trait
from memsim.isa.program import Op, Program
from memsim.simt.dataflow import Dataflow
from memsim.simt.exact_functions import readers_of
from memsim.simt.placed_arithmetic import ALL_BITS, bits_changed, renamed

#: Where a kernel finds but what it has stored itself.
OWN = ("shared", "local", "generic")
#: What an instruction does with bits that does not depend on others, if its second source is a number.
MOVES = {Trait.MOVES_BITS, Trait.PICKS_BYTES}
BYTES = [0xFF << at for at in range(0, 32, 8)]


def with_unused_bytes(program: Program) -> Program:
    """The program in which loads of words say which bytes of these nobody uses."""
    if not any(_accesses(op, "store") and bytes_of_piece(op.form) < WORD for op in program.ops):
        return program  # each word is stored as a whole
    graph, ops = Dataflow(program), list(program.ops)
    for op in program.ops:
        if _accesses(op, "load") and bytes_of_piece(op.form) == WORD:
            used = [0 if slot is None else _used(graph, op, slot, frozenset()) for slot in op.meaning.targets]
            ops[op.index] = replace(op, unused=tuple(map(_unused_bytes, used)))
    return replace(program, ops=tuple(ops))


def _accesses(op: Op, how: str) -> bool:
    return any((how, space) in op.touches for space in OWN)


def _unused_bytes(used: int) -> int:
    return sum(byte for byte in BYTES if not used & byte)


def _used(graph: Dataflow, op: Op, slot: int, above: frozenset[int]) -> int:
    """The bits of what `op` writes to a slot on which something depends. above: what it is computed from."""
    used = 0
    for reader in readers_of(graph, graph.live, op, slot):
        used |= ALL_BITS if reader.index in above else _used_by(graph, reader, slot, above | {op.index})
        if used == ALL_BITS:
            break
    return used


def _used_by(graph: Dataflow, reader: Op, slot: int, above: frozenset[int]) -> int:
    """The bits of a slot on which what its reader computes depends, as far as that is used."""
    sources, targets = [one for _, one in reader.meaning.sources], reader.meaning.targets
    tests = Trait.TESTS in reader.traits
    if MOVES.isdisjoint(reader.traits) or not all(map(_is_number, sources[1:2])):
        return ALL_BITS
    form, words = renamed(reader)
    own = tuple(at for at, (operand, _) in words.items() if getattr(operand, "slot", None) == slot)
    wanted = ALL_BITS if tests else _used(graph, reader, targets[0], above) if targets[0] is not None else 0
    changed = bits_changed(form, tuple(words), own)
    return sum(1 << bit for bit, changes in enumerate(changed) if changes & wanted)


def _is_number(operand: Operand | None) -> bool:
    return isinstance(operand, Immediate) or operand == Register(None)
