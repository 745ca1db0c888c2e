"""Arrays as arguments: numpy's, and those that are only described, which are created on demand.

As a text an array is its type and shape, a place in its allocation if it is a view, and its content if it is
described: `f32[64,64]=zeros`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Annotated, Literal

import numpy as np
from msgspec import UNSET, Meta, UnsetType

from memsim.argument_types.argument import (
    POINTER_BYTES,
    Argument,
    ArgumentDocument,
    ArgumentPlaces,
    Held,
    KeepMemory,
    Parameter,
    ReadMemory,
    allocation,
)
from memsim.document import JsonObject
from memsim.errors import MemsimError, short_repr
from memsim.launch import MOST_BYTES, Natural, is_integer

FILLS = ("random", "zeros", "ones", "iota")
# Element types by short name, and numpy's names.
NAMES = {"f": ("float", (16, 32, 64)), "i": ("int", (8, 16, 32, 64)), "u": ("uint", (8, 16, 32, 64))}
DTYPES = {f"{short}{bits}": f"{name}{bits}" for short, (name, sizes) in NAMES.items() for bits in sizes}
DTYPES |= {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_TEXT = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?:=(?P<fill>.*))?")
_EXTENT = re.compile(r"\s*[0-9]{1,18}\s*")


def dtype_of(name: str) -> np.dtype:
    """A numpy type by name; `bfloat16` and 8-bit floats (`float8_e4m3fn`, ...) are those of ml_dtypes.

    Raises:
        MemsimError: unknown type, or one of objects: their bytes are addresses, which Python follows.
    """
    found: np.dtype
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        if hasattr(ml_dtypes, name):
            found = np.dtype(getattr(ml_dtypes, name))
            return found
    try:
        found = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype(object)
    if found.hasobject:
        raise MemsimError(f"there is no type {name!r}", hint="types are named as numpy does")
    return found


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes from one element to the next in each dimension of an array in C order."""
    steps: list[int] = []
    for extent in reversed(shape):
        steps.append(itemsize)
        itemsize *= extent
    return tuple(reversed(steps))


def element_type(array: np.ndarray | ArrayArg) -> np.dtype:
    """The type of an array's elements."""
    return dtype_of(array.dtype) if isinstance(array, ArrayArg) else array.dtype


def as_numpy(array: np.ndarray | ArrayArg) -> np.ndarray:
    """The array, created if it is only described."""
    return array.make() if isinstance(array, ArrayArg) else array


def short_name(dtype: np.dtype) -> str:
    """`f32` for float32; numpy's name if it has no short one."""
    return next((short for short, name in DTYPES.items() if name == dtype.name), dtype.name)


def type_of_text(match: re.Match[str]) -> str:
    """numpy's name of the `dtype` that was matched in a text.

    Raises:
        MemsimError: unknown.
    """
    if match["dtype"] not in DTYPES:
        known = ", ".join(DTYPES)
        raise MemsimError(f"unknown type {match['dtype']!r}; known: {known}", column=match.start("dtype") + 1)
    return DTYPES[match["dtype"]]


def is_number(dtype: np.dtype) -> bool:
    """Whether it is a type of numbers, numpy's or of ml_dtypes."""
    return dtype.kind in "biufc" or dtype.name.startswith(("bfloat", "float8"))


def number_type(dtype: object) -> np.dtype:
    """An element type, by its name, short or numpy's, or what numpy takes for one.

    Raises:
        MemsimError: unknown, or not a number.
    """
    try:
        found = dtype_of(DTYPES.get(dtype, dtype)) if isinstance(dtype, str) else np.dtype(dtype)  # type: ignore[call-overload]
    except (TypeError, ValueError, SyntaxError, MemsimError):
        found = None
    if dtype is None or found is None or not is_number(found):
        raise MemsimError(f"unknown element type {short_repr(dtype)}; known: {', '.join(DTYPES)}")
    return found


class ArrayArgument(ArgumentDocument, tag="array"):
    """An array: its placement in its allocation, and its contents."""

    dtype: Annotated[str, Meta(description="A type of numpy or ml_dtypes: float32, bfloat16.")]
    shape: Annotated[tuple[Natural, ...], Meta(min_length=1)]
    strides: Annotated[
        tuple[Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)], ...] | UnsetType,
        Meta(description="Bytes from one element to the next, in each dimension; default: C order."),
    ] = UNSET
    offset: Annotated[
        Natural | UnsetType,
        Meta(description="Bytes from the start of the allocation, a multiple of 256, to the first element."),
    ] = UNSET
    values: Annotated[
        Annotated[str, Meta(min_length=1)] | list[bool | int | float] | UnsetType,
        Meta(
            description="A .npy file beside this one that holds the allocation (arrays that name one file "
            "share its memory), or the elements themselves in C order."
        ),
    ] = UNSET
    fill: Annotated[
        Literal["random", "zeros", "ones", "iota"],
        Meta(description="The fill value if there are no values."),
    ] = "random"
    seed: Natural = 0


