"""Conversions against fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest

from tests.isa.harness import DOUBLES, SINGLES, WORDS, check, compute, near, words
from tests.isa.oracle import (
    BF16,
    F16,
    F32,
    F64,
    MODES,
    Format,
    decode,
    encode,
    flush,
    is_nan,
    one,
    pieces,
    rounded,
    signed,
    unsigned,
)
from tests.isa.test_double import halves

ONE = one(F32)
NUMBERS = (
    words(64, 60, SINGLES)
    + near(32, 61, ONE, 23)
    + near(32, 62, ONE + (12 << 23), 23)
    + near(32, 63, ONE + (31 << 23), 23)
)
INTEGERS = [*words(96, 64), 0x1000001, 0x1000003, 0x7FFFFFBF, 0xFFFFFF7F]
WIDE = words(48, 65, DOUBLES, 64) + near(48, 66, one(F64), 52) + near(32, 67, one(F64) + (31 << 52), 52)


def nan_of(form: Format):  # type: ignore[no-untyped-def]
    return lambda a, b: is_nan(a, form) and is_nan(b, form)


@pytest.mark.parametrize("mode", MODES)
def test_integers_to_floats(mode: str) -> None:
    name = MODES[mode]
    check(f"I2FP.F32.S32{mode} R0, R1", lambda a: encode(Fraction(signed(a)), F32, name), R1=INTEGERS)
    check(f"UI2F.U32{mode} UR4, UR5", lambda a: encode(Fraction(a), F32, name), UR5=INTEGERS)
    check(f"I2FP.F32.U32{mode} R0, R1", lambda a: encode(Fraction(a), F32, name), R1=INTEGERS)
    check(f"I2F.F16{mode} R0, R1", lambda a: encode(Fraction(signed(a)), F16, name), R1=INTEGERS)

    def wide(is_signed: bool, form: Format):  # type: ignore[no-untyped-def]
        def oracle(low: int, high: int) -> int:
            value = (signed(high) if is_signed else high) << 32 | low
            return encode(Fraction(value), form, name)

        return oracle

    pairs = halves(words(64, 68, [*WORDS, 1 << 63, (1 << 64) - 1, (1 << 53) + 1], 64))
    check(f"I2F.S64{mode} R0, R2", wide(True, F32), **pairs)
    check(f"I2F.U64{mode} R0, R2", wide(False, F32), **pairs)

    def in_two(low: int, high: int) -> tuple[int, int]:
        found = wide(False, F64)(low, high)
        return unsigned(found), found >> 32

    check(f"I2F.F64.U64{mode} R0, R2", in_two, **pairs)


@pytest.mark.parametrize("sign", "SU")
@pytest.mark.parametrize(
    ("part", "at", "bits"),
    [*((f".B{i}", 8 * i, 8) for i in range(4)), ("", 0, 16), (".H0", 0, 16), (".H1", 16, 16)],
)
def test_parts_of_integers_to_floats(part: str, at: int, bits: int, sign: str) -> None:
    def oracle(a: int) -> int:
        (found,) = pieces(a >> at & (1 << bits) - 1, bits, sign == "S")[:1]
        return encode(Fraction(found), F32)

    check(f"I2F.{sign}{bits} R0, R1{part}", oracle, R1=words(48, 77))


NARROW = [f"{sign}{bits}" for sign in "US" for bits in (8, 16, 32)]


@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("of", NARROW)
@pytest.mark.parametrize("to", NARROW)
def test_integers_to_integers(to: str, of: str, saturates: bool) -> None:
    size, bits = int(to[1:]), int(of[1:])

    def oracle(a: int) -> int:
        value = pieces(a, bits, of[0] == "S")[0]
        if saturates:
            least, most = (-(2 ** (size - 1)), 2 ** (size - 1) - 1) if to[0] == "S" else (0, 2**size - 1)
            return unsigned(min(max(value, least), most))
        return unsigned(pieces(unsigned(value), size, to[0] == "S")[0])

    check(f"I2I.{to}.{of}{'.SAT' * saturates} R0, R1", oracle, R1=words(48, 78))


WHOLE = {"": "rn", ".TRUNC": "rz", ".FLOOR": "rm", ".CEIL": "rp"}


def whole(bits: int, form: Format, mode: str, least: int, most: int, nan: int) -> int:
    _, value = decode(bits, form)
    if isinstance(value, float):
        return nan if math.isnan(value) else (most if value > 0 else least)
    return min(max(int(rounded(value, Fraction(1), mode)), least), most)


@pytest.mark.parametrize("mode", WHOLE)
def test_floats_to_integers(mode: str) -> None:
    name = WHOLE[mode]
    low, high = -(2**31), 2**31 - 1
    check(f"F2I{mode}.NTZ R0, R1", lambda a: unsigned(whole(a, F32, name, low, high, 0)), R1=NUMBERS)
    check(f"F2I.U32{mode}.NTZ R0, R1", lambda a: whole(a, F32, name, 0, 2**32 - 1, 0), R1=NUMBERS)
    flushed = lambda a: whole(flush(a, F32), F32, name, 0, 2**32 - 1, 0)  # noqa: E731
    check(f"F2I.FTZ.U32{mode}.NTZ R0, R1", flushed, R1=NUMBERS)

    def wide(a: int) -> tuple[int, int]:
        found = whole(a, F32, name, -(2**63), 2**63 - 1, -(2**63))
        return unsigned(found), unsigned(found >> 32)

    check(f"F2I.S64{mode} R0, R1", wide, R1=NUMBERS)

    def of_double(a: int, b: int) -> int:
        return unsigned(whole(a | b << 32, F64, name, low, high, low))

    check(f"F2I.F64{mode} R0, R2", of_double, **halves(WIDE))


@pytest.mark.parametrize("kind", [F16, BF16], ids=["F16", "BF16"])
@pytest.mark.parametrize("mode", WHOLE)
def test_the_lower_half_is_converted(mode: str, kind: Format) -> None:
    """The upper one is another number."""
    name, given = "F16" if kind is F16 else "BF16", [*words(40, 79), 0x3C004900, 0x42484049, 0x7C00FC00]
    low, high = -(2**31), 2**31 - 1
    wanted = lambda a: unsigned(whole(a & 0xFFFF, kind, WHOLE[mode], low, high, 0))  # noqa: E731
    check(f"F2I.{name}{mode} R0, R1", wanted, R1=given)
    numbers = [a for a in given if not is_nan(a & 0xFFFF, kind)]

    def widened(a: int) -> int:
        sign, value = decode(a & 0xFFFF, kind)
        return encode(value, F32, zero_sign=sign)

    check(f"F2F.F32.{name} R0, R1", widened, R1=numbers)


@pytest.mark.parametrize("mode", WHOLE)
def test_to_integral_numbers(mode: str) -> None:
    def oracle(a: int) -> int:
        sign, value = decode(a, F32)
        return encode(
            value if isinstance(value, float) else rounded(value, Fraction(1), WHOLE[mode]),
            F32,
            zero_sign=sign,
        )

    check(f"FRND{mode} R0, R1", oracle, nan_of(F32), R1=NUMBERS)


@pytest.mark.parametrize("mode", MODES)
def test_between_floats(mode: str) -> None:
    def narrow(low: int, high: int) -> int:
        sign, value = decode(low | high << 32, F64)
        return encode(value, F32, MODES[mode], sign)

    check(f"F2F.F32.F64{mode} R0, R2", narrow, nan_of(F32), **halves(WIDE))

    def widened(a: int) -> tuple[int, int]:
        sign, value = decode(a, F32)
        found = encode(value, F64, zero_sign=sign)
        return unsigned(found), found >> 32

    numbers = [a for a in NUMBERS if not is_nan(a, F32)]
    check("F2F.F64.F32 R0, R1", widened, R1=numbers)


@pytest.mark.parametrize("name", [".F16.F32", ".BF16.F32", "", ".BF16"])  # the last two from sm_80 to sm_87
@pytest.mark.parametrize("mode", ["", ".RZ"])
def test_packing(name: str, mode: str) -> None:
    form = BF16 if "BF16" in name else F16

    def half(bits: int, relu: bool = False) -> int:
        sign, value = decode(bits, F32)
        found = encode(value, form, MODES[mode], sign)
        return 0 if relu and found & 0x8000 else found

    a, b = NUMBERS, NUMBERS[::-1]
    check(f"F2FP{name}.PACK_AB{mode} R0, R1, R2", lambda x, y: half(x) << 16 | half(y), R1=a, R2=b)
    relu = lambda x, y: half(x, True) << 16 | half(y, True)  # noqa: E731
    check(f"F2FP.RELU{name}.PACK_AB{mode} R0, R1, R2", relu, R1=a, R2=b)
    check(f"F2FP.RELU{name}.MERGE_C{mode} R0, R1, RZ", lambda x: half(x, True), R1=a)


def test_tf32() -> None:
    def oracle(a: int) -> int:
        sign, value = decode(a, F32)
        if value != value:
            return 0x7FFFE000
        return encode(value, Format(8, 10, 0), "rn", sign) << 13

    halfway = [0x3F801000, 0x3F803000, 0xBF801000, 0x3F800FFF]
    check("F2FP.TF32.F32.PACK_B R0, R1", oracle, R1=NUMBERS + halfway)


@pytest.mark.parametrize(("kind", "least", "most"), [("S8", -128, 127), ("U8", 0, 255)])
def test_two_bytes_of_integers(kind: str, least: int, most: int) -> None:
    numbers = [
        -1e9,
        -1000.0,
        -129.0,
        -128.0,
        -127.4,
        -1.6,
        0.4,
        126.7,
        127.0,
        128.0,
        254.7,
        255.0,
        256.0,
        1e9,
    ]
    given = [struct.unpack("<I", struct.pack("<f", number))[0] for number in numbers * 2]

    def at_least_and_at_most(bits: int) -> int:
        (number,) = struct.unpack("<f", struct.pack("<I", bits))
        return min(max(round(number), least), most) & 0xFF

    packed = lambda a, b: at_least_and_at_most(a) << 8 | at_least_and_at_most(b)  # noqa: E731
    check(f"F2IP.{kind}.F32.NTZ R0, R1, R2, RZ", packed, R1=given, R2=given[::-1])


def byte(value: object, exponent: int, mantissa: int, largest: int, sign: int) -> int:
    """The nearest 8-bit float, the largest where it is too large."""
    if isinstance(value, float) and math.isnan(value):
        return 0x7F
    form = Format(exponent, mantissa, 0x7F)
    bias = form.bias
    size = abs(value) if not isinstance(value, float) else Fraction(10) ** 9  # type: ignore[arg-type]
    for code in range(largest, -1, -1):  # plain search: there are few
        top, low = code >> mantissa, code & ((1 << mantissa) - 1)
        number = Fraction(low + (1 << mantissa if top else 0)) * Fraction(2) ** (
            max(top, 1) - bias - mantissa
        )
        if number <= size:
            if code == largest:
                return sign << 7 | code
            above = code + 1
            top, low = above >> mantissa, above & ((1 << mantissa) - 1)
            upper = Fraction(low + (1 << mantissa if top else 0)) * Fraction(2) ** (
                max(top, 1) - bias - mantissa
            )
            down, up = size - number, upper - size
            return sign << 7 | (code if down < up or (down == up and code % 2 == 0) else above)
    raise AssertionError


@pytest.mark.some(1)
@pytest.mark.parametrize(("name", "shape"), [("E4M3", (4, 3, 0x7E)), ("E5M2", (5, 2, 0x7B))])
def test_floats_of_8_bits(name: str, shape: tuple[int, int, int]) -> None:
    def code(bits: int) -> int:
        sign, value = decode(bits, F32)
        return byte(value, *shape, sign)

    a = NUMBERS[:100] + [ONE + (step << 19) for step in range(28)]
    check(
        f"F2FP.SATFINITE.{name}.F32.PACK_AB_MERGE_C R0, R1, R2, RZ",
        lambda x, y: code(x) << 8 | code(y),
        R1=a,
        R2=a[::-1],
    )

    def half(x: int) -> int:
        (found,) = compute(f"F2FP.F16.{name}.UNPACK_B R0, R1", {"R1": x})
        return int(found) & 0xFFFF

    for x in range(256):  # there and back
        sign, value = decode(half(x), F16)
        if value != value or (isinstance(value, float) and math.isinf(value)):
            assert x & 0x7F >= shape[2], hex(x)
            continue
        assert byte(value, *shape, sign) == x


def test_float64_to_float16_keeps_what_a_nan_says() -> None:
    (found,) = compute("F2F.F16.F64 R0, R2", {"R2": 0x471C445C, "R3": 0xFFF4F8B5 - 2**32})
    assert int(found) & 0xFFFF == 0xFF3E
