"""Declarations in CUDA source: names of kernel parameters, shapes of shared arrays, templates.

PTX numbers parameters; people know them as `A`, `B` and `C`. PTX has an array's size but not its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from memsim.source.expressions import ELEMENT_BYTES
from memsim.source.syntax import one_branch
from memsim.source.values import constants, split, value_of


def parameters(text: str, kernel: str, instance: str = "") -> tuple[tuple[str, str], ...]:
    """(C type, name) of the parameters of `kernel` (plain or mangled) in its definition, such as
    (`const float *`, `A`); () if not found.

    instance: the demangled name of a template's instance, `tile<float, 32>`: its arguments are substituted.
    """
    code = one_branch(text)
    for match in re.finditer(r"__global__\b[^;{}]*?\b(\w+)\s*\(", code):
        name, start = match.group(1), match.end()
        while re.fullmatch(r"__\w+__", name):  # __launch_bounds__(128), __cluster_dims__(2)
            behind = re.compile(r"\b(\w+)\s*\(").search(code, closing(code, start))
            if behind is None:
                break
            name, start = behind.group(1), behind.end()
        if name == kernel or f"{len(name)}{name}" in kernel:
            given = template_arguments(text, instance)
            parts = filter(str.strip, split(code[start : closing(code, start) - 1]))
            return tuple((_type(part, given), _last_name(part)) for part in parts)
    return ()


def closing(text: str, start: int, opened: str = "(") -> int:
    """Index after the parenthesis, or other bracket, that closes the one before `start`."""
    closed, depth = {"(": ")", "{": "}"}[opened], 1
    for index in range(start, len(text)):
        depth += (text[index] == opened) - (text[index] == closed)
        if depth == 0:
            return index + 1
    return len(text)


def _type(declaration: str, given: Mapping[str, str]) -> str:
    """`const T *__restrict__ A` -> `const float *`, where `float` is given for `T`."""
    declared, _, extents = declaration.split("=")[0].partition("[")
    kept = re.sub(r"\b(?:__restrict__|__restrict|__grid_constant__)\b", " ", declared)
    kind = kept[: kept.rfind(_last_name(declaration))] + ("*" if extents else "")
    kind = re.sub(r"\s*\*\s*", " *", re.sub(r"\s+", " ", kind).strip()).replace("* *", "**")
    return re.sub(r"\w+", lambda word: given.get(word[0], word[0]), kind)


def _last_name(declaration: str) -> str:
    """`const float *__restrict__ A` -> `A`."""
    names = re.findall(r"\w+", declaration.split("=")[0].split("[")[0])
    return names[-1] if names else ""


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


def template_constants(text: str, kernel: str) -> dict[str, int]:
    """The values of the integer parameters, by name, of a template instance."""
    values = template_arguments(text, kernel)
    return {name: int(value) for name, value in values.items() if re.fullmatch(r"\d+", value)}


def template_arguments(text: str, kernel: str) -> dict[str, str]:
    """The template arguments, by parameter name, of an instance.

    `kernel`: as demangled, `tile<float, 32>`; {} unless it is an instance of a template of the source.
    """
    plain, _, inside = kernel.partition("<")
    if not inside:
        return {}
    arguments = split(inside[: inside.rfind(">")])
    head = re.search(
        rf"\btemplate\s*<([^;{{}}]*?)>\s*(?:static\s+|inline\s+)*__global__\b[^;{{}}]*\b{re.escape(plain)}\s*\(",
        without_comments(text),
    )
    if head is None:
        return {}
    names = [_last_name(parameter) for parameter in split(head[1])]
    return {name: argument.strip() for name, argument in zip(names, arguments)}


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


def without_comments(text: str) -> str:
    """The text with comments replaced by blanks, so that positions stay valid."""
    return re.sub(
        r"//[^\n]*|/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.DOTALL
    )
