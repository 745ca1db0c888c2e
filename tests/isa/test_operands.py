"""What is read of an operand: signs, parts, constants, immediates; and which operands are refused."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from memsim.isa.op import (
    SLOTS,
    Address,
    Constant,
    Immediate,
    Operand,
    Predicate,
    Register,
    Symbolic,
    Unsupported,
)
from memsim.isa.readers import OF_GROUPS, Binder, is_negative
from memsim.sass.decode import parse_operand
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import to_bools
from memsim.state.registers import from_array, ints, to_array

#: Bank 0: a word, its negative, float32, two float16, float64.
BANK = struct.pack("<iifeedq", 0x12345678, -7, -2.5, 1.5, -0.25, -3.75, -5)
BINDER = Binder({0: BANK}, {"table": 0x12_89ABCDEF}, of_groups=0x100)
WORD, MINUS_7, SINGLE, HALVES, DOUBLE, LONG = (Constant(0, at) for at in (0, 4, 8, 12, 16, 24))


def operand(text: str) -> Operand:
    found = parse_operand(text)
    assert found is not None
    return found


def registers(**values: Any) -> list[Any]:
    found: list[Any] = [None] * (SLOTS + 2)
    for name, value in values.items():
        found[getattr(operand(name), "slot")] = value  # noqa: B009
    return found


def number(value: Any) -> int:
    return int(to_array(ints(value)).reshape(-1)[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("R1", -0x7F6E5D4C),
        ("-R1", 0x7F6E5D4C),
        ("~R1", 0x7F6E5D4B),
        ("RZ", 0),
        ("~RZ", -1),
        ("R1.B0", 0xB4),
        ("R1.B1", 0xA2),
        ("R1.B2", 0x91),
        ("R1.B3", 0x80),
        ("R1.H0", 0xA2B4),
        ("R1.H1", 0x8091),
        ("R1.H0_H0", 0xA2B4),
        ("R1.H1_H1", 0x8091),
        ("0x7fffffff", 0x7FFFFFFF),
        ("0xffffffff", -1),
        ("-0x1", -1),
    ],
)
def test_words(text: str, value: int) -> None:
    assert number(BINDER.word(operand(text))(registers(R1=-0x7F6E5D4C))) == value


def test_words_that_are_constants() -> None:
    empty = registers()
    assert BINDER.word(WORD)(empty) == 0x12345678
    assert BINDER.word(Constant(0, 4, negated=True))(empty) == 7
    assert BINDER.word(Constant(0, 4, inverted=True))(empty) == 6
    assert BINDER.unsigned_word(MINUS_7)(empty) == 2**32 - 7
    assert BINDER.word(Immediate(1.0))(empty) == 0x3F800000
    assert BINDER.pair(LONG)(empty) == -5
    assert BINDER.pair(Constant(0, 24, negated=True))(empty) == 5


def test_words_of_a_symbols_address() -> None:
    assert BINDER.word(Symbolic("table", False))([]) == 0x89ABCDEF - 2**32
    assert BINDER.word(Symbolic("table", True))([]) == 0x12
    with pytest.raises(Poisoned, match="the address of other is unknown"):
        BINDER.word(Symbolic("other", False))


def test_pairs() -> None:
    held = registers(R2=-2, R3=1)
    whole = 2**32 + 2**32 - 2
    assert number(BINDER.pair(operand("R2"))(held)) == whole
    assert number(BINDER.pair(Register(2, negated=True))(held)) == -whole
    assert number(BINDER.pair(Register(2, inverted=True))(held)) == -whole - 1
    assert BINDER.pair(operand("RZ"))(held) == 0
    assert BINDER.pair(Immediate(0xFFFFFFFF))(held) == -1
    assert BINDER.unsigned_pair(Immediate(0xFFFFFFFF))(held) == 0xFFFFFFFF


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[R2.64]", 2**32 + 16),
        ("[R2.64+0x8]", 2**32 + 24),
        ("[R2.64+-0x8]", 2**32 + 8),
        ("[R2.64+UR4+0x8]", 2**32 + 24 + 2**33 + 1),
        ("[R6.U32+UR4]", 2**32 - 4 + 2**33 + 1),
        ("[UR4]", 2**33 + 1),
        ("[0x40]", 0x40),
    ],
)
def test_addresses_of_64_bits(text: str, value: int) -> None:
    held = registers(R2=16, R3=1, R6=-4, UR4=1, UR5=2)
    assert number(BINDER.address(operand(text))(held)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[R2]", 12),
        ("[R2+0x4]", 16),
        ("[R2.X4+0x4]", 52),
        ("[R2.X8+UR4]", 101),
        ("[R2.X16+UR4+-0x2]", 195),
        ("[UR4]", 5),
        ("[RZ+0x7]", 7),
    ],
)
def test_addresses_of_32_bits(text: str, value: int) -> None:
    assert number(BINDER.short_address(operand(text))(registers(R2=12, UR4=5))) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("R1", -2.5), ("-R1", 2.5), ("|R1|", 2.5), ("-|R1|", -2.5), ("RZ", 0.0), ("-RZ", -0.0), ("1.5", 1.5)],
)
def test_singles(text: str, value: float) -> None:
    bits = int(np.float32(-2.5).view(np.int32))
    found = float(BINDER.single(operand(text))(registers(R1=bits))[0, 0])
    assert struct.pack("<f", found) == struct.pack("<f", value)


def test_floats_that_are_constants() -> None:
    assert BINDER.single(SINGLE)([])[0, 0] == -2.5
    assert BINDER.single(Constant(0, 8, absolute=True))([])[0, 0] == 2.5
    assert BINDER.double(DOUBLE)([])[0, 0] == -3.75
    assert BINDER.double(Constant(0, 16, negated=True))([])[0, 0] == 3.75
    assert BINDER.double(Constant(0, 16, absolute=True, negated=True))([])[0, 0] == -3.75
    assert BINDER.double(Immediate(0.1))([])[0, 0] == 0.1
    assert BINDER.double(Immediate(0x40080000))([])[0, 0] == 3.0  # the upper word of its bits
    assert BINDER.single(Immediate(0x40400000))([])[0, 0] == 3.0


@pytest.mark.parametrize(
    ("part", "how", "halves"),
    [
        ("", {}, (1.5, -0.25)),
        ("H0_H0", {}, (1.5, 1.5)),
        ("H1_H1", {}, (-0.25, -0.25)),
        ("H1_H0", {}, (1.5, -0.25)),
        ("", {"negated": True}, (-1.5, 0.25)),
        ("", {"absolute": True}, (1.5, 0.25)),
        ("H1_H1", {"absolute": True, "negated": True}, (-0.25, -0.25)),
    ],
)
@pytest.mark.parametrize("of_bank", [True, False])
def test_two_halves(part: str, how: dict[str, bool], halves: tuple[float, float], of_bank: bool) -> None:
    one = Constant(0, 12, part=part, **how) if of_bank else Register(1, part=part, **how)
    found = BINDER.halves(one)(registers(R1=struct.unpack("<i", BANK[12:16])[0]))
    assert tuple(float(half[0, 0]) for half in found) == halves


def test_halves_that_are_immediates() -> None:
    def found(one: Immediate, bf16: bool = False) -> list[float]:
        read = BINDER.bfloat_halves(one) if bf16 else BINDER.halves(one)
        return [float(half[0, 0]) for half in read([])]

    assert found(Immediate(1.5)) == [1.5, 1.5]
    assert found(Immediate(1.5, 2.0)) == [2.0, 1.5]  # the upper one is printed first
    assert found(Immediate(0x3C004000)) == [2.0, 1.0]
    assert found(Immediate(0x3F804000), bf16=True) == [2.0, 1.0]


def test_one_half_as_float32() -> None:
    held = registers(R1=struct.unpack("<i", BANK[12:16])[0])
    for part, value in (("H0_H0", 1.5), ("H1_H1", -0.25)):
        found = BINDER.single(Register(1, part=part))(held)
        assert found.dtype == np.float32 and found[0, 0] == value


@pytest.mark.parametrize(("text", "holds"), [("P1", True), ("!P1", False), ("PT", True), ("!PT", False)])
def test_predicates(text: str, holds: bool) -> None:
    assert BINDER.predicate(operand(text))(registers(P1=True)) is holds


@pytest.mark.parametrize("inverted", [False, True])
def test_the_sign_of_a_register_as_a_predicate(inverted: bool) -> None:
    read = BINDER.predicate(Register(2, part="SIGN", inverted=inverted))
    found = read(registers(R2=from_array(np.array([[-1, 0, 5, -(2**31)]]))))
    assert to_bools(found)[0].tolist() == [sign != inverted for sign in (True, False, False, True)]
    assert is_negative(-1) is True and is_negative(0) is False


@pytest.mark.parametrize("low", range(-2, 3))
@pytest.mark.parametrize("high", range(-2, 3))
def test_signs_of_words_between_bounds(low: int, high: int) -> None:
    found = is_negative(from_array(np.array([[low, high]])))
    assert np.broadcast_to(to_bools(found), (1, 2)).tolist() == [[low < 0, high < 0]]


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("word", Register(1, absolute=True)),
        ("word", Constant(0, 0, absolute=True)),
        ("word", Register(1, part="H1_H0")),
        ("word", Constant(0, 0, part="H0_H0")),
        ("word", Constant(0, 0, Register(3))),
        ("word", Predicate(1)),
        ("pair", Predicate(1)),
        ("pair", Immediate(1.5)),
        ("single", Register(1, inverted=True)),
        ("single", Constant(0, 0, inverted=True)),
        ("single", Register(1, part="B0")),
        ("single", Predicate(1)),
        ("double", Predicate(1)),
        ("halves", Register(1, part="B0")),
        ("halves", Predicate(1)),
        ("predicate", Register(1)),
        ("predicate", Immediate(1)),
        ("address", Register(1)),
        ("short_address", Immediate(1)),
    ],
)
def test_operands_that_are_refused(kind: str, one: Operand) -> None:
    with pytest.raises(Unsupported):
        getattr(BINDER, kind)(one)


def test_a_constant_with_index_rz_has_none() -> None:
    assert BINDER.word(Constant(0, 4, Register(None)))([]) == -7


def test_a_constant_that_is_not_there_is_unknown_when_it_is_read() -> None:
    for offset, told in ((0x100, OF_GROUPS), (0x104, "")):
        read = BINDER.word(Constant(0, offset))
        with pytest.raises(Poisoned) as raised:
            read([])
        assert raised.value.poison.reason == f"c[0x0][{offset:#x}] is unknown{told}"
    with pytest.raises(Poisoned) as raised:
        Binder({3: b""}, of_groups=8).constant(3, 8, 4)
    assert raised.value.poison.reason == "c[0x3][0x8] is unknown"


def test_undefined_bits_are_zero_where_a_part_is_kept() -> None:
    read = BINDER.kept_word(operand("~R1"))
    held = registers()
    assert read(held) == -1 and held[1] is None
    held[1] = 5
    assert read(held) == -6 and held[1] == 5
    held[1] = Poison("loaded", None)
    with pytest.raises(Poisoned, match="loaded"):
        read(held)
    assert isinstance(held[1], Poison)
    assert BINDER.kept_word(operand("0x7"))(held) == 7 and BINDER.kept_word(operand("RZ"))(held) == 0


def test_an_address_without_registers_is_its_offset() -> None:
    assert BINDER.address(Address(None, None, 8))([]) == 8
    assert BINDER.short_address(Address(Register(None), None, 8))([]) == 8
