"""C++ expressions of numbers, evaluated: `(n + TILE - 1) / TILE`, `ceil(n / 32.0)`, `std::max(a, 2u)`.

Integers have no width: nothing wraps around.
"""

from __future__ import annotations

import operator
import re
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import cast

Number = int | Fraction


@dataclass(frozen=True, slots=True)
class Formula:
    """A macro or function that is one expression: `CEIL_DIV(a, b)`, by the names of its parameters."""

    parameters: tuple[str, ...]
    body: str


class _NoValueError(Exception):
    """The expression has no value that is known."""


_TOKEN = re.compile(
    r"\s*(?:(?P<bits>0[xX][\da-fA-F][\da-fA-F']*|0[bB][01][01']*)[uUlLzZ]*(?!\w)"
    r"|(?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d{1,3})?|\d+[eE][-+]?\d{1,3})[fFlL]?(?!\w)"
    r"|(?P<integer>0|[1-9][\d']*)[uUlLzZ]*(?!\w)"
    r"|(?P<sizeof>sizeof\s*\(\s*\w+\s*\))"
    r"|(?P<cast>\(\s*(?P<type>TYPE)\s*\))"
    r"|(?P<made>(?:static_cast\s*<\s*(?P<to>TYPE)\s*>|(?P<named>TYPE))(?=\s*\())"
    r"|(?:std\s*::\s*)?(?P<name>[A-Za-z_]\w*)(?:\s*<\s*TYPE\s*>(?=\s*\())?"
    r"|(?P<mark><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|^!~?:(),]))".replace(
        "TYPE",
        r"(?:const\s+)?(?:(?:unsigned|signed|long|short|int|char|bool|float|double|size_t|u?int\d+_t|uint|ushort|ulong)\b\s*)+",
    )
)
_SIZE_NAME = re.compile(r"\((.*)\)")

