"""The multi-function unit against recordings of every argument, and against integers bit by bit."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim.isa.multi_function as unit
from memsim.isa.multi_function import FUNCTIONS, OF_HIGH, is_approximate
from memsim.sass.decode import decode
from memsim.sass.listing import Listing, ListingLine
from memsim.state.registers import to_array
from tests.isa.harness import compute
from tests.validate.conftest import TRACES

BOARDS = ("nvidia-h100-80gb-hbm3", "nvidia-h200")
CHUNK = 1 << 20
#: Chunks of 2**20 bit patterns: subnormal, from 1 on, and negative numbers; small, large and infinite ones.
FEW, OTHERS = (0x000, 0x3F8, 0xBF2), (0x3B9, 0x4A1, 0x7F8)


@cache
def recording(board: str) -> dict[str, np.ndarray]:
    with np.load(TRACES / board / "functions.npz") as file:
        return {name: file[name] for name in file.files}


def results(name: str, bits: np.ndarray) -> np.ndarray:
    """Bits of the results for the bits of arguments, both uint32."""
    if name in OF_HIGH:
        return OF_HIGH[name](bits.astype(np.int64)).astype(np.uint32)
    return FUNCTIONS[name](bits.view(np.float32)).view(np.uint32)


def digest(arguments: np.ndarray, found: np.ndarray) -> int:
    """The sum of splitmix64's finalizer of argument << 32 | result, modulo 2**64."""
    z = arguments.astype(np.uint64) << np.uint64(32) | found.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ z >> np.uint64(shift)) * np.uint64(factor)
    return int((z ^ z >> np.uint64(31)).sum(dtype=np.uint64))


def differing(name: str, chunks: Iterator[int]) -> list[int]:
    """Chunks whose results are not those that were recorded."""
    recorded, wrong = recording(BOARDS[0])[name], []
    for chunk in chunks:
        arguments = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK, dtype=np.uint32)
        if digest(arguments, results(name, arguments)) != recorded[chunk]:
            wrong.append(chunk)
    return wrong


@pytest.mark.some(2)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_HIGH])
def test_results_are_those_of_the_chip(name: str) -> None:
    assert differing(name, iter(FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_HIGH])
def test_more_results_are_those_of_the_chip(name: str) -> None:
    some = (*OTHERS, *range(5, 4096, 41))
    assert differing(name, iter(range(4096) if "MEMSIM_ALL_ARGUMENTS" in os.environ else some)) == []


#: Of normal numbers of every exponent, both signs, and what is no normal number.
NORMAL = np.array([e << 23 | f for e in range(1, 255) for f in (0, 1, 0x2AAAAA, 0x7FFFFF)], np.uint32)
EVERY = np.concatenate([NORMAL, np.array([0, 1, 0x7FFFFF, 0x7F800000, 0x7FC00000], np.uint32)])
EVERY = np.concatenate([EVERY, EVERY | np.uint32(1 << 31)])
EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "RCP": lambda x: 1 / x,
    "SQRT": np.sqrt,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "EX2": np.exp2,
    "LG2": np.log2,
}


@pytest.mark.parametrize("name", EXACT)
def test_results_of_every_exponent_are_near_the_exact_ones(name: str) -> None:
    """What is subnormal is zero, before and after; no result is further away than 2**-21 of it."""
    given = EVERY.view(np.float32)
    with np.errstate(all="ignore"):
        flushed = np.where(np.abs(given) < 2.0**-126, np.copysign(0, given), given).astype(np.float64)
        exact = EXACT[name](flushed)
        exact = np.where(np.abs(exact) < 2.0**-126, np.copysign(0, exact), exact)
        found = results(name, EVERY).view(np.float32).astype(np.float64)
        exact = np.where(np.abs(exact) >= 2.0**128, np.copysign(np.inf, exact), exact)
        near = np.abs(found - exact) <= np.maximum(np.abs(exact) * 2.0**-21, 2.0**-22 * (name == "LG2"))
    same = (found == exact) & (np.signbit(found) == np.signbit(exact))
    assert np.where(np.isnan(exact), np.isnan(found), same | near).all(), given[
        ~np.where(np.isnan(exact), np.isnan(found), same | near)
    ]


