"""Nested tuples of integers, as CuTe's shapes, strides and coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from memsim.errors import MemsimError

Nested: TypeAlias = "int | tuple[Nested, ...]"


def nested(value: Any, what: str) -> Nested:
    """A checked copy: sequences become tuples, numpy integers ints.

    Raises:
        MemsimError: an element is neither an integer nor a sequence.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(nested(item, what) for item in value)
    raise MemsimError(f"a {what} consists of integers, unlike {value!r}")


def leaves(value: Nested) -> Iterator[int]:
    """Its integers from left to right."""
    if isinstance(value, int):
        yield value
    else:
        for item in value:
            yield from leaves(item)


def size(shape: Nested) -> int:
    """The product of its integers."""
    return prod(leaves(shape))


def congruent(left: Nested, right: Nested) -> bool:
    """Whether both have the same nesting."""
    if isinstance(left, int) or isinstance(right, int):
        return isinstance(left, int) and isinstance(right, int)
    return len(left) == len(right) and all(map(congruent, left, right))


def like(shape: Nested, values: Iterator[int]) -> Nested:
    """The values in turn, nested as `shape`."""
    if isinstance(shape, int):
        return next(values)
    return tuple(like(item, values) for item in shape)


def text(value: Nested) -> str:
    """`(8,(2,4))`, as CuTe prints it."""
    if isinstance(value, int):
        return str(value)
    return f"({','.join(map(text, value))})"
