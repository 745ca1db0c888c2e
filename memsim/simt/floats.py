"""Float instructions in f16, f32, f64, packed f16x2 and bf16.

In: register values (values.py). Out: register values, rounded to nearest as the hardware
rounds. `fma.rn.f32` rounds once. Where PTX asks for an approximation (`.approx`, `.full`,
`ex2`, `sin`, ...) the correctly rounded result is given, which the chip's may miss by the few
ulp that the PTX ISA allows. Other rounding modes are not executed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.registry import Builder, Compute, Unsupported, alu, scalar_type
from memsim.simt.values import Part, floats, from_array, from_bools, ints, to_array

Value = Any
Array = np.ndarray

#: Float forms of opcodes that integers have too; integers.py asks here first.
FLOAT_BUILDERS: dict[str, Builder] = {}

DTYPES: dict[str, type] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def shared_opcode(*opcodes: str) -> Callable[[Builder], Builder]:
    """Register the float form of an opcode that integers have too."""

    def register(builder: Builder) -> Builder:
        for opcode in opcodes:
            FLOAT_BUILDERS[opcode] = builder
        return builder

    return register


# --- packing --------------------------------------------------------------------------------


def unpack_half2(value: Value) -> tuple[Array, Array]:
    """A 32-bit register as two f16 arrays, low half first."""
    bits = to_array(ints(value, 32))
    return tuple((bits >> shift).astype(np.int16).view(np.float16) for shift in (0, 16))  # type: ignore[return-value]


def pack_half2(low: Array, high: Array) -> Value:
    """Two f16 arrays as one 32-bit register."""
    parts = [np.ascontiguousarray(half).view(np.uint16).astype(np.int64) for half in (low, high)]
    return from_array((parts[0] | (parts[1] << 16)).astype(np.int32).astype(np.int64))


def from_bf16(value: Value) -> Array:
    """A 16-bit register of bf16 as f32."""
    return (to_array(ints(value, 16)) << 16).astype(np.int32).view(np.float32)


def to_bf16(array: Array) -> Value:
    """f32 rounded to bf16 (nearest, ties to even), as a 16-bit register."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.int64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    rounded = np.where(np.isnan(array), 0x7FFF, rounded)
    return from_array(rounded.astype(np.int16).astype(np.int64))


# --- the plain operations -------------------------------------------------------------------


def flush(array: Array) -> Array:
    """Subnormal f32 numbers become zero of the same sign."""
    small = np.abs(array) < np.finfo(np.float32).tiny
    return np.where(small, np.copysign(np.float32(0), array), array)


def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f32 with one rounding.

    The product is exact in f64; the f64 sum is right except where it lands on, or is pushed
    onto, the middle between two f32 numbers. Those few are rounded to odd first.
    """
    product = a.astype(np.float64) * b
    total = product + c
    middle = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    middle |= np.abs(total) < np.finfo(np.float32).tiny
    if middle.any():
        total = round_to_odd(product, np.broadcast_to(c.astype(np.float64), total.shape), total)
    return total.astype(np.float32)


def round_to_odd(x: Array, y: Array, total: Array) -> Array:
    """x + y in f64, rounded so that a later rounding to f32 is right (Boldo and Melquiond, 2008)."""
    back = total - x
    error = (x - (total - back)) + (y - back)
    bits = total.view(np.int64)
    fix = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    return np.where(fix, np.where(outward, bits + 1, bits - 1), bits).view(np.float64)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in the operands' type."""
    if a.dtype == np.float32:
        return fma32(a, b, c)
    if a.dtype == np.float16:
        return (a.astype(np.float64) * b + c).astype(np.float16)
    return fma64(a, b, c)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """a * b + c in f64 by error-free products and sums (Dekker); the last bit may be off by a tie."""

    def split(x: Array) -> tuple[Array, Array]:
        big = x * 134217729.0
        high = big - (big - x)
        return high, x - high

    product = a * b
    (a_hi, a_lo), (b_hi, b_lo) = split(a), split(b)
    low = ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    exact = total + (error + low)
    return np.where(np.isfinite(exact), exact, total)


def lower(a: Array, b: Array) -> Array:
    """IEEE minimumNumber: the number where the other is NaN; -0 below +0."""
    picked = np.fmin(a, b)
    return np.where((a == b) & np.signbit(a), a, picked)


