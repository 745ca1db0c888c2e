"""Where a source uses a shared array: by its name, in macros that index it, by pointers into it, in functions
that it is passed to, and by addresses as numbers.

There is no preprocessing: a use inside a macro that is defined in another file is missed (a replay would show
it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from memsim.source.text import (
    bracket_end,
    brackets_at,
    expression_end,
    open_parenthesis,
    split_at_commas,
)
from memsim.source.values import MACRO, Declaration, end_of_block, value_of
from memsim.suggest.array_parts import Parts
from memsim.suggest.c_text import EFFECT

Span = tuple[int, int]

# What precedes an element whose address is taken and passed on.
HANDED_ON = re.compile(r"(?:=|\breturn\b|,|(?P<function>\w+)\s*\()\s*&\s*$")
# Functions that take the address of an element and access it immediately.
ACCESSES = re.compile(r"cvta|memcpy_async")
# `float *a = ` or `, *b = &`, and what would make a pointer point elsewhere.
POINTER = re.compile(
    r"\*\s*(?:(?:const|__restrict__)\s+)*(?P<name>\w+)\s*=\s*"
    r"(?:\([\w\s]+\*\s*\)\s*|reinterpret_cast\s*<[\w\s]+\*\s*>\s*\(\s*)?[&(]?\s*$"
)
# `((T *)name)[` and `reinterpret_cast<T *>(name)[`: other elements in the same place.
CAST = re.compile(r"(?:\(\s*\((?P<c>[\w\s]+)\*\s*\)|\breinterpret_cast\s*<(?P<cpp>[\w\s]+)\*\s*>\s*\()\s*$")
# `(T *)(name + index)`: the address of an element, to be used as another.
CAST_ADDRESS = re.compile(r"\*\s*[)>]\s*\(\s*$")
CHANGED = r"\b{0}\s*(?:\+\+|--|[-+]=)|(?<!\*)\b{0}\s*=(?!=)|(?:\+\+|--)\s*{0}\b"
# `p += n`, `p++`, `++p` as a statement, or behind the condition of a loop: the pointer moves.
MOVES = r"(?<=[;{{}})])\s*(?:(?:\+\+|--)\s*{0}\b|{0}\s*(?:\+\+|--|[-+]=[^;,]*))\s*(?=[;)])"
# `float *p = t + i`, `= (t + i)` and `= &t[i]`: a pointer's declaration up to the index of where it begins.
BEGINS = re.compile(r"[\w\s]+\*\s*(?:const\s*|__restrict__\s*)?\w+\s*=\s*(?P<bracket>\(?\s*|&\s*)$")
# `uint32_t base = __cvta_generic_to_shared(`: an address as a number of bytes.
ADDRESS = re.compile(
    r"\b(?P<name>\w+)\s*=\s*(?:static_cast\s*<[\w\s]+>\s*\(\s*|\([\w\s]+\)\s*)?"
    r"__cvta_generic_to_shared\s*\(\s*(?:\([\w\s]+\*\s*\)\s*)?$"
)
# `float *s[] = {`: an array of pointers.
LISTED = re.compile(r"\*\s*(?:const\s+)?(?P<name>\w+)\s*\[[^][]*\]\s*=\s*\{[^{};]*$")
STRUCT = re.compile(r"\b(?:struct|class)\s+(\w+)\s*(?:<[^;{}]*>\s*)?(?::[^;{}]*)?\{")
# `return (T *)memory`, as in the operator of a struct that stands for dynamic memory: `T *s = Shared<T>();`.
RETURNED = re.compile(r"\boperator\b[^;{}]*\{[^{}]*\breturn\s*(?:\([\w\s]+\*\s*\)\s*)?$")
BYTES_OF = re.compile(r"\s*\*\s*sizeof\s*\(\s*(\w+)\s*\)\s*$")
# Functions of tensor cores that access rows of a tile, and are given how far they are apart.
ROWS = ("load_matrix_sync", "store_matrix_sync")
CALLED = re.compile(r"\b(?!if\b|while\b|for\b|switch\b|return\b)(?P<name>\w+)\s*(?:<[^;(){}]*>)?\s*$")
PLUS = re.compile(r"\s*\+\s*")
#: The index of an array that is named without one.
ZERO = (0, 0)


@dataclass(frozen=True, slots=True)
class Use:
    """A use of the array: the span of its name, and of each index after it without brackets.

    unit: bytes by which the last index counts. seen: whether the indices say what is accessed; not so if an
    address is passed on. root: the pointer to the array that it comes from; "" if it is the array. base: of a
    pointer that moves what it began at: an edit makes it an index of that. pitch: how far the rows that are
    accessed from there are apart.
    """

    name: Span
    indices: tuple[Span, ...]
    unit: int
    seen: bool
    root: str = ""
    base: str = ""
    pitch: Span | None = None


@dataclass(frozen=True, slots=True)
class _Name:
    """A name of the array, or of a part of it, where it has this meaning, and the bytes of its elements.

    root: the pointer that it comes from, "" if it is the array. base: what it began at, if it moves.
    is_parameter: its places are in the body of a function that is given it. is_address: it is a number.
    is_list: it is an array of pointers.
    """

    name: str
    start: int
    end: int
    unit: int
    root: str = ""
    base: str = ""
    is_parameter: bool = False
    is_address: bool = False
    is_list: bool = False


class Finder:
    """Finds the uses of an array: by its name, in macros that index it, by pointers into it, and in functions
    that it is passed to. Pointers and functions are followed if the array has one dimension.
    """

    def __init__(
        self,
        code: str,
        name: str,
        declaration: Declaration,
        types: Mapping[str, int],
        known: Mapping[str, int],
        body: Span,
    ) -> None:
        self.types, self.known, self.body = types, known, body
        self.code, self.array, self.declaration = code, name, declaration
        self.flat = len(declaration.extents) == 1
        self.macros = {
            match[1]: match.span(3)
            for match in MACRO.finditer(code)
            if re.search(rf"\b{name}\s*\[", match[3])
        }
        element = declaration.shape.element
        self.waiting = [_Name(name, declaration.extents[-1][1], declaration.scope[1], element)]
        self.waiting += [_Name(name, *span, element) for span in self.macros.values()]
        self.moving: dict[Span, tuple[str, str]] = {}
        self.parts = Parts()

    def uses(self) -> list[Use]:
        """All uses. One that cannot be followed has no indices."""
        while True:  # whether a function is given this array alone, all names of it tell
            known, found = len(self.waiting), list(self._uses())
            if len(self.waiting) == known:
                self.parts.join_interleaved()
                return [replace(use, root=self.parts.root_of(use.root)) for use in found]

    @property
    def beginnings(self) -> tuple[tuple[Span, str, str], ...]:
        """The declaration of each pointer that moves, up to where it begins; as an index; its root."""
        return tuple((span, new, self.parts.root_of(root)) for span, (new, root) in self.moving.items())

    @property
    def functions(self) -> tuple[tuple[str, Span], ...]:
        """The bodies of functions that are given an address, by its root."""
        names = (each for each in self.waiting if each.is_parameter)
        return tuple((self.parts.root_of(each.root), (each.start, each.end)) for each in names)

    def _uses(self) -> Iterator[Use]:
        self.parts.begin()
        for one in self.waiting:  # grows meanwhile
            named = re.compile(rf"(?<![\w.])(?<!->){re.escape(one.name)}\b")
            moves = [
                found.span()
                for found in re.compile(MOVES.format(one.name)).finditer(self.code, one.start, one.end)
            ]
            for match in named.finditer(self.code, one.start, one.end):
                before = self.code[max(match.start() - 400, 0) : match.start()]
                if re.search(r"\bsizeof\s*\(?\s*$", before):
                    continue
                if one.name in self.macros and (end := self._call_end(match.end())):
                    if EFFECT.search(self.code[match.end() : end]):
                        yield Use(match.span(), (), one.unit, False)
                    continue
                place = match.span()
                if one.is_list and (element := next(brackets_at(self.code, place[1]), None)):
                    place = place[0], element[1] + 1
                if not one.base:
                    yield self._use(place, before, one)
                elif not any(start <= place[0] < end for start, end in moves):
                    yield self._moving_use(place, before, one)

    @cached_property
    def twins(self) -> list[tuple[Span, ...]]:
        """The extents of other arrays of the name, where a macro is for all of them."""
        declared = rf"__shared__[^;()]*\b{self.array}\s*((?:\[[^][]*\])+)"
        found = re.finditer(declared, self.code) if self.macros else ()
        every = (tuple(brackets_at(self.code, match.start(1))) for match in found)
        return [spans for spans in every if spans != self.declaration.extents]

    def _use(self, place: Span, before: str, one: _Name) -> Use:
        indices, unit, root = tuple(brackets_at(self.code, place[1])), one.unit, one.root
        if one.is_address:
            return self._of_address(place, one)
        pitch = self._pitch(place[0])
        if pitch is not None:
            end = expression_end(self.code, place[1])
            ahead = PLUS.match(self.code, place[1]) if self.flat else None
            at = indices or (((ahead.end(), end),) if ahead else (ZERO,) * self.flat)
            return Use(place, at, unit, True, root, pitch=pitch)
        handed = HANDED_ON.search(before)
        if indices:
            accessed = handed is None or ACCESSES.search(handed["function"] or "") is not None
            if accessed or not self.flat:
                return Use(place, indices, unit, accessed, root)
            followed = self._followed(place, before, indices[0], one)
            begins = any(end == indices[0][0] for _, end in self.moving)
            return Use(place, (ZERO,) if begins else indices, unit, followed is not None, followed or root)
        if not self.flat:
            return Use(place, (), unit, False, root)
        if (cast := CAST.search(before)) and (closing := re.compile(r"\s*\)").match(self.code, place[1])):
            others, size = tuple(brackets_at(self.code, closing.end())), self._bytes(cast["c"] or cast["cpp"])
            if len(others) == 1 and size:
                seen = re.search(r"&\s*$", before[: cast.start()]) is None
                return Use(place, others, size, seen, root)
        ahead = PLUS.match(self.code, place[1])
        end = expression_end(self.code, place[1])
        index = ((ahead.end(), end),) if ahead else ()
        if ahead and re.search(r"\*\s*\(\s*$", before):
            return Use(place, index, unit, True, root)
        if (listed := LISTED.search(before)) and self.code[end] in ",}":
            declared = re.split(r"[;{}]", before[: listed.start()])[-1]
            start, size = self.code.find("}", end) + 1, self._bytes(declared, unit)
            scope = end_of_block(self.code, start)
            self._also(
                _Name(listed["name"], start, scope, size, root, is_list=True, is_parameter=one.is_parameter)
            )
            return Use(place, index or (ZERO,), unit, True, root)
        if RETURNED.search(before) and self.code[end] == ";" and not index:
            return Use(place, (ZERO,) if self._returned(place[0], one) else (), unit, True, root)
        where = index[0] if index else (end, end)
        followed = self._followed(place, before, where, one)
        if followed is not None:
            begins = any(first == where[0] for _, first in self.moving)
            return Use(place, (ZERO,) if begins or not index else index, unit, True, followed)
        handed_on = ahead and CAST_ADDRESS.search(before) and self.code[end] == ")"
        return Use(place, index if handed_on else (), unit, False, root)

    def _of_address(self, place: Span, one: _Name) -> Use:
        """A use of an address as a number: bytes, or elements times their size, are added to it."""
        ahead = PLUS.match(self.code, place[1])
        if ahead is None:
            return Use(place, (ZERO,), 1, False, one.root)
        start, end = ahead.end(), expression_end(self.code, place[1])
        size = BYTES_OF.search(self.code[start:end])
        inside = start + 1, bracket_end(self.code, start + 1) - 1
        if size is not None and self.code[start] == "(" and inside[1] + 1 == start + size.start():
            unit = self.types.get(size[1], 0)
            return Use(place, (inside,) if unit else (), unit, False, one.root)
        return Use(place, ((start, end),), 1, False, one.root)

    def _pitch(self, start: int) -> Span | None:
        """Of an address that is given to a function of tensor cores, how far its rows are apart."""
        opening, _ = open_parenthesis(self.code, start)
        head = CALLED.search(self.code[max(opening - 200, 0) : opening]) if opening >= 0 else None
        if head is None or head["name"] not in ROWS:
            return None
        place = opening + 1
        parts = split_at_commas(self.code[place : bracket_end(self.code, place) - 1])
        if len(parts) < 3:
            return None
        place += len(parts[0]) + len(parts[1]) + 2
        blank = len(parts[2]) - len(parts[2].lstrip())
        return place + blank, place + len(parts[2].rstrip())

    def _moving_use(self, place: Span, before: str, one: _Name) -> Use:
        """A use of a pointer that moves, which an edit makes an index of what it began at."""
        indices = tuple(brackets_at(self.code, place[1]))
        ahead = PLUS.match(self.code, place[1])
        end = place[1]
        if len(indices) == 1:
            seen = re.search(r"&\s*$", before) is None
            return Use(place, indices, one.unit, seen, one.root, one.base)
        if ahead and re.search(r"\(\s*$", before):
            end = expression_end(self.code, place[1])
        span = (ahead.end(), end) if ahead and end > place[1] else (place[1], place[1])
        is_read = re.search(r"(?:^|[^\w\s)\]]|\breturn)\s*\*\s*(?:\(\s*)?$", before) is not None
        is_cast = re.search(r"\*\s*[)>]\s*(?:\(\s*)?$", before) is not None
        closed = is_read or self.code[end : end + 20].lstrip()[:1] in (")", ",", ";")
        known = not indices and closed and (is_read or is_cast)
        return Use(place, (span,) if known else (), one.unit, is_read, one.root, one.base)

    def _followed(self, place: Span, before: str, index: Span, one: _Name) -> str | None:
        """The root of an address whose uses are all found: of a pointer, or in a function that it is passed
        to. None if they are not.

        index: span of where in the array it is, empty at its beginning.
        """
        pointer, end = POINTER.search(before), index[1]
        if self.code[end : end + 1] == "]":
            end += 1
        address = ADDRESS.search(before) if index[0] == end or not self.code[slice(*index)].strip() else None
        if address is not None:
            scope = end_of_block(self.code, end)
            if re.compile(CHANGED.format(address["name"])).search(self.code, end, scope):
                return None
            self._also(_Name(address["name"], end, scope, 1, one.root, is_address=True))
            return one.root
        if pointer is None:
            return one.root if self._passed(place[0], end, one) else None
        name, statement = pointer["name"], re.split(r"[;{}]", before)[-1]
        scope = end_of_block(self.code, end)
        changes = list(re.compile(CHANGED.format(name)).finditer(self.code, end, scope))
        ending = self.code[end : end + 20].lstrip().removeprefix(")").lstrip()
        unit = self._bytes(statement, 0 if "*" in statement.partition("=")[2] else one.unit)
        if not unit or ending[:1] not in (";", ","):
            return None
        if not changes:
            before_it, root = self._part(name, index, one)
            self._also(_Name(name, end, scope, unit, root, is_parameter=one.is_parameter))
            return before_it
        begins = BEGINS.fullmatch(statement)
        moves = re.compile(MOVES.format(name)).finditer(self.code, end, scope)
        if (
            begins is None
            or unit != one.unit
            or one.base
            or ending[0] != ";"
            or len(list(moves)) < len(changes)
        ):
            return None
        start = place[0] - len(statement.lstrip())
        opening = "(" if begins["bracket"].startswith("(") else ""
        zero = "0" if index[0] == index[1] else ""
        self.moving[start, index[0]] = f"int {name} = {opening}{zero}", one.root
        if begins["bracket"].startswith("&"):
            self.moving[index[1], index[1] + 1] = "", one.root
        self._also(_Name(name, end, scope, unit, one.root, one.name))
        return one.root

    def _returned(self, place: int, one: _Name) -> bool:
        """Whether pointers are found that get the array's beginning from the struct around a place."""
        structs = STRUCT.findall(self.code[:place])
        made = (
            rf"([\w\s]+)\*\s*(?:const\s+|__restrict__\s+)?(\w+)\s*=\s*{structs[-1]}\s*<[^<>;]*>\s*\(\s*\)\s*;"
        )
        found = list(re.compile(made).finditer(self.code, *self.body)) if structs else []
        for match in found:
            unit = self._bytes(match[1])
            scope = end_of_block(self.code, match.end())
            if not unit or re.compile(CHANGED.format(match[2])).search(self.code, match.end(), scope):
                return False
            self._also(_Name(match[2], match.end(), scope, unit, one.root))
        return bool(found)

    def _part(self, name: str, index: Span, one: _Name) -> tuple[str, str]:
        """The root of what is before a pointer in the array, and its own.

        A pointer to the array's beginning carves it anew; one behind another begins a part of its own, if it
        is known where.
        """
        text = self.code[slice(*index)].strip()
        if one.is_parameter or (one.root and text in ("", "0")):
            return one.root, one.root
        value = value_of(text or "0", self.known)
        ahead = None if value is None else value * one.unit
        return self.parts.placed(name, one.root, ahead, text in ("", "0"))

    def _passed(self, start: int, end: int, one: _Name) -> bool:
        """Whether the argument at [start, end) is of a function whose uses of it can be found."""
        opening, place = open_parenthesis(self.code, start)
        head = CALLED.search(self.code[max(opening - 200, 0) : opening])
        if opening < 0 or head is None or self.code[end : end + 20].lstrip()[:1] not in (",", ")"):
            return False
        if self.code[opening + 1 : start].strip(" &\n\t").rpartition(",")[2].strip(" &"):
            return False
        name = head["name"]
        definition = re.search(rf"\b{name}\s*\(([^(){{}};]*)\)\s*\{{", self.code)
        if definition is None:
            return False
        body_end = bracket_end(self.code, definition.end(), "{")
        calls = re.finditer(rf"\b{name}\s*(?:<[^;(){{}}]*>)?\s*\(", self.code)
        parameters = split_at_commas(definition[1])
        ours = {each.name for each in self.waiting}
        for call in calls:
            if call.start() != definition.start():
                inside = self.code[call.end() : bracket_end(self.code, call.end()) - 1]
                passed = split_at_commas(inside)
                if place >= len(passed) or not ours & set(re.findall(r"\w+", passed[place])):
                    return False  # of another array, too
        declared = parameters[place] if place < len(parameters) else ""
        parameter = re.search(r"(\w+)\s*(?:\[\s*\])?\s*$", declared)
        unit = self._bytes(declared, one.unit)
        if parameter is None or not re.search(r"[*\[]", declared) or not unit:
            return False
        changed = re.compile(CHANGED.format(parameter[1])).search(self.code, definition.end(), body_end)
        if changed is None:
            self._also(_Name(parameter[1], definition.end(), body_end, unit, one.root, is_parameter=True))
        return changed is None

    def _bytes(self, declared: str, deduced: int = 0) -> int:
        """Bytes of the elements that are named; `deduced` if that is left open, 0 if they are not known."""
        words = re.findall(r"\w+", declared)
        sizes = {self.types[word] for word in words if word in self.types}
        if not sizes:
            return 0 if "void" in words else deduced
        return sizes.pop() if len(sizes) == 1 else 0

    def _also(self, name: _Name) -> None:
        for each in self.waiting:
            if (each.name, each.start, each.end, each.unit) == (name.name, name.start, name.end, name.unit):
                self.parts.join(each.root, name.root)
                return
        self.waiting.append(name)

    def _call_end(self, place: int) -> int:
        """Where the arguments end of a call at a place; 0 if there is none."""
        opening = re.compile(r"\s*\(").match(self.code, place)
        return bracket_end(self.code, opening.end()) if opening else 0
