"""What a sketch names: arrays (a name, a layout, a type and an offset), of which `array[indices]` is an
element, and an element's operations: load, store, atomics and copies, reported to the running sketch
(`memsim.sketch.execute`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.layout import Layout
from memsim.layout.notation import leaves
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

    def __init__(
        self, name: str, layout: LayoutLike, dtype: DTypeLike, offset: int | None, align: int
    ) -> None:
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
        steps = zip(leaves(self.layout.shape), leaves(self.layout.stride))
        if self.layout.offset + sum((n - 1) * min(step, 0) for n, step in steps) < 0:
            raise MemsimError(f"{name}: {self.layout} has elements before the first one")
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
        found = np.dtype(dtype).itemsize
    except (TypeError, ValueError):
        found = 0
    if found == 0:
        raise MemsimError(f"there is no type {dtype!r}", hint="such as f32, bf16, u8, float4 or float32")
    return found


#: Bytes of a row of an 8x8 matrix of 16-bit elements, as ldmatrix and stmatrix address it.
MATRIX_ROW = 16

#: Default alignment of an array in bytes. In shared memory it changes no count; in global memory it is that
#: of `cudaMalloc` (CUDA C++ Programming Guide, "Device Memory Accesses").
SHARED_ALIGN, GLOBAL_ALIGN = 16, 256

ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc")


@dataclass(frozen=True, slots=True)
class Element:
    """One element per thread: `tile[t.y, t.x]`. Each method is one instruction of the warp.

    vector: contiguous elements that a lane accesses at once, as `float4` does. mask: the threads that take
    part, a bool or an array of them; default: all that reach this line.
    """

    array: SketchArray
    index: tuple[object, ...]

    def load(self, *, vector: int = 1, mask: ArrayLike = True) -> None:
        """Each thread reads its element.

        Raises:
            MemsimError: as in every method here: an index outside of the array, a misaligned address,
                elements that are not contiguous; with the line, the thread and the index.
        """
        self._access("load", vector, mask)

    def store(self, *, vector: int = 1, mask: ArrayLike = True) -> None:
        """Each thread writes its element."""
        self._access("store", vector, mask)

    def atomic(self, operation: str = "add", *, mask: ArrayLike = True) -> None:
        """Each thread updates its element and reads the old value.

        operation: add, min, max, and, or, xor, exch, cas; in shared memory also inc: adding the constant 1
        with an unused result, which has an instruction of its own. Atomics that compile to a loop in shared
        memory (floating-point additions, 64-bit operations except exch and cas) are shown as not analyzed.
        """
        self._access(_atomic(self.array, operation, "atomic"), 1, mask)

    def reduction(self, operation: str = "add", *, mask: ArrayLike = True) -> None:
        """Each thread updates its element without reading the old value; as `atomic`."""
        self._access(_atomic(self.array, operation, "reduction"), 1, mask)

    def ldmatrix(self, count: Literal[1, 2, 4] = 4, *, mask: ArrayLike = True) -> None:
        """A warp reads `count` 8x8 matrices of 16-bit elements; lanes 0 to `8 * count - 1` address their
        rows.

        The element is the first of a contiguous row of 16 bytes; indices in other lanes do not matter.
        """
        self._matrix("ldmatrix", count, mask)

    def stmatrix(self, count: Literal[1, 2, 4] = 4, *, mask: ArrayLike = True) -> None:
        """A warp writes `count` 8x8 matrices of 16-bit elements; as `ldmatrix`."""
        self._matrix("stmatrix", count, mask)

    def cp_async(
        self,
        source: Element,
        *,
        vector: int = 1,
        mask: ArrayLike = True,
        read: ArrayLike = True,
        bypass: bool = False,
    ) -> None:
        """Each thread copies from an element in global memory to this one, bypassing the registers.

        read: the threads that read; the others that take part write zeros (a source size of 0). bypass:
        bypass the L1 cache too, as `.cg` does; then a thread copies 16 bytes.
        """
        if self.array.space != "shared" or source.array.space != "global":
            raise MemsimError(
                "cp.async copies from global to shared memory: shared[...].cp_async(global[...])"
            )
        current("cp_async").copy(
            ElementAccess(self, "cp_async_cg" if bypass else "cp_async", vector, mask), source, read
        )

    def _matrix(self, access: str, count: int, mask: ArrayLike) -> None:
        if self.array.space != "shared":
            raise MemsimError(f"{access} works on shared memory, but {self.array.name} is in global memory")
        if count not in (1, 2, 4):
            raise MemsimError(f"{access} moves 1, 2 or 4 matrices, not {count!r}")
        vector, rest = divmod(MATRIX_ROW, self.array.itemsize)
        if rest or not vector:
            raise MemsimError(
                f"elements of {self.array.itemsize} bytes do not divide a row of {MATRIX_ROW} bytes"
            )
        current(access).access(ElementAccess(self, access, vector, mask, lanes=8 * count))

    def _access(self, access: str, vector: int, mask: ArrayLike) -> None:
        current(access).access(ElementAccess(self, access, vector, mask))


def _atomic(array: SketchArray, operation: str, access: str) -> str:
    """The name of an atomic's access: the one given, or a more special one (docs/model.md, "Which shared
    atomic is which").

    Raises:
        MemsimError: unknown operation.
    """
    if operation not in ATOMICS:
        raise MemsimError(f"there is no atomic {operation!r}", hint=f"there are {', '.join(ATOMICS)}")
    if array.space != "shared":
        return access
    swaps = operation in ("exch", "cas")
    if array.itemsize not in (4, 8) or (not swaps and (array.itemsize == 8 or array.is_float)):
        return "atomic_loop"
    return {"cas": "atomic_cas", "inc": "atomic_inc", "exch": "atomic"}.get(operation, access)


@dataclass(frozen=True, slots=True)
class ElementAccess:
    """One instruction: its operation, the elements, how many each lane accesses, and the active lanes.

    lanes: only so many of a warp, starting from 0, supply an address.
    """

    element: Element
    access: str
    vector: int
    mask: ArrayLike
    lanes: int = WARP


class Running(Protocol):
    """A sketch being run."""

    def access(self, made: ElementAccess) -> None:
        """Record an access by the active threads."""

    def copy(self, made: ElementAccess, source: Element, read: ArrayLike) -> None:
        """Record a copy from `source`; threads outside of `read` write zeros."""


_RUNNING: ContextVar[Running | None] = ContextVar("memsim_sketch", default=None)


@contextmanager
def recorded_by(sketch: Running) -> Iterator[None]:
    """Accesses inside are recorded by this sketch."""
    token = _RUNNING.set(sketch)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def current(access: str) -> Running:
    """The sketch being run.

    Raises:
        MemsimError: none is.
    """
    sketch = _RUNNING.get()
    if sketch is None:
        raise MemsimError(
            f"a {access} outside of a kernel",
            hint="write it in a function of the thread and pass that to memsim.analyze(function, block=...)",
        )
    return sketch


class Indexed(SketchArray):
    """An array whose elements can be accessed."""

    def __getitem__(self, index: object) -> Element:
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
        dtype: DTypeLike = "f32",
        *,
        offset: int | None = None,
        align: int = SHARED_ALIGN,
    ) -> None:
        super().__init__(name, layout, dtype, offset, align)


class GlobalArray(Indexed):
    """An array in global memory, at a multiple of 256 bytes. Arguments: as `SharedArray`."""

    space: ClassVar[str] = "global"

    def __init__(self, name: str, layout: LayoutLike, dtype: DTypeLike = "f32") -> None:
        super().__init__(name, layout, dtype, None, GLOBAL_ALIGN)
