"""Names of static `__shared__` arrays by address. A cubin does not have them, the PTX it was assembled from
does.

ptxas (12.0 to 13.5, also within NVRTC) lays out, each at the next multiple of its alignment:

1. arrays declared in the kernel's body, in the order of the text;
2. arrays of the module that the kernel or a function reachable from it names, in the order of the text;
3. arrays declared in the bodies of those functions, in the order in which functions are first declared.

An array of the module that nothing names is not allocated; being optimized away later changes nothing. If the
module declares dynamic shared memory, it starts at the end, rounded up to its alignment.

nvlink and nvJitLink use another layout, by alignment and size, with ties in no order that was found: there,
only a single array has a name. If the layout does not add up, all of it is one nameless array.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from memsim.state.address_spaces import align

ANONYMOUS = "shared memory"
Array = tuple[str, int, int]  # name, address, bytes

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_STRING = re.compile(r'"[^"\n]*"')
_STATEMENT = re.compile(r"[^;{}]*[;{}]")
_FUNCTION = re.compile(r"\.(?:entry|func)\b\s*(?:\([^()]*\))?\s*([\w$%.]+)")
_WORD = re.compile(r"[\w$%]+")
_SHARED = re.compile(
    r"\.shared\b(?:\s+\.align\s+(?P<align>\d+))?(?:\s+\.v(?P<vector>[24]))?"
    r"\s+\.[a-z]+(?P<bits>\d+)\s+(?P<names>[^;{=]*);"
)
_EXTERN = re.compile(r"\.extern\s+(?:\.(?:visible|weak|common)\s+)?$")
_NAME = re.compile(r"([\w$%]+)((?:\s*\[\s*\d*\s*\])*)")
_INDIRECT = re.compile(r"\bcall(?:\.uni)?\s+(?:\([^()]*\)\s*,\s*)?%")


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    align: int
    size: int
    extern: bool


@dataclass(slots=True)
class _FunctionText:
    """`words`: all identifiers in its body; `body` is empty for a declaration."""

    body: str = ""
    words: frozenset[str] = frozenset()
    arrays: tuple[_Declared, ...] = ()


class _Uncertain(Exception):
    """The layout cannot be derived from the text."""


def shared_arrays(
    ptx: str, kernel: str, static_shared: int, reserved: int = 0, linked: bool = False
) -> list[Array]:
    """(name, address, bytes) of a kernel's static shared arrays, by address; names are mangled as in PTX.

    Args:
        ptx: the text that the kernel was assembled from.
        static_shared, reserved: as `Image.static_shared` and `Image.reserved_shared`; the first array is
            at address `reserved`.
        linked: the cubin was made by nvlink or nvJitLink.

    A single array, `"shared memory"`, if names are uncertain; none if there is no static shared memory.
    """
    if static_shared <= reserved:
        return []
    try:
        found = _lay_out(ptx, kernel, static_shared, reserved, linked)
    except _Uncertain:
        found = []
    return found or [(ANONYMOUS, reserved, static_shared - reserved)]


def dynamic_arrays(ptx: str, kernel: str) -> list[str]:
    """The names of the `extern __shared__` arrays that a kernel uses; all start after the static ones."""
    module, functions = _read(ptx)
    try:
        words = _words(functions, kernel)
    except _Uncertain:
        return []
    return [array.name for array in module if array.extern and array.name in words]


def _lay_out(ptx: str, kernel: str, static_shared: int, reserved: int, linked: bool) -> list[Array]:
    module, functions = _read(ptx)
    reached = _reachable(functions, kernel)
    words = _words(functions, kernel)
    own = functions[kernel].arrays
    arrays = [*own, *(array for array in module if not array.extern and array.name in words)]
    for name, function in functions.items():
        if name in reached and name != kernel:
            arrays += function.arrays
    names = [array.name for array in arrays]
    unnamed = [array for array in arrays if array.name not in words]
    if len(set(names)) < len(names) or unnamed or (linked and len(arrays) > 1):
        raise _Uncertain
    place, found = reserved, []
    for array in arrays:
        place = align(place, array.align)
        found.append((array.name, place, array.size))
        place += array.size
    ends = {align(place, to) for to in (1, *(array.align for array in module if array.extern))}
    if static_shared not in ends:
        raise _Uncertain
    return found


def _reachable(functions: dict[str, _FunctionText], kernel: str) -> set[str]:
    """The kernel and all functions reachable from it by name."""
    reached: set[str] = set()
    waiting = [kernel]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        if name not in functions:
            raise _Uncertain
        reached.add(name)
        if _INDIRECT.search(functions[name].body):
            raise _Uncertain
        waiting += [word for word in functions[name].words if word in functions]
    return reached


def _words(functions: dict[str, _FunctionText], kernel: str) -> set[str]:
    return {word for name in _reachable(functions, kernel) for word in functions[name].words}


# --- reading


@lru_cache(maxsize=2)  # one module has many kernels
def _read(ptx: str) -> tuple[list[_Declared], dict[str, _FunctionText]]:
    """(shared arrays of the module, functions in the order of their first declaration)."""
    text = _COMMENT.sub(" ", _STRING.sub('""', ptx))
    module: list[_Declared] = []
    functions: dict[str, _FunctionText] = {}
    place = 0
    while statement := _STATEMENT.match(text, place):
        place = statement.end()
        said = statement[0]
        function = _FUNCTION.search(said)
        if function:
            functions.setdefault(function[1], _FunctionText())
        if not said.endswith("{"):
            module += _declared(said)
            continue
        end = _closing(text, place)
        if function:
            body = text[place:end]
            arrays = tuple(_declared(body))
            rest = _SHARED.sub(" ", body)  # declaring an array does not use it
            functions[function[1]] = _FunctionText(body, frozenset(_WORD.findall(rest)), arrays)
        place = end + 1
    return module, functions


def _closing(text: str, place: int) -> int:
    """The position of the brace that closes the one just before `place`."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, place):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return len(text)


def _declared(text: str) -> list[_Declared]:
    found = []
    for shared in _SHARED.finditer(text):
        said_before = text.rfind(";", 0, shared.start()) + 1
        is_extern = _EXTERN.search(text, said_before, shared.start()) is not None
        element = int(shared["bits"]) // 8 * int(shared["vector"] or 1)
        for name, extents in _NAME.findall(shared["names"]):
            size = element
            sizes = re.findall(r"\[\s*(\d*)\s*\]", extents)
            for extent in sizes:
                size *= int(extent or 0)
            aligned = int(shared["align"] or element)
            found.append(_Declared(name, aligned, size, is_extern or "" in sizes))
    return found
