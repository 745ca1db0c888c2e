"""Loads from shared memory that decide accesses, and stores by other warps or lanes that nothing orders."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from memsim.isa.op import Effect, Flow, Op, Program
from memsim.isa.reach import SHARED, spaces_read
from memsim.order.shared_order import Report
from memsim.simt.dataflow import Dataflow
from memsim.simt.decided_by import decided_by
from memsim.simt.listener import Listener
from memsim.simt.spinning_swaps import swap_loops

#: Reasons that are given. One missing barrier often leaves many lines unordered.
MOST = 3


def report_of_order(dataflow: Dataflow, needed: Iterable[int], listener: Listener) -> Report | None:
    """What tells the listener of such loads and stores; None if no needed instruction loads from there."""
    ops = dataflow.ops
    places = dataflow.places_read, dataflow.places_written
    if not any(SHARED in spaces_read(ops[index]) for index in needed):
        return None
    told: set[str] = set()
    ends = {loop.branch.index for loop in swap_loops(ops)}  # what these cost has limits

    @cache
    def decided(load: int) -> Op | None:
        """The first access or branch that a load decides."""
        found = decided_by(dataflow, lambda op: op.index == load, *places)
        return next((op for op in found if op.index not in ends), None)

    def report(load: int, store: int, several: bool, by_lanes: bool) -> None:
        op = decided(load) if len(told) < MOST else None
        if op is None:
            return
        what = "the branch" if op.effect is Effect.CONTROL else "the address"
        threads, other, barrier = "one warp stores", "another", "no barrier orders them"
        missing = "__syncthreads"
        if several:
            threads, other = "several warps or lanes store", "one"
        elif by_lanes:
            threads, other, barrier = "lanes store", "others of their warp", "they have diverged"
            missing = "__syncwarp"
        loads = "load" if by_lanes else "loads"
        reason = (
            f"what {threads} to shared memory at {ops[store].where} and {other} {loads} at {ops[load].where}"
            f" decides {what} at {op.where}, and {barrier} (is a {missing}() missing?)"
        )
        told.add(reason)
        listener.uncertain(reason)

    return report


def meets_partly(program: Program) -> bool:
    """Whether anything but barriers of whole blocks orders what warps do: copies, mbarriers, others."""
    others = (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.WAIT_PHASE)
    return any(
        op.flow in others
        or op.form.opcode in ("SYNCS", "LDGSTS")
        or (op.flow is Flow.BLOCK_BARRIER and (len(op.form.operands) > 1 or "ARV" in op.form.modifiers))
        for op in program.ops
    )
