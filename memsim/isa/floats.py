"""Arithmetic of float32, `FADD FMUL FFMA FMNMX FSETP FSET FCHK`, and of float64 on register pairs, `DADD DMUL
DFMA DSETP DMNMX`. NaN payloads are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from memsim.isa.comparisons import COMBINE, Combined
from memsim.isa.definitions import BoundForm, Compute, Results, define, executes
from memsim.isa.number_formats import from_double
from memsim.isa.op import Constant, Form, Operand, Register, Trait, Unsupported, require
from memsim.isa.readers import FloatReader, PredicateReader, Registers
from memsim.state.partial import Value
from memsim.state.parts import Part
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, from_floats
from memsim.state.rounding import (
    Array,
    fma32,
    fma64,
    higher,
    lower,
    narrow,
    odd_sum,
    round_exactly,
    saturate_float,
)

MODES = {"RM": "rm", "RP": "rp", "RZ": "rz"}
#: Modifiers of float32 arithmetic.
ROUNDING = " ".join(("RN", *MODES, "FTZ", "SAT"))
#: What FMUL multiplies by, too.
_SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}
_ALTERS = dict.fromkeys((*MODES, "SAT", *_SCALES), Trait.ALTERS)
TINY = np.float32(2.0**-126)


def mode_of(form: Form) -> str:
    """The rounding mode."""
    return next((MODES[name] for name in form.modifiers if name in MODES), "rn")


def flush_singles(array: Array) -> Array:
    """Subnormal numbers flushed to zero, keeping the sign."""
    small = (np.abs(array) < TINY) & (array != 0)
    return np.where(small, np.copysign(np.float32(0), array), array) if small.any() else array


def finish(
    form: Form,
    compute: Callable[..., Array],
    *sources: FloatReader,
    exact: Callable[..., Array] | None = None,
) -> Callable[[Registers], Array]:
    """`compute` with the form's `.FTZ` on inputs and results, and `.SAT`.

    exact: the result in float64, rounded to odd, for operations whose results may be subnormal only before
    rounding: these are flushed if they would be subnormal with unbounded exponents.
    """
    flush, saturate = "FTZ" in form.modifiers, "SAT" in form.modifiers
    if not flush and not saturate:
        if len(sources) == 3:
            a, b, c = sources
            return lambda r: compute(a(r), b(r), c(r))
        if len(sources) == 2:
            a, b = sources
            return lambda r: compute(a(r), b(r))
        return lambda r: compute(*(source(r) for source in sources))

    def run(r: Registers) -> Array:
        values = [flush_singles(source(r)) if flush else source(r) for source in sources]
        found = compute(*values)
        if flush:
            found = flush_singles(found)
            if exact is not None and (np.abs(found) == TINY).any():
                precise = exact(*(value.astype(np.float64) for value in values))
                small = np.abs(narrow(precise / TINY, np.float32, mode_of(form))) < 1
                found = np.where(small, np.copysign(np.float32(0), found), found)
        return saturate_float(found) if saturate else found

    return run


def wide(operation: Callable[..., Array], mode: str) -> Callable[..., Array]:
    """An operation in float64, rounded once in a mode."""
    return lambda *sources: narrow(operation(*(x.astype(np.float64) for x in sources)), np.float32, mode)


define("FADD UFADD", "W P <- FF", ROUNDING)  # not executed


@executes("FADD UFADD", "W <- FF", ROUNDING, traits={"": Trait.SUMS, **_ALTERS})
def add(form: BoundForm, a: FloatReader, b: FloatReader) -> Compute:
    mode = mode_of(form)
    operation = np.add if mode == "rn" else wide(lambda a, b: odd_sum(a, b, mode), mode)
    added = finish(form, operation, a, b)
    return lambda r: from_floats(added(r))


@executes(
    "FMUL UFMUL", "W <- FF", f"{' '.join(_SCALES)} {ROUNDING}", traits={"": Trait.MULTIPLIES, **_ALTERS}
)
def multiply(form: BoundForm, a: FloatReader, b: FloatReader) -> Compute:
    mode = mode_of(form)
    scale = next((_SCALES[name] for name in form.given if name in _SCALES), 1.0)
    if scale != 1.0 or mode != "rn":
        return finish(form, wide(lambda a, b: a * scale * b, mode), a, b, exact=lambda a, b: a * scale * b)
    return finish(form, np.multiply, a, b, exact=np.multiply)


@executes("FFMA UFFMA", "W <- FFF", ROUNDING, traits={"": Trait.FUSES, **_ALTERS})
def multiply_add(form: BoundForm, *sources: FloatReader) -> Compute:
    mode = mode_of(form)
    operation = fma32 if mode == "rn" else wide(lambda a, b, c: odd_sum(a * b, c, mode), mode)
    return finish(form, operation, *sources, exact=lambda a, b, c: odd_sum(a * b, c))


def pick(x: Array, y: Array, least: bool | Part, given: frozenset[str]) -> Array:
    """The minimum or maximum of two numbers; with `.NAN`, NaN if one of them is."""
    if isinstance(least, bool):
        found = lower(x, y) if least else higher(x, y)
    else:
        found = np.where(to_bools(least), lower(x, y), higher(x, y))
    return np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), found) if "NAN" in given else found


def without_absolute(operand: Operand | None) -> Any:
    """An operand without its absolute value, for `.XORSIGN`, which takes the signs from it."""
    return replace(operand, absolute=False) if isinstance(operand, (Register, Constant)) else operand


def with_signs(size: Array, x: Array, y: Array) -> Array:
    """Numbers that are negative where exactly one of x and y is."""
    return np.where(np.signbit(x) ^ np.signbit(y), -size, size)


@executes(
    "FMNMX", "W <- FFP", f"NAN XORSIGN {ROUNDING}", traits={"": Trait.MONOTONE, "XORSIGN": Trait.ALTERS}
)
def min_max(form: BoundForm, a: FloatReader, b: FloatReader, smaller: PredicateReader) -> Compute:
    given = form.given
    signs = [form.binder.single(without_absolute(operand)) for operand in form.sources[:2]]

    def compute(r: Registers) -> Array:
        x, y = a(r), b(r)
        if "FTZ" in given:
            x, y = flush_singles(x), flush_singles(y)
        found = pick(x, y, smaller(r), given)
        return from_floats(with_signs(found, signs[0](r), signs[1](r)) if "XORSIGN" in given else found)

    return compute


_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b),
    "NUM": lambda a, b: ~np.isnan(a) & ~np.isnan(b),
    "NAN": lambda a, b: np.isnan(a) | np.isnan(b),
    "F": lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    "T": lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
}


def comparison_by_name(name: str) -> Callable[[Array, Array], Array]:
    """A comparison by name; with the suffix U it also holds if one side is NaN."""
    if name in _ORDERED:
        return _ORDERED[name]
    if name.endswith("U") and name[:-1] in _ORDERED:
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    raise Unsupported


#: Modifiers of comparisons of floats: which, with the suffix U or not, and how it is combined.
#: Equality is not.
_MONOTONE = dict.fromkeys(("LT", "LE", "GT", "GE", "LTU", "LEU", "GTU", "GEU"), Trait.MONOTONE)
COMPARED = " ".join((*_ORDERED, *(f"{name}U" for name in _ORDERED), *COMBINE, "FTZ"))


@executes("FSETP UFSETP", "PP <- FFP", COMPARED, traits=_MONOTONE)
def comparison(form: BoundForm, x: FloatReader, y: FloatReader, other: PredicateReader) -> Combined:
    """A comparison combined with a predicate, and its inverse."""
    how, *rest = (one for one in form.modifiers if one not in ("FTZ", "BF"))
    name = rest[0] if rest else ""
    require(len(rest) == 1 and name in COMBINE)
    order, flush = comparison_by_name(how), "FTZ" in form.given

    def ordered(r: Registers) -> bool | Part:
        p, q = x(r), y(r)
        return from_bools(order(flush_singles(p), flush_singles(q)) if flush else order(p, q))

    return Combined(name, form, other, ordered)


@executes("FSET", "W <- FFP", f"{COMPARED} BF")
def set_by_comparison(form: BoundForm, a: FloatReader, b: FloatReader, other: PredicateReader) -> Compute:
    """All ones or, with `.BF`, 1.0."""
    compare = comparison(form, a, b, other)
    floats = "BF" in form.given

    def compute(r: Registers) -> Results:
        found = to_bools(compare(r)[0])
        return found.astype(np.float32) if floats else _all_ones(found)

    return compute


def _all_ones(found: np.ndarray) -> Value:
    return from_array(np.where(found, -1, 0).astype(np.int64))


@executes("FCHK", "P <- FF", "DIVIDE")
def check_division(form: BoundForm, a: FloatReader, b: FloatReader) -> Compute:
    """Whether a / b needs the slow path: an exponent so large or small that the fast path loses bits.

    Measured on an H200 for all pairs of exponents and eight pairs of mantissas.
    """

    def compute(r: Registers) -> bool | Part:
        top, bottom = ((value.view(np.int32) >> 23) & 255 for value in (a(r), b(r)))
        difference = top - bottom
        fast = (top >= 25) & (top <= 254) & (bottom >= 2) & (bottom <= 251)
        return from_bools(~(fast & (difference >= -124) & (difference <= 126)))

    return compute


# --- float64 ---------------------------------------------------------------------------------

_NEAREST: dict[str, tuple[str, Callable[..., Array]]] = {
    "DADD": ("add", np.add),
    "DMUL": ("mul", np.multiply),
    "DFMA": ("fma", fma64),
}


@executes("DADD", "D <- GG", " ".join(MODES))
@executes("DMUL", "D <- GG", " ".join(MODES), traits={"": Trait.MULTIPLIES_64})
@executes("DFMA", "D <- GGG", " ".join(MODES), traits={"": Trait.FUSES_64})
def double_arithmetic(form: BoundForm, *reads: FloatReader) -> Compute:
    name, operation = _NEAREST[form.opcode]
    mode = mode_of(form)

    def compute(r: Registers) -> Results:
        values = [read(r) for read in reads]
        found = operation(*values)
        return from_double(found if mode == "rn" else round_exactly(name, mode, found, *values))

    return compute


executes("DSETP", "PP <- GGP", COMPARED.removesuffix(" FTZ"))(comparison)


@executes("DSETP.MAX DSETP.MIN", "PP <- GG P?", None)
def larger_operand(form: BoundForm, a: FloatReader, b: FloatReader, _: object) -> Compute:
    """Whether the maximum or minimum is the first operand; and whether both are NaN."""
    largest = "MAX" in form.given

    def compute(r: Registers) -> Results:
        x, y = np.broadcast_arrays(a(r), b(r))
        picks = (x > y if largest else x < y) | (np.isnan(y) & ~np.isnan(x))
        picks |= (x == y) & (np.signbit(x) != largest)
        return from_bools(picks), from_bools(np.isnan(x) & np.isnan(y))

    return compute


@executes("DMNMX", "D <- GGP")
def min_max_of_doubles(form: BoundForm, a: FloatReader, b: FloatReader, smaller: PredicateReader) -> Compute:
    def compute(r: Registers) -> Results:
        x, y = a(r), b(r)
        return from_double(np.where(to_bools(smaller(r)), lower(x, y), higher(x, y)))

    return compute
