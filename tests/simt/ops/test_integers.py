"""Integer arithmetic, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simt.harness import Case, Verify, case

ALL = ("s16", "u16", "s32", "u32", "s64", "u64")
SIGNED = ("s16", "s32", "s64")


def bits(kind: str) -> int:
    return int(kind[1:])


def truncated(a: int, b: int) -> int:
    """C's quotient."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize("kind", ALL)
def test_add_sub(verify: Verify, kind: str) -> None:
    verify(case(f"add.{kind}", kind, f"{kind} {kind}", lambda a, b: a + b))
    verify(case(f"sub.{kind}", kind, f"{kind} {kind}", lambda a, b: a - b))


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ALL)
def test_mul_mad(verify: Verify, kind: str) -> None:
    n = bits(kind)
    verify(case(f"mul.lo.{kind}", kind, f"{kind} {kind}", lambda a, b: a * b))
    verify(case(f"mul.hi.{kind}", kind, f"{kind} {kind}", lambda a, b: a * b >> n))
    verify(case(f"mad.lo.{kind}", kind, f"{kind} {kind} {kind}", lambda a, b, c: a * b + c))
    verify(case(f"mad.hi.{kind}", kind, f"{kind} {kind} {kind}", lambda a, b, c: (a * b >> n) + c))
    if n < 64:
        wide = f"{kind[0]}{2 * n}"
        verify(case(f"mul.wide.{kind}", wide, f"{kind} {kind}", lambda a, b: a * b))
        verify(case(f"mad.wide.{kind}", wide, f"{kind} {kind} {wide}", lambda a, b, c: a * b + c))


@pytest.mark.parametrize("kind", ["s32", "u32"])
def test_mul24(verify: Verify, kind: str) -> None:
    def low24(x: int) -> int:
        x &= 0xFFFFFF
        return x - (1 << 24) if kind == "s32" and x >> 23 else x

    three = f"{kind} {kind} {kind}"
    verify(case(f"mul24.lo.{kind}", kind, f"{kind} {kind}", lambda a, b: low24(a) * low24(b)))
    verify(case(f"mad24.lo.{kind}", kind, three, lambda a, b, c: low24(a) * low24(b) + c))


@pytest.mark.parametrize("kind", ALL)
def test_div_rem(verify: Verify, kind: str) -> None:
    """By zero, which the ISA leaves open, an H100 gives all ones."""
    two = f"{kind} {kind}"
    verify(case(f"div.{kind}", kind, two, lambda a, b: truncated(a, b) if b else -1))
    verify(case(f"rem.{kind}", kind, two, lambda a, b: a - b * truncated(a, b) if b else -1))
    powers = [1 << i for i in (0, 1, 5, bits(kind) - 2)]
    verify(case(f"div.{kind}", kind, two, truncated, values={1: powers}))
    verify(case(f"rem.{kind}", kind, two, lambda a, b: a - b * truncated(a, b), values={1: powers}))


@pytest.mark.parametrize("kind", SIGNED)
def test_sign(verify: Verify, kind: str) -> None:
    verify(case(f"neg.{kind}", kind, kind, lambda a: -a))
    verify(case(f"abs.{kind}", kind, kind, abs))


@pytest.mark.parametrize("kind", ALL)
def test_min_max_sad(verify: Verify, kind: str) -> None:
    verify(case(f"min.{kind}", kind, f"{kind} {kind}", min))
    verify(case(f"max.{kind}", kind, f"{kind} {kind}", max))
    verify(case(f"sad.{kind}", kind, f"{kind} {kind} {kind}", lambda a, b, c: abs(a - b) + c))


def test_min_max_relu(verify: Verify) -> None:
    verify(case("min.relu.s32", "s32", "s32 s32", lambda a, b: max(0, min(a, b))))
    verify(case("max.relu.s32", "s32", "s32 s32", lambda a, b: max(0, a, b)))


@pytest.mark.parametrize("kind", ["s16x2", "u16x2"])
def test_packed(verify: Verify, kind: str) -> None:
    def both(operation: Callable[[int, int], int]) -> Callable[..., tuple[int, int]]:
        return lambda a, b: (operation(a[0], b[0]), operation(a[1], b[1]))

    two = f"{kind} {kind}"
    verify(case(f"add.{kind}", kind, two, both(lambda a, b: a + b), immediates=False))
    verify(case(f"min.{kind}", kind, two, both(min), immediates=False))
    verify(case(f"max.{kind}", kind, two, both(max), immediates=False))
    if kind == "s16x2":
        verify(case("min.relu.s16x2", kind, two, both(lambda a, b: max(0, min(a, b))), immediates=False))
        verify(case("max.relu.s16x2", kind, two, both(lambda a, b: max(0, a, b)), immediates=False))