#: Bytes of the types that `sizeof` is asked for.
ELEMENT_BYTES = {
    **dict.fromkeys(("char", "bool", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("half", "__half", "short", "int16_t", "uint16_t", "__nv_bfloat16"), 2),
    **dict.fromkeys(("half2", "__half2", "int", "unsigned", "uint", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("double", "float2", "int2", "size_t", "int64_t", "uint64_t"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}


def quotient(a: int, b: int) -> int:
    """As C divides integers: rounded toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divided(a: Number, b: Number) -> Number:
    return quotient(a, b) if isinstance(a, int) and isinstance(b, int) else Fraction(a) / b


def _whole(of: Callable[[int, int], int]) -> Callable[[Number, Number], Number]:
    def applied(a: Number, b: Number) -> Number:
        if not (isinstance(a, int) and isinstance(b, int)):
            raise _NoValueError
        return of(a, b)

    return applied


_MOST_BITS = 2048  # of a number; a source may ask for one that no memory holds
#: By precedence, the loosest first.
_BINARY: tuple[dict[str, Callable[[Number, Number], Number]], ...] = (
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": _whole(operator.or_)},
    {"^": _whole(operator.xor)},
    {"&": _whole(operator.and_)},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        "<=": lambda a, b: int(a <= b),
        ">": lambda a, b: int(a > b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": _whole(lambda a, b: a << min(b, _MOST_BITS)), ">>": _whole(operator.rshift)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": _divided, "%": lambda a, b: a - b * _divided(a, b)},
)
_KNOWN_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "max": max,
    "min": min,
    **dict.fromkeys(("ceil", "ceilf"), lambda x: Fraction(ceil(x))),
    **dict.fromkeys(("floor", "floorf"), lambda x: Fraction(floor(x))),
}


def evaluate(
    expression: str, known: Mapping[str, Number], functions: Mapping[str, Formula] | None = None
) -> Number | None:
    """The value of an expression: an integer, or a fraction where C++ has a floating-point number.

    None if it is no expression, or if a name or function in it is not known.
    """
    try:
        return _Evaluation(expression, known, functions or {}).value()
    except (_NoValueError, TypeError, ValueError, ArithmeticError, MemoryError, RecursionError):
        return None


def open_names(
    expression: str, known: Mapping[str, Number], functions: Mapping[str, Formula] | None = None
) -> tuple[str, ...] | None:
    """The names in an expression that have no value yet; None if values for them would not be enough."""
    asked = _Asked(known)
    try:
        _Evaluation(expression, asked, functions or {}).value()
    except ArithmeticError:
        pass  # with the values that stand for what is not known
    except (_NoValueError, TypeError, ValueError, MemoryError, RecursionError):
        return None
    return tuple(dict.fromkeys(asked.names))


class _Asked(dict[str, Number]):
    """Values by name; a name that has none is noted, and counts as 1."""

    def __init__(self, known: Mapping[str, Number]) -> None:
        super().__init__(known)
        self.names: list[str] = []

    def __missing__(self, name: str) -> Number:
        self.names.append(name)
        return 1


class _Evaluation:
    """An expression, read from the left to the right once."""

    def __init__(
        self, expression: str, known: Mapping[str, Number], functions: Mapping[str, Formula]
    ) -> None:
        self.known, self.functions = known, functions
        self.tokens: list[re.Match[str]] = []
        place = 0
        expression = expression.rstrip()
        while place < len(expression):
            token = _TOKEN.match(expression, place)
            if token is None:
                raise _NoValueError
            self.tokens.append(token)
            place = token.end()
        self.next = 0

    def value(self) -> Number:
        found = self.conditional()
        if self.next != len(self.tokens):
            raise _NoValueError
        return found

    def take(self, *marks: str) -> str:
        """The next token if it is one of these marks, else ""."""
        mark = self.tokens[self.next]["mark"] if self.next < len(self.tokens) else None
        if mark is None or mark not in marks:
            return ""
        self.next += 1
        return mark

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise _NoValueError

    def conditional(self) -> Number:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        yes = self.conditional()
        self.need(":")
        no = self.conditional()
        return yes if condition else no

    def binary(self, level: int) -> Number:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while mark := self.take(*_BINARY[level]):
            left = _BINARY[level][mark](left, self.binary(level + 1))
            if max(left.numerator.bit_length(), left.denominator.bit_length()) > _MOST_BITS:
                raise _NoValueError
        return left

    def unary(self) -> Number:
        mark = self.take("-", "+", "!", "~")
        if mark:
            value = self.unary()
            return {"-": -value, "+": value, "!": int(not value), "~": -value - 1}[mark]
        if self.next == len(self.tokens):
            raise _NoValueError
        token = self.tokens[self.next]
        if token["cast"]:
            self.next += 1
            return _cast(token["type"], self.unary())
        return self.primary()

    def primary(self) -> Number:
        if self.take("("):
            value = self.conditional()
            self.need(")")
            return value
        token = self.tokens[self.next]
        self.next += 1
        integer = token["bits"] or token["integer"]
        if integer:
            return int(integer.replace("'", ""), 0)
        if token["real"]:
            return Fraction(token["real"])
        if token["sizeof"]:
            return self.size(token["sizeof"])
        if token["made"]:
            return _cast(token["to"] or token["named"], *self.arguments())
        name = token["name"]
        if name is None:
            raise _NoValueError
        if self.next < len(self.tokens) and self.tokens[self.next]["mark"] == "(":
            return self.called(name, self.arguments())
        try:
            return self.known[name]
        except KeyError:
            raise _NoValueError from None

    def size(self, text: str) -> int:
        kind = _SIZE_NAME.search(text)
        name = kind[1].strip() if kind else ""
        if name not in ELEMENT_BYTES:
            raise _NoValueError
        return ELEMENT_BYTES[name]

    def arguments(self) -> list[Number]:
        self.need("(")
        found = [self.conditional()]
        while self.take(","):
            found.append(self.conditional())
        self.need(")")
        return found

    def called(self, name: str, arguments: Sequence[Number]) -> Number:
        function = self.functions.get(name)
        if function is None:
            if name not in _KNOWN_FUNCTIONS:
                raise _NoValueError
            return _KNOWN_FUNCTIONS[name](*arguments)
        if len(arguments) != len(function.parameters):
            raise _NoValueError
        own = dict(zip(function.parameters, arguments))
        inside = ChainMap(own, cast("dict[str, Number]", self.known))  # which is only read
        return _Evaluation(function.body, inside, self.functions).value()


def _cast(kind: str, value: Number) -> Number:
    """`(int)2.5` is 2, `(float)2` is a floating-point number."""
    return Fraction(value) if re.search(r"\b(?:float|double)\b", kind) else int(value)
