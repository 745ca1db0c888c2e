"""Bulk copies by TMA of bytes that lie side by side, `UBLKCP`; and how the copy engine is given any work: a
copy of a warp, described by consecutive uniform registers.

Copies complete when they are issued, which is one legal order: so instructions that wait for them
(`UTMACMDFLUSH`, `DEPBAR`) do nothing. Reductions are in bulk_reductions.py. Source: PTX ISA, `cp.async.bulk`,
and the code that ptxas 13.0 generates for sm_90a:

    UBLKCP.S.G[.MULTICAST] [UR8], [UR4], UR10    UR8 destination, UR9 the mbarrier; UR4 and UR5 source; UR10
                                                 size / 16, and from bit 16 the blocks
    UBLKCP.G.S [UR4], [UR8], UR10                UR4 and UR5 destination, UR8 source
    UBLKCP.S.S [UR12], [UR8], UR10               UR12 destination, UR13 the mbarrier, UR8 source
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from memsim.access import Stretches, owners_and_numbers
from memsim.arch.units import LINE
from memsim.errors import MemsimError
from memsim.isa.definitions import BoundForm, Touches, define, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import Run
from memsim.isa.op import Form, Register, require
from memsim.isa.program import Op
from memsim.isa.readers import Binder
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.registers import as_unsigned, to_array
from memsim.state.space_bytes import SpaceBytes

LOADS: Touches = (("bulk_store", "shared"), ("bulk_load", "global"))
MULTICASTS: Touches = (("bulk_store", "shared"), ("bulk_multicast", "global"))
STORES: Touches = (("bulk_store", "global"), ("bulk_load", "shared"))
INSIDE: Touches = (("cluster_bulk_store", "shared"), ("bulk_load", "shared"))
#: What sizes and addresses are multiples of, and the address of a box in shared memory (PTX ISA,
#: `cp.async.bulk` and `cp.async.bulk.tensor`).
UNIT, BOX = 16, 128
#: Writes what one copy brings: (number of the copy, block, address there).
Deliver = Callable[[int, int, int], None]


def dimensions(form: Form, also: frozenset[str] = frozenset()) -> int:
    """Of a tensor, from the modifier `2D`.

    Raises:
        Unsupported: none, or an unsupported number.
    """
    sizes = [re.fullmatch(r"([1-5])D", name) for name in form.modifiers]
    found = [int(match[1]) for match in sizes if match]
    require(len(found) == 1 and set(form.modifiers) <= {f"{found[0]}D", "MULTICAST", *also})
    return found[0]


@dataclass(frozen=True)
class Issue:
    """Warps that make a copy, as columns [m]: the block's index in the chunk, the warp, the registers. lanes:
    how many execute it, in all warps.
    """

    block: np.ndarray
    warp: np.ndarray
    words: list[np.ndarray]
    lanes: int = 0


def issue_of_warps(machine: MemoryMachine, active: Mask, slots: list[int], binder: Binder) -> Issue:
    """One copy for each warp with an executing lane; words are unsigned.

    Raises:
        Poisoned: a register is unknown.
    """
    on = machine.by_warp(machine.full(active))
    block, warp = np.nonzero(on.any(2))
    lane = on[block, warp].argmax(1)
    words = []
    for slot in slots:
        value = to_array(as_unsigned(binder.word(Register(slot))(machine.slots), 32))
        words.append(np.broadcast_to(value, machine.shape)[block, warp * 32 + lane])
    return Issue(block, warp, words, int(np.count_nonzero(on)))


def wide(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two words as a 64-bit address."""
    found: np.ndarray = low | high << 32
    return found


def several(form: Form) -> bool:
    """Is it a multicast to several blocks of the cluster?"""
    return "MULTICAST" in form.modifiers


