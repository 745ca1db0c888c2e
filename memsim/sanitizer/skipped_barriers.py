"""Threads that go past a `__syncthreads()` at which others of their block wait, and exit.

A chip does not wait for threads that have exited (PTX ISA, `exit`; CUDA C++ Programming Guide, Independent
Thread Scheduling), so nobody waits forever. But CUDA allows `__syncthreads()` under a condition only if that
is the same for the whole block (Synchronization Functions), and PTX wants a barrier executed by all threads
of a warp (PTX ISA, `bar`). A thread that has returned early is fine; a condition around all that is left of
the kernel is the same code. One that skipped a barrier is known by a store behind it that it has made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from memsim.isa.op import Flow, Immediate, slots_of
from memsim.isa.program import Op, spaces_written
from memsim.order.order_listener import OrderListener, Threads
from memsim.sanitizer.examples import Example
from memsim.simt.control_graph import ControlGraph
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask
from memsim.state.predicates import both, either, from_bools, invert


class SkippedBarrier(NamedTuple):
    """A barrier, and a store that a thread makes without it; by their indices."""

    barrier: int
    store: int


class SkippedBarriers(OrderListener):
    """Finds them: `found`; there `earlier` is a thread that waits, `later` one that goes past."""

    def __init__(self, graph: ControlGraph) -> None:
        self.found: dict[SkippedBarrier, Example] = {}
        #: Stores from which no way leads to a barrier, and those of them that are reached from each one.
        self._stores: list[int] = []
        self._behind: dict[int, list[int]] = {}
        self._made: dict[int, Mask] = {}
        ends = dict(graph.basic_blocks)
        barriers = {start for start, end in ends.items() if is_syncthreads(graph.ops[end - 1])}
        if not barriers:
            return
        ahead = graph.backward(lambda start, behind: behind or start in barriers, False)
        for start in (start for start, leads in ahead.items() if not leads):
            stores = (
                op.index for op in graph.ops[start : ends[start]] if op.guard is None and spaces_written(op)
            )
            self._stores += [*stores][-1:]
        bits = {store: 1 << number for number, store in enumerate(self._stores)}
        of_block = {start: sum(bits.get(at, 0) for at in range(start, end)) for start, end in ends.items()}
        reached = graph.backward(lambda start, behind: behind | of_block[start], 0)
        for start in barriers:
            found = 0
            for following in graph.next_basic_blocks[start]:
                found |= reached[following]
            self._behind[ends[start] - 1] = [self._stores[number] for number in slots_of(found)]

    @property
    def is_used(self) -> bool:
        """Whether there are stores to look at."""
        return bool(self._stores)

    def start_chunk(self, threads: Threads, memory: Memory) -> None:
        self._threads, self._made = threads, {}

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute the instructions from `start` up to `stop`."""
        first = bisect_left(self._stores, start)
        for store in self._stores[first : bisect_left(self._stores, stop, first)]:
            self._made[store] = either(self._made.get(store, False), mask)

    def meet(self, lanes: Sequence[tuple[int, Mask]]) -> None:
        full, exited = self._threads.full, invert(self._threads.alive)
        for barrier, here in lanes:
            for store in self._behind.get(barrier, ()):
                gone = both(self._made.get(store, False), exited)
                if gone is False:
                    continue
                waiting, skipping = full(here), full(gone)
                rows = np.flatnonzero(waiting.any(1) & skipping.any(1)).tolist()
                if rows:
                    one, other = (int(each[rows[0]].argmax()) for each in (waiting, skipping))
                    first = Example(int(self._threads.blocks[rows[0]]), one, other)
                    told = from_bools(np.any(waiting, axis=1, keepdims=True))
                    key = SkippedBarrier(barrier, store)
                    self.found.setdefault(key, first).count += int(skipping[rows].sum())
                    self._made[store] = both(self._made[store], invert(both(gone, told)))


def is_syncthreads(op: Op) -> bool:
    """Whether it is the barrier 0, of all threads."""
    number = op.form.operands[0] if len(op.form.operands) == 1 else None
    return op.flow is Flow.BLOCK_BARRIER and isinstance(number, Immediate) and number.value == 0
