"""Declarations in CUDA source: integer constants, expressions of them, and shapes of shared arrays, of which
machine code has the size; and what is defined elsewhere for a text that is only read.

There is no preprocessing, except for branches on macros that are known to be undefined. Defined elsewhere are
macros of the command line (`-DTILE=32`), and what a header defines that a launch may need: constants, macros,
and functions of one expression. Of a header only what is outside of functions and types, and compiled in any
case: not what is in a branch of an `#if`, except for one that only asks whether what it then defines is still
undefined (an include guard, a default).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod

from memsim.source.expressions import ELEMENT_BYTES, Formula, Number, evaluate
from memsim.source.text import CONDITION, bracket_end, lines_by_condition, split_at_commas, without_comments

#: `#define NAME value`, `const int a = 1, b = 2;`, `#define NAME(a) ...` and `name(int a) { return ...; }`.
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$", re.MULTILINE)
DECLARED = re.compile(
    r"\b(?:constexpr|const)\s+(?:static\s+)?(?:unsigned\s+|const\s+)?"
    r"(?:int|unsigned|size_t|auto|bool|short|long|char|u?int\d+_t|uint|ushort|ulong)\s([^;]*?);"
)
_VARIABLE = re.compile(
    r"(?<!\w)(?:unsigned\s+|long\s+)*(?:int|unsigned|size_t|auto|long|short|u?int\d+_t|uint|ushort|ulong)\s+(?:const\s+)?"
    r"(\w[^;{}]*);"
)
_INITIALIZED = re.compile(r"\s*(\w+)\s*(?:=|(?=\{))(.*)", re.DOTALL)

MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()\n]*)\)[ \t]+(.+)$", re.MULTILINE)
RETURNS = re.compile(
    r"\b(\w+)\s*\(([^(){};]*)\)\s*(?:const\s*)?(?:noexcept\s*)?\{\s*return\s+([^;{}]+);\s*\}"
)


def constants(code: str, known: Mapping[str, Number] | None = None, *, last: bool = False) -> dict[str, int]:
    """Integer constants of a source by name, as far as they are known.

    known: others that they may refer to. last: take the last value of a name that is defined differently, of
    those declarations that are in scope where the code ends; else it is unknown.
    """
    pairs = [(name, value) for name, value in DEFINE.findall(code)]
    seen = scope_at_end(code) if last else None
    for declared in DECLARED.finditer(code):
        if seen is not None and not seen(declared.start()):
            continue
        pairs += declared_pairs(declared[1])
    pairs = list(dict(pairs).items()) if last else list(dict.fromkeys(pairs))
    names = [name for name, _ in pairs]
    found: dict[str, int] = {}
    for _ in pairs:  # a macro may use constants that come later
        before = len(found)
        for name, expression in pairs:
            value = value_of(expression, {**(known or {}), **found})
            if value is not None and names.count(name) == 1:
                found[name] = value
        if len(found) == before:
            break
    return found


def declared_pairs(inside: str) -> list[tuple[str, str]]:
    """(name, expression) of each variable in `a = 1, b{2}`, what a declaration says behind its type."""
    parts = (_INITIALIZED.fullmatch(part) for part in split_at_commas(inside))
    return [(part[1], part[2].strip().removeprefix("{").removesuffix("}")) for part in parts if part]


def variables(
    code: str,
    known: Mapping[str, Number],
    functions: Mapping[str, Formula] | None = None,
    changed: Collection[str] = (),
) -> dict[str, int]:
    """Integer variables of a function that keep the constant that they are initialized with.

    As `initializers`, without those that are `changed` elsewhere.
    """
    found: dict[str, int] = {}
    for name, expression in initializers(code).items():
        if name in changed:
            continue
        value = value_of(expression, {**known, **found}, functions)
        found.update({} if value is None else {name: value})
    return found


@lru_cache(maxsize=16)
def initializers(code: str) -> Mapping[str, str]:
    """What the integer variables of a function that never change are initialized with, by name.

    A variable that is declared twice, assigned again, incremented, or whose address may be taken is left out.
    """
    found = {}
    for declared in _VARIABLE.findall(code):
        for part in split_at_commas(declared):
            name, _, expression = (word.strip() for word in part.partition("="))
            if re.fullmatch(r"\w+", name) and changes(name, code) == 1:
                found[name] = expression
    return found


def changes(name: str, code: str) -> int:
    """How often a variable gets a value, or may get one: its initialization is the first."""
    assigned = r"(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))"
    return len(re.findall(rf"\b{name}\s*{assigned}|(?:\+\+|--|(?<!&)&(?!&)|>>)\s*{name}\b", code))


# `void halve(int &n)`, and `auto halve = [](int &n)`; `int &m = n;` and `auto &m(n);`.
_TAKES = re.compile(
    r"(?<=[\w>])(?<!\breturn)(?<!\belse)(?:\s+|\s*[*&]{1,3}\s*)(\w+)\s*\(([^(){};]*)\)[\s\w]*[{;]"
    r"|\b(\w+)\s*=\s*\[[^][]*\]\s*\(([^(){};]*)\)"
)
_LONGEST_CALL = 300  # characters of its arguments: calls may be nested by the thousand
_CALL = re.compile(r"\b(\w+)\s*(?:<[^;<>]*>\s*)?\(")
_REFERS = re.compile(
    r"(?:^|[;{}])\s*(const\s+)?(?:auto|[\w:]{1,200}(?:<[^;<>]*>)?)\s*(const\s*)?&&?\s*\w+\s*(?:=\s*|[({]\s*)"
    r"(\w+)(?=\s*[;,)}])"
)
_OF_STD = {"swap": {0, 1}, "exchange": {0}}


def reference_parameters(code: str) -> dict[str, set[int]]:
    """Which parameters of a source's functions are references by which these may change what is given."""
    found = {name: {*places} for name, places in _OF_STD.items()}
    for name, inside, called, of_lambda in _TAKES.findall(code):
        for place, parameter in enumerate(split_at_commas(inside or of_lambda)):
            if "&" in parameter and not re.search(r"\bconst\b", parameter):
                found.setdefault(name or called, set()).add(place)
    return found


