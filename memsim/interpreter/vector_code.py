"""Traced functions as operations of native/interpreter.c.

Integers are 64 bits in `memsim.state`; most of their operations need only the low words, which take half the
time: `low` and `whole` are the two ways of getting a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.interpreter.traced import (
    BOOL,
    INT64,
    WORDS,
    NotTraced,
    Operands,
    Traced,
    TracedOrNumber,
    is_from,
    is_sum_of_words,
    keeps_all,
    limits,
    negative_of,
    power_of_two,
    range_of,
    within,
)
from memsim.interpreter.vector_operations import (
    ZERO,
    Place,
    RegisterPlace,
    ScratchPlace,
    VectorOperation,
    constant,
)

_INT32, _UINT32 = (-(1 << 31), (1 << 31) - 1), WORDS
#: Exponents of normal numbers of float64.
_NORMAL = (-1022, 1023)
_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
_LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_SUMS = {"add": "add", "subtract": "sub", "multiply": "mul"}
_ENDS = {"minimum": "min", "maximum": "max"}
#: Whether operands change places, and the operation.
_COMPARED = {
    **{"less": (False, "lt"), "less_equal": (False, "le"), "equal": (False, "eq")},
    **{"greater": (True, "lt"), "greater_equal": (True, "le"), "not_equal": (False, "ne")},
}
_OF_FLOATS = {
    **_SUMS,
    **_ENDS,
    **{"divide": "div", "copysign": "copysign", "nextafter": "nextafter", "ldexp": "ldexp", "fmod": "fmod"},
    **{name: name for name in ("sqrt", "rint", "trunc", "floor", "ceil", "isnan", "isinf", "isfinite")},
    **{"negative": "neg", "absolute": "abs", "fabs": "abs", "signbit": "sign"},
}
#: Functions that are one operation.
_AS_ONE = {"fma32": "fma_f", "fma64": "fma_d", "sum_to_odd": "odd_d", "_cut": "cut_f"}
_TO_HALVES = {"half_bits": "half_bits", "to_bf16": "bf16_bits"}
#: Rounding modes of PTX by their number in native/interpreter.c.
_MODES = {"rz": 1, "rm": 2, "rp": 3}
#: What changes no word.
_UNCHANGED = {
    *((name, 0) for name in ("add", "subtract", "bitwise_or", "bitwise_xor")),
    *(("bitwise_and", 0xFFFFFFFF), ("multiply", 1)),
}
#: How words of smaller types are extended to 32 bits.
_NARROWED = {"uint8": "b_to_w", "int8": "c_to_w", "uint16": "h_to_w", "int16": "s_to_w"}


class VectorCode:
    """The operations of one instruction, as they are asked for."""

    def __init__(self) -> None:
        self.operations: list[VectorOperation] = []
        self._low: dict[int, Place] = {}
        self._whole: dict[int, Place] = {}
        self._kept: list[Traced] = []  # so that ids stay those of these objects
        self._count = 0

    def new(self) -> ScratchPlace:
        """A place for a result."""
        self._count += 1
        return ScratchPlace(self._count)

    def emit(self, name: str, *operands: Place, k: int = 0, n: object = 0) -> Place:
        """An operation with a result."""
        a, b, c = (*operands, None, None, None)[:3]
        to = self.new()
        self.operations.append(VectorOperation(name, to, a, b, c, k, n))
        return to

    def computed(self, place: Place, dtype: np.dtype) -> Traced:
        """The result of an operation, as what can be traced."""
        return Traced("computed", (place,), dtype)

    # --- low words --------------------------------------------------------------------------

    def low(self, value: TracedOrNumber) -> Place:
        """A number as a register has it: 32 bits, the low ones of a wider integer."""
        if not isinstance(value, Traced):
            return constant(value, 4)
        if id(value) not in self._low:
            self._kept.append(value)
            narrow = value.dtype.kind in "iu" and value.dtype.itemsize == 8
            self._low[id(value)] = self._low_of(value) if narrow else self.whole(value)
        return self._low[id(value)]

    def _low_of(self, value: Traced) -> Place:
        name, operands = value.name, value.operands
        if name in ("astype", "view") and operands[0].dtype.kind in "iub":
            return self.low(operands[0])
        if name in _SUMS or name in _BITWISE:
            return self._combined(name, *operands)
        if name in ("invert", "negative"):
            return self.emit("not_w" if name == "invert" else "neg_w", self.low(operands[0]))
        if name == "left_shift" and limits(operands[1])[0] >= 0:
            return self.emit("shl_w", *map(self.low, operands))
        if name == "right_shift" and limits(operands[1])[0] >= 0:
            if within(operands[0], _UINT32):
                return self.emit("shr_w", *map(self.low, operands))
            if within(operands[0], _INT32):
                return self.emit("shr_i", *map(self.low, operands))
            if limits(operands[1]) == (32, 32):
                return self.emit("high_w", self.whole(operands[0]))
        if name == "where":
            return self.emit("sel_w", self.whole(operands[0]), *map(self.low, operands[1:]))
        if name in _ENDS:
            for ends, kind in ((_INT32, "i"), (_UINT32, "w")):
                if all(within(one, ends) for one in operands):
                    return self.emit(f"{_ENDS[name]}_{kind}", *map(self.low, operands))
        return self.emit("I_to_w", self.whole(value))

    def _combined(self, name: str, a: TracedOrNumber, b: TracedOrNumber) -> Place:
        """The low word of a sum, product or bitwise function, without what changes nothing."""
        if not isinstance(a, Traced) and name != "subtract":
            a, b = b, a
        number = None if isinstance(b, Traced) else int(b) & 0xFFFFFFFF
        if (name, number) in _UNCHANGED:
            return self.low(a)
        if (name, number) in (("multiply", 0), ("bitwise_and", 0)):
            return ZERO
        if name == "bitwise_and" and number is not None and keeps_all(number, a):
            return self.low(a)
        if name == "multiply" and number == 0xFFFFFFFF:
            return self.emit("neg_w", self.low(a))
        if name == "multiply" and number is not None and (power := power_of_two(number)):
            return self.emit("shl_w", self.low(a), constant(power, 4))
        if name == "add":
            for one, other in ((a, b), (b, a)):
                if (negated := negative_of(other)) is not None:
                    return self.emit("sub_w", self.low(one), self.low(negated))
        return self.emit(f"{(_SUMS | _BITWISE)[name]}_w", self.low(a), self.low(b))

    # --- whole numbers ----------------------------------------------------------------------

    def whole(self, value: TracedOrNumber) -> Place:
        """A number in the width of its type."""
        if not isinstance(value, Traced):
            return constant(value, value.dtype.itemsize if hasattr(value, "dtype") else 8)
        if id(value) not in self._whole:
            self._kept.append(value)
            self._whole[id(value)] = self._whole_of(value)
        return self._whole[id(value)]

    def _whole_of(self, value: Traced) -> Place:
        name, operands, dtype = value.name, value.operands, value.dtype
        if name == "register":
            return RegisterPlace(operands[0])
        if name == "computed":
            return operands[0]  # type: ignore[no-any-return]
        if name == "entries":
            if operands[1].dtype == np.uint16:
                return self.emit("table_h", self.low(operands[0]), n=operands[1])
            return self.emit("table_W", self.long(operands[0]), n=operands[1])
        if name in _AS_ONE:
            return self.emit(_AS_ONE[name], *map(self.whole, operands))
        if name in _TO_HALVES:
            is_single = is_from(operands[0], np.float32)
            place = self.whole(operands[0].operands[0] if is_single else operands[0])
            return self.emit(_TO_HALVES[name], place if is_single else self.emit("d_to_odd", place))
        if name == "polynomial":
            columns, *places = operands
            return self.emit("polynomial", *map(self.low, places), k=len(columns[0]), n=columns.T)
        if name == "astype":
            return self._converted(operands[0], dtype)
        if name == "view":
            return self._viewed(operands[0], dtype)
        if name == "where":
            if (dtype.kind == "f" and dtype.itemsize == 2) or (dtype.kind in "iub" and dtype.itemsize < 4):
                return self.emit("sel_w", *map(self.whole, operands))
            if dtype.kind in "iu" and dtype.itemsize == 8 and self._is_narrow(value):
                return self._extended(value)
            return self.emit("sel_W" if dtype.itemsize == 8 else "sel_w", *map(self.whole, operands))
        if name in _COMPARED:
            return self._compared(name, *operands)
        if name == "rounded":
            operation, mode, *numbers = operands
            return self.emit(f"{operation}_rounded", *map(self.whole, numbers), k=_MODES[mode])
        if name in ("exponent", "fraction"):
            return self.emit(f"{name}_d", self.whole(operands[0]))
        if any(getattr(one, "dtype", INT64).kind == "f" for one in operands):
            return self._of_floats(name, operands)
        if dtype == BOOL:
            return self._of_truths(name, operands)
        if dtype.itemsize == 8:
            return self._of_longs(value)
        return self._of_words(value)

    def _is_narrow(self, value: TracedOrNumber) -> bool:
        return within(value, _INT32) or within(value, _UINT32)

    def _extended(self, value: Traced) -> Place:
        """A 64-bit integer of which 32 bits are enough."""
        return self.emit("i_to_I" if within(value, _INT32) else "w_to_I", self.low(value))

    def _converted(self, value: Traced | np.generic, to: np.dtype) -> Place:
        of = value.dtype
        if of.kind in "iub" and to.kind in "iu":
            if to.itemsize == 8:
                if of.itemsize == 8:
                    return self.whole(value)
                return self.emit("i_to_I" if of.kind == "i" else "w_to_I", self.low(value))
            if within(value, range_of(to)) or to.itemsize == 4:
                return self.low(value)
            return self.emit(_NARROWED[to.name], self.low(value))
        if of.kind in "iu" and to == BOOL:
            return self.emit("W_is" if of.itemsize == 8 else "w_is", self.whole(value))
        if of.kind in "iub" and to.kind == "f" and to.itemsize >= 4:
            letter = "d" if to.itemsize == 8 else "f"
            if within(value, _INT32):
                return self.emit(f"i_to_{letter}", self.low(value))
            if within(value, _UINT32):
                return self.emit(f"w_to_{letter}", self.low(value))
            return self.emit(f"{'I' if of.kind == 'i' else 'W'}_to_{letter}", self.whole(value))
        if of.kind == "f" and to.kind == "f":
            return self._between_floats(value, of.itemsize, to.itemsize)
        if of.kind == "f" and of.itemsize >= 4 and to.kind in "iu" and to.itemsize == 8:
            place = self.whole(value)
            if of.itemsize == 4:
                place = self.emit("f_to_d", place)
            return self.emit("d_to_I" if to.kind == "i" else "d_to_W", place)
        if of == np.float32 and to == np.int32:
            return self.emit("f_to_i", self.whole(value))
        raise NotTraced(f"{of} as {to}")

    def _between_floats(self, value: Traced | np.generic, of: int, to: int) -> Place:
        if of == 2:
            return self.emit("half_to_f" if to == 4 else "half_to_d", self._low_half(value))
        if to == 8 and is_from(value, np.float16):
            return self.emit("half_to_d", self._low_half(value.operands[0]))
        place = self.whole(value)
        if to == 2 and of == 8 and is_from(value, np.float32):
            return self.emit("f_to_half", self.whole(value.operands[0]))
        if to == 2:
            return self.emit("f_to_half" if of == 4 else "d_to_half", place)
        return self.emit("f_to_d" if to == 8 else "d_to_f", place)

    def _low_half(self, value: TracedOrNumber) -> Place:
        """A word in whose low half a float16 is; what is above it does not matter."""
        while isinstance(value, Traced) and value.name in ("view", "astype", "bitwise_and"):
            of, *mask = value.operands
            kept = limits(mask[0]) if mask else (0xFFFF, 0xFFFF)
            if of.dtype.kind not in "iu" or kept[0] != kept[1] or ~kept[0] & 0xFFFF:
                break
            value = of
        return self.low(value)

    def _viewed(self, value: Traced | np.generic, to: np.dtype) -> Place:
        place = self.whole(value)
        if to.itemsize >= 4 or to == BOOL or value.dtype == BOOL:
            return place
        kind = f"uint{8 * to.itemsize}" if to.kind == "f" else to.name
        was = f"uint{8 * to.itemsize}" if value.dtype.kind == "f" else value.dtype.name
        return place if kind == was else self.emit(_NARROWED[kind], place)

    def _compared(self, name: str, *operands: Any) -> Place:
        swaps, how = _COMPARED[name]
        a, b = operands[::-1] if swaps else operands
        kinds = {getattr(one, "dtype", INT64) for one in (a, b)}
        if any(kind.kind == "f" for kind in kinds):
            is_double = any(kind.itemsize == 8 for kind in kinds)
            return self.emit(f"{how}_{'d' if is_double else 'f'}", self._single(a), self._single(b))
        if how == "le" and (limits(a), is_sum_of_words(b)) == ((1 << 32, 1 << 32), True):  # a carry
            return self.emit("carry_w", *map(self.low, b.operands))
        for ends, kind in ((_INT32, "i"), (_UINT32, "w")):
            if within(a, ends) and within(b, ends):
                return self.emit(f"{how}_{'w' if how in ('eq', 'ne') else kind}", self.low(a), self.low(b))
        unsigned = how in ("eq", "ne") or any(kind.kind == "u" for kind in kinds)
        return self.emit(f"{how}_{'W' if unsigned else 'I'}", self.long(a), self.long(b))

    def long(self, value: TracedOrNumber) -> Place:
        """An integer as 64 bits."""
        if not isinstance(value, Traced):
            return constant(value, 8)
        if value.dtype.itemsize == 8:
            return self.whole(value)
        return self.emit("i_to_I" if value.dtype.kind == "i" else "w_to_I", self.whole(value))

    def sign_extended(self, place: Place) -> Place:
        """A signed word as 64 bits."""
        return self.emit("i_to_I", place)

    def _of_truths(self, name: str, operands: Operands) -> Place:
        if name in ("invert", "logical_not"):
            return self.emit("xor_w", self.whole(operands[0]), constant(1, 4))
        names = _BITWISE | _LOGICAL
        if name not in names or any(getattr(one, "dtype", BOOL) != BOOL for one in operands):
            raise NotTraced(f"{name} of truths")
        return self.emit(f"{names[name]}_w", *(self.low(one) for one in operands))

    def _of_floats(self, name: str, operands: Operands) -> Place:
        sizes = {one.dtype.itemsize for one in operands if one.dtype.kind == "f"}
        if name not in _OF_FLOATS:
            raise NotTraced(f"{name} of floats")
        if 2 in sizes:
            return self._of_halves(name, operands)
        if name == "fmod" and not isinstance(operands[1], Traced) and operands[1] == 1:
            place = self.whole(operands[0])
            kind = "d" if 8 in sizes else "f"
            rest = self.emit(f"sub_{kind}", place, self.emit(f"trunc_{kind}", place))
            return self.emit(f"copysign_{kind}", rest, place)
        if name == "ldexp" and within(operands[1], _NORMAL):
            power = self.emit("power_d", self.low(operands[1]))
            return self.emit("mul_d", self.whole(operands[0]), power)
        if name == "ldexp":
            return self.emit("ldexp_d", self.whole(operands[0]), self.low(operands[1]))
        return self.emit(f"{_OF_FLOATS[name]}_{'d' if 8 in sizes else 'f'}", *map(self.whole, operands))

    def _single(self, value: TracedOrNumber) -> Place:
        """A float, as float32 if it has fewer bits."""
        place = self.whole(value)
        return self.emit("half_to_f", place) if getattr(value, "dtype", INT64).itemsize == 2 else place

    def _of_halves(self, name: str, operands: Operands) -> Place:
        """Of float16 only what needs no arithmetic."""
        if name in ("isnan", "isinf", "isfinite"):
            return self.emit(f"{name}_f", self._single(operands[0]))
        if name in ("absolute", "fabs"):
            return self.emit("and_w", self.whole(operands[0]), constant(0x7FFF, 4))
        if name == "nextafter":
            return self.emit("nextafter_h", *map(self.whole, operands))
        raise NotTraced(f"{name} of float16")

    def _of_longs(self, value: Traced) -> Place:
        name, operands = value.name, value.operands
        signed = value.dtype.kind == "i"
        if name == "add" and (joined := self._joined(*operands) or self._joined(*operands[::-1])):
            return joined
        if name == "multiply":
            if self._is_narrow(value):
                return self._extended(value)
            if power := power_of_two(operands[1]):
                return self.emit("shl_W", self.long(operands[0]), constant(power, 8))
            if all(within(one, _INT32) for one in operands):
                return self.emit("mul_i_I", *map(self.low, operands))
            if all(within(one, _UINT32) for one in operands):
                return self.emit("mul_w_W", *map(self.low, operands))
        if self._is_narrow(value) and self._is_of_words(value):
            return self._extended(value)
        places = tuple(self.long(one) for one in operands)
        if name in _SUMS or name in _BITWISE:
            return self.emit(f"{(_SUMS | _BITWISE)[name]}_W", *places)
        if name in _ENDS:
            return self.emit(f"{_ENDS[name]}_{'I' if signed else 'W'}", *places)
        if name in ("left_shift", "right_shift"):
            if limits(operands[1])[0] < 0:
                raise NotTraced("a shift by a negative number")
            return self.emit("shl_W" if name == "left_shift" else "shr_I" if signed else "shr_W", *places)
        if name in ("invert", "negative", "absolute", "bitwise_count"):
            short = {"invert": "not_W", "negative": "neg_W", "absolute": "abs_I", "bitwise_count": "popc_W"}
            return self.emit(short[name], places[0])
        raise NotTraced(name)

    def _is_of_words(self, value: Traced) -> bool:
        """Whether the low words of the operands are enough for that of a number."""
        name, operands = value.name, value.operands
        if name in ("bitwise_count", "absolute"):
            return False
        if name == "right_shift":
            return self._is_narrow(operands[0])
        return name not in _ENDS or all(map(self._is_narrow, operands))

    def _joined(self, low: TracedOrNumber, high: TracedOrNumber) -> Place | None:
        """Two words as one number: of the upper one only that it is a multiple of 2**32 is known."""
        if not isinstance(high, Traced) or not within(low, _UINT32):
            return None
        if high.name == "multiply" and limits(high.operands[1]) == (1 << 32, 1 << 32):
            return self.emit("join_W", self.low(low), self.low(high.operands[0]))
        return None

    def _of_words(self, value: Traced) -> Place:
        name, operands = value.name, value.operands
        small = value.dtype.itemsize < 4
        places = tuple(self.low(one) for one in operands)
        if name in _BITWISE:
            return self.emit(f"{_BITWISE[name]}_w", *places)
        if name == "bitwise_count":
            longs = tuple(self.long(one) for one in operands)
            return self.emit("I_to_w", self.emit("popc_W", *longs))
        if small:
            raise NotTraced(f"{name} of {value.dtype}")
        signed = value.dtype.kind == "i"
        if name in _SUMS:
            return self.emit(f"{_SUMS[name]}_w", *places)
        if name in _ENDS:
            return self.emit(f"{_ENDS[name]}_{'i' if signed else 'w'}", *places)
        if name in ("left_shift", "right_shift") and limits(operands[1])[0] >= 0:
            return self.emit("shl_w" if name == "left_shift" else "shr_i" if signed else "shr_w", *places)
        if name in ("invert", "negative", "absolute"):
            return self.emit({"invert": "not_w", "negative": "neg_w", "absolute": "abs_i"}[name], places[0])
        raise NotTraced(name)
