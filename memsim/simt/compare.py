"""Comparisons and selections: `setp set selp slct`.

In: register values (values.py). Out: predicates or values; decided by bounds where they suffice.
Source of what each instruction means: PTX ISA, "Comparison and Selection Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction, Pair
from memsim.simt.formats import float_format, format_named
from memsim.simt.integers import readings
from memsim.simt.logic import differ
from memsim.simt.registry import (
    FLOATS,
    INTEGERS,
    Compute,
    Unsupported,
    alu,
    integer_type,
    options,
    scalar_type,
)
from memsim.state.registers import (
    Part,
    both,
    bounds,
    choose,
    either,
    fit,
    from_bools,
    ints,
    invert,
    poisoned,
    predicate,
    to_array,
)
from memsim.state.rounding import Array
from memsim.state.sums import minus, non_negative, or_ints, shift_left

Value = Any
Predicate = bool | Part

_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_JOIN: dict[str, Callable[[Predicate, Predicate], Predicate]] = {"and": both, "or": either, "xor": differ}


# --- the tests ------------------------------------------------------------------------------


def compare_ints(relation: str, a: Value, b: Value, signed: bool, bits: int) -> Predicate:
    """A comparison of integers; decided by bounds where they do not overlap."""
    x, y = ints(a, bits), ints(b, bits)
    test = _ORDER[relation]
    if not (signed or relation in ("eq", "ne") or (non_negative(x) and non_negative(y))):
        return from_bools(test(*readings(x, y, False, bits)))
    (x_lo, x_hi), (y_lo, y_hi) = bounds(x), bounds(y)
    answers = {test(p, q) for p in (x_lo, x_hi) for q in (y_lo, y_hi)}
    disjoint = x_hi < y_lo or y_hi < x_lo
    exact = x_lo == x_hi and y_lo == y_hi
    ordered = relation not in ("eq", "ne")
    if len(answers) == 1 and (ordered or disjoint or exact):
        return bool(answers.pop())
    if max(map(abs, (x_lo, x_hi, y_lo, y_hi))) >= 1 << 61:
        return from_bools(test(to_array(x), to_array(y)))
    return from_bools(test(to_array(minus(x, y)), 0))


def is_unordered(a: Array, b: Array) -> Array:
    """Is one of the two a NaN?"""
    return np.isnan(a) | np.isnan(b)


def float_test(relation: str, instruction: Instruction) -> Callable[[Array, Array], Array]:
    """A comparison of floats: false where one is NaN, but true in the forms that end in `u`."""
    if relation == "nan":
        return is_unordered
    if relation == "num":
        return lambda a, b: ~is_unordered(a, b)
    test = _ORDER.get(relation[:2])
    if test is None or relation[2:] not in ("", "u"):
        raise Unsupported(instruction.name)
    if relation.endswith("u"):
        return lambda a, b: test(a, b) | is_unordered(a, b)
    if relation == "ne":
        return lambda a, b: test(a, b) & ~is_unordered(a, b)
    return test


def comparison(instruction: Instruction) -> Callable[[Value, Value], list[Predicate]]:
    """The comparison that a `setp` or `set` names: an answer for each number in the registers."""
    relation = instruction.modifiers[0]
    if scalar_type(instruction) in FLOATS:
        test, form = float_test(relation, instruction), float_format(instruction)
        flush = form.flush if "ftz" in instruction.modifiers else (lambda array: array)

        def compare(a: Value, b: Value) -> list[Predicate]:
            pairs = zip(form.read(a), form.read(b))
            return [from_bools(test(flush(x), flush(y))) for x, y in pairs]

        return compare
    signed, bits = integer_type(instruction)
    if "ftz" in instruction.modifiers or (relation in _UNSIGNED and signed):
        raise Unsupported(instruction.name)
    relation = _UNSIGNED.get(relation, relation)
    if relation not in _ORDER or (scalar_type(instruction)[0] == "b" and relation not in ("eq", "ne")):
        raise Unsupported(instruction.name)
    return lambda a, b: [compare_ints(relation, a, b, signed, bits)]


def joining(instruction: Instruction, after: int) -> Callable[[Predicate, Predicate], Predicate] | None:
    """The Boolean operator that joins the answer to a predicate; `after` it come so many types."""
    extra = [name for name in instruction.modifiers[1:-after] if name != "ftz"]
    wanted = 1 if len(instruction.operands) == 4 else 0
    if len(extra) != wanted or not set(extra) <= set(_JOIN):
        raise Unsupported(instruction.name)
    return _JOIN[extra[0]] if extra else None


# --- setp, set ------------------------------------------------------------------------------


@alu("setp", sources=(2, 3), pair=True)
@alu("setp", sources=(2, 3), pair=True, kind="float")
def build_setp(instruction: Instruction) -> Compute:
    test, join = comparison(instruction), joining(instruction, after=1)
    twofold = scalar_type(instruction) in ("f16x2", "bf16x2")
    pair = isinstance(instruction.operands[0], Pair)
    if twofold and not pair:
        raise Unsupported(instruction.name)

    def compute(a: Value, b: Value, c: Value = True) -> Any:
        answers = test(a, b)
        if pair and not twofold:
            answers = [answers[0], invert(answers[0])]
        if join is not None:
            answers = [join(answer, predicate(c)) for answer in answers]
        return tuple(answers) if pair else answers[0]

    return compute


#: The bits of "true" in each type that `set` can write.
_TRUE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "u16": -1, "s16": -1, "u32": -1, "s32": -1}


def set_targets(source: str) -> tuple[str, ...]:
    """The types that `set` can write when it compares numbers of type `source`."""
    if source in ("f16x2", "bf16x2"):
        return source, "u32", "s32"
    short = ("u16", "s16") if source in ("f16", "bf16") else ("f32",)
    return *short, "u32", "s32", "f16", "bf16"


@alu("set", sources=(2, 3))
@alu("set", sources=(2, 3), kind="float")
def build_set(instruction: Instruction) -> Compute:
    if len(instruction.modifiers) < 3:
        raise Unsupported(instruction.name)
    target, source = instruction.modifiers[-2:]
    twofold = source in ("f16x2", "bf16x2")
    if target not in set_targets(source):
        raise Unsupported(instruction.name)
    true = _TRUE[target.removesuffix("x2")]
    if twofold and target != source:
        true = 0xFFFF
    test, join = comparison(instruction), joining(instruction, after=2)

    def compute(a: Value, b: Value, c: Value = True) -> Value:
        answers = test(a, b)
        if join is not None:
            answers = [join(answer, predicate(c)) for answer in answers]
        low, *high = (choose(answer, true, 0) for answer in answers)
        return fit(or_ints(low, shift_left(high[0], 16, 64)), 32) if high else low

    return compute


# --- selp, slct -----------------------------------------------------------------------------


@alu("selp", sources=3)
@alu("selp", sources=3, kind="float")
def build_selp(instruction: Instruction) -> Compute:
    options(instruction)
    return lambda a, b, p: choose(predicate(p), number(a), number(b))


def number(value: Value) -> Value:
    """Any value that is no predicate.

    Raises:
        Poisoned: it is one.
    """
    if isinstance(value, (bool, Part)):
        raise poisoned(value)
    return value


@alu("slct", sources=3)
@alu("slct", sources=3, kind="float")
def build_slct(instruction: Instruction) -> Compute:
    *flush, chosen, kind = instruction.modifiers if len(instruction.modifiers) > 1 else ("", "")
    if chosen not in {*INTEGERS, "f32", "f64"} or flush not in ([], ["ftz"]):
        raise Unsupported(instruction.name)
    if kind == "s32" and not flush:
        return lambda a, b, c: choose(compare_ints("ge", c, 0, True, 32), number(a), number(b))
    if kind != "f32":
        raise Unsupported(instruction.name)
    form = format_named("f32", instruction)

    def compute(a: Value, b: Value, c: Value) -> Value:
        tested = form.flush(form.read(c)[0]) if flush else form.read(c)[0]
        return choose(from_bools(tested >= 0), number(a), number(b))

    return compute
