"""Declarations in CUDA source: constants, and shapes of shared arrays, of which machine code has the size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.text import without_comments
from memsim.source.values import constants, value_of


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """A declared array: its extents, and bytes per element."""

    extents: tuple[int, ...]
    element: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration of an array in a text. Spans are (start, end) in the text.

    name: span of its name; extents: of each extent, without the brackets; scope: from there to the end of the
    enclosing block. dynamic: its only extent is left to the launch.
    """

    shape: ArrayShape
    name: tuple[int, int]
    extents: tuple[tuple[int, int], ...]
    scope: tuple[int, int]

    @property
    def dynamic(self) -> bool:
        start, end = self.extents[0]
        return start == end


def array_shape(text: str, name: str, size: int, also: Mapping[str, int] | None = None) -> ArrayShape | None:
    """How the source declares the shared array `name` of `size` bytes, such as `float s_a[BK][BM + 4]`.

    Extents are numbers, constants of the source (`constexpr`, `const`, `#define`) and arithmetic on both.
    `also`: other constants by name, such as template parameters or macros of the command line. If the element
    type is unknown (a template parameter), its size is derived from `size`. None if there is no such
    declaration, if an extent is unknown or left to the launch (`extern __shared__ float s[]`), or if the size
    differs.
    """
    found = next(declarations(text, name, size, also), None)
    return None if found is None or found.dynamic else found.shape


def declarations(
    text: str, name: str, size: int, also: Mapping[str, int] | None = None
) -> Iterator[Declaration]:
    """All declarations of the shared array `name` of `size` bytes; as `array_shape`."""
    code = without_comments(text)
    known = {**constants(code), **(also or {})}
    for match in re.finditer(
        rf"__shared__\b([^;()]*(?:\([^;()]*\)[^;()]*)?)\b({re.escape(name)})\s*((?:\[[^][]*\])+)", code
    ):
        types = [word for word in re.findall(r"\w+", match[1]) if word in ELEMENT_BYTES]
        element = ELEMENT_BYTES[types[-1]] if types else 0  # `unsigned char` is a char
        first = match.start(3)
        spans = [(first + m.start(1), first + m.end(1)) for m in re.finditer(r"\[([^][]*)\]", match[3])]
        values = [value_of(code[start:end], known) for start, end in spans]
        extents = tuple(value for value in values if value is not None)
        if len(spans) == 1 and spans[0][0] == spans[0][1] and element:
            extents = (size // element,)
        count: int = prod(extents)
        if not types and count and size % count == 0:
            element = size // count
        sizes = ELEMENT_BYTES.values()
        if len(extents) == len(spans) and count * element == size and element in sizes:
            scope = match.start(2), _end_of_block(code, match.end())
            yield Declaration(ArrayShape(extents, element), match.span(2), tuple(spans), scope)


def _end_of_block(code: str, start: int) -> int:
    """The end of the block that contains `start`; the end of the text outside of all blocks."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return brace.start()
    return len(code)


def definition(text: str, name: str) -> tuple[int, int] | None:
    """The span of the value of the constant `name`; None unless it is defined exactly once."""
    code = without_comments(text)
    escaped = re.escape(name)
    macros = re.finditer(rf"^[ \t]*#[ \t]*define[ \t]+{escaped}[ \t]+(\S[^\n]*?)[ \t]*$", code, re.MULTILINE)
    declared = re.finditer(
        rf"\b(?:constexpr|const)\b[^;{{}}()]*?\b{escaped}\s*=\s*([^;,{{}}()]*(?:\([^;{{}}]*?\))?[^;,{{}}()]*?)\s*[;,]",
        code,
    )
    spans = [match.span(1) for match in (*macros, *declared)]
    return spans[0] if len(spans) == 1 else None
