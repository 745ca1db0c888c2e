"""Control flow and data flow of one function.

In: a `Function`. Out: `Flow` (where lanes that parted meet again, which registers are live) and
which registers one instruction reads and writes. Left out: memory as a carrier of data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memsim.ptx.blocks import BRANCHES, Block, blocks
from memsim.ptx.program import (
    Address,
    CallTarget,
    Function,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    TextureAddress,
    Vector,
)
from memsim.ptx.reconvergence import gatherings, meeting_points
from memsim.ptx.shape import Shape

# The carry bit that `add.cc` leaves for `addc`: a register without a name in PTX (CC.CF in the ISA).
CARRY = "CC.CF"

# A first operand that is a register, and yet is read. (An address first says so by itself.)
_NO_DESTINATION = frozenset(
    {"bar", "barrier", "bra", "brx", "nanosleep", "ret", "exit", "trap", "st", "red", "stackrestore"}
    | {"setmaxnreg", "pmevent", "call", "discard", "prefetch", "prefetchu", "membar", "fence"}
)
_CARRY_READERS = frozenset({"addc", "subc", "madc"})


@dataclass(frozen=True, slots=True)
class Opening:
    """A `Gathering` by first instructions of blocks.

    `pc`: where lanes meet. `beyond`: where all lanes that open it meet later, the last place first.
    """

    pc: int
    beyond: tuple[int, ...]
    region: frozenset[int]
    contested: bool


class Flow:
    """The flow of one function, worked out once; instructions are named by index.

    `reconvergence`: for each branch, the instruction where lanes that part there meet again,
    None if they never do. `gatherings`: for the first instruction of a block, those that it opens,
    the outermost first. `yields`: the first instructions of loops in which lanes may wait for
    others, and so let those of their warp go on that wait for them. `starts`: those of all blocks.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self.blocks = blocks(function)
        self.reconvergence: dict[int, int | None] = {}
        meetings = meeting_points(self.blocks)
        for block, meeting in zip(self.blocks, meetings):
            if function.instructions[block.end - 1].opcode in BRANCHES:
                there = self.blocks[meeting].start if meeting < len(self.blocks) else None
                self.reconvergence[block.end - 1] = there
        self.starts = frozenset(block.start for block in self.blocks)
        self.gatherings = self._gatherings(meetings)
        self.yields = frozenset(
            self.blocks[entry].start
            for entry, inside in Shape(self.blocks).loops.items()
            if self._may_wait(inside, meetings)
        )
        self._live = live_in(function, self.blocks)

    def _may_wait(self, inside: set[int], meetings: tuple[int, ...]) -> bool:
        """Whether a loop may wait for other lanes: a way out depends on what it hears of their doing."""
        heard = {
            name for number in inside for code in self._code(number) if _hears(code) for name in defs(code)
        }
        size = -1
        while size != len(heard):
            size = len(heard)
            for number in inside:
                for code in self._code(number):
                    heard.update(defs(code) if heard & {*uses(code)} else ())
                if heard & {*uses(self._code(number)[-1])}:
                    between = self._up_to(meetings[number], self.blocks[number].successors) & inside
                    heard.update(
                        name for other in between for code in self._code(other) for name in defs(code)
                    )
        ways_out = {
            n for n in inside if self.blocks[n].leaves or not inside.issuperset(self.blocks[n].successors)
        }
        return any(heard & {*uses(self._code(number)[-1])} for number in ways_out)

    def _code(self, number: int) -> tuple[Instruction, ...]:
        return self._function.instructions[self.blocks[number].start : self.blocks[number].end]

    def _up_to(self, end: int, blocks: tuple[int, ...]) -> set[int]:
        """Blocks that lanes can come to from `blocks` before they come to `end`."""
        found: set[int] = set()
        waiting = list(blocks)
        while waiting:
            block = waiting.pop()
            if block != end and block not in found:
                found.add(block)
                waiting.extend(self.blocks[block].successors)
        return found

    def _gatherings(self, meetings: tuple[int, ...]) -> dict[int, list[Opening]]:
        start = [block.start for block in self.blocks]
        found: dict[int, list[Opening]] = {}
        for one in gatherings(self.blocks, meetings):
            beyond, block = [], meetings[one.opens]
            while block < len(start):
                if block not in one.region and block != one.block:
                    beyond.append(start[block])
                block = meetings[block]
            region = frozenset(start[block] for block in one.region)
            opening = Opening(start[one.block], tuple(reversed(beyond)), region, one.contested)
            found.setdefault(start[one.opens], []).append(opening)
        return found

    def live_in(self, index: int) -> int:
        """Registers that may be read from instruction `index` on, as `register_bits`; 0 at the end."""
        return self._live[index] if index < len(self._live) else 0


