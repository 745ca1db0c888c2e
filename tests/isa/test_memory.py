"""Loads, stores, copies and atomics on the bytes of a small machine, against bytearrays.

Addresses are of single lanes; what requests cost is tested elsewhere.
"""

from __future__ import annotations

import random
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.isa.bulk_reductions import combine, reduce, reduce_box
from memsim.isa.memory import matrix_pieces, word_of
from memsim.isa.op import PREDICATE, SLOTS, UNIFORM, Predicate, Register
from memsim.isa.readers import Binder
from memsim.order.order_listener import OrderListener
from memsim.sass.decode import meaning_of_text, parse_operand
from memsim.simt.launch_places import LoadedValues
from memsim.state.address_spaces import GLOBAL_BASE, SHARED_BASE, SpaceLayout
from memsim.state.partial import Partial, merge_lanes, split_partial
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor
from tests.isa.harness import compute, words
from tests.isa.oracle import BF16, F16, F32, flush, fused, is_nan, one, pieces, signed, unsigned

LANES = 32
BASES = {"global": GLOBAL_BASE, "shared": SHARED_BASE, "local": 0}
#: By the letter of a load or store; generic addresses are of global memory here.
SPACES = {"G": "global", "S": "shared", "L": "local", "": "global"}
SIZE = 4096


class Machine:
    """One warp, with bytes of its own in each state space."""

    def __init__(self, seed: int = 90) -> None:
        chance = random.Random(seed)
        self.content = {name: bytearray(chance.randbytes(SIZE)) for name in ("global", "shared", "local")}
        kinds = {"global": "one", "shared": "block", "local": "thread"}
        self.stores = {}
        for name, content in self.content.items():
            rows = LANES if name == "local" else 1
            data = np.tile(np.frombuffer(bytes(content), np.uint8), (rows, 1))
            self.stores[name] = SpaceBytes(data, BASES[name], (1, LANES), kinds[name])
        self.slots: list[Any] = [None] * (SLOTS + 2)
        self.memory = self
        self.order = OrderListener()
        self.loaded = LoadedValues(SpaceLayout("global"), ())
        self.mask: Any = True
        self.threads = LANES
        self.shape = 1, LANES
        self.touched: list[tuple[str, str, int]] = []
        self.generic = "global"  # the space of generic addresses

    def space(self, name: str) -> SpaceBytes:
        return self.stores[name]

    def spoil(self, name: str, poison: Poison) -> None:
        self.stores[name].poison = poison

    def full(self, mask: Any) -> np.ndarray:
        return np.broadcast_to(to_bools(mask), self.shape)

    def first_round(self, op: Op, active: Any) -> Any:
        return active

    def goes_round(self, *given: Any) -> None:
        """One round is all there is here."""

    def copy_past_cache(self, *given: Any) -> None:
        """Nothing is counted here."""

    def write(self, slot: int, value: Any, active: Any) -> None:
        old = self.slots[slot]
        fresh = old is None and not isinstance(value, Poison)
        self.slots[slot] = value if active is True or fresh else merge_lanes(active, value, old)

    def touch(
        self, op: Any, kind: str, space: str, width: int, address: Any, active: Any, other: Any = None
    ) -> bool:
        self.touched.append((kind, space, width))
        return False

    def lose(self, *given: Any) -> None:
        self.touched.append(("lost", given[2], given[3]))

    def resolve(self, address: Any, active: Any) -> list[tuple[str, Any, Any]]:
        return [(self.generic, address, active)]

    def in_spaces(self, op: Any, unmade: str | None, width: int, pieces: Any) -> None:
        if unmade is not None:
            self.touched.append((unmade, "shared", width))

    def uncounted(self, what: str, active: Any) -> None:
        self.touched.append((what, "", 0))

    def run(
        self, text: str, active: Any = True, banks: dict[int, bytes] | None = None, **registers: Any
    ) -> Machine:
        for name, value in registers.items():
            operand = parse_operand(name)
            assert operand is not None
            self.slots[operand.slot] = value  # type: ignore[union-attr]
        meaning = meaning_of_text(text)
        with np.errstate(all="ignore"):  # as a launch is executed
            meaning.bind(Binder(banks or {}))(self, Op(text, meaning.definition.touches), active, True)
        return self

    def word(self, name: str) -> list[int]:
        operand = parse_operand(name)
        assert isinstance(operand, Register) and operand.slot is not None
        array = np.broadcast_to(to_array(ints(self.slots[operand.slot])), (1, LANES))
        return [int(x) & 0xFFFFFFFF for x in array[0]]

    def bytes_of(self, name: str, row: int = 0) -> bytearray:
        return bytearray(self.stores[name].data[row].tobytes())


class Op:
    """An instruction as far as messages need it."""

    def __init__(self, name: str, touches: tuple[tuple[str, str], ...] = ()) -> None:
        self.name = self.text = name
        self.touches = touches
        self.where, self.source, self.index = "address 0x0", None, 0
        self.spills = self.unused = ()


def each(values: list[int]) -> Any:
    """A word for each lane."""
    return from_array(np.array([[signed(value) for value in values]], np.int64))


def pointers(offsets: list[int], base: int = GLOBAL_BASE) -> tuple[Any, Any]:
    """The two words of addresses."""
    return each([unsigned(base + offset) for offset in offsets]), base >> 32


