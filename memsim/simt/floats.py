"""Float arithmetic: `add sub mul fma mad div rcp sqrt neg abs min max copysign testp`, and approximations.

In: register values (values.py). Out: register values, rounded as PTX ISA says; f32 and f64 in
every rounding mode. Where PTX asks for an approximation (`.approx`, `.full`, `ex2`, `sin`, ...)
the result is the f64 function rounded to the type: the chip's may differ by the few units in the
last place that the ISA allows. NaNs carry no payload that programs could rely on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.formats import Format, float_format
from memsim.simt.registry import Compute, Unsupported, alu, options
from memsim.state import exact
from memsim.state.fma import fma32, fma64
from memsim.state.order import higher, lower, saturated
from memsim.state.registers import from_bools
from memsim.state.rounding import MODES, Array, odd_sum

Value = Any

# --- arithmetic -----------------------------------------------------------------------------

#: In the operands' own type, f32 or f64, rounded to nearest.
_NATIVE: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": lambda a, b, c: fma32(a, b, c) if a.dtype == np.float32 else fma64(a, b, c),
    "div": np.divide,
    "rcp": lambda a: a.dtype.type(1) / a,
    "sqrt": np.sqrt,
}

#: In f64, for narrower operands: exact, rounded to odd, or so near that one more rounding is right.
_WIDE: dict[str, Callable[..., Array]] = {
    "add": odd_sum,
    "sub": lambda a, b, mode: odd_sum(a, -b, mode),
    "mul": lambda a, b, mode: a * b,
    "fma": lambda a, b, c, mode: odd_sum(a * b, c, mode),
    "div": lambda a, b, mode: a / b,
    "rcp": lambda a, mode: 1.0 / a,
    "sqrt": lambda a, mode: np.sqrt(a),
}


@alu("add", "sub", "mul", "div", sources=2, kind="float")
@alu("fma", "mad", sources=3, kind="float")
@alu("rcp", "sqrt", sources=1, kind="float")
def build_arithmetic(instruction: Instruction) -> Compute:
    given = options(instruction, *MODES, "approx", "full", "ftz", "sat", "relu")
    form = float_format(instruction)
    opcode = "fma" if instruction.opcode == "mad" else instruction.opcode
    modes = given & set(MODES)
    half = form.name not in ("f32", "f64")
    if len(modes) > 1 or (half and (modes - {"rn"} or opcode in ("div", "rcp", "sqrt"))):
        raise Unsupported(instruction.name)
    if given & {"approx", "full"} and (modes or opcode not in ("div", "rcp", "sqrt") or form.name != "f32"):
        raise Unsupported(instruction.name)
    mode = next(iter(modes), "rn")
    if half or (form.name == "f32" and (mode != "rn" or "ftz" in given)):
        return on_lanes(form, given, wide(opcode, mode), mode)
    if mode == "rn":
        return on_lanes(form, given, _NATIVE[opcode])
    return on_lanes(form, given, lambda *x: exact.rounded(opcode, mode, _NATIVE[opcode](*x), *x))


def wide(opcode: str, mode: str) -> Callable[..., Array]:
    """An operation done in f64."""
    operation = _WIDE[opcode]
    return lambda *sources: operation(*(source.astype(np.float64) for source in sources), mode)


def on_lanes(
    form: Format, given: frozenset[str], operation: Callable[..., Array], mode: str = "rn"
) -> Compute:
    """`operation` on each number in the registers, with `.ftz`, `.sat` and `.relu` before and after."""
    if form.lanes == 1 and not given & {"ftz", "sat", "relu"}:
        return lambda *sources: form.write(operation(*(form.read(source)[0] for source in sources)), mode)

    def compute(*sources: Value) -> Value:
        lanes = zip(*(form.read(source) for source in sources))
        results = [operation(*(map(form.flush, lane) if "ftz" in given else lane)) for lane in lanes]
        if "ftz" in given:
            results = form.flush_results(results, mode)
        written = form.write(*results, mode)
        if not given & {"sat", "relu"}:
            return written
        finish = saturated if "sat" in given else rectified
        return form.write(*map(finish, form.read(written)), "rn")

    return compute


def rectified(array: Array) -> Array:
    """Negative numbers and -0 become +0."""
    return np.where(array <= 0, array.dtype.type(0), array)


# --- sign and order -------------------------------------------------------------------------


@alu("neg", "abs", sources=1, kind="float")
def build_sign(instruction: Instruction) -> Compute:
    given = options(instruction, "ftz")
    return on_lanes(float_format(instruction), given, np.negative if instruction.opcode == "neg" else np.abs)


@alu("copysign", sources=2, kind="float")
def build_copysign(instruction: Instruction) -> Compute:
    return on_lanes(float_format(instruction), options(instruction), lambda a, b: np.copysign(b, a))


@alu("min", "max", sources=(2, 3), kind="float")
def build_min_max(instruction: Instruction) -> Compute:
    given = options(instruction, "ftz", "NaN", "xorsign", "abs")
    three = len(instruction.operands) == 4
    if len(given & {"xorsign", "abs"}) == 1 or (
        three and (instruction.modifiers[-1] != "f32" or "abs" in given)
    ):
        raise Unsupported(instruction.name)
    pick = lower if instruction.opcode == "min" else higher

    def pick_two(a: Array, b: Array) -> Array:
        if "abs" not in given:
            found = pick(a, b)
        else:
            size = pick(np.abs(a), np.abs(b))
            found = np.where(np.signbit(a) ^ np.signbit(b), -size, size)
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), found) if "NaN" in given else found

    def pick_all(first: Array, *others: Array) -> Array:
        for other in others:
            first = pick_two(first, other)
        return first

    return on_lanes(float_format(instruction), given, pick_all)


_TESTS: dict[str, Callable[[Array, float], Array]] = {
    "finite": lambda a, tiny: np.isfinite(a),
    "infinite": lambda a, tiny: np.isinf(a),
    "number": lambda a, tiny: ~np.isnan(a),
    "notanumber": lambda a, tiny: np.isnan(a),
    "normal": lambda a, tiny: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
    "subnormal": lambda a, tiny: (a != 0) & (np.abs(a) < tiny),
}


@alu("testp", sources=1, kind="float")
def build_testp(instruction: Instruction) -> Compute:
    form = float_format(instruction)
    if len(instruction.modifiers) != 2 or instruction.modifiers[0] not in _TESTS or form.lanes > 1:
        raise Unsupported(instruction.name)
    test = _TESTS[instruction.modifiers[0]]
    return lambda a: from_bools(test(form.read(a)[0], form.tiny))


# --- approximations -------------------------------------------------------------------------

#: f64 functions, and the types that PTX has the instruction for.
_FUNCTIONS: dict[str, tuple[Callable[[Array], Array], tuple[str, ...]]] = {
    "rsqrt": (lambda a: 1.0 / np.sqrt(a), ("f32", "f64")),
    "sin": (np.sin, ("f32",)),
    "cos": (np.cos, ("f32",)),
    "lg2": (np.log2, ("f32",)),
    "ex2": (np.exp2, ("f32", "f16", "f16x2", "bf16", "bf16x2")),
    "tanh": (np.tanh, ("f32", "f16", "f16x2", "bf16", "bf16x2")),
}


@alu("rsqrt", "sin", "cos", "lg2", "ex2", "tanh", sources=1, kind="float")
def build_function(instruction: Instruction) -> Compute:
    given = options(instruction, "approx", "ftz")
    function, types = _FUNCTIONS[instruction.opcode]
    form = float_format(instruction)
    if form.name not in types or "approx" not in given or (form.name == "f64" and "ftz" in given):
        raise Unsupported(instruction.name)
    return on_lanes(form, given, lambda a: function(a.astype(np.float64)))
