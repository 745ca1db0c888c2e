"""Integer instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.isa.integer import carry_of_64
from memsim.state.predicates import to_bools
from memsim.state.registers import from_array, plus, to_array
from tests.isa.harness import WORDS, check, compute, held, words
from tests.isa.oracle import ORDER, pieces, signed, unsigned

A, B, C, D = (words(48, seed) for seed in range(4))
P = [lane % 3 == 0 for lane in range(48)]


def test_sums() -> None:
    check("IADD3 R0, R1, -R2, R3", lambda a, b, c: unsigned(a - b + c), R1=A, R2=B, R3=C)
    check("VIADD R0, R1, 0xffffffe0", lambda a: unsigned(a - 32), R1=A)
    check("IMAD.IADD R0, R1, 0x1, R2", lambda a, b: unsigned(a + b), R1=A, R2=B)


def test_carries() -> None:
    def two(a: int, b: int, c: int) -> tuple[int, bool, bool]:
        total = a + b + c
        return unsigned(total), total >> 32 >= 1, total >> 32 >= 2

    check("IADD3 R0, P0, P1, R1, R2, R3", two, R1=A, R2=B, R3=C)

    def difference(a: int, b: int) -> tuple[int, bool]:
        return unsigned(a - b), a >= b  # the carry says that nothing was borrowed

    check("IADD3 R0, P0, R1, -R2, RZ", difference, R1=A, R2=B)
    for parameter in (0, 1, 0x80000000):
        banks = {0: parameter.to_bytes(4, "little")}
        found = compute("IADD3 R0, P0, R1, -c[0x0][0x0], RZ", {"R1": 5}, banks=banks)
        assert (unsigned(found[0]), found[1]) == difference(5, parameter)

    def extended(a: int, b: int, p: bool) -> tuple[int, bool]:
        total = a + unsigned(~b) + p
        return unsigned(total), total >> 32 == 1

    check("IADD3.X R0, P0, R1, ~R2, RZ, P1, !PT", extended, R1=A, R2=B, P1=P)


def test_64_bit_sums_of_a_warp() -> None:
    def oracle(low: int, high: int) -> tuple[int, int]:
        total = (high << 32) + low + 0x4000
        return unsigned(total), unsigned(total >> 32)

    check("UIADD3.64 UR6, UR4, 0x4000, URZ", oracle, UR4=A, UR5=B)

    # On sm_120, with carries that nobody keeps.
    (*found, _, _) = compute("UIADD3.64 UR6, UPT, UPT, UR4, 0x4000, URZ", {"UR4": 0xFFFFFFFF, "UR5": 1})
    assert found == [*oracle(0xFFFFFFFF, 1)]


@pytest.mark.parametrize("sign", ["", ".U32"])
def test_products(sign: str) -> None:
    def read(x: int) -> int:
        return x if sign else signed(x)

    check(f"IMAD{sign} R0, R1, R2, R3", lambda a, b, c: unsigned(a * b + c), R1=A, R2=B, R3=C)

    def wide(a: int, b: int, low: int, high: int) -> tuple[int, int]:
        total = read(a) * read(b) + (high << 32) + low
        return unsigned(total), unsigned(total >> 32)

    check(f"IMAD.WIDE{sign} R0, R2, R3, R4", wide, R2=A, R3=B, R4=C, R5=D)
    check(f"IMAD.HI{sign} R0, R2, R3, R4", lambda *x: wide(*x)[1], R2=A, R3=B, R4=C, R5=D)
    check("IMAD.X R0, R1, R2, R3, P0", lambda a, b, c, p: unsigned(a * b + c + p), R1=A, R2=B, R3=C, P0=P)


def test_a_wide_product_with_carry() -> None:
    def oracle(a: int, b: int, low: int, high: int, p: bool) -> tuple[int, int, bool]:
        total = a * b + (high << 32) + low + p
        return unsigned(total), unsigned(total >> 32), total >> 64 == 1

    text = "IMAD.WIDE.U32.X R0, P0, R2, R3, R4, P1"
    check(text, oracle, R2=A, R3=B, R4=C, R5=D, P1=P)


@pytest.mark.parametrize("shift", [0, 1, 7, 31])
def test_scaled_sums(shift: int) -> None:
    def lea(a: int, b: int) -> tuple[int, bool]:
        total = unsigned(a << shift) + b
        return unsigned(total), total >> 32 == 1

    check(f"LEA R0, P0, R1, R2, {shift:#x}", lea, R1=A, R2=B)
    check(f"LEA R0, R1, R2, {shift:#x}", lambda a, b: lea(a, b)[0], R1=A, R2=B)

    text = f"LEA.X R0, R1, ~R2, {shift:#x}, P0"
    check(text, lambda a, b, p: unsigned((a << shift) + ~b + p), R1=A, R2=B, P0=P)

    def less(a: int, b: int) -> tuple[int, bool]:
        return unsigned(b - (a << shift)), b >= unsigned(a << shift)  # nothing was borrowed

    check(f"LEA R0, P0, -R1, R2, {shift:#x}", less, R1=[0, *A[1:]], R2=B)
    (_, kept) = compute(f"LEA R0, P0, -R1, RZ, {shift:#x}", {"R1": 0})
    assert kept is True

    def high(a: int, b: int, c: int) -> tuple[int, bool]:
        total = unsigned(((c << 32) + a) << shift >> 32) + b
        return unsigned(total), total >> 32 == 1

    check(f"LEA.HI R0, P0, R1, R2, R3, {shift:#x}", high, R1=A, R2=B, R3=C)
    text = f"LEA.HI.X R0, R1, R2, R3, {shift:#x}, P0"
    check(text, lambda a, b, c, p: unsigned(high(a, b, c)[0] + p), R1=A, R2=B, R3=C, P0=P)
    text = f"LEA.HI.SX32 R0, R1, R2, {shift:#x}"
    check(text, lambda a, b: unsigned((signed(a) << shift >> 32) + b), R1=A, R2=B)


@pytest.mark.parametrize("sign", ["", ".U32"])
def test_order(sign: str) -> None:
    def read(x: int) -> int:
        return x if sign else signed(x)

    def pick(least: bool, *x: int) -> int:
        return unsigned((min if least else max)(read(y) for y in x))

    check(f"VIMNMX{sign} R0, R1, R2, P0", lambda a, b, p: pick(p, a, b), R1=A, R2=B, P0=P)
    check(f"VIMNMX3{sign} R0, R1, R2, R3, !PT", lambda a, b, c: pick(False, a, b, c), R1=A, R2=B, R3=C)
    text = f"VIADDMNMX{sign} R0, R1, R2, R3, PT"
    check(text, lambda a, b, c: pick(True, unsigned(a + b), c), R1=A, R2=B, R3=C)


@pytest.mark.parametrize("sign", ["S64", "U64"])
def test_order_of_64_bits(sign: str) -> None:
    def read(low: int, high: int) -> int:
        return ((signed(high) if sign == "S64" else high) << 32) + low

    def pick(low_a: int, low_b: int, a: int, b: int, least: bool) -> tuple[bool, bool, int, int]:
        found = (min if least else max)(read(low_a, a), read(low_b, b))
        return True, True, unsigned(found), unsigned(found >> 32)

    high = [*B[:24], *A[24:]]  # half of them equal
    text = f"IMNMX.{sign} PT, PT, R4, R2, R6, P0, !PT"
    check(text, pick, R2=C, R6=D, R3=A, R7=high, P0=P)

    def told(order: Callable[[int, int], bool], *x: int) -> tuple[bool, bool]:
        found = order(read(x[0], x[2]), read(x[1], x[3]))
        return found, not found

    for how, order in ORDER.items():
        text = f"ISETP.{how}.{sign}.AND P0, P1, R2, R6, PT"
        check(text, partial(told, order), R2=C, R6=D, R3=A, R7=high)
    text = f"ISETP.GE.{sign}.AND P0, P1, R2, 0x9, PT"
    check(text, lambda low, high: told(ORDER["GE"], low, 9, high, 0), R2=C, R3=A)


@pytest.mark.parametrize("number", [0xFFFFF801, -1])
def test_a_number_of_32_bits_among_64_is_taken_as_it_is_written(number: int) -> None:
    def oracle(low: int, high: int, p: bool) -> tuple[int, int]:
        return (low, high) if p else (unsigned(number), unsigned(number >> 32))

    check(f"SEL.64 R2, R4, {number:#x}, P0", oracle, R4=A, R5=B, P0=P)


def test_an_order_that_names_its_unused_predicates() -> None:
    (found, *_) = compute("VIMNMX.U32 R0, PT, PT, R1, R2, PT", {"R1": 7, "R2": 9})
    assert found == 7


def test_order_of_pairs() -> None:
    def pairs(least: bool, *x: int) -> int:
        halves = zip(*(pieces(y, 16, True) for y in x))
        low, high = ((min if least else max)(half) & 0xFFFF for half in halves)
        return low | (high << 16)

    def told(a: int, b: int) -> tuple[int, bool, bool]:
        low, high = (x >= y for x, y in zip(pieces(a, 16, True), pieces(b, 16, True)))
        return pairs(False, a, b), low, high

    check("VIMNMX.S16x2 R0, P0, P1, R1, R2, !PT", told, R1=A, R2=B)
    check("VIMNMX3.S16x2 R0, R1, R2, R3, PT", lambda *x: pairs(True, *x), R1=A, R2=B, R3=C)

    def difference(a: int, b: int) -> int:
        low, high = ((x - y) & 0xFFFF for x, y in zip(pieces(a, 16, False), pieces(b, 16, False)))
        return low | (high << 16)

    check("VIADD.16x2 R0, R1, -R2", difference, R1=A, R2=B)
    banks = {0: (0x20003).to_bytes(4, "little")}
    assert compute("VIADD.16x2 R0, R1, -c[0x0][0x0]", {"R1": 5}, banks=banks) == [signed(0xFFFE0002)]

    def largest(a: int, b: int) -> int:
        found = map(max, pieces(a, 8, False), pieces(b, 8, False))
        return sum(byte << 8 * at for at, byte in enumerate(found))

    check("VIMNMX.U8x4 R0, R1, R2, !PT", largest, R1=A, R2=B)

    def of_bytes(a: int, b: int) -> int:
        both = zip(pieces(a, 8, False), pieces(b, 8, False))
        return sum((x - y & 0xFF) << 8 * place for place, (x, y) in enumerate(both))

    check("VIADD.U8x4 R0, R1, -R2", of_bytes, R1=A, R2=B)


def test_relu_is_never_negative() -> None:
    check("VIMNMX.RELU R0, R1, R2, PT", lambda a, b: max(0, min(signed(a), signed(b))), R1=A, R2=B)
    text = "VIADDMNMX.S16x2.RELU R0, R1, R2, R3, !PT"

    def oracle(a: int, b: int, c: int) -> int:
        sums = [signed(x + y, 16) for x, y in zip(pieces(a, 16, True), pieces(b, 16, True))]
        low, high = (max(x, y, 0) for x, y in zip(sums, pieces(c, 16, True)))
        return low | (high << 16)

    check(text, oracle, R1=A, R2=B, R3=C)


JOINS = {"AND": lambda a, b: a and b, "OR": lambda a, b: a or b, "XOR": lambda a, b: a != b}


@pytest.mark.parametrize("how", ORDER)
@pytest.mark.parametrize("join", JOINS)
def test_comparisons(how: str, join: str) -> None:
    order, combine = ORDER[how], JOINS[join]

    def oracle(a: int, b: int, p: bool) -> tuple[bool, bool]:
        found = order(signed(a), signed(b))
        return combine(found, p), combine(not found, p)

    check(f"ISETP.{how}.{join} P0, P1, R1, R2, P2", oracle, R1=A, R2=[*B[:24], *A[24:]], P2=P)


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(("how", "holds"), [("T", True), ("F", False)])
def test_comparisons_that_always_hold_or_never(how: str, holds: bool, join: str) -> None:
    combine = JOINS[join]
    text = f"ISETP.{how}.{join} P0, P1, R1, R2, P2"
    check(text, lambda a, b, p: (combine(holds, p), combine(not holds, p)), R1=A, R2=B, P2=P)


@pytest.mark.parametrize("how", ORDER)
@pytest.mark.parametrize("sign", ["", ".U32"])
def test_64_bit_comparisons(how: str, sign: str) -> None:
    def oracle(low_a: int, low_b: int, a: int, b: int) -> bool:
        high_a, high_b = (a, b) if sign else (signed(a), signed(b))
        return ORDER[how]((high_a << 32) + low_a, (high_b << 32) + low_b)

    highs = [*B[:12], *A[12:]]
    lower = [ORDER[how](a, b) for a, b in zip(C, D)]
    text = f"ISETP.{how}{sign}.AND.EX P0, PT, R1, R2, PT, P1"
    inputs = {"R1": A, "R2": highs, "P1": lower}
    expected = iter([oracle(c, d, a, b) for c, d, a, b in zip(C, D, A, highs)])
    found = {(a, b, p): next(expected) for a, b, p in zip(*inputs.values())}
    check(text, lambda a, b, p: (found[a, b, p], not found[a, b, p])[:2], **inputs)


def test_pieces_of_words() -> None:
    def extension(a: int, count: int, is_signed: bool) -> int:
        bits = min(count, 32)
        low = a & ((1 << bits) - 1)
        return unsigned(signed(low, bits)) if is_signed and bits else low

    counts = [lane % 34 for lane in range(48)]
    check("SGXT R0, R1, R2", lambda a, n: extension(a, n, True), R1=A, R2=counts)
    check("SGXT.U32 R0, R1, R2", lambda a, n: extension(a, n, False), R1=A, R2=counts)
    check("SGXT.W R0, R1, R2", lambda a, n: extension(a, n & 31, True), R1=A, R2=counts)
    check("IABS R0, R1", lambda a: unsigned(abs(signed(a))), R1=A)


@pytest.mark.parametrize("left", ["S8", "U8"])
@pytest.mark.parametrize("right", ["S8", "U8"])
def test_dot_products(left: str, right: str) -> None:
    def four(a: int, b: int, c: int) -> int:
        return unsigned(
            c + sum(x * y for x, y in zip(pieces(a, 8, left == "S8"), pieces(b, 8, right == "S8")))
        )

    check(f"IDP.4A.{left}.{right} R0, R1, R2, R3", four, R1=A, R2=B, R3=C)

    def two(a: int, b: int, c: int) -> int:
        return unsigned(
            c + sum(x * y for x, y in zip(pieces(a, 16, left == "S8"), pieces(b, 8, right == "S8")[2:]))
        )

    check(f"IDP.2A.HI.{left[0]}16.{right} R0, R1, R2, R3", two, R1=A, R2=B, R3=C)


def test_distances() -> None:
    check(
        "VABSDIFF R0, R1, R2, R3", lambda a, b, c: unsigned(abs(signed(a) - signed(b)) + c), R1=A, R2=B, R3=C
    )
    check("VABSDIFF.U32 R0, R1, R2, R3", lambda a, b, c: unsigned(abs(a - b) + c), R1=A, R2=B, R3=C)

    def of_bytes(a: int, b: int, is_signed: bool) -> list[int]:
        return [abs(x - y) for x, y in zip(pieces(a, 8, is_signed), pieces(b, 8, is_signed))]

    packed = lambda found: sum((x & 255) << (8 * i) for i, x in enumerate(found))  # noqa: E731
    check("VABSDIFF4 R0, R1, R2, R3", lambda a, b, c: packed(of_bytes(a, b, True)), R1=A, R2=B, R3=C)
    text = "VABSDIFF4.U8.ACC R0, R1, R2, R3"
    check(text, lambda a, b, c: unsigned(sum(of_bytes(a, b, False)) + c), R1=A, R2=B, R3=C)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    *(st.lists(st.sampled_from(WORDS) | st.integers(0, 2**32 - 1), min_size=8, max_size=8) for _ in range(3))
)
def test_sums_of_a_block_and_a_thread(block: list[int], thread: list[int], other: list[int]) -> None:
    """Registers that are sums of parts give what the words give that they stand for."""
    both = plus(held(block, (8, 1)), held(thread, (1, 8)))
    (low, carry) = compute("IADD3 R0, P0, R1, R2, RZ", {"R1": both, "R2": held(other, (1, 8))})
    words_found = np.broadcast_to(to_array(low), (8, 8))
    carries = np.broadcast_to(to_bools(carry), (8, 8))
    for i in range(8):
        for j in range(8):
            total = unsigned(block[i] + thread[j]) + other[j]
            assert unsigned(int(words_found[i, j])) == unsigned(total)
            assert bool(carries[i, j]) == (total >> 32 == 1)


@pytest.mark.parametrize("how", ORDER)
def test_comparisons_of_words_whose_bounds_meet(how: str) -> None:
    """What bounds decide, and what they leave to the lanes."""
    pairs = [[low, high] for low in range(-1, 3) for high in range(low, 3)]
    for a, b in product(pairs, pairs):
        registers = {"R1": from_array(np.array([a])), "R2": from_array(np.array([b]))}
        found, inverse = compute(f"ISETP.{how}.AND P0, P1, R1, R2, PT", registers)
        wanted = [ORDER[how](x, y) for x, y in zip(a, b)]
        assert np.broadcast_to(to_bools(found), (1, 2)).tolist() == [wanted]
        assert np.broadcast_to(to_bools(inverse), (1, 2)).tolist() == [[not one for one in wanted]]


@pytest.mark.parametrize(("least", "pick"), [("PT", min), ("!PT", max)])
@pytest.mark.parametrize("kind", ["", ".U32"])
def test_the_lesser_of_words_whose_bounds_meet(kind: str, least: str, pick: Callable[..., int]) -> None:
    pairs = [[low, high] for low in range(-2, 3) for high in range(low, 3)]
    for a, b in product(pairs, pairs):
        registers = {"R1": from_array(np.array([a])), "R2": from_array(np.array([b]))}
        (found,) = compute(f"IMNMX{kind} R0, R1, R2, {least}", registers)
        key = (lambda word: word % 2**32) if kind else None
        wanted = [pick(x, y, key=key) for x, y in zip(a, b)]
        assert np.broadcast_to(to_array(found), (1, 2)).tolist() == [wanted]


def test_carries_of_64_bits_of_which_some_lanes_are_negative() -> None:
    edges = [0, 1, 2**63 - 1, -1, -(2**63)]
    for a, b in product(product(edges, edges), product(edges, edges)):
        for extra in (0, 1):
            first, second = (from_array(np.array([list(pair)])) for pair in (a, b))
            wanted = [x % 2**64 + y % 2**64 + extra >= 2**64 for x, y in zip(a, b)]
            found = carry_of_64(first, second, extra)
            assert np.broadcast_to(to_bools(found), (1, 2)).tolist() == [wanted]
