"""Literals and constant expressions, evaluated to a Python int (64-bit, signed or unsigned as PTX types it)
or a float.

Symbols are not handled: an address is not a constant expression.

Rules: PTX ISA, "Constant Expressions" and "Integer Constant Expression Evaluation". Integers have 64 bits and
are signed unless written with `U` or too large for a signed one; if one operand of an operator is unsigned,
both are. `%` works on unsigned values. The tests contain the values that ptxas 13.0 emits for the same
expressions.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import NamedTuple

from memsim.arch.units import WARP
from memsim.ptx.lexer import Cursor

_WRAP = 1 << 64
_HEX_FLOATS = {"0f": ">f", "0d": ">d"}


class _Value(NamedTuple):
    value: int | float
    unsigned: bool = False


def constant(cursor: Cursor) -> int | float:
    """Parse a constant expression and return its value.

    Raises:
        MemsimError: not a constant, ints mixed with floats, or a division by zero.
    """
    return _ternary(cursor).value


def literal(text: str) -> int | float:
    """The value of one number token: `12`, `0x1F`, `017`, `0b11`, `5U`, `1.5`, `0f3F800000`, `0d...`."""
    prefix = text[:2].lower()
    if prefix in _HEX_FLOATS:
        (value,) = struct.unpack(_HEX_FLOATS[prefix], bytes.fromhex(text[2:]))
        return float(value)
    digits = text.rstrip("U")
    if prefix in ("0x", "0b"):
        return int(digits, 0)
    if "." in text or "e" in text or "E" in text:
        return float(text)
    return int(digits, 8 if digits.startswith("0") else 10)


def _integer(value: int, unsigned: bool) -> _Value:
    value %= _WRAP
    if not unsigned and value >= _WRAP // 2:
        value -= _WRAP
    return _Value(value, unsigned)


def _ternary(cursor: Cursor) -> _Value:
    start = cursor.start()
    condition = _binary(cursor, 0)
    if not cursor.accept("?"):
        return condition
    if isinstance(condition.value, float):
        raise cursor.error("the condition of '?' is a float", start)
    yes = _ternary(cursor)
    cursor.expect(":", "of this '?'")
    no = _ternary(cursor)
    return yes if condition.value else no


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


# Each operator's function of two ints, and its precedence.
_BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: a != 0 or b != 0),
    "&&": (2, lambda a, b: a != 0 and b != 0),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    "<=": (7, operator.le),
    ">": (7, operator.gt),
    ">=": (7, operator.ge),
    "<<": (8, operator.lshift),
    ">>": (8, operator.rshift),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _quotient),
    "%": (10, operator.mod),
}
_TRUTH = {"||", "&&", "==", "!=", "<", "<=", ">", ">="}
_FLOAT = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _binary(cursor: Cursor, weakest: int) -> _Value:
    """Parse operators of at least precedence `weakest`, left-associative."""
    left = _unary(cursor)
    while (sign := cursor.peek()) in _BINARY and _BINARY[sign][0] >= weakest:
        offset = cursor.start()
        cursor.take()
        right = _binary(cursor, _BINARY[sign][0] + 1)
        try:
            left = _apply(sign, left, right)
        except ZeroDivisionError:
            raise cursor.error("division by zero", offset) from None
        except TypeError:
            raise cursor.error(f"'{sign}' cannot have a float operand", offset) from None
    return left


def _apply(sign: str, left: _Value, right: _Value) -> _Value:
    a, b = left.value, right.value
    if isinstance(a, float) and isinstance(b, float) and sign in _FLOAT:
        result = _FLOAT[sign](a, b)
        return _Value(result) if isinstance(result, float) else _Value(int(result))
    if isinstance(a, float) or isinstance(b, float):
        raise TypeError
    if sign in ("<<", ">>"):  # the left side's type alone; 64 or more shifts everything out
        return _integer(_BINARY[sign][1](a, min(b % _WRAP, 64)), left.unsigned)
    unsigned = left.unsigned or right.unsigned
    if unsigned or sign == "%":
        a, b = a % _WRAP, b % _WRAP
    return _integer(int(_BINARY[sign][1](a, b)), unsigned and sign not in _TRUTH)


def _unary(cursor: Cursor) -> _Value:
    match = cursor.token()
    kind, start = match.lastgroup or "", match.start(match.lastgroup or 0)
    token = match[kind]
    if kind == "number":
        cursor.position = match.end()
        value = literal(token)
        if isinstance(value, float):
            return _Value(value)
        if value >= _WRAP:
            raise cursor.error("this integer does not fit into 64 bits", start)
        return _Value(value, token.endswith("U") or value >= _WRAP // 2)
    if token == "WARP_SZ":
        cursor.take()
        return _Value(WARP)
    if token == "(":
        cursor.take()
        if cursor.peek() in (".s64", ".u64"):
            unsigned = cursor.take() == ".u64"
            cursor.expect(")", "after the type")
            value = _unary(cursor).value
            return _integer(int(value), unsigned)
        inner = _ternary(cursor)
        cursor.expect(")")
        return inner
    if token in ("-", "+", "~", "!"):
        cursor.take()
        return _sign(cursor, token, _unary(cursor), start)
    raise cursor.expected("an operand")


def _sign(cursor: Cursor, sign: str, operand: _Value, start: int) -> _Value:
    value, unsigned = operand
    if sign == "+":
        return operand
    if isinstance(value, float):
        if sign == "-":
            return _Value(-value)
        raise cursor.error(f"'{sign}' cannot have a float operand", start)
    if sign == "!":
        return _Value(int(not value))
    return _integer(-value if sign == "-" else ~value, unsigned)