def copies(
    binder: Binder,
    slots: list[int],
    touches: Touches,
    act: Callable[[MemoryMachine, Op, Issue, bool], None],
    mbarrier: int | None,
) -> Run:
    """The execution frame of bulk copies. mbarrier: the index of the word with its address."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if active is False:
            for access, space in touches:
                machine.lose(op, access, space, UNIT, Poison("", op), False)
            return
        try:
            issue = issue_of_warps(machine, active, slots, binder)
            act(machine, op, issue, data)
            machine.issued(op, issue.lanes)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            lose_copy(machine, op, touches, active, poison)
            if mbarrier is not None:
                release(machine, op, active, slots[mbarrier], binder)
        except MemsimError as error:
            raise machine.at(error, op) from None

    return run


def lose_copy(machine: MemoryMachine, op: Op, touches: Touches, active: Mask, poison: Poison) -> None:
    """A copy with unknown operands."""
    for access, space in touches:
        machine.lose(op, access, space, UNIT, poison, active)
    machine.memory.spoil(touches[0][1], poison)


def release(machine: MemoryMachine, op: Op, active: Mask, slot: int, binder: Binder) -> None:
    """The number of bytes to arrive is unknown: the mbarrier expects none."""
    try:
        issue = issue_of_warps(machine, active, [slot], binder)
        blocks, places = machine.in_cluster(issue.block, issue.words[0])
        machine.mbarriers.waits_for_no_bytes(blocks, places)
    except Poisoned as unknown:
        machine.mbarriers.forget(unknown.poison.through(op))


def complete(machine: MemoryMachine, blocks: np.ndarray, addresses: np.ndarray, count: np.ndarray) -> None:
    """So many bytes [m] have arrived at mbarriers."""
    machine.mbarriers.arrive(blocks, addresses, np.zeros_like(blocks), -count)


def deliver(
    machine: MemoryMachine,
    op: Op,
    issue: Issue,
    sizes: np.ndarray,
    ranks: np.ndarray | None,
    write: Deliver | None,
    unit: int,
) -> None:
    """What copies of so many bytes [m] bring to shared memory, at the address in their first word, a multiple
    of a unit, and to the mbarriers in their second one, in each destination block.
    """
    place, barrier = issue.words[:2]
    columns = machine.mbarriers.columns(barrier & 0xFFFFFF)
    for chosen, blocks, at in targets(machine, issue, place, ranks):
        brought = Stretches(blocks, at, sizes[chosen], issue.warp[chosen])
        machine.check_copies(op, "shared", unit, brought)
        tell_store(machine, op, issue.block[chosen], brought, columns[chosen])
        machine.stretches(op, "bulk_store", "shared", brought)
        if write is not None:
            for i, block, first in zip(chosen, blocks, at):
                completes_at(machine, issue, barrier, i)
                write(i, int(block), int(first))
    for chosen, blocks, at in targets(machine, issue, barrier, ranks):
        complete(machine, blocks, at, sizes[chosen])


def tell_store(
    machine: MemoryMachine, op: Op, own: np.ndarray, written: Stretches, columns: np.ndarray
) -> None:
    """Tell the order of accesses of copies by warps of blocks `own` [n] that complete at mbarriers."""
    by = np.where(written.rows == own, written.warps, -1)
    machine.order.bulk_store(op.index, replace(written, warps=by), columns)
    machine.visit(op, own, written.warps, written.rows, True)


def completes_at(machine: MemoryMachine, issue: Issue, barrier: np.ndarray, copy: int) -> None:
    """A copy completes at an mbarrier, whose address is the same in each block that receives it."""
    (column,) = machine.mbarriers.columns(barrier[[copy]] & 0xFFFFFF).tolist()
    machine.order.copy_to_phase(column, int(issue.block[copy]), int(issue.warp[copy]))


def targets(
    machine: MemoryMachine, issue: Issue, place: np.ndarray, ranks: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(indices of the copies, their blocks, their addresses there) of an address in each
    destination block.
    """
    every = np.arange(len(place))
    if ranks is None:
        yield (every, *machine.in_cluster(issue.block, place))
        return
    for rank in range(16):
        chosen = every[ranks >> rank & 1 == 1]
        if len(chosen):
            address = place[chosen] & 0xFFFFFF | rank << 24
            yield (chosen, *machine.in_cluster(issue.block[chosen], address))


