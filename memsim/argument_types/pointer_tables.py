"""Tables in global memory whose entries refer to arrays, and the one of pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memsim.argument_types.argument import ArgumentDocument, ArgumentPlaces, argument_of
from memsim.argument_types.array_arg import ArrayArg, ArrayArgument, ToMemory
from memsim.argument_types.given_values import Null
from memsim.argument_types.parameter import POINTER_BYTES, Parameter
from memsim.errors import MemsimError


class PointerTable(ArgumentDocument, tag="pointers"):
    """A table of pointers to other arrays, in global memory."""

    arrays: tuple[ArrayArgument | Null, ...]


class ArrayTable(ToMemory):
    """A table in global memory whose entries refer to arrays."""

    #: What its entries refer to; None to nothing.
    arrays: Sequence[np.ndarray | ArrayArg | None]
    #: numpy's name for the type of an entry.
    dtype: ClassVar[str]
    #: Bytes of its allocation before its first entry.
    start: ClassVar[int] = 0

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of entries."""
        return (len(self.arrays),)

    @property
    def nbytes(self) -> int:
        """Size of the table, in bytes."""
        return np.dtype(self.dtype).itemsize * len(self.arrays)

    @property
    def extent(self) -> int:
        """Size of its allocation, in bytes."""
        return self.nbytes

    def content(self, addresses: Sequence[int], encode_map: Callable[[Any, int], bytes] | None) -> bytes:
        """Its bytes, its arrays being at these addresses, 0 for none.

        encode_map: the bytes of a tensor map over an array at an address; None where these are opaque.
        """
        raise NotImplementedError

    def pointees(self) -> Iterator[tuple[str, Any]]:
        """The table, v, and after it what it refers to, v[0], v[1] and so on."""
        yield "", self
        yield from ((f"[{i}]", one) for i, one in enumerate(self.arrays) if one is not None)

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        table = places.address()
        for _ in filter(lambda one: one is not None, self.arrays):
            places.address()
        return table.to_bytes(POINTER_BYTES, "little")


@dataclass(frozen=True)
class Pointers(ArrayTable):
    """A table of pointers in global memory to `arrays`; None is a null pointer."""

    arrays: Sequence[np.ndarray | ArrayArg | None]
    dtype: ClassVar[str] = "uint64"
    Document = PointerTable

    def __post_init__(self) -> None:
        for array in self.arrays:
            if array is not None and not isinstance(array, (np.ndarray, ArrayArg)):
                raise MemsimError(f"a pointer in a table points to an array, not to {array!r}")

    def content(self, addresses: Sequence[int], encode_map: Callable[[Any, int], bytes] | None) -> bytes:
        return np.array(addresses, np.uint64).tobytes()

    def text(self) -> str:
        """`pointers(f32[64],null)`."""
        return f"pointers({','.join(argument_of(array).text() for array in self.arrays)})"