def referred_to(code: str, references: Mapping[str, Collection[int]]) -> set[str]:
    """The variables of a code that it has references to, or passes on as `references` of functions."""
    found = {name for fixed, fixed_too, name in _REFERS.findall(code) if not fixed and not fixed_too}
    for call in _CALL.finditer(code):
        if call[1] in references:
            inside = code[call.end() : call.end() + _LONGEST_CALL]
            given = split_at_commas(inside[: max(0, bracket_end(inside, 0) - 1)])
            found |= {given[place].strip() for place in references[call[1]] if place < len(given)}
    return found


def types_named(name: str, code: str) -> list[str]:
    """What `using` and `typedef` of a code give a name to."""
    name = re.escape(name)
    found = re.finditer(rf"\b(?:using\s+{name}\s*=\s*([^;]+)|typedef\s+([^;]+?)\s+{name}\s*);", code)
    return [(one[1] or one[2]).strip() for one in found]


def scope_at_end(code: str) -> Callable[[int], bool]:
    """Says of a place of a function's code whether what is declared there is in scope where the code ends."""
    depth = [0, *accumulate((letter == "{") - (letter == "}") for letter in code)]
    lowest = [*accumulate(reversed(depth), min)][::-1]
    return lambda place: lowest[place] >= depth[place]


def without_excluded_branches(code: str, defined: Mapping[str, object]) -> str:
    """The code with directives, and branches of `#ifdef` and `#ifndef` that `defined` excludes, replaced by
    blanks.
    """

    def decide(directive: str, condition: str, number: int) -> bool | None:
        is_defined = re.match(r"\w*", condition)[0] in defined  # type: ignore[index]
        return None if directive == "if" else is_defined == (directive == "ifdef")

    lines = lines_by_condition(code, decide)
    return "\n".join("" if CONDITION.match(line) or False in groups else line for line, _, groups in lines)


def value_of(
    expression: str, known: Mapping[str, Number], functions: Mapping[str, Formula] | None = None
) -> int | None:
    """The value of a C++ integer expression; None if it is not one, or not known."""
    value = evaluate(expression, known, functions)
    return value if isinstance(value, int) else None


def functions(code: str) -> dict[str, Formula]:
    """The macros and functions of a source that are one expression, by name.

    One that is defined twice, differently, is left out.
    """
    found = [(name, _parameters(inside), body) for name, inside, body in MACRO.findall(code)]
    found += [(name, _parameters(inside), body) for name, inside, body in RETURNS.findall(code)]
    found = list(dict.fromkeys(found))
    names = [name for name, _, _ in found]
    return {name: Formula(inside, body) for name, inside, body in found if names.count(name) == 1}


def _parameters(declared: str) -> tuple[str, ...]:
    """`const int a, int b` -> `a`, `b`."""
    return tuple(words[-1] for part in declared.split(",") if (words := re.findall(r"\w+", part)))


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
    text: str,
    name: str,
    size: int,
    also: Mapping[str, int] | None = None,
    sizes: Mapping[str, int] = ELEMENT_BYTES,
) -> Iterator[Declaration]:
    """All declarations of the shared array `name` of `size` bytes; as `array_shape`. sizes: of types."""
    code = without_comments(text)
    known = {**constants(code), **(also or {})}
    for match in re.finditer(
        rf"__shared__\b([^;()]*(?:\([^;()]*\)[^;()]*)?)\b({re.escape(name)})\s*((?:\[[^][]*\])+)", code
    ):
        types = [word for word in re.findall(r"\w+", match[1]) if word in sizes]
        element = sizes[types[-1]] if types else 0  # `unsigned char` is a char
        first = match.start(3)
        inside = (
            m.span(1) if m[1].strip() else (m.start(1),) * 2 for m in re.finditer(r"\[([^][]*)\]", match[3])
        )
        spans = [(first + start, first + end) for start, end in inside]
        here = {**known, **constants(code[: match.start()], last=True), **(also or {})}  # a kernel's own, too
        values = [value_of(code[start:end], here) for start, end in spans]
        extents = tuple(value for value in values if value is not None)
        if len(spans) == 1 and spans[0][0] == spans[0][1] and element:
            extents = (size // element,)
        count: int = prod(extents)
        if not types and count and size % count == 0:
            element = size // count
        if len(extents) == len(spans) and count * element == size and element in ELEMENT_BYTES.values():
            scope = match.start(2), end_of_block(code, match.end())
            yield Declaration(ArrayShape(extents, element), match.span(2), tuple(spans), scope)


def end_of_block(code: str, start: int) -> int:
    """The end of the block that contains `start`; the end of the text outside of all blocks."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if brace[0] == "{" else -1
        if depth < 0:
            return brace.start()
    return len(code)


def body_of(code: str, kernel: str) -> tuple[int, int]:
    """The span of a kernel's body, from behind its brace on; empty if it is not found."""
    plain = re.escape(kernel.partition("<")[0].rpartition("::")[2])
    head = re.search(rf"\b__global__\b[^;{{}}]*\b{plain}\s*\([^;{{}}]*\{{", code)
    return (0, 0) if head is None else (head.end(), bracket_end(code, head.end(), "{"))


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


_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


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
