"""Float arithmetic, bit for bit (any NaN for any NaN)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.simt import reference as ieee
from tests.simt.harness import Case, Verify, case
from tests.simt.reference import FLOATS, clamp, encode, flush

MODES = ("rn", "rz", "rm", "rp")
HALVES = ("f16", "bf16", "f16x2", "bf16x2")


def lanes(kind: str, operation: Callable[..., float]) -> Callable[..., Any]:
    """`operation` on each number of a packed type."""
    if not kind.endswith("x2"):
        return operation
    return lambda *operands: tuple(operation(*numbers) for numbers in zip(*operands))


def halfway(kind: str) -> list[int]:
    """Raw factors and addends whose products and sums lie on, or next to, the middle of two numbers."""
    digits, lowest, highest = FLOATS[kind]
    last = 2.0 ** (1 - digits)
    ends = [2.0**lowest, 2.0 ** (lowest + digits), 2.0 ** (lowest - digits + 1), 2.0**highest, 0.75]
    numbers = [
        1.0,
        1 + last,
        1 - last / 2,
        last / 2,
        last,
        last * last,
        1 + 2 * last,
        last * (1 + last),
        0.0,
        *ends,
    ]
    return [encode(kind, sign * x) for x in numbers for sign in (1, -1)]


@pytest.mark.some(5)
@pytest.mark.parametrize("mode", ["", ".rn", ".rz", ".rm", ".rp"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_add_sub_mul(verify: Verify, kind: str, mode: str) -> None:
    m = mode[1:] or "rn"
    two = f"{kind} {kind}"
    for values in ({}, {0: halfway(kind), 1: halfway(kind)}):
        verify(case(f"add{mode}.{kind}", kind, two, lambda a, b: ieee.add(a, b, kind, m), values=values))
        verify(case(f"sub{mode}.{kind}", kind, two, lambda a, b: ieee.add(a, -b, kind, m), values=values))
        verify(case(f"mul{mode}.{kind}", kind, two, lambda a, b: ieee.mul(a, b, kind, m), values=values))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fma(verify: Verify, kind: str, mode: str) -> None:
    gives = lambda a, b, c: ieee.fma(a, b, c, kind, mode)  # noqa: E731
    three = f"{kind} {kind} {kind}"
    verify(case(f"fma.{mode}.{kind}", kind, three, gives))
    verify(case(f"mad.{mode}.{kind}", kind, three, gives, values=dict.fromkeys(range(3), halfway(kind))))


@pytest.mark.parametrize(("kind", "mode"), [*(("f32", mode) for mode in MODES), ("f64", "rn")])
def test_div_rcp_sqrt(verify: Verify, kind: str, mode: str) -> None:
    verify(case(f"div.{mode}.{kind}", kind, f"{kind} {kind}", lambda a, b: ieee.div(a, b, kind, mode)))
    verify(case(f"rcp.{mode}.{kind}", kind, kind, lambda a: ieee.div(1.0, a, kind, mode)))
    verify(case(f"sqrt.{mode}.{kind}", kind, kind, lambda a: ieee.sqrt(a, kind, mode)))


def flushing(operation: Callable[..., float], kind: str, *more: Any) -> Callable[..., float]:
    """`.ftz`: subnormal operands and results become zeros of the same sign."""
    return lambda *x: flush(operation(*(flush(y, kind) for y in x), f"{kind}.ftz", *more), kind)


@pytest.mark.some(2)
@pytest.mark.parametrize("mode", MODES)
def test_flushing(verify: Verify, mode: str) -> None:
    def check(name: str, operation: Callable[..., float], count: int) -> None:
        kinds = " ".join(["f32"] * count)
        gives = flushing(operation, "f32", mode)
        verify(case(f"{name}.{mode}.ftz.f32", "f32", kinds, gives))
        if count > 1:
            values = dict.fromkeys(range(count), halfway("f32"))
            verify(case(f"{name}.{mode}.ftz.f32", "f32", kinds, gives, values=values))

    check("add", ieee.add, 2)
    check("mul", ieee.mul, 2)
    check("fma", ieee.fma, 3)
    check("div", ieee.div, 2)
    check("sqrt", ieee.sqrt, 1)
    check("rcp", lambda a, kind, mode: ieee.div(1.0, a, kind, mode), 1)


def test_flushing_without_rounding(verify: Verify) -> None:
    for name, operation in (("neg", lambda a: -a), ("abs", abs)):
        gives = lambda a: flush(operation(a), "f32")  # noqa: B023, E731
        verify(case(f"{name}.ftz.f32", "f32", "f32", gives))
    for name, pick in (("min", ieee.minimum), ("max", ieee.maximum)):
        gives_two = lambda a, b: pick(flush(a, "f32"), flush(b, "f32"))  # noqa: B023, E731
        verify(case(f"{name}.ftz.f32", "f32", "f32 f32", gives_two))


@pytest.mark.parametrize("kind", ["f32", "f16", "f16x2"])
def test_saturating(verify: Verify, kind: str) -> None:
    one = kind.removesuffix("x2")
    two = f"{kind} {kind}"
    verify(case(f"add.sat.{kind}", kind, two, lanes(kind, lambda a, b: clamp(ieee.add(a, b, one)))))
    verify(case(f"mul.sat.{kind}", kind, two, lanes(kind, lambda a, b: clamp(ieee.mul(a, b, one)))))
    three = lanes(kind, lambda a, b, c: clamp(ieee.fma(a, b, c, one)))
    verify(case(f"fma.rn.sat.{kind}", kind, f"{two} {kind}", three))


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", HALVES)
def test_half_arithmetic(verify: Verify, kind: str) -> None:
    one = kind.removesuffix("x2")
    two = f"{kind} {kind}"
    values = {} if one != kind else dict.fromkeys(range(3), halfway(kind))
    for given in ({}, values):
        verify(case(f"add.{kind}", kind, two, lanes(kind, lambda a, b: ieee.add(a, b, one)), values=given))
        verify(case(f"sub.{kind}", kind, two, lanes(kind, lambda a, b: ieee.add(a, -b, one)), values=given))
        verify(case(f"mul.{kind}", kind, two, lanes(kind, lambda a, b: ieee.mul(a, b, one)), values=given))
        three = lanes(kind, lambda a, b, c: ieee.fma(a, b, c, one))
        verify(case(f"fma.rn.{kind}", kind, f"{two} {kind}", three, values=given))


def test_a_sum_that_f64_cannot_hold_is_rounded_once(verify: Verify) -> None:
    """The product lies in the middle of two bf16, 2**-120 below it or above it: that decides."""
    factors = [encode("bf16", x) for x in (1.5, -1.5, 1.0078125, 1.0, 1.0234375, 1.171875)]
    addends = [encode("bf16", x) for x in (2.0**-120, -(2.0**-120), 2.0**-133, 0.0)]
    gives = lambda a, b, c: ieee.fma(a, b, c, "bf16")  # noqa: E731
    values = {0: factors, 1: factors, 2: addends}
    verify(case("fma.rn.bf16", "bf16", "bf16 bf16 bf16", gives, values=values))


@pytest.mark.parametrize("kind", HALVES)
def test_relu(verify: Verify, kind: str) -> None:
    one = kind.removesuffix("x2")

    def gives(a: float, b: float, c: float) -> float:
        result = ieee.fma(a, b, c, one)
        return 0.0 if result <= 0 else result

    verify(case(f"fma.rn.relu.{kind}", kind, f"{kind} {kind} {kind}", lanes(kind, gives)))


def test_half_flushing(verify: Verify) -> None:
    for values in ({}, dict.fromkeys(range(3), halfway("f16"))):
        product, sum_of = flushing(ieee.mul, "f16"), flushing(ieee.fma, "f16")
        verify(case("mul.ftz.f16", "f16", "f16 f16", product, values=values))
        verify(case("fma.rn.ftz.f16", "f16", "f16 f16 f16", sum_of, values=values))
    verify(case("mul.ftz.f16x2", "f16x2", "f16x2 f16x2", lanes("f16x2", flushing(ieee.mul, "f16"))))


@pytest.mark.parametrize("kind", ["f32", "f64", *HALVES])
def test_sign_and_order(verify: Verify, kind: str) -> None:
    two = f"{kind} {kind}"
    verify(case(f"neg.{kind}", kind, kind, lanes(kind, lambda a: -a)))
    verify(case(f"abs.{kind}", kind, kind, lanes(kind, abs)))
    verify(case(f"min.{kind}", kind, two, lanes(kind, ieee.minimum)))
    verify(case(f"max.{kind}", kind, two, lanes(kind, ieee.maximum)))


@pytest.mark.parametrize("kind", ["f32", *HALVES])
def test_min_max_of_nan(verify: Verify, kind: str) -> None:
    def strict(pick: Callable[[float, float], float]) -> Callable[[float, float], float]:
        return lambda a, b: math.nan if math.isnan(a) or math.isnan(b) else pick(a, b)

    two = f"{kind} {kind}"
    verify(case(f"min.NaN.{kind}", kind, two, lanes(kind, strict(ieee.minimum))))
    verify(case(f"max.NaN.{kind}", kind, two, lanes(kind, strict(ieee.maximum))))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_copysign(verify: Verify, kind: str) -> None:
    verify(case(f"copysign.{kind}", kind, f"{kind} {kind}", lambda a, b: math.copysign(b, a)))


@pytest.mark.slow
def test_halves_pass_through_registers_of_every_kind(verify: Verify) -> None:
    """A result of f16 arithmetic is stored, packed, shifted and compared like any 16 bits."""
    text = """
    .reg .b16 sum, low, high;
    .reg .b32 pair;
    .reg .pred less;
    add.f16 sum, {a}, {b};
    mov.b32 pair, {{sum, {a}}};
    mov.b32 {{low, high}}, pair;
    setp.lt.f16 less, low, high;
    xor.b16 low, low, 1;
    selp.b16 {p}, low, high, less;
    shr.u32 {q}, pair, 3;
    """

    def gives(a: float, b: float) -> tuple[int, int] | None:
        total = ieee.add(a, b, "f16")
        if math.isnan(total) or math.isnan(a):
            return None
        low, high = encode("f16", total), encode("f16", a)
        return low ^ 1 if total < a else high, (high << 16 | low) >> 3

    verify(Case(text, ("b16", "b32"), ("f16", "f16"), gives))
