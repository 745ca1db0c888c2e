"""Bulk copies by TMA of bytes that lie side by side: `UBLKCP`.

Reductions are in bulk_reductions.py. Source: PTX ISA, `cp.async.bulk`, and the code that ptxas 13.0 generates
for sm_90a:

    UBLKCP.S.G[.MULTICAST] [UR8], [UR4], UR10    UR8 destination, UR9 the mbarrier; UR4 and UR5 source; UR10
                                                 size / 16, and from bit 16 the blocks
    UBLKCP.G.S [UR4], [UR8], UR10                UR4 and UR5 destination, UR8 source
    UBLKCP.S.S [UR12], [UR8], UR10               UR12 destination, UR13 the mbarrier, UR8 source
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memsim.isa.bulk_issue import (
    INSIDE,
    LOADS,
    MULTICASTS,
    STORES,
    UNIT,
    Issue,
    between,
    complete,
    completes_at,
    copies,
    cut,
    deliver,
    move,
    multicast,
    several,
    wide,
)
from memsim.isa.definitions import BoundForm, Touches, define, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import Run
from memsim.isa.program import Op
from memsim.state.space_bytes import SpaceBytes

define("UBLKCP", "<- T2TT", None, steers=True, touches=(*LOADS, *STORES))  # others are not executed


@executes("UBLKCP.G.S", "<- T2TT", steers=True, touches=STORES)
@executes("UBLKCP.S.S", "<- T2TT", steers=True, touches=INSIDE)
def copy_from_shared(form: BoundForm, to: int, of: int, count: int) -> Run:
    return from_shared(form, (to, of, count), STORES if "G" in form.given else INSIDE, move)


@executes("UBLKCP.S.G", "<- T2T2T", steers=True, touches=LOADS)
@executes("UBLKCP.S.G.MULTICAST", "<- T2T2T", steers=True, touches=MULTICASTS)
def copy_to_shared(form: BoundForm, to: int, of: int, count: int) -> Run:
    def act(machine: MemoryMachine, op: Op, issue: Issue, data: bool) -> None:
        place, _, low, high, words = issue.words
        source, length = wide(low, high), (words & 0xFFFF) * UNIT
        ranks = words >> 16 if several(form) else None
        starts, lengths, whose = cut(source, length, place)
        if ranks is None:
            machine.stretches(
                op, "bulk_load", "global", starts, lengths, issue.block[whose], issue.warp[whose]
            )
        else:
            multicast(machine, op, issue, (starts, lengths, whose), ranks)

        def write(i: int, block: int, first: int) -> None:
            run, space = np.arange(length[i]), machine.memory.space
            move(space("shared"), block, first + run, space("global"), 0, source[i] + run)

        deliver(machine, op, issue, length, ranks, write if data else None)

    touches = MULTICASTS if several(form) else LOADS
    return copies(form.binder, [to, to + 1, of, of + 1, count], touches, act, 1)


#: Writes bytes of one space to another, as `move`.
Write = Callable[[SpaceBytes, int, np.ndarray, SpaceBytes, int, np.ndarray, Op], None]


def from_shared(form: BoundForm, operands: tuple[int, int, int], touches: Touches, write: Write) -> Run:
    """A copy or reduction from shared memory to global memory, or to that of a block of the cluster, where it
    completes at an mbarrier.
    """
    to, of, count = operands
    access, space = touches[0]
    in_global = space == "global"

    def act(machine: MemoryMachine, op: Op, issue: Issue, data: bool) -> None:
        first, second, place, words = issue.words
        length = (words & 0xFFFF) * UNIT
        from_blocks, source = machine.in_cluster(issue.block, place)
        machine.stretches(op, "bulk_load", "shared", source, length, from_blocks, issue.warp)
        if in_global:
            at, rows, owners = wide(first, second), np.zeros_like(issue.block), issue.block
            starts, lengths, whose = cut(at, length, place)
        else:
            rows, at = machine.in_cluster(issue.block, first)
            starts, lengths, whose = between(source, at, length)
            owners = rows
        machine.stretches(op, access, space, starts, lengths, owners[whose], issue.warp[whose])
        stores = machine.memory.space(space), machine.memory.space("shared")
        for i in range(len(at)) if data else ():
            run = np.arange(length[i])
            if not in_global:
                completes_at(machine, issue, second, i)
            write(stores[0], rows[i], at[i] + run, stores[1], from_blocks[i], source[i] + run, op)
        if not in_global:
            blocks, places = machine.in_cluster(issue.block, second)
            complete(machine, blocks, places, length)

    return copies(form.binder, [to, to + 1, of, count], touches, act, None if in_global else 1)
