"""Literals and constant expressions have the values that ptxas gives them."""

from __future__ import annotations

import math

import pytest

from memsim.errors import MemsimError
from memsim.ptx.constant_expressions import constant
from memsim.ptx.lexer import Cursor, PtxText

# What ptxas 13.0 laid down in the data of a `.u64` variable with this initial value.
PTXAS = {
    "-5 % 3": 0x2,
    "-5/2": 0xFFFFFFFFFFFFFFFE,
    "5/2": 0x2,
    "-1 >> 4": 0xFFFFFFFFFFFFFFFF,
    "0xFFFFFFFFFFFFFFFF >> 4": 0xFFFFFFFFFFFFFFF,
    "~0U >> 4": 0xFFFFFFFFFFFFFFF,
    "-1 < 1U": 0x0,
    "-1 & 1 < 0": 0x0,
    "(.u64)-1 >> 60": 0xF,
    "(.u64)(-1) >> 60": 0xF,
    "-1U / 2": 0x7FFFFFFFFFFFFFFF,
    "1 ? 2 : 3U": 0x2,
    "-8 / 3U": 0x5555555555555552,
    "7 - 8U < 0": 0x0,
    "!0": 0x1,
    "!5": 0x0,
    "~5": 0xFFFFFFFFFFFFFFFA,
    "-5 * 3U / 4": 0x3FFFFFFFFFFFFFFC,
    "-1 | 0": 0xFFFFFFFFFFFFFFFF,
    "(-1 | 0) >> 60": 0xFFFFFFFFFFFFFFFF,
    "(-1 & -1) / 2": 0x0,
    "(-7 % 4) < 0": 0x0,
    "1 << 63 >> 63": 0xFFFFFFFFFFFFFFFF,
    "1U << 63 >> 63": 0x1,
    "2 + 3 * 4": 0xE,
    "1 | 6 ^ 3 & 5": 0x7,
    "8 >> 1 + 1": 0x2,
    "1.5 < 2.5": 0x1,
    "1 == 1 != 0": 0x1,
    "-9223372036854775808 < 0": 0x0,
    "1 && 0 || 1": 0x1,
    "1.5 + 2.25 == 3.75 ? 7 : 8": 0x7,
    "0 ? 1 : 0 ? 2 : 3": 0x3,
    "-7 / 2": 0xFFFFFFFFFFFFFFFD,
    "(1?-1:0U) >> 60": 0xFFFFFFFFFFFFFFFF,
    "-17 >> 2": 0xFFFFFFFFFFFFFFFB,
    "5 - 3 - 1": 0x1,
    "100/10/5": 0x2,
    "-(3)": 0xFFFFFFFFFFFFFFFD,
    "+3": 0x3,
    "- -3": 0x3,
    "!!7": 0x1,
}

LITERALS = {
    "0": 0,
    "12": 12,
    "12U": 12,
    "0x1F": 31,
    "0X1fU": 31,
    "017": 15,
    "00": 0,
    "0b101": 5,
    "0B11U": 3,
    "18446744073709551615": 2**64 - 1,
    "WARP_SZ": 32,
    "1.5": 1.5,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "2.5E-3": 0.0025,
    "0f3F800000": 1.0,
    "0F7F800000": math.inf,
    "0d400921FB54442D18": math.pi,
    "0Dbff0000000000000": -1.0,
}

BAD = {
    "": (1, "an operand, the text ends here"),
    "1 +": (4, "an operand"),
    "(1": (3, "')'"),
    "1 ? 2": (6, "':'"),
    "08": (1, "is not PTX"),
    "0x": (1, "is not PTX"),
    "1.5 + 2": (5, "'+' cannot have a float operand"),
    "1.5 ? 2 : 3": (1, "the condition of '?' is a float"),
    "~1.5": (1, "'~' cannot have a float"),
    "1.5 << 2": (5, "'<<' cannot have a float operand"),
    "4 / (2 - 2)": (3, "division by zero"),
    "4 % 0": (3, "division by zero"),
    "36893488147419103232": (1, "does not fit into 64 bits"),
}


def value(text: str) -> int | float:
    cursor = Cursor(PtxText(text, "<test>"))
    result = constant(cursor)
    assert cursor.peek_kind() == "end"
    return result


@pytest.mark.parametrize("text", PTXAS)
def test_expression_as_ptxas_has_it(text: str) -> None:
    result = value(text)
    assert isinstance(result, int)
    assert result % 2**64 == PTXAS[text]


@pytest.mark.parametrize("text", LITERALS)
def test_literal(text: str) -> None:
    assert value(text) == LITERALS[text]
    assert type(value(text)) is type(LITERALS[text])


@pytest.mark.parametrize("text", BAD)
def test_error(text: str) -> None:
    column, message = BAD[text]
    with pytest.raises(MemsimError) as caught:
        value(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert message in caught.value.message
