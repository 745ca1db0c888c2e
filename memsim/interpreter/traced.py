"""Arrays that are not there: numpy's functions on them are noted instead of computed.

An instruction's function (`memsim.isa`), called with such arrays as registers, tells what it computes, so
that each instruction means the same here as in the emulator. What asks for values cannot be noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, SupportsInt, TypeAlias, TypeGuard

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from memsim.state.parts import Part
from memsim.state.registers import Sum

#: The shape that a traced array pretends to have: no row, column or warp is like another.
SHAPE = (2, 3)
#: Bounds of unsigned words.
WORDS = 0, (1 << 32) - 1
BOOL, INT32, INT64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)


#: Of a function: `Traced`, numbers, or what it needs besides.
Operands: TypeAlias = tuple[Any, ...]


class NotTraced(Exception):
    """A function does something that cannot be noted."""


def range_of(dtype: np.dtype) -> tuple[int, int]:
    """The smallest and largest number of a type of integers."""
    if dtype == BOOL:
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


class Traced(NDArrayOperatorsMixin):
    """The result of a function of others: its name, its operands, its type, and bounds of integers."""

    shape, ndim, size = SHAPE, 2, SHAPE[0] * SHAPE[1]
    __hash__ = object.__hash__

    def __init__(
        self,
        name: str,
        operands: Operands,
        dtype: np.dtype,
        bounds: tuple[int, int] | None = None,
    ) -> None:
        self.name, self.operands, self.dtype = name, operands, dtype
        self.low = self.high = 0
        if dtype.kind in "iub":
            least, most = range_of(dtype)
            self.low, self.high = (least, most) if bounds is None else bounds
            if self.low < least or self.high > most:
                self.low, self.high = least, most

    # --- what arrays are asked ------------------------------------------------------------

    def __bool__(self) -> bool:
        raise NotTraced("a value decides")

    def __array__(self, *how: object, **more: object) -> np.ndarray:
        raise NotTraced("values are asked for")

    def __getitem__(self, key: object) -> NoReturn:
        raise NotTraced("elements are picked")

    def __setitem__(self, key: object, value: object) -> None:
        raise NotTraced("elements are changed")

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def min(self) -> int:
        return self.low

    def max(self) -> int:
        return self.high

    def any(self) -> bool:
        return True

    def all(self) -> bool:
        return False

    def copy(self) -> Traced:
        return self

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Traced:
        """The numbers in another type."""
        to = np.dtype(dtype)
        if to == self.dtype:
            return self
        bounds = (self.low, self.high) if self.dtype.kind in "iub" and to.kind in "iu" else None
        return Traced("astype", (self,), to, bounds)

    def view(self, dtype: DTypeLike) -> Traced:
        """The bits as another type of the same size."""
        to = np.dtype(dtype)
        if to == self.dtype:
            return self
        if to.itemsize != self.dtype.itemsize:
            raise NotTraced("elements are divided")
        bounds = None
        if (
            self.dtype.kind in "iub"
            and to.kind in "iu"
            and range_of(to)[0] <= self.low <= self.high <= range_of(to)[1]
        ):
            bounds = self.low, self.high
        return Traced("view", (self,), to, bounds)

    def entries_of(self, table: np.ndarray) -> Traced:
        """`table[self]`, as `memsim.state.parts.entries`."""
        bounds = (int(table.min()), int(table.max())) if table.dtype.kind in "iu" else None
        return Traced("entries", (self, table), table.dtype, bounds)

    def noted(self, name: str, operands: Operands) -> Traced | None:
        """A function that is one operation (`noted_as_one` of `memsim.state.parts`); None if it is not."""
        if name == "polynomial":
            return Traced(name, operands, np.dtype(np.float64))
        if isinstance(operands[-1], str):  # a rounding mode
            if operands[-1] != "rn":
                return None
            operands = operands[:-1]
        of = np.dtype(np.float32 if name == "fma32" else np.float64)
        cast = tuple(convert_operand(scalar(one), of) for one in operands)
        if name in ("half_bits", "to_bf16"):
            return Traced(name, cast, np.dtype(np.uint32), (0, 0xFFFF)).astype(INT64)
        return Traced(name, cast, np.dtype(np.float32) if name == "_cut" else of)

    def rounded(self, operation: str, mode: str, operands: Operands) -> Traced:
        """`round_exactly` of `memsim.state.rounding`."""
        found = tuple(convert_operand(scalar(one), self.dtype) for one in operands)
        return Traced("rounded", (operation, mode, *found), self.dtype)

    # --- numpy's functions ----------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **how: Any) -> object:
        if method == "reduce" and ufunc is np.bitwise_or:
            return -1  # any bit may be set
        if method != "__call__" or how.keys() - {"dtype", "out"}:
            raise NotTraced(f"{ufunc.__name__}.{method}")
        operands = [scalar(one) for one in inputs]
        types = [type(one) if type(one) in (int, float) else one.dtype for one in operands]
        wanted = how.get("dtype")
        more: dict[str, Any] = (
            {} if wanted is None else {"signature": (*[None] * len(types), np.dtype(wanted))}
        )
        found = ufunc.resolve_dtypes((*types, *[None] * ufunc.nout), **more)
        cast = tuple(convert_operand(one, to) for one, to in zip(operands, found))
        if ufunc is np.frexp:
            return Traced("fraction", cast, cast[0].dtype), Traced("exponent", cast, INT32, (-1074, 1024))
        return Traced(ufunc.__name__, cast, found[len(types)], bounds_of(ufunc.__name__, cast))

    def __array_function__(
        self,
        function: Callable[..., object],
        types: object,
        given: Sequence[object],
        more: Mapping[str, object],
    ) -> object:
        made = FUNCTIONS.get(function)
        if made is None:
            raise NotTraced(f"numpy.{function.__name__}")
        return made(*given, **more)


TracedOrNumber = Traced | SupportsInt


def scalar(value: object) -> Any:
    """An operand: arrays of one element are numbers of their type."""
    if isinstance(value, np.ndarray):
        if value.size != 1:
            raise NotTraced("an array of several numbers")
        return value.reshape(())[()]
    return int(value) if type(value) is bool else value


def convert_operand(value: Any, dtype: np.dtype) -> Any:
    """An operand in the type that a function takes."""
    if isinstance(value, Traced):
        return value.astype(dtype)
    return dtype.type(value) if type(value) in (int, float) else value.astype(dtype)


def _where(condition: object, yes: object, no: object) -> Traced:
    held = convert_operand(scalar(condition), BOOL)
    a, b = scalar(yes), scalar(no)
    kind = np.result_type(*(one.dtype if isinstance(one, (Traced, np.generic)) else one for one in (a, b)))
    a, b = convert_operand(a, kind), convert_operand(b, kind)
    bounds = None
    if kind.kind in "iub":
        ends = [limits(one) for one in (a, b)]
        bounds = min(low for low, _ in ends), max(high for _, high in ends)
    return Traced("where", (held, a, b), kind, bounds)


def _clip(value: Any, least: Any, most: Any) -> object:
    return np.minimum(np.maximum(value, least), most)


FUNCTIONS: dict[Callable[..., object], Callable[..., object]] = {
    np.where: _where,
    np.clip: _clip,
    np.atleast_2d: lambda value: value,
    np.broadcast_arrays: lambda *arrays: arrays,
    np.broadcast_to: lambda array, shape: array,
}


# --- bounds ------------------------------------------------------------------------------------


def limits(value: TracedOrNumber) -> tuple[int, int]:
    """The smallest and largest number that an integer may be."""
    return (value.low, value.high) if isinstance(value, Traced) else (int(value), int(value))


def bounds_of(name: str, operands: tuple[TracedOrNumber, ...]) -> tuple[int, int] | None:
    """Bounds of a function of integers; None if they are only those of its type."""
    if any(getattr(one, "dtype", INT64).kind not in "iub" for one in operands):
        return None
    ends = [limits(one) for one in operands]
    (a, b), (c, d) = ends[0], ends[-1]
    if name == "add":
        return a + c, b + d
    if name == "subtract":
        return a - d, b - c
    if name == "multiply":
        corners = [x * y for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)
    if name == "bitwise_and" and (a >= 0 or c >= 0):
        return 0, min(end for low, end in ends if low >= 0)
    if name in ("bitwise_or", "bitwise_xor"):
        most = max(-a - 1, b, -c - 1, d).bit_length()
        return (0 if a >= 0 and c >= 0 else -(1 << most)), (1 << most) - 1
    if name == "right_shift" and c >= 0:
        shifts = min(c, 63), min(d, 63)
        corners = [x >> y for x in (a, b) for y in shifts]
        return min(corners), max(corners)
    if name == "left_shift" and c == d and 0 <= c < 64:
        return a << c, b << c
    if name == "minimum":
        return min(a, c), min(b, d)
    if name == "maximum":
        return max(a, c), max(b, d)
    if name == "invert":
        return ~b, ~a
    if name == "negative":
        return -b, -a
    if name in ("absolute", "bitwise_count"):
        return 0, max(abs(a), abs(b)) if name == "absolute" else 64
    return None


def within(value: TracedOrNumber, ends: tuple[int, int]) -> bool:
    """Is an integer certainly in a range?"""
    low, high = limits(value)
    return ends[0] <= low and high <= ends[1]


def keeps_all(mask: int, value: TracedOrNumber) -> bool:
    """Has a number only bits of a mask?"""
    low, high = limits(value)
    return low >= 0 and (1 << high.bit_length()) - 1 & ~mask == 0


# --- what is what --------------------------------------------------------------------------------


def is_from(value: object, dtype: type) -> TypeGuard[Traced]:
    """Is it a number of this type in another one?"""
    return isinstance(value, Traced) and value.name == "astype" and value.operands[0].dtype == dtype


def negative_of(value: object) -> Any:
    """Of what a number is the negative; None if it is none."""
    if isinstance(value, Traced) and value.name == "multiply":
        a, b = value.operands
        if not isinstance(b, Traced) and int(b) == -1:
            return a
    return None


def is_sum_of_words(value: object) -> bool:
    """Is it a sum of two unsigned words?"""
    if not isinstance(value, Traced) or value.name != "add":
        return False
    return all(within(one, WORDS) for one in value.operands)


def power_of_two(value: TracedOrNumber) -> int:
    """The exponent of a constant power of two; 0 of other numbers."""
    if isinstance(value, Traced):
        return 0
    number = int(value)
    return number.bit_length() - 1 if number > 0 and number & (number - 1) == 0 else 0


# --- registers ---------------------------------------------------------------------------------


class TracedRegisters(list[Any]):
    """Registers whose values are traced arrays. truths: slots of predicates, as a bit set."""

    def __init__(self, truths: int) -> None:
        super().__init__()
        self.truths = truths
        self._known: dict[int, object] = {}

    def __getitem__(self, slot: Any) -> Any:
        if slot not in self._known:
            if self.truths >> slot & 1:
                self._known[slot] = Part(Traced("register", (slot,), BOOL))  # type: ignore[arg-type]
            else:
                word = Traced("register", (slot,), INT32).astype(INT64)
                self._known[slot] = Sum(0, f=Part(word))  # type: ignore[arg-type]
        return self._known[slot]

    def __setitem__(self, slot: Any, value: object) -> None:
        self._known[slot] = value
