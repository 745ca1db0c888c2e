"""Logic, shifts, selection and counting of bits against Python's integers."""

from __future__ import annotations

import pytest

from memsim.state.partial import NEVER_WRITTEN, Partial
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools
from tests.isa.harness import check, compute, held, words
from tests.isa.oracle import signed, unsigned

A, B, C = (words(48, seed) for seed in range(10, 13))
P, Q, R = ([bool(lane >> bit & 1) for lane in range(48)] for bit in range(3))


@pytest.mark.parametrize("table", range(256))
def test_truth_tables(table: int) -> None:
    def oracle(a: int, b: int, c: int) -> int:
        return sum(
            (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32)
        )

    check(f"LOP3.LUT R0, R1, R2, R3, {table:#x}, !PT", oracle, R1=A[:16], R2=B[:16], R3=C[:16])


def test_lop3_tells_whether_a_bit_is_set() -> None:
    text = "LOP3.LUT P0, R0, R1, R2, RZ, 0xc0, P1"
    check(text, lambda a, b, p: (bool(a & b) or p, a & b), R1=A, R2=B, P1=P)


@pytest.mark.parametrize("table", [0x00, 0x80, 0xFE, 0x96, 0x1B, 0x02, 0x40])
def test_tables_of_predicates(table: int) -> None:
    def oracle(p: bool, q: bool, r: bool) -> tuple[bool, bool]:
        return tuple(bool(t >> (p * 4 + q * 2 + r) & 1) for t in (table, 0x0F))

    check(f"PLOP3.LUT P0, P1, P2, P3, P4, {table:#x}, 0xf", oracle, P2=P, P3=Q, P4=R)


def test_signs_as_predicates() -> None:
    text = "PLOP3.LUT P0, PT, R1.SIGN, R2.SIGN, R3.SIGN, 0x2, 0x0"
    negative = lambda x: signed(x) < 0  # noqa: E731
    check(
        text, lambda a, b, c: (not negative(a) and not negative(b) and negative(c), False), R1=A, R2=B, R3=C
    )


AMOUNTS = [lane * 3 % 70 for lane in range(47)] + [0xFFFFFFFF]


@pytest.mark.parametrize("wraps", ["", ".W"])
def test_shifts(wraps: str) -> None:
    def by(amount: int, size: int) -> int:
        return amount % size if wraps else min(amount, size)

    def left(lo: int, n: int, hi: int) -> int:
        return unsigned(((hi << 32) | lo) << by(n, 32) >> 32)

    inputs = {"R1": A, "R2": AMOUNTS, "R3": B}
    check(f"SHF.L{wraps}.U32.HI R0, R1, R2, R3", left, **inputs)
    check(f"SHF.L{wraps}.U32 R0, R1, R2, R3", lambda lo, n, hi: unsigned(lo << by(n, 32)), **inputs)
    check(
        f"SHF.R{wraps}.U32 R0, R1, R2, R3",
        lambda lo, n, hi: unsigned(((hi << 32) | lo) >> by(n, 32)),
        **inputs,
    )
    check(f"SHF.R{wraps}.U32.HI R0, R1, R2, R3", lambda lo, n, hi: hi >> by(n, 32), **inputs)
    check(
        f"SHF.R{wraps}.S32.HI R0, R1, R2, R3", lambda lo, n, hi: unsigned(signed(hi) >> by(n, 32)), **inputs
    )


def test_wide_shifts() -> None:
    def by(amount: int) -> int:
        return min(amount, 64)

    inputs = {"R1": A, "R2": AMOUNTS, "R3": B}
    check("SHF.R.U64 R0, R1, R2, R3", lambda lo, n, hi: unsigned(((hi << 32) | lo) >> by(n)), **inputs)
    check(
        "SHF.R.S64 R0, R1, R2, R3", lambda lo, n, hi: unsigned(((signed(hi) << 32) | lo) >> by(n)), **inputs
    )
    check(
        "SHF.L.U64.HI R0, R1, R2, R3", lambda lo, n, hi: unsigned(((hi << 32) | lo) << by(n) >> 32), **inputs
    )


def bytes_of(a: int, selector: int, c: int) -> int:
    whole = (c << 32) | a
    found = 0
    for i in range(4):
        pick = selector >> (4 * i) & 15
        byte = whole >> (8 * (pick & 7)) & 255
        found |= (0xFF * (byte >> 7) if pick & 8 else byte) << (8 * i)
    return found


@pytest.mark.parametrize(
    "selector",
    [
        *(0x3210, 0x3211, 0x320F, 0x7210, 0x5410, 0x7632, 0x0123, 0xBB99, 0x8888, 0xFEDC, 0x4440),
        *(0x13210, 0xFFFF3210, 0x32107654, 0x3210FFFF, 0x32111111),  # bits from 16 on do not matter
    ],
)
def test_permutations(selector: int) -> None:
    check(f"PRMT R0, R1, {selector:#x}, R2", lambda a, c: bytes_of(a, selector, c), R1=A, R2=B)


