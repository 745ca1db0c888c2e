"""The control flow of a program: its basic blocks, and where each may lead."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, reduce
from heapq import heappop, heappush
from itertools import count
from operator import or_
from typing import Generic, Protocol, TypeVar

from memsim.isa.op import Barrier, Flow, Immediate, Predicate, Trait
from memsim.isa.program import Op, Program

#: What names of the compiler's functions for rare cases contain.
RARE = "$__cuda_sm"


class Joined(Protocol):
    """What holds at a place; `|` is what holds before a branch to two of them."""

    def __or__(self: State, other: State, /) -> State: ...


State = TypeVar("State", bound=Joined)
Node = TypeVar("Node")

#: Where a function returns to, innermost first; None if that is not known.
Callers = tuple[int, ...] | None
#: A basic block by its first instruction, and where its function returns to.
Where = tuple[int, Callers]
#: Calls within calls that are told apart.
DEEPEST = 3


def reached_from(first: Iterable[Node], ways: Callable[[Node], Iterable[Node]]) -> set[Node]:
    """All nodes to which ways lead from some, these included."""
    found = set(first)
    work = [*found]
    while work:
        new = set(ways(work.pop())) - found
        found |= new
        work += new
    return found


class Sweeps(Generic[Node]):
    """Basic blocks for which a fixed point is worked out, from one end of the code to the other, in sweeps.

    In the order in which they are found, a function that many places call would be looked at after each.
    """

    def __init__(self, key: Callable[[Node], int]) -> None:
        """key: where a block is in a sweep."""
        self.key, self.sweep, self.at = key, 0, -sys.maxsize
        self.waiting: set[Node] = set()
        self.heap: list[tuple[int, int, int, Node]] = []
        self.order = count()

    def __bool__(self) -> bool:
        return bool(self.heap)

    def add(self, block: Node) -> None:
        """It has to be looked at, once more; in the next sweep, if this one has passed it."""
        if block not in self.waiting:
            self.waiting.add(block)
            key = self.key(block)
            heappush(self.heap, (self.sweep + (key <= self.at), key, next(self.order), block))

    def pop(self) -> Node:
        """The next one."""
        self.sweep, self.at, _, block = heappop(self.heap)
        self.waiting.discard(block)
        return block


def barrier_slot(op: Op) -> int:
    """The convergence barrier of a BSSY, BSYNC or BREAK; -1 for others."""
    return next((operand.slot for operand in op.form.operands if isinstance(operand, Barrier)), -1)


def gathers(op: Op) -> bool:
    """Is it a WARPSYNC.COLLECTIVE?"""
    return op.flow is Flow.WARP_SYNC and Trait.COLLECTIVE in op.traits


class ControlGraph:
    """The basic blocks of one program, worked out on first use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ops = program.ops

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
        """Where basic blocks begin: branch targets, functions, and behind control flow."""
        found = {0, *self.entries}
        for op in self.ops:
            if op.flow is not None:
                found.add(op.index + 1)
                found |= set(op.targets)
        found |= set(self.meeting.values())
        return frozenset(index for index in found if index < len(self.ops))

    @cached_property
    def entries(self) -> list[int]:
        """Where functions begin to which indirect calls may lead; not the kernel, nor those of divisions."""
        named = self.program.functions.items()
        return [at for name, at in named if at and not name.startswith(".") and RARE not in name]

    @cached_property
    def collectives(self) -> dict[int, int]:
        """The ENDCOLLECTIVE of each WARPSYNC.COLLECTIVE, by index."""
        ends = {op.index for op in self.ops if op.flow is Flow.END_COLLECTIVE}
        heads = [op.index for op in self.ops if gathers(op)]
        found = {head: next((end for end in range(head + 1, head + 4) if end in ends), 0) for head in heads}
        return {head: end for head, end in found.items() if end}

    @cached_property
    def alike(self) -> dict[int, frozenset[int]]:
        """For each WARPSYNC.COLLECTIVE those that do the same with the same registers on other ways.

        They are one shuffle, of which the compiler has made several; neither is reached from the other.
        """
        of_text: dict[tuple[str, ...], list[int]] = {}
        for head, end in self.collectives.items():
            of_text.setdefault(tuple(op.text for op in self.ops[head + 1 : end]), []).append(head)
        several = [heads for heads in of_text.values() if len(heads) > 1]
        if not several:
            return {}
        behind = self.blocks_behind(
            {
                start: tuple(way for way in self._ways(self.ops[end - 1]) if way in self.basic_blocks)
                for start, end in self.basic_blocks.items()
            }
        )
        found: dict[int, frozenset[int]] = {}
        for heads in several:
            blocks = {head: self.block_of(head) for head in heads}
            for head, block in blocks.items():
                found[head] = frozenset(
                    other
                    for other, its in blocks.items()
                    if other != head and not behind[its] >> block & 1 and not behind[block] >> its & 1
                )
        return {head: others for head, others in found.items() if others}

    def blocks_behind(self, following: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
        """By basic block those that a way leads to from it, each as the bit of its first instruction.

        following: where each may lead.
        """
        at = self.backward(lambda start, behind: behind | 1 << start, 0, following)
        return {start: reduce(or_, (at[way] for way in ways), 0) for start, ways in following.items()}

    def successors(self, op: Op) -> tuple[int, ...]:
        """The possible successors of an instruction that ends a basic block."""
        found = self._ways(op)
        if gathers(op) and op.index in self.alike:
            found = (*found, *(other + 1 for other in sorted(self.alike[op.index])))
        elif op.flow is Flow.END_COLLECTIVE:
            head = next((head for head, end in self.collectives.items() if end == op.index), None)
            others = sorted(self.alike.get(head, ())) if head is not None else ()
            found = (*found, *(self.collectives[other] + 1 for other in others))
        return found

    def _ways(self, op: Op) -> tuple[int, ...]:
        """Its possible successors in the lanes that execute it."""
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
            Flow.END_COLLECTIVE,
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
        if op.flow is Flow.CALL and op.reads & ((1 << 256) - 1):
            return (*self.entries, following)
        if op.flow is Flow.CALL and not op.targets:
            return (following,)
        conditional = guarded or any(isinstance(operand, Predicate) for operand in op.form.operands)
        if op.flow in (Flow.BRANCH_DIVERGED, Flow.BRANCH_ANY) or conditional:
            return (*op.targets, following)
        return op.targets

    @cached_property
    def basic_blocks(self) -> dict[int, int]:
        """One past the last instruction of each basic block, by its first one, in order."""
        starts = sorted(self.leaders)
        return dict(zip(starts, [*starts[1:], len(self.ops)]))

    @cached_property
    def _starts(self) -> list[int]:
        return [*self.basic_blocks]

    def block(self, start: int) -> tuple[Op, ...]:
        """The instructions of the basic block that begins with one."""
        return self.ops[start : self.basic_blocks[start]]

    def block_of(self, index: int) -> int:
        """The first instruction of the basic block that an instruction is in."""
        return self._starts[bisect_right(self._starts, index) - 1]

    @cached_property
    def next_basic_blocks(self) -> dict[int, tuple[int, ...]]:
        """The successors of each basic block, by first instruction."""
        count = len(self.ops)
        return {
            start: tuple(dict.fromkeys(s for s in self.successors(self.ops[end - 1]) if s < count))
            for start, end in self.basic_blocks.items()
        }

    @cached_property
    def behind(self) -> dict[int, int]:
        """As `blocks_behind`, on the ways of all lanes."""
        return self.blocks_behind(self.next_basic_blocks)

    @cached_property
    def previous_basic_blocks(self) -> dict[int, list[int]]:
        """Those that lead to each basic block, by first instruction."""
        return predecessors_by_node(self.next_basic_blocks)

    def following(self, start: int, callers: Callers) -> list[Where]:
        """Where a basic block may lead, with the callers there."""
        op = self.block(start)[-1]
        ways = self.next_basic_blocks[start]
        if op.flow is Flow.CALL and op.targets:
            inside: Callers = None
            if callers is not None and len(callers) < DEEPEST and self._returns_behind(start, op):
                inside = (op.index + 1, *callers)
            return [(way, inside if way in op.targets else callers) for way in ways]
        if op.flow is Flow.RETURN and callers:
            guarded = [(op.index + 1, callers)] if op.guard is not None else []
            return [(callers[0], callers[1:]), *guarded]
        return [(way, None if op.flow is Flow.RETURN else callers) for way in ways]

    def _returns_behind(self, start: int, call: Op) -> bool:
        """Does the basic block that ends in a call hand over the address behind it?"""
        if call.index + 1 >= len(self.ops):
            return False
        behind = self.ops[call.index + 1].address
        return any(
            isinstance(operand, Immediate) and operand.value == behind
            for op in self.ops[start : call.index]
            for operand in op.form.operands
        )

    def backward(
        self,
        transfer: Callable[[int, State], State],
        nothing: State,
        following: Mapping[int, tuple[int, ...]] | None = None,
    ) -> dict[int, State]:
        """The least fixed point of a backward analysis on basic blocks.

        transfer: (first instruction, what holds behind a basic block) -> what holds before it. following: the
        successors of the basic blocks that are looked at; None: `next_basic_blocks`.
        """
        following = self.next_basic_blocks if following is None else following
        at = dict.fromkeys(following, nothing)
        before = predecessors_by_node(following)
        work = Sweeps[int](lambda start: -start)
        for start in at:
            work.add(start)
        while work:
            start = work.pop()
            found = transfer(start, reduce(or_, (at[one] for one in following[start]), nothing))
            if found != at[start]:
                at[start] = found
                for one in before[start]:
                    work.add(one)
        return at


def predecessors_by_node(ways: Mapping[Node, Iterable[Node]]) -> dict[Node, list[Node]]:
    """The nodes from which ways lead to each node."""
    found: dict[Node, list[Node]] = {start: [] for start in ways}
    for start, following in ways.items():
        for one in following:
            found[one].append(start)
    return found
