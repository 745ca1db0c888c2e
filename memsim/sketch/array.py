"""An array of a sketch: a name, a layout, a type and an offset."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from memsim.errors import MemsimError
from memsim.layout import Layout
from memsim.source.expressions import ELEMENT_BYTES

LayoutLike: TypeAlias = Layout | str | int | Sequence[int]

SHORT = re.compile(r"(?:[fiub]|bf|tf)(8|16|32|64|128)")


@dataclass(frozen=True, init=False)
class SketchArray:
    """An array whose elements are placed by a layout.

    name: used in reports. layout: element offsets. dtype: the element type. offset: its first byte in its
    space; None: after the arrays that were accessed before it, at a multiple of `align`.
    """

    space: ClassVar[str] = ""

    name: str
    layout: Layout
    dtype: str
    offset: int | None
    align: int

    def __init__(self, name: str, layout: LayoutLike, dtype: Any, offset: int | None, align: int) -> None:
        fields = {
            "name": name,
            "layout": layout_of(layout),
            "dtype": dtype if isinstance(dtype, str) else np.dtype(dtype).name,
            "offset": offset,
            "align": align,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)
        element_bytes(self.dtype)
        for what, least in ((0 if offset is None else offset, 0), (align, 1)):
            if not isinstance(what, int) or what < least:
                raise MemsimError(f"{name}: {what!r} is not a number of bytes")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of its indices."""
        return self.layout.extents

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return element_bytes(self.dtype)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self.dtype.lstrip("_").startswith(("f", "bf", "tf", "half", "double", "nv_bf"))

    @property
    def nbytes(self) -> int:
        """Size in bytes, padding included."""
        return self.layout.footprint * self.itemsize


def layout_of(value: LayoutLike) -> Layout:
    """A layout as it is, from its notation, or row-major from extents.

    Raises:
        MemsimError: none of these.
    """
    if isinstance(value, Layout):
        return value
    if isinstance(value, str):
        return Layout.parse(value)
    if isinstance(value, (int, np.integer)):
        return Layout.row_major(int(value))
    if isinstance(value, Sequence):
        return Layout.row_major(*value)
    raise MemsimError(
        f"{value!r} is neither extents nor a layout",
        hint='such as (32, 33), memsim.Layout.padded(32, 32) or "Sw<3,3,3> o (8,64):(64,1)"',
    )


def element_bytes(dtype: str) -> int:
    """Bytes of a type.

    Raises:
        MemsimError: unknown type.
    """
    short = SHORT.fullmatch(dtype)
    if short:
        return int(short[1]) // 8
    if dtype in ELEMENT_BYTES:
        return ELEMENT_BYTES[dtype]
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        raise MemsimError(
            f"there is no type {dtype!r}", hint="such as f32, bf16, u8, float4 or float32"
        ) from None
