"""What copies by TMA, asynchronous stores and warpgroup products tell of what they access, against single
warps and lanes: which bytes, of which block, by which warp, and which mbarrier gets to know.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.state.address_spaces import GLOBAL_BASE, SHARED_WINDOW
from memsim.state.mbarriers import upper_word
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, to_array
from memsim.state.tensors import Tensor, descriptor_of
from tests.isa.cluster import BLOCKS, FIRST, SIZE, THREADS, Cluster
from tests.isa.test_boxes import pieces_of

WHY = Poison("never written", None)
#: Executing lanes of each warp.
LANES = {(0, 0): [0], (0, 1): [5, 9], (2, 1): [31], (3, 0): [1, 2, 3]}


class Copy(NamedTuple):
    """What one warp copies; addresses in shared memory are (block, address)."""

    block: int
    warp: int
    near: tuple[int, int]
    far: tuple[int, int]
    barrier: tuple[int, int]
    outside: int
    bytes: int
    blocks: int


def copies() -> list[Copy]:
    """To and from places that no other copy has."""
    chance, found = random.Random(8), []
    for place, (block, warp) in enumerate(LANES):
        near, outside, far = (512 * place + 16 * chance.randrange(16) for _ in range(3))
        to = chance.randrange(BLOCKS), FIRST + SIZE // 2 + far
        barrier = chance.randrange(BLOCKS), 16 + 8 * place
        size, blocks = 16 * chance.randrange(1, 15), chance.choice([0b1, 0b101, 0b1110, 0b1111])
        found.append(
            Copy(block, warp, (block, FIRST + near), to, barrier, GLOBAL_BASE + outside, size, blocks)
        )
    return found


def of_warps(values: list[int]) -> Any:
    """A register with a value in the executing lanes of each warp, and another in all other lanes."""
    found = np.full((BLOCKS, THREADS), 0x5A5A)
    for (block, warp), value in zip(LANES, values):
        found[block, [32 * warp + lane for lane in LANES[block, warp]]] = (value + 2**31) % 2**32 - 2**31
    return from_array(found)


def executing() -> Any:
    found = np.zeros((BLOCKS, THREADS), bool)
    for (block, warp), lanes in LANES.items():
        found[block, [32 * warp + lane for lane in lanes]] = True
    return from_bools(found)


def at(place: tuple[int, int]) -> int:
    return place[0] << 24 | place[1]


def words(made: list[Copy], *registers: str) -> dict[str, Any]:
    """Registers from UR4 on; `outside` is two of them."""
    columns: list[list[int]] = []
    for name in registers:
        if name == "outside":
            columns += [[one.outside & 0xFFFFFFFF for one in made], [one.outside >> 32 for one in made]]
        elif name == "count":
            columns.append([one.bytes // 16 | one.blocks << 16 for one in made])
        else:
            columns.append([at(getattr(one, name)) for one in made])
    return {f"UR{4 + i}": of_warps(column) for i, column in enumerate(columns)}


def together(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Stretches, the last that each call was told, behind what else it was."""
    return sorted((*given[1:-1], *row) for given in told for row in given[-1])