@pytest.mark.parametrize("name", ["RCP64H", "RSQ64H"])
def test_high_words_of_every_exponent_are_near_the_exact_ones(name: str) -> None:
    high = np.array([e << 20 | f for e in range(2047) for f in (0, 1, 0x2AAAA, 0xFFFFF)], np.int64)
    high = np.concatenate([high, [0x7FF00000, 0x7FF00001, 0x7FF80000]])
    high = np.concatenate([high, high | 1 << 31])
    given = (high << 32).view(np.float64)
    with np.errstate(all="ignore"):
        flushed = np.where(np.abs(given) < 2.0**-1022, np.copysign(0, given), given)
        exact = 1 / flushed if name == "RCP64H" else 1 / np.sqrt(flushed)
        exact = np.where(np.abs(exact) < 2.0**-1022, np.copysign(0, exact), exact)
        found = (results(name, high.astype(np.uint32)).astype(np.int64) << 32).view(np.float64)
        near = np.abs(found - exact) <= np.abs(exact) * 2.0**-18
    same = (found == exact) & (np.signbit(found) == np.signbit(exact))
    right = np.where(np.isnan(exact), np.isnan(found), same | near)
    assert right.all(), (given[~right], found[~right])


def test_both_boards_computed_the_same() -> None:
    first, second = (recording(board) for board in BOARDS)
    arrays = {name for name in first if name not in ("head", "source")}
    assert arrays == {*FUNCTIONS, *OF_HIGH, "ex2_f16", "ex2_bf16", "tanh_f16", "tanh_bf16"}
    assert all(np.array_equal(first[name], second[name]) for name in arrays)


