"""What is defined elsewhere for a text that is only read, not preprocessed.

Macros of the command line (`-DTILE=32`), and what a header defines that a launch may need: constants, macros,
and functions of one expression. Of a header only what is outside of functions and types, and compiled in any
case: not what is in a branch of an `#if`, except for one that only asks whether what it then defines is still
undefined (an include guard, a default).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from memsim.source.text import CONDITION, lines_by_condition, without_comments
from memsim.source.values import DECLARED, DEFINE, MACRO, RETURNS, declared_pairs

_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)

# `#define LIB_KERNEL(BOUND) __global__ void __launch_bounds__(BOUND)`: what is in front of a kernel's name.
_HEAD = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?(?=[ \t])([^{};<#\n]*__global__[^{};<#\n]*)$",
    re.MULTILINE,
)


def with_kernel_heads(text: str, texts: Iterable[str]) -> str:
    """The text with `__global__` in place of macros that these texts define as what a kernel begins with."""
    heads = {
        name: "__global__ void" if "void" in body.split() else "__global__"
        for one in texts
        for name, body in _HEAD.findall(one)
    }
    if not heads:
        return text
    used = re.compile(
        rf"^(?![ \t]*#)(.*?)\b({'|'.join(heads)})\b(?:[ \t]*\([^()\n]*\))?(?=\s+\w)", re.MULTILINE
    )
    return used.sub(lambda found: f"{found[1]}{heads[found[2]]}", text)


def with_macros(text: str, macros: Mapping[str, str]) -> str:
    """The text as the compiler reads it when these macros are defined, by name.

    Of `#ifdef` and `#ifndef` of one of them, what is not compiled is blank; a macro that the text then does
    not define itself is defined behind it. Lines keep their places.
    """
    if not macros:
        return text

    def decide(directive: str, condition: str, number: int) -> bool | None:
        is_known = directive != "if" and condition.partition(" ")[0] in macros
        return directive == "ifdef" if is_known else None

    lines = lines_by_condition(text, decide)
    left = "\n".join("" if is_ours or False in groups else line for line, is_ours, groups in lines)
    there = set(_DEFINED.findall(left))
    return left + "".join(f"\n#define {name} {value}" for name, value in macros.items() if name not in there)


_UNDEFINED = re.compile(r"!\s*defined\s*\(?\s*(\w+)\s*\)?\s*")
_SCOPE = re.compile(r"(?:inline\s+)?namespace\b[\w:\s]*|extern\s*\"C\"\s*")
_MARK = re.compile(r"[{};]")


def with_header_constants(text: str, headers: Iterable[str], given: Collection[str]) -> str:
    """The text, and behind it what these headers define and it does not.

    given: names of macros that are defined for the compiler. What two headers define differently is left out.
    """
    own = {name for name, _ in _all_definitions(without_comments(text))}
    found: dict[str, set[str]] = {}
    for header in headers:
        for name, code in _definitions(header):
            if name not in own and name not in given:
                found.setdefault(name, set()).add(code)
    added = dict.fromkeys(code for codes in found.values() if len(codes) == 1 for code in codes)
    return "\n".join([text, *added])


def _definitions(text: str) -> Iterator[tuple[str, str]]:
    """(name, code) of what a text defines once and in any case."""
    kept, rest = _by_condition(without_comments(text).replace("\\\n", " "))
    doubtful = {name for name, _ in _all_definitions(rest)}
    pairs = list(dict.fromkeys(_all_definitions(kept)))
    names = [name for name, _ in pairs]
    yield from (pair for pair in pairs if names.count(pair[0]) == 1 and pair[0] not in doubtful)


def _by_condition(code: str) -> tuple[str, str]:
    """The code that is compiled in any case, and the rest."""
    lines = code.split("\n")

    def decide(directive: str, condition: str, number: int) -> bool | None:
        following = next((one for one in lines[number + 1 :] if one.strip()), "")
        return _asks_for(directive, condition, following) or None

    parts: tuple[list[str], list[str]] = ([], [])
    for line, _, groups in lines_by_condition(code, decide):
        if not CONDITION.match(line):
            parts[not all(groups)].append(line)
    kept, rest = ("\n".join(part) for part in parts)
    return kept, rest


def _asks_for(directive: str, condition: str, following: str) -> bool:
    """Whether a condition is that the name is undefined which the following line defines."""
    asked = _UNDEFINED.fullmatch(condition)
    name = condition if directive == "ifndef" else asked[1] if directive == "if" and asked else ""
    return bool(name) and re.match(rf"[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", following) is not None


def _all_definitions(code: str) -> Iterator[tuple[str, str]]:
    """(name, code) of macros, and of constants and functions outside of others."""
    for found in (*DEFINE.finditer(code), *MACRO.finditer(code)):
        if "<<<" not in found[0]:
            yield found[1], found[0].strip()
    is_outside = _outside(code)
    for found in DECLARED.finditer(code):
        if is_outside(found.start()):
            yield from ((name, found[0]) for name, _ in declared_pairs(found[1]))
    for found in RETURNS.finditer(code):
        if is_outside(found.start()):
            yield found[1], found[0]


def _outside(code: str) -> Callable[[int], bool]:
    """Says of a place whether it is outside of all braces but those of namespaces and `extern "C"`."""
    changes: list[tuple[int, bool]] = [(0, True)]  # from which place on, and whether that is outside
    is_scope: list[bool] = []
    begin = 0
    for found in _MARK.finditer(re.sub(r"^[ \t]*#.*", lambda line: " " * len(line[0]), code, flags=re.M)):
        if found[0] == "{":
            before = re.sub(r"^[ \t]*#.*", "", code[begin : found.start()], flags=re.M).strip()
            is_scope.append(_SCOPE.fullmatch(before) is not None)
        elif found[0] == "}":
            del is_scope[-1:]
        begin = found.end()
        changes.append((begin, all(is_scope)))
    places = [place for place, _ in changes]
    return lambda place: changes[bisect_right(places, place) - 1][1]
