"""Which values ptxas knows to be the same in all lanes of a warp.

In: a `Function` and its flow. Out: for each register a `Spread`. Left out: values; a register that only
happens to hold the same in all lanes is `LANES`, as it is for ptxas.
Source: what ptxas 13.0 for sm_90 makes of atomics (it lets one lane do those on an address that it knows to
be the same), in some 150 small variants of PTX.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum

from memsim.ptx.blocks import BRANCHES, Block
from memsim.ptx.flow import Flow, defs, register_bits, uses
from memsim.ptx.program import Function, Immediate, Instruction, Operand, Register, Special, Vector
from memsim.ptx.shape import Shape, immediate_post_dominators


class Spread(IntEnum):
    """What ptxas knows of a value: the same in all lanes; not known here; that it depends on the lane."""

    SAME = 0
    UNSURE = 1
    LANES = 2


# Results that are the same in all lanes, and those that are each lane's own, whatever goes in.
_MADE_SAME = frozenset({"vote", "activemask", "redux"})
_MADE_OWN = frozenset({"atom", "bar", "barrier"})
_OWN_SPECIALS = ("%tid", "%laneid", "%lanemask")
# Results that depend on the lane if an operand does, and else are the same in all lanes.
_PLAIN = frozenset(
    {"abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign"}
    | {"cos", "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "isspacep", "ld", "ldu"}
    | {"lg2", "lop3", "mad", "mad24", "madc", "mapa", "max", "min", "mov", "mul", "mul24", "neg"}
    | {"not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf"}
    | {"shfl", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "szext", "tanh", "testp", "xor"}
)
# ptxas calls a routine for these, but for the types and roundings listed; then it knows nothing.
_ROUTINES = frozenset({"div", "rem", "rcp", "rsqrt", "sqrt"})
_NO_ROUTINE = frozenset({"u16", "s16", "u32", "s32", "approx"})
# Sums of the thread's number with something else: what `==` picks one thread by.
_SUMS = frozenset({"add", "mad", "mov", "sub"})


class Uniformity:
    """The spread of the registers of one function, and where one single thread is.

    `of(operand)`: the spread of an operand. `picked`: blocks that only lanes come to, and `picks`: predicates
    that only lanes have, whose thread number is equal to something: ptxas may take them for one lane.
    """

    def __init__(self, function: Function, flow: Flow) -> None:
        self.function = function
        self.flow = flow
        self._bits = register_bits(function)
        self._defined: dict[str, list[int]] = defaultdict(list)
        for index, instruction in enumerate(function.instructions):
            for name in defs(instruction):
                self._defined[name].append(index)
        self._ways = dict(ways_from_branches(function, flow.blocks))
        self._spread = dict.fromkeys(self._bits, Spread.SAME)
        self._grow()
        self._doubt()
        self.picks = self._picking_predicates()
        self.picked = self._picked_blocks()

    def of(self, operand: Operand) -> Spread:
        """The spread of an operand; an address has that of its base."""
        base = getattr(operand, "base", operand)
        if isinstance(base, Register):
            return self._spread.get(base.name, Spread.UNSURE)
        if isinstance(base, Special):
            if not base.name.startswith(_OWN_SPECIALS):
                return Spread.SAME
            # Of a block whose shape it knows, ptxas can tell that warps have one %tid.y, and the like.
            return Spread.UNSURE if self.function.reqntid else Spread.LANES
        if isinstance(base, Vector):
            return max(map(self.of, base.items))
        return Spread.SAME

    def is_picked(self, instruction: Instruction) -> bool:
        """Whether an instruction may be for one thread, picked by its number."""
        if instruction.guard is not None and instruction.guard.name in self.picks:
            return True
        place = next(i for i, other in enumerate(self.function.instructions) if other is instruction)
        return any(self.flow.blocks[n].start <= place < self.flow.blocks[n].end for n in self.picked)

    # --- spread -------------------------------------------------------------------------

    def _grow(self) -> None:
        """The least that fits: each register as spread as its definitions and the branches around them."""
        changed = True
        while changed:
            before = dict(self._spread)
            for name, places in self._defined.items():
                self._spread[name] = max(self._spread[name], *(self._result(index) for index in places))
            for name in self._parted_at_branches():
                self._spread[name] = max(self._spread[name], Spread.UNSURE)
            changed = self._spread != before

    def _doubt(self) -> None:
        """A register with definitions of both kinds is neither: it may be two variables, or a peeled loop."""
        changed = True
        while changed:
            before = dict(self._spread)
            for name, places in self._defined.items():
                found = {self._result(index) for index in places}
                if self._spread[name] is Spread.LANES and found != {Spread.LANES}:
                    self._spread[name] = Spread.UNSURE
            changed = self._spread != before

    def _result(self, index: int) -> Spread:
        """The spread of what an instruction writes."""
        instruction = self.function.instructions[index]
        spread = self._unguarded(instruction)
        return spread if instruction.guard is None else max(spread, self.of(instruction.guard))

    def _unguarded(self, instruction: Instruction) -> Spread:
        opcode, modifiers, operands = instruction.opcode, instruction.modifiers, instruction.operands
        if opcode in _MADE_SAME or (opcode == "match" and "all" in modifiers):
            return Spread.SAME
        if opcode in _MADE_OWN or opcode == "match":
            return Spread.LANES
        if opcode == "shfl" and "idx" in modifiers and self._constant(operands[3]) == Immediate(31):
            return self.of(operands[2])  # which lane's value; of the whole warp
        if opcode not in _PLAIN:
            return Spread.UNSURE
        spread = max((self.of(operand) for operand in self._sources(instruction)), default=Spread.SAME)
        routine = opcode in _ROUTINES and not _NO_ROUTINE & set(modifiers)
        return max(spread, Spread.UNSURE) if routine or "local" in modifiers else spread

    def _constant(self, operand: Operand) -> Operand:
        """What a register holds that is only a name for a constant; any other operand as it is."""
        places = self._defined[operand.name] if isinstance(operand, Register) else []
        moves = [self.function.instructions[index] for index in places]
        is_name = len(moves) == 1 and moves[0].opcode == "mov" and moves[0].guard is None
        return moves[0].operands[1] if is_name else operand

    def _sources(self, instruction: Instruction) -> Iterator[Operand]:
        yield from (Register(name) for name in uses(instruction))
        yield from (operand for operand in instruction.operands if isinstance(operand, Special))

    def _parted_at_branches(self) -> Iterator[str]:
        """Registers written while lanes are parted, and read where lanes come to that differ in it."""
        blocks, code = self.flow.blocks, self.function.instructions
        for number, ways in self._ways.items():
            branch = code[blocks[number].end - 1]
            decides = branch.guard if branch.opcode == "bra" else branch.operands[0]
            if decides is None or self.of(decides) is Spread.SAME:
                continue
            inside, meetings = ways
            live = 0
            for meeting in meetings:
                live |= self.flow.live_in(blocks[meeting].start)
            for block in inside:
                for instruction in code[blocks[block].start : blocks[block].end]:
                    yield from (name for name in defs(instruction) if self._bits.get(name, 0) & live)

    # --- picked threads -----------------------------------------------------------------

    def _picking_predicates(self) -> frozenset[str]:
        """Predicates that compare a sum with the thread's number in it, and what logic makes of them."""
        numbers, picks = {"%tid.x", "%laneid"}, set[str]()
        changed = True
        while changed:
            before = len(numbers) + len(picks)
            for instruction in self.function.instructions:
                opcode, modifiers = instruction.opcode, set(instruction.modifiers)
                read = {*uses(instruction)} | {o.name for o in instruction.operands if isinstance(o, Special)}
                if opcode in _SUMS and read & numbers:
                    numbers.update(defs(instruction))
                equal = opcode == "setp" and bool(modifiers & {"eq", "ne"}) and bool(read & numbers)
                if equal or (opcode == "elect") or ("pred" in modifiers and read & picks):
                    picks.update(defs(instruction))
            changed = before != len(numbers) + len(picks)
        return frozenset(picks)

    def _picked_blocks(self) -> frozenset[int]:
        """Blocks that all ways to lead along one side of a branch by such a predicate."""
        blocks, code = self.flow.blocks, self.function.instructions
        found: set[int] = set()
        for number, block in enumerate(blocks):
            guard = code[block.end - 1].guard
            if guard is None or guard.name not in self.picks:
                continue
            for target in block.successors:
                found |= set(range(len(blocks))) - reached_without(blocks, (number, target))
        return frozenset(found)


