"""The control flow of a program: its basic blocks, and where each may lead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from operator import or_
from typing import Protocol, TypeVar

from memsim.isa.op import Barrier, Flow, Predicate, Trait
from memsim.isa.program import Op, Program

#: What names of the compiler's functions for rare cases contain.
RARE = "$__cuda_sm"


class Joined(Protocol):
    """What holds at a place; `|` is what holds before a branch to two of them."""

    def __or__(self: State, other: State, /) -> State: ...


State = TypeVar("State", bound=Joined)


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
        found: dict[int, frozenset[int]] = {}
        for heads in of_text.values():
            if len(heads) > 1:
                behind = {head: self._behind(head) for head in heads}
                for head in heads:
                    apart = {other for other in heads if head not in behind[other]} - behind[head]
                    found[head] = frozenset(apart - {head})
        return {head: others for head, others in found.items() if others}

    def _behind(self, start: int) -> set[int]:
        """The instructions that end basic blocks and are reached from one that does."""
        last = {first: end - 1 for first, end in self.basic_blocks}
        found: set[int] = set()
        work = [start]
        while work:
            for following in self._ways(self.ops[work.pop()]):
                end = last.get(following)
                if end is not None and end not in found:
                    found.add(end)
                    work.append(end)
        return found

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
    def basic_blocks(self) -> tuple[tuple[int, int], ...]:
        """(first, one past the last) of each basic block, in order."""
        starts = sorted(self.leaders)
        return tuple(zip(starts, [*starts[1:], len(self.ops)]))

    @cached_property
    def next_basic_blocks(self) -> dict[int, tuple[int, ...]]:
        """The successors of each basic block, by first instruction."""
        count = len(self.ops)
        return {
            start: tuple(dict.fromkeys(s for s in self.successors(self.ops[end - 1]) if s < count))
            for start, end in self.basic_blocks
        }

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
        before: dict[int, list[int]] = {start: [] for start in at}
        for start, ways in following.items():
            for one in ways:
                before[one].append(start)
        work = sorted(at)
        waiting = set(work)
        while work:
            start = work.pop()
            waiting.discard(start)
            found = transfer(start, reduce(or_, (at[one] for one in following[start]), nothing))
            if found != at[start]:
                at[start] = found
                for one in before[start]:
                    if one not in waiting:
                        waiting.add(one)
                        work.append(one)
        return at