class ToMemory(Argument):
    """Memory that the kernel gets a pointer to."""

    shape: tuple[int, ...]

    def as_part(self) -> tuple[int, int] | None:
        return (POINTER_BYTES, POINTER_BYTES) if self.shape != () else None

    def fits(self, parameter: Parameter, name: str) -> bool:
        return parameter.is_pointer and self.shape != ()

    def hint(self, parameter: Parameter) -> str | None:
        """Of a struct it may be a part."""
        if parameter.is_struct and self.shape != ():
            return "a pointer in a struct is one of its parts: [array, np.int32(3), ...], or 'f32[64]+i32(3)'"
        return None

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        return places.address().to_bytes(POINTER_BYTES, "little")


class ArrayOfElements(ToMemory):
    """An array, numpy's or described."""

    Document = ArrayArgument

    @property
    def array(self) -> Held:
        return self

    def with_arrays(self, change: Callable[[Held], object]) -> object:
        return change(self.array)

    def document(self, keep: KeepMemory) -> ArrayArgument:
        """Its type, its place in its allocation, and its content."""
        array, dtype, (strides, offset) = self.array, element_type(self.array), _place_of(self.array)
        content: JsonObject
        if isinstance(array, ArrayArg):
            content = {"fill": array.fill, "seed": array.seed}
        else:
            content = {"values": keep(allocation(array)[0], dtype)}
        return ArrayArgument(
            dtype=dtype.name,
            shape=tuple(array.shape),
            strides=UNSET if strides is None else strides,
            offset=offset or UNSET,
            **content,
        )

    @classmethod
    def of_document(cls, document: ArrayArgument, memory: ReadMemory) -> np.ndarray | ArrayArg:
        """The array with its content, or described."""
        if document.values is not UNSET:
            return _with_values(document, memory)
        strides, offset = document.strides or None, None if document.offset is UNSET else document.offset
        return ArrayArg(document.shape, document.dtype, document.fill, document.seed, strides, offset)

    def text(self) -> str:
        """Its type and shape, its place in its allocation unless it is all of it (`@4` bytes, `@0/(8,)` with
        strides), and what it is filled with.
        """
        dtype, (strides, first) = element_type(self.array), _place_of(self.array)
        place = f"@{first}" * bool(first or strides) + f"/{strides}" * (strides is not None)
        text = f"{short_name(dtype)}[{','.join(map(str, self.shape))}]{place}"
        return text.replace(" ", "")

    def in_errors(self) -> str:
        if self.shape == ():
            return short_repr(self.array)
        return f"an array {self.array.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class ArrayArg(ArrayOfElements):
    """An array argument by shape, type and content; `fill` is zeros, ones, iota or random.

    Nothing is allocated until `make` is called, so that a trace of a large problem needs no memory for arrays
    that no address depends on. Random values are floats from -1 to 1, 8-bit integers of any value, and wider
    integers from 0 to 127, so that they can be indices. `dtype` is numpy's name or a short one: "float32" or
    "f32".

    strides: bytes from one element to the next in each dimension, as in numpy; None for C order.

    offset: bytes from the start of the allocation to the first element; None for the smallest that keeps
    every element inside, which is 0 unless a stride is negative. Allocations start at multiples of 256 bytes.

    Raises:
        MemsimError: an invalid shape, type or content, or elements outside of the allocation.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    fill: str = "random"
    seed: int = 0
    strides: tuple[int, ...] | None = None
    offset: int | None = None

    def __post_init__(self) -> None:
        integers = {"strides": self.strides or (), "offset": (self.offset or 0,)}
        naturals = {"shape": self.shape, "seed": (self.seed,)}
        for name, given in (integers | naturals).items():
            least = 0 if name in naturals else -MOST_BYTES
            if not isinstance(given, (tuple, list)) or not all(is_integer(n) and n >= least for n in given):
                raise MemsimError(
                    f"an array's {name} must be integers, not {short_repr(getattr(self, name))}",
                    hint="such as shape=(64, 64), strides=(256, 4), offset=16, seed=1",
                )
        if not isinstance(self.fill, str) or self.fill not in FILLS:
            raise MemsimError(f"unknown content {short_repr(self.fill)}; known: {', '.join(FILLS)}")
        object.__setattr__(self, "shape", tuple(map(int, self.shape)))
        object.__setattr__(self, "strides", self.strides and tuple(map(int, self.strides)))
        object.__setattr__(self, "offset", self.offset and int(self.offset))
        object.__setattr__(self, "dtype", number_type(self.dtype).name)
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise MemsimError(f"strides {self.strides} do not match an array of shape {self.shape}")
        if self.offset is not None and self.offset < self._reach[0]:
            raise MemsimError(
                f"some elements of {self} lie before its allocation",
                hint=f"negative strides need an offset of at least {self._reach[0]} bytes",
            )
        if self.extent > MOST_BYTES:
            raise MemsimError(f"an array of {short_repr(self.extent)} bytes is larger than any GPU's memory")

    @property
    def nbytes(self) -> int:
        """Size of its elements, in bytes."""
        return prod(self.shape) * dtype_of(self.dtype).itemsize

    @property
    def extent(self) -> int:
        """Size of its allocation, in bytes."""
        return self.start + self._reach[1]

    @property
    def start(self) -> int:
        """The offset of its first element in the allocation, in bytes."""
        return self._reach[0] if self.offset is None else self.offset

    @property
    def _reach(self) -> tuple[int, int]:
        """Bytes of the allocation before the first element, and from there to the end of the last."""
        if self.strides is None or not prod(self.shape):
            return 0, self.nbytes
        ends = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides)]
        before = -sum(end for end in ends if end < 0)
        return before, sum(end for end in ends if end > 0) + dtype_of(self.dtype).itemsize

    def make(self) -> np.ndarray:
        """Create the array; the same content every time."""
        content = self._content()
        if self.strides is None and not self.offset:
            return content
        memory = np.zeros(self.extent, np.uint8)
        array: np.ndarray = np.ndarray(self.shape, content.dtype, memory, self.start, self.strides)
        array[...] = content
        return array

    def _content(self) -> np.ndarray:
        dtype = dtype_of(self.dtype)
        if self.fill == "zeros":
            return np.zeros(self.shape, dtype)
        if self.fill == "ones":
            return np.ones(self.shape, dtype)
        if self.fill == "iota":
            return np.arange(prod(self.shape)).astype(dtype).reshape(self.shape)
        rng = np.random.default_rng(self.seed)
        if dtype.kind == "f" or dtype.isbuiltin == 2:  # 2: a type of ml_dtypes
            return rng.uniform(-1.0, 1.0, self.shape).astype(dtype)
        if dtype.kind in "iu" and dtype.itemsize == 1:
            return rng.integers(0, 256, self.shape).astype(dtype)
        return rng.integers(0, 128, self.shape).astype(dtype)

    def text(self) -> str:
        """With its content, unless it is random."""
        return super().text() + f"={self.fill}" * (self.fill != FILLS[0])


@dataclass(frozen=True, eq=False)
class NumpyArray(ArrayOfElements):
    """A numpy array that has dimensions."""

    given: np.ndarray

    def fits(self, parameter: Parameter, name: str) -> bool:
        return super().fits(parameter, name) and not self.given.dtype.hasobject

    @property
    def array(self) -> np.ndarray:
        return self.given

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.given.shape


def _place_of(array: np.ndarray | ArrayArg) -> tuple[tuple[int, ...] | None, int]:
    """Strides in bytes, None for C order, and the byte of its allocation that an array begins at."""
    start = array.start if isinstance(array, ArrayArg) else allocation(array)[1]
    in_order = array.strides in (None, c_strides(array.shape, element_type(array).itemsize))
    return None if in_order or array.strides is None else tuple(array.strides), start


def _with_values(document: ArrayArgument, memory: ReadMemory) -> np.ndarray:
    dtype, shape, values = dtype_of(document.dtype), document.shape, document.values
    try:
        if not isinstance(values, str):
            return np.array(values, dtype).reshape(shape)
        strides = document.strides or c_strides(shape, dtype.itemsize)
        view: np.ndarray = np.ndarray(shape, dtype, memory(values), document.offset or 0, strides)
        return view
    except (TypeError, ValueError, OverflowError) as error:
        what = values if isinstance(values, str) else "the list of values"
        raise MemsimError(f"{what} does not contain {shape} of {dtype}: {error}") from None


def described_array(text: str) -> ArrayArg:
    """An array by its text, `f32[64,64]` or `f32[64]=zeros`.

    Raises:
        MemsimError: it is none.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise MemsimError(
            "an array is TYPE[SHAPE] or TYPE[SHAPE]=CONTENT", column=text.index("[") + 1 if "[" in text else 1
        )
    dtype = type_of_text(match)
    extents = match["shape"].split(",")
    if not all(_EXTENT.fullmatch(extent) and int(extent) > 0 for extent in extents):
        message = "a shape is a list of positive integers, such as [64,64]"
        raise MemsimError(message, column=match.start("shape") + 1)
    fill = match["fill"]
    if fill is not None and fill not in FILLS:
        message = f"unknown content {fill!r}; known: {', '.join(FILLS)}"
        raise MemsimError(message, column=match.start("fill") + 1)
    return ArrayArg(tuple(int(extent) for extent in extents), dtype, fill or FILLS[0])


def with_a_dimension(array: np.ndarray | ArrayArg) -> np.ndarray | ArrayArg:
    """An array without dimensions as one of one element, at the same place; any other as it is."""
    if array.shape != ():
        return array
    if isinstance(array, ArrayArg):
        return ArrayArg((1,), array.dtype, array.fill, array.seed, offset=array.offset)
    return array.reshape(1)
