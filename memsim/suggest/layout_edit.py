"""A layout change as an edit of the source that declares the array.

There is no edit if the change cannot be written by rules: an index is not explicit in the source, a part of a
row corresponds to no index, or the declaration was not found. Whether the edited source computes the same is
checked by running it.

Extents and indices stay in the source's own symbols, so that an edit holds for other values of them too;
where it needs a multiple, it brings a `static_assert`. `memsim.suggest.other_values` tries other values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from memsim.source.values import definition, value_of
from memsim.suggest.c_text import (
    factor,
    factors,
    fold_constants,
    names_in,
    padded_index,
    plus,
    term,
    xored_index,
)
from memsim.suggest.edit import Edit, Replacement
from memsim.suggest.maps import Map, Padding, XorSwizzle
from memsim.suggest.uses import Span, Use
from memsim.suggest.writing import Writing

# Names of constants meant to be changed: a row stride or a padding.
KNOB = re.compile(r"(?i)^(ld[a-z]?\d?|.*(stride|pitch|pad|skew).*)$")
FRAGMENT = 16  # elements of a row of a tile for tensor cores
# A factor of a product: a name or number, or a sum in parentheses.
_FACTOR = re.compile(r"(?<=\*)\s*(?:\w+\b|\([^()]*\))(?!\s*[\[(])|(?:\b\w+|(?<![\w\]\s])\([^()]*\))\s*(?=\*)")


def edit(writing: Writing, change: Map, extra: int) -> Edit | None:
    """The change in the source; None if it cannot be written. extra: bytes by which the array grows."""
    ways = (
        _padded(writing, change, extra)
        if isinstance(change, Padding)
        else iter([_from_beginnings(writing, _swizzled_index(writing, change))])
    )
    replacements = next(filter(None, ways), None)
    if replacements is None:
        return None
    extents = writing.declaration.extents
    for each in tuple(replacements):
        levels = [level for level, span in enumerate(extents) if span == (each.start, each.end)]
        replacements += [
            Replacement(*twin[level], each.new) for twin in writing.finder.twins for level in levels
        ]
    sizes = ("blockDim.x", "blockDim.y") if writing.declaration.dynamic else ()
    made = Edit(
        writing.file,
        writing.text,
        tuple(sorted(replacements, key=lambda each: each.start)),
        writing.unseen,
        (*names_in(*(_text(writing, span) for span in writing.spans)), *sizes),
        brings_launch=bool(writing.launches),
        declared=writing.code.find(";", extents[-1][1]) + 1,
    )
    condition = "" if isinstance(change, Padding) else _condition(writing, change)
    return made.asserting(condition) if condition else made


def _padded(writing: Writing, change: Padding, extra: int) -> Iterator[list[Replacement] | None]:
    """The ways to write a padding, the simplest first."""
    yield _wider_extent(writing, change)
    yield _other_constant(writing, change)
    yield _other_stride(writing, change, extra)
    yield _from_beginnings(writing, _spread_index(writing, change, extra))
    yield _behind_accessor(writing, change, extra)


def _from_beginnings(writing: Writing, found: list[Replacement] | None) -> list[Replacement] | None:
    """With the declarations of pointers that move, whose uses are indices of what they began at."""
    return found and [*found, *(Replacement(*span, new) for span, new, _ in writing.moving)]


def _wider_extent(writing: Writing, change: Padding) -> list[Replacement] | None:
    """Longer rows: `[BM]` becomes `[BM + 4]`, or the `PAD` in it grows."""
    shape, spans = writing.declaration.shape, writing.declaration.extents
    for level in range(1, len(spans)):
        row, unit = (prod(shape.extents[start:]) * shape.element for start in (level, level + 1))
        if row == change.every and change.by % unit == 0:
            added = change.by // unit
            knob = _padding_in(writing, spans[level])
            if knob is not None:
                return [_grown(writing, knob, added)]
            pitches = _pitches(writing, change)
            return None if pitches is None else [_plus(writing, spans[level], added), *pitches]
    return None


def _pitches(writing: Writing, change: Padding) -> list[Replacement] | None:
    """How far rows are said to be apart, of whole rows of the padding; None if one is not."""
    found = []
    for use in writing.uses:
        if use.pitch is None:
            continue
        length = value_of(_text(writing, use.pitch), writing.constants)
        if length is None or length * use.unit % change.every or change.by % 16:
            return None
        if min(length, FRAGMENT) * use.unit > change.every:
            return None  # a row has a gap in it
        more = length * use.unit // change.every * change.by // use.unit
        found.append(_grown(writing, use.pitch, more))
    return found


def _other_constant(writing: Writing, change: Padding) -> list[Replacement] | None:
    """The constant in `s_a[BK * LDA]` that is the row length grows."""
    element = writing.declaration.shape.element
    if len(writing.declaration.extents) != 1 or change.every % element or change.by % element:
        return None
    known = writing.constants
    for name in names_in(_text(writing, writing.declaration.extents[0])):
        if KNOB.match(name) and known.get(name) == change.every // element:
            place = definition(writing.text, name)
            if place is not None:
                return [_grown(writing, place, change.by // element)]
    return None


def row_factors(writing: Writing) -> list[int]:
    """Bytes of the rows that every index of a one-dimensional array multiplies by."""
    unit = _unit(writing)
    if not unit:
        return []
    in_each = [{size for _, _, size in _factors_in(writing, use.indices[0])} for use in writing.indexed]
    return sorted(size * unit for size in set.intersection(*in_each) if size > 1)


def _unit(writing: Writing) -> int:
    """Bytes by which every index of a one-dimensional array counts; 0 of another one."""
    units = {use.unit for use in writing.indexed}
    alike = writing.elements and len(writing.declaration.extents) == 1 and len(units) == 1
    return units.pop() if alike else 0


def _factors_in(writing: Writing, index: Span) -> list[tuple[Span, str, int]]:
    """Each factor of known value in an index: its place, what replaces it (of a shift ` * {}`), its value."""
    text, found = writing.code[slice(*index)], []
    for match in _FACTOR.finditer(text):
        value = value_of(match[0], writing.constants)
        if value is not None:
            start = index[0] + match.end() - len(match[0].lstrip())
            found.append(((start, start + len(match[0].strip())), "{}", value))
    for match in re.finditer(r"\s*<<\s*(\d+)(?=\s*\))", text):
        found.append(((index[0] + match.start(), index[0] + match.end()), " * {}", 1 << int(match[1])))
    return found


def _other_stride(writing: Writing, change: Padding, extra: int) -> list[Replacement] | None:
    """The factor in every index `row * 16 + column` changes, and the array grows."""
    unit = _unit(writing)
    if not unit or change.every % unit or change.by % unit:
        return None
    if not writing.declaration.dynamic and unit != writing.declaration.shape.element:
        return None
    every, added = change.every // unit, change.by // unit
    found, strides = [], set()
    for use in writing.indexed:
        places = [each for each in _factors_in(writing, use.indices[0]) if each[2] == every]
        of_rows = len(factors(_flat(writing, use.indices[0]))) > 1  # `N * N`: rows as long as there are rows
        if len(places) != 1 and not (places and of_rows):
            return None
        place, form, _ = places[-1]
        stride = str(every) if form != "{}" else " ".join(_text(writing, place).split())
        strides.add(stride)
        found.append(Replacement(*place, form.format(_more(stride, added))))
    pitches = _pitches(writing, change)
    if pitches is None or len(strides) != 1:
        return None
    return [*found, *pitches, *_room(writing, change, strides.pop(), added, extra)]


def _spread_index(writing: Writing, change: Padding, extra: int) -> list[Replacement] | None:
    """The last index skips unused elements after every piece of a row: `i` becomes `i + i / 32 * 4`."""
    shape = writing.declaration.shape
    row = shape.extents[-1] * shape.element
    in_rows = len(shape.extents) == 1 or (change.every < row and row % change.every == 0)
    if not writing.elements or not in_rows or change.every % shape.element or change.by % shape.element:
        return None
    if any(change.every % use.unit or change.by % use.unit for use in writing.indexed):
        return None
    every, by = change.every // shape.element, change.by // shape.element
    found: list[Replacement] = []
    for use in writing.indexed:
        index = _last_index(writing, use)
        found += _rewritten(
            writing, use, padded_index(index, change.every // use.unit, change.by // use.unit)
        )
    pitches = _pitches(writing, change)
    if pitches is None:
        return None
    if len(shape.extents) > 1:
        extra = row // change.every * change.by
    return [*found, *pitches, *_room(writing, change, str(every), by, extra)]


def _behind_accessor(writing: Writing, change: Padding, extra: int) -> list[Replacement] | None:
    """A class stands between the kernel and a dynamic array that functions are given."""
    if writing.accessor is None or change.every % 16 or change.by % 16:
        return None
    room = _room(writing, change, str(change.every), change.by, extra)
    return [*writing.accessor.replacements(writing.tile, change), *room]


def _swizzled_index(writing: Writing, change: XorSwizzle) -> list[Replacement] | None:
    """The last index is XORed with bits of the row or with higher bits of itself."""
    shape = writing.declaration.shape
    rows = any(use.pitch is not None for use in writing.uses)  # that stay apart as they are
    if not writing.elements or rows or shape.extents[-1] * shape.element % change.piece:
        return None
    found: list[Replacement] = []
    for use in writing.indexed:
        to = change.base - (use.unit.bit_length() - 1)
        indices = [*(_flat(writing, span) for span in use.indices[:-1]), _last_index(writing, use)]
        if to < 0 or change.every % use.unit:
            return None
        source = _source_bits(writing, change, indices, use.unit)
        if source is None:
            return None
        turn = f"({source}) << {to}" if to and " " in source else f"{source} << {to}" if to else source
        found += _rewritten(writing, use, xored_index(indices[-1], turn))
    if writing.declaration.dynamic:  # whole pieces, whatever the launch's size is
        found += [
            Replacement(*span, f" {_rounded_up(_text(writing, span).strip(), change.piece)}")
            for span in writing.launches
        ]
    return found


def _rounded_up(size: str, period: int) -> str:
    """`(n + 127) / 128 * 128`; a number that is a multiple stays."""
    number = value_of(size, {})
    if number is not None and number % period == 0:
        return size
    return f"({term(size)} + {period - 1}) / {period} * {period}"


def _source_bits(writing: Writing, change: XorSwizzle, indices: Sequence[str], unit: int) -> str | None:
    """`offset // every % (1 << bits)` in terms of an element's indices, the last one of `unit` bytes.

    None if it depends on more than one index.
    """
    extents = writing.declaration.shape.extents
    extents = (*extents[:-1], extents[-1] * writing.declaration.shape.element // unit)
    for level in range(len(extents) - 1, -1, -1):
        if change.every < unit * extents[level] or level == 0:
            break
        unit *= extents[level]
    extent, index, rows = extents[level], indices[level], change.every // unit
    whole = level == 0 or extent % (rows << change.bits) == 0  # higher indices change none of the bits
    if change.every % unit or rows & (rows - 1) or not whole:
        return None
    shift = rows.bit_length() - 1
    shifted = f"{factor(index)} >> {shift}" if shift else index
    if extent <= rows << change.bits and _is_number(writing, writing.declaration.extents[level]):
        return fold_constants(shifted)  # the index has no other bits
    return fold_constants(f"{shifted if shift else factor(index)} & {(1 << change.bits) - 1}")


def _condition(writing: Writing, change: XorSwizzle) -> str:
    """What a swizzle needs in order to stay in its row; "" if the row has a number for its length."""
    row = writing.declaration.extents[-1]
    multiple = change.piece // writing.declaration.shape.element
    if writing.declaration.dynamic or _is_number(writing, row):
        return ""
    return f"{factor(_text(writing, row).strip())} % {multiple} == 0"


def _is_number(writing: Writing, extent: Span) -> bool:
    """Whether an extent is the same in every launch, whatever is defined elsewhere."""
    return not writing.declaration.dynamic and not names_in(_text(writing, extent))


def _padding_in(writing: Writing, extent: Span) -> Span | None:
    """The value of a constant in the extent whose name says that it is a padding."""
    for name in names_in(_text(writing, extent)):
        if re.search(r"(?i)pad|skew", name):
            return definition(writing.text, name)
    return None


def _grown(writing: Writing, span: Span, added: int) -> Replacement:
    old = _text(writing, span)
    return Replacement(*span, str(int(old) + added)) if old.isdecimal() else _plus(writing, span, added)


def _more(expression: str, added: int) -> str:
    """A factor that is increased: `33`, `(N + 1)`, `(2 * N + 1)` of `(2 * N)`."""
    inside = expression[1:-1] if expression.startswith("(") else expression
    return str(int(expression) + added) if expression.isdecimal() else f"({plus(inside, added)})"


def _plus(writing: Writing, span: Span, added: int) -> Replacement:
    return Replacement(*span, plus(_text(writing, span).strip(), added))


def _room(writing: Writing, change: Padding, stride: str, added: int, extra: int) -> list[Replacement]:
    """Room in the last extent for `added` elements after every row of `stride`.

    A factor that is the stride grows: `N * N` becomes `N * (N + 1)`. A number grows by `extra` bytes, and any
    other extent by a part of itself.
    """
    if writing.declaration.dynamic:  # its size is set by the launch
        grows = change.by / change.every
        return [
            Replacement(*span, f" {padded_index(_text(writing, span).strip(), stride, added)}", grows)
            for span in writing.launches
        ]
    span = writing.declaration.extents[-1]
    text = _text(writing, span).strip()
    parts = factors(text)
    if stride in parts[1:]:
        last = len(parts) - 1 - parts[::-1].index(stride)
        parts[last] = _more(stride, added)
        return [Replacement(*span, " * ".join(parts))]
    if _is_number(writing, span):
        more = -(-extra // writing.declaration.shape.element)
        return [_plus(writing, span, more)] if more else []
    return [Replacement(*span, padded_index(text, stride, added))]


def _flat(writing: Writing, index: Span) -> str:
    """An index in a line."""
    text = _text(writing, index)
    return " ".join(writing.code[slice(*index)].split()) if "\n" in text else text.strip()


def _last_index(writing: Writing, use: Use) -> str:
    """The last index of a use; of a pointer that moves, from what it began at."""
    index = _flat(writing, use.indices[-1])
    if not use.base:
        return index
    name = _text(writing, use.name)
    return name if index in ("", "0") else f"{name} + {term(index)}"


def _rewritten(writing: Writing, use: Use, new: str) -> list[Replacement]:
    """The last index of a use becomes `new`, which has it in it: one on several lines keeps them."""
    index = use.indices[-1]
    code = writing.code[slice(*index)]
    is_term = writing.code[: index[0]].rstrip().endswith("+") or use.base
    if use.base and writing.code[: index[0]].rstrip().endswith("["):
        return [Replacement(*use.name, use.base), Replacement(*index, new)]
    new = term(new) if is_term else new
    if use.base:
        sum_ = f"{use.base} + {new}"
        alone = index[0] == index[1]
        return [Replacement(use.name[0], index[1], f"({sum_})" if alone else sum_)]
    if "\n" not in code:
        return [Replacement(*index, new)]
    start, end = index[1] - len(code.lstrip()), index[0] + len(code.rstrip())
    before, _, after = new.partition(_flat(writing, index))
    return [Replacement(place, place, text) for place, text in ((start, before), (end, after)) if text]


def _text(writing: Writing, span: Span) -> str:
    return writing.text[slice(*span)]
