"""Padding of an array that functions are given: a class between them and its bytes.

`T *s = (T *)memory; f(s, n);` becomes `const padded_elements<T> s = {(T *)memory};`, and beside each function
that is given `s` stands another one that takes such elements. Those for plain pointers stay as they are, as
other kernels, and other arrays, have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memsim.source.text import bracket_end, split_at_commas, without_comments
from memsim.suggest.edit import Replacement
from memsim.suggest.maps import Padding

PREFIX = "padded_elements"
TEXT = """\
// Elements of shared memory with {by} unused bytes after every {every}: so that other banks have them.
template <typename T> struct padded_elements {{
    T *first;
    __device__ __forceinline__ T &operator[](size_t at) const {{
        return *(T *)((char *)(first + at) + at * sizeof(T) / {every} * {by});
    }}
}};
"""
_CALL = re.compile(r"\b(\w+)\s*(?:<[^;(){}]*>)?\s*\(")
_FUNCTION = re.compile(
    r"(?:^|(?<=[;}]))(?P<head>(?:[^;{}#]|\n[ \t]*#[^\n]*\n)*?\b__device__\b[^;{}]*?\b(?P<name>\w+)\s*)\("
)
_POINTER = re.compile(
    r"\s*(?:const\s+)?(?P<type>[\w:]+)\s*\*\s*(?:(?:const|__restrict__)\s+)*(?P<name>\w+)\s*"
)


@dataclass(frozen=True, slots=True)
class Accessor:
    """How an array is declared in the kernel: what of the text is the declaration, and the type of elements.

    functions: those that are given it, with such elements in place of the pointer.
    """

    declared: tuple[int, int]
    name: str
    type: str
    functions: tuple[str, ...]
    head: int

    def replacements(self, array: str, change: Padding) -> list[Replacement]:
        """The edit, except for room for the padding."""
        text = TEXT.format(every=change.every, by=change.by) + "".join(f"{one}\n" for one in self.functions)
        new = f"const {PREFIX}<{self.type}> {self.name} = {{({self.type} *){array}}};"
        return [Replacement(self.head, self.head, f"{text}\n"), Replacement(*self.declared, new)]


def accessor(
    code: str,
    body: tuple[int, int],
    array: str,
    sources: Mapping[str, str],
    lines: frozenset[tuple[str, int]],
) -> Accessor | None:
    """Of a dynamic array that a kernel has one pointer to; None unless each use is an index or an argument.

    code: of the kernel's file, without comments; body: the kernel's. lines: with accesses to the array.
    """
    pointer = re.compile(
        rf"(?P<type>\b[\w:]+)\s*\*\s*(?P<name>\w+)\s*=\s*\(\s*(?P=type)\s*\*\s*\)\s*{array}\s*;"
    )
    found = list(pointer.finditer(code, *body))
    if len(found) != 1 or PREFIX in code or len(re.findall(rf"\b{array}\b", code[slice(*body)])) > 2:
        return None
    functions = _Functions(sources, lines)
    if not functions.follows(code[found[0].end() : body[1]], found[0]["name"]) or not functions.copies:
        return None
    start = max(code.rfind(mark, 0, code.rfind("__global__", 0, body[0])) for mark in ";}")
    head = code.find("\n", code.rfind("\n", 0, start + 1) + 1) + 1
    return Accessor(
        found[0].span(), found[0]["name"], found[0]["type"], tuple(functions.copies.values()), head
    )


class _Functions:
    """Of sources. lines: that access an array; copies: those that take its elements, the inner ones first."""

    def __init__(self, sources: Mapping[str, str], lines: frozenset[tuple[str, int]]) -> None:
        self.copies: dict[str, str] = {}
        self._followed = set[str]()
        self._known: list[tuple[str, str, bool]] = []
        for file, text in sources.items():
            code = without_comments(text)
            for found in _FUNCTION.finditer(code):
                end = _end(code, found.end())
                own = range(code.count("\n", 0, found.end()) + 1, code.count("\n", 0, end) + 2)
                accesses = any(of == file and line in own for of, line in lines)
                start = found.end("head") - len(found["head"].lstrip())
                if end:
                    self._known.append((found["name"], text[start:end], accesses))

    def follows(self, code: str, name: str) -> bool:
        """Whether each use of a pointer is an index, or an argument of functions, which are copied."""
        if re.search(rf"[,(=]\s*&\s*{name}\b", code):
            return False  # an address that is not used as it is: what is behind it may be apart
        uses = len(re.findall(rf"(?<![\w.>]){name}\b", code))
        seen = len(re.findall(rf"(?<![\w.>]){name}\s*\[", code))
        for call in _CALL.finditer(code):
            end = bracket_end(code, call.end())
            parts = split_at_commas(code[call.end() : end - 1], "([{", ")]}") if end else []
            places = [at for at, one in enumerate(parts) if one.strip() == name]
            seen += sum(self._is_copied(call[1], at, len(parts)) for at in places)
        return seen == uses

    def _is_copied(self, called: str, place: int, count: int) -> bool:
        """Whether functions that may access the array by an argument are copied: those with lines that do."""
        fitting = list(self._fitting(called, place, count))
        accessing = [each for each in fitting if each[2]] or fitting
        for text, new, _ in accessing:
            code, pointer = without_comments(new), new[new.index(PREFIX) :]
            name = re.split(r"[,)]", pointer)[0].split()[-1]
            if text not in self._followed:
                self._followed.add(text)
                if not self.follows(code[code.index("{") :], name):
                    return False
                self.copies[text] = new
        return bool(accessing)

    def _fitting(self, called: str, place: int, count: int) -> Iterator[tuple[str, str, bool]]:
        """The functions of a name with a pointer at a place: as they are, and for elements that are apart."""
        for name, text, accesses in self._known:
            code = without_comments(text)
            named = re.search(rf"\b{name}\s*\(", code) if name == called else None
            start = 0 if named is None else named.end()
            parts = split_at_commas(code[start : bracket_end(code, start) - 1]) if start else []
            pointer = _POINTER.fullmatch(parts[place]) if len(parts) == count else None
            if pointer is not None:
                at = start + sum(len(one) + 1 for one in parts[:place])
                end = at + len(parts[place].rstrip())
                at += len(parts[place]) - len(parts[place].lstrip())
                yield text, f"{text[:at]}{PREFIX}<{pointer['type']}> {pointer['name']}{text[end:]}", accesses


def _end(code: str, place: int) -> int:
    """The end of a function's body, whose parameters begin at a place; 0 of a declaration."""
    behind = re.compile(r"[^;{}]*\{").match(code, bracket_end(code, place))
    return 0 if behind is None else bracket_end(code, behind.end(), "{")
