"""Copies by TMA of boxes of a tensor: `UTMALDG UTMASTG`; im2col is not supported.

Source: PTX ISA, `cp.async.bulk.tensor`, and the code that ptxas 13.0 generates for sm_90a:

    UTMALDG.2D[.MULTICAST] [UR8], [UR6][, UR4]   UR8 destination, UR9 the mbarrier, UR10... coordinates; UR6
                                                 and UR7 the map's address; UR4 the blocks, from bit 16
    UTMASTG.2D [UR4], [UR8]                      UR4 source, UR5... coordinates; UR8 and UR9 the map's
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from memsim.access import Stretches
from memsim.arch.units import LINE, SECTOR
from memsim.argument_types.array_tables import BYTES, USED, decode_tensor_map
from memsim.errors import MemsimError
from memsim.isa.bulk_copy import (
    BOX,
    LOADS,
    MULTICASTS,
    STORES,
    UNIT,
    Issue,
    copies,
    cut_at_lines,
    deliver,
    dimensions,
    move,
    multicast,
    several,
    wide,
)
from memsim.isa.definitions import BoundForm, Touches, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import Run
from memsim.isa.op import Form, Trait, Unsupported
from memsim.isa.program import Op
from memsim.state.poison import Poison, Poisoned
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor, swizzle_address, tensor_of_bits

#: As traits of a definition.
OF_MAPS = {"": Trait.READS_MAP}


def tensor_operands(before: int, also: frozenset[str] = frozenset()) -> Callable[[Form], str]:
    """The signature of a form: `before` registers and coordinates, the map's address; of a load, which has
    two before, the blocks.
    """

    def text(form: Form) -> str:
        try:
            count = before + dimensions(form, also)
        except Unsupported:
            count = 2
        return f"<- T{count} T2 {'T' if before == 2 and several(form) else ''}"

    return text


@executes("UTMALDG", tensor_operands(2), None, steers=True, touches=LOADS, traits=OF_MAPS)
@executes("UTMALDG.MULTICAST", tensor_operands(2), None, steers=True, touches=MULTICASTS, traits=OF_MAPS)
def load_tensor(form: BoundForm, to: int, map_at: int, blocks: int | None = None) -> Run:
    if "IM2COL" in form.given:
        return copies(form.binder, [to, to + 1], LOADS, _unknown, 1)
    count = dimensions(form)
    slots = [*range(to, to + 2 + count), map_at, map_at + 1]
    if blocks is not None:
        slots.append(blocks)

    def act(machine: MemoryMachine, op: Op, issue: Issue, data: bool) -> None:
        place, _, *rest = issue.words
        tensors, corners = boxes(machine, op, issue, rest, count)
        ranks = rest[-1] >> 16 if several(form) else None
        sizes = np.array([one.bytes for one in tensors])
        report_boxes(machine, op, "bulk_load", issue, tensors, corners, place, ranks)
        machine.order.bulk_global(op.index, "bulk_load", _inside(issue, tensors, corners))

        def write(i: int, block: int, first: int) -> None:
            space = machine.memory.space
            load_box(space("shared"), space("global"), block, first, tensors[i], tuple(corners[i]))

        deliver(machine, op, issue, sizes, ranks, write if data else None, BOX)

    return copies(form.binder, slots, MULTICASTS if several(form) else LOADS, act, 1)


@executes("UTMASTG", tensor_operands(1), None, steers=True, touches=STORES, traits=OF_MAPS)
def store_tensor(form: BoundForm, of: int, map_at: int) -> Run:
    return to_tensor(form, (of, map_at), STORES, store_box)


#: Writes one box: (global memory, shared memory, block, address there, tensor, corner, instruction).
WriteBox = Callable[[SpaceBytes, SpaceBytes, int, int, Tensor, tuple[int, ...], Op], None]


def to_tensor(
    form: BoundForm,
    operands: tuple[int, int],
    touches: Touches,
    write: WriteBox,
    also: frozenset[str] = frozenset(),
) -> Run:
    """A copy or reduction of boxes of shared memory. also: modifiers that are allowed."""
    (of, map_at), count = operands, dimensions(form, also)
    slots = [*range(of, of + 1 + count), map_at, map_at + 1]

    def act(machine: MemoryMachine, op: Op, issue: Issue, data: bool) -> None:
        place, *rest = issue.words
        tensors, corners = boxes(machine, op, issue, rest, count)
        blocks, at = machine.in_cluster(issue.block, place)
        read = Stretches(blocks, at, np.array([one.bytes for one in tensors]), issue.warp)
        machine.check_copies(op, "shared", BOX, read)
        report_boxes(machine, op, touches[0][0], issue, tensors, corners, at)
        machine.order.bulk_global(op.index, touches[0][0], _inside(issue, tensors, corners))
        machine.stretches(op, "bulk_load", "shared", _of_tensors(read, tensors, corners))
        stores = machine.memory.space("global"), machine.memory.space("shared")
        for i in range(len(tensors)) if data else ():
            write(*stores, int(blocks[i]), int(at[i]), tensors[i], tuple(corners[i]), op)

    return copies(form.binder, slots, touches, act, None)


def boxes(
    machine: MemoryMachine, op: Op, issue: Issue, words: list[np.ndarray], count: int
) -> tuple[list[Tensor], np.ndarray]:
    """Tensors, and the corners of boxes [m, count], from the words of coordinates and of a map's address."""
    places = wide(*words[count : count + 2])
    tensors = [tensor(machine, op, place, count) for place in places.tolist()]
    made = machine.memory.layouts["global"].owners(places, BYTES) >= 0
    maps = Stretches(issue.block, places, np.full_like(places, BYTES), issue.warp)
    machine.order.maps(op.index, maps[made])
    return tensors, np.stack(words[:count], 1).astype(np.uint32).view(np.int32).astype(np.int64)


