"""Values of Python and numpy as arguments: null pointers, numbers, bytes, and structs by their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from memsim.argument_types.argument import (
    OF_VALUES,
    Argument,
    ArgumentDocument,
    ArgumentPlaces,
    Held,
    KeepMemory,
    Parameter,
    ReadMemory,
    argument_of,
    documents_of,
    value_of,
)
from memsim.argument_types.array_arg import NumpyArray, is_number, number_type, short_name
from memsim.errors import MemsimError, short_repr

NULL = "null"
_Float: TypeAlias = float | Literal["inf", "-inf", "nan"]
_VALUES = "biufcV"  # kinds of numpy scalars that can be passed as bytes


class Null(ArgumentDocument, tag="null"):
    """A null pointer."""


class Bytes(ArgumentDocument, tag="bytes"):
    """The bytes of a parameter, as hexadecimal digits."""

    hex: Annotated[str, Meta(pattern="^([0-9a-fA-F]{2})*$")]


class Scalar(ArgumentDocument, tag="scalar"):
    """A number; a complex one by both of its parts."""

    value: bool | int | _Float | tuple[_Float, _Float]
    dtype: Annotated[str | UnsetType, Meta(description="A type of numpy; default: the parameter's.")] = UNSET


class Struct(ArgumentDocument, tag="struct"):
    """A struct. Parts are laid out as in C, each at a multiple of its own size, or packed, whichever matches
    the parameter's size.
    """

    parts: Annotated[tuple[Any, ...], Meta(min_length=1)]
    named: Annotated[
        bool,
        Meta(description="Arrays in it are reported by their names, or by the struct's if they have none."),
    ] = False

    def __post_init__(self) -> None:
        self.parts = documents_of(self.parts, "$.parts")


@dataclass(frozen=True, eq=False)
class GivenValue(Argument):
    """A value of Python or numpy that holds no array."""

    value: Any

    def with_arrays(self, change: Callable[[Held], object]) -> object:
        return self.value

    def in_errors(self) -> str:
        return short_repr(self.value)


class NullPointer(GivenValue):
    """None."""

    Document = Null

    def fits(self, parameter: Parameter, name: str) -> bool:
        return parameter.is_pointer

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        return bytes(parameter.size)

    def document(self, keep: KeepMemory) -> Null:
        return Null()

    @classmethod
    def of_document(cls, document: Null, memory: ReadMemory) -> None:
        """None."""

    def text(self) -> str:
        return NULL


class RawBytes(GivenValue):
    """The bytes of a parameter."""

    Document = Bytes

    def fits(self, parameter: Parameter, name: str) -> bool:
        return len(self.value) == parameter.size

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        return bytes(self.value)

    def document(self, keep: KeepMemory) -> Bytes:
        return Bytes(hex=self.value.hex())

    @classmethod
    def of_document(cls, document: Bytes, memory: ReadMemory) -> bytes:
        return bytes.fromhex(document.hex)

    def text(self) -> str:
        return str(self.value)


class Number(GivenValue):
    """A number of Python or numpy, a numpy array without dimensions, or what is no argument at all."""

    Document = Scalar

    @property
    def scalar(self) -> Any:
        """The value of a numpy array without dimensions; anything else unchanged."""
        return self.value[()] if isinstance(self.value, np.ndarray) else self.value

    def _is_bytes(self, parameter: Parameter) -> bool:
        """Is it a numpy scalar that is passed as its bytes, such as a `np.float16` for a `__half`?"""
        number = self.scalar
        return isinstance(number, np.void) or (isinstance(number, np.generic) and parameter.is_struct)

    def as_part(self) -> tuple[int, int] | None:
        """A numpy scalar has a size."""
        if not isinstance(self.value, np.generic) or self.value.dtype.kind not in _VALUES:
            return None
        dtype = self.value.dtype
        return dtype.itemsize, dtype.alignment if dtype.kind == "V" else dtype.itemsize

    def fits(self, parameter: Parameter, name: str) -> bool:
        """Whether it is in the range of the parameter, or has its bytes."""
        number = self.scalar
        if self._is_bytes(parameter):
            return bool(number.nbytes == parameter.size)
        return parameter.takes(number.item() if isinstance(number, np.generic) else number)

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """As the parameter's type has it, or its own bytes."""
        number = self.scalar
        if self._is_bytes(parameter):
            return bytes(number.tobytes())
        return parameter.encoded(number.item() if isinstance(number, np.generic) else number)

    def document(self, keep: KeepMemory) -> Scalar | Bytes:
        """The number and its type; bytes of what is no number."""
        number = np.asarray(self.value)[()]
        if not isinstance(number, np.generic):
            raise MemsimError(f"{short_repr(self.value)} is no argument of a kernel")
        if not is_number(number.dtype):
            return Bytes(hex=number.tobytes().hex())
        value = number.item()
        parts = (value.real, value.imag) if number.dtype.kind == "c" else (value,)
        found = tuple(part if np.isfinite(part) else str(part) for part in parts)
        # a number of Python is typed by the kernel's parameter
        dtype = number.dtype.name if isinstance(self.value, (np.generic, np.ndarray)) else UNSET
        return Scalar(dtype=dtype, value=found if len(found) == 2 else found[0])

    @classmethod
    def of_document(cls, document: Scalar, memory: ReadMemory) -> int | float | complex | np.generic:
        parts = document.value if isinstance(document.value, tuple) else (document.value,)
        numbers = [float(part) if isinstance(part, str) else part for part in parts]
        value = complex(*numbers) if len(numbers) == 2 else numbers[0]
        if document.dtype is UNSET:
            return value
        try:
            number: np.generic = number_type(document.dtype).type(value)
        except (TypeError, ValueError, OverflowError):
            raise MemsimError(f"{value} is not of type {document.dtype}") from None
        return number

    def text(self) -> str:
        """`1024`, `i32(3)`."""
        if isinstance(self.value, np.ndarray):
            return NumpyArray(self.value).text()
        if isinstance(self.value, np.generic):
            return f"{short_name(self.value.dtype)}({self.value.item()})"
        return str(self.value)


