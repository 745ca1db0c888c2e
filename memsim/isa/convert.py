"""Conversions: `I2F I2FP F2I F2IP F2F F2FP FRND I2I`, rounded, truncated and saturated as the form says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.isa.op import Form, Register
from memsim.isa.readers import NAN, Binder, Registers, from_double, half_bits, halved, sources
from memsim.isa.registry import Compute, Unsupported, opcode
from memsim.isa.single import flushed
from memsim.state.registers import fit, from_array, to_array, unsigned
from memsim.state.rounding import Array, directed, integer_sum, narrow, to_bf16, to_odd
from memsim.state.sums import Int, low_bits, s64, u64

_INTEGERS = {f"{sign}{bits}": (sign == "S", bits) for sign in "US" for bits in (8, 16, 32, 64)}
_FLOATS = ("F16", "BF16", "F32", "F64", "TF32")
_DIRECTIONS = {"RP": "rp", "RM": "rm", "RZ": "rz", "RN": "rn"}
_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "TRUNC": np.trunc,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
}


def types(form: Form, default_to: str, default_from: str) -> tuple[str, str]:
    """(to, from): the types named in the form, in its order; defaults are F32 and S32."""
    named = [name for name in form.modifiers if name in _INTEGERS or name in _FLOATS]
    if form.opcode in ("I2F", "I2FP"):
        floats = [name for name in named if name in _FLOATS]
        whole = [name for name in named if name in _INTEGERS]
        return (floats or [default_to])[0], (whole or [default_from])[0]
    if form.opcode == "F2I":
        floats = [name for name in named if name in _FLOATS]
        whole = [name for name in named if name in _INTEGERS]
        return (whole or [default_to])[0], (floats or [default_from])[0]
    if len(named) == 2:
        return named[0], named[1]
    if len(named) == 1:
        return named[0], default_from if form.opcode == "F2F" else named[0]
    return default_to, default_from


def _width(name: str) -> int:
    return 2 if name.endswith("64") else 1


def _i2f_widths(form: Form) -> dict[int, int]:
    to, of = types(form, "F32", "S32")
    return {0: _width(to), 1: _width(of)}


def direction(form: Form) -> str:
    """The rounding mode of a conversion to float."""
    return next((_DIRECTIONS[name] for name in form.modifiers if name in _DIRECTIONS), "rn")


def written(array: Array, name: str, mode: str) -> Any:
    """float64 numbers converted to another type, as a register or a pair."""
    if name == "F64":
        return from_double(array)
    if name == "F32":
        return np.where(np.isnan(array), NAN, narrow(array, np.float32, mode))
    if name == "F16":
        return from_array(half_bits(array, mode))
    if name == "BF16":
        return from_array(to_bf16(array, mode))
    if name == "TF32":
        return _to_tf32(array, mode)
    raise Unsupported(name)


def _to_tf32(array: Array, mode: str) -> Array:
    bits = array.astype(np.float32).view(np.uint32).astype(np.int64)
    half = 0x1000 if mode in ("rn", "rna") else 0
    tie = ((bits >> 13) & 1) - 1 if mode == "rn" else 0
    rounded = (
        np.where(np.isfinite(array), bits + half + tie, np.where(np.isnan(array), 0x7FFFFFFF, bits)) & ~0x1FFF
    )
    return rounded.astype(np.uint32).view(np.float32)


def reader(binder: Binder, operand: Any, name: str, flush: bool) -> Callable[[Registers], Array]:
    """Reads a floating-point operand as float64."""
    if name == "F64":
        return binder.double(operand)
    if name in ("F16", "BF16"):
        halves = binder.halves(operand, name == "BF16")
        return lambda r: halves(r)[0].astype(np.float64)
    single = binder.single(operand)
    if flush:
        return lambda r: flushed(single(r)).astype(np.float64)
    return lambda r: single(r).astype(np.float64)


@opcode("I2F", "I2FP", widths=_i2f_widths)
def build_int_to_float(form: Form, binder: Binder) -> Compute:
    to, of = types(form, "F32", "S32")
    if set(form.modifiers) - {*_INTEGERS, *_FLOATS, *_DIRECTIONS}:
        raise Unsupported(form.name)
    signed, bits = _INTEGERS[of]
    read = binder.pair(form.operands[1]) if bits == 64 else binder.word(form.operands[1])
    mode = direction(form)

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


def _f2i_widths(form: Form) -> dict[int, int]:
    to, of = types(form, "S32", "F32")
    return {0: _width(to), 1: _width(of)}


@opcode("F2I", widths=_f2i_widths)
def build_float_to_int(form: Form, binder: Binder) -> Compute:
    to, of = types(form, "S32", "F32")
    if set(form.modifiers) - {*_INTEGERS, *_FLOATS, *_INTEGRAL, "FTZ", "NTZ"}:
        raise Unsupported(form.name)
    signed, bits = _INTEGERS[to]
    read = reader(binder, form.operands[1], of, "FTZ" in form.modifiers)
    integral = next((_INTEGRAL[name] for name in form.modifiers if name in _INTEGRAL), np.rint)
    lowest = -(2.0 ** (bits - 1)) if signed else 0.0
    beyond = 2.0 ** (bits - 1 if signed else bits)
    kind: type = np.int64 if signed or bits < 64 else np.uint64
    nan = (lowest if signed else beyond / 2) if of == "F64" or bits == 64 else 0.0

    def compute(r: Registers) -> Any:
        whole = integral(read(r))
        result: Array = np.where((whole >= lowest) & (whole < beyond), whole, 0.0).astype(kind)
        result[whole < lowest] = kind(lowest)
        result[whole >= beyond] = kind(int(beyond) - 1)
        result[np.isnan(whole)] = kind(nan)
        value = from_array(s64(result))
        return halved(value) if bits == 64 else fit(value, 32)

    return compute


def _f2f_widths(form: Form) -> dict[int, int]:
    to, of = types(form, "F32", "F32")
    return {0: _width(to), 1: _width(of)}


@opcode("F2F", widths=_f2f_widths)
def build_float_to_float(form: Form, binder: Binder) -> Compute:
    to, of = types(form, "F32", "F32")
    if set(form.modifiers) - {*_FLOATS, *_DIRECTIONS, "FTZ", "SAT"} or "SAT" in form.modifiers:
        raise Unsupported(form.name)
    read = reader(binder, form.operands[1], of, "FTZ" in form.modifiers)
    mode = direction(form)
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


@opcode("FRND", widths=_f2f_widths)
def build_round(form: Form, binder: Binder) -> Compute:
    to, of = types(form, "F32", "F32")
    if set(form.modifiers) - {*_FLOATS, *_INTEGRAL, "FTZ"}:
        raise Unsupported(form.name)
    integral = next((_INTEGRAL[name] for name in form.modifiers if name in _INTEGRAL), np.rint)
    read = reader(binder, form.operands[1], of, "FTZ" in form.modifiers)
    return lambda r: written(integral(read(r)), to, "rn")


@opcode("F2FP")
def build_pack(form: Form, binder: Binder) -> Compute:
    """Two numbers packed in one register, the first operand in the upper half; or one TF32, or two 8-bit
    floats.
    """
    given = set(form.modifiers)
    if given & {"E4M3", "E5M2"}:
        return pack_bytes(form, binder)
    if given - {"RZ"} == {"TF32", "F32", "PACK_B"} and len(form.operands) == 2:
        only, towards = binder.single(form.operands[1]), direction(form)
        return lambda r: _to_tf32(only(r), towards)
    to = next((name for name in ("BF16", "F16") if name in given), None)
    if to is None or given - {"F16", "BF16", "F32", "PACK_AB", "RZ", "RELU"} or "F32" not in given:
        raise Unsupported(form.name)
    reads = sources(binder.single, form, 2)
    mode = direction(form)
    relu = "RELU" in given

    def compute(r: Registers) -> Int:
        values = [read(r).astype(np.float64) for read in reads]
        if relu:
            values = [np.where(value > 0, value, np.where(np.isnan(value), value, 0.0)) for value in values]
        high, low = (to_array(written(value, to, mode)) for value in values)
        return fit(from_array(low | (high << 16)), 32)

    return compute


#: 8-bit floats: bits of the exponent, of the mantissa, the code of the largest number.
_BYTES = {"E4M3": (4, 3, 0x7E), "E5M2": (5, 2, 0x7B)}


def byte_values(name: str) -> Array:
    """The values of all 256 codes; NaN for invalid codes."""
    exponent_bits, bits, largest = _BYTES[name]
    code = np.arange(256)
    exponent, mantissa = (code & 127) >> bits, code & ((1 << bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    size = np.ldexp(mantissa + np.where(exponent > 0, 1 << bits, 0), np.maximum(exponent, 1) - bias - bits)
    size = np.where((code & 127) > largest, np.nan, size)
    if name == "E5M2":
        size = np.where((code & 127) == 0x7C, np.inf, size)
    return np.where(code & 128, -size, size)


def to_byte(array: Array, name: str) -> Array:
    """Codes of float64 numbers, rounded to nearest even and saturated; NaN becomes 0x7f."""
    _, _, largest = _BYTES[name]
    sizes = byte_values(name)[: largest + 1]
    size = np.minimum(np.abs(array), sizes[-1])
    above = np.clip(np.searchsorted(sizes, np.where(np.isnan(size), 0.0, size)), 1, largest)
    up, down = sizes[above] - size, size - sizes[above - 1]
    code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, above - 1)
    return np.where(np.isnan(array), 0x7F, code | np.where(np.signbit(array), 0x80, 0))


def pack_bytes(form: Form, binder: Binder) -> Compute:
    """Two numbers to and from 8-bit floats: `.PACK_AB_MERGE_C`, `.UNPACK_B_MERGE_C`, `.UNPACK_B`."""
    given = set(form.modifiers)
    name = "E4M3" if "E4M3" in given else "E5M2"
    operands = form.operands[1:]
    if form.modifiers == ("F16", name, "UNPACK_B") and len(operands) == 1:
        table, read = byte_values(name), binder.word(operands[0])

        def unpacked(r: Registers) -> Int:
            word = to_array(read(r))
            low, high = (half_bits(table[(word >> shift) & 255]) for shift in (0, 8))
            return fit(from_array(low | (high << 16)), 32)

        return unpacked
    kept = operands[-1]
    if "SATFINITE" not in given or not isinstance(kept, Register) or kept.slot is not None:
        raise Unsupported(form.name)
    if given == {"SATFINITE", name, "F32", "PACK_AB_MERGE_C"}:
        high, low = (binder.single(operand) for operand in operands[:2])
        return lambda r: from_array(
            to_byte(low(r).astype(float), name) | (to_byte(high(r).astype(float), name) << 8)
        )
    if given == {"SATFINITE", name, "F16", "UNPACK_B_MERGE_C"}:
        halves = binder.halves(operands[0])

        def packed(r: Registers) -> Int:
            below, above = (to_byte(half.astype(np.float64), name) for half in halves(r))
            return from_array(below | (above << 8))

        return packed
    raise Unsupported(form.name)


@opcode("F2IP")
def build_pack_integers(form: Form, binder: Binder) -> Compute:
    """Two float32 as 8-bit integers, the first operand in the upper byte; the third operand is ignored."""
    kept = form.operands[3]
    if set(form.modifiers) - {"U8", "S8", "F32", "NTZ", *_INTEGRAL} or getattr(kept, "slot", 0) is not None:
        raise Unsupported(form.name)
    signed = "S8" in form.modifiers
    least, most = (-128, 127) if signed else (0, 255)
    integral = next((_INTEGRAL[name] for name in form.modifiers if name in _INTEGRAL), np.rint)
    sources = [binder.single(operand) for operand in form.operands[1:3]]

    def compute(r: Registers) -> Int:
        high, low = (
            np.nan_to_num(np.clip(integral(source(r).astype(np.float64)), least, most)).astype(np.int64) & 255
            for source in sources
        )
        return from_array(low | (high << 8))

    return compute


@opcode("I2I")
def build_int_to_int(form: Form, binder: Binder) -> Compute:
    named = [name for name in form.modifiers if name in _INTEGERS]
    if len(named) != 2 or set(form.modifiers) - {*_INTEGERS, "SAT"} or "64" in named[0] + named[1]:
        raise Unsupported(form.name)
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
