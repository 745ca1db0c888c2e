"""CuTe's notation of layouts, `Sw<3,4,3> o (8,64):(64,1)`, and the nested tuples of integers that it stands
for: shapes, strides and coordinates.

Accepts what CuTe prints (`_8` for a static 8, `smem_ptr[16b](unset)`, after which the swizzle counts bytes)
and the output of `str(layout)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import NoReturn, TypeAlias

import numpy as np

from memsim.errors import MemsimError
from memsim.layout.swizzle import Swizzle

Nested: TypeAlias = "int | tuple[Nested, ...]"


def as_nested(value: object, what: str) -> Nested:
    """A checked copy: sequences become tuples, numpy integers ints.

    Raises:
        MemsimError: an element is neither an integer nor a sequence.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(as_nested(item, what) for item in value)
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


SWIZZLE = re.compile(r"(?:Sw|S|Swizzle)\s*<\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*>")
POINTER = re.compile(r"(?:o\s+)?_?smem_ptr\[(\d{1,3})b\](?:\(\w*\))?")
INTEGER = re.compile(r"_?(-?\d{1,18})(?!\d)")
#: Tuples inside of each other.
DEEPEST = 32
EXAMPLE = "such as (8,64):(64,1) or Sw<3,4,3> o (8,64):(64,1)"


@dataclass
class NotationReader:
    """The rest of a text."""

    text: str
    at: int = 0

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume a pattern if it follows."""
        self.skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take(self, character: str) -> bool:
        """Consume a character if it follows."""
        self.skip()
        there = self.text[self.at : self.at + 1] == character
        self.at += there
        return there

    def skip(self) -> None:
        """Skip spaces."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise that it is not a layout."""
        column = (self.at if at is None else at) + 1
        raise MemsimError(message, file="layout", column=column, source=self.text, hint=EXAMPLE)


def parse(text: str) -> tuple[Nested, Nested, Swizzle | None, int]:
    """CuTe's notation as shape, stride, swizzle and offset.

    Raises:
        MemsimError: not a layout, or one that no array can have.
    """
    reader = NotationReader(text)
    swizzle = _swizzle(reader)
    offset = _offset(reader) if swizzle is not None else 0
    start = reader.at
    shape = _nested(reader)
    if not reader.take(":"):
        reader.fail("a layout is SHAPE:STRIDE; the : after the shape is missing")
    stride = _nested(reader)
    reader.skip()
    if reader.at < len(text):
        reader.fail("unexpected text after the layout")
    if not congruent(shape, stride):
        reader.fail("the strides and the shape are nested differently", start)
    if any(extent < 1 for extent in leaves(shape)):
        reader.fail("an extent must be positive", start)
    return shape, stride, swizzle, offset


def _swizzle(reader: NotationReader) -> Swizzle | None:
    start = reader.at
    found = reader.match(SWIZZLE)
    if found is None:
        return None
    try:
        swizzle = Swizzle(int(found[1]), int(found[2]), int(found[3]))
        pointer = reader.match(POINTER)
        if pointer is not None:
            swizzle = swizzle.of_elements(max(1, int(pointer[1]) // 8))
    except MemsimError as error:
        reader.fail(error.message, start)
    _composed(reader)
    return swizzle


def _offset(reader: NotationReader) -> int:
    """The offset between swizzle and layout, 0 if there is none."""
    start = reader.at
    number = reader.match(INTEGER)
    reader.skip()
    if number is None or reader.text[reader.at : reader.at + 1] != "o":
        reader.at = start
        return 0
    _composed(reader)
    return int(number[1])


def _composed(reader: NotationReader) -> None:
    if not reader.take("o"):
        reader.fail("expected o between the swizzle and the layout")


def _nested(reader: NotationReader, depth: int = 0) -> Nested:
    number = reader.match(INTEGER)
    if number:
        return int(number[1])
    if not reader.take("("):
        reader.fail("expected an integer or (")
    if depth == DEEPEST:
        reader.fail(f"tuples are nested more than {DEEPEST} deep")
    items = [_nested(reader, depth + 1)]
    while reader.take(","):
        items.append(_nested(reader, depth + 1))
    if not reader.take(")"):
        reader.fail("expected , or )")
    return tuple(items)