def columns_of(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(row for given in told for row in zip(*given))


FORMS = {
    "UBLKCP.S.G [UR4], [UR6], UR8": ("far", "barrier", "outside", "count"),
    "UBLKCP.S.G.MULTICAST [UR4], [UR6], UR8": ("far", "barrier", "outside", "count"),
    "UBLKCP.G.S [UR4], [UR6], UR7": ("outside", "near", "count"),
    "UBLKCP.S.S [UR4], [UR6], UR7": ("far", "barrier", "near", "count"),
    "UBLKRED.G.S.ADD [UR4], [UR6], UR7": ("outside", "near", "count"),
    "UBLKRED.S.S.ADD [UR4], [UR6], UR7": ("far", "barrier", "near", "count"),
}


def access_of(text: str) -> str:
    """What is done to the destination."""
    what = "bulk_reduction" if text.startswith("UBLKRED") else "bulk_store"
    return f"cluster_{what}" if "S.S" in text else what


def received(text: str) -> list[tuple[Copy, int, tuple[int, int]]]:
    """(copy, block that receives it, its place and its mbarrier there)."""
    found = []
    for one in copies():
        ranks = [rank for rank in range(BLOCKS) if one.blocks >> rank & 1]
        if "MULTICAST" in text:
            found += [(one, rank, (one.far[1], rank << 24 | one.barrier[1])) for rank in ranks]
        else:
            found.append((one, one.far[0], (one.far[1], at(one.barrier))))
    return found


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("text", FORMS, ids=lambda text: text.split()[0])
def test_a_copy_tells_whose_bytes_go_where(text: str, data: bool) -> None:
    made = copies()
    machine = Cluster()
    before = {name: store.data.copy() for name, store in machine.stores.items()}
    machine.run(text, executing(), data, **words(made, *FORMS[text]))
    told = machine.told
    to_global, from_global = "G.S" in text, "S.G" in text
    near = [("shared", 16, one.block, one.near[1], one.bytes, one.warp) for one in made]
    outside = [("global", 16, one.block, one.outside, one.bytes, one.warp) for one in made]
    there = [("shared", 16, block, place, one.bytes, one.warp) for one, block, (place, _) in received(text)]
    assert together(told["check_copies"]) == sorted(
        (outside if from_global else near) + (outside if to_global else there)
    )
    access = "bulk_multicast" if "MULTICAST" in text else "bulk_load"
    stretches: list[tuple[Any, ...]] = []
    for one in made:
        if from_global:
            pieces = pieces_of(one.outside, one.bytes, one.far[1])
            if "MULTICAST" in text:
                pieces = [part for start, count, _ in pieces for part in pieces_of(start, count, start)]
                pieces *= one.blocks.bit_count()
            stretches += [(access, "global", one.block, *piece[:2], one.warp) for piece in pieces]
        else:
            stretches.append(("bulk_load", "shared", one.block, one.near[1], one.bytes, one.warp))
        if to_global:
            pieces = pieces_of(one.outside, one.bytes, one.near[1])
            stretches += [(access_of(text), "global", one.block, *piece[:2], one.warp) for piece in pieces]
        elif not from_global:
            for start, count, _ in pieces_of(one.near[1], one.bytes, one.far[1]):
                place = one.far[1] + start - one.near[1]
                pieces = pieces_of(place, count, start)
                stretches += [
                    (access_of(text), "shared", one.far[0], *piece[:2], one.warp) for piece in pieces
                ]
    if from_global:
        stretches += [("bulk_store", *row[:1], *row[2:]) for row in there]
    assert together(told["stretches"]) == sorted(stretches)
    assert told["issued"][0][1] == sum(map(len, LANES.values()))
    if to_global or from_global:
        access = access_of(text) if to_global else "bulk_load"
        rows = sorted((access, one.block, one.outside, one.bytes, one.warp) for one in made)
        assert together(told["bulk_global"]) == rows
    if to_global:
        assert not told.keys() & {"bulk_store", "visit", "arrive", "copy_to_phase"}
    else:
        stored = [(row, column) for _, rows, found in told["bulk_store"] for row, column in zip(rows, found)]
        assert sorted(stored) == sorted(
            ((block, place, one.bytes, one.warp if block == one.block else -1), one.barrier[1] // 8)
            for one, block, (place, _) in received(text)
        )
        visits = sorted((one.block, one.warp, block) for one, block, _ in received(text))
        assert columns_of([given[1:4] for given in told["visit"]]) == visits
        assert all(given[4] is True for given in told["visit"])
        arrived = sorted((told >> 24, told & 0xFFFFFF, 0, -one.bytes) for one, _, (_, told) in received(text))
        assert columns_of(told["arrive"]) == arrived
        phases = sorted((one.barrier[1] // 8, one.block, one.warp) for one, _, _ in received(text))
        assert sorted(told.get("copy_to_phase", [])) == (phases if data else [])
    wanted = {name: content.copy() for name, content in before.items()}
    for one, block, (place, _) in received(text) if data else ():
        inside, beyond = one.near[1] - FIRST, one.outside - GLOBAL_BASE
        brought = (
            before["global"][0, beyond : beyond + one.bytes]
            if from_global
            else before["shared"][one.block, inside : inside + one.bytes]
        )
        row, start = (0, beyond) if to_global else (block, place - FIRST)
        if text.startswith("UBLKRED"):
            there = before["global" if to_global else "shared"][row, start : start + one.bytes]
            brought = (there.view(np.uint32) + brought.view(np.uint32)).view(np.uint8)
        wanted["global" if to_global else "shared"][row, start : start + one.bytes] = brought
    assert all((machine.stores[name].data == content).all() for name, content in wanted.items())


@pytest.mark.parametrize("text", FORMS, ids=lambda text: text.split()[0])
def test_a_copy_with_an_unknown_size(text: str) -> None:
    """Its mbarrier, which is known, waits for no bytes of it; what it would have written is unknown."""
    given = words(copies(), *FORMS[text])
    size = text.rpartition(" ")[2]
    machine = Cluster().run(text, executing(), **{**given, size: WHY})
    lost = [(access, space, width) for _, access, space, width, *_ in machine.told["lose"]]
    read = ("bulk_multicast" if "MULTICAST" in text else "bulk_load", "global" if "S.G" in text else "shared")
    written = access_of(text), "global" if "G.S" in text else "shared"
    assert lost == [(*written, 16), (*read, 16)]
    assert machine.one("spoil")[0] == written[1]
    assert "never written" in machine.one("spoil")[1].story()
    assert not machine.told.keys() & {"issued", "stretches", "arrive", "forget"}
    if "G.S" in text:
        assert "waits for no bytes" not in machine.told
        return
    waits = columns_of([machine.one("waits for no bytes")])
    assert waits == sorted(one.barrier for one in copies())
    machine = Cluster().run(text, executing(), **{**given, size: WHY, "UR5": WHY})
    assert "never written" in machine.one("forget")[0].story()


@pytest.mark.parametrize("text", [*FORMS, "STAS [R4.64], R8", "REDAS.ADD [R4.64], R8"])
def test_what_no_lane_executes_accesses_nothing(text: str) -> None:
    machine = Cluster().run(text, False)
    assert machine.told.keys() == {"lose"}
    assert all(given[-1] is False for given in machine.told["lose"])


# --- asynchronous stores ---------------------------------------------------------------------


class Lane(NamedTuple):
    """Where a lane stores, and its mbarrier, each (block, address)."""

    block: int
    thread: int
    place: tuple[int, int]
    barrier: tuple[int, int]


def lanes(size: int, own: bool) -> list[Lane]:
    """Of all warps, each with a place of its own; own: in the own block alone."""
    chance, found = random.Random(size), []
    places = [chance.sample(range(FIRST, FIRST + SIZE, size), SIZE // size) for _ in range(BLOCKS)]
    for block, thread in np.argwhere(np.array([[c % 3 > 0 for c in range(THREADS)]] * BLOCKS)).tolist():
        to = block if own else chance.randrange(BLOCKS)
        found.append(Lane(block, thread, (to, places[to].pop()), (to, 8 * chance.randrange(8))))
    return found


def of_lanes(which: list[Lane], values: list[int]) -> Any:
    found = np.full((BLOCKS, THREADS), 0x5A5A)
    for lane, value in zip(which, values):
        found[lane.block, lane.thread] = (value + 2**31) % 2**32 - 2**31
    return from_array(found)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize(
    ("text", "size", "count"),
    [
        ("STAS", 4, 1),
        ("STAS.64", 8, 2),
        ("STAS.128", 16, 4),
        ("REDAS.ADD", 4, 1),
        ("REDAS.ADD.64", 8, 2),
        ("REDAS.MAX.S32", 4, 1),
        ("REDAS.MAX.S32.64", 8, 2),
    ],
)
def test_an_asynchronous_store_tells_whose_bytes_it_writes(
    text: str, size: int, count: int, data: bool, own: bool
) -> None:
    which, chance, machine = lanes(size, own), random.Random(3), Cluster()
    values = [[chance.getrandbits(32) for _ in which] for _ in range(count)]
    mask = np.zeros((BLOCKS, THREADS), bool)
    mask[[lane.block for lane in which], [lane.thread for lane in which]] = True
    before = machine.stores["shared"].data.copy()
    registers = {
        "R4": of_lanes(which, [at(lane.place) for lane in which]),
        "R5": of_lanes(which, [at(lane.barrier) for lane in which]),
        **{f"R{8 + i}": of_lanes(which, column) for i, column in enumerate(values)},
    }
    machine.run(f"{text} [R4.64], R8", from_bools(mask), data, **registers)
    told = machine.told
    reduces = text.startswith("REDAS")
    ((_, access, space, width, address, active),) = told["touch"]
    assert (access, space) == (
        "async_reduction" if reduces else "async_store",
        "shared" if own else "elsewhere",
    )
    assert width == size
    found = np.broadcast_to(to_array(address), mask.shape)[mask].tolist()
    assert found == [lane.place[1] if own else SHARED_WINDOW + at(lane.place) for lane in which]
    assert (np.broadcast_to(to_bools(active), mask.shape) == mask).all()
    index, written, columns, updates = machine.one("async_store")
    assert index == 7 and updates is reduces
    assert list(zip(written, columns)) == [
        (
            (*lane.place, size, lane.thread // 32 if lane.place[0] == lane.block else -1),
            lane.barrier[1] // 8,
        )
        for lane in which
    ]
    arrived = sorted((*lane.barrier, 0, -size) for lane in which)
    assert columns_of(told["arrive"]) == arrived
    pieces = 1 if own else 2
    later = told.get("store_later", [])
    assert len(later) == (pieces * count if data else 0)
    for given in later:
        found = np.array(given[-1])[mask].tolist()
        assert found == [lane.barrier[1] // 8 for lane in which]
    wanted = before.copy()
    for number, lane in enumerate(which if data else ()):
        start = lane.place[1] - FIRST
        raw = b"".join(column[number].to_bytes(4, "little") for column in values)
        if reduces:
            old, new = (
                int.from_bytes(one, "little", signed="S32" in text)
                for one in (before[lane.place[0], start : start + size].tobytes(), raw)
            )
            result = max(old, new) if "MAX" in text else old + new
            raw = (result % 2 ** (8 * size)).to_bytes(size, "little")
        wanted[lane.place[0], start : start + size] = list(raw)
    assert (machine.stores["shared"].data == wanted).all()


@pytest.mark.parametrize("text", ["STAS.64", "REDAS.ADD.64"])
@pytest.mark.parametrize("register", ["R4", "R5"])
def test_an_asynchronous_store_to_an_unknown_place(text: str, register: str) -> None:
    given = {"R4": FIRST, "R5": 8, "R8": 1, "R9": 2, register: WHY}
    machine = Cluster().run(f"{text} [R4.64], R8", **given)
    ((_, access, space, width, poison, active),) = machine.told["lose"]
    assert (access, space, width, active) == (
        "async_store" if text.startswith("STAS") else "async_reduction",
        "shared",
        8,
        True,
    )
    assert "never written" in poison.story()
    assert machine.one("spoil")[0] == "shared" and "never written" in machine.one("forget")[0].story()


# --- warpgroup products ----------------------------------------------------------------------


def word(start: int, leading: int, stride: int, mode: int) -> int:
    """The descriptor of a matrix; bytes but for the mode."""
    return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize(
    ("form", "columns", "k", "size", "across"),
    [
        ("HGMMA.64x16x16.F32", 16, 16, 2, ""),
        ("HGMMA.64x16x16.F32", 16, 16, 2, "AB"),
        ("HGMMA.64x16x16.F16", 16, 16, 2, "A"),
        ("HGMMA.64x8x8.F32.TF32", 8, 8, 4, ""),
        ("HGMMA.64x32x16.F32.BF16", 32, 16, 2, "B"),
        ("QGMMA.64x8x32.F32.E4M3.E5M2", 8, 32, 1, ""),
        ("IGMMA.64x24x32.S8.U8", 24, 32, 1, ""),
    ],
)
@pytest.mark.parametrize("in_registers", [True, False])
def test_a_product_tells_what_its_warps_read(
    form: str, columns: int, k: int, size: int, across: str, in_registers: bool, commits: bool
) -> None:
    machine = Cluster()
    turned = "".join(f".tnsp{name}" for name in across)
    left = "R24, " if in_registers else ""
    end = ", gsb0" if commits else ""
    given = {}
    held = {}
    for block in range(BLOCKS):
        for number in (0, 1):
            held[block, number] = word(
                1024 + 256 * block + 512 * number, 128 << number, 256 << number, number
            )
    for number in (0, 1):
        for half in (0, 1):
            array = np.array([[held[block, number] >> 32 * half & 0xFFFFFFFF] for block in range(BLOCKS)])
            given[f"UR{4 + 2 * number + half}"] = from_array(array.astype(np.int32).astype(np.int64))
    mask = np.ones((BLOCKS, THREADS), bool)
    mask[1] = False
    mask[2, :32] = False
    machine.run(
        f"{form} R64, {left}gdesc[UR4]{turned}, R64, !UPT{end}", from_bools(mask), data=False, **given
    )
    _, width, _, read, told = machine.one("operands")
    assert told is commits
    assert width * 32 == (columns + (0 if in_registers else 64)) * k * size
    found = read()
    rows = zip(*(one.tolist() for one in (found.rows, found.start, found.length, found.warps)))
    wanted = []
    for block in range(BLOCKS):
        for warp in (0, 1):
            if not mask[block, 32 * warp]:
                continue
            for number, name in enumerate("AB"):
                if name == "A" and in_registers:
                    continue
                first, count = (16 * warp, 16) if name == "A" else (0, columns)
                places = descriptor_of(held[block, number]).places(
                    np.arange(first, first + count), k, size, name in across
                )
                units = {(int(place) + byte) // 16 for place in places.flat for byte in range(size)}
                wanted += [(block, 16 * unit, 16, warp) for unit in units]
    assert sorted(rows) == sorted(wanted)


def test_a_product_that_no_lane_executes_is_told_and_writes_nothing() -> None:
    machine = Cluster().run("HGMMA.64x8x16.F32 R64, gdesc[UR4], RZ, !UPT", False)
    assert machine.told.keys() == {"operands"} and all(slot is None for slot in machine.slots)


def test_a_product_that_is_not_computed_is_unknown() -> None:
    """All registers of its result are, and no other."""
    machine = Cluster().run("HGMMA.64x16x16.F16 R64, gdesc[UR4], RZ, !UPT", data=False)
    lost = [slot for slot, value in enumerate(machine.slots) if isinstance(value, Poison)]
    assert lost == [64, 65, 66, 67]
    machine = Cluster().run("HGMMA.64x16x16.F32 R64, gdesc[UR4].foo, RZ, !UPT")
    lost = [slot for slot, value in enumerate(machine.slots) if isinstance(value, Poison)]
    assert lost == [*range(64, 72)]
    assert "is not computed by the emulator" in machine.slots[64].story()


def test_a_wait_for_products_says_how_many_groups_may_be_left() -> None:
    assert Cluster().run("WARPGROUP.DEPBAR.LE gsb0, 0x2").one("wait_for_products") == (True, 2)


# --- boxes of tensors ------------------------------------------------------------------------


def with_maps(extents: tuple[int, ...], element: int) -> tuple[Cluster, Tensor]:
    """A machine with a tensor of bytes in global memory, whose map is at `MAP_AT`."""
    machine = Cluster()
    steps = [element]
    for extent in extents[:-1]:
        steps.append(-(-steps[-1] * extent // 16) * 16)
    box = (16 // element, *(2 for _ in extents[1:]))
    made = Tensor(GLOBAL_BASE, extents, tuple(steps), box, element, 0, "uint32")
    machine.memory.tensors = {MAP_AT: made}
    machine.memory.layouts = {
        "global": SimpleNamespace(
            owners=lambda places, width: np.zeros(len(places), np.int64) - (places != MAP_AT),
            find=lambda first, end: None,
        )
    }
    return machine, made


MAP_AT = 1 << 32 | 0x40


def corners(extents: tuple[int, ...], inside: bool) -> list[tuple[int, ...]]:
    """The corner of each warp's box; innermost at a multiple of 16 bytes."""
    chance = random.Random(len(extents))
    return [
        (
            4 * chance.randrange(-1 * (not inside), extents[0] // 4),
            *(chance.randrange(-1 * (not inside), extent) for extent in extents[1:]),
        )
        for _ in LANES
    ]


@pytest.mark.parametrize("extents", [(64,), (24, 6), (12, 3, 3), (8, 3, 2, 3), (8, 2, 3, 2, 2)])
@pytest.mark.parametrize("opcode", ["UTMALDG", "UTMALDG.MULTICAST", "UTMASTG", "UTMAREDG.ADD"])
def test_a_copy_of_boxes_reads_its_corner_and_its_map(opcode: str, extents: tuple[int, ...]) -> None:
    machine, one = with_maps(extents, 4)
    loads, sends = opcode.startswith("UTMALDG"), "MULTICAST" in opcode
    made, at_corners = copies(), corners(extents, not loads)
    where = [lane._replace(far=(lane.far[0], lane.far[1] // 128 * 128)) for lane in made]
    where = [lane._replace(near=(lane.near[0], lane.near[1] // 128 * 128)) for lane in where]
    columns = [[at(lane.far if loads else lane.near) for lane in where]]
    columns += [[at(lane.barrier) for lane in where]] if loads else []
    columns += [[corner[i] for corner in at_corners] for i in range(len(extents))]
    registers = {f"UR{8 + i}": of_warps(column) for i, column in enumerate(columns)}
    registers |= {"UR20": MAP_AT & 0xFFFFFFFF, "UR21": MAP_AT >> 32}
    registers |= {"UR24": of_warps([lane.blocks << 16 for lane in where])}
    before = {name: store.data.copy() for name, store in machine.stores.items()}
    name, _, more = opcode.partition(".")
    text = f"{name}.{len(extents)}D{'.' * bool(more)}{more}"
    machine.run(f"{text} [UR8], [UR20]{', UR24' * sends}", executing(), **registers)
    told = machine.told
    maps = sorted((lane.block, MAP_AT, 128, lane.warp) for lane in where)
    assert together(told["maps"]) == maps
    rows: list[tuple[Any, ...]] = []
    wanted = {key: content.copy() for key, content in before.items()}
    access = "bulk_load" if loads else "bulk_reduction" if "RED" in opcode else "bulk_store"
    for lane, corner in zip(where, at_corners):
        targets = [rank for rank in range(BLOCKS) if lane.blocks >> rank & 1] if sends else [lane.far[0]]
        for number, outer in enumerate(np.ndindex(*one.box[:0:-1])):
            place = [corner[0], *(first + i for first, i in zip(corner[1:], outer[::-1]))]
            beside = all(0 <= i < extent for i, extent in zip(place[1:], extents[1:]))
            for column in range(one.box[0]):
                there = beside and 0 <= place[0] + column < extents[0]
                spot = sum(i * step for i, step in zip([place[0] + column, *place[1:]], one.steps))
                linear = 16 * number + 4 * column
                if loads:
                    value = before["global"][0, spot : spot + 4] if there else np.zeros(4, np.uint8)
                    for block in targets:
                        start = lane.far[1] - FIRST + linear
                        wanted["shared"][block, start : start + 4] = value
                elif there:
                    start = lane.near[1] - FIRST + linear
                    value = before["shared"][lane.block, start : start + 4]
                    if "RED" in opcode:
                        old = wanted["global"][0, spot : spot + 4].view(np.uint32)
                        value = (old + value.view(np.uint32)).view(np.uint8)
                    wanted["global"][0, spot : spot + 4] = value
            width = sum(0 <= corner[0] + column < extents[0] for column in range(one.box[0])) * 4
            if beside and width:
                first = sum(i * step for i, step in zip([max(place[0], 0), *place[1:]], one.steps))
                rows.append((access, lane.block, GLOBAL_BASE + first, width, lane.warp))
    assert together(told["bulk_global"]) == sorted(rows)
    size = 16 * 2 ** (len(extents) - 1)
    if loads:
        arrived = sorted(
            (rank, lane.barrier[1], 0, -size)
            for lane in where
            for rank in (
                [rank for rank in range(BLOCKS) if lane.blocks >> rank & 1] if sends else [lane.barrier[0]]
            )
        )
        assert columns_of(told["arrive"]) == arrived
    else:
        read = sorted(("shared", 128, lane.block, lane.near[1], size, lane.warp) for lane in where)
        assert together(told["check_copies"]) == read
    assert all((machine.stores[key].data == content).all() for key, content in wanted.items())


def test_a_copy_of_boxes_of_another_kind_is_unknown() -> None:
    given = {"UR8": FIRST, "UR9": 24, "UR10": 0, "UR11": 0, "UR21": MAP_AT >> 32}
    for text, place in (("UTMALDG.2D.IM2COL", MAP_AT), ("UTMALDG.2D", MAP_AT + 64)):
        machine, _ = with_maps((24, 6), 4)
        machine.run(f"{text} [UR8], [UR20]", executing(), **given, UR20=place & 0xFFFFFFFF)
        assert [told[1] for told in machine.told["lose"]] == ["bulk_store", "bulk_load"]
        assert machine.one("spoil")[0] == "shared"
        assert columns_of([machine.one("waits for no bytes")]) == [(0, 24)] * len(LANES)
    machine, _ = with_maps((24, 6), 4)
    with pytest.raises(MemsimError, match="has 2 dimensions, but 1 are copied"):
        machine.run("UTMALDG.1D [UR8], [UR20]", executing(), **given, UR20=MAP_AT & 0xFFFFFFFF)


# --- mbarriers -------------------------------------------------------------------------------

#: What a form counts, (arrivals, bytes), of the operand 5, and whether later phases expect fewer.
ARRIVALS = {
    "SYNCS.ARRIVE.TRANS64.A1T0 R8, [R4], RZ": (1, 0, False),
    "SYNCS.ARRIVE.TRANS64.ART0 R8, [R4], R6": (5, 0, False),
    "SYNCS.ARRIVE.TRANS64.TMASK.ART0 R8, [R4], R6": (5, 0, False),
    "SYNCS.ARRIVE.TRANS64 R8, [R4], R6": (1, 5, False),
    "SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, [R4], R6": (0, 5, False),
    "SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [R4], R6": (0, -5, False),
    "SYNCS.ARRIVE.TRANS64.RED.A0T1 RZ, [R4], RZ": (0, 1, False),
    "SYNCS.ARRIVE.TRANS64.OPTOUT.A1T0 R8, [R4], RZ": (1, 0, True),
    "ARRIVES.LDGSTSBAR.64.TRANSCNT [R4]": (0, -1, False),
    "ARRIVES.LDGSTSBAR.64.ARVCNT [R4]": (1, 0, False),
}


def at_barriers(own: bool = False) -> tuple[dict[str, Any], list[tuple[int, int, int, int]]]:
    """Registers, and (block, thread, block of the mbarrier, its address) of each lane."""
    which = lanes(8, own)
    given = {"R4": of_lanes(which, [at(lane.barrier) for lane in which]), "R6": 5}
    return given, [(lane.block, lane.thread, *lane.barrier) for lane in which]


def mask_of(rows: list[tuple[int, int, int, int]]) -> np.ndarray:
    mask = np.zeros((BLOCKS, THREADS), bool)
    mask[[row[0] for row in rows], [row[1] for row in rows]] = True
    return mask


@pytest.mark.parametrize("text", ARRIVALS)
def test_what_arrives_at_an_mbarrier(text: str) -> None:
    given, rows = at_barriers(own=".RED" not in text)  # a result is that of the own block's object
    arrivals, bytes, drops = ARRIVALS[text]
    machine = Cluster().run(text, from_bools(mask_of(rows)), **given)
    blocks, places, counts, expected, *rest = machine.one("arrive")
    assert list(zip(blocks, places)) == [row[2:] for row in rows]
    assert {*counts} == {arrivals} and {*expected} == {bytes}
    own = [row[0] for row in rows], [row[1] // 32 for row in rows]
    columns = [place // 8 for place in places]
    assert machine.one("noted")[0] == "mbarrier operations"
    if text.startswith("ARRIVES"):
        assert machine.one("copies_arrive") == (*own, columns) and not rest
        return
    dropped, groups = rest
    assert dropped is drops
    assert len({*groups}) == len({*zip(*own)}) == len({*zip(groups, *own)})  # a number for each warp
    assert machine.one("arrives") == (*own, blocks, columns)
    if "RZ, [R4]" in text:
        assert machine.slots[8] is None
        return
    low, high = (np.broadcast_to(to_array(machine.slots[slot]), (BLOCKS, THREADS)) for slot in (8, 9))
    for block, thread, *to in rows:
        group = [other for same, other, *at in rows if (same, other // 32, at) == (block, thread // 32, to)]
        word = sum(1 << other % 32 for other in group) if "TMASK" in text else 0
        assert int(low[block, thread]) & 0xFFFFFFFF == word
        assert int(high[block, thread]) & 0xFFFFFFFF == int(upper_word(*np.zeros((3, 1), np.int64))[0])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SYNCS.CCTL.IV [R4]", "invalidate"),
        ("SYNCS.EXCH.64 URZ, [R4], R6", "initialise"),
        ("SYNCS.FOO R8, [R4], R6", "forget"),
        ("SYNCS.ARRIVE.TRANS64.A1T0.ART0 R8, [R4], R6", "forget"),
    ],
)
def test_what_else_is_done_to_an_mbarrier(text: str, told: str) -> None:
    given, rows = at_barriers()
    machine = Cluster().run(text, from_bools(mask_of(rows)), **given, R7=3)
    found = machine.one(told)
    assert machine.told.keys() == {"noted", "visit", "use_mbarrier", told}
    if told == "forget":
        assert "is not executed" in found[0].story() and isinstance(machine.slots[8], Poison)
    else:
        assert list(zip(*found[:2])) == [row[2:] for row in rows]
        assert told == "invalidate" or found[2] == [3 << 32 | 5] * len(rows)
    ((_, own, warps, blocks),) = machine.told["visit"]
    assert list(zip(own, warps, blocks)) == [(row[0], row[1] // 32, row[2]) for row in rows]
    near, far = machine.told["use_mbarrier"]
    for uses, is_near in ((near, True), (far, False)):
        lanes_there = [row[:2] for row in rows if (row[0] == row[2]) == is_near]
        wanted = np.zeros((BLOCKS, THREADS), bool)
        wanted[[row[0] for row in lanes_there], [row[1] for row in lanes_there]] = True
        assert (np.broadcast_to(to_bools(uses[2]), wanted.shape) == wanted).all()
        assert uses[3:] == ("EXCH" in text, is_near)


def test_an_mbarrier_at_an_unknown_place() -> None:
    machine = Cluster().run("SYNCS.ARRIVE.TRANS64.A1T0 R8, [R4], RZ", R4=WHY)
    assert machine.told.keys() == {"noted", "forget"} and "never written" in machine.one("forget")[0].story()
    assert [isinstance(machine.slots[slot], Poison) for slot in (7, 8, 9, 10)] == [False, True, True, False]
    assert not Cluster().run("SYNCS.ARRIVE.TRANS64.A1T0 R8, [R4], RZ", False).told
