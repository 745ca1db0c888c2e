"""Which stores to shared memory a load there does not read: those to which every way leads through a barrier
of the whole block from which none leads back to the load. So the data of tiles need not be known where a
kernel made a tensor map before.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from functools import cached_property

from memsim.isa.op import Flow, Trait
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph, reached_from


class StoresBehind:
    """Stores behind barriers in one program; none if other blocks of a cluster may store."""

    def __init__(self, graph: ControlGraph) -> None:
        self._graph = graph
        self._before: dict[int, frozenset[int]] = {}

    def is_behind(self, load: int, store: int) -> bool:
        """Do all threads of the block make the load, if they do, before any comes to the store?"""
        if self._in_clusters:
            return False
        of_load, of_store = map(self._graph.block_of, (load, store))
        if of_load not in self._before:
            last = {at for at, after in self._barriers.items() if of_load not in after}
            self._before[of_load] = self._reached([0], last)
        return of_store not in self._before[of_load]

    @cached_property
    def _barriers(self) -> dict[int, frozenset[int]]:
        """Basic blocks that end at a barrier of all threads, with those that are reached from there."""
        graph = self._graph
        return {
            start: self._reached(graph.next_basic_blocks[start], ())
            for start in graph.basic_blocks
            if _is_of_all(graph.block(start)[-1])
        }

    @cached_property
    def _in_clusters(self) -> bool:
        flows = (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER)
        return any(
            op.flow in flows or any("cluster" in access or "multicast" in access for access, _ in op.touches)
            for op in self._graph.ops
        )

    def _reached(self, first: Collection[int], last: Container[int]) -> frozenset[int]:
        """The basic blocks to which one comes from the `first`, these included, and not beyond the `last`."""
        ways = self._graph.next_basic_blocks
        return frozenset(reached_from(first, lambda here: () if here in last else ways[here]))


def _is_of_all(op: Op) -> bool:
    """Is it a barrier at which all threads of the block wait?"""
    whole = op.guard is None and len(op.form.operands) == 1 and Trait.ARRIVES not in op.traits
    return op.flow is Flow.BLOCK_BARRIER and whole
