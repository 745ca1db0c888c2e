"""Indices as the source has them: what they are made of, and how far apart two of them are."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from memsim.source.expressions import evaluate, open_names

NAME = re.compile(r"(?<![\w.])(?<!->)[A-Za-z_]\w*\b")
DEPTH = 8  # of variables that are made of others


def substituted(expression: str, values: Mapping[str, str], depth: int = DEPTH) -> str:
    """An expression with what variables stand for in their place, which may have such in it, too."""
    for _ in range(depth):
        if not any(name in values for name in NAME.findall(expression)):
            break
        expression = NAME.sub(lambda one: _term(values[one[0]]) if one[0] in values else one[0], expression)
    return expression


def _term(value: str) -> str:
    return value if re.fullmatch(r"[\w.]+", value) else f"({value})"


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
