"""Instructions on two 16-bit floats against fractions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.isa.harness import HALVES, check, compute, near, pair_of, words
from tests.isa.oracle import BF16, F16, F32, Format, decode, encode, flush, fused, is_nan, one


def numbers(form: Format, seed: int) -> list[int]:
    if form is F16:
        found = words(96, seed, HALVES, 16)
    else:
        found = [
            word >> 16
            for word in words(96, seed, [x << 16 for x in (0, 1, 0x7F, 0x80, 0x3F80, 0x3F81, 0x7F7F, 0x7F80)])
        ]
    return found + near(96, seed, one(form), form.mantissa)


def inputs(form: Format, count: int) -> dict[str, list[int]]:
    return {
        f"R{place + 1}": pair_of(numbers(form, 40 + place), numbers(form, 50 + place)[::-1])
        for place in range(count)
    }


def both(oracle: Callable[..., int]) -> Callable[..., int]:
    """An oracle of one half as one of words."""

    def run(*of_lane: int) -> int:
        low, high = (oracle(*((word >> shift) & 0xFFFF for word in of_lane)) for shift in (0, 16))
        return low | (high << 16)

    return run


FORMS = {"": F16, ".BF16_V2": BF16}


@pytest.mark.parametrize("name", FORMS)
def test_arithmetic(name: str) -> None:
    form = FORMS[name]
    two, three = inputs(form, 2), inputs(form, 3)
    check(f"HADD2{name} R0, R1, R2", both(lambda a, b: fused(a, one(form), b, form)), **two)
    check(f"HMUL2{name} R0, R1, R2", both(lambda a, b: fused(a, b, None, form)), **two)
    check(f"HFMA2.MMA{name} R0, R1, R2, R3", both(lambda a, b, c: fused(a, b, c, form)), **three)
    negative = both(lambda a, b: fused(a ^ 0x8000 if not is_nan(a, form) else a, one(form), b & 0x7FFF, form))
    check(f"HADD2{name} R0, -R1, |R2|", negative, **two)


def test_halves_can_be_picked() -> None:
    one_half = lambda a, b: fused(a & 0xFFFF, one(F16), b >> 16, F16)  # noqa: E731
    check("HADD2 R0, R1.H0_H0, R2.H1_H1", lambda a, b: one_half(a, b) * 0x10001, **inputs(F16, 2))


def test_a_half_as_float32() -> None:
    def oracle(a: int) -> int:
        sign, value = decode(a >> 16, F16)
        return encode(value, F32, zero_sign=sign)

    alike = lambda a, b: is_nan(a, F32) and is_nan(b, F32)  # noqa: E731
    check("HADD2.F32 R0, -RZ, R1.H1_H1", oracle, alike, **inputs(F16, 1))


def test_modes() -> None:
    def saturated(bits: int) -> int:
        _, value = decode(bits, F16)
        return 0 if value != value or value <= 0 else min(bits, one(F16))

    def rectified(bits: int) -> int:
        return bits if is_nan(bits, F16) or not bits & 0x8000 else 0

    check("HFMA2.SAT R0, R1, R2, R3", both(lambda a, b, c: saturated(fused(a, b, c, F16))), **inputs(F16, 3))
    check("HFMA2.RELU R0, R1, R2, R3", both(lambda a, b, c: rectified(fused(a, b, c, F16))), **inputs(F16, 3))


def test_flushing() -> None:
    def product(a: int, b: int) -> int:
        a, b = flush(a, F16), flush(b, F16)
        found = fused(a, b, None, F16)
        (_, x), (_, y) = decode(a, F16), decode(b, F16)
        if found & F16.infinity == F16.infinity or not x * y:
            return found
        scaled = encode(abs(x * y) / F16.tiny, F16)
        return found & 0x8000 if scaled < one(F16) else found

    check("HMUL2.FTZ R0, R1, R2", both(product), **inputs(F16, 2))


@pytest.mark.parametrize("mode", ["", ".FTZ"])
def test_comparisons_flush(mode: str) -> None:
    def differ(a: int, b: int) -> bool:
        x, y = (decode(flush(bits, F16) if mode else bits, F16)[1] for bits in (a, b))
        return x != y

    told = lambda a, b: (differ(a & 0xFFFF, b & 0xFFFF), differ(a >> 16, b >> 16))  # noqa: E731
    check(f"HSETP2.NEU{mode}.AND P0, P1, R1, R2, PT", told, **inputs(F16, 2))
    ones = both(lambda a, b: 0xFFFF * differ(a, b))
    check(f"HSET2.NEU{mode}.AND R0, R1, R2, PT", ones, **inputs(F16, 2))


@pytest.mark.parametrize("name", FORMS)
def test_order(name: str) -> None:
    form = FORMS[name]

    def picked(a: int, b: int, least: bool = True) -> int:
        if is_nan(a, form) or is_nan(b, form):
            other = b if is_nan(a, form) else a
            return 0x7FFF if is_nan(other, form) else other
        x, y = (-(w & 0x7FFF) if w >> 15 else w + 1 for w in (a, b))
        return a if (x <= y if least else x >= y) else b

    check(f"HMNMX2{name} R0, R1, R2, PT", both(picked), **inputs(form, 2))
    any_nan = lambda a, b: 0x7FFF if is_nan(a, form) or is_nan(b, form) else picked(a, b)  # noqa: E731
    check(f"HMNMX2{name}.NAN R0, R1, R2, PT", both(any_nan), **inputs(form, 2))

    def signs(a: int, b: int) -> int:
        found = picked(a & 0x7FFF, b & 0x7FFF)
        return found if is_nan(found, form) else found | ((a ^ b) & 0x8000)

    check(f"HMNMX2{name}.XORSIGN R0, |R1|, |R2|, PT", both(signs), **inputs(form, 2))

    three = lambda pick: both(lambda a, b, c: pick(pick(a, b), c))  # noqa: E731
    check(f"VHMNMX{name} R0, R1, R2, R3, PT", three(picked), **inputs(form, 3))
    check(f"VHMNMX{name}.NAN R0, R1, R2, R3, PT", three(any_nan), **inputs(form, 3))
    largest = three(lambda a, b: picked(a, b, least=False))
    check(f"VHMNMX{name} R0, R1, R2, R3, !PT", largest, **inputs(form, 3))

    def less(a: int, b: int) -> bool:
        return not is_nan(a, form) and not is_nan(b, form) and decode(a, form)[1] < decode(b, form)[1]

    def told(a: int, b: int) -> tuple[bool, bool]:
        return less(a & 0xFFFF, b & 0xFFFF), less(a >> 16, b >> 16)

    check(f"HSETP2{name}.LT.AND P0, P1, R1, R2, PT", told, **inputs(form, 2))
    check(
        f"HSET2.BF{name}.LT.AND R0, R1, R2, PT",
        both(lambda a, b: one(form) if less(a, b) else 0),
        **inputs(form, 2),
    )
    ones = both(lambda a, b: 0xFFFF if less(a, b) else 0)
    check(f"HSET2{name}.LT.AND R0, R1, R2, PT", ones, **inputs(form, 2))


def test_two_numbers_in_an_instruction() -> None:
    (found,) = compute("HFMA2.MMA R0, -RZ, RZ, 1.875, 5.9604644775390625e-08", {})
    assert int(found) == 0x3F800001

    def largest(a: int, b: int) -> int:
        return max(a & 0x7FFF, b & 0x7FFF)

    finite = [word % 0x7C00 | (word & 0x8000) for word in numbers(F16, 60)]
    check(
        "VHMNMX R0, |R1|, -INF , -INF , |R2|, !PT",
        both(largest),
        R1=pair_of(finite, finite[::-1]),
        R2=pair_of(finite[7:] + finite[:7], finite),
    )
