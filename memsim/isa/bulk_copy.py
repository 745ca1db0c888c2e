"""Bulk copies by TMA: `UBLKCP UTMALDG UTMASTG`.

A warp makes one copy, described by consecutive uniform registers. Copies complete when they are issued, which
is one legal order: so instructions that wait for them (`UTMACMDFLUSH`, `DEPBAR`) do nothing. Reductions are
in bulk_reductions.py; im2col is not supported. Source: PTX ISA, `cp.async.bulk` and `cp.async.bulk.tensor`,
and the code that ptxas 13.0 generates for sm_90a:

    UTMALDG.2D[.MULTICAST] [UR8], [UR6][, UR4]   UR8 destination, UR9 the mbarrier, UR10... coordinates; UR6
                                                 and UR7 the map's address; UR4 the blocks, from bit 16
    UTMASTG.2D [UR4], [UR8]                      UR4 source, UR5... coordinates; UR8 and UR9 the map's
    UBLKCP.S.G[.MULTICAST] [UR8], [UR4], UR10    UR8 destination, UR9 the mbarrier; UR4 and UR5 source; UR10
                                                 size / 16, and from bit 16 the blocks
    UBLKCP.G.S [UR4], [UR8], UR10                UR4 and UR5 destination, UR8 source
    UBLKCP.S.S [UR12], [UR8], UR10               UR12 destination, UR13 the mbarrier, UR8 source
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsim.arch.units import LINE
from memsim.errors import MemsimError
from memsim.isa.op import Address, Effect, Form, Op, Register
from memsim.isa.readers import Binder
from memsim.isa.registry import Touches, Unsupported, opcode
from memsim.state.registers import Poison, Poisoned, to_array, unsigned
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor, swizzled

LOADS: Touches = (("bulk_store", "shared"), ("bulk_load", "global"))
STORES: Touches = (("bulk_store", "global"), ("bulk_load", "shared"))
INSIDE: Touches = (("bulk_store", "shared"), ("bulk_load", "shared"))
UNIT = 16
MULTICAST = "a multicast copy counts sectors by an unknown rule"


def dimensions(form: Form, also: frozenset[str] = frozenset()) -> int:
    """Of a tensor, from the modifier `2D`.

    Raises:
        Unsupported: none, or an unsupported number.
    """
    sizes = [re.fullmatch(r"([1-5])D", name) for name in form.modifiers]
    found = [int(match[1]) for match in sizes if match]
    if len(found) != 1 or set(form.modifiers) - {f"{found[0]}D", "MULTICAST"} - also:
        raise Unsupported(form.name)
    return found[0]


def slot_of(form: Form, place: int) -> int:
    """The first of the consecutive uniform registers of an operand.

    Raises:
        Unsupported: the operand is not a uniform register.
    """
    operand = form.operands[place]
    register = operand.uniform if isinstance(operand, Address) else operand
    if isinstance(operand, Address) and (operand.base is not None or operand.offset):
        raise Unsupported(form.name)
    if not isinstance(register, Register) or register.slot is None:
        raise Unsupported(form.name)
    return register.slot


def behind(counts: Callable[[Form], tuple[int, ...]]) -> Callable[[Form], list[int]]:
    """The registers after each named one, which the form does not name."""

    def slots(form: Form) -> list[int]:
        try:
            return [
                slot_of(form, place) + i for place, count in enumerate(counts(form)) for i in range(count)
            ]
        except (Unsupported, IndexError):
            return []

    return slots


@dataclass(frozen=True)
class Issue:
    """Warps that make a copy, as columns [m]: the block's index in the chunk, the warp, the registers."""

    block: np.ndarray
    warp: np.ndarray
    words: list[np.ndarray]


def issued(machine: Any, active: Any, slots: list[int], binder: Binder) -> Issue:
    """One copy for each warp with an executing lane; words are unsigned.

    Raises:
        Poisoned: a register is unknown.
    """
    on = machine.by_warp(machine.full(active))
    block, warp = np.nonzero(on.any(2))
    lane = on[block, warp].argmax(1)
    words = []
    for slot in slots:
        value = to_array(unsigned(binder.word(Register(slot))(machine.slots), 32))
        words.append(np.broadcast_to(value, machine.shape)[block, warp * 32 + lane])
    return Issue(block, warp, words)


