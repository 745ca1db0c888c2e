"""`cvt`, bit for bit: every pair of types, rounding, saturation, wider registers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.simt import reference as ieee
from tests.simt.columns import edge_values
from tests.simt.harness import Verify, case
from tests.simt.reference import FLOATS, clamp, encode, flush

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
MODES = ("rn", "rz", "rm", "rp")


def bounds(kind: str) -> tuple[int, int]:
    """The numbers that an integer type holds."""
    n = int(kind[1:])
    return (-(1 << n - 1), (1 << n - 1) - 1) if kind[0] == "s" else (0, (1 << n) - 1)


@pytest.mark.some(16)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_between_integers(verify: Verify, target: str, source: str) -> None:
    verify(case(f"cvt.{target}.{source}", target, source, lambda a: a, immediates=False))
    (low, high), (source_low, source_high) = bounds(target), bounds(source)
    if low > source_low or high < source_high:  # else `.sat` is not allowed
        gives = lambda a: max(low, min(high, a))  # noqa: E731
        verify(case(f"cvt.sat.{target}.{source}", target, source, gives, immediates=False))


@pytest.mark.some(30)
@pytest.mark.parametrize("registers", [(64, 32), (32, 64)])
@pytest.mark.parametrize("target", ["s8", "u8", "s16", "u16", "s32", "u32"])
@pytest.mark.parametrize("source", ["s8", "u8", "s16", "u16", "s32", "u32"])
def test_wider_registers(verify: Verify, registers: tuple[int, int], target: str, source: str) -> None:
    """The source is cut to its type; the result is extended with the sign or with zeros."""
    sizes = {"a": registers[0], "p": registers[1]}
    dirty = [(1 << 64) - 1 - raw * 3 for raw in edge_values("u64")] + [raw << 5 | 0x80 for raw in range(40)]
    values = {0: [raw & ((1 << registers[0]) - 1) for raw in dirty]}
    verify(case(f"cvt.{target}.{source}", target, source, lambda a: a, registers=sizes, values=values))


def test_wider_registers_for_floats(verify: Verify) -> None:
    """The bits of a narrow float are extended with zeros."""
    narrow = converted("f16", "rn")
    verify(case("cvt.rn.f16.f32", "f16", "f32", narrow, registers={"p": 32}, immediates=False))
    verify(case("cvt.f32.f16", "f32", "f16", lambda a: a, registers={"a": 32, "p": 64}, immediates=False))
    whole = to_integer("rzi", "s32", "f16")
    verify(case("cvt.rzi.s32.f16", "s32", "f16", whole, registers={"a": 64, "p": 64}))


def to_integer(mode: str, target: str, source: str) -> Callable[[float], int]:
    """ISA, `cvt`: rounded, clamped to the range; what NaN gives depends on the sizes."""
    low, high = bounds(target)

    def gives(a: float) -> int:
        if math.isnan(a):
            wide = source == "f64" or target in ("s64", "u64")
            return 1 << (int(target[1:]) - 1) if wide else 0
        if math.isinf(a):
            return high if a > 0 else low
        return max(low, min(high, ieee.to_integral(Fraction(a), mode[:2])))

    return gives


@pytest.mark.some(8)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer(verify: Verify, target: str, source: str) -> None:
    if source == "bf16" and target in ("s8", "u8"):
        return  # the assembler knows no such conversion, whatever the ISA says
    edges = [x for bound in bounds(target) for x in (bound - 0.5, bound, bound + 0.5, bound - 1, bound + 1)]
    near = [x for limit in edges if (x := nearest(limit, source)) is not None]
    near += [encode(source, x) for x in (0.5, -0.5, 1.5, 2.5, -2.5, 0.25, -0.75)]
    for mode in ("rni", "rzi", "rmi", "rpi"):
        gives = to_integer(mode, target, source)
        verify(case(f"cvt.{mode}.{target}.{source}", target, source, gives))
        verify(case(f"cvt.{mode}.{target}.{source}", target, source, gives, values={0: near}))


def nearest(x: float, kind: str) -> int | None:
    """The bits of the float nearest to x, None if that is infinite."""
    result = ieee.rounded(Fraction(x), kind)
    return encode(kind, result) if math.isfinite(result) else None


def test_float_to_integer_flushes(verify: Verify) -> None:
    gives = lambda a: to_integer("rpi", "s32", "f32")(a if math.isnan(a) else flush(a, "f32"))  # noqa: E731
    verify(case("cvt.rpi.ftz.s32.f32", "s32", "f32", gives))


@pytest.mark.some(8)
@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(verify: Verify, target: str, source: str) -> None:
    if target == "bf16" and source in ("s8", "u8"):
        return
    digits = FLOATS[target][0]
    n = int(source[1:])
    middle = [
        (1 << i) + (1 << i - digits) + d for i in range(digits, n) for d in (-1, 0, 1) if i - digits >= 0
    ]
    values = {0: [(sign * x) & ((1 << n) - 1) for x in middle for sign in (1, -1)] + edge_values(source)}
    for mode in MODES:
        gives = lambda a: ieee.rounded(Fraction(a), target, mode)  # noqa: B023, E731
        verify(case(f"cvt.{mode}.{target}.{source}", target, source, gives, immediates=n > 8))
        verify(case(f"cvt.{mode}.{target}.{source}", target, source, gives, values=values, immediates=n > 8))


def converted(target: str, mode: str) -> Callable[[float], float]:
    """A float rounded to another type."""

    def gives(a: float) -> float:
        return ieee.rounded(Fraction(a), target, mode, zero=a) if math.isfinite(a) else a

    return gives


@pytest.mark.some(8)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("target", FLOATS)
def test_between_floats(verify: Verify, target: str, source: str) -> None:
    """Narrowing needs a rounding mode; widening takes none."""
    if target == source:
        return
    narrows = FLOATS[target][0] < FLOATS[source][0] or (target, source) == ("bf16", "f16")
    narrows = narrows or (target, source) == ("f16", "bf16")
    digits = FLOATS[target][0]
    middle = [1 + 2.0**-digits, 1 + 3 * 2.0**-digits, 1 + 2.0**-digits + 2.0 ** (1 - FLOATS[source][0])]
    middle += [2.0 ** FLOATS[target][1] * x for x in (*middle, 0.5, 0.75)]
    raws = [encode(source, s * ieee.rounded(Fraction(x), source)) for x in middle for s in (1, -1)]
    for mode in MODES if narrows else [""]:
        dot = f".{mode}" if mode else ""
        gives = converted(target, mode or "rn")
        verify(case(f"cvt{dot}.{target}.{source}", target, source, gives, immediates=False))
        verify(case(f"cvt{dot}.{target}.{source}", target, source, gives, values={0: raws}, immediates=False))


def test_float_conversion_options(verify: Verify) -> None:
    verify(case("cvt.ftz.f64.f32", "f64", "f32", lambda a: flush(a, "f32")))
    verify(case("cvt.sat.f32.f32", "f32", "f32", clamp))


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_to_integral_floats(verify: Verify, kind: str) -> None:
    def whole(a: float, mode: str) -> float:
        return math.copysign(float(ieee.to_integral(Fraction(a), mode)), a) if math.isfinite(a) else a

    edges = [*edge_values(kind), *(encode(kind, x) for x in (0.5, -0.5, 1.5, 2.5, -2.5, 0.25, -0.75, 1023.5))]
    for mode in MODES:
        gives = lambda a: whole(a, mode)  # noqa: B023, E731
        verify(case(f"cvt.{mode}i.{kind}.{kind}", kind, kind, gives, values={0: edges}, immediates=False))


@pytest.mark.parametrize("kind", ["f16x2", "bf16x2"])
def test_packing(verify: Verify, kind: str) -> None:
    """The first operand goes to the upper half."""
    one = kind.removesuffix("x2")

    def gives(mode: str, relu: bool) -> Callable[[float, float], Any]:
        def half(a: float) -> float:
            return 0.0 if relu and a <= 0 else converted(one, mode)(a)

        return lambda a, b: (half(b), half(a))

    for mode in ("rn", "rz"):
        verify(case(f"cvt.{mode}.{kind}.f32", kind, "f32 f32", gives(mode, False)))
        verify(case(f"cvt.{mode}.relu.{kind}.f32", kind, "f32 f32", gives(mode, True)))
