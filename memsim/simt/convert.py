"""`cvt`: between integer widths, integers and floats, and float types.

In: register values. Out: register values, rounded, wrapped or saturated as PTX ISA says, and
extended where the destination register is wider than the type (ISA, "Operand Size Exceeding
Instruction-Type Size"). Left out: 8-bit and narrower floats, `cvt.pack`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.floats import rectified
from memsim.simt.formats import format_named
from memsim.simt.plan import Plan, Step, step
from memsim.simt.registry import INTEGERS, Compute, Unsupported
from memsim.state.order import saturated
from memsim.state.registers import fit, floats, from_array, ints, to_array, unsigned
from memsim.state.rounding import MODES, Array, directed, integer_sum, to_odd
from memsim.state.sums import Int, s64, u64

Value = Any

#: To an integral number, `.rni` and its like.
_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}
_NAMES = {name: kind for name, kind in INTEGERS.items() if name[0] != "b"}


@step("cvt")
def build_cvt(plan: Plan, instruction: Instruction, data: bool) -> Step:
    if len(instruction.modifiers) < 2:
        raise Unsupported(instruction.name)
    target, source = instruction.modifiers[-2:]
    packs = target in ("f16x2", "bf16x2")
    if len(instruction.operands) != 2 + packs:
        raise Unsupported(instruction.name)
    compute = pack(target, source, instruction) if packs else convert(target, source, instruction)
    width = plan.width(instruction.operands[0])
    bits = 32 if packs or target == "tf32" else int(target.lstrip("subf"))
    if width <= bits:
        return plan.alu_step(instruction, compute)
    signed = target.startswith("s")
    return plan.alu_step(instruction, lambda *x: extend(ints(compute(*x), bits), signed, bits, width))


def extend(value: Int, signed: bool, bits: int, width: int) -> Int:
    """A `bits` bit result in a register of `width` bits."""
    return value if signed else fit(unsigned(value, bits), width)


def convert(target: str, source: str, instruction: Instruction) -> Compute:
    """The conversion of one number."""
    given = set(instruction.modifiers[:-2])
    rounding = given & {*MODES, *_INTEGRAL, "rna"}
    to_int, from_int = _NAMES.get(target), _NAMES.get(source)
    if len(rounding) > 1 or not given - rounding <= {"ftz", "sat", "relu"}:
        raise Unsupported(instruction.name)
    if target == "tf32":
        return to_tf32(instruction)
    if to_int and from_int and given <= {"sat"}:
        return int_to_int(to_int, from_int, "sat" in given)
    if to_int and not from_int and rounding <= set(_INTEGRAL) and "relu" not in given:
        return float_to_int(to_int, source, instruction)
    if from_int and not to_int and rounding <= set(MODES) and not given & {"ftz", "relu"}:
        return int_to_float(target, from_int, instruction)
    if to_int or from_int or "rna" in rounding:
        raise Unsupported(instruction.name)
    return float_to_float(target, source, instruction)


# --- integers -------------------------------------------------------------------------------


def int_to_int(target: tuple[bool, int], source: tuple[bool, int], saturate: bool) -> Compute:
    """Read with the source's width and sign, keep what the target's width holds."""
    (to_signed, to_bits), (from_signed, from_bits) = target, source
    lowest = -(1 << (to_bits - 1)) if to_signed else 0
    highest = (1 << (to_bits - 1 if to_signed else to_bits)) - 1

    def compute(a: Value) -> Int:
        x = fit(ints(a, from_bits), from_bits)
        if not from_signed and from_bits < 64:
            x = unsigned(x, from_bits)
        if saturate:
            array = u64(to_array(x)) if not from_signed and from_bits == 64 else to_array(x)
            limits = np.iinfo(array.dtype)
            x = from_array(s64(np.clip(array, max(lowest, limits.min), min(highest, limits.max))))
        return fit(x, to_bits)

    return compute


def int_to_float(target: str, source: tuple[bool, int], instruction: Instruction) -> Compute:
    """The float that the rounding mode asks for (nearest where there is none)."""
    signed, bits = source
    form = format_named(target, instruction)
    mode = next((name for name in instruction.modifiers[:-2] if name in MODES), "rn")
    if form.lanes > 1:
        raise Unsupported(instruction.name)
    finish = saturated if "sat" in instruction.modifiers else (lambda array: array)

    def compute(a: Value) -> Value:
        x = fit(ints(a, bits), bits)
        if not signed:
            x = unsigned(x, bits) if bits < 64 else x
        array = u64(to_array(x)) if bits == 64 and not signed else to_array(x)
        total, error = integer_sum(array)
        if form.name == "f64":
            return finish(total if mode == "rn" else directed(total, error, mode))
        return form.write(finish(to_odd(total, error)), mode)

    return compute


def float_to_int(target: tuple[bool, int], source: str, instruction: Instruction) -> Compute:
    """Rounded and clamped to the target's range.

    NaN gives 0, but the lowest signed number's bits where 64 bits are on either side (ISA, `cvt`).
    """
    signed, bits = target
    form = format_named(source, instruction)
    rounding = next((name for name in instruction.modifiers if name in _INTEGRAL), None)
    if form.lanes > 1 or rounding is None:
        raise Unsupported(instruction.name)
    lowest = -(2.0 ** (bits - 1)) if signed else 0.0
    beyond = 2.0 ** (bits - 1 if signed else bits)
    flush = form.flush if "ftz" in instruction.modifiers else (lambda array: array)
    kind: type = np.int64 if signed or bits < 64 else np.uint64
    wide = form.name == "f64" or bits == 64
    nan = (lowest if signed else beyond / 2) if wide else 0.0

    def compute(a: Value) -> Int:
        x = flush(form.read(a)[0])
        whole = _INTEGRAL[rounding](x.astype(np.float64))
        result: Array = np.where((whole >= lowest) & (whole < beyond), whole, 0.0).astype(kind)
        result[whole < lowest] = kind(lowest)
        result[whole >= beyond] = kind(int(beyond) - 1)
        result[np.isnan(whole)] = kind(nan)
        return fit(from_array(s64(result)), bits)

    return compute


# --- floats ---------------------------------------------------------------------------------


def float_to_float(target: str, source: str, instruction: Instruction) -> Compute:
    """Between float types, or to an integral number of the same type."""
    given = set(instruction.modifiers[:-2])
    mode = next((name for name in given if name in MODES), "rn")
    integral = next((_INTEGRAL[name] for name in given if name in _INTEGRAL), None)
    reading, writing = format_named(source, instruction), format_named(target, instruction)
    if reading.lanes > 1 or writing.lanes > 1 or (integral and "relu" in given):
        raise Unsupported(instruction.name)

    def compute(a: Value) -> Value:
        x = reading.read(a)[0]
        if "ftz" in given and source == "f32":
            x = reading.flush(x)
        if integral:
            x = integral(x)
        if "sat" in given:
            x = saturated(x)
        if "relu" in given:
            x = rectified(x)
        x = x.astype(np.float64)
        if "ftz" in given and target == "f32":
            (x,) = writing.flush_results([x], mode)
        return writing.write(x, mode)

    return compute


def pack(target: str, source: str, instruction: Instruction) -> Compute:
    """Two f32 in one register, the first in the upper half."""
    given = set(instruction.modifiers[:-2])
    writing = format_named(target, instruction)
    if source != "f32" or given not in ({"rn"}, {"rz"}, {"rn", "relu"}, {"rz", "relu"}):
        raise Unsupported(instruction.name)
    mode = "rn" if "rn" in given else "rz"

    def read(value: Value) -> Array:
        x = floats(value, np.float32).astype(np.float64)
        return rectified(x) if "relu" in given else x

    return lambda a, b: writing.write(read(b), read(a), mode)


def to_tf32(instruction: Instruction) -> Compute:
    """f32 without the 13 last bits of the mantissa: to nearest, ties away (`rna`) or to even, or to zero."""
    given = set(instruction.modifiers[:-2])
    modes = given - {"relu"}
    if (
        instruction.modifiers[-1] != "f32"
        or modes not in ({"rna"}, {"rn"}, {"rz"})
        or given == {"rna", "relu"}
    ):
        raise Unsupported(instruction.name)

    def compute(a: Value) -> Int:
        x = floats(a, np.float32)
        bits = x.view(np.uint32).astype(np.int64)
        if "rna" in modes:
            bits = bits + 0x1000
        elif "rn" in modes:
            bits = bits + 0xFFF + ((bits >> 13) & 1)
        bits = np.where(np.isnan(x), 0x7FFFFFFF, bits & ~0x1FFF)
        return fit(from_array(np.where(x <= 0, 0, bits) if "relu" in given else bits), 32)

    return compute
