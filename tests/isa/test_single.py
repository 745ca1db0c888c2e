"""float32 instructions against fractions."""

from __future__ import annotations

import math
import struct

import pytest

from tests.isa.harness import SINGLES, check, compute, near, words
from tests.isa.oracle import F16, F32, MODES, ORDER, decode, encode, flush, fused, is_nan, one, signed

ONE = one(F32)
EDGES = [words(64, seed, SINGLES) for seed in range(20, 23)]
CLOSE = [near(64, seed, ONE, 23) for seed in range(23, 26)]
A, B, C = (edge + close for edge, close in zip(EDGES, CLOSE))


def nan(a: int, b: int) -> bool:
    return is_nan(a, F32) and is_nan(b, F32)


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic(mode: str) -> None:
    name = MODES[mode]
    check(f"FADD{mode} R0, R1, R2", lambda a, b: fused(a, ONE, b, F32, name), nan, R1=A, R2=B)
    check(f"FMUL{mode} R0, R1, R2", lambda a, b: fused(a, b, None, F32, name), nan, R1=A, R2=B)
    check(f"FFMA{mode} R0, R1, R2, R3", lambda a, b, c: fused(a, b, c, F32, name), nan, R1=A, R2=B, R3=C)
    uniform = f"UFFMA{mode} UR4, UR5, UR6, UR7"
    check(uniform, lambda a, b, c: fused(a, b, c, F32, name), nan, UR5=A, UR6=B, UR7=C)


@pytest.mark.parametrize(
    ("name", "power"), [("D2", -1), ("D4", -2), ("D8", -3), ("M2", 1), ("M4", 2), ("M8", 3)]
)
def test_products_are_divided_and_multiplied_by_powers_of_two(name: str, power: int) -> None:
    oracle = lambda a, b: fused(a, b + (power << 23), None, F32)  # noqa: E731
    check(f"FMUL.{name} R0, R1, R2", oracle, R1=CLOSE[0], R2=CLOSE[1])


def test_signs_and_absolute_values() -> None:
    sign = F32.sign
    oracle = lambda a, b: fused(a ^ sign, ONE, b & ~sign, F32)  # noqa: E731
    check("FADD R0, -R1, |R2|", oracle, nan, R1=A, R2=B)


def saturated(bits: int) -> int:
    _, value = decode(bits, F32)
    if math.isnan(value) or value <= 0:
        return 0
    return bits if value < 1 else ONE


def test_saturation() -> None:
    check("FADD.SAT R0, R1, R2", lambda a, b: saturated(fused(a, ONE, b, F32)), R1=A, R2=B)
    check("FFMA.SAT R0, R1, R2, R3", lambda a, b, c: saturated(fused(a, b, c, F32)), R1=A, R2=B, R3=C)


def tiny_is_zero(a: int, b: int, c: int | None) -> int:
    """What is too small for a normal number before it is rounded to the exponents that there are, is zero."""
    a, b = flush(a, F32), flush(b, F32)
    c = None if c is None else flush(c, F32)
    found = fused(a, b, c, F32)
    if is_nan(found, F32) or found & F32.infinity == F32.infinity:
        return found
    (_, x), (_, y), z = decode(a, F32), decode(b, F32), decode(c, F32)[1] if c is not None else 0
    total = abs(x * y + z)
    if total and total < F32.tiny:
        scaled = encode(total / F32.tiny, F32)
        return found & F32.sign if scaled < ONE else found
    return flush(found, F32)


SMALL = [
    word
    for word in (0x800000, 0x800001, 0xFFFFFF, 0x3F7FFFFF, 0x3F000000, 0x3F800001, 1, 0x80000001)
    for _ in range(8)
]
OTHER = [
    word
    for _ in range(8)
    for word in (0x800000, 0xFFFFFF, 0x3F7FFFFF, 0x3F000000, 0x3F800001, 0x80800000, 0, 0x7FFFFF)
]


def test_flushing() -> None:
    for a, b in ((A, B), (SMALL, OTHER)):
        check(
            "FADD.FTZ R0, R1, R2",
            lambda x, y: flush(fused(flush(x, F32), ONE, flush(y, F32), F32), F32),
            nan,
            R1=a,
            R2=b,
        )
        check("FMUL.FTZ R0, R1, R2", lambda x, y: tiny_is_zero(x, y, None), nan, R1=a, R2=b)
        c = [0x80000001] * len(a)
        check("FFMA.FTZ R0, R1, R2, R3", tiny_is_zero, nan, R1=a, R2=b, R3=c)


