"""Halves and bytes of registers on which nothing depends, and which a program may never have set.

Where a `PRMT` keeps a half of a register that nobody reads, it may as well be 0. ptxas keeps 8- and 16-bit
variables in the lower half of registers, assigned by `PRMT R, new, 0x7610, R`. The upper half may never be
set: without this, the whole register would be unknown.

A kernel that stores bytes may load the word around them, and mask the others off, which it may never have
written. What an instruction makes of each bit is found by executing it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import NamedTuple

from memsim.arch.units import WORD
from memsim.isa.definitions import meaning_of
from memsim.isa.memory_access import bytes_of_piece
from memsim.isa.op import Immediate, Operand, Register, Trait
from memsim.isa.program import Op, Program
from memsim.isa.signature import span_of
from memsim.simt.control_graph import ControlGraph
from memsim.simt.dataflow import Dataflow
from memsim.simt.exact_functions import readers_of
from memsim.simt.sampled_forms import ALL_BITS, bits_changed, with_numbered_registers

ZERO = Register(None)
#: The bytes of a register that are its upper half.
UPPER = 0b1100


def without_unused_halves(program: Program) -> Program:
    """The program in which `PRMT` reads only registers of which it uses a byte that is used itself."""
    if not any(_selector(op) is not None and op.writes & op.reads for op in program.ops):
        return program
    graph = ControlGraph(program)
    changed: dict[int, Op] = {}

    def transfer(start: int, used: int) -> int:
        for op in reversed(graph.block(start)):
            selector = _selector(op)
            reads = op.reads | op.addresses
            if selector is not None:
                a, c = (span_of(op.form.operands[place], 1) for place in (1, 3))
                bytes_used = _bytes_used(selector, bool(used & op.writes))
                of_a, of_c = bytes_used & 15, bytes_used >> 4
                reads &= ~(a | c)
                kept = (a if of_a else 0) | (c if of_c else 0)
                changed[op.index] = _reading(op, bool(of_a), bool(of_c), reads | kept)
                reads |= (a if of_a & UPPER else 0) | (c if of_c & UPPER else 0)
            if op.guard is None:
                used &= ~op.writes
            used |= reads
        return used

    # The last transfer of each basic block was with what holds behind it at the end.
    graph.backward(transfer, 0)
    return replace(program, ops=tuple(changed.get(op.index, op) for op in program.ops))


def _selector(op: Op) -> int | None:
    """The bytes that a PRMT selects, if they are a number and its operands plain."""
    form = op.form
    if Trait.PICKS_BYTES not in op.traits or Trait.BY_PATTERN in op.traits or len(form.operands) != 4:
        return None
    selector = form.operands[2]
    if not isinstance(selector, Immediate) or not isinstance(selector.value, int):
        return None
    return selector.value


def _bytes_used(selector: int, upper: bool) -> int:
    """Which of the eight bytes of both operands a PRMT uses, as bits; `upper`: for its upper half, too."""
    picks = (selector >> 4 * byte & 7 for byte in range(4 if upper else 2))
    return reduce(or_, (1 << pick for pick in picks), 0)


def _reading(op: Op, a: bool, c: bool, reads: int) -> Op:
    """The PRMT with only those of its operands."""
    result, first, selector, second = op.form.operands
    operands = (result, first if a else ZERO, selector, second if c else ZERO)
    return replace(op, meaning=meaning_of(replace(op.form, operands=operands)), reads=reads)


#: Where a kernel finds but what it has stored itself.
OWN = ("shared", "local", "generic")
#: What an instruction does with bits that does not depend on others, if its second source is a number.
MOVES = {Trait.MOVES, Trait.MOVES_BITS, Trait.PICKS_BYTES}
BYTES = [0xFF << at for at in range(0, 32, 8)]


def with_unused_bytes(program: Program) -> Program:
    """The program in which loads of words say which bytes of these nobody uses."""
    if not any(_accesses(op, "store") and bytes_of_piece(op.form) < WORD for op in program.ops):
        return program  # each word is stored as a whole
    graph, ops = Dataflow(program), list(program.ops)
    loads = [op for op in ops if _accesses(op, "load") and bytes_of_piece(op.form) == WORD]
    found = _used(
        graph, [(op.index, slot) for op in loads for slot in op.meaning.targets if slot is not None]
    )
    for op in loads:
        used = [0 if slot is None else found[op.index, slot] for slot in op.meaning.targets]
        ops[op.index] = replace(op, unused=tuple(map(_unused_bytes, used)))
    return replace(program, ops=tuple(ops))


def _accesses(op: Op, how: str) -> bool:
    return any((how, space) in op.touches for space in OWN)


def _unused_bytes(used: int) -> int:
    return sum(byte for byte in BYTES if not used & byte)


#: An instruction, and a slot that it writes.
Written = tuple[int, int]


class _Use(NamedTuple):
    """What an instruction reads. changed: by each bit, the bits of what it computes that depend on it.

    computed: where these are; None if they all are used.
    """

    changed: Sequence[int]
    computed: Written | None


ALL_USED = _Use([ALL_BITS] * 32, None)


def _used(graph: Dataflow, written: Sequence[Written]) -> dict[Written, int]:
    """The bits on which something depends: none of those that only come back to themselves in a loop."""
    uses: dict[Written, list[_Use]] = {}
    waiting = list(written)
    while waiting:
        at, slot = here = waiting.pop()
        if here not in uses:
            uses[here] = [_use(reader, slot) for reader in readers_of(graph, graph.live, graph.ops[at], slot)]
            waiting += [use.computed for use in uses[here] if use.computed is not None]
    found = dict.fromkeys(uses, 0)
    is_settled = False
    while not is_settled:
        is_settled = True
        for here in reversed(uses):  # what was met last mostly comes last
            used = 0
            for changed, computed in uses[here]:
                wanted = ALL_BITS if computed is None else found[computed]
                used |= sum(1 << bit for bit, changes in enumerate(changed) if changes & wanted)
            is_settled &= used == found[here]
            found[here] = used
    return found


def _use(reader: Op, slot: int) -> _Use:
    """How what an instruction computes depends on a slot that it reads."""
    sources, targets = [one for _, one in reader.meaning.sources], reader.meaning.targets
    if MOVES.isdisjoint(reader.traits) or not all(map(_is_number, sources[1:2])):
        return ALL_USED
    form, words = with_numbered_registers(reader)
    own = tuple(at for at, (operand, _) in words.items() if getattr(operand, "slot", None) == slot)
    changed = bits_changed(form, tuple(words), own)
    if Trait.TESTS in reader.traits:
        return _Use(changed, None)
    target = targets[0]
    return _Use(changed, (reader.index, target)) if target is not None else _Use([], None)


def _is_number(operand: Operand | None) -> bool:
    return isinstance(operand, Immediate) or operand == Register(None)