def higher(a: Array, b: Array) -> Array:
    """IEEE maximumNumber: the number where the other is NaN; +0 above -0."""
    picked = np.fmax(a, b)
    return np.where((a == b) & ~np.signbit(a), a, picked)


OPERATIONS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": fma,
    "mad": fma,
    "div": np.divide,
    "neg": np.negative,
    "abs": np.abs,
    "min": lower,
    "max": higher,
    "sqrt": np.sqrt,
    "copysign": lambda a, b: np.copysign(b, a),
    "rcp": lambda a: (1.0 / a.astype(np.float64)).astype(a.dtype),
    "rsqrt": lambda a: (1.0 / np.sqrt(a.astype(np.float64))).astype(a.dtype),
    "ex2": lambda a: np.exp2(a.astype(np.float64)).astype(a.dtype),
    "lg2": lambda a: np.log2(a.astype(np.float64)).astype(a.dtype),
    "sin": lambda a: np.sin(a.astype(np.float64)).astype(a.dtype),
    "cos": lambda a: np.cos(a.astype(np.float64)).astype(a.dtype),
    "tanh": lambda a: np.tanh(a.astype(np.float64)).astype(a.dtype),
}

_KNOWN = {"rn", "approx", "full", "ftz", "sat", "relu", "NaN"}


@shared_opcode("add", "sub", "mul", "mad", "div", "neg", "abs", "min", "max")
@alu("fma", "sqrt", "copysign", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def build_operation(instruction: Instruction) -> Compute:
    operation, kind = OPERATIONS[instruction.opcode], scalar_type(instruction)
    options = set(instruction.modifiers[:-1])
    if not options <= _KNOWN or {"relu", "NaN"} & options:
        raise Unsupported(instruction.name)
    ftz, sat = "ftz" in options, "sat" in options

    def finish(result: Array) -> Array:
        if ftz and result.dtype == np.float32:
            result = flush(result)
        return np.clip(np.nan_to_num(result, nan=0.0), 0, 1) if sat else result

    if kind == "f16x2":

        def compute_pair(*sources: Value) -> Value:
            halves = [unpack_half2(source) for source in sources]
            return pack_half2(*(finish(operation(*(half[i] for half in halves))) for i in (0, 1)))

        return compute_pair
    if kind == "bf16":
        return lambda *sources: to_bf16(finish(operation(*(from_bf16(s) for s in sources))))
    if kind not in DTYPES:
        raise Unsupported(instruction.name)
    dtype = DTYPES[kind]
    if not ftz and not sat:
        return lambda *sources: operation(*(floats(s, dtype) for s in sources))

    def compute(*sources: Value) -> Value:
        arrays = [floats(s, dtype) for s in sources]
        return finish(operation(*(map(flush, arrays) if ftz and dtype is np.float32 else arrays)))

    return compute


@alu("testp")
def build_testp(instruction: Instruction) -> Compute:
    kind, name = instruction.modifiers[0], scalar_type(instruction)
    if name not in DTYPES:
        raise Unsupported(instruction.name)
    dtype = DTYPES[name]
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(dtype).tiny),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < np.finfo(dtype).tiny),
    }
    test = tests[kind]
    return lambda a: from_bools(test(floats(a, dtype)))


_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b)),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}


def float_compare(relation: str, kind: str, ftz: bool) -> Callable[[Value, Value], bool | Part]:
    """The test that a float comparison names; the `u` forms are true where an operand is NaN."""
    if kind not in DTYPES:
        raise Unsupported(f"compare.{kind}")
    dtype = DTYPES[kind]
    if relation in _ORDERED:
        test = _ORDERED[relation]
    elif relation == "nan":
        test = lambda a, b: np.isnan(a) | np.isnan(b)  # noqa: E731
    elif relation[:-1] in _ORDERED and relation.endswith("u"):
        base = _ORDERED[relation[:-1]]
        test = lambda a, b: base(a, b) | np.isnan(a) | np.isnan(b)  # noqa: E731
    else:
        raise Unsupported(f"compare.{relation}.{kind}")

    def compare(a: Value, b: Value) -> bool | Part:
        x, y = floats(a, dtype), floats(b, dtype)
        return from_bools(test(flush(x), flush(y)) if ftz and dtype is np.float32 else test(x, y))

    return compare
