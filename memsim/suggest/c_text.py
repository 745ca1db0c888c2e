"""C expressions, as sources have them and as edits write them: parentheses where they are needed, numbers
folded; what indices are made of, and how far apart two of them are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from memsim.source.expressions import evaluate, open_names
from memsim.source.text import split_at_commas
from memsim.source.values import value_of

# Expressions that need no parentheses in a sum.
_ARITHMETIC = re.compile(r"[\w\s*+()/%-]+")
_PLUS_NUMBER = re.compile(r"(.*[\w)])\s*\+\s*(\d+)", re.DOTALL)
#: Expressions with side effects can neither be duplicated nor moved.
EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*\b")
DEPTH = 8  # of variables that are made of others
_NAME = re.compile(r"\bblockDim\s*\.\s*[xyz]|(?<![\w.])[A-Za-z_]\w*")


def names_in(*expressions: str) -> list[str]:
    """The identifiers in expressions, and `blockDim.x`, each once, in order."""
    found = (re.sub(r"\s", "", name) for each in expressions for name in _NAME.findall(each))
    return list(dict.fromkeys(found))


def index_in(access: str) -> str:
    """`i + 1` of `a[i + 1]`."""
    return access[access.index("[") + 1 : access.rindex("]")].strip()


def term(expression: str) -> str:
    """The expression as a term of a sum."""
    return expression if _ARITHMETIC.fullmatch(expression) else f"({expression})"


def factor(expression: str) -> str:
    """The expression as an operand of any operator."""
    return expression if re.fullmatch(r"[\w.]+", expression) else f"({expression})"


def fold_constants(expression: str) -> str:
    """Its number if it has no names in it, else itself."""
    value = None if names_in(expression) else value_of(expression, {})
    return expression if value is None else str(value)


def plus(expression: str, added: int) -> str:
    """`N + 1`, and `N + 2` of `N+1`; `32 + 1` shows what was added."""
    ending = _PLUS_NUMBER.fullmatch(expression) if _ARITHMETIC.fullmatch(expression) else None
    if ending is not None and names_in(ending[1]) and ending[1].count("(") == ending[1].count(")"):
        return f"{ending[1]} + {int(ending[2]) + added}"
    return f"{term(expression)} + {added}"


def padded_index(index: str, every: int | str, by: int) -> str:
    """`i + i / every * by`: `by` unused elements after every `every`."""
    skipped = f"{factor(index)} / {every}" + (f" * {by}" if by > 1 else "")
    return fold_constants(f"{term(index)} + {skipped}")


def xored_index(index: str, bits: str) -> str:
    """`index ^ bits`."""
    bits, index = fold_constants(bits), fold_constants(index)
    if "0" in (bits, index):
        return bits if index == "0" else index
    return fold_constants(f"{factor(index)} ^ {factor(bits)}")


def factors(expression: str) -> list[str]:
    """`N`, `4`, `(M + 1)` of `N * 4 * (M + 1)`; the expression alone if it is no product."""
    parts = split_at_commas(expression.replace(",", "\0").replace("*", ","), "([{", ")]}")
    parts = [part.strip() for part in parts]
    plain = all(re.fullmatch(r"\w+|\(.*\)", part, re.DOTALL) for part in parts)
    return parts if plain else [expression.strip()]


def substitute_variables(expression: str, values: Mapping[str, str], depth: int = DEPTH) -> str:
    """An expression with what variables stand for in their place, which may have such in it, too."""
    for _ in range(depth):
        if not any(name in values for name in NAME.findall(expression)):
            break
        expression = NAME.sub(lambda one: factor(values[one[0]]) if one[0] in values else one[0], expression)
    return expression


def distance(one: str, two: str) -> int | None:
    """How much larger an index is than another, whatever the names in both are; None if that differs."""
    if one == two:
        return 0
    one, two = (re.sub(r"\b(\w+)\s*(?:\.|->)\s*(\w+)", r"\1_\2", text) for text in (one, two))
    names = [open_names(text, {}) for text in (one, two)]
    if names[0] is None or names[1] is None:
        return None
    draw, found = random.Random(1), set()
    for _ in range(3):
        known = {name: draw.randrange(3, 500) for name in {*names[0], *names[1]}}
        values = [evaluate(text, known) for text in (one, two)]
        if values[0] is None or values[1] is None:
            return None
        found.add(values[1] - values[0])
    step = found.pop()
    return int(step) if not found and step == int(step) else None
