"""Comparisons and selections: `setp`, `set`, `selp`, `slct`.

In: register values (values.py). Out: predicates or values; decided by bounds where they suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from memsim.ptx.program import Instruction, Pair
from memsim.simt.floats import float_compare
from memsim.simt.integers import differ, minus, non_negative, readings
from memsim.simt.registry import Compute, Unsupported, alu, integer_type, is_float, scalar_type
from memsim.simt.values import (
    Part,
    both,
    bounds,
    choose,
    either,
    from_bools,
    ints,
    invert,
    predicate,
    to_array,
)

Value = Any

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare_ints(relation: str, a: Value, b: Value, signed: bool, bits: int) -> bool | Part:
    """A comparison; decided by bounds where they do not overlap."""
    x, y = ints(a, bits), ints(b, bits)
    test = _COMPARE[relation]
    if not (signed or relation in ("eq", "ne") or (non_negative(x) and non_negative(y))):
        return from_bools(test(*readings(x, y, False, bits)))
    (x_lo, x_hi), (y_lo, y_hi) = bounds(x), bounds(y)
    answers = {test(p, q) for p in (x_lo, x_hi) for q in (y_lo, y_hi)}
    disjoint = x_hi < y_lo or y_hi < x_lo
    exact = x_lo == x_hi and y_lo == y_hi
    ordered = relation not in ("eq", "ne")
    if len(answers) == 1 and (ordered or disjoint or exact):
        return bool(answers.pop())
    difference = minus(x, y)
    if max(map(abs, (x_lo, x_hi, y_lo, y_hi))) >= 1 << 61:
        return from_bools(test(to_array(x), to_array(y)))
    return from_bools(test(to_array(difference), 0))


def comparison(instruction: Instruction) -> Callable[[Value, Value], bool | Part]:
    """The test that a `setp`, `set` or `slct` names, for its type."""
    relation = instruction.modifiers[0]
    if is_float(instruction):
        return float_compare(relation, scalar_type(instruction), "ftz" in instruction.modifiers)
    signed, bits = integer_type(instruction)
    signed = signed and relation not in _UNSIGNED_NAMES
    relation = _UNSIGNED_NAMES.get(relation, relation)
    if relation not in _COMPARE:
        raise Unsupported(instruction.name)
    return lambda a, b: compare_ints(relation, a, b, signed, bits)


@alu("setp")
def build_setp(instruction: Instruction) -> Compute:
    test = comparison(instruction)
    joins = {"and": both, "or": either, "xor": differ}
    join = next((joins[name] for name in instruction.modifiers[1:-1] if name in joins), None)

    def compute(a: Value, b: Value, c: Value = True) -> bool | Part:
        answer = test(a, b)
        return answer if join is None else join(answer, predicate(c))

    def compute_pair(a: Value, b: Value, c: Value = True) -> tuple[bool | Part, bool | Part]:
        answer = test(a, b)
        if join is None:
            return answer, invert(answer)
        return join(answer, predicate(c)), join(invert(answer), predicate(c))

    return compute_pair if isinstance(instruction.operands[0], Pair) else compute


@alu("set")
def build_set(instruction: Instruction) -> Compute:
    *head, result, _ = instruction.modifiers
    test = comparison(instruction)
    if {"and", "or", "xor"} & set(head) or result not in ("u32", "s32", "f32"):
        raise Unsupported(instruction.name)
    if result == "f32":
        one, nought = np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
        return lambda a, b: choose(test(a, b), one, nought)
    return lambda a, b: choose(test(a, b), -1, 0)


@alu("selp")
def build_selp(instruction: Instruction) -> Compute:
    if not is_float(instruction):
        integer_type(instruction)
    return lambda a, b, p: choose(predicate(p), a, b)


@alu("slct")
def build_slct(instruction: Instruction) -> Compute:
    if instruction.modifiers[-1] != "s32":
        raise Unsupported(instruction.name)
    return lambda a, b, c: choose(compare_ints("ge", c, 0, True, 32), a, b)
