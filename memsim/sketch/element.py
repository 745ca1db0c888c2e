"""What a sketch does with an element of an array: load, store, and what else memory does.

In: an array and indices. Out: accesses, told to the sketch that is running (`memsim.sketch.run`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from memsim.errors import MemsimError
from memsim.launch import WARP
from memsim.sketch.array import Array

#: Bytes of a row of an 8x8 matrix of 16-bit elements, which ldmatrix and stmatrix move for a lane.
MATRIX_ROW = 16

ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc")


@dataclass(frozen=True, slots=True)
class Element:
    """An element for each thread: `tile[t.y, t.x]`. Each method is one instruction of the warp.

    vector: elements side by side in memory that a lane moves at once, as `float4` does.
    mask: which threads take part, a bool or an array of them; all that get here if left out.
    """

    array: Array
    index: tuple[Any, ...]

    def load(self, *, vector: int = 1, mask: Any = True) -> None:
        """Each thread reads its element.

        Raises:
            MemsimError: as every method here: an index outside of the array, an address that is not
                aligned, elements that are not side by side; with the line, the thread and the index.
        """
        self._access("load", vector, mask)

    def store(self, *, vector: int = 1, mask: Any = True) -> None:
        """Each thread writes its element."""
        self._access("store", vector, mask)

    def atomic(self, operation: str = "add", *, mask: Any = True) -> None:
        """Each thread updates its element and reads what was there.

        operation: add, min, max, and, or, xor, exch, cas; in shared memory also inc: adding the constant 1
        where nobody reads the result, which has an instruction of its own. What is a loop in shared memory
        (additions of floats, 64-bit operations but exch and cas) is shown as not analyzed.
        """
        self._access(_atomic(self.array, operation, "atomic"), 1, mask)

    def reduction(self, operation: str = "add", *, mask: Any = True) -> None:
        """Each thread updates its element, and nobody reads what was there; as `atomic`."""
        self._access(_atomic(self.array, operation, "reduction"), 1, mask)

    def ldmatrix(self, count: Literal[1, 2, 4] = 4, *, mask: Any = True) -> None:
        """A warp reads `count` 8x8 matrices of 16-bit elements; lanes 0 to `8 * count - 1` give their rows.

        The element is the first of a row of 16 bytes side by side; its indices in other lanes do not matter.
        """
        self._matrix("ldmatrix", count, mask)

    def stmatrix(self, count: Literal[1, 2, 4] = 4, *, mask: Any = True) -> None:
        """A warp writes `count` 8x8 matrices of 16-bit elements; as `ldmatrix`."""
        self._matrix("stmatrix", count, mask)

    def cp_async(
        self,
        source: Element,
        *,
        vector: int = 1,
        mask: Any = True,
        read: Any = True,
        bypass: bool = False,
    ) -> None:
        """Each thread copies from an element in global memory to this one, past the registers.

        read: which threads read; the others that take part write zeros (a source size of 0).
        bypass: past the L1 cache too, as `.cg` does; then a thread copies 16 bytes.
        """
        if self.array.space != "shared" or source.array.space != "global":
            raise MemsimError(
                "cp.async copies from global to shared memory: shared[...].cp_async(global[...])"
            )
        current("cp_async").copy(
            Access(self, "cp_async_cg" if bypass else "cp_async", vector, mask), source, read
        )

    def _matrix(self, op: str, count: int, mask: Any) -> None:
        if self.array.space != "shared":
            raise MemsimError(f"{op} is for shared memory, and {self.array.name} is in global memory")
        if count not in (1, 2, 4):
            raise MemsimError(f"{op} moves 1, 2 or 4 matrices, not {count!r}")
        vector, rest = divmod(MATRIX_ROW, self.array.itemsize)
        if rest or not vector:
            raise MemsimError(
                f"no row of {MATRIX_ROW} bytes is made of elements of {self.array.itemsize} bytes"
            )
        current(op).access(Access(self, op, vector, mask, lanes=8 * count))

    def _access(self, op: str, vector: int, mask: Any) -> None:
        current(op).access(Access(self, op, vector, mask))


def _atomic(array: Array, operation: str, op: str) -> str:
    """The instruction of an atomic: `op`, or one of its own (docs/model.md, "Which shared atomic is which").

    Raises:
        MemsimError: there is no such operation.
    """
    if operation not in ATOMICS:
        raise MemsimError(f"there is no atomic {operation!r}", hint=f"there are {', '.join(ATOMICS)}")
    if array.space != "shared":
        return op
    swaps = operation in ("exch", "cas")
    if array.itemsize not in (4, 8) or (not swaps and (array.itemsize == 8 or array.is_float)):
        return "atomic_loop"
    return {"cas": "atomic_cas", "inc": "atomic_inc", "exch": "atomic"}.get(operation, op)


@dataclass(frozen=True, slots=True)
class Access:
    """One instruction: what it does to which elements, how many of them a lane moves, and which lanes do.

    lanes: only so many of a warp, from 0 on, give an address.
    """

    element: Element
    op: str
    vector: int
    mask: Any
    lanes: int = WARP


class Running(Protocol):
    """A sketch that runs."""

    def access(self, access: Access) -> None:
        """The threads do this."""

    def copy(self, access: Access, source: Element, read: Any) -> None:
        """The threads copy from `source`, those in `read`; the others write zeros."""


_RUNNING: ContextVar[Running | None] = ContextVar("memsim_sketch", default=None)


@contextmanager
def running(sketch: Running) -> Iterator[None]:
    """Accesses inside go to this sketch."""
    token = _RUNNING.set(sketch)
    try:
        yield
    finally:
        _RUNNING.reset(token)


def current(op: str) -> Running:
    """The sketch that runs.

    Raises:
        MemsimError: none does.
    """
    sketch = _RUNNING.get()
    if sketch is None:
        raise MemsimError(
            f"a {op} outside of a kernel",
            hint="put it into a function of the thread, and give that to memsim.analyze(function, block=...)",
        )
    return sketch
