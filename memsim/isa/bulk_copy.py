"""Bulk copies by TMA of bytes that lie side by side: `UBLKCP`.

Reductions are in bulk_reductions.py. Source: PTX ISA, `cp.async.bulk`, and the code that ptxas 13.0 generates
for sm_90a:

    UBLKCP.S.G[.MULTICAST] [UR8], [UR4], UR10    UR8 destination, UR9 the mbarrier; UR4 and UR5 source; UR10
                                                 size / 16, and from bit 16 the blocks
    UBLKCP.G.S [UR4], [UR8], UR10                UR4 and UR5 destination, UR8 source
    UBLKCP.S.S [UR12], [UR8], UR10               UR12 destination, UR13 the mbarrier, UR8 source
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.bulk_issue import (
    INSIDE,
    LOADS,
    MULTICASTS,
    STORES,
    UNIT,
    Issue,
    behind,
    between,
    complete,
    copies,
    cut,
    move,
    multicast,
    several,
    slot_of,
    targets,
    wide,
)
from memsim.isa.op import Effect, Form, Op
from memsim.isa.readers import Binder
from memsim.isa.registry import Touches, Unsupported, opcode


def _touches(form: Form) -> Touches:
    loads = MULTICASTS if several(form) else LOADS
    ways: dict[tuple[str, ...], Touches] = {("S", "G"): loads, ("G", "S"): STORES, ("S", "S"): INSIDE}
    return ways.get(form.modifiers[:2], (*LOADS, *STORES))


@opcode(
    "UBLKCP",
    results="",
    effect=Effect.MEMORY,
    steers=True,
    also_read=behind(lambda form: (2, 1, 1) if form.modifiers[:2] == ("G", "S") else (2, 2, 1)),
    touches_of=_touches,
)
def build_bulk_copy(form: Form, binder: Binder) -> Any:
    ways = form.modifiers[:2]
    if ways not in (("S", "G"), ("G", "S"), ("S", "S")) or set(form.modifiers[2:]) - {"MULTICAST"}:
        raise Unsupported(form.name)
    to, of, count = (slot_of(form, place) for place in range(3))
    if ways == ("G", "S"):
        return _bulk_store(form, binder, [to, to + 1, of, count])
    slots = [to, to + 1, of, of + 1, count]
    from_shared = ways == ("S", "S")

    def act(machine: Any, op: Op, issue: Issue, data: bool) -> None:
        place, barrier, low, high, words = issue.words
        length = (words & 0xFFFF) * UNIT
        ranks = words >> 16 if several(form) else None
        if from_shared:
            source_blocks, source = machine.in_cluster(issue.block, low)
            machine.stretches(op, "bulk_load", "shared", source, length, issue.block, issue.warp)
        else:
            starts, lengths, whose = cut(wide(low, high), length, place)
            source_blocks, source = np.zeros_like(issue.block), wide(low, high)
            if ranks is None:
                machine.stretches(
                    op, "bulk_load", "global", starts, lengths, issue.block[whose], issue.warp[whose]
                )
            else:
                multicast(machine, op, issue, (starts, lengths, whose), ranks)
        for chosen, blocks, at in targets(machine, issue, place, ranks):
            if from_shared:
                pieces, lengths, whose = between(source, at, length)
                machine.stretches(
                    op, INSIDE[0][0], "shared", pieces, lengths, blocks[whose], issue.warp[whose]
                )
            else:
                machine.stretches(op, "bulk_store", "shared", at, length[chosen], blocks, issue.warp[chosen])
            if data:
                target, origin = machine.memory.space("shared"), machine.memory.space("global")
                for i, block, first in zip(chosen, blocks, at):
                    run = np.arange(length[i])
                    store = target if from_shared else origin
                    move(target, block, first + run, store, source_blocks[i], source[i] + run)
        for chosen, blocks, at in targets(machine, issue, barrier, ranks):
            complete(machine, blocks, at, length[chosen])

    return copies(form, binder, slots, _touches(form), act, 1)


def _bulk_store(form: Form, binder: Binder, slots: list[int]) -> Any:
    def act(machine: Any, op: Op, issue: Issue, data: bool) -> None:
        low, high, place, words = issue.words
        length, to = (words & 0xFFFF) * UNIT, wide(low, high)
        blocks, at = machine.in_cluster(issue.block, place)
        starts, lengths, whose = cut(to, length, place)
        machine.stretches(op, "bulk_store", "global", starts, lengths, issue.block[whose], issue.warp[whose])
        machine.stretches(op, "bulk_load", "shared", at, length, blocks, issue.warp)
        for i in range(len(to)) if data else ():
            run = np.arange(length[i])
            stores = machine.memory.space("global"), machine.memory.space("shared")
            move(stores[0], 0, to[i] + run, stores[1], blocks[i], at[i] + run)

    return copies(form, binder, slots, STORES, act, None)