def cut_at_lines(
    start: np.ndarray, length: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies [m] split at 128-byte lines of shared memory: (start, length, index of the copy) [k].

    place: their addresses in shared memory. Each piece counts its sectors of global memory, as on an H200,
    whatever the addresses on both sides.
    """
    first = LINE - place % LINE
    counts = 1 + np.maximum(0, -(-(length - first) // LINE))
    whose, number = owners_and_numbers(counts)
    begins = np.where(number == 0, 0, first[whose] + (number - 1) * LINE)
    ends = np.minimum(first[whose] + number * LINE, length[whose])
    return start[whose] + begins, ends - begins, whose


def multicast(
    machine: MemoryMachine,
    op: Op,
    issue: Issue,
    pieces: tuple[np.ndarray, np.ndarray, np.ndarray],
    ranks: np.ndarray,
) -> None:
    """Report what each destination block receives of `pieces` (start, length, index of the copy) [k], which
    end at lines of shared memory.

    An H200 cuts them at lines of global memory as well.
    """
    start, length, whose = pieces
    start, length, piece = cut_at_lines(start, length, start)
    whose = whose[piece]
    received = np.repeat(np.arange(len(start)), np.bitwise_count(ranks)[whose])
    sent = Stretches(issue.block[whose], start, length, issue.warp[whose])
    machine.stretches(op, "bulk_multicast", "global", sent[received])


def copies_cut_at_lines(
    source: np.ndarray, to: np.ndarray, length: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies [m] inside shared memory, split at 128-byte lines of both sides: (start at the destination,
    length, index of the copy) [k]. Each piece counts its sectors there, as on an H200.
    """
    starts, lengths, whose = cut_at_lines(source, length, to)
    there, lengths, piece = cut_at_lines(to[whose] + starts - source[whose], lengths, starts)
    return there, lengths, whose[piece]


def move(
    to: SpaceBytes,
    row: int,
    at: np.ndarray,
    of: SpaceBytes,
    from_row: int,
    source: np.ndarray,
    op: Op | None = None,
) -> None:
    """Copy bytes from addresses `source` to `at`; unknown bytes stay unknown."""
    to.put(row, at, *of.get(from_row, source))


# --- the instructions ------------------------------------------------------------------------

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
        read = Stretches(issue.block, source, length, issue.warp)
        machine.check_copies(op, "global", UNIT, read)
        machine.order.bulk_global(op.index, "bulk_load", read)
        starts, lengths, whose = cut_at_lines(source, length, place)
        if ranks is None:
            pieces = Stretches(issue.block[whose], starts, lengths, issue.warp[whose])
            machine.stretches(op, "bulk_load", "global", pieces)
        else:
            multicast(machine, op, issue, (starts, lengths, whose), ranks)

        def write(i: int, block: int, first: int) -> None:
            run, space = np.arange(length[i]), machine.memory.space
            move(space("shared"), block, first + run, space("global"), 0, source[i] + run)

        deliver(machine, op, issue, length, ranks, write if data else None, UNIT)

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
        read = Stretches(from_blocks, source, length, issue.warp)
        machine.check_copies(op, "shared", UNIT, read)
        machine.stretches(op, "bulk_load", "shared", read)
        if in_global:
            at, rows, owners = wide(first, second), np.zeros_like(issue.block), issue.block
            written = Stretches(owners, at, length, issue.warp)
            machine.order.bulk_global(op.index, access, written)
            starts, lengths, whose = cut_at_lines(at, length, place)
        else:
            rows, at = machine.in_cluster(issue.block, first)
            starts, lengths, whose = copies_cut_at_lines(source, at, length)
            owners, written = rows, Stretches(rows, at, length, issue.warp)
        machine.check_copies(op, space, UNIT, written)
        machine.stretches(op, access, space, Stretches(owners[whose], starts, lengths, issue.warp[whose]))
        if not in_global:
            columns = machine.mbarriers.columns(second & 0xFFFFFF)
            tell_store(machine, op, issue.block, written, columns)
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