def _unknown(machine: MemoryMachine, op: Op, issue: Issue, data: bool) -> None:
    raise Poisoned(Poison(f"{op.name} is not executed by the emulator", op))


def tensor(machine: MemoryMachine, op: Op, place: int, count: int) -> Tensor:
    """The tensor of `count` dimensions whose map is at an address.

    Raises:
        Poisoned: the map is unknown.
    """
    memory = machine.memory
    found = memory.tensors.get(place)
    made = memory.layouts["global"].find(place, place + BYTES) is not None
    if found is None or (made and isinstance(found, Tensor) and not memory.is_as_given):
        found = _tensor_in_memory(machine, op, place) if made else Poison("a tensor map in no array", op)
    if isinstance(found, Poison):
        raise Poisoned(found)
    if len(found.box) != count:
        raise MemsimError(f"the tensor map has {len(found.box)} dimensions, but {count} are copied")
    return found


def _tensor_in_memory(machine: MemoryMachine, op: Op, place: int) -> Tensor | Poison:
    """What the map says that lies in global memory, or why that is not known."""
    raw, lost = machine.memory.space("global").get(0, place + np.arange(USED))
    if lost is not None:
        return lost[1].through(op)
    encoded = decode_tensor_map(raw.tobytes())
    if encoded is None:
        return Poison("a tensor map of a kind that is not executed by the emulator", op)
    if machine.memory.layouts["global"].find(encoded.address, encoded.address + 1) is None:
        return Poison(f"a tensor map of an address that is in no array, {encoded.address:#x}", op)
    try:
        return tensor_of_bits(encoded)
    except MemsimError as error:
        return Poison(error.message, op)


