"""Register values of many threads, in the smallest shape.

A chunk of B blocks with T threads each (T padded to whole warps) runs at once. A register is

* a Python `int` or `bool`: the same in every thread;
* a `Sum`: an integer that differs between threads, as `s + u + v + f` with `s` one int and
  parts of shape (B, 1), (1, T) and (B, T), each only where needed. Addresses are sums of a
  block's part and a thread's part, so they are never written out for all B * T threads, and
  a loop that adds a constant changes nothing but `s`;
* a `Part` of bool: a predicate that differs between threads;
* a float `numpy` array of a shape that broadcasts to (B, T);
* `Poison` (`memsim.state.poison`): unknown, with the reason; `None`: never written.

Integers are signed: a 32-bit register holds -2**31 .. 2**31 - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.state.parts import Part, select
from memsim.state.poison import Poison, poisoned_operand
from memsim.state.predicates import from_bools, predicate, to_bools

#: Beyond this an int64 sum may wrap, so bounds are no longer valid.
SAFE = 1 << 62


def trailing_zeros(value: int) -> int:
    """Low zero bits of an integer; 63 for zero."""
    return (value & -value).bit_length() - 1 if value else 63


class Sum:
    """An integer of many threads: `s + u + v + f`. With `f` there is neither `u` nor `v`."""

    __slots__ = ("_array", "_hi", "_lo", "f", "s", "u", "v")

    def __init__(self, s: int, u: Part | None = None, v: Part | None = None, f: Part | None = None) -> None:
        self.s = s
        self.u = u
        self.v = v
        self.f = f
        self._array: np.ndarray | None = None
        self._lo: int | None = None
        self._hi: int | None = None

    @property
    def lo(self) -> int:
        """A lower bound, not always attained."""
        if self._lo is None:
            self._lo = self.s + sum([part.lo for part in self.parts])
        return self._lo

    @property
    def hi(self) -> int:
        """An upper bound, not always attained."""
        if self._hi is None:
            self._hi = self.s + sum([part.hi for part in self.parts])
        return self._hi

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that are present."""
        return tuple(part for part in (self.u, self.v, self.f) if part is not None)

    @property
    def array(self) -> np.ndarray:
        """The sum expanded to int64, in the smallest shape."""
        if self._array is None:
            first, *rest = (part.array for part in self.parts)
            total = first + wrap_int(self.s, 64) if self.s else first
            for other in rest:
                total = total + other
            self._array = total
        return self._array

    @property
    def zeros(self) -> int:
        """Low bits that are zero in every thread."""
        bits = self.s
        for part in (self.u, self.v, self.f):
            if part is not None:
                bits |= part.bits
        return trailing_zeros(bits)

    @property
    def content(self) -> tuple[object, ...]:
        """What stands for it in a key, as of a `Part`."""
        u, v, f = self.u, self.v, self.f
        return self.s, u and u.content, v and v.content, f and f.content

    def shifted(self, by: int) -> Sum:
        """The sum with a constant added. Every access needs one, so its bounds are not worked out anew."""
        found = Sum(self.s + by, self.u, self.v, self.f)
        found._lo, found._hi = self.lo + by, self.hi + by
        return found


def from_array(array: np.ndarray, s: int = 0) -> int | Sum:
    """An integer value from an int64 array that broadcasts to (B, T)."""
    rows, columns = array.shape
    if columns == 1:
        if rows == 1:
            return int(array[0, 0]) + s
        return Sum(s, u=Part(array))
    if rows == 1:
        return Sum(s, v=Part(array))
    return Sum(s, f=Part(array))


def to_array(value: int | Sum) -> np.ndarray:
    """An integer value expanded to int64, in a shape that broadcasts to (B, T)."""
    if type(value) is int:
        return np.array([[value]], dtype=np.int64)
    assert isinstance(value, Sum)
    return value.array


def bounds(value: int | Sum) -> tuple[int, int]:
    """Lower and upper bound of the value over all threads (not always attained)."""
    if type(value) is int:
        return value, value
    assert isinstance(value, Sum)
    return value.lo, value.hi


_WRAP = {8: np.int8, 16: np.int16, 32: np.int32}