def parts(x: int, kind: str, size: int) -> list[int]:
    """The fields of a 32-bit register, the lowest first."""
    fields = [(x >> at) & ((1 << size) - 1) for at in range(0, 32, size)]
    return [f - (1 << size) if kind == "s32" and f >> (size - 1) else f for f in fields]


@pytest.mark.parametrize("left", ["s32", "u32"])
@pytest.mark.parametrize("right", ["s32", "u32"])
def test_dot_products(verify: Verify, left: str, right: str) -> None:
    def four(a: int, b: int, c: int) -> int:
        return c + sum(x * y for x, y in zip(parts(a, left, 8), parts(b, right, 8)))

    def two(first: int) -> Callable[[int, int, int], int]:
        return lambda a, b, c: c + sum(x * y for x, y in zip(parts(a, left, 16), parts(b, right, 8)[first:]))

    verify(case(f"dp4a.{left}.{right}", "b32", "b32 b32 b32", four))
    verify(case(f"dp2a.lo.{left}.{right}", "b32", "b32 b32 b32", two(0)))
    verify(case(f"dp2a.hi.{left}.{right}", "b32", "b32 b32 b32", two(2)))


# --- the carry bit --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
def test_carry_chains(verify: Verify, kind: str) -> None:
    """The carry out of one instruction is what the next one adds."""
    n = bits(kind)
    unsigned = f"u{n}"
    ones = (1 << n) - 1

    def chain(first: str, second: str, gives: Callable[..., tuple[int, int]]) -> None:
        text = f"{first} {{p}}, {{a}}, {{b}};\n{second} {{q}}, {{c}}, {{d}};"
        verify(Case(text, (unsigned,) * 2, (unsigned,) * 4, gives))

    chain(f"add.cc.{kind}", f"addc.{kind}", lambda a, b, c, d: (a + b, c + d + (a + b > ones)))
    chain(f"sub.cc.{kind}", f"subc.{kind}", lambda a, b, c, d: (a - b, c - d - (a < b)))


@pytest.mark.parametrize("kind", ["u32", "u64"])
def test_carry_in_and_out(verify: Verify, kind: str) -> None:
    """`addc.cc` and `subc.cc` carry on; the last word shows the carry that came out."""
    ones = (1 << bits(kind)) - 1

    def three(name: str, gives: Callable[..., tuple[int, int]]) -> None:
        text = (
            f".reg .b{bits(kind)} unused;\n{name}.cc.{kind} unused, {{a}}, {{b}};\n"
            f"{name}c.cc.{kind} {{p}}, {{c}}, {{d}};\n{name}c.{kind} {{q}}, 0, 0;"
        )
        verify(Case(text, (kind,) * 2, (kind,) * 4, gives))

    def added(a: int, b: int, c: int, d: int) -> tuple[int, int]:
        total = c + d + (a + b > ones)
        return total, int(total > ones)

    def subtracted(a: int, b: int, c: int, d: int) -> tuple[int, int]:
        total = c - d - (a < b)
        return total, -int(total < 0)

    three("add", added)
    three("sub", subtracted)


@pytest.mark.parametrize("kind", ["u32", "u64"])
@pytest.mark.parametrize("which", ["a", "b"])
def test_carry_where_the_result_replaces_a_source(verify: Verify, kind: str, which: str) -> None:
    text = "mov.{kind} {{p}}, {{{which}}}; sub.cc.{kind} {{p}}, {x}, {y}; subc.{kind} {{q}}, 0, 0;"
    x, y = ("{p}", "{b}") if which == "a" else ("{a}", "{p}")
    gives = lambda a, b: (a - b, -int(a < b))  # noqa: E731
    verify(Case(text.format(kind=kind, which=which, x=x, y=y), (kind,) * 2, (kind,) * 2, gives))


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_mad_with_carry(verify: Verify, kind: str) -> None:
    """`mad.cc` and `madc.cc`: the product's half plus c, and what comes out of that addition."""
    n, plain = bits(kind), f"u{bits(kind)}"
    ones = (1 << n) - 1

    def half(a: int, b: int, hi: bool) -> int:
        signed = [x - (1 << n) if kind[0] == "s" and x >> (n - 1) else x for x in (a, b)]
        return (signed[0] * signed[1] >> (n if hi else 0)) & ones

    for name in ("lo", "hi"):
        text = f"mad.{name}.cc.{kind} {{p}}, {{a}}, {{b}}, {{c}};"
        text += f"madc.{name}.{kind} {{q}}, {{b}}, {{c}}, {{d}};"

        def gives(a: int, b: int, c: int, d: int, hi: bool = name == "hi") -> tuple[int, int]:
            first = half(a, b, hi) + c
            return first, half(b, c, hi) + d + (first > ones)

        verify(Case(text, (plain,) * 2, (plain,) * 4, gives))