def ways_from_branches(
    function: Function, blocks: tuple[Block, ...]
) -> Iterator[tuple[int, tuple[set[int], set[int]]]]:
    """For each block with a branch, the blocks between it and where its ways meet, and the meeting places.

    Those are its immediate post-dominator and, of the loops that lanes can leave there, the beginnings.
    """
    if not blocks:
        return
    shape, end = Shape(blocks), len(blocks)
    edges = [[*block.successors, end] if block.leaves else [*block.successors] for block in blocks]
    for number, onward in enumerate(edges):  # an endless loop is given a way out
        if not _reaches(edges, number, end):
            onward.append(end)
    meetings = immediate_post_dominators(edges)
    for number, block in enumerate(blocks):
        if function.instructions[block.end - 1].opcode not in BRANCHES or len(block.successors) < 2:
            continue
        inside: set[int] = set()
        waiting = list(block.successors)
        while waiting:
            other = waiting.pop()
            if other != meetings[number] and other not in inside:
                inside.add(other)
                waiting.extend(blocks[other].successors)
        heads = {head for head, loop in shape.loops.items() if number in loop and head in inside}
        places = heads | ({meetings[number]} - {end})
        yield number, (inside, places)


def reached_without(blocks: tuple[Block, ...], edge: tuple[int, int]) -> set[int]:
    """The blocks that are reached from the first one if nobody takes `edge`."""
    found, waiting = {0}, [0]
    while waiting:
        block = waiting.pop()
        for target in blocks[block].successors:
            if target not in found and (block, target) != edge:
                found.add(target)
                waiting.append(target)
    return found


def _reaches(edges: list[list[int]], start: int, end: int) -> bool:
    found, waiting = {start}, [start]
    while waiting:
        block = waiting.pop()
        if block == end:
            return True
        new = [target for target in edges[block] if target not in found]
        found.update(new)
        waiting.extend(new)
    return False
