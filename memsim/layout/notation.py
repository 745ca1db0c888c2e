"""CuTe's notation of layouts: `Sw<3,4,3> o (8,64):(64,1)`.

In: a text. Out: what it says, or an error with a caret. Read are what CuTe prints (`_8` for a static 8,
`smem_ptr[16b](unset)`, after which the swizzle counts bytes) and what `str(layout)` gives.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from memsim.errors import MemsimError
from memsim.layout.nested import Nested, congruent, leaves
from memsim.layout.swizzle import Swizzle

SWIZZLE = re.compile(r"(?:Sw|S|Swizzle)\s*<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>")
POINTER = re.compile(r"(?:o\s+)?_?smem_ptr\[(\d+)b\](?:\(\w*\))?")
INTEGER = re.compile(r"_?(-?\d+)")
EXAMPLE = "such as (8,64):(64,1) or Sw<3,4,3> o (8,64):(64,1)"


@dataclass
class NotationReader:
    """What is left of a text."""

    text: str
    at: int = 0

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Reads a pattern, if it is there."""
        self.skip()
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take(self, character: str) -> bool:
        """Reads a character, if it is there."""
        self.skip()
        there = self.text[self.at : self.at + 1] == character
        self.at += there
        return there

    def skip(self) -> None:
        """Goes behind spaces."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """It is no layout."""
        column = (self.at if at is None else at) + 1
        raise MemsimError(message, file="layout", column=column, source=self.text, hint=EXAMPLE)


@dataclass(frozen=True, slots=True)
class Notation:
    """What a text says, as `memsim.layout.Layout` takes it."""

    shape: Nested
    stride: Nested
    swizzle: Swizzle | None
    offset: int


def parse(text: str) -> Notation:
    """What a text in CuTe's notation says.

    Raises:
        MemsimError: it is none, or one that no array can have.
    """
    reader = NotationReader(text)
    swizzle = _swizzle(reader)
    offset = _offset(reader) if swizzle is not None else 0
    start = reader.at
    shape = _nested(reader)
    if not reader.take(":"):
        reader.fail("a layout is SHAPE:STRIDE, and there is no : behind the shape")
    stride = _nested(reader)
    reader.skip()
    if reader.at < len(text):
        reader.fail("the layout ends here, and there is more")
    if not congruent(shape, stride):
        reader.fail("the strides are nested otherwise than the shape", start)
    if any(extent < 1 for extent in leaves(shape)):
        reader.fail("an extent is not positive", start)
    return Notation(shape, stride, swizzle, offset)


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
        reader.fail("an o is missing between the swizzle and what it is composed with")


def _nested(reader: NotationReader) -> Nested:
    number = reader.match(INTEGER)
    if number:
        return int(number[1])
    if not reader.take("("):
        reader.fail("an integer or ( is missing")
    items = [_nested(reader)]
    while reader.take(","):
        items.append(_nested(reader))
    if not reader.take(")"):
        reader.fail(", or ) is missing")
    return tuple(items)