def report_boxes(
    machine: MemoryMachine,
    op: Op,
    access: str,
    issue: Issue,
    tensors: list[Tensor],
    corners: np.ndarray,
    places: np.ndarray,
    ranks: np.ndarray | None = None,
) -> None:
    """Report the stretches of global memory that the boxes contain. places: of the boxes in shared memory.
    ranks: of a multicast.

    Rows are split at each 128-byte line of shared memory. For a load including what is outside of the tensor:
    an H200 counts each 32 bytes of shared memory that it fills, and in a piece of a multicast at least three.
    """
    starts, lengths, owners = [], [], []
    loads = access == "bulk_load"
    least = 0 if ranks is None else 3 * SECTOR
    for i, (one, corner) in enumerate(zip(tensors, corners)):
        begin, width = int(corner[0]) * one.element, one.box[0] * one.element
        if begin % UNIT or (not loads and (corner < 0).any()):
            raise MemsimError(
                f"a box at {corner.tolist()} (innermost first): an H200 rejects boxes that do not start at a "
                "multiple of 16 bytes of a row, and stores that start before the tensor"
            )
        address, first, last = one.rows(tuple(corner.tolist()))
        begins = address + first
        if not _is_measured(one, ranks):
            poison = Poison("a multicast of a tensor of less than 256 bytes was not measured", op)
            machine.lose(op, "bulk_multicast", "global", UNIT, poison, machine.mask)
            return
        some = last > first
        whole = np.where(some, np.minimum(-(-last // UNIT) * UNIT, width) if loads else last, first)
        rows = int(places[i]) + np.arange(len(begins)) * one.pitch
        inside = cut_at_lines(begins, whole - first, rows + first)
        pieces = [inside[:2]]
        if loads:
            origin = -(-one.base // LINE) * LINE
            before, after = np.where(some, first, 0), np.where(some, whole, 0)
            for left, right in ((np.zeros_like(before), before), (after, np.full_like(after, width))):
                there, length, _ = cut_at_lines(rows + left, right - left, rows + left)
                filled = np.where(length > 0, np.maximum(length, least - there % SECTOR), 0)
                pieces.append((origin + there % SECTOR, filled))
        for start, length in pieces:
            starts.append(start[length > 0])
            lengths.append(length[length > 0])
            owners.append(np.full(len(starts[-1]), i))
    start, length, whose = map(np.concatenate, (starts, lengths, owners))
    if ranks is not None:
        multicast(machine, op, issue, (start, length, whose), ranks)
    else:
        pieces_of_rows = Stretches(issue.block[whose], start, length, issue.warp[whose])
        machine.stretches(op, access, "global", pieces_of_rows)


def _inside(issue: Issue, tensors: list[Tensor], corners: np.ndarray) -> Stretches:
    """What of each row of boxes is in their tensors."""
    pieces = []
    for one, corner, block, warp in zip(tensors, corners, issue.block, issue.warp):
        address, first, last = one.rows(tuple(corner.tolist()))
        by = (np.full_like(first, who) for who in (block, warp))
        pieces.append(np.stack([address + first, last - first, *by])[:, last > first])
    start, length, blocks, warps = np.concatenate(pieces, 1)
    return Stretches(blocks, start, length, warps)


def _of_tensors(boxes: Stretches, tensors: list[Tensor], corners: np.ndarray) -> Stretches:
    """What a store reads of boxes in shared memory: units of 16 bytes that are not outside of the tensors."""
    starts, lengths = [], []
    for first, length, one, corner in zip(boxes.start, boxes.length, tensors, corners):
        _, begin, end = one.rows(tuple(corner.tolist()))
        unit = np.arange(0, one.box[0] * one.element, UNIT)
        inside = (unit + UNIT > begin[:, None]) & (unit < end[:, None])
        linear = first + np.arange(len(begin))[:, None] * one.pitch + unit
        whole = bool(inside.all())
        starts.append(np.array([first]) if whole else swizzle_address(linear, one.swizzle)[inside])
        lengths.append(np.full_like(starts[-1], length if whole else UNIT))
    box = np.repeat(np.arange(len(starts)), [len(start) for start in starts])
    return replace(boxes[box], start=np.concatenate(starts), length=np.concatenate(lengths))


def _is_measured(one: Tensor, ranks: np.ndarray | None) -> bool:
    """Is it known what a box of this tensor counts? ranks: of a multicast; of tiny tensors it is not."""
    size = sum((extent - 1) * step for extent, step in zip(one.extents, one.steps))
    return ranks is None or size >= 2 * LINE


def box_places(one: Tensor, first: int, corner: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(address in shared memory, address in global memory, is it in the tensor) for each byte of
    a box [n].
    """
    address, start, end = one.rows(corner)
    column = np.arange(one.box[0] * one.element)
    inside = (column >= start[:, None]) & (column < end[:, None])
    linear = first + np.arange(len(address))[:, None] * one.pitch + column
    there = swizzle_address(linear, one.swizzle)
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
    to: SpaceBytes,
    of: SpaceBytes,
    block: int,
    first: int,
    one: Tensor,
    corner: tuple[int, ...],
    op: Op | None = None,
) -> None:
    """Copy a box of shared memory at `first` to global memory; what is outside of the tensor is dropped.

    Units of 16 bytes are written whole even if the tensor ends inside one, as on an H200.
    """
    there, here, inside = box_places(one, first, corner)
    inside = np.repeat(inside.reshape(-1, UNIT).any(1), UNIT)
    move(to, 0, here[inside], of, block, there[inside])
