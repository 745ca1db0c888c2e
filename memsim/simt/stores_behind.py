"""Which stores to shared memory a load there does not read: those to which a block only comes after a barrier
behind the load, and from which no way leads back. So the data of tiles need not be known where a kernel made
a tensor map before.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from memsim.isa.op import Flow, Trait
from memsim.isa.program import Op
from memsim.simt.control_graph import ControlGraph


class StoresBehind:
    """Stores behind barriers in one program; none if other blocks of a cluster may store."""

    def __init__(self, graph: ControlGraph) -> None:
        self._graph = graph
        self._starts = [start for start, _ in graph.basic_blocks]
        self._found: dict[tuple[int, bool], frozenset[int]] = {}

    def is_behind(self, load: int, store: int) -> bool:
        """Do all threads of the block make the load, if they do, before any comes to the store?"""
        if self._in_clusters:
            return False
        of_load, of_store = (self._starts[bisect_right(self._starts, at) - 1] for at in (load, store))
        return (
            of_load != of_store
            and of_store in self._behind(of_load, False)
            and of_store not in self._behind(of_load, True)
            and of_load not in self._behind(of_store, False)
        )

    @cached_property
    def _in_clusters(self) -> bool:
        flows = (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER)
        return any(
            op.flow in flows or any("cluster" in access or "multicast" in access for access, _ in op.touches)
            for op in self._graph.ops
        )

    def _behind(self, start: int, before_barriers: bool) -> frozenset[int]:
        """The basic blocks that are reached from one: all, or without any barrier of all threads."""
        key = start, before_barriers
        if key not in self._found:
            graph, ends = self._graph, dict(self._graph.basic_blocks)
            found: set[int] = set()
            work = [start]
            while work:
                here = work.pop()
                if before_barriers and _is_of_all(graph.ops[ends[here] - 1]):
                    continue
                new = set(graph.next_basic_blocks[here]) - found
                found |= new
                work += new
            self._found[key] = frozenset(found)
        return self._found[key]


def _is_of_all(op: Op) -> bool:
    """Is it a barrier at which all threads of the block wait?"""
    whole = op.guard is None and len(op.form.operands) == 1 and Trait.ARRIVES not in op.traits
    return op.flow is Flow.BLOCK_BARRIER and whole