def test_permutations_by_a_register() -> None:
    check("PRMT R0, R1, R2, R3", bytes_of, R1=A, R2=C, R3=B)


NAMED = {"F4E": 0x3210, "B4E": 0x5670, "RC8": 0, "ECL": 0x3210, "ECR": 0, "RC16": 0x1010}
THIRD = {"F4E": 0x6543, "B4E": 0x0123, "RC8": 0x3333, "ECL": 0x3333, "ECR": 0x3210, "RC16": 0x3232}


@pytest.mark.parametrize("name", NAMED)
def test_named_permutations(name: str) -> None:
    check(f"PRMT.{name} R0, R1, RZ, R2", lambda a, c: bytes_of(a, NAMED[name], c), R1=A, R2=B)
    check(f"PRMT.{name} R0, R1, 0x3, R2", lambda a, c: bytes_of(a, THIRD[name], c), R1=A, R2=B)


def test_a_half_may_be_set_in_a_register_that_was_never_written() -> None:
    (found,) = compute("PRMT R0, R1, 0x7610, R0", {"R1": 0x12345678})
    assert found & 0xFFFF == 0x5678
    value = Partial(held(A[:8], (1, 8)), from_bools(held_lanes()), NEVER_WRITTEN)
    (found,) = compute("PRMT R0, R1, 0x5410, R2", {"R1": value, "R2": 7})
    assert [int(x) & 0xFFFFFFFF for x in found.array[0]] == [(a & 0xFFFF) | 7 << 16 for a in A[:8]]
    with pytest.raises(Poisoned):  # what is unknown for another reason stays so
        compute("PRMT R0, R1, 0x7610, R0", {"R1": Poison("unknown", None)})


def test_bits_may_be_set_in_a_register_that_was_never_written() -> None:
    """As compilers do where they run out of predicates."""
    (found,) = compute("LOP3.LUT R0, R0, 0xfffffdff, RZ, 0xc0, !PT", {})
    assert found & 0x200 == 0
    (found,) = compute("LOP3.LUT R0, R0, 0x200, RZ, 0xfc, !PT", {})
    assert found & 0x200
    for text in ("LOP3.LUT R1, R0, 0x200, RZ, 0xc0, !PT", "LOP3.LUT R0, R0, 0x200, RZ, 0x3c, !PT"):
        with pytest.raises(Poisoned):  # not a change of bits, or one that reads them
            compute(text, {})
    with pytest.raises(Poisoned):  # what is unknown for another reason stays so
        compute("LOP3.LUT R0, R0, 0x200, RZ, 0xfc, !PT", {"R0": Poison("unknown", None)})


def held_lanes():  # type: ignore[no-untyped-def]
    import numpy as np

    return np.arange(8)[None, :] < 5


def test_selection() -> None:
    check("SEL R0, R1, R2, P0", lambda a, b, p: a if p else b, R1=A, R2=B, P0=P)
    check("SEL R0, R1, 0x7, !P0", lambda a, p: a if not p else 7, R1=A, P0=P)
    check("FSEL R0, R1, R2, P0", lambda a, b, p: a if p else b, R1=A, R2=B, P0=P)
    check("MOV R0, R1", lambda a: a, R1=A)
    check("MOV R0, ~R1", lambda a: unsigned(~a), R1=A)


def test_predicates_in_registers() -> None:
    def packed(a: int, p: bool, q: bool) -> int:
        return (a & ~(0x5 << 8)) | (p << 8) | (q << 10)

    check("P2R R0.B1, PR, R1, 0x5", packed, R1=A, P0=P, P2=Q)
    check("UP2UR UR4.B1, UPR, UR5, 0x5", packed, UR5=A, UP0=P, UP2=Q)
    assert compute("R2P PR, R1, 0x0", {"R1": 5}) == []
    check("R2P PR, R1.B2, 0x3", lambda a: (bool(a >> 16 & 1), bool(a >> 17 & 1)), R1=A)


def test_counting_bits() -> None:
    check("FLO.U32 R0, R1", lambda a: unsigned(a.bit_length() - 1), R1=A)
    check("FLO.U32.SH R0, R1", lambda a: unsigned(32 - a.bit_length() if a else -1), R1=A)
    check("FLO R0, R1", lambda a: unsigned((~signed(a) if signed(a) < 0 else a).bit_length() - 1), R1=A)
    check("POPC R0, R1", lambda a: bin(a).count("1"), R1=A)
    check("BREV R0, R1", lambda a: int(f"{a:032b}"[::-1], 2), R1=A)

    def mask(start: int, count: int) -> int:
        return unsigned(((1 << min(count, 32)) - 1) << min(start, 32))

    check("BMSK R0, R1, R2", mask, R1=AMOUNTS, R2=A)
    check("BMSK.W R0, R1, R2", lambda s, n: mask(s % 32, n % 32), R1=AMOUNTS, R2=A)
