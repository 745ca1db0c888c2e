"""Conversions: `I2F I2FP F2I F2IP F2F F2FP FRND I2I`, rounded, truncated and saturated as the form says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, define, executes
from memsim.isa.floats import MODES, flush_singles, mode_of
from memsim.isa.half import HalvesReader
from memsim.isa.number_formats import (
    NAN,
    fields,
    from_double,
    half_bits,
    numbers_of,
    pack_fields,
    split_words,
    to_bits,
    to_byte,
    to_tf32,
)
from memsim.isa.op import Form, Register, Trait, require
from memsim.isa.readers import FloatReader, IntReader, Registers
from memsim.state.partial import Value
from memsim.state.registers import as_unsigned, fit, from_array, to_array
from memsim.state.rounding import Array, integer_sum, narrow, round_directed, to_odd
from memsim.state.sums import Int, low_bits, s64, u64

_INTEGERS = {f"{sign}{bits}": (sign == "S", bits) for sign in "US" for bits in (8, 16, 32, 64)}
_FLOATS = ("F16", "BF16", "F32", "F64", "TF32")
_INTEGRAL: dict[str, Callable[[Array], Array]] = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}


def types(form: Form) -> tuple[str, str]:
    """(to, from): the types named in the form, in its order; defaults are F32 and S32."""
    floats = [kind for kind in form.modifiers if kind in _FLOATS]
    name = form.opcode.removeprefix("U")  # of a uniform register
    if name in ("I2F", "I2FP", "F2I"):
        number = (floats or ["F32"])[0]
        whole = next((kind for kind in form.modifiers if kind in _INTEGERS), "S32")
        return (whole, number) if name == "F2I" else (number, whole)
    to, of, *_ = [*floats, "F32", "F32"] if form.opcode == "F2F" else [*floats, *floats, "F32", "F32"]
    return to, of


#: How a number of a type is read.
_LETTERS = {"F64": "G", "F16": "H", "BF16": "J", "S64": "D", "U64": "D"}


def _converts(form: Form) -> str:
    """The signature of a conversion, by the types that it names."""
    to, of = types(form)
    return f"{'D' if to.endswith('64') else 'W'} <- {_LETTERS.get(of, 'F' if of in _FLOATS else 'W')}"


def integral(form: BoundForm) -> Callable[[Array], Array]:
    """How numbers are rounded to integers."""
    return next((_INTEGRAL[name] for name in form.modifiers if name in _INTEGRAL), np.rint)


def convert_to_registers(array: Array, name: str, mode: str) -> Value | tuple[Value, Value]:
    """float64 numbers converted to another type, as a register or a pair."""
    if name == "F64":
        return from_double(array)
    if name == "F32":
        return np.where(np.isnan(array), NAN, narrow(array, np.float32, mode))
    if name == "TF32":
        return to_tf32(array, mode)
    return from_array(to_bits(array, name == "BF16", mode))


#: Reads an operand: an array, or of halves two.
Source = Callable[[Registers], Any]


def reader(form: BoundForm, read: Source) -> Callable[[Registers], Array]:
    """Reads a floating-point operand as float64."""
    of, flush = types(form)[1], "FTZ" in form.given
    if of == "F64":
        return read
    if of in ("F16", "BF16"):
        return lambda r: read(r)[0].astype(np.float64)
    return lambda r: (flush_singles(read(r)) if flush else read(r)).astype(np.float64)


@executes("I2F I2FP UI2F UI2FP", _converts, " ".join((*_INTEGERS, *_FLOATS, *MODES, "RN")))
def int_to_float(form: BoundForm, read: IntReader) -> Compute:
    to, of = types(form)
    signed, bits = _INTEGERS[of]
    mode = mode_of(form)

    def compute(r: Registers) -> Results:
        value = fit(read(r), bits)
        if bits == 64:
            array = to_array(value) if signed else u64(to_array(value))
        else:
            array = to_array(value if signed else as_unsigned(value, bits))
            return convert_to_registers(array.astype(np.float64), to, mode)  # exact
        total, error = integer_sum(array)
        if to == "F64":
            return from_double(total if mode == "rn" else round_directed(total, error, mode))
        return convert_to_registers(to_odd(total, error), to, mode)

    return compute


@executes(
    "F2I UF2I",
    _converts,
    " ".join((*_INTEGERS, *_FLOATS, *_INTEGRAL, "FTZ", "NTZ")),
    traits={"": Trait.TO_INTEGER},
)
def float_to_int(form: BoundForm, source: Source) -> Compute:
    to, of = types(form)
    signed, bits = _INTEGERS[to]
    read, rounded = reader(form, source), integral(form)
    lowest = -(2.0 ** (bits - 1)) if signed else 0.0
    beyond = 2.0 ** (bits - 1 if signed else bits)
    kind: type = np.int64 if signed or bits < 64 else np.uint64
    nan = (lowest if signed else beyond / 2) if of == "F64" or bits == 64 else 0.0

    def compute(r: Registers) -> Results:
        whole = rounded(read(r))
        result: Array = np.where((whole >= lowest) & (whole < beyond), whole, 0.0).astype(kind)
        result = np.where(whole < lowest, kind(lowest), result)
        result = np.where(whole >= beyond, kind(int(beyond) - 1), result)
        result = np.where(np.isnan(whole), kind(nan), result)
        value = from_array(s64(result))
        return split_words(value) if bits == 64 else fit(value, 32)

    return compute


@executes("F2F", _converts, " ".join((*_FLOATS, *MODES, "RN", "FTZ")))
def float_to_float(form: BoundForm, source: Source) -> Compute:
    to, of = types(form)
    read, mode = reader(form, source), mode_of(form)
    if (to, of) == ("F16", "F64"):
        return lambda r: half_of_double(read(r), mode)
    if (to, of) == ("F32", "F64"):  # NaN keeps its upper bits here, too
        return lambda r: narrow(read(r), np.float32, mode)
    return lambda r: convert_to_registers(read(r), to, mode)


def half_of_double(array: Array, mode: str) -> Int:
    """float64 as float16; NaN keeps its sign and the upper bits of its mantissa, unlike in other
    conversions.
    """
    bits = narrow(array, np.float16, mode).view(np.uint16).astype(np.int64)
    return from_array(np.where(np.isnan(array), bits | 0x200, bits))


@executes("FRND", _converts, " ".join((*_FLOATS, *_INTEGRAL, "FTZ")), traits={"": Trait.MONOTONE})
def rounded_to_integral(form: BoundForm, source: Source) -> Compute:
    to, read, rounded = types(form)[0], reader(form, source), integral(form)
    return lambda r: convert_to_registers(rounded(read(r)), to, "rn")


@executes("F2FP.TF32.F32.PACK_B", "W <- F", "RZ")
def pack_tf32(form: BoundForm, read: FloatReader) -> Compute:
    mode = mode_of(form)
    return lambda r: to_tf32(read(r), mode)


@executes("F2FP.F16.F32 F2FP.BF16.F32 F2FP.PACK_AB F2FP.BF16.PACK_AB", "W <- FF", "PACK_AB RZ RELU")
def pack_halves(form: BoundForm, *reads: FloatReader) -> Compute:
    """Two numbers packed in one register, the first operand in the upper half.

    Code for sm_80 to sm_87 does not name float16 and float32: PTX's `cvt.rn.f16x2.f32` is `F2FP.PACK_AB`.
    """
    given, mode = form.given, mode_of(form)

    def compute(r: Registers) -> Int:
        high, low = (read(r).astype(np.float64) for read in reads)
        if "RELU" in given:
            high, low = (np.where(value <= 0, 0.0, value) for value in (high, low))
        return pack_fields([to_bits(value, "BF16" in given, mode) for value in (low, high)], 16)

    return compute


@executes("F2FP.F16.F32.MERGE_C F2FP.BF16.F32.MERGE_C F2FP.MERGE_C F2FP.BF16.MERGE_C", "W <- FR", "RZ RELU")
def merge_half(form: BoundForm, low: FloatReader, merged: Register) -> Compute:
    """A number in the lower half of a register that is 0 otherwise."""
    require(merged.slot is None)
    return pack_halves(form, form.binder.single(merged), low)


def _byte_type(form: BoundForm) -> str:
    return "E4M3" if "E4M3" in form.given else "E5M2"


@executes("F2FP.F16.E4M3.UNPACK_B F2FP.F16.E5M2.UNPACK_B", "W <- W")
def unpack_bytes(form: BoundForm, word: IntReader) -> Compute:
    """Two 8-bit floats as float16."""
    name = _byte_type(form)
    return lambda r: pack_fields(
        [half_bits(numbers_of(byte.astype(np.uint8), name)) for byte in fields(word(r), False, 8)[:2]], 16
    )


@executes("F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C F2FP.SATFINITE.E5M2.F32.PACK_AB_MERGE_C", "W <- FFR")
def pack_bytes(form: BoundForm, high: FloatReader, low: FloatReader, merged: Register) -> Compute:
    """Two float32 as 8-bit floats."""
    require(merged.slot is None)
    name = _byte_type(form)
    return lambda r: pack_fields([to_byte(value(r), name) for value in (low, high)], 8)


@executes("F2FP.SATFINITE.E4M3.F16.UNPACK_B_MERGE_C F2FP.SATFINITE.E5M2.F16.UNPACK_B_MERGE_C", "W <- HR")
def pack_bytes_of_halves(form: BoundForm, halves: HalvesReader, merged: Register) -> Compute:
    """Two float16 as 8-bit floats."""
    require(merged.slot is None)
    name = _byte_type(form)
    return lambda r: pack_fields([to_byte(half, name) for half in halves(r)], 8)


@executes("F2IP", "W <- FFR", " ".join(("U8", "S8", "F32", "NTZ", *_INTEGRAL)))
def pack_integers(form: BoundForm, high: FloatReader, low: FloatReader, merged: Register) -> Compute:
    """Two float32 as 8-bit integers, the first operand in the upper byte; the third operand is ignored."""
    require(merged.slot is None)
    least, most = (-128, 127) if "S8" in form.given else (0, 255)
    rounded = integral(form)

    def byte(value: Array) -> Array:
        kept = np.clip(rounded(value.astype(np.float64)), least, most)
        return np.where(np.isnan(kept), 0, kept).astype(np.int64)

    return lambda r: pack_fields([byte(low(r)), byte(high(r))], 8)


define("F2FP", "W <- FF?R?", None)  # others are not executed


@executes("I2I", "W <- W", " ".join((*_INTEGERS, "SAT")))
def int_to_int(form: BoundForm, read: IntReader) -> Compute:
    named = [name for name in form.modifiers if name in _INTEGERS]
    require(len(named) == 2 and "64" not in named[0] + named[1])
    (to_signed, to_bits), (signed, bits) = _INTEGERS[named[0]], _INTEGERS[named[1]]
    saturate = "SAT" in form.modifiers

    def compute(r: Registers) -> Int:
        low = low_bits(fit(read(r), 32), bits)
        value = fit(low, bits) if signed else low
        if saturate:
            least = -(1 << (to_bits - 1)) if to_signed else 0
            most = (1 << (to_bits - 1 if to_signed else to_bits)) - 1
            return fit(from_array(np.clip(to_array(value), least, most)), 32)
        value = low_bits(value, to_bits)
        return fit(fit(value, to_bits) if to_signed else value, 32)

    return compute