def _hears(instruction: Instruction) -> bool:
    """Whether other lanes can tell this one something by what it gives."""
    opcode, modifiers = instruction.opcode, set(instruction.modifiers)
    if opcode == "ld":
        return bool(modifiers & {"volatile", "relaxed", "acquire"})
    return opcode == "atom" or (opcode == "mbarrier" and bool(modifiers & {"try_wait", "test_wait"}))


def is_read(function: Function, instruction: Instruction) -> bool:
    """Whether any instruction reads what this one writes; compilers write `atom` where `red` would do."""
    written = defs(instruction)
    return any(name in uses(other) for other in function.instructions for name in written)


def defs(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that the instruction writes; `CARRY` for the carry bit.

    The destination is the first operand if that is a register, vector or pair, of known and
    of unknown opcodes alike.
    """
    opcode, operands = instruction.opcode, instruction.operands
    written: tuple[str, ...] = ()
    if _has_destination(instruction):
        written = tuple(_registers(operands[0]))
    elif opcode == "call" and operands:
        target = operands[0]
        assert isinstance(target, CallTarget)
        written = tuple(name for value in target.returns for name in _registers(value))
    if "cc" in instruction.modifiers:
        written += (CARRY,)
    return written


def uses(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that the instruction reads, its guard included."""
    opcode, operands = instruction.opcode, instruction.operands
    # wgmma adds to its destination; every other destination is only written.
    first = 1 if _has_destination(instruction) and opcode != "wgmma" else 0
    read = [name for value in operands[first:] for name in _registers(value)]
    if opcode == "call" and operands:
        target = operands[0]
        assert isinstance(target, CallTarget)
        read = [name for value in (target.target, *target.arguments) for name in _registers(value)]
    if instruction.guard:
        read.append(instruction.guard.name)
    if opcode in _CARRY_READERS:
        read.append(CARRY)
    return tuple(read)


def _has_destination(instruction: Instruction) -> bool:
    operands = instruction.operands
    if not operands or not isinstance(operands[0], (Register, Vector, Pair, Selected)):
        return False
    if instruction.opcode in ("bar", "barrier"):
        return "red" in instruction.modifiers
    if instruction.opcode == "tcgen05":
        return "ld" in instruction.modifiers
    return instruction.opcode not in _NO_DESTINATION


def _registers(operand: Operand) -> Iterator[str]:
    """Names of the registers in an operand; the sink `_` is none."""
    if isinstance(operand, Register):
        if operand.name != "_":
            yield operand.name
    elif isinstance(operand, Address):
        if isinstance(operand.base, Register):
            yield operand.base.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, (Negated, Selected)):
        yield from _registers(operand.register)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, TextureAddress):
        for item in (*operand.handles, operand.coordinates):
            yield from _registers(item)


def register_bits(function: Function) -> dict[str, int]:
    """The bits of the sets of `live_in`: registers in the order of `function.registers`, then `CARRY`."""
    return {name: 1 << index for index, name in enumerate((*function.registers, CARRY))}


def live_in(function: Function, graph: tuple[Block, ...]) -> tuple[int, ...]:
    """For every instruction, the registers whose values it or a later one may read.

    `graph` is what `blocks` gives. Each set is an int with the bits of `register_bits`. A
    guarded write leaves the old value in some lanes, so it ends no life.
    """
    bits = register_bits(function)
    code = function.instructions
    reads = [_set(uses(instruction), bits) for instruction in code]
    kills = [0 if instruction.guard else _set(defs(instruction), bits) for instruction in code]
    entry = [0] * len(graph)
    changed = True
    while changed:
        changed = False
        for number in range(len(graph) - 1, -1, -1):
            block = graph[number]
            live = 0
            for successor in block.successors:
                live |= entry[successor]
            for index in range(block.end - 1, block.start - 1, -1):
                live = live & ~kills[index] | reads[index]
            if live != entry[number]:
                entry[number] = live
                changed = True
    result = [0] * len(code)
    for block in graph:
        live = 0
        for successor in block.successors:
            live |= entry[successor]
        for index in range(block.end - 1, block.start - 1, -1):
            live = result[index] = live & ~kills[index] | reads[index]
    return tuple(result)


def _set(names: tuple[str, ...], bits: dict[str, int]) -> int:
    result = 0
    for name in names:
        result |= bits[name]
    return result