class StructFields(tuple[object, ...]):
    """The parts of a struct with their names: an array is `p.x` in reports, or `p` if its name is empty."""

    names: tuple[str, ...]

    def __new__(cls, parts: Iterable[object], names: Iterable[str]) -> StructFields:
        made = super().__new__(cls, parts)
        made.names = tuple(names)
        return made


class StructOfParts(GivenValue):
    """A struct, by a list of its parts: typed numbers, and arrays, of which it holds the addresses."""

    Document = Struct

    def _like(self, parts: Iterable[object]) -> tuple[object, ...]:
        return StructFields(parts, self.value.names) if isinstance(self.value, StructFields) else tuple(parts)

    def pointees(self) -> Iterator[tuple[str, Held]]:
        """The third part of a struct v is v.2, or has its own name."""
        for place, part in enumerate(self.value):
            called = self.value.names[place] if isinstance(self.value, StructFields) else str(place)
            if (given := argument_of(part)).as_part() is not None:
                yield from ((f".{called}" * bool(called) + more, array) for more, array in given.pointees())

    def with_arrays(self, change: Callable[[Held], object]) -> object:
        return self._like(argument_of(part).with_arrays(change) for part in self.value)

    def fits(self, parameter: Parameter, name: str) -> bool:
        """Whether its parts make up the parameter."""
        if parameter.is_struct:
            check_parts(self.value, name, parameter)
        return parameter.is_struct

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """Gaps between its parts are zero."""
        packed = bytearray(parameter.size)
        layouts = lay_out(self.value, packed=True), lay_out(self.value)
        starts = next(starts for starts, size in layouts if size == parameter.size)
        for start, part in zip(starts, self.value):
            given = argument_of(part)
            size, alignment = given.as_part() or (0, 1)
            of_part = Parameter("", "", alignment, size, parameter.offset + start)
            packed[start : start + size] = given.encode(of_part, places, at + start)
        return bytes(packed)

    def document(self, keep: KeepMemory) -> Struct:
        named = isinstance(self.value, StructFields)
        parts = [argument_of(part).document(keep) for part in self.value]
        if named:
            parts = [msgspec.structs.replace(part, name=name) for part, name in zip(parts, self.value.names)]
        return Struct(parts=tuple(parts), named=named)

    @classmethod
    def of_document(cls, document: Struct, memory: ReadMemory) -> tuple[object, ...]:
        """Its parts, each of which has a size."""
        parts = [_sized(value_of(part, memory)) for part in document.parts]
        return StructFields(parts, [part.name for part in document.parts]) if document.named else tuple(parts)

    def text(self) -> str:
        """Its parts, joined by +."""
        return "+".join(argument_of(part).text() for part in self.value)


def _sized(value: object) -> object:
    """A part of a struct that was read, with a size."""
    if value is None:
        return np.uint64(0)
    return np.void(value) if isinstance(value, bytes) else value


def lay_out(parts: Sequence[object], packed: bool = False) -> tuple[list[int], int]:
    """The offset of each part of a struct, and the struct's size, in bytes.

    As in C: each part at a multiple of its own size, and the whole a multiple of the largest of them. packed:
    without gaps.
    """
    starts, end, widest = [], 0, 1
    for part in parts:
        size, natural = argument_of(part).as_part() or (0, 1)
        alignment = 1 if packed else natural
        starts.append(-(-end // alignment) * alignment)
        end, widest = starts[-1] + size, max(widest, alignment)
    return starts, -(-end // widest) * widest


def check_parts(parts: Sequence[object], name: str, parameter: Parameter) -> None:
    """Raise a MemsimError unless the parts make up the struct and all have a size."""
    for part in parts:
        if argument_of(part).as_part() is None:
            raise MemsimError(
                f"a part of the struct {name} is {argument_of(part).in_errors()}, which has no size",
                hint="parts are arrays and typed numbers such as np.int32(3); np.uint64(0) is a null pointer",
            )
    sizes = lay_out(parts, packed=True)[1], lay_out(parts)[1]
    if parameter.size not in sizes:
        apart = "" if sizes[0] == sizes[1] else f" packed, {sizes[1]} aligned"
        kind = "a struct" if parameter.is_struct else parameter.type
        raise MemsimError(f"{name} is {kind} of {parameter.size} bytes, but its parts have {sizes[0]}{apart}")


OF_VALUES.update(
    {
        type(None): NullPointer,
        bytes: RawBytes,
        bytearray: RawBytes,
        list: StructOfParts,
        tuple: StructOfParts,
        np.ndarray: lambda array: NumpyArray(array) if array.shape != () else Number(array),
        object: Number,
    }
)
