"""`cvt`: between integer widths, integers and floats, and float types.

In: register values. Out: register values, integers wrapped or saturated as PTX ISA says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.floats import DTYPES, flush, from_bf16, pack_half2, to_bf16
from memsim.simt.registry import Compute, Unsupported, alu
from memsim.simt.values import Sum, fit, floats, from_array, ints, to_array, unsigned

Value = Any

_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def integer_kind(name: str) -> tuple[bool, int] | None:
    """(is signed, bits) of an integer type name, None for another."""
    if name[:1] in ("s", "u") and name[1:].isdigit():
        return name[0] == "s", int(name[1:])
    return None


@alu("cvt")
def build_cvt(instruction: Instruction) -> Compute:
    *options, target, source = instruction.modifiers
    rounding = next((name for name in options if name in _ROUND), None)
    other = set(options) - set(_ROUND) - {"rn", "ftz", "sat"}
    to_int, from_int = integer_kind(target), integer_kind(source)
    if other == {"rna"} and (target, source) == ("tf32", "f32"):
        return round_tf32
    if other:
        raise Unsupported(instruction.name)
    saturate, ftz = "sat" in options, "ftz" in options
    if to_int and from_int:
        return int_to_int(to_int, from_int, saturate)
    if from_int:
        return int_to_float(target, from_int, instruction)
    if to_int:
        return float_to_int(to_int, source, rounding or "rzi", ftz, instruction)
    return float_to_float(target, source, rounding, saturate, ftz, instruction)


def int_to_int(target: tuple[bool, int], source: tuple[bool, int], saturate: bool) -> Compute:
    """Read with the source's width and sign, keep what the target's width holds."""
    (to_signed, to_bits), (from_signed, from_bits) = target, source

    def compute(a: Value) -> int | Sum:
        x = fit(ints(a, from_bits), from_bits)
        if not from_signed and from_bits < 64:
            x = unsigned(x, from_bits)
        if saturate:
            low = -(1 << (to_bits - 1)) if to_signed else 0
            high = (1 << (to_bits - 1 if to_signed else to_bits)) - 1
            array = to_array(x)
            if not from_signed and from_bits == 64:
                array = np.where(array < 0, np.iinfo(np.int64).max, array)
            x = from_array(np.clip(array, low, min(high, np.iinfo(np.int64).max)))
        x = fit(x, to_bits)
        # A narrow unsigned result is zero-extended in its wider register (ISA, "Operand Size").
        return x if to_signed or to_bits >= 32 else unsigned(x, to_bits)

    return compute


def int_to_float(target: str, source: tuple[bool, int], instruction: Instruction) -> Compute:
    """Nearest float of an integer."""
    signed, bits = source
    if target not in DTYPES and target != "bf16":
        raise Unsupported(instruction.name)

    def compute(a: Value) -> Value:
        x = fit(ints(a, bits), bits)
        if signed:
            array = to_array(x)
        elif bits < 64:
            array = to_array(unsigned(x, bits))
        else:
            array = to_array(x).view(np.uint64)
        if target == "bf16":
            return to_bf16(array.astype(np.float32))
        return array.astype(DTYPES[target])

    return compute


def float_to_int(
    target: tuple[bool, int], source: str, rounding: str, ftz: bool, instruction: Instruction
) -> Compute:
    """Rounded and clamped to the target's range; NaN gives 0."""
    signed, bits = target
    if source not in DTYPES and source != "bf16":
        raise Unsupported(instruction.name)
    low = float(-(2 ** (bits - 1))) if signed else 0.0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1

    def compute(a: Value) -> int | Sum:
        x = from_bf16(a) if source == "bf16" else floats(a, DTYPES[source])
        if ftz and x.dtype == np.float32:
            x = flush(x)
        rounded = np.nan_to_num(_ROUND[rounding](x.astype(np.float64)), nan=0.0, posinf=1e300, neginf=-1e300)
        top = rounded >= float(high)  # float(high) may round up: those are set to `high` exactly
        inside = np.where(top, 0.0, np.maximum(rounded, low))
        if not signed and bits == 64:
            exact = np.where(top, np.uint64(high), inside.astype(np.uint64)).view(np.int64)
        else:
            exact = np.where(top, np.int64(high), inside.astype(np.int64))
        return fit(from_array(exact), bits)

    return compute


def float_to_float(
    target: str, source: str, rounding: str | None, saturate: bool, ftz: bool, instruction: Instruction
) -> Compute:
    """Between float types, or rounded to an integral value in the same type."""
    if (target, source) == ("f16x2", "f32"):
        return lambda a, b: pack_half2(
            floats(b, np.float32).astype(np.float16), floats(a, np.float32).astype(np.float16)
        )
    for name in (target, source):
        if name not in DTYPES and name != "bf16":
            raise Unsupported(instruction.name)

    def compute(a: Value) -> Value:
        x = from_bf16(a) if source == "bf16" else floats(a, DTYPES[source])
        if ftz and x.dtype == np.float32:
            x = flush(x)
        if rounding:
            x = _ROUND[rounding](x)
        if saturate:
            x = np.clip(np.nan_to_num(x, nan=0.0), 0, 1)
        if target == "bf16":
            return to_bf16(x.astype(np.float32))
        result = x.astype(DTYPES[target])
        return flush(result) if ftz and result.dtype == np.float32 else result

    return compute


def round_tf32(a: Value) -> Value:
    """f32 rounded to tf32 (nearest, ties away), kept as f32 bits."""
    bits = floats(a, np.float32).view(np.int32).astype(np.int64)
    return from_array(((bits + 0x1000) & ~0x1FFF).astype(np.int32).astype(np.int64))