def picked(a: int, b: int, least: bool) -> int:
    if is_nan(a, F32) or is_nan(b, F32):
        return b if is_nan(a, F32) else a
    x, y = (-(w & 0x7FFFFFFF) if w >> 31 else w + 1 for w in (a, b))  # -0 is below 0
    return a if (x <= y if least else x >= y) else b


def test_minimum_and_maximum() -> None:
    check("FMNMX R0, R1, R2, P0", picked, nan, R1=A, R2=B, P0=[lane % 2 == 0 for lane in range(128)])
    any_nan = lambda a, b: F32.nan if is_nan(a, F32) or is_nan(b, F32) else picked(a, b, False)  # noqa: E731
    check("FMNMX.NAN R0, R1, R2, !PT", any_nan, nan, R1=A, R2=B)

    def signs(a: int, b: int) -> int:
        found = picked(a & ~F32.sign, b & ~F32.sign, True)
        return found if is_nan(found, F32) else found | ((a ^ b) & F32.sign)

    check("FMNMX.XORSIGN R0, |R1|, |R2|, PT", signs, nan, R1=A, R2=B)


@pytest.mark.parametrize("how", [*ORDER, *(f"{name}U" for name in ORDER), "NUM", "NAN"])
def test_comparisons(how: str) -> None:
    def oracle(a: int, b: int, p: bool) -> tuple[bool, bool]:
        unordered = is_nan(a, F32) or is_nan(b, F32)
        if how in ("NUM", "NAN"):
            found = unordered == (how == "NAN")
        else:
            values = (decode(a, F32)[1], decode(b, F32)[1])
            found = how.endswith("U") if unordered else ORDER[how.removesuffix("U")](*values)
        return found and p, not found and p

    equal = [*B[:64], *A[64:]]
    check(
        f"FSETP.{how}.AND P0, P1, R1, R2, P2",
        oracle,
        R1=A,
        R2=equal,
        P2=[lane % 5 > 0 for lane in range(128)],
    )
    check(
        f"FSET.BF.{how}.AND R0, R1, R2, PT", lambda a, b: ONE if oracle(a, b, True)[0] else 0, R1=A, R2=equal
    )


def test_whether_a_division_is_slow() -> None:
    """The fast way is taken for these exponents, as an H200 does for all pairs of them."""
    for top in (0, 1, 24, 25, 26, 100, 127, 251, 252, 253, 254, 255):
        for bottom in (0, 1, 2, 3, 100, 127, 128, 129, 149, 150, 151, 250, 251, 252, 255):
            fast = 25 <= top <= 254 and 2 <= bottom <= 251 and -124 <= top - bottom <= 126
            for mantissa in (0, 1, 0x7FFFFF):
                a, b = (top << 23) | mantissa, (bottom << 23) | (mantissa ^ 1) | 1 << 31
                (found,) = compute("FCHK P0, R1, R2", {"R1": a, "R2": signed(b)})
                assert found == (not fast), (top, bottom)


def close(units: int) -> object:
    def alike(a: int, b: int) -> bool:
        return nan(a, b) or (a >> 31 == b >> 31 and abs(a - b) <= units)

    return alike


def real(word: int) -> float:
    return struct.unpack("<f", struct.pack("<I", word))[0]


def to_bits(value: float) -> int:
    if math.isnan(value):
        return F32.nan
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return F32.infinity | (F32.sign if value < 0 else 0)


def reciprocal(word: int) -> int:
    word = flush(word, F32)
    _, value = decode(word, F32)
    if value == 0:
        return word | F32.infinity
    if isinstance(value, float) and math.isinf(value):
        return word & F32.sign
    return flush(encode(1 / value if isinstance(value, float) else value**-1, F32, zero_sign=word >> 31), F32)


def root(word: int, inverse: bool) -> int:
    value = real(flush(word, F32))
    if math.isnan(value) or value < 0:
        return F32.nan
    if value == 0:
        return flush(word, F32) | (F32.infinity if inverse else 0)
    if math.isinf(value):
        return 0 if inverse else word
    return to_bits(1 / math.sqrt(value) if inverse else math.sqrt(value))


def power(word: int) -> int:
    value = real(flush(word, F32))
    if math.isnan(value):
        return F32.nan
    return flush(to_bits(2.0 ** max(value, -1000.0)) if value < 128 else F32.infinity, F32)


