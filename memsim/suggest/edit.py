"""A layout change as an edit of the source that declares the array.

There is no edit if the change cannot be written by rules: an index is not explicit in the source, a part of a
row corresponds to no index, or the declaration was not found. Whether the edited source computes the same is
checked by running it.

There is no preprocessing: a use inside a macro that is defined elsewhere is missed (a replay would show it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import pairwise
from math import prod

from memsim.analysis import Analysis
from memsim.source.text import without_comments
from memsim.source.values import Declaration, constants, declarations, definition, value_of
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.tiles import Tile

Span = tuple[int, int]

# Expressions with side effects cannot be duplicated.
EFFECT = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)|\n")


# What precedes an element whose address is taken and passed on.
HANDED_ON = re.compile(r"(?:=|\breturn\b|,|(?P<function>\w+)\s*\()\s*&\s*$")
# Functions that take the address of an element and access it immediately.
ACCESSES = re.compile(r"cvta|memcpy_async")


@dataclass(frozen=True, slots=True)
class Use:
    """A use of the array: the span of its name, and of each index after it without brackets.

    seen: whether the indices say what is accessed; not so if an address is passed on.
    """

    name: Span
    indices: tuple[Span, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class Writing:
    """How a file declares and uses the array. code: its text without comments, same positions. constants: by
    name.
    """

    file: str
    text: str
    code: str
    declaration: Declaration
    uses: tuple[Use, ...]
    constants: Mapping[str, int]

    @property
    def elements(self) -> bool:
        """Whether every use names one element, by indices on one line without side effects."""
        return bool(self.uses) and all(
            len(use.indices) == len(self.declaration.extents)
            and not any(EFFECT.search(self.text[slice(*span)]) for span in use.indices)
            for use in self.uses
        )

    @property
    def unseen(self) -> tuple[int, ...]:
        """The lines that pass on an address of the array, from which anything may be accessed."""
        places = (use.name[0] for use in self.uses if not use.seen)
        return tuple(dict.fromkeys(self.text.count("\n", 0, place) + 1 for place in places))


def writing(analysis: Analysis, tile: Tile) -> Writing | None:
    """How the sources of the analysis declare and use the array; None if no declaration is found.

    Of several arrays with its name and size, the one whose scope contains the array's accesses.
    """
    accesses = {(analysis.sites[number].file, analysis.sites[number].line) for number in tile.sites}
    found = []
    for file, text in analysis.trace.sources.items():
        lines = [line for name, line in accesses if name == file]
        for declaration in declarations(text, tile.name, tile.size, tile.constants):
            first, last = (text.count("\n", 0, place) + 1 for place in declaration.scope)
            inside = sum(first <= line <= last for line in lines)
            code = without_comments(text)
            known = {**constants(code), **tile.constants}
            uses = tuple(_uses(code, tile.name, declaration))
            found.append((inside, Writing(file, text, code, declaration, uses, known)))
    return max(found, key=lambda entry: entry[0])[1] if found else None


def _uses(code: str, name: str, declaration: Declaration) -> Iterator[Use]:
    """The uses of the array in its scope, without `sizeof`."""
    end = declaration.scope[1]
    named = re.compile(rf"(?<![\w.])(?<!->){re.escape(name)}\b")
    for match in named.finditer(code, declaration.extents[-1][1], end):
        if re.search(r"\bsizeof\s*\(?\s*$", code[: match.start()]):
            continue
        indices = tuple(_indices(code, match.end()))
        handed = HANDED_ON.search(code[: match.start()])
        accessed = handed is None or ACCESSES.search(handed["function"] or "") is not None
        yield Use(match.span(), indices, bool(indices) and accessed)


def _indices(code: str, place: int) -> Iterator[Span]:
    """The contents of the consecutive brackets at `place`."""
    opening = re.compile(r"\s*\[")
    while match := opening.match(code, place):
        depth, place = 1, match.end()
        start = place
        while depth and place < len(code):
            depth += (code[place] == "[") - (code[place] == "]")
            place += 1
        yield start, place - 1


# Names of constants meant to be changed: a row stride or a padding.
KNOB = re.compile(r"(?i)^(ld[a-z]?\d?|.*(stride|pitch|pad|skew).*)$")

# Expressions that need no parentheses in a sum.
ARITHMETIC = re.compile(r"[\w\s*+()/%-]+")


@dataclass(frozen=True, slots=True)
class Replacement:
    """`new` replaces the text from `start` to `end`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a file before and after."""

    file: str
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one file. text: the original. replacements: in order of position.

    unseen: lines from which the array may be accessed in a way that the edit does not account for.
    """

    file: str
    text: str
    replacements: tuple[Replacement, ...]
    unseen: tuple[int, ...] = ()

    @property
    def new(self) -> str:
        """The file's text after the edit."""
        return patched(self.text, self.replacements)

    @property
    def lines(self) -> tuple[ChangedLine, ...]:
        """The lines that change."""
        pairs = zip(self.text.splitlines(), self.new.splitlines(), strict=True)
        return tuple(
            ChangedLine(self.file, number, old, new)
            for number, (old, new) in enumerate(pairs, 1)
            if old != new
        )

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (text.splitlines(keepends=True) for text in (self.text, self.new))
        return "".join(unified_diff(old, new, f"a/{self.file}", f"b/{self.file}", n=1))

    def joined(self, other: Edit) -> Edit | None:
        """Both edits as one; None if they are of different files or overlap."""
        if (other.file, other.text) != (self.file, self.text):
            return None
        both = sorted({*self.replacements, *other.replacements}, key=lambda each: (each.start, each.end))
        meet = any(one.end > two.start for one, two in pairwise(both))
        unseen = tuple(sorted({*self.unseen, *other.unseen}))
        return None if meet else Edit(self.file, self.text, tuple(both), unseen)


