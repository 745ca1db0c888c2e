"""Registers of `wgmma`: accessed before a product is done, or without a `wgmma.fence` before it begins.

A product accesses its accumulators, and A if that is in registers, asynchronously: no other instruction may
access these before a `wgmma.wait_group` that waits for the product's group; and what others have accessed
needs a `wgmma.fence` before a product, as does the first one of a warp (PTX ISA, "Asynchronous warpgroup
level matrix instructions": `wgmma.fence`, `wgmma.wait_group`). ptxas inserts what is missing in the source,
so this judges what an assembler did. A warp's state is a number, and how a stretch of code changes it is
worked out once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.op import UNIFORM, Immediate, Trait
from memsim.isa.program import Op, Program
from memsim.isa.warpgroup import is_committed, wait_for_products
from memsim.order.order_listener import Threads
from memsim.order.warp_clocks import COMMITS
from memsim.sanitizer.examples import Example
from memsim.state.parts import Mask

#: The slots of a lane's own registers, as bits.
_REGISTERS = (1 << UNIFORM) - 1


class EarlyAccess(NamedTuple):
    """An instruction that accesses registers of a product that is not done; product -1: a product without a
    fence behind other accesses to its registers.
    """

    product: int
    instruction: int


class _State(NamedTuple):
    """Of a warp: registers accessed since its last fence, as bits; products since the last group, and in the
    groups before, the latest first.
    """

    accessed: int
    since: frozenset[int]
    groups: tuple[frozenset[int], ...]


class ProductRegisters:
    """Finds them: `found`."""

    def __init__(self, program: Program) -> None:
        self.found: dict[EarlyAccess, Example] = {}
        self._ops = program.ops
        self.is_used = any(op.is_product for op in program.ops)
        self._states = [_State(_REGISTERS, frozenset(), ())]
        self._numbers = {self._states[0]: 0}
        self._next: dict[tuple[int, int], tuple[int, tuple[EarlyAccess, ...]]] = {}

    def start_chunk(self, threads: Threads) -> None:
        """Blocks start."""
        self._threads = threads
        self._now = np.zeros(threads.warps_of(True).shape, np.int64)
        #: The states that warps have.
        self._present = {0}

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Lanes execute the instructions from `start` up to `stop`."""
        if all(self._next.get((number, start)) == (number, ()) for number in self._present):
            return
        here: np.ndarray = self._threads.warps_of(mask)
        rows = len(self._threads.blocks)
        if len(here) != len(self._now):
            here, self._now = (np.broadcast_to(one, (rows, one.shape[1])).copy() for one in (here, self._now))
        for number in np.unique(self._now[here]).tolist():
            key = number, start
            if key not in self._next:
                self._next[key] = self._after(number, start, stop)
            after, found = self._next[key]
            at = here & (self._now == number)
            for one in found:
                row, warp = (int(places[0]) for places in np.nonzero(at))
                first = Example(int(self._threads.blocks[row]), later=warp * WARP)
                self.found.setdefault(one, first).count += int(at.sum())
            if after != number:
                self._now[at] = after
                self._present.add(after)
        self._present &= {*np.unique(self._now).tolist()}

    def _after(self, number: int, start: int, stop: int) -> tuple[int, tuple[EarlyAccess, ...]]:
        state, found = self._states[number], list[EarlyAccess]()
        for op in self._ops[start:stop]:
            state = self._step(state, op, found)
        if state not in self._numbers:
            self._numbers[state] = len(self._states)
            self._states.append(state)
        return self._numbers[state], tuple(dict.fromkeys(found))

    def _step(self, state: _State, op: Op, found: list[EarlyAccess]) -> _State:
        accessed, since, groups = state
        touched = (op.reads | op.writes) & _REGISTERS
        if op.is_product:
            if accessed & touched:
                found.append(EarlyAccess(-1, op.index))
            since |= {op.index}
            if is_committed(op.form):
                since, groups = frozenset[int](), (since, *groups)[:COMMITS]
        elif Trait.BEGINS_PRODUCTS in op.traits:
            accessed = 0
        elif op.builder is wait_for_products:
            left = op.form.operands[-1]
            groups = groups[: int(left.value)] if isinstance(left, Immediate) else ()
        elif touched:
            for product in sorted(since.union(*groups)):
                other = self._ops[product]
                if (touched & other.writes | op.writes & other.reads) & _REGISTERS:
                    found.append(EarlyAccess(product, op.index))
            accessed |= touched
        return _State(accessed, since, groups)
