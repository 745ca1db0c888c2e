"""Matrix instructions against what an H200 gave (products_h200.json), and against sums of fractions."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.state.partial import Partial, split_partial
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import choose, from_array, ints, to_array
from tests.isa.harness import Lanes, compute, words
from tests.isa.oracle import F16, F32, decode, encode, pieces, rounded, signed

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "products_h200.json").read_text()
)
WHY = Poison("unknown for a test", None)


def registers(rows: list[str], first: int) -> dict[str, Any]:
    """The words of each lane as registers from R`first` on."""
    table = [[int(row[i : i + 8], 16) for i in range(0, len(row), 8)] for row in rows]
    return {
        f"R{first + i}": from_array(np.array([[signed(row[i]) for row in table]], np.int64))
        for i in range(len(table[0]))
    }


def product(name: str, a: list[str], b: list[str], c: list[str]) -> list[list[int]]:
    """The result's words, for each lane."""
    sides = (".ROW", ".COL") if name.startswith("IMMA") else ("", "")
    values = {**registers(a, 32), **registers(b, 64), **registers(c, 96)}
    found = compute(f"{name} R0, R32{sides[0]}, R64{sides[1]}, R96", values, Lanes(32))
    columns = [np.broadcast_to(to_array(ints(word)), (1, 32))[0] for word in found]
    return [[int(column[lane]) & 0xFFFFFFFF for column in columns] for lane in range(32)]


@pytest.mark.parametrize("name", RECORDED)
def test_products_are_those_of_an_h200(name: str) -> None:
    one = RECORDED[name]
    found = product(name, one["a"], one["b"], one["c"])
    assert ["".join(f"{word:08x}" for word in row) for row in found] == one["d"]


def fragments(name: str) -> dict[str, Any]:
    """The recorded operands of a product as registers."""
    one = RECORDED[name]
    return {**registers(one["a"], 32), **registers(one["b"], 64), **registers(one["c"], 96)}


def known_words(name: str, values: dict[str, Any]) -> list[list[int | None]]:
    """The result's words, for each lane; None where unknown."""
    sides = (".ROW", ".COL") if name.startswith("IMMA") else ("", "")
    found = []
    for word in compute(f"{name} R0, R32{sides[0]}, R64{sides[1]}, R96", values, Lanes(32)):
        value, known, _ = split_partial(word)
        lanes = np.broadcast_to(to_bools(known), (1, 32))[0].tolist()
        array = [0] * 32 if value is None else np.broadcast_to(to_array(ints(value)), (1, 32))[0].tolist()
        found.append([number if sure else None for number, sure in zip(array, lanes)])
    return [list(words) for words in zip(*found)]


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_known_does_not_depend_on_what_is_not(name: str) -> None:
    """Whatever the unknown lanes of some operands hold, the words that are said to be known stay the same."""
    chance = np.random.default_rng(len(name))
    whole, values = fragments(name), fragments(name)
    for register in chance.choice(sorted(whole), 3, replace=False).tolist():
        known = np.ones((1, 32), bool)
        known[0, chance.choice(32, 2, replace=False)] = False
        values[register] = Partial(whole[register], from_bools(known), WHY)
    told = known_words(name, values)
    count = sum(word is None for lane in told for word in lane)
    assert 0 < count < 32 * len(told[0])
    for _ in range(4):
        other = {
            register: choose(value.known, value.value, from_array(chance.integers(-(2**31), 2**31, (1, 32))))
            if isinstance(value, Partial)
            else value
            for register, value in values.items()
        }
        for lane, expected in zip(known_words(name, other), told):
            assert all(word in (None, found) for word, found in zip(expected, lane))


@pytest.mark.parametrize(
    ("operand", "lanes", "unknown"),
    [
        ("R33", [4 * 3 + 2], lambda row, column: row == 8 + 3),  # rows 8 and on of A
        ("R64", [4 * 5], lambda row, column: column == 5),
        ("R97", [4 * 2 + 1], lambda row, column: (row, column) == (2, 3)),
        ("R34", range(32), lambda row, column: row < 8),  # no lane of it is known
    ],
)
def test_a_row_of_a_and_a_column_of_b_decide_what_is_known(
    operand: str, lanes: Any, unknown: Callable[[int, int], bool]
) -> None:
    """PTX ISA, `mma.m16n8k16`: which rows and columns of the result are in which lane."""
    name = "HMMA.16816.F32"
    values = fragments(name)
    known = np.ones((1, 32), bool)
    known[0, list(lanes)] = False
    values[operand] = Partial(values[operand], from_bools(known), WHY) if known.any() else WHY
    right = product(name, *(RECORDED[name][side] for side in "abc"))
    for lane, words_of_lane in enumerate(known_words(name, values)):
        for number, word in enumerate(words_of_lane):
            row, column = lane // 4 + 8 * (number // 2), 2 * (lane % 4) + number % 2
            if unknown(row, column):
                assert word is None
            else:
                assert word is not None and word & 0xFFFFFFFF == right[lane][number]