def patched(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with all replacements made."""
    for each in sorted(replacements, key=lambda each: each.start, reverse=True):
        text = text[: each.start] + each.new + text[each.end :]
    return text


def edit(writing: Writing, change: Map, extra: int) -> Edit | None:
    """The change as an edit of the source; None if it cannot be written. extra: bytes by which the array
    grows.
    """
    ways: Sequence[Callable[[Writing, Map, int], list[Replacement] | None]] = (
        (_wider_extent, _other_constant, _other_stride, _spread_index)
        if isinstance(change, Padding)
        else (_swizzled_index,)
    )
    for way in ways:
        replacements = way(writing, change, extra)
        if replacements:
            in_order = sorted(replacements, key=lambda each: each.start)
            return Edit(writing.file, writing.text, tuple(in_order), writing.unseen)
    return None


def _wider_extent(writing: Writing, change: Map, extra: int) -> list[Replacement] | None:
    """Longer rows: `[BM]` becomes `[BM + 4]`, or the `PAD` in it grows."""
    assert isinstance(change, Padding)
    shape, spans = writing.declaration.shape, writing.declaration.extents
    for level in range(1, len(spans)):
        row, unit = (prod(shape.extents[start:]) * shape.element for start in (level, level + 1))
        if row == change.every and change.by % unit == 0:
            added = change.by // unit
            knob = _padding_in(writing, spans[level])
            return [(knob and _grown(writing, knob, added)) or _plus(writing, spans[level], added)]
    return None


def _other_constant(writing: Writing, change: Map, extra: int) -> list[Replacement] | None:
    """The constant in `s_a[BK * LDA]` that is the row length grows."""
    assert isinstance(change, Padding)
    element = writing.declaration.shape.element
    if len(writing.declaration.extents) != 1 or change.every % element or change.by % element:
        return None
    known = writing.constants
    for name in re.findall(r"[A-Za-z_]\w*", _text(writing, writing.declaration.extents[0])):
        if KNOB.match(name) and known.get(name) == change.every // element:
            place = definition(writing.text, name)
            if place is not None:
                return [_grown(writing, place, change.by // element)]
    return None


def _other_stride(writing: Writing, change: Map, extra: int) -> list[Replacement] | None:
    """The factor in every index `row * 16 + column` changes, and the array grows."""
    assert isinstance(change, Padding)
    element = writing.declaration.shape.element
    if not writing.elements or len(writing.declaration.extents) != 1:
        return None
    known = writing.constants
    found = []
    for use in writing.uses:
        start, text = use.indices[0][0], _text(writing, use.indices[0])
        factors = [
            match
            for match in re.finditer(r"(?<=\*)\s*(\w+)\b(?!\s*[\[(])|\b(\w+)\s*(?=\*)", text)
            if value_of(match[1] or match[2], known) == change.every // element
        ]
        if len(factors) != 1:
            return None
        factor = factors[0]
        here = start + factor.start(1 if factor[1] else 2), start + factor.end(1 if factor[1] else 2)
        old, added = _text(writing, here), change.by // element
        new = str(int(old) + added) if old.isdecimal() else f"({old} + {added})"
        found.append(Replacement(*here, new))
    return [*found, *_room(writing, extra)]


def _spread_index(writing: Writing, change: Map, extra: int) -> list[Replacement] | None:
    """The last index skips unused elements after every piece of a row: `i` becomes `i + i / 32 * 4`."""
    assert isinstance(change, Padding)
    shape = writing.declaration.shape
    row = shape.extents[-1] * shape.element
    in_rows = len(shape.extents) == 1 or (change.every < row and row % change.every == 0)
    if not writing.elements or not in_rows or change.every % shape.element or change.by % shape.element:
        return None
    every, by = change.every // shape.element, change.by // shape.element
    found = []
    for use in writing.uses:
        index = _text(writing, use.indices[-1]).strip()
        skipped = f"{_factor(index)} / {every}" + (f" * {by}" if by > 1 else "")
        found.append(Replacement(*use.indices[-1], f"{_term(index)} + {skipped}"))
    if len(shape.extents) == 1:
        return [*found, *_room(writing, extra)]
    return [*found, _plus(writing, writing.declaration.extents[-1], row // change.every * by)]


def _swizzled_index(writing: Writing, change: Map, extra: int) -> list[Replacement] | None:
    """The last index is XORed with bits of the row or with higher bits of itself."""
    assert isinstance(change, XorSwizzle)
    shape = writing.declaration.shape
    row, period = shape.extents[-1] * shape.element, 1 << change.base + change.bits
    to = change.base - (shape.element.bit_length() - 1)
    if not writing.elements or row % period or to < 0 or change.every % shape.element:
        return None
    found = []
    for use in writing.uses:
        indices = [_text(writing, span).strip() for span in use.indices]
        source = _source_bits(writing, change, indices)
        if source is None:
            return None
        turn = f"({source}) << {to}" if to and " " in source else f"{source} << {to}" if to else source
        found.append(Replacement(*use.indices[-1], f"{_factor(indices[-1])} ^ {_factor(turn)}"))
    return found


def _source_bits(writing: Writing, change: XorSwizzle, indices: Sequence[str]) -> str | None:
    """`offset // every % (1 << bits)` in terms of an element's indices; None if it depends on more than one
    index.
    """
    extents = writing.declaration.shape.extents
    unit = writing.declaration.shape.element  # bytes per step of the index
    for level in range(len(extents) - 1, -1, -1):
        if change.every < unit * extents[level] or level == 0:
            break
        unit *= extents[level]
    extent, index, rows = extents[level], indices[level], change.every // unit
    whole = level == 0 or extent % (rows << change.bits) == 0  # higher indices change none of the bits
    if change.every % unit or rows & (rows - 1) or not whole:
        return None
    shift = rows.bit_length() - 1
    shifted = f"{_factor(index)} >> {shift}" if shift else index
    if extent <= rows << change.bits and _in_every_launch(writing, writing.declaration.extents[level]):
        return shifted  # the index has no other bits
    return f"{shifted if shift else _factor(index)} & {(1 << change.bits) - 1}"


def _in_every_launch(writing: Writing, extent: Span) -> bool:
    """Whether an extent is the same in every launch and every instance of a template."""
    own = constants(writing.code)
    names = re.findall(r"[A-Za-z_]\w*", _text(writing, extent))
    return not writing.declaration.dynamic and all(name in own for name in names)


def _padding_in(writing: Writing, extent: Span) -> Span | None:
    """The value of a constant in the extent whose name says that it is a padding."""
    for name in re.findall(r"[A-Za-z_]\w*", _text(writing, extent)):
        if re.search(r"(?i)pad|skew", name):
            return definition(writing.text, name)
    return None


def _grown(writing: Writing, span: Span, added: int) -> Replacement:
    """Increase a constant's value."""
    old = _text(writing, span)
    return Replacement(*span, str(int(old) + added)) if old.isdecimal() else _plus(writing, span, added)


def _plus(writing: Writing, span: Span, added: int) -> Replacement:
    """Add to an expression."""
    return Replacement(*span, f"{_term(_text(writing, span).strip())} + {added}")


def _room(writing: Writing, extra: int) -> list[Replacement]:
    """Increase the last extent by so many bytes."""
    more = -(-extra // writing.declaration.shape.element)
    if writing.declaration.dynamic:
        return []  # its size is set by the launch
    return [_plus(writing, writing.declaration.extents[-1], more)] if more else []


def _term(expression: str) -> str:
    """The expression as a term of a sum."""
    return expression if ARITHMETIC.fullmatch(expression) else f"({expression})"


def _factor(expression: str) -> str:
    """The expression as an operand of any operator."""
    return expression if re.fullmatch(r"[\w.]+", expression) else f"({expression})"


def _text(writing: Writing, span: Span) -> str:
    return writing.text[slice(*span)]