def wrap_int(value: int, bits: int) -> int:
    """The low `bits` bits as a signed integer."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def fit(value: int | Sum, bits: int) -> int | Sum:
    """The value as a signed `bits`-bit register holds it; expanded only if it really wraps."""
    if type(value) is int:
        return wrap_int(value, bits)
    assert isinstance(value, Sum)
    half = 1 << (bits - 1)
    turns = (value.lo + half) >> bits
    if turns == (value.hi + half) >> bits:  # all threads wrap alike
        return plus(value, -(turns << bits)) if turns else value
    array = value.array
    return from_array(array if bits == 64 else array.astype(_WRAP[bits]).astype(np.int64))


def as_unsigned(value: int | Sum, bits: int) -> int | Sum:
    """The value read as an unsigned `bits`-bit number (bits < 64)."""
    if type(value) is int:
        return value & ((1 << bits) - 1)
    assert isinstance(value, Sum)
    turns = value.lo >> bits
    if turns == value.hi >> bits:  # all threads wrap alike
        return plus(value, -(turns << bits)) if turns else value
    return from_array(value.array & ((1 << bits) - 1))


def _add_parts(a: Part | None, b: Part | None) -> Part | None:
    if a is None:
        return b
    if b is None:
        return a
    return Part(a.array + b.array)


def low_zeros(value: int | Sum) -> int:
    """Low bits that are zero in every thread."""
    return value.zeros if isinstance(value, Sum) else trailing_zeros(value)


def plus(a: int | Sum, b: int | Sum) -> int | Sum:
    """Exact sum (modulo 2**64 where int64 would overflow)."""
    if type(a) is int:
        if type(b) is int:
            return a + b
        a, b = b, a
    assert isinstance(a, Sum)
    if type(b) is int:
        return a.shifted(b)
    assert isinstance(b, Sum)
    if max(abs(a.lo), abs(a.hi), abs(b.lo), abs(b.hi)) >= SAFE:
        return from_array(a.array + b.array)
    if a.f is None and b.f is None:
        return Sum(a.s + b.s, _add_parts(a.u, b.u), _add_parts(a.v, b.v))
    total = None
    for part in (a.f, b.f, a.u, a.v, b.u, b.v):
        if part is not None:
            total = part.array if total is None else total + part.array
    assert total is not None
    if len(a.parts) + len(b.parts) == 1:
        return Sum(a.s + b.s, f=a.f or b.f)
    return Sum(a.s + b.s, f=Part(total))


def times(a: int | Sum, factor: int) -> int | Sum:
    """Product with a constant (modulo 2**64 where int64 would overflow)."""
    if type(a) is int:
        return a * factor
    assert isinstance(a, Sum)
    if factor == 0:
        return 0
    if factor == 1:
        return a
    if max(abs(a.lo), abs(a.hi)) * abs(factor) >= SAFE:
        return from_array(a.array * np.int64(wrap_int(factor, 64)))
    u, v, f = (None if part is None else part.scaled(factor) for part in (a.u, a.v, a.f))
    return Sum(a.s * factor, u, v, f)


def ints(value: object) -> int | Sum:
    """A register read as an integer; the bits of a float if it holds one.

    Raises:
        Poisoned: the value is unknown.
    """
    kind = type(value)
    if kind is int or kind is Sum:
        return value  # type: ignore[return-value]
    if isinstance(value, np.ndarray):
        signed = _SAME_SIZE[value.dtype.itemsize]
        return from_array(np.ascontiguousarray(value).view(signed).astype(np.int64))
    raise poisoned_operand(value)


def content(value: object) -> object:
    """What stands for a register or a mask of lanes in a key: equal if all threads hold the same."""
    if isinstance(value, (Sum, Part)):
        return value.content
    return content(ints(value)) if isinstance(value, np.ndarray) else value


_SAME_SIZE = {8: np.int64, 4: np.int32, 2: np.int16}


def floats(value: Any, dtype: type) -> np.ndarray:
    """A register read as floats of `dtype`; integer bits reinterpreted if it holds an integer.

    Raises:
        Poisoned: the value is unknown.
    """
    if type(value) is int or type(value) is Sum:
        return to_array(value).astype(_SAME_SIZE[np.dtype(dtype).itemsize]).view(dtype)
    if isinstance(value, np.ndarray):
        return value if value.dtype == dtype else floats(ints(value), dtype)
    if hasattr(value, "dtype"):  # what stands for an array
        return value.view(dtype)  # type: ignore[no-any-return]
    raise poisoned_operand(value)


def from_floats(array: np.ndarray) -> np.ndarray:
    """Floats of all threads in their smallest shape: a column if the lanes of each row agree bit by bit.

    They do after a reduction by shuffles. Most often the first row tells that they do not.
    """
    if array.shape[1] == 1 or not isinstance(array, np.ndarray):
        return array
    bits = array.view(_SAME_SIZE[array.dtype.itemsize])
    if (bits[0] != bits[0, 0]).any() or (bits != bits[:, :1]).any():
        return array
    column: np.ndarray = array[:, :1].copy()
    return column


def choose(condition: bool | Part, yes: Any, no: Any) -> Any:
    """Each thread's `yes` or `no`, for any kind of register.

    Raises:
        Poisoned: a side that is needed is unknown.
    """
    if condition is True or yes is no:
        return yes
    if condition is False:
        return no
    assert isinstance(condition, Part)
    for side in (yes, no):
        if side is None or isinstance(side, Poison):
            raise poisoned_operand(side)
    if isinstance(yes, (bool, Part)):
        return from_bools(select(condition.array, to_bools(yes), to_bools(predicate(no))))
    if hasattr(yes, "dtype") or hasattr(no, "dtype"):
        dtype = yes.dtype if hasattr(yes, "dtype") else no.dtype
        return select(condition.array, floats(yes, dtype.type), floats(no, dtype.type))
    if type(yes) is int and yes == no:
        return yes
    return from_array(select(condition.array, to_array(yes), to_array(no)))