@pytest.mark.parametrize("change", [1, -1])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_digest_notices_a_coefficient(change: int, column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one segment, by about the unit in which the reciprocal's are given."""
    changed = {name: rows.copy() for name, rows in unit.coefficients().items()}
    changed["RCP"][column, 3] += change * (2.0**-28 if column == 0 else 2.0**-38)
    monkeypatch.setattr(unit, "coefficients", lambda: changed)
    assert differing("RCP", iter([0x3F8])) == [0x3F8]


@pytest.mark.parametrize("name", ["ex2_f16", "ex2_bf16", "tanh_f16", "tanh_bf16"])
def test_all_results_of_16_bits_are_those_of_the_chip(name: str) -> None:
    function, _, kind = name.upper().partition("_")
    (found,) = compute(f"MUFU.{function}.{kind} R0, R1", {"R1": np.arange(1 << 16)[None]})
    assert np.array_equal(to_array(found).ravel() & 0xFFFF, recording(BOARDS[1])[name])


def squared(x: int) -> int:
    """The squarer, bit by bit: products of bits in columns below 19 are not built."""
    total = 0
    for i in range(17):
        for j in range(i, 17):
            column = 2 * i if i == j else i + j + 1
            if x >> i & x >> j & 1 and column >= 19:
                total += 1 << column
    return total >> 19


@cache
def rows(name: str) -> list[tuple[int, int, int]]:
    path = Path(unit.__file__).with_suffix(".csv")
    with path.open(encoding="ascii") as file:
        found = [row for row in csv.DictReader(file) if row["function"] == name]
    return [(int(row["constant"]), int(row["linear"]), int(row["quadratic"])) for row in found]


def scalar(name: str, fraction: int, first: int = 0) -> int:
    """The polynomial in units of 2**-40, by integers."""
    bits = 16 if name == "RCP" else 17
    constant, linear, quadratic = rows(name)[first + (fraction >> bits)]
    rest = fraction & (1 << bits) - 1
    return constant + linear * rest + quadratic * squared(rest << 17 - bits)


def float_of(value: int, power: int) -> float:
    """value * 2**power cut off to 24 bits."""
    spare = max(value.bit_length() - 24, 0)
    return math.ldexp(value >> spare << spare, power)


FRACTIONS = st.integers(0, (1 << 23) - 1)


@given(FRACTIONS, st.integers(-100, 100))
def test_reciprocals_and_roots_by_integers(fraction: int, exponent: int) -> None:
    argument = np.float32(math.ldexp(1 + fraction / 2**23, exponent))
    found = {name: float(FUNCTIONS[name](np.array([argument]))[0]) for name in ("RCP", "RSQ", "SQRT")}
    assert found["RCP"] == float_of(scalar("RCP", fraction), -40 - exponent)
    if fraction or exponent % 2:
        first, half = exponent % 2 * 64, exponent // 2
        assert found["RSQ"] == float_of(scalar("RSQ", fraction, first), -40 - half)
        assert found["SQRT"] == float_of(scalar("SQRT", fraction, first), -40 + half)


@given(FRACTIONS, st.integers(0, 100))
def test_powers_and_logarithms_by_integers(fraction: int, exponent: int) -> None:
    power = np.float32(exponent % 8 + (fraction >> 3 << 3) / 2**23)  # 23 bits with those before the point
    rest = int(float(power) % 1 * 2**23)
    found = float(FUNCTIONS["EX2"](np.array([power]))[0])
    assert found == float_of(scalar("EX2", rest), -41 + int(power))
    argument = np.float32(math.ldexp(1 + fraction / 2**23, exponent))
    if fraction or exponent:
        total = (exponent << 36) + (scalar("LG2", fraction) >> 4)
        assert float(FUNCTIONS["LG2"](np.array([argument]))[0]) == float_of(total, -36)


@given(st.integers(0, (1 << 25) - 1))
def test_angles_by_integers(turns: int) -> None:
    angle = np.array([turns / 2**25], np.float32)
    turns = int(float(angle[0]) * 2**25)
    for name, quarter in (("SIN", 0), ("COS", 1)):
        which = (turns >> 23) + quarter
        within = turns & (1 << 23) - 1
        size = float_of(scalar("SIN", (1 << 23) - 1 - within if which % 2 else within), -40)
        assert float(FUNCTIONS[name](angle)[0]) == (-size if which & 2 else size)


def test_numbers_that_are_none() -> None:
    """What the digests hold, too, in a form that can be read."""
    infinity, none = math.inf, math.nan
    arguments = np.array([0.0, -0.0, infinity, -infinity, none, -1.0, 1e-40], np.float32)
    expected = {
        "RCP": [infinity, -infinity, 0.0, -0.0, none, -1.0, infinity],
        "RSQ": [infinity, -infinity, 0.0, none, none, none, infinity],
        "SQRT": [0.0, -0.0, infinity, none, none, none, 0.0],
        "EX2": [1.0, 1.0, infinity, 0.0, none, 0.5, 1.0],
        "LG2": [-infinity, -infinity, infinity, none, none, none, -infinity],
        "SIN": [0.0, -0.0, none, none, none, -0.0, 0.0],
        "COS": [1.0, 1.0, none, none, none, 1.0, 1.0],
        "TANH": [0.0, -0.0, 1.0, -1.0, none, FUNCTIONS["TANH"](arguments)[5], 1e-40],
    }
    for name, wanted in expected.items():
        found = FUNCTIONS[name](arguments)
        assert np.array_equal(found, np.array(wanted, np.float32), equal_nan=True), name
        number = ~np.isnan(found)
        assert np.array_equal(np.signbit(found)[number], np.signbit(np.array(wanted))[number]), name


@pytest.mark.parametrize(
    ("operand", "approximates"),
    [
        *((text, True) for text in ("R2", "1", "+INF", "0x7f800000", "0xff800000")),
        *((text, False) for text in ("-QNAN", "0x7fc00000", "0xffc00000", "0x7f800001")),
    ],
)
def test_what_is_computed_of_no_number_is_no_approximation(operand: str, approximates: bool) -> None:
    lines = (ListingLine(0, None, f"MUFU.RSQ R0, {operand}", None),)
    assert is_approximate(decode(Listing("k", lines, {})).ops[0]) is approximates


def test_sums_and_moves_are_no_approximations() -> None:
    lines = tuple(ListingLine(0, None, text, None) for text in ("FADD R0, R1, R2", "MUFU.EX2 R0, R1"))
    assert [is_approximate(op) for op in decode(Listing("k", lines, {})).ops] == [False, True]
