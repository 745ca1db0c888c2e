"""Matrix instructions against what an H200 gave (products_h200.json), and against sums of fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.state.registers import from_array, ints, to_array
from tests.isa.harness import Lanes, compute, words
from tests.isa.oracle import F16, F32, decode, encode, pieces, rounded, signed

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "products_h200.json").read_text()
)


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
    columns = [np.broadcast_to(to_array(ints(word, 32)), (1, 32))[0] for word in found]
    return [[int(column[lane]) & 0xFFFFFFFF for column in columns] for lane in range(32)]


@pytest.mark.parametrize("name", RECORDED)
def test_products_are_those_of_an_h200(name: str) -> None:
    one = RECORDED[name]
    found = product(name, one["a"], one["b"], one["c"])
    assert ["".join(f"{word:08x}" for word in row) for row in found] == one["d"]


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
