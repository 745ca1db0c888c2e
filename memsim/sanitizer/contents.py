"""Which findings depend on contents of arrays that the caller has not given.

memsim fills these with numbers of its own, so what they decide is only possible.

They decide an access if its address depends on them, or whether it is made: if it is behind a branch, or a
guard, that depends on them, and before all ways from there meet again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_

from memsim.argument_types.argument import argument_of
from memsim.argument_types.array_arg import FILLS, ArrayArg
from memsim.isa.op import Effect, Flow, Trait
from memsim.isa.program import GLOBAL, Executable, Op, spaces_read, spaces_written
from memsim.sanitizer.hazards import INIT, RACE, SYNC, Hazard
from memsim.simt.control_graph import ControlGraph, reached_from
from memsim.simt.dataflow import Dataflow
from memsim.simt.decided_by import decided_by
from memsim.simt.pointer_roots import PARAMETER_BITS


def not_given(executable: Executable, names: Sequence[str], arguments: Iterable[object]) -> dict[str, int]:
    """The arguments with arrays whose contents are random, and the roots of what they point to, as bits."""
    found = {}
    for parameter, name, argument in zip(executable.parameters, names, arguments):
        if _has_unknown(argument):
            first = executable.parameter_base + parameter.offset
            words = range(first // 8, -(-(first + parameter.size) // 8))
            found[name] = sum(1 << PARAMETER_BITS + word for word in words)
    return found


def _has_unknown(argument: object) -> bool:
    found = []

    def look(array: object) -> object:
        found.append(isinstance(array, ArrayArg) and array.fill == FILLS[0])
        return array

    argument_of(argument).with_arrays(look)
    return any(found)


class Decided:
    """What in a program depends on the contents of some arrays, by their roots: instructions by index."""

    def __init__(self, dataflow: Dataflow, roots: int) -> None:
        found = decided_by(dataflow, (), dataflow.accessed, frozenset(((GLOBAL, roots),)))
        self.ops = dataflow.ops
        self.instructions = {op.index for op in found if op.effect is not Effect.CONTROL}
        after = _Postdominators(dataflow)
        for op in found:
            if op.effect is Effect.CONTROL:
                self.instructions |= {op.index, *after.region(op)}

    def decides(self, hazard: Hazard) -> bool:
        """Whether a finding depends on them: an access of it, what might order it, or what would have written
        the place.
        """
        own = {one.instruction.index for one in hazard.accesses if isinstance(one.instruction, Op)}
        if not own.isdisjoint(self.instructions):
            return True
        if hazard.tool in (RACE, SYNC):
            return self._orders or (hazard.tool == SYNC and self._exits)
        return hazard.tool == INIT and hazard.space in self._written

    @cached_property
    def _made(self) -> list[Op]:
        return [self.ops[at] for at in sorted(self.instructions)]

    @cached_property
    def _orders(self) -> bool:
        return any(_orders(op) for op in self._made)

    @cached_property
    def _exits(self) -> bool:
        return any(op.flow is Flow.EXIT for op in self._made)

    @cached_property
    def _written(self) -> frozenset[str]:
        return frozenset[str]().union(*map(spaces_written, self._made))


class ContentDoubts:
    """Why findings of a launch are only possible. roots: by name, as of `not_given`."""

    def __init__(self, dataflow: Dataflow, roots: Mapping[str, int]) -> None:
        self._dataflow, self._roots = dataflow, roots

    def doubt(self, hazard: Hazard) -> str:
        """In words; "" if it depends on no such contents."""
        if not self._roots or not self._of_all.decides(hazard):
            return ""
        names = [name for name, one in self._each.items() if one.decides(hazard)] or [*self._roots]
        return f"it depends on the contents of {', '.join(names)}, which are not given"

    @property
    def limits(self) -> set[str]:
        """What is not looked at: other contents of arrays that accesses or branches depend on."""
        flow = self._dataflow
        loads = [op for op in flow.ops if GLOBAL in spaces_read(op) and flow.decides(op.index)]
        read = reduce(or_, (flow.roots_of(op.index) for op in loads), 0)
        names = [name for name, roots in self._roots.items() if read & roots]
        text = f"what other contents of {', '.join(names)} would do, which are not given"
        return {text} if names else set()

    @cached_property
    def _of_all(self) -> Decided:
        return Decided(self._dataflow, reduce(or_, self._roots.values()))

    @cached_property
    def _each(self) -> dict[str, Decided]:
        if len(self._roots) == 1:
            return dict.fromkeys(self._roots, self._of_all)
        return {name: Decided(self._dataflow, roots) for name, roots in self._roots.items()}


class _Postdominators:
    """Of each basic block, those that every way from it to an end passes, as bits by their places."""

    def __init__(self, graph: ControlGraph) -> None:
        self._graph = graph
        starts = [*graph.basic_blocks]
        self._bits = {start: 1 << place for place, start in enumerate(starts)}
        every = (1 << len(starts)) - 1
        self._sets = dict.fromkeys(starts, every)
        work = set(starts)
        while work:
            start = work.pop()
            ways = graph.next_basic_blocks[start]
            common = every if ways and graph.block(start)[-1].flow is not Flow.EXIT else 0
            for way in ways:
                common &= self._sets[way]
            if common | self._bits[start] != self._sets[start]:
                self._sets[start] = common | self._bits[start]
                work.update(graph.previous_basic_blocks.get(start, ()))

    def region(self, branch: Op) -> Iterable[int]:
        """The instructions that a branch decides about: on ways from it, before all of them meet."""
        graph = self._graph
        start = graph.block_of(branch.index)
        ends = self._sets[start] & ~self._bits[start]

        def ways(block: int) -> list[int]:
            return [way for way in graph.next_basic_blocks[block] if not ends & self._bits[way]]

        for block in reached_from(ways(start), ways):
            yield from range(block, graph.basic_blocks[block])


def _orders(op: Op) -> bool:
    """Whether it may order accesses of several threads."""
    waits = Flow.BLOCK_BARRIER, Flow.WARP_SYNC, Flow.WAIT_PHASE, Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER
    return op.flow in waits or not {Trait.ORDERS, Trait.FENCES}.isdisjoint(op.traits)
