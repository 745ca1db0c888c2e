"""Tensor maps, by themselves and in tables. TMA refers to a map by its address; its bytes are opaque."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memsim.argument_types.argument import Argument, ArgumentDocument, ArgumentPlaces
from memsim.argument_types.array_arg import ArrayArg, ArrayArgument
from memsim.argument_types.parameter import POINTER_BYTES, Parameter
from memsim.argument_types.pointer_tables import ArrayTable
from memsim.errors import MemsimError, shown
from memsim.launch import Natural, Positive


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

    As created by `cuTensorMapEncodeTiled` without interleave and with element strides of 1; its bytes are
    opaque, and zeros here.

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