def test_a_tensor_core_cuts_off_and_rounds_towards_zero() -> None:
    """HMMA.1688.F32 of float16 by fractions: lane 4 r + c of A holds columns 2 c and 2 c + 1 of row r."""
    one = RECORDED["HMMA.1688.F32"]
    found = product("HMMA.1688.F32", one["a"], one["b"], one["c"])
    a = [[int(row[i : i + 8], 16) for i in (0, 8)] for row in one["a"]]
    b = [int(row, 16) for row in one["b"]]
    for lane in range(32):
        for number in range(4):
            row, column = lane // 4 + 8 * (number // 2), 2 * (lane % 4) + number % 2
            left = [pieces(a[4 * (row % 8) + k // 2][row // 8], 16, False)[k % 2] for k in range(8)]
            right = [pieces(b[4 * column + k // 2], 16, False)[k % 2] for k in range(8)]
            terms = [decode(x, F16)[1] * decode(y, F16)[1] for x, y in zip(left, right)]
            tops = [top(x) + top(y) for x, y in zip(left, right) if x & 0x7FFF and y & 0x7FFF]
            added = int(one["c"][lane][8 * number : 8 * number + 8], 16)
            terms.append(decode(added, F32)[1])
            tops.append(((added >> 23) & 255) - 127)
            unit = Fraction(2) ** (max(tops) - 25)
            total = sum((rounded(Fraction(term), unit, "rz") for term in terms), start=Fraction(0))
            assert found[lane][number] == encode(total, F32, "rz")


def top(half: int) -> int:
    """The exponent of a normal float16."""
    return ((half >> 10) & 31) - 15


@pytest.mark.parametrize(
    ("a", "c", "sum_of_16"), [(1, 2**30, 2**30 + 16), (1, 2**31 - 9, 2**31 - 1), (-1, 9 - 2**31, -(2**31))]
)
def test_sums_of_integers_saturate(a: int, c: int, sum_of_16: int) -> None:
    ones = 0x01010101
    values = {"R32": a * ones, "R33": a * ones, "R64": ones, **{f"R{96 + i}": c for i in range(4)}}
    found = compute("IMMA.16816.S8.S8.SAT R0, R32.ROW, R64.COL, R96", values, Lanes(32))
    assert {int(value) for word in found for value in to_array(ints(word)).flat} == {sum_of_16}


def test_a_matrix_of_rz_is_zeros() -> None:
    values = dict.fromkeys(("R32", "R33", "R64"), 0x01010101)
    for b, sum_of_16 in (("R64.COL", 16), ("RZ.COL", 0)):
        found = compute(f"IMMA.16816.S8.S8 R0, R32.ROW, {b}, RZ", values, Lanes(32))
        assert {int(value) for word in found for value in to_array(ints(word)).flat} == {sum_of_16}


def test_a_matrix_is_transposed() -> None:
    given = words(32, 70)
    value = from_array(np.array([[signed(word) for word in given]], np.int64))
    (found,) = compute("MOVM.16.MT88 R0, R1", {"R1": value}, Lanes(32))
    element = lambda row, column: pieces(given[4 * row + column // 2], 16, False)[column % 2]  # noqa: E731
    for lane, word in enumerate(to_array(found)[0]):
        row, column = lane // 4, 2 * (lane % 4)
        assert int(word) & 0xFFFFFFFF == element(column, row) | element(column + 1, row) << 16


def test_several_warps_and_blocks() -> None:
    """Each warp multiplies its own fragments; a zero register is a matrix of zeros."""
    one = RECORDED["HMMA.16816.F32"]
    values = {**registers(one["a"], 32), **registers(one["b"], 64)}
    alone = compute("HMMA.16816.F32 R0, R32, R64, RZ", values, Lanes(32))
    twice = {
        name: from_array(
            np.stack([np.tile(to_array(value)[0], 2), np.roll(np.tile(to_array(value)[0], 2), 32)])
        )
        for name, value in values.items()
    }
    found = compute("HMMA.16816.F32 R0, R32, R64, RZ", twice, Lanes(64))
    for x, y in zip(alone, found):
        assert y.shape == (2, 64) and (y == np.tile(x, 2)).all()
