"""Tables in global memory whose entries refer to arrays, of pointers or of tensor maps; and tensor maps.

TMA refers to a map by its address; its bytes are opaque.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memsim.argument_types.argument import (
    POINTER_BYTES,
    Argument,
    ArgumentDocument,
    ArgumentPlaces,
    Parameter,
    argument_of,
)
from memsim.argument_types.array_arg import ArrayArg, ArrayArgument, ToMemory, described_array
from memsim.argument_types.given_values import Null
from memsim.errors import MemsimError, shown
from memsim.launch import Natural, Positive

_MAP = re.compile(
    r"tensormap\((?P<array>[^()\]]*\][^(),]*)(,box=(?P<box>\d+(x\d+)*))?(,swizzle=(?P<swizzle>\d+))?\)",
    re.ASCII,
)


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

    @abstractmethod
    def content(self, addresses: Sequence[int], encode_map: Callable[[Any, int], bytes] | None) -> bytes:
        """Its bytes, its arrays being at these addresses, 0 for none.

        encode_map: the bytes of a tensor map over an array at an address; None where these are opaque.
        """

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


class TensorMapArgument(ArgumentDocument, tag="tensor map"):
    """A tensor map: 128 bytes that only TMA reads; swizzle: span in bytes, 0 for none."""

    array: ArrayArgument
    box: tuple[Positive, ...] = ()
    swizzle: Natural = 0


class Tensors(ArgumentDocument, tag="tensor maps"):
    """A table in global memory, of tensor maps."""

    maps: tuple[TensorMapArgument, ...]


@dataclass(frozen=True)
class TensorMap(Argument):
    """A `CUtensorMap` over an array: 128 bytes that only TMA reads.

    As a text: `tensormap(f32[256,256],box=64x64,swizzle=128)`.

    As created by `cuTensorMapEncodeTiled` without interleave and with element strides of 1.

    box: elements of a copy in each dimension, outermost first, as the array's shape. swizzle: span in bytes,
    0 (none), 32, 64 or 128.

    Raises:
        MemsimError: another swizzle.
    """

    array: np.ndarray | ArrayArg
    box: tuple[int, ...] = ()
    swizzle: int = 0

    nbytes: ClassVar[int] = 128
    alignment: ClassVar[int] = 64
    Document = TensorMapArgument

    def __post_init__(self) -> None:
        if self.swizzle not in (0, 32, 64, 128):
            raise MemsimError(f"a tensor map swizzles over 0, 32, 64 or 128 bytes, not {shown(self.swizzle)}")

    def as_part(self) -> tuple[int, int]:
        return self.nbytes, self.alignment

    def text(self) -> str:
        """As `of_text` reads it; what is usual is left out."""
        box = f",box={'x'.join(map(str, self.box))}" if self.box else ""
        swizzle = f",swizzle={self.swizzle}" if self.swizzle else ""
        return f"tensormap({argument_of(self.array).text()}{box}{swizzle})"

    @classmethod
    def of_text(cls, text: str) -> TensorMap | None:
        if not text.startswith("tensormap("):
            return None
        match = _MAP.fullmatch(text)
        if match is None:
            raise MemsimError("a tensor map is tensormap(TYPE[SHAPE],box=64x64,swizzle=128)", column=1)
        box = tuple(int(extent) for extent in match["box"].split("x")) if match["box"] else ()
        try:
            return cls(described_array(match["array"]), box, int(match["swizzle"] or 0))
        except MemsimError as error:
            raise MemsimError(error.message, column=match.start("array") + (error.column or 1)) from None

    def fits(self, parameter: Parameter, name: str) -> bool:
        return parameter.size == self.nbytes

    def hint(self, parameter: Parameter) -> str | None:
        """A pointer is to a table."""
        if parameter.is_pointer:
            return "memsim.TensorMaps([...]) lies in global memory, and is pointed to"
        return None

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """The bytes that say so where it lies."""
        return places.tensor_map(self, places.address(), at)


@dataclass(frozen=True)
class TensorMaps(ArrayTable):
    """A table of tensor maps in global memory, for a parameter `const CUtensorMap *`.

    Raises:
        MemsimError: an element is not a `TensorMap`.
    """

    maps: Sequence[TensorMap]
    dtype: ClassVar[str] = f"V{TensorMap.nbytes}"
    Document = Tensors

    def __post_init__(self) -> None:
        for one in self.maps:
            if not isinstance(one, TensorMap):
                raise MemsimError(f"a table of tensor maps holds tensor maps, not {shown(one)}")

    @property
    def arrays(self) -> tuple[np.ndarray | ArrayArg, ...]:  # type: ignore[override]
        """Their arrays."""
        return tuple(one.array for one in self.maps)

    def content(self, addresses: Sequence[int], encode_map: Callable[[Any, int], bytes] | None) -> bytes:
        if encode_map is None:
            return bytes(self.nbytes)
        return b"".join(encode_map(one, address) for one, address in zip(self.maps, addresses, strict=True))

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """Its address; its maps lie there."""
        table = places.address()
        for number, one in enumerate(self.maps):
            places.tensor_map(one, places.address(), table + number * one.nbytes)
        return table.to_bytes(POINTER_BYTES, "little")
