"""Tables in global memory whose entries refer to arrays, of pointers or of tensor maps; and tensor maps.

TMA refers to a map by its address. Its 128 bytes are read where host code or a kernel made them without the
driver, and written for kernels that make others of them. NVIDIA does not document the format: the fields here
are those of 100 maps that the driver of an H200 encoded (tests/state/data/tensor_maps_h200.json), and of maps
that CuTe DSL 4.8 encodes for known tensors.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from memsim.argument_types.argument import (
    POINTER_BYTES,
    Argument,
    ArgumentDocument,
    ArgumentPlaces,
    Parameter,
    argument_of,
)
from memsim.argument_types.array_arg import ArrayArg, ArrayArgument, ToMemory, described_array, dtype_of
from memsim.argument_types.given_values import Null
from memsim.errors import MemsimError, short_repr
from memsim.launch import Natural, Positive

_MAP = re.compile(
    r"tensormap\((?P<array>[^()\]]*\][^(),]*)(,box=(?P<box>\d+(x\d+)*))?(,swizzle=(?P<swizzle>\d+))?\)",
    re.ASCII,
)
#: The bytes of a tensor map over an array at an address.
EncodeMap = Callable[["TensorMap", int], bytes]


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
    def content(self, addresses: Sequence[int], encode_map: EncodeMap | None) -> bytes:
        """Its bytes, its arrays being at these addresses, 0 for none.

        encode_map: None where the bytes of tensor maps are opaque.
        """

    def pointees(self) -> Iterator[tuple[str, np.ndarray | ArrayArg | ArrayTable]]:
        """The table, v, and after it what it refers to, v[0], v[1] and so on."""
        yield "", self
        yield from ((f"[{i}]", one) for i, one in enumerate(self.arrays) if one is not None)

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        table = places.address()
        for _ in filter(lambda one: one is not None, self.arrays):
            places.address()
        return table.to_bytes(POINTER_BYTES, "little")


def _check_sequence(values: object, what: str) -> None:
    if not isinstance(values, Sequence):
        raise MemsimError(f"a table is made of a list of {what}, not of {short_repr(values)}")


@dataclass(frozen=True)
class Pointers(ArrayTable):
    """A table of pointers in global memory to `arrays`; None is a null pointer."""

    arrays: Sequence[np.ndarray | ArrayArg | None]
    dtype: ClassVar[str] = "uint64"
    Document = PointerTable

    def __post_init__(self) -> None:
        _check_sequence(self.arrays, "arrays")
        for array in self.arrays:
            if array is not None and not isinstance(array, (np.ndarray, ArrayArg)):
                raise MemsimError(f"a pointer in a table points to an array, not to {array!r}")

    def content(self, addresses: Sequence[int], encode_map: EncodeMap | None) -> bytes:
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
        MemsimError: another swizzle, or what is no array or no box.
    """

    array: np.ndarray | ArrayArg
    box: tuple[int, ...] = ()
    swizzle: int = 0

    nbytes: ClassVar[int] = 128
    alignment: ClassVar[int] = 64
    Document = TensorMapArgument

    def __post_init__(self) -> None:
        if not isinstance(self.array, (np.ndarray, ArrayArg)):
            raise MemsimError(
                f"a tensor map is over an array of numpy or an ArrayArg, not {short_repr(self.array)}"
            )
        if not isinstance(self.box, (tuple, list)):
            raise MemsimError(f"the box of a tensor map is as (64, 64), not {short_repr(self.box)}")
        if self.swizzle not in (0, 32, 64, 128):
            raise MemsimError(
                f"a tensor map swizzles over 0, 32, 64 or 128 bytes, not {short_repr(self.swizzle)}"
            )

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
        _check_sequence(self.maps, "tensor maps")
        for one in self.maps:
            if not isinstance(one, TensorMap):
                raise MemsimError(f"a table of tensor maps holds tensor maps, not {short_repr(one)}")

    @property
    def arrays(self) -> tuple[np.ndarray | ArrayArg, ...]:  # type: ignore[override]
        """Their arrays."""
        return tuple(one.array for one in self.maps)

    def content(self, addresses: Sequence[int], encode_map: EncodeMap | None) -> bytes:
        if encode_map is None:
            return bytes(self.nbytes)
        return b"".join(encode_map(one, address) for one, address in zip(self.maps, addresses, strict=True))

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """Its address; its maps lie there."""
        table = places.address()
        for number, one in enumerate(self.maps):
            places.tensor_map(one, places.address(), table + number * one.nbytes)
        return table.to_bytes(POINTER_BYTES, "little")