def wide(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two words as a 64-bit address."""
    found: np.ndarray = low | high << 32
    return found


def several(form: Form) -> bool:
    """Is it a multicast to several blocks of the cluster?"""
    return "MULTICAST" in form.modifiers


def copies(
    form: Form,
    binder: Binder,
    slots: list[int],
    touches: Touches,
    act: Callable[[Any, Op, Issue, bool], None],
    mbarrier: int | None,
) -> Any:
    """The execution frame of bulk copies. mbarrier: the index of the word with its address."""

    def run(machine: Any, op: Op, active: Any, data: bool) -> None:
        if active is False:
            for kind, space in touches:
                machine.lose(op, kind, space, UNIT, Poison("", op), False)
            return
        try:
            act(machine, op, issued(machine, active, slots, binder), data)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            lost(machine, op, touches, active, poison)
            if mbarrier is not None:
                release(machine, op, active, slots[mbarrier], binder, poison)
        except MemsimError as error:
            raise machine.at(error, op) from None

    return run


def lost(machine: Any, op: Op, touches: Touches, active: Any, poison: Poison) -> None:
    """A copy with unknown operands."""
    for kind, space in touches:
        machine.lose(op, kind, space, UNIT, poison, active)
    machine.memory.spoil(touches[0][1], poison)


def release(machine: Any, op: Op, active: Any, slot: int, binder: Binder, poison: Poison) -> None:
    """The number of bytes to arrive is unknown: the mbarrier expects none."""
    try:
        (address,) = issued(machine, active, [slot], binder).words
        issue = issued(machine, active, [slot], binder)
        blocks, places = machine.in_cluster(issue.block, address)
        machine.mbarriers.waits_for_no_bytes(blocks, places)
    except Poisoned as unknown:
        machine.mbarriers.forget(unknown.poison.through(op))


def complete(machine: Any, blocks: np.ndarray, addresses: np.ndarray, count: np.ndarray) -> None:
    """So many bytes [m] have arrived at mbarriers."""
    machine.mbarriers.arrive(blocks, addresses, np.zeros_like(blocks), -count)


def targets(
    machine: Any, issue: Issue, place: np.ndarray, ranks: np.ndarray | None
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


def cut(
    start: np.ndarray, length: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Copies [m] split at 128-byte lines of shared memory: (start, length, index of the copy) [k].

    place: their addresses in shared memory. Each piece counts its sectors of global memory, as on an H200,
    whatever the addresses on both sides.
    """
    first = LINE - place % LINE
    counts = 1 + np.maximum(0, -(-(length - first) // LINE))
    whose = np.repeat(np.arange(len(start)), counts)
    number = np.arange(len(whose)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = np.where(number == 0, 0, first[whose] + (number - 1) * LINE)
    ends = np.minimum(first[whose] + number * LINE, length[whose])
    return start[whose] + begins, ends - begins, whose


# --- bytes ----------------------------------------------------------------------------------


def move(to: SpaceBytes, row: int, at: np.ndarray, of: SpaceBytes, from_row: int, source: np.ndarray) -> None:
    """Copy bytes from addresses `source` to `at`; unknown bytes stay unknown."""
    to.put(row, at, *of.get(from_row, source))


@opcode(
    "UBLKCP",
    results="",
    effect=Effect.MEMORY,
    steers=True,
    also_read=behind(lambda form: (1, 2, 1) if form.modifiers[:2] == ("G", "S") else (2, 2, 1)),
    touches_of=lambda form: {("S", "G"): LOADS, ("G", "S"): STORES, ("S", "S"): INSIDE}.get(
        form.modifiers[:2], (*LOADS, *STORES)
    ),
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
        starts, lengths, whose = cut(low if from_shared else wide(low, high), length, place)
        if from_shared:
            source_blocks, source = machine.in_cluster(issue.block, low)
            machine.stretches(op, "bulk_load", "shared", source, length, issue.block, issue.warp)
        else:
            source_blocks, source = np.zeros_like(issue.block), wide(low, high)
            if ranks is None:
                machine.stretches(
                    op, "bulk_load", "global", starts, lengths, issue.block[whose], issue.warp[whose]
                )
            else:
                machine.lose(op, "bulk_load", "global", UNIT, Poison(MULTICAST, op), machine.mask)
        for chosen, blocks, at in targets(machine, issue, place, ranks):
            machine.stretches(op, "bulk_store", "shared", at, length[chosen], blocks, issue.warp[chosen])
            if data:
                target, origin = machine.memory.space("shared"), machine.memory.space("global")
                for i, block, first in zip(chosen, blocks, at):
                    run = np.arange(length[i])
                    store = target if from_shared else origin
                    move(target, block, first + run, store, source_blocks[i], source[i] + run)
        for chosen, blocks, at in targets(machine, issue, barrier, ranks):
            complete(machine, blocks, at, length[chosen])

    return copies(form, binder, slots, INSIDE if from_shared else LOADS, act, 1)


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


# --- tensors --------------------------------------------------------------------------------


def coordinates_from(form: Form, before: int, also: frozenset[str] = frozenset()) -> tuple[int, ...]:
    """The registers after the operands: so many and the coordinates, and the map's address."""
    try:
        return (before + dimensions(form, also), 2)
    except Unsupported:
        return (2, 2)


@opcode(
    "UTMALDG",
    results="",
    effect=Effect.MEMORY,
    steers=True,
    touches=LOADS,
    also_read=behind(lambda form: (*coordinates_from(form, 2), *((1,) if several(form) else ()))),
)
def build_tensor_load(form: Form, binder: Binder) -> Any:
    to, map_at = slot_of(form, 0), slot_of(form, 1)
    if "IM2COL" in form.modifiers:
        return copies(form, binder, [to, to + 1], LOADS, _unknown, 1)
    count = dimensions(form)
    slots = [*range(to, to + 2 + count), map_at, map_at + 1]
    if several(form):
        slots.append(slot_of(form, 2))

    def act(machine: Any, op: Op, issue: Issue, data: bool) -> None:
        place, barrier, *rest = issue.words
        tensors = [tensor(machine, op, low, high, count) for low, high in zip(*rest[count : count + 2])]
        corners = np.stack(rest[:count], 1).astype(np.uint32).view(np.int32).astype(np.int64)
        ranks = rest[-1] >> 16 if several(form) else None
        sizes = np.array([one.bytes for one in tensors])
        if ranks is None:
            tell_boxes(machine, op, "bulk_load", issue, tensors, corners)
        else:
            machine.lose(op, "bulk_load", "global", UNIT, Poison(MULTICAST, op), machine.mask)
        for chosen, blocks, at in targets(machine, issue, place, ranks):
            machine.stretches(op, "bulk_store", "shared", at, sizes[chosen], blocks, issue.warp[chosen])
            for i, block, first in zip(chosen, blocks, at) if data else ():
                stores = machine.memory.space("shared"), machine.memory.space("global")
                load_box(*stores, int(block), int(first), tensors[i], tuple(corners[i]))
        for chosen, blocks, at in targets(machine, issue, barrier, ranks):
            complete(machine, blocks, at, sizes[chosen])

    return copies(form, binder, slots, LOADS, act, 1)


@opcode(
    "UTMASTG",
    results="",
    effect=Effect.MEMORY,
    steers=True,
    touches=STORES,
    also_read=behind(lambda form: coordinates_from(form, 1)),
)
def build_tensor_store(form: Form, binder: Binder) -> Any:
    of, map_at, count = slot_of(form, 0), slot_of(form, 1), dimensions(form)
    slots = [*range(of, of + 1 + count), map_at, map_at + 1]

    def act(machine: Any, op: Op, issue: Issue, data: bool) -> None:
        place, *rest = issue.words
        tensors = [tensor(machine, op, low, high, count) for low, high in zip(*rest[count:])]
        corners = np.stack(rest[:count], 1).astype(np.uint32).view(np.int32).astype(np.int64)
        blocks, at = machine.in_cluster(issue.block, place)
        tell_boxes(machine, op, "bulk_store", issue, tensors, corners)
        sizes = np.array([one.bytes for one in tensors])
        machine.stretches(op, "bulk_load", "shared", at, sizes, blocks, issue.warp)
        for i in range(len(tensors)) if data else ():
            stores = machine.memory.space("global"), machine.memory.space("shared")
            store_box(*stores, int(blocks[i]), int(at[i]), tensors[i], tuple(corners[i]))

    return copies(form, binder, slots, STORES, act, None)


def _unknown(machine: Any, op: Op, issue: Issue, data: bool) -> None:
    raise Poisoned(Poison(f"{op.name} is not executed by the emulator", op))


def tensor(machine: Any, op: Op, low: int, high: int, count: int) -> Tensor:
    """The tensor of the map at an address.

    Raises:
        Poisoned: the map is not an argument of the launch.
    """
    found = machine.memory.tensors.get(int(low) | int(high) << 32)
    if found is None:
        raise Poisoned(Poison("a tensor map that is not an argument of the launch", op))
    if isinstance(found, Poison):
        raise Poisoned(found)
    if len(found.box) != count:
        raise MemsimError(f"the tensor map has {len(found.box)} dimensions, but {count} are copied")
    tensor: Tensor = found
    return tensor


def tell_boxes(
    machine: Any, op: Op, kind: str, issue: Issue, tensors: list[Tensor], corners: np.ndarray
) -> None:
    """Report the stretches of global memory that the boxes contain.

    For a load including what is outside of the tensor: an H200 counts a sector for each 32 bytes of it.
    """
    starts, lengths, owners = [], [], []
    loads = kind == "bulk_load"
    for i, (one, corner) in enumerate(zip(tensors, corners)):
        begin, width = int(corner[0]) * one.element, one.box[0] * one.element
        if begin % UNIT or (not loads and (corner < 0).any()):
            raise MemsimError(
                f"a box at {corner.tolist()} (innermost first): an H200 rejects boxes that do not start at a "
                "multiple of 16 bytes of a row, and stores that start before the tensor"
            )
        address, first, last = one.rows(tuple(corner.tolist()))
        begins = address + first
        if (LINE % width and width % LINE) or (width > LINE and (begins % 32).any()):
            poison = Poison(f"rows of {width} bytes at such addresses were not measured", op)
            machine.lose(op, kind, "global", UNIT, poison, machine.mask)
            return
        some = last > first
        whole = np.where(some, np.minimum(-(-last // UNIT) * UNIT, width) if loads else last, first)
        pieces = [(begins, whole - first)]
        if loads:
            aligned = np.full(len(begins), one.base // 32 * 32)
            pieces += [(aligned, np.where(some, first, 0)), (aligned, width - np.where(some, whole, 0))]
        for start, length in pieces:
            kept = length > 0
            starts.append(start[kept])
            lengths.append(length[kept])
            owners.append(np.full(int(kept.sum()), i))
    whose = np.concatenate(owners)
    machine.stretches(
        op,
        kind,
        "global",
        np.concatenate(starts),
        np.concatenate(lengths),
        issue.block[whose],
        issue.warp[whose],
    )


def box_places(one: Tensor, first: int, corner: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(address in shared memory, address in global memory, is it in the tensor) for each byte of
    a box [n].
    """
    address, start, end = one.rows(corner)
    column = np.arange(one.box[0] * one.element)
    inside = (column >= start[:, None]) & (column < end[:, None])
    linear = first + np.arange(len(address))[:, None] * one.pitch + column
    there = swizzled(linear, one.swizzle)
    return there.reshape(-1), (address[:, None] + column).reshape(-1), inside.reshape(-1)


def load_box(
    to: SpaceBytes, of: SpaceBytes, block: int, first: int, one: Tensor, corner: tuple[int, ...]
) -> None:
    """Copy a box of global memory to shared memory at `first`; zeros for what is outside of the tensor."""
    there, here, inside = box_places(one, first, corner)
    move(to, block, there[inside], of, 0, here[inside])
    outside = there[~inside]
    to.put(block, outside, np.zeros(len(outside), np.uint8), None)


def store_box(
    to: SpaceBytes, of: SpaceBytes, block: int, first: int, one: Tensor, corner: tuple[int, ...]
) -> None:
    """Copy a box of shared memory at `first` to global memory; what is outside of the tensor is dropped.

    Units of 16 bytes are written whole even if the tensor ends inside one, as on an H200.
    """
    there, here, inside = box_places(one, first, corner)
    inside = np.repeat(inside.reshape(-1, UNIT).any(1), UNIT)
    move(to, 0, here[inside], of, block, there[inside])
