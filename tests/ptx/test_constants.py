"""The values of literals."""

from __future__ import annotations

import math

import pytest

from memsim.errors import MemsimError
from memsim.ptx.lexer import Cursor, PtxText

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
    "-5": -5,
    "-0x10": -16,
    "-1.5": -1.5,
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
    "-": (2, "an operand, the text ends here"),
    "(1)": (1, "an operand, found '('"),
    "08": (1, "is not PTX"),
    "0x": (1, "is not PTX"),
    "36893488147419103232": (1, "does not fit into 64 bits"),
}


def value(text: str) -> int | float:
    cursor = Cursor(PtxText(text, "<test>"))
    result = cursor.take_constant()
    assert cursor.peek_kind() == "end"
    return result


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