#: Element types by their numbers in a map; float32 a second time where subnormal numbers become zero.
TYPES = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float32", "float64", "bfloat16"),
)
#: Spans of swizzles in bytes, in the order of `CUtensorMapSwizzle`.
SWIZZLES = (0, 32, 64, 128)
#: Where a tensor's type is none of these, as for the driver.
OF_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
#: The lowest four bits of the word of flags: the driver's, and CuTe DSL's.
TILED = (0, 2)
MOST_DIMENSIONS = 5
USED = 64  # bytes; the rest is not written
BYTES = TensorMap.nbytes
ALIGN = 64


@dataclass(frozen=True, slots=True)
class EncodedMap:
    """A tensor map's fields, dimensions innermost first. steps: bytes, of all dimensions but the first."""

    address: int
    dtype: str
    extents: tuple[int, ...]
    steps: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int

    def encoded(self) -> bytes:
        """The 128 bytes.

        Raises:
            ValueError: a field is too large for them.
        """
        rest = [0] * (MOST_DIMENSIONS - len(self.box))
        units = [step // 16 for step in self.steps] + rest
        flags = len(self.box) - 1 << 4 | TYPES.index(self.dtype) << 7 | SWIZZLES.index(self.swizzle) << 13
        words = (
            *(self.address & 0xFFFFFFFF, self.address >> 32, flags),
            *(unit & 0xFFFFFFFF for unit in units),
            sum(unit >> 32 << 4 * i for i, unit in enumerate(units)),
            *(extent - 1 for extent in self.extents),
            *rest,
        )
        try:
            front = b"".join(word.to_bytes(4, "little") for word in words)
        except OverflowError as error:
            raise ValueError(*error.args) from None
        counts = bytes(count - 1 for count in self.box) + bytes(rest)
        return (front + bytes(3) + counts).ljust(BYTES, b"\0")

    def over(self, memory: np.ndarray, start: int) -> TensorMap:
        """As an argument; the tensor begins at byte `start` of `memory`.

        Raises:
            ValueError: it is larger than the memory.
        """
        dtype = dtype_of(self.dtype)
        strides = (*reversed(self.steps), dtype.itemsize)
        view: np.ndarray = np.ndarray(tuple(reversed(self.extents)), dtype, memory, start, strides)
        return TensorMap(view, tuple(reversed(self.box)), self.swizzle)


def decode_tensor_map(raw: bytes) -> EncodedMap | None:
    """The map in the first 64 bytes of `raw`; None if they are none that memsim executes.

    Interleaved and im2col maps are not, nor those with steps between elements or NaN out of bounds.
    """
    words = [int.from_bytes(raw[at : at + 4], "little") for at in range(0, USED, 4)]
    if len(raw) < USED or words[2] & 15 not in TILED:
        return None
    flags = words[2]
    rank, kind = 1 + (flags >> 4 & 7), flags >> 7 & 15
    interleave, fills_with_nan = flags >> 11 & 3, flags >> 15 & 1
    counts = (words[13] >> 24, *words[14].to_bytes(4, "little"))
    element_steps = words[13] & 0xFFFFFF
    if rank > MOST_DIMENSIONS or kind >= len(TYPES) or interleave or fills_with_nan or element_steps:
        return None
    upper = words[7]  # four bits of each step, in units of 16 bytes
    steps = (16 * (words[3 + i] | (upper >> 4 * i & 15) << 32) for i in range(rank - 1))
    return EncodedMap(
        address=words[0] | words[1] << 32,
        dtype=TYPES[kind],
        extents=tuple(1 + size for size in words[8 : 8 + rank]),
        steps=tuple(steps),
        box=tuple(1 + count for count in counts[:rank]),
        swizzle=SWIZZLES[flags >> 13 & 3],
    )
