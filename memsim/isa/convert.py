"""Conversions: `I2F I2FP F2I F2IP F2F F2FP FRND I2I`, rounded, truncated and saturated as the form says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.float_formats import NAN, half_bits, numbers_of, to_bits, to_byte, to_tf32
from memsim.isa.op import Form, Register
from memsim.isa.pairs import from_double, halved
from memsim.isa.readers import Binder, Registers, sources
from memsim.isa.registry import Compute, Unsupported, checked, known, opcode, require
from memsim.isa.single import MODES, flushed, mode_of
from memsim.isa.words import fields, packed
from memsim.state.registers import fit, from_array, to_array, unsigned
from memsim.state.rounding import Array, directed, integer_sum, narrow, to_odd
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


def _widths(form: Form) -> dict[int, int]:
    """Registers of the result and of the source."""
    return {place: 2 if name.endswith("64") else 1 for place, name in enumerate(types(form))}


def integral(form: Form) -> Callable[[Array], Array]:
    """How numbers are rounded to integers."""
    return next((_INTEGRAL[name] for name in form.modifiers if name in _INTEGRAL), np.rint)


def written(array: Array, name: str, mode: str) -> Any:
    """float64 numbers converted to another type, as a register or a pair."""
    if name == "F64":
        return from_double(array)
    if name == "F32":
        return np.where(np.isnan(array), NAN, narrow(array, np.float32, mode))
    if name == "TF32":
        return to_tf32(array, mode)
    return from_array(to_bits(array, name == "BF16", mode))


def reader(binder: Binder, operand: Any, name: str, flush: bool) -> Callable[[Registers], Array]:
    """Reads a floating-point operand as float64."""
    if name == "F64":
        return binder.double(operand)
    if name in ("F16", "BF16"):
        halves = binder.halves(operand, name == "BF16")
        return lambda r: halves(r)[0].astype(np.float64)
    single = binder.single(operand)
    return lambda r: (flushed(single(r)) if flush else single(r)).astype(np.float64)


@opcode("I2F", "I2FP", "UI2F", "UI2FP", widths=_widths)
def build_int_to_float(form: Form, binder: Binder) -> Compute:
    to, of = types(form)
    known(form, *_INTEGERS, *_FLOATS, *MODES, "RN")
    signed, bits = _INTEGERS[of]
    read = binder.pair(form.operands[1]) if bits == 64 else binder.word(form.operands[1])
    mode = mode_of(form)

    def compute(r: Registers) -> Any:
        value = fit(read(r), bits)
        if bits == 64:
            array = to_array(value) if signed else u64(to_array(value))
        else:
            array = to_array(value if signed else unsigned(value, bits))
            return written(array.astype(np.float64), to, mode)  # exact
        total, error = integer_sum(array)
        if to == "F64":
            return from_double(total if mode == "rn" else directed(total, error, mode))
        return written(to_odd(total, error), to, mode)

    return compute


@opcode("F2I", "UF2I", widths=_widths)
def build_float_to_int(form: Form, binder: Binder) -> Compute:
    to, of = types(form)
    known(form, *_INTEGERS, *_FLOATS, *_INTEGRAL, "FTZ", "NTZ")
    signed, bits = _INTEGERS[to]
    read, rounded = reader(binder, form.operands[1], of, "FTZ" in form.modifiers), integral(form)
    lowest = -(2.0 ** (bits - 1)) if signed else 0.0
    beyond = 2.0 ** (bits - 1 if signed else bits)
    kind: type = np.int64 if signed or bits < 64 else np.uint64
    nan = (lowest if signed else beyond / 2) if of == "F64" or bits == 64 else 0.0

    def compute(r: Registers) -> Any:
        whole = rounded(read(r))
        result: Array = np.where((whole >= lowest) & (whole < beyond), whole, 0.0).astype(kind)
        result[whole < lowest] = kind(lowest)
        result[whole >= beyond] = kind(int(beyond) - 1)
        result[np.isnan(whole)] = kind(nan)
        value = from_array(s64(result))
        return halved(value) if bits == 64 else fit(value, 32)

    return compute


@opcode("F2F", widths=_widths)
def build_float_to_float(form: Form, binder: Binder) -> Compute:
    to, of = types(form)
    known(form, *_FLOATS, *MODES, "RN", "FTZ")
    read, mode = reader(binder, form.operands[1], of, "FTZ" in form.modifiers), mode_of(form)
    if (to, of) == ("F16", "F64"):
        return lambda r: half_of_double(read(r), mode)
    if (to, of) == ("F32", "F64"):  # NaN keeps its upper bits here, too
        return lambda r: narrow(read(r), np.float32, mode)
    return lambda r: written(read(r), to, mode)


def half_of_double(array: Array, mode: str) -> Int:
    """float64 as float16; NaN keeps its sign and the upper bits of its mantissa, unlike in other
    conversions.
    """
    bits = narrow(array, np.float16, mode).view(np.uint16).astype(np.int64)
    return from_array(np.where(np.isnan(array), bits | 0x200, bits))


@opcode("FRND", widths=_widths)
def build_round(form: Form, binder: Binder) -> Compute:
    to, of = types(form)
    known(form, *_FLOATS, *_INTEGRAL, "FTZ")
    read, rounded = reader(binder, form.operands[1], of, "FTZ" in form.modifiers), integral(form)
    return lambda r: written(rounded(read(r)), to, "rn")


@opcode("F2FP")
def build_pack(form: Form, binder: Binder) -> Compute:
    """Two numbers packed in one register, the first operand in the upper half; or one TF32, or two 8-bit
    floats.
    """
    given = set(form.modifiers)
    if given & {"E4M3", "E5M2"}:
        return pack_bytes(form, binder)
    mode = mode_of(form)
    if given - {"RZ"} == {"TF32", "F32", "PACK_B"} and len(form.operands) == 2:
        only = binder.single(form.operands[1])
        return lambda r: to_tf32(only(r), mode)
    require("F32" in given and given & {"F16", "BF16"})
    known(form, "F16", "BF16", "F32", "PACK_AB", "RZ", "RELU")
    reads = sources(binder.single, form, 2)

    def compute(r: Registers) -> Int:
        high, low = (read(r).astype(np.float64) for read in reads)
        if "RELU" in given:
            high, low = (np.where(value <= 0, 0.0, value) for value in (high, low))
        return packed([to_bits(value, "BF16" in given, mode) for value in (low, high)], 16)

    return compute


def pack_bytes(form: Form, binder: Binder) -> Compute:
    """Two numbers to and from 8-bit floats: `.PACK_AB_MERGE_C`, `.UNPACK_B_MERGE_C`, `.UNPACK_B`."""
    given = set(form.modifiers)
    name = "E4M3" if "E4M3" in given else "E5M2"
    operands = form.operands[1:]
    if form.modifiers == ("F16", name, "UNPACK_B") and len(operands) == 1:
        word = binder.word(operands[0])
        return lambda r: packed(
            [half_bits(numbers_of(byte.astype(np.uint8), name)) for byte in fields(word(r), False, 8)[:2]], 16
        )
    require("SATFINITE" in given and checked(operands[-1], Register).slot is None)
    if given == {"SATFINITE", name, "F32", "PACK_AB_MERGE_C"}:
        high, low = (binder.single(operand) for operand in operands[:2])
        return lambda r: packed([to_byte(value(r), name) for value in (low, high)], 8)
    if given == {"SATFINITE", name, "F16", "UNPACK_B_MERGE_C"}:
        halves = binder.halves(operands[0])
        return lambda r: packed([to_byte(half, name) for half in halves(r)], 8)
    raise Unsupported


@opcode("F2IP")
def build_pack_integers(form: Form, binder: Binder) -> Compute:
    """Two float32 as 8-bit integers, the first operand in the upper byte; the third operand is ignored."""
    given = known(form, "U8", "S8", "F32", "NTZ", *_INTEGRAL)
    require(getattr(form.operands[3], "slot", 0) is None)
    least, most = (-128, 127) if "S8" in given else (0, 255)
    rounded, (high, low) = integral(form), sources(binder.single, form, 2)

    def byte(value: Array) -> Array:
        kept = np.clip(rounded(value.astype(np.float64)), least, most)
        return np.where(np.isnan(kept), 0, kept).astype(np.int64)

    return lambda r: packed([byte(low(r)), byte(high(r))], 8)


@opcode("I2I")
def build_int_to_int(form: Form, binder: Binder) -> Compute:
    known(form, *_INTEGERS, "SAT")
    named = [name for name in form.modifiers if name in _INTEGERS]
    require(len(named) == 2 and "64" not in named[0] + named[1])
    (to_signed, to_bits), (signed, bits) = _INTEGERS[named[0]], _INTEGERS[named[1]]
    read = binder.word(form.operands[1])
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
