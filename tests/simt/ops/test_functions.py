"""Functions that PTX approximates: the emulator gives the nearest number, the chip one that is near."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from tests.simt import reference as ieee
from tests.simt.harness import Case, Verify, case
from tests.simt.reference import decode, encode, flush, same

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899863")


def precisely(function: Callable[[Decimal], Decimal], x: float) -> Fraction:
    """A function of a finite number, good to 60 digits."""
    with localcontext() as context:
        context.prec = 80
        return Fraction(function(Decimal(x)))


def sine(x: Decimal) -> Decimal:
    """Taylor's series after taking whole turns away."""
    x = x.remainder_near(2 * PI)
    term, total, n = x, x, 1
    while abs(term) > abs(x) * Decimal(10) ** -70:
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def tangent(x: Decimal) -> Decimal:
    """tanh; for small numbers by the first terms of the series, which lose no digits."""
    if abs(x) < Decimal("1e-12"):
        return x - x**3 / 3 + 2 * x**5 / 15
    twice = (2 * min(abs(x), Decimal(200))).exp()
    return ((twice - 1) / (twice + 1)).copy_sign(x)


def logarithm(x: Decimal) -> Decimal:
    return x.ln() / Decimal(2).ln()


def power(x: Decimal) -> Decimal:
    return (max(min(x, Decimal(2000)), Decimal(-2000)) * Decimal(2).ln()).exp()


def near(kind: str, relative: float = 0.0, absolute: float = 0.0) -> Callable[[int, int], bool]:
    """Are two results as near to each other as an approximation's error bound says?"""

    def test(x: int, y: int) -> bool:
        a, b = decode(kind, x), decode(kind, y)
        return same(kind, x, y) or bool(abs(a - b) <= max(absolute, relative * abs(a)))

    return test


def function(
    name: str, kind: str, exact: Callable[[Decimal], Decimal], special: dict[float, float], **more: object
) -> Case:
    """A case for a function of finite numbers; `special`: what it gives for zeros and infinities."""

    def gives(a: float) -> float | None:
        if "ftz" in name:
            a = flush(a, kind)
        if math.isnan(a):
            return math.nan
        if a in special:
            return math.copysign(special[a], a) if special[a] == 0 and a == 0 else special[a]
        if a < 0 and name.startswith(("lg2", "rsqrt")):
            return math.nan
        result = ieee.rounded(precisely(exact, a), kind)
        return flush(result, kind) if "ftz" in name else result

    return case(name, kind, kind, gives, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("dot", ["", ".ftz"])
def test_exponential(verify: Verify, dot: str) -> None:
    special = {math.inf: math.inf, -math.inf: 0.0, 0.0: 1.0}
    bound = near("f32", relative=2.0**-22, absolute=2.0**-149)
    values = {0: [encode("f32", i + f) for i in range(-152, 130, 3) for f in (0.0, 0.25, 0.7109375)]}
    verify(function(f"ex2.approx{dot}.f32", "f32", power, special, near=bound))
    verify(function(f"ex2.approx{dot}.f32", "f32", power, special, near=bound, values=values))


@pytest.mark.parametrize("dot", ["", ".ftz"])
def test_logarithm(verify: Verify, dot: str) -> None:
    special = {math.inf: math.inf, -math.inf: math.nan, 0.0: -math.inf}
    bound = near("f32", relative=2.0**-22, absolute=2.0**-22)
    verify(function(f"lg2.approx{dot}.f32", "f32", logarithm, special, near=bound))


@pytest.mark.parametrize("dot", ["", ".ftz"])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine(verify: Verify, name: str, dot: str) -> None:
    """The ISA promises little outside of two turns."""
    exact = sine if name == "sin" else lambda x: sine(x + PI / 2)
    special = {math.inf: math.nan, -math.inf: math.nan, 0.0: 0.0 if name == "sin" else 1.0}
    values = {0: [encode("f32", x / 16) for x in range(-100, 101)] + [encode("f32", math.inf), 1, 1 << 31, 0]}
    bound = near("f32", absolute=2.0**-20)
    verify(function(f"{name}.approx{dot}.f32", "f32", exact, special, near=bound, values=values))


def test_hyperbolic_tangent(verify: Verify) -> None:
    special = {math.inf: 1.0, -math.inf: -1.0, 0.0: 0.0}
    bound = near("f32", relative=2.0**-10)
    verify(replace(function("tanh.approx.f32", "f32", tangent, special, near=bound), exact=False))


def test_reciprocal_square_root(verify: Verify) -> None:
    special = {math.inf: 0.0, -math.inf: math.nan, 0.0: math.inf}

    def root(x: Decimal) -> Decimal:
        return 1 / x.sqrt()

    for kind, bound in (("f32", 2.0**-22), ("f64", 2.0**-51)):
        text = f"rsqrt.approx.{kind}"
        gives = function(text, kind, root, special).gives
        signed = lambda a: math.copysign(math.inf, a) if a == 0 else gives(a)  # noqa: B023, E731
        verify(case(text, kind, kind, signed, near=near(kind, relative=bound), exact=kind == "f32"))


@pytest.mark.parametrize("dot", ["", ".ftz"])
def test_approximate_arithmetic(verify: Verify, dot: str) -> None:
    """`div.approx`, `div.full`, `rcp.approx`, `sqrt.approx`: within two units in the last place."""
    bound = near("f32", relative=2.0**-22)
    raws = [encode("f32", s * x) for x in (1.0, 3.0, 1.75, 2.0**-60, 2.0**100, 7e18) for s in (1, -1)]
    values = {0: raws, 1: raws}

    def check(name: str, operands: str, gives: Callable[..., float]) -> None:
        flushed = (lambda *x: flush(gives(*x), "f32")) if dot else gives
        verify(case(f"{name}{dot}.f32", "f32", operands, flushed, values=values, near=bound))

    check("div.approx", "f32 f32", lambda a, b: ieee.div(a, b, "f32"))
    check("div.full", "f32 f32", lambda a, b: ieee.div(a, b, "f32"))
    check("rcp.approx", "f32", lambda a: ieee.div(1.0, a, "f32"))
    check("sqrt.approx", "f32", lambda a: ieee.sqrt(a, "f32"))
