"""A layout: a function from coordinates to offsets in elements; and the composition of two.

Most of CuTe's algebra (divisions, products, complements) is not implemented. Source of the rule of
composition: CUTLASS, media/docs/cpp/cute/02_layout_algebra.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memsim.errors import MemsimError
from memsim.layout.named import read_named
from memsim.layout.notation import Nested, as_nested, congruent, leaves, like, parse, size, text
from memsim.layout.swizzle import MOST_BITS, Swizzle

#: A shape and its strides.
Strided: TypeAlias = tuple[Nested, Nested]
Mode = tuple[int, int]


def compose(outer: Strided, inner: Strided) -> Strided | None:
    """The modes of `inner`, each walking through `outer`; None if they do not divide its shape."""
    modes = _coalesced(*outer)

    def walk(shape: Nested, stride: Nested) -> Strided | None:
        if isinstance(shape, int) or isinstance(stride, int):
            assert isinstance(shape, int)
            assert isinstance(stride, int)
            found = _steps(modes, shape, stride)
            if found is None:
                return None
            if len(found) == 1:
                return found[0]
            return tuple(extent for extent, _ in found), tuple(step for _, step in found)
        pairs = [walk(*each) for each in zip(shape, stride, strict=True)]
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(pairs):
            return None
        return tuple(pair[0] for pair in known), tuple(pair[1] for pair in known)

    return walk(*inner)


def _coalesced(shape: Nested, stride: Nested) -> list[Mode]:
    """Shape and strides as a function of one number, with as few modes as possible."""
    modes: list[Mode] = []
    for extent, step in zip(leaves(shape), leaves(stride)):
        if extent == 1:
            continue
        if modes and modes[-1][0] * modes[-1][1] == step:
            modes[-1] = modes[-1][0] * extent, modes[-1][1]
        else:
            modes.append((extent, step))
    return modes or [(1, 0)]


def _steps(modes: list[Mode], count: int, step: int) -> list[Mode] | None:
    """The modes that `count` numbers with stride `step` walk through; None if the modes are not divisible."""
    if step == 0 or count == 1:
        return [(count, 0)]
    found: list[Mode] = []
    for number, (extent, stride) in enumerate(modes):
        last = number == len(modes) - 1
        if not last and step % extent == 0:  # this mode is skipped as a whole
            step //= extent
            continue
        if not last and extent % step:
            return None
        room = count if last else min(extent // step, count)
        if count % room:
            return None
        if room > 1:
            found.append((room, stride * step))
        count //= room
        if count == 1:
            break
        step = 1
    return found or [(1, 0)]


#: Larger layouts get no table of all offsets.
LARGEST_TABLE = 1 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """`swizzle(offset + coordinate * stride)`, in CuTe's terms `Sw<B,M,S> o offset o shape:stride`.

    shape: an int, or a tuple of ints and tuples; its top level are the modes, the axes of an array. stride:
    in elements, nested as `shape`; CuTe's default if omitted: the first mode is contiguous. `str(layout)` is
    CuTe's notation, and `Layout.parse` reads it.

    Raises:
        MemsimError: extents that are not positive, strides that do not match the shape, or more elements than
            memory has bytes.
    """

    shape: Nested
    stride: Nested = ()
    swizzle: Swizzle | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        shape = as_nested(self.shape, "shape")
        if shape == () or any(extent < 1 for extent in leaves(shape)):
            raise MemsimError(f"extents must be positive, unlike those of {text(shape)}")
        stride = _compact(shape) if self.stride == () else as_nested(self.stride, "stride")
        if not congruent(shape, stride):
            raise MemsimError(
                f"the strides {text(stride)} do not match the shape {text(shape)}",
                hint="give one stride for each extent, with the same nesting",
            )
        span = sum((n - 1) * abs(step) for n, step in zip(leaves(shape), leaves(stride)))
        if max(abs(self.offset) + span, size(shape)) >= 1 << MOST_BITS:
            raise MemsimError("a layout has at most 2**47 elements, and spans as many")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)

    # --- constructors

    @classmethod
    def row_major(cls, *extents: int) -> Layout:
        """The last mode is contiguous, as in C: `row_major(8, 64)` is `(8,64):(64,1)`."""
        return cls(extents, tuple(prod(extents[i + 1 :]) for i in range(len(extents))))

    @classmethod
    def column_major(cls, *extents: int) -> Layout:
        """The first mode is contiguous, as in Fortran: `column_major(8, 64)` is `(8,64):(1,8)`."""
        return cls(extents, _compact(extents))

    @classmethod
    def padded(cls, *extents: int, pad: int = 1) -> Layout:
        """Row-major, with `pad` unused elements after each row: `padded(32, 32)` is `(32,32):(33,1)`."""
        stride = Layout.row_major(*extents[:-1], extents[-1] + pad).stride
        return cls(extents, stride)

    @classmethod
    def xor(cls, rows: int, columns: int, chunk: int = 1, rows_per_step: int = 1) -> Layout:
        """Row-major, with the chunks of a row permuted: `c` of row `r` lies at `c ^ (r / rows_per_step) *
        chunk`.

        The XOR stays inside the row. All arguments but `rows` are powers of two; `chunk`: elements that stay
        together.

        Raises:
            MemsimError: not a power of two, or a row has fewer than two chunks.
        """
        wide, low, up = (_power(n, f"a layout {rows} x {columns}") for n in (columns, chunk, rows_per_step))
        if low >= wide:
            raise MemsimError(f"a row of {columns} elements has fewer than two chunks of {chunk}")
        bits = wide - low
        return replace(Layout.row_major(rows, columns), swizzle=Swizzle(bits, low, bits + up))

    @classmethod
    def z_order(cls, rows: int, columns: int) -> Layout:
        """Morton order: the bits of row and column alternate, the column's lowest bit first.

        Extra bits of the longer side come last.

        Raises:
            MemsimError: a side is not a power of two.
        """
        down, across = (_power(n, f"a z-order {rows} x {columns}") for n in (rows, columns))
        turns = zip_longest(range(across), range(down))
        order = [(axis, bit) for pair in turns for axis, bit in zip("xy", pair) if bit is not None]
        place = {which: 1 << position for position, which in enumerate(order)}
        sides = (("y", down), ("x", across))
        shape = tuple((2,) * bits or 1 for _, bits in sides)
        stride = tuple(tuple(place[axis, bit] for bit in range(bits)) or 0 for axis, bits in sides)
        return cls(shape, stride)

    @classmethod
    def parse(cls, text: str) -> Layout:
        """A layout from CuTe's notation, such as `Sw<3,4,3> o (8,64):(64,1)`; from extents, a padding or an
        XOR, as `32x32`, `32x32 pad 1`, `32x32 xor 4`; or from extents and Triton's words for a shared layout.

        Raises:
            MemsimError: it is not one; with a caret under the place.
        """
        return cls(*(read_named(text) or parse(text)))

    # --- properties

    def __str__(self) -> str:
        """CuTe's notation."""
        parts = [] if self.swizzle is None else [str(self.swizzle)]
        parts += [str(self.offset)] if self.offset else []
        return " o ".join([*parts, f"{text(self.shape)}:{text(self.stride)}"])

    @property
    def modes(self) -> tuple[Nested, ...]:
        """The shapes of its modes."""
        return self.shape if isinstance(self.shape, tuple) else (self.shape,)

    @property
    def extents(self) -> tuple[int, ...]:
        """The number of coordinates of each mode: the array's shape as indexed."""
        return tuple(map(size, self.modes))

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return size(self.shape)

    @property
    def footprint(self) -> int:
        """The elements of memory that it spans: its largest offset plus one."""
        inner = self.offset + sum(
            (n - 1) * max(step, 0) for n, step in zip(leaves(self.shape), leaves(self.stride))
        )
        return inner + 1 if self.swizzle is None else int(self.table().max()) + 1

    @property
    def is_injective(self) -> bool:
        """Whether no two coordinates share an offset."""
        return len(np.unique(self.table())) == self.size

    # --- evaluation

    def __call__(self, *coordinate: Any) -> Any:
        """Offsets, in elements, of coordinates inside the shape.

        Args:
            coordinate: one for each mode: an int, an array of ints (broadcast together), or for a nested mode
                a tuple. A single one for several modes counts through all of them, the first fastest, as in
                CuTe.

        Raises:
            MemsimError: the number of coordinates differs from that of the modes.
        """
        modes = len(self.modes)
        if len(coordinate) not in (1, modes):
            raise MemsimError(f"{len(coordinate)} coordinates for the {modes} modes of {self}")
        inner = _dot(coordinate[0] if len(coordinate) == 1 else coordinate, self.shape, self.stride)
        inner = inner + self.offset if self.offset else inner
        return inner if self.swizzle is None else self.swizzle(inner)

    def table(self) -> NDArray[np.int64]:
        """The offset of every coordinate, the first mode fastest: int64 [size]."""
        return np.asarray(self(np.arange(self.size)), np.int64)

    def coordinate(self, offset: int) -> tuple[int, ...] | None:
        """The coordinate, an int for each mode, at an offset (the first of several).

        None if there is none, or if the layout is too large to search.
        """
        if self.size > LARGEST_TABLE:
            return None
        place = _places(self).get(offset)
        return None if place is None else _unravel(place, self.extents)

    # --- other layouts

    def swizzled(self, bits: int, base: int, shift: int) -> Layout:
        """The layout swizzled by `Sw<bits,base,shift>`.

        Raises:
            MemsimError: it is already swizzled.
        """
        if self.swizzle is not None:
            raise MemsimError(f"{self} is already swizzled")
        return replace(self, swizzle=Swizzle(bits, base, shift))

    def compose(self, inner: Layout) -> Layout:
        """`self o inner`: the layout that gives `self(inner(c))` for every `c`, as CuTe's `composition`.

        Raises:
            MemsimError: `inner` is swizzled or has an offset, its extents and strides do not divide the
                shape, or the result is not a shape with strides.
        """
        if inner.swizzle is not None or inner.offset:
            raise MemsimError(f"{inner} cannot be the inner layout: it is more than a shape with strides")
        found = compose((self.shape, self.stride), (inner.shape, inner.stride))
        if found is None:
            raise MemsimError(f"{inner} does not divide the shape of {self}")
        made = replace(self, shape=found[0], stride=found[1])
        # Modes are composed one by one, which is right only if their sums do not carry into the next mode.
        if made.size <= LARGEST_TABLE and not np.array_equal(made.table(), self(inner.table())):
            raise MemsimError(f"{self} o {inner} is not a shape with strides")
        return made

    def tiled(self, *extents: int) -> Layout:
        """Repeat it to a larger array, the first mode first, as CuTe's `tile_to_shape`.

        Raises:
            MemsimError: the extents are not multiples of its own.
        """
        own = self.extents
        if len(extents) != len(own) or any(n % m for n, m in zip(extents, own)):
            raise MemsimError(f"{extents} is not a multiple of the tile {own}")
        counts = [n // m for n, m in zip(extents, own)]
        step = replace(self, swizzle=None, offset=0).footprint
        steps = [step * prod(counts[:i]) for i in range(len(counts))]
        strides = self.stride if isinstance(self.stride, tuple) else (self.stride,)
        shape = tuple(zip(self.modes, counts, strict=True))
        return replace(self, shape=shape, stride=tuple(zip(strides, steps, strict=True)))


def _compact(shape: Nested) -> Nested:
    """Strides without gaps, the first extent contiguous."""

    def steps() -> Iterator[int]:
        step = 1
        for extent in leaves(shape):
            yield step
            step *= extent

    return like(shape, steps())


def _dot(coordinate: Any, shape: Nested, stride: Nested) -> Any:
    """The inner product of a coordinate, split as far as the shape, with the strides."""
    if isinstance(shape, int) or isinstance(stride, int):
        if isinstance(coordinate, tuple):
            raise MemsimError(f"the coordinate {coordinate} is nested deeper than the shape {text(shape)}")
        return coordinate * stride
    if isinstance(coordinate, tuple):
        if len(coordinate) != len(shape):
            raise MemsimError(f"the coordinate {coordinate} does not match the shape {text(shape)}")
        parts = coordinate
    else:
        parts = _split(coordinate, [size(item) for item in shape])
    return sum(_dot(*each) for each in zip(parts, shape, stride, strict=True))


def _split(number: Any, extents: list[int]) -> tuple[Any, ...]:
    """A number as one coordinate for each extent, the first fastest; the last takes any excess."""
    parts = []
    for extent in extents[:-1]:
        parts.append(number % extent)
        number = number // extent
    return (*parts, number)


def _unravel(number: int, extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(part) for part in _split(number, list(extents)))


@lru_cache(maxsize=32)
def _places(layout: Layout) -> dict[int, int]:
    """Offset -> the first coordinate there, as one number."""
    table = layout.table().tolist()
    return dict(zip(reversed(table), range(len(table) - 1, -1, -1)))


def _power(number: int, what: str) -> int:
    """The exponent of a power of two."""
    if number < 1 or number & (number - 1):
        raise MemsimError(f"{what} needs powers of two, unlike {number}")
    return number.bit_length() - 1