ODD: Any = from_bools(np.arange(LANES)[None, :] % 2 == 1)
OFFSETS = [(lane * 48 + 16) % 2048 for lane in range(LANES)]


@pytest.mark.parametrize(
    ("width", "size", "is_signed"),
    [
        ("", 4, False),
        (".U8", 1, False),
        (".S8", 1, True),
        (".U16", 2, False),
        (".S16", 2, True),
        (".64", 8, False),
        (".128", 16, False),
    ],
)
@pytest.mark.parametrize("where", ["LDG.E", "LD.E", "LDS", "LDL"])
def test_loads(where: str, width: str, size: int, is_signed: bool) -> None:
    space, machine = SPACES[where.split(".")[0][2:]], Machine()
    low, high = pointers(OFFSETS, BASES[space])
    address = "desc[UR4][R2.64+0x10]" if space == "global" else "[R2+0x10]"
    machine.run(f"{where}{width} R4, {address}", R2=low, R3=high, **({"R4": 7} if size <= 4 else {}))
    for lane, offset in enumerate(OFFSETS):
        raw = machine.content[space][offset + 16 : offset + 16 + size]
        if size < 4:
            assert machine.word("R4")[lane] == unsigned(int.from_bytes(raw, "little", signed=is_signed))
            continue
        for place in range(size // 4):
            assert machine.word(f"R{4 + place}")[lane] == int.from_bytes(
                raw[4 * place : 4 * place + 4], "little"
            )
    assert machine.touched == [("load", space, size)]


def test_only_active_lanes_load() -> None:
    machine = Machine()
    low, high = pointers(OFFSETS)
    machine.run("LDG.E R4, desc[UR4][R2.64]", ODD, R2=low, R3=high, R4=each([9] * LANES))
    for lane, offset in enumerate(OFFSETS):
        content = int.from_bytes(machine.content["global"][offset : offset + 4], "little")
        assert machine.word("R4")[lane] == (content if lane % 2 else 9)


@pytest.mark.parametrize(("width", "size"), [("", 4), (".U8", 1), (".U16", 2), (".64", 8), (".128", 16)])
@pytest.mark.parametrize("where", ["STG.E", "ST.E", "STS", "STL"])
def test_stores(where: str, width: str, size: int) -> None:
    space, machine = SPACES[where.split(".")[0][2:]], Machine()
    low, high = pointers(OFFSETS, BASES[space])
    values = [words(LANES, 91 + place) for place in range(max(1, size // 4))]
    registers = {f"R{4 + place}": each(value) for place, value in enumerate(values)}
    address = "desc[UR4][R2.64]" if space == "global" else "[R2]"
    machine.run(f"{where}{width} {address}, R4", ODD, R2=low, R3=high, **registers)
    for row in range(LANES if space == "local" else 1):
        expected = bytearray(machine.content[space])
        for lane, offset in enumerate(OFFSETS):
            if lane % 2 and (space != "local" or row == lane):
                raw = b"".join(struct.pack("<I", value[lane]) for value in values)
                expected[offset : offset + size] = raw[:size]
        assert machine.bytes_of(space, row) == expected


def test_what_was_never_written_is_stored_as_zeros() -> None:
    machine = Machine()
    low, high = pointers(OFFSETS)
    machine.run("STG.E desc[UR4][R2.64], R4", R2=low, R3=high)
    assert machine.bytes_of("global")[16:20] == bytes(4)
    machine.run("STG.E desc[UR4][R2.64], R4", R4=Poison("unknown", None))
    with pytest.raises(Poisoned):
        machine.space("global").load(GLOBAL_BASE + OFFSETS[0], np.int32, True)


@pytest.mark.parametrize("width", ["", ".64", ".U8"])
def test_rz_is_stored_as_zeros(width: str) -> None:
    machine, size = Machine(), {"": 4, ".64": 8, ".U8": 1}[width]
    machine.run(f"STS{width} [{SHARED_BASE + 0x40:#x}], RZ", ODD)
    expected = bytearray(machine.content["shared"])
    expected[0x40 : 0x40 + size] = bytes(size)
    assert machine.bytes_of("shared") == expected


#: What an address is the sum of beside the base, and which byte that is. R2 is 64, UR6 is 128.
SHORT_FORMS = {
    "[0x10]": 16,
    "[RZ+0x10]": 16,
    "[R2+0x0]": 64,
    "[R2+UR6+0x10]": 208,
    "[UR6+0x10]": 144,
    "[R2.X4+0x10]": 272,
    "[R2.X4+UR6+0x10]": 400,
    "[R2.X8+0x0]": 512,
    "[R2.X16+0x0]": 1024,
}


@pytest.mark.parametrize("form", SHORT_FORMS)
def test_an_address_is_a_sum(form: str) -> None:
    machine, (front, _, offset) = Machine(), form.rpartition("0x")
    machine.run(f"LDS R4, {front}{SHARED_BASE + int(offset[:-1], 16):#x}]", R2=64, UR6=128)
    raw = machine.content["shared"][SHORT_FORMS[form] :][:4]
    assert machine.word("R4")[0] == int.from_bytes(raw, "little")


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("desc[UR4][R2.64]", 64),
        ("desc[UR4][R2.64+0x10]", 80),
        ("[R2.64+UR8]", 192),
        ("[R8.U32+UR6+0x10]", 208),
        ("[R8.U32+UR6]", 192),
        ("[UR6]", 128),
        ("[UR6+0x4]", 132),
    ],
)
def test_an_address_of_64_bits_is_a_sum(form: str, place: int) -> None:
    machine, low, upper = Machine(), signed(GLOBAL_BASE & 0xFFFFFFFF), GLOBAL_BASE >> 32
    bases = {"R2": low + 64, "R3": upper, "UR6": low + 128, "UR7": upper}
    machine.run(f"LDG.E R4, {form}", **bases, UR8=128, UR9=0, R8=64)
    raw = machine.content["global"][place:][:4]
    assert machine.word("R4")[0] == int.from_bytes(raw, "little")


def test_an_unknown_address_makes_memory_unknown() -> None:
    machine = Machine().run("STS [R2], R4", R2=Poison("unknown", None), R4=1)
    assert machine.space("shared").poison is not None
    assert machine.touched[0][0] == "lost"


def test_constants_at_an_index() -> None:
    bank = bytes(range(200, 256)) + bytes(range(40))
    machine = Machine().run(
        "LDC R4, c[0x3][R2+0x4]", banks={3: bank}, R2=each([4 * (lane % 8) for lane in range(LANES)])
    )
    for lane, found in enumerate(machine.word("R4")):
        assert found == int.from_bytes(bank[4 + 4 * (lane % 8) :][:4], "little")
    assert machine.touched == [("load", "constant", 4)]
    assert [*machine.loaded.constants.values()] == [{4 + 4 * one for one in range(8)}]
    machine.run("LDC R4, c[0x3][R2]", banks={3: bank[:8]}, R2=each(list(range(0, 128, 4))))
    with pytest.raises(Poisoned):
        machine.word("R4")
    machine.run("LDC R4, c[0x3][R2]", banks={3: bank}, R2=Poison("unknown", None))
    assert machine.touched[2:] == [("lost", "constant", 4)]
    machine.run("LDC.64 R4, c[0x3][R2]", banks={3: bank}, R2=Poison("unknown", None))
    assert [isinstance(machine.slots[slot], Poison) for slot in (4, 5)] == [True, True]


def test_constants_at_an_index_of_the_warp_are_no_request() -> None:
    bank = bytes(range(64))
    machine = Machine().run("ULDC UR4, c[0x3][UR6+0x4]", banks={3: bank}, UR6=8)
    assert machine.word("UR4")[0] == int.from_bytes(bank[12:16], "little")
    assert machine.touched == []


# --- copies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["U32", "S32", "U64", "S64"])
@pytest.mark.parametrize("operation", ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"])
def test_elements_are_combined_and_what_is_unknown_stays_so(operation: str, kind: str) -> None:
    size, is_signed = int(kind[1:]) // 8, kind[0] == "S"
    how, chance = combine(kind, operation), random.Random(55)
    assert how is not None
    old, new = (chance.randbytes(12 * size) for _ in range(2))
    new = new[: 6 * size] + old[6 * size : 8 * size] + bytes(size) + new[9 * size :]
    to, of = (
        SpaceBytes(np.frombuffer(bytes(8) + one, np.uint8)[None].copy(), 0, (1, 1), "one")
        for one in (old, new)
    )
    places, why = np.arange(8, 8 + 12 * size), Poison("never written", None)
    of.put(0, np.array([8]), np.array([1], np.uint8), (np.array([True]), why))
    to.put(0, np.array([8 + 2 * size]), np.array([1], np.uint8), (np.array([True]), why))
    reduce(how, to, 0, places, of, 0, places, Op("UBLKRED"))
    found, lost = to.get(0, places)
    assert lost is not None and [*np.flatnonzero(lost[0])] == [*range(size), *range(2 * size, 3 * size)]
    for i in {*range(12)} - {0, 2}:
        a, b = (int.from_bytes(x[i * size : (i + 1) * size], "little", signed=is_signed) for x in (old, new))
        wanted = {
            **{"ADD": a + b, "MIN": min(a, b), "MAX": max(a, b), "AND": a & b, "OR": a | b, "XOR": a ^ b},
            **{"INC": 0 if a >= b else a + 1, "DEC": b if a == 0 or a > b else a - 1},
        }[operation]
        assert found[i * size : (i + 1) * size].tobytes() == (wanted % 2 ** (8 * size)).to_bytes(
            size, "little"
        )
    reduce(how, to, 0, places[3 * size :], of, 0, places[3 * size :], Op("UBLKRED"))
    after = to.get(0, places)[1]
    assert after is not None and np.array_equal(after[0], lost[0])


@pytest.mark.parametrize("corner", [(0, 0), (4, 1), (-4, -1), (0, 1)])
def test_what_lies_beside_the_end_of_a_reduced_row_becomes_unknown(corner: tuple[int, int]) -> None:
    """Rows of 6 words, 32 bytes apart: the last two of its second 16 bytes. What is outside is dropped."""
    tensor = Tensor(0, (6, 2), (4, 32), (8, 2), 4, 0, "uint32")
    old, new = np.arange(16, dtype=np.uint32), np.arange(100, 116, dtype=np.uint32)
    to, of = (SpaceBytes(one.view(np.uint8)[None].copy(), 0, (1, 1), "one") for one in (old, new))
    reduce_box("ADD", to, of, 0, 0, tensor, corner, Op("UTMAREDG"))
    found, lost = to.get(0, np.arange(64))
    wanted, unknown = old.copy(), set()
    for y in range(2):
        for x in range(8):
            at = corner[0] + x, corner[1] + y
            if 0 <= at[1] < 2 and 0 <= at[0] < 6:
                wanted[8 * at[1] + at[0]] += new[8 * y + x]
            elif 0 <= at[1] < 2 and at[0] in (6, 7):
                unknown.add(8 * at[1] + at[0])
    assert found.view(np.uint32).tolist() == wanted.tolist()
    assert {int(at) // 4 for at in np.flatnonzero(lost[0])} == unknown if lost is not None else not unknown


def copied(text: str, sources: list[int], size: int, lengths: list[int]) -> None:
    """A copy of `lengths` bytes of `size` by each lane, the rest zeros."""
    machine = Machine()
    low, high = pointers(sources)
    targets = [SHARED_BASE + 16 * lane for lane in range(LANES)]
    reads: Any = from_bools(np.array([[length > 0 for length in lengths]]))
    machine.run(text, R2=each(targets), R4=low, R5=high, P0=reads)
    expected = bytearray(machine.content["shared"])
    for lane, (source, length) in enumerate(zip(sources, lengths)):
        start = source & ~(size - 1)
        raw = machine.content["global"][start : start + length]
        expected[16 * lane : 16 * lane + size] = raw + bytes(size - length)
    assert machine.bytes_of("shared") == expected


def test_copies() -> None:
    sources = [(lane * 80) % 2048 for lane in range(LANES)]
    copied("LDGSTS.E.BYPASS.LTC128B.128 [R2], desc[UR4][R4.64]", sources, 16, [16] * LANES)
    copied(
        "LDGSTS.E.64 [R2], desc[UR4][R4.64], P0", sources, 8, [8 if lane % 3 else 0 for lane in range(LANES)]
    )


@pytest.mark.parametrize(
    ("text", "width"), [("LDGSTS.E", 4), ("LDGSTS.E.64", 8), ("LDGSTS.E.BYPASS.128", 16)]
)
@pytest.mark.parametrize("space", ["shared", "global", ""])
def test_lanes_that_copy_from_or_to_the_outside(text: str, width: int, space: str) -> None:
    """What comes from outside is unknown; what goes there goes nowhere."""

    class Beyond(Machine):
        def touch(self, op: Any, kind: str, where: str, *given: Any) -> Any:
            super().touch(op, kind, where, *given)
            return ODD if where == space else False

    machine = Beyond()
    low, high = pointers(OFFSETS)
    targets = [SHARED_BASE + 16 * lane for lane in range(LANES)]
    machine.run(f"{text} [R2], desc[UR4][R4.64]", R2=each(targets), R4=low, R5=high)
    expected, unknown = bytearray(machine.content["shared"]), set()
    for lane, offset in enumerate(OFFSETS):
        if lane % 2 == 0 or not space:
            expected[16 * lane : 16 * lane + width] = machine.content["global"][offset : offset + width]
        elif space == "global":
            unknown |= {*range(16 * lane, 16 * lane + width)}
    found, lost = machine.space("shared").get(0, np.arange(SIZE) + SHARED_BASE)
    assert unknown == ({*np.flatnonzero(lost[0]).tolist()} if lost is not None else set())
    assert all(found[at] == expected[at] for at in range(SIZE) if at not in unknown)


def test_copies_that_fill_up_with_zeros() -> None:
    """The last bits of the address say how many bytes at the end are not read."""
    for name, size in (("128.", 16), ("64.", 8), ("", 4)):
        missing = [lane % size for lane in range(LANES)]
        sources = [(lane * 80) % 2048 + gap for lane, gap in enumerate(missing)]
        lengths = [size - gap for gap in missing]
        copied(f"LDGSTS.E.{name}ZFILL [R2], desc[UR4][R4.64], P0", sources, size, lengths)


# --- matrices -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", [False, True])
def test_matrices_in_shared_memory(count: int, turned: bool) -> None:
    name = f"16.{'MT88' if turned else 'M88'}" + (f".{count}" if count > 1 else "")
    rows = [(lane * 7 % 32) * 32 for lane in range(LANES)]
    machine = Machine().run(f"LDSM.{name} R4, [R2]", R2=each([SHARED_BASE + row for row in rows]))
    content = machine.content["shared"]

    def element(matrix: int, row: int, column: int) -> int:
        start = rows[8 * matrix + row] + 2 * column
        return int.from_bytes(content[start : start + 2], "little")

    for matrix in range(count):
        for lane, found in enumerate(machine.word(f"R{4 + matrix}")):
            row, column = lane // 4, 2 * (lane % 4)
            at = [(column + i, row) if turned else (row, column + i) for i in (0, 1)]
            assert found == element(matrix, *at[0]) | element(matrix, *at[1]) << 16
    back = Machine(seed=95)
    registers = {f"R{4 + matrix}": machine.slots[4 + matrix] for matrix in range(count)}
    back.run(f"STSM.{name} [R2], R4", R2=each([SHARED_BASE + row for row in rows]), **registers)
    found = back.bytes_of("shared")
    for lane in range(8 * count):
        assert found[rows[lane] : rows[lane] + 16] == content[rows[lane] : rows[lane] + 16]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("matrix", [0, 3])
def test_each_warp_has_matrices_of_its_own(matrix: int, turned: bool) -> None:
    def pieces_of(address: np.ndarray) -> list[np.ndarray]:
        machine: Any = SimpleNamespace(threads=address.shape[1])
        return [to_array(at) for at, _ in matrix_pieces(machine, from_array(address), matrix, turned)]

    address = np.random.default_rng(1).permutation(96)[None] * 16
    alone = [pieces_of(address[:, first : first + 32]) for first in (0, 32, 64)]
    for half, found in enumerate(pieces_of(address)):
        assert np.array_equal(found, np.concatenate([one[half] for one in alone], axis=1))


def test_a_matrix_of_rz_is_zeros() -> None:
    rows = each([SHARED_BASE + 16 * lane for lane in range(LANES)])
    machine = Machine().run("STSM.16.M88.2 [R2], RZ", R2=rows)
    assert machine.bytes_of("shared") == bytes(256) + machine.content["shared"][256:]


def test_a_matrix_is_unknown_only_in_the_lanes_whose_bytes_are() -> None:
    """Rows that nobody wrote, such as those behind the end of an array."""
    machine = Machine()
    rows = [SHARED_BASE + 16 * lane for lane in range(LANES)]
    whole = Machine().run("LDSM.16.M88.2 R4, [R2]", R2=each(rows))
    store = machine.stores["shared"]
    why = Poison("never written", None)
    store.forget(
        from_array(np.array([[rows[8 + 3] + 6]])), np.uint16, from_bools(np.arange(32)[None] == 0), why
    )
    machine.run("LDSM.16.M88.2 R4, [R2]", R2=each(rows))
    assert machine.word("R4") == whole.word("R4")
    value, known, reason = split_partial(machine.slots[5])
    assert reason is not None and reason.reason == "never written"
    assert np.flatnonzero(~to_bools(known)[0]).tolist() == [4 * 3 + 1]
    found = to_array(ints(value))[0]
    assert [int(word) & 0xFFFFFFFF for lane, word in enumerate(found) if lane != 13] == [
        word for lane, word in enumerate(whole.word("R5")) if lane != 13
    ]


# --- atomics --------------------------------------------------------------------------------

UPDATES = {
    "ADD": lambda old, b: old + b,
    "MIN": min,
    "MAX": max,
    "AND": lambda old, b: old & b,
    "OR": lambda old, b: old | b,
    "XOR": lambda old, b: old ^ b,
    "EXCH": lambda old, b: b,
    "INC": lambda old, b: 0 if old >= b else old + 1,
    "DEC": lambda old, b: b if old == 0 or old > b else old - 1,
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("kind", ["", ".S32", ".64", ".S64", ".U64"])
@pytest.mark.parametrize("where", ["ATOMG.E", "REDG.E", "ATOMS"])
def test_atomics_on_integers(where: str, kind: str, name: str) -> None:
    if (name in ("INC", "DEC", "EXCH") and kind not in ("",)) or (name == "EXCH" and where == "REDG.E"):
        return
    if where == "ATOMS" and "64" in kind:
        return
    size = 8 if "64" in kind else 4
    is_signed = kind.startswith(".S")
    machine = Machine()
    space = "shared" if where == "ATOMS" else "global"
    offsets = [size * (lane % 5) for lane in range(LANES)]
    low, high = pointers(offsets, SHARED_BASE if space == "shared" else GLOBAL_BASE)
    values = [x | (y << 32 if size == 8 else 0) for x, y in zip(words(LANES, 96), words(LANES, 97))]
    registers = {
        "R2": low,
        "R3": high,
        "R8": each([unsigned(x) for x in values]),
        "R9": each([x >> 32 for x in values]),
    }
    address = "[R2]" if space == "shared" else "desc[UR4][R2.64]"
    result = "" if where == "REDG.E" else "R4, " if space == "shared" else "PT, R4, "
    scope = "" if space == "shared" else ".STRONG.GPU"
    machine.run(f"{where}.{name}{kind}{scope} {result}{address}, R8", ODD, **registers)
    expected = bytearray(machine.content[space])
    seen = {}
    for lane in range(1, LANES, 2):
        start = offsets[lane]
        old = int.from_bytes(expected[start : start + size], "little", signed=is_signed)
        value = signed(values[lane], 8 * size) if is_signed else values[lane]
        seen[lane] = old
        expected[start : start + size] = unsigned(UPDATES[name](old, value), 8 * size).to_bytes(
            size, "little"
        )
    assert machine.bytes_of(space) == expected
    if result:
        for lane, old in seen.items():
            assert machine.word("R4")[lane] == unsigned(old)
            if size == 8:
                assert machine.word("R5")[lane] == unsigned(old >> 32)


@pytest.mark.parametrize(
    ("text", "touched"),
    [
        ("ATOMS.ADD R4, [R2], R8", [("atomic", "shared", 4)]),
        ("ATOMS.EXCH R4, [R2], R8", [("atomic", "shared", 4)]),
        ("ATOMS.EXCH.64 R4, [R2], R8", [("atomic", "shared", 8)]),
        ("ATOMS.POPC.INC.32 R4, [R2]", [("atomic_inc", "shared", 4)]),
        ("ATOMS.CAS R4, [R2], R8, R10", [("atomic_cas", "shared", 4)]),
        ("ATOMS.CAST.SPIN R4, [R2], R8, R10", [("atomic_loop", "shared", 4)]),
        ("ATOMG.E.CAS.STRONG.GPU PT, R4, [R2], R8, R10", [("atomic", "global", 4)]),
        ("ATOMG.E.EXCH.STRONG.GPU PT, R4, [R2], R8", [("atomic", "global", 4)]),
        ("REDG.E.ADD.64.STRONG.GPU [R2], R8", [("reduction", "global", 8)]),
        ("ATOM.E.ADD.STRONG.GPU PT, R4, [R2], R8", [("atomic_unmade", "shared", 4), ("atomic", "global", 4)]),
        (
            "ATOM.E.CAS.STRONG.GPU PT, R4, [R2], R8, R10",
            [("atomic_cas_unmade", "shared", 4), ("atomic", "global", 4)],
        ),
    ],
)
def test_atomics_are_told_apart_by_what_they_cost(text: str, touched: list[tuple[str, str, int]]) -> None:
    space = "shared" if text.startswith("ATOMS") else "global"
    low, high = pointers([16 * lane for lane in range(LANES)], BASES[space])
    values = {name: each(words(LANES, number)) for number, name in enumerate(("R8", "R9", "R10", "R11"))}
    assert Machine().run(text, R2=low, R3=high, **values).touched == touched


@pytest.mark.parametrize(
    ("operation", "answer", "made"),
    [("ADD", "PT", "atomic"), ("ADD", "P0", "atomic_generic"), ("EXCH", "P0", "atomic_generic")],
)
def test_a_generic_atomic_in_shared_memory_may_only_begin_a_loop(
    operation: str, answer: str, made: str
) -> None:
    machine = Machine()
    machine.generic = "shared"
    low, high = pointers([16 * lane for lane in range(LANES)], SHARED_BASE)
    text = f"ATOM.E.{operation}.STRONG.GPU {answer}, R4, [R2], R8"
    assert machine.run(text, R2=low, R3=high, R8=7).touched[-1] == (made, "shared", 4)


def test_tensor_memory_is_allocated_from_the_first_column_on() -> None:
    machine = Machine().run("UTCATOMSWS.FIND_AND_SET.ALIGN UP1, UR4, UR5", UR5=1)
    assert machine.slots[PREDICATE + 9] is True and machine.slots[UNIFORM + 4] == 0
    machine.run("LDTM.x2 R8, tmem[UR4]")
    assert [isinstance(machine.slots[slot], Poison) for slot in (8, 9)] == [True, True]


def test_compare_and_swap() -> None:
    machine = Machine()
    content = machine.content["global"]
    low, high = pointers([8 * lane for lane in range(LANES)])
    there = [int.from_bytes(content[8 * lane : 8 * lane + 4], "little") for lane in range(LANES)]
    expected = [value if lane % 2 else value ^ 1 for lane, value in enumerate(there)]
    machine.run(
        "ATOMG.E.CAS.STRONG.GPU PT, R4, desc[UR4][R2.64], R8, R10",
        R2=low,
        R3=high,
        R8=each(expected),
        R10=each([5] * LANES),
    )
    found = machine.bytes_of("global")
    for lane, value in enumerate(there):
        assert machine.word("R4")[lane] == value
        assert int.from_bytes(found[8 * lane : 8 * lane + 4], "little") == (5 if lane % 2 else value)
    # In shared memory a loop asks whether it was done.
    low, _ = pointers([4 * lane for lane in range(LANES)], SHARED_BASE)
    there = [
        int.from_bytes(machine.content["shared"][4 * lane : 4 * lane + 4], "little") for lane in range(LANES)
    ]
    expected = [value if lane % 2 else value ^ 1 for lane, value in enumerate(there)]
    machine.run("ATOMS.CAST.SPIN R4, [R2], R8, R10", R2=low, R8=each(expected), R10=each([5] * LANES))
    assert machine.word("R4") == [lane % 2 for lane in range(LANES)]
    # From sm_100 on a predicate tells. Odd lanes hold 5 now.
    expected = [5 if lane % 3 else 6 for lane in range(LANES)]
    machine.run("ATOMS.CAST.SPIN P0, [R2], R8, R10", R2=low, R8=each(expected), R10=each([7] * LANES))
    swapped = [lane % 2 == 1 and lane % 3 != 0 for lane in range(LANES)]
    told = parse_operand("P0")
    assert isinstance(told, Predicate) and told.slot is not None
    assert np.broadcast_to(to_bools(machine.slots[told.slot]), (1, LANES))[0].tolist() == swapped
    found = machine.bytes_of("shared")
    assert [found[4 * lane] == 7 for lane in range(LANES)] == swapped


def test_sixteen_bytes_at_once() -> None:
    for name, swaps in (("EXCH", True), ("CAS", False)):
        machine = Machine()
        content = machine.content["global"]
        low, high = pointers([16 * lane for lane in range(LANES)])
        given = {f"R{8 + i}": each(words(LANES, 100 + i)) for i in range(8)}
        if not swaps:  # odd lanes expect what is there
            for i in range(4):
                there = [int.from_bytes(content[16 * lane + 4 * i :][:4], "little") for lane in range(LANES)]
                given[f"R{8 + i}"] = each(
                    [value if lane % 2 else value ^ 1 for lane, value in enumerate(there)]
                )
        operands = "R12" if swaps else "R8, R12"
        machine.run(f"ATOMG.E.{name}.128.STRONG.GPU PT, R4, [R2], {operands}", R2=low, R3=high, **given)
        expected = bytearray(content)
        new = [words(LANES, 104 + i) for i in range(4)]
        for lane in range(LANES):
            if swaps or lane % 2:
                expected[16 * lane : 16 * lane + 16] = b"".join(struct.pack("<I", word[lane]) for word in new)
        assert machine.bytes_of("global") == expected
        assert machine.word("R7") == [
            int.from_bytes(content[16 * lane + 12 :][:4], "little") for lane in range(LANES)
        ]


@pytest.mark.parametrize(("kind", "count"), [("F16x2", 2), ("BF16x2", 2), ("F16x4", 4), ("BF16x8", 8)])
def test_sums_of_16_bit_floats(kind: str, count: int) -> None:
    form = BF16 if kind.startswith("B") else F16
    machine = Machine()
    size = 2 * count
    offsets = [16 * lane for lane in range(LANES)]
    low, high = pointers(offsets)
    values = [words(LANES, 110 + place) for place in range(count // 2)]
    registers = {f"R{8 + place}": each(value) for place, value in enumerate(values)}
    machine.run(f"REDG.E.ADD.{kind}.RN.STRONG.GPU desc[UR4][R2.64], R8", R2=low, R3=high, **registers)
    found = machine.bytes_of("global")
    for lane, offset in enumerate(offsets):
        added = [half for value in values for half in pieces(value[lane], 16, False)]
        for i, number in enumerate(added):
            at = offset + 2 * i
            old = int.from_bytes(machine.content["global"][at : at + 2], "little")
            assert int.from_bytes(found[at : at + 2], "little") == fused(old, one(form), number, form)
        assert found[offset + size : offset + 16] == machine.content["global"][offset + size : offset + 16]


@pytest.mark.parametrize(("kind", "count"), [("F32", 1), ("F32x2", 2), ("F32x4", 4)])
def test_sums_of_float32_flush(kind: str, count: int) -> None:
    machine = Machine()
    low, high = pointers([16 * lane for lane in range(LANES)])
    tiny = [1, 0x800000, 0x800001, 0x3F800000, 0x80800003, 0x7FFFFF, 0, 0x80000001]
    there = [[tiny[(lane + place) % 8] for place in range(count)] for lane in range(LANES)]
    added = [
        [tiny[(3 * lane + place) % 8] ^ (lane & 1) << 31 for place in range(count)] for lane in range(LANES)
    ]
    for lane, numbers in enumerate(there):
        machine.space("global").data[0, 16 * lane : 16 * lane + 4 * count] = list(
            struct.pack(f"<{count}I", *numbers)
        )
    registers = {f"R{8 + place}": each([row[place] for row in added]) for place in range(count)}
    machine.run(f"REDG.E.ADD.{kind}.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R8", R2=low, R3=high, **registers)
    found = machine.bytes_of("global")
    for lane in range(LANES):
        for place in range(count):
            result = int.from_bytes(found[16 * lane + 4 * place :][:4], "little")
            x, y = flush(there[lane][place], F32), flush(added[lane][place], F32)
            wanted = flush(fused(x, one(F32), y, F32), F32)
            assert result == wanted or (is_nan(result, F32) and is_nan(wanted, F32))


def test_a_generic_atomic_tells_whether_it_was_done() -> None:
    machine = Machine()
    low, high = pointers([16 * lane for lane in range(LANES)])
    machine.run("ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, R4, desc[UR4][R2.64], R8", R2=low, R3=high, R8=0)
    assert machine.slots[PREDICATE] is True
    machine = Machine()
    machine.resolve = lambda address, active: [
        ("shared", from_array(to_array(address) - GLOBAL_BASE + SHARED_BASE), active)
    ]  # type: ignore[method-assign]
    machine.run("ATOM.E.ADD.F16x2.RN.STRONG.GPU P0, R4, desc[UR4][R2.64], R8", R2=low, R3=high, R8=0x3C003C00)
    assert machine.slots[PREDICATE] is False
    assert machine.bytes_of("shared") == machine.content["shared"]


@pytest.mark.parametrize("shape", [(3, 32), (3, 1), (1, 32), (1, 1)])
def test_words_of_wide_loads_keep_their_bits(shape: tuple[int, int]) -> None:
    """Also those that would be signalling NaN as floats."""
    pairs = np.random.default_rng(3).integers(-(2**31), 2**31, (shape[0], 2 * shape[1])).astype(np.int32)
    pairs[0, 0] = 0x7FA00001
    for which in (0, 1):
        found = to_array(ints(word_of(pairs[:, which::2])))
        assert np.array_equal(found, pairs[:, which::2])


def test_registers_that_are_rz_get_nothing() -> None:
    low, high = pointers(OFFSETS)
    for text in ("LDG.E.64 RZ, desc[UR4][R2.64]", "LDG.E RZ, desc[UR4][R2.64]", "LDC.64 RZ, c[0x3][R8]"):
        machine = Machine().run(text, R2=low, R3=high, R8=0, banks={3: bytes(16)})
        assert {slot for slot, one in enumerate(machine.slots) if one is not None} == {2, 3, 8}
        assert [one[0] for one in machine.touched] == ["load"]
    rows = each([SHARED_BASE + 16 * lane for lane in range(LANES)])
    machine = Machine().run("LDSM.16.M88.2 RZ, [R2]", R2=rows)
    assert {slot for slot, one in enumerate(machine.slots) if one is not None} == {2}
    assert machine.touched == [("ldmatrix", "shared", 16)]


@pytest.mark.parametrize(("width", "pairs"), [("", 0), (".64", 1), (".128", 2)])
@pytest.mark.parametrize("some_unknown", [True, False])
def test_pairs_of_words_that_are_loaded_are_told(width: str, pairs: int, some_unknown: bool) -> None:
    """Of each eight bytes, in the lanes that execute the load and in which all of them are known."""
    told: list[tuple[int, list[int]]] = []
    machine = Machine()
    machine.loaded = SimpleNamespace(
        pair=lambda _, number, words: told.append((number, words.ravel().tolist()))
    )  # type: ignore[assignment]
    if some_unknown:
        machine.space("global").forget(GLOBAL_BASE + OFFSETS[1] + 4, np.int32, True, Poison("lost", None))
    low, high = pointers(OFFSETS)
    machine.run(f"LDG.E{width} R4, desc[UR4][R2.64]", ODD, R2=low, R3=high)
    assert [number for number, _ in told] == list(range(pairs))
    for number, found in told:
        for lane in range(1, LANES, 2):
            raw = machine.content["global"][OFFSETS[lane] + 8 * number :][:8]
            if not (some_unknown and number == 0 and OFFSETS[lane] == OFFSETS[1]):
                assert found[lane] == int.from_bytes(raw, "little", signed=True)


@pytest.mark.parametrize("width", ["", ".U8", ".64"])
def test_a_word_that_is_unknown_in_some_lanes_is_stored_in_the_others(width: str) -> None:
    machine, values = Machine(), words(LANES, 7)
    known = [lane % 3 > 0 for lane in range(LANES)]
    mask: Any = from_bools(np.array([known]))
    offsets = [16 * lane for lane in range(LANES)]
    low, high = pointers(offsets)
    part = Partial(each(values), mask, Poison("lost", None))
    machine.run(f"STG.E{width} desc[UR4][R2.64], R4", ODD, R2=low, R3=high, R4=part, R5=each(values))
    found, lost = machine.space("global").get(0, np.arange(16 * LANES) + GLOBAL_BASE)
    assert lost is not None and "lost" in lost[1].story()
    size = 1 if width == ".U8" else 4
    unknown = {16 * lane + byte for lane in range(1, LANES, 2) if not known[lane] for byte in range(size)}
    assert {*np.flatnonzero(lost[0]).tolist()} == unknown
    expected = bytearray(machine.content["global"])
    for lane in range(1, LANES, 2):
        raw = values[lane].to_bytes(4, "little") * (2 if width == ".64" else 1)
        expected[16 * lane : 16 * lane + (1 if width == ".U8" else len(raw))] = raw[
            : 1 if width == ".U8" else 8
        ]
    assert all(found[at] == expected[at] for at in range(16 * LANES) if at not in unknown)


def test_sums_of_ordinary_halves_and_of_zeros_and_tiny_numbers() -> None:
    """What is a sum of float32 that may be tiny is asked of those alone."""
    machine = Machine()
    low, high = pointers([16 * lane for lane in range(LANES)])
    machine.space("global").data[0, : 16 * LANES] = list(struct.pack("<e", 1.5)) * (8 * LANES)
    machine.run("REDG.E.ADD.F16x2.RN.STRONG.GPU desc[UR4][R2.64], R8", R2=low, R3=high, R8=0x40804080)
    assert (
        machine.bytes_of("global")[: 16 * LANES]
        == (struct.pack("<2e", 3.75, 3.75) + struct.pack("<6e", *[1.5] * 6)) * LANES
    )
    for there, added, total in ((1, 0, 0), (0, 1, 0), (0x80000001, 0, 0), (0x3F800000, 1, 0x3F800000)):
        machine = Machine()
        machine.space("global").data[0, : 16 * LANES] = list(struct.pack("<I", there)) * (4 * LANES)
        machine.run("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R8", R2=low, R3=high, R8=added)
        assert int.from_bytes(machine.bytes_of("global")[:4], "little") & 0x7FFFFFFF == total


@pytest.mark.parametrize(("text", "change"), [("0x5", 5), ("RZ", 0), ("-R8", -9), ("R8", 9)])
def test_operands_of_atomics(text: str, change: int) -> None:
    machine = Machine()
    low, _ = pointers([4 * lane for lane in range(LANES)], SHARED_BASE)
    machine.run(f"ATOMS.ADD R4, [R2], {text}", R2=low, R8=9)
    before, after = (
        struct.unpack_from(f"<{LANES}I", one)
        for one in (machine.content["shared"], machine.bytes_of("shared"))
    )
    assert list(after) == [(word + change) % 2**32 for word in before]
    assert machine.word("R4") == list(before)


def test_all_bits_of_a_pair_are_in_the_instruction() -> None:
    machine_words = [int(one) & 0xFFFFFFFF for one in compute("MOV.64 R0, 0x1122334455667788", {})]
    assert machine_words == [0x55667788, 0x11223344]
