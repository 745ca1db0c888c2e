"""The arrays that a user declares: `array[indices]` is an element that can be accessed."""

from __future__ import annotations

from typing import Any, ClassVar

from memsim.sketch.array import LayoutLike, SketchArray
from memsim.sketch.element import Element

#: Default alignment of an array in bytes. In shared memory it changes no count; in global memory it is that
#: of `cudaMalloc` (CUDA C++ Programming Guide, "Device Memory Accesses").
SHARED_ALIGN, GLOBAL_ALIGN = 16, 256


class Indexed(SketchArray):
    """An array whose elements can be accessed."""

    def __getitem__(self, index: Any) -> Element:
        """The element that each thread accesses. `index`: an integer or an array of them for each axis."""
        return Element(self, index if isinstance(index, tuple) else (index,))


class SharedArray(Indexed):
    """An array in a block's shared memory.

    Args:
        name: used in reports.
        layout: extents, which means row-major, as `(32, 33)`; a `Layout`; or one in CuTe's notation.
        dtype: of an element: `f32`, `bf16`, `u8`, CUDA's name (`half`, `float4`) or numpy's.
        offset: its first byte in the block's shared memory; None: after the arrays accessed before it.
        align: alignment in bytes if `offset` is None.

    Raises:
        MemsimError: unknown type or layout.
    """

    space: ClassVar[str] = "shared"

    def __init__(
        self,
        name: str,
        layout: LayoutLike,
        dtype: Any = "f32",
        *,
        offset: int | None = None,
        align: int = SHARED_ALIGN,
    ) -> None:
        super().__init__(name, layout, dtype, offset, align)


class GlobalArray(Indexed):
    """An array in global memory, at a multiple of 256 bytes. Arguments: as `SharedArray`."""

    space: ClassVar[str] = "global"

    def __init__(self, name: str, layout: LayoutLike, dtype: Any = "f32") -> None:
        super().__init__(name, layout, dtype, None, GLOBAL_ALIGN)
