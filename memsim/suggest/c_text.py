"""C expressions as an edit writes them: parentheses where they are needed, numbers folded."""

from __future__ import annotations

import re

from memsim.source.text import split
from memsim.source.values import value_of

# Expressions that need no parentheses in a sum.
_ARITHMETIC = re.compile(r"[\w\s*+()/%-]+")
_PLUS_NUMBER = re.compile(r"(.*[\w)])\s*\+\s*(\d+)", re.DOTALL)
#: Expressions with side effects can neither be duplicated nor moved.
EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")
_NAME = re.compile(r"\bblockDim\s*\.\s*[xyz]|(?<![\w.])[A-Za-z_]\w*")


def names_in(*expressions: str) -> list[str]:
    """The identifiers in expressions, and `blockDim.x`, each once, in order."""
    found = (re.sub(r"\s", "", name) for each in expressions for name in _NAME.findall(each))
    return list(dict.fromkeys(found))


def term(expression: str) -> str:
    """The expression as a term of a sum."""
    return expression if _ARITHMETIC.fullmatch(expression) else f"({expression})"


def factor(expression: str) -> str:
    """The expression as an operand of any operator."""
    return expression if re.fullmatch(r"[\w.]+", expression) else f"({expression})"


def folded(expression: str) -> str:
    """Its number if it has no names in it, else itself."""
    value = None if names_in(expression) else value_of(expression, {})
    return expression if value is None else str(value)


def plus(expression: str, added: int) -> str:
    """`N + 1`, and `N + 2` of `N+1`; `32 + 1` shows what was added."""
    ending = _PLUS_NUMBER.fullmatch(expression) if _ARITHMETIC.fullmatch(expression) else None
    if ending is not None and names_in(ending[1]) and ending[1].count("(") == ending[1].count(")"):
        return f"{ending[1]} + {int(ending[2]) + added}"
    return f"{term(expression)} + {added}"


def spread(index: str, every: int | str, by: int) -> str:
    """`i + i / every * by`: `by` unused elements after every `every`."""
    skipped = f"{factor(index)} / {every}" + (f" * {by}" if by > 1 else "")
    return folded(f"{term(index)} + {skipped}")


def xored(index: str, bits: str) -> str:
    """`index ^ bits`."""
    bits, index = folded(bits), folded(index)
    if "0" in (bits, index):
        return bits if index == "0" else index
    return folded(f"{factor(index)} ^ {factor(bits)}")


def factors(expression: str) -> list[str]:
    """`N`, `4`, `(M + 1)` of `N * 4 * (M + 1)`; the expression alone if it is no product."""
    parts = [part.strip() for part in _split(expression)]
    plain = all(re.fullmatch(r"\w+|\(.*\)", part, re.DOTALL) for part in parts)
    return parts if plain else [expression.strip()]


def _split(expression: str) -> list[str]:
    return split(expression.replace(",", "\0").replace("*", ","), "([{", ")]}")