def logarithm(word: int) -> int:
    value = real(flush(word, F32))
    if math.isnan(value) or value < 0:
        return F32.nan
    return to_bits(math.log2(value) if value else -math.inf)


def within(relative: float, absolute: float = 0.0) -> object:
    """Do two results differ by no more than the PTX ISA says of an approximation?"""

    def alike(a: int, b: int) -> bool:
        if nan(a, b) or a == b:
            return True
        found, wanted = real(a), real(b)
        return abs(found - wanted) <= max(absolute, relative * abs(wanted))

    return alike


def test_functions() -> None:
    """By the error bounds of PTX; bit for bit: test_multi_function.py."""
    check("MUFU.RCP R0, R1", reciprocal, close(1), R1=A)
    check("MUFU.RSQ R0, R1", lambda a: root(a, True), within(2**-22.9), R1=A)
    check("MUFU.SQRT R0, R1", lambda a: root(a, False), within(2**-23), R1=A)
    check("MUFU.EX2 R0, R1", power, within(2**-22), R1=A)
    check("MUFU.LG2 R0, R1", logarithm, within(2**-22, 2**-22), R1=A)
    check("MUFU.TANH R0, R1", lambda a: to_bits(math.tanh(real(a))), within(2**-11), R1=A)


def test_whole_and_quarter_turns_are_exact() -> None:
    for turns, sine, cosine in (
        (0.0, 0, 1),
        (0.25, 1, 0),
        (0.5, 0, -1),
        (-0.25, -1, 0),
        (4194304.5, 0, -1),
        (3e30, 0, 1),
    ):
        (found,) = compute("MUFU.SIN R0, R1", {"R1": signed(to_bits(turns))})
        assert found == sine
        (found,) = compute("MUFU.COS R0, R1", {"R1": signed(to_bits(turns))})
        assert found == cosine
    (found,) = compute("MUFU.SIN R0, R1", {"R1": signed(to_bits(math.inf))})
    assert math.isnan(found[0, 0])


@pytest.mark.parametrize("value", [33.0, -1.5, 7.25e200, 3e-308, 1e-310, 0.0, math.inf])
def test_estimates_of_float64(value: float) -> None:
    high = struct.unpack("<q", struct.pack("<d", value))[0] >> 32
    read = struct.unpack("<d", struct.pack("<q", high << 32))[0]
    expected = math.copysign(math.inf, value) if abs(read) < 2.0**-1022 else 1 / read
    (found,) = compute("MUFU.RCP64H R1, R3", {"R3": high})
    near_one = struct.unpack("<q", struct.pack("<d", expected))[0] >> 32
    assert abs(int(found) - near_one) <= 1
    if value in (33.0, -1.5):  # a listing prints the number as float64
        (from_text,) = compute(f"MUFU.RCP64H R1, {value:g}", {})
        assert from_text == found


def test_functions_of_halves() -> None:
    word = 0x3C00 | 0x4000 << 16
    (low,), (high,) = (compute(f"MUFU.EX2.F16 R0, R1{part}", {"R1": word}) for part in ("", ".H1"))
    assert (low, high) == (0x4000, 0x4400)
    (found,) = compute("MUFU.TANH.BF16 R0, R1", {"R1": 0x4180})
    assert found == 0x3F80
    assert encode(2, F16) == 0x4000


@pytest.mark.parametrize(
    ("mode", "measured"),
    [
        (".RP", (0x00800000, 0x80000000, 0x0, 0x80000000)),
        ("", (0x00800000, 0x80800000, 0x0, 0x80000000)),
        (".RM", (0x0, 0x80800000, 0x0, 0x80000000)),
        (".RZ", (0x0, 0x80000000, 0x0, 0x80000000)),
    ],
)
def test_what_is_flushed_at_the_edge_is_what_an_h200_flushes(mode: str, measured: tuple[int, ...]) -> None:
    """A result is flushed if it is subnormal after rounding to 24 bits, were exponents without an end."""
    a = (0x07488F9B, 0x07488F9B, 0x00800000, 0x00800000)
    b = (0x9382F074, 0x1382F074, 0x3F7FFFFF, 0xBF7FFFFF)
    c = (0x00800000, 0x80800000, 0x0, 0x0)
    known = dict(zip(zip(a, b, c), measured))
    check(f"FFMA.FTZ{mode} R0, R1, R2, R3", lambda *x: known[x], nan, R1=[*a], R2=[*b], R3=[*c])
