"""Texture objects. As a text: `tex2d(f32[256,256],filter=linear)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from msgspec import UNSET, UnsetType

from memsim.argument_types.argument import (
    Argument,
    ArgumentDocument,
    ArgumentPlaces,
    KeepMemory,
    Parameter,
    ReadMemory,
    argument_of,
    value_of,
)
from memsim.argument_types.array_arg import ArrayArg, ArrayArgument, as_numpy, described_array
from memsim.errors import MemsimError, short_repr

# What a channel of a texel can be.
TEXELS = ("float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "uint32")
_TEXT = re.compile(r"tex(?P<dimensions>[123])d(?P<layered>layered)?\(")


class TextureArgument(ArgumentDocument, tag="texture"):
    """A texture object; without `dimensions` one over float32 in linear memory, four per texel."""

    array: ArrayArgument
    dimensions: Literal[1, 2, 3] | UnsetType = UNSET
    memory: Literal["array", "linear"] = "array"
    filter: Literal["point", "linear"] = "point"
    address: Literal["clamp", "border", "wrap", "mirror"] = "clamp"
    normalized: bool = False
    layered: bool = False
    integers: Literal["integers", "normalized"] = "integers"
    border: tuple[float, ...] = ()
    cube: bool = False


def _check_array(array: object) -> None:
    if not isinstance(array, (np.ndarray, ArrayArg)):
        raise MemsimError(f"a texture is over an array of numpy or an ArrayArg, not {short_repr(array)}")


@dataclass(frozen=True)
class Texture(Argument):
    """A texture object, for a `cudaTextureObject_t` parameter. A kernel that is run sees the array as it was
    before.

    array: its texels in C order: [width], [height, width] or [depth, height, width], of layers [layers,
    height, width]; with the channels of a texel, 1, 2 or 4, as one more axis at the end if there are several.

    dimensions: 1, 2 or 3. memory: "array" (`cudaArray_t`), or "linear": of one dimension the memory that
    `tex1Dfetch` reads, of two pitched memory. filter: "point" or "linear". address: what is outside, "clamp",
    "border", "wrap" or "mirror"; the last two need normalized coordinates. integers: how these are read, as
    "integers" or as floats from 0 to 1 or -1 to 1 ("normalized"). border: four channels of what is outside,
    with `address="border"`; none: not known. cube: its layers are the faces of cubes.

    Raises:
        MemsimError: something that CUDA has not.
    """

    array: np.ndarray | ArrayArg
    dimensions: int = 2
    memory: str = "array"
    filter: str = "point"
    address: str = "clamp"
    normalized: bool = False
    layered: bool = False
    integers: str = "integers"
    border: tuple[float, ...] = ()
    cube: bool = False

    #: Whether fetches return what CUDA documents where nobody has measured what the chip returns.
    as_documented: ClassVar[bool] = False
    CHOICES: ClassVar[dict[str, tuple[int | str, ...]]] = {
        "dimensions": (1, 2, 3),
        "memory": ("array", "linear"),
        "filter": ("point", "linear"),
        "address": ("clamp", "border", "wrap", "mirror"),
        "integers": ("integers", "normalized"),
    }
    Document = TextureArgument

    def __post_init__(self) -> None:
        _check_array(self.array)
        for name, known in self.CHOICES.items():
            if getattr(self, name) not in known:
                raise MemsimError(
                    f"a texture cannot have {name}={short_repr(getattr(self, name))}",
                    hint=f"{name} is one of {', '.join(map(str, known))}",
                )
        name = f"{np.dtype(self.array.dtype).name}{list(self.array.shape)}"
        axes = self.dimensions + self.layered
        if len(self.array.shape) not in (axes, axes + 1) or self.channels not in (1, 2, 4):
            raise MemsimError(
                f"{name} is no texture of {self.dimensions} dimensions{' and layers' * self.layered}",
                hint=f"its shape has {axes} axes, and at the end one of 1, 2 or 4 channels",
            )
        if not isinstance(self.border, Sequence) or len(self.border) not in (0, 4):
            raise MemsimError("a border has four channels", hint="border=(0.0, 0.0, 0.0, 0.0)")
        if str(np.dtype(self.array.dtype)) not in TEXELS or not self.array.nbytes:
            raise MemsimError(f"texels cannot lie over {name}", hint=f"they are made of {', '.join(TEXELS)}")
        if self.cube and not (
            self.layered and self.dimensions == 2 and self.layers % 6 == 0 and len({*self.size}) == 1
        ):
            raise MemsimError(
                "a cube map has six square layers, or six for each of its layers", hint="layered=True"
            )
        if self.memory == "linear" and (self.dimensions == 3 or self.layered):
            raise MemsimError("a texture of 3 dimensions or of layers lies in an array", hint="memory=array")
        if self.memory == "linear" and self.dimensions == 1 and self.filter == "linear":
            raise MemsimError("tex1Dfetch does not filter", hint="memory=array, or filter=point")
        if self.address in ("wrap", "mirror") and not self.normalized:
            raise MemsimError(f"address={self.address} needs normalized coordinates", hint="normalized=True")
        if self.filter == "linear" and self.element.kind != "f" and self.integers == "integers":
            raise MemsimError("integers are filtered only as floats", hint="integers=normalized")

    @property
    def element(self) -> np.dtype:
        """The type of a channel."""
        return np.dtype(self.array.dtype)

    @property
    def channels(self) -> int:
        """Channels of a texel."""
        axes = self.dimensions + self.layered
        return 1 if len(self.array.shape) == axes else int(self.array.shape[axes])

    @property
    def width(self) -> int:
        """Bytes of a texel."""
        return self.channels * self.element.itemsize

    @property
    def size(self) -> tuple[int, ...]:
        """Texels along x, y and z."""
        extents = self.array.shape[int(self.layered) : self.dimensions + self.layered]
        return tuple(int(extent) for extent in reversed(extents))

    @property
    def layers(self) -> int:
        """How many it has; 1 without."""
        return int(self.array.shape[0]) if self.layered else 1

    @cached_property
    def texels(self) -> np.ndarray:
        """Its channels as registers get them, float32, or int32 of integers [texels, channels]; x moves
        fastest.
        """
        flat = np.ascontiguousarray(as_numpy(self.array)).reshape(-1, self.channels)
        if self.element.kind == "f":
            return flat.astype(np.float32)
        if self.integers == "normalized":
            most = np.iinfo(self.element).max
            parts: np.ndarray = np.maximum(flat.astype(np.float32) / np.float32(most), np.float32(-1))
            return parts
        return flat.astype(np.int64).astype(np.int32)

    def pointees(self) -> Iterator[tuple[str, np.ndarray | ArrayArg]]:
        return iter(())

    def fits(self, parameter: Parameter, name: str) -> bool:
        return parameter.is_pointer

    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        return parameter.encoded(places.texture(self))

    @classmethod
    def of_document(cls, document: TextureArgument, memory: ReadMemory) -> Texture:
        """As it was made; without dimensions a `Texture1D`."""
        if document.dimensions is UNSET:
            return Texture1D(value_of(document.array, memory))
        made: Texture = super().of_document(document, memory)
        return made

    def in_errors(self) -> str:
        return "a texture"

    def text(self) -> str:
        """As `of_text` reads it; what is usual is left out."""
        usual = Texture(self.array, self.dimensions, _usual_memory(self.dimensions), layered=self.layered)
        words = [
            word
            for word, (name, value) in _WORDS.items()
            if getattr(self, name) == value != getattr(usual, name)
        ]
        layered = "layered" * self.layered
        return f"tex{self.dimensions}d{layered}({','.join([argument_of(self.array).text(), *words])})"

    @classmethod
    def of_text(cls, text: str) -> Texture | None:
        """`tex2d(f32[256,256],filter=linear)`; `tex1d(...)` lies in linear memory, the others in arrays,
        unless they say otherwise.
        """
        match = _TEXT.match(text)
        if match is None:
            return None
        inside, closed, rest = text[match.end() :].partition(")")
        array, bracket, words = inside.partition("]")
        if not closed or rest or not bracket:
            message = "a texture is tex2d(TYPE[SHAPE],...), the array described"
            raise MemsimError(message, column=match.end() + 1)
        fill, *told = words.split(",")
        dimensions = int(match["dimensions"])
        how: dict[str, Any] = {"memory": _usual_memory(dimensions)}
        for word in told:
            if word not in _WORDS:
                message = f"unknown word {word!r}; known: {', '.join(_WORDS)}"
                raise MemsimError(message, column=text.rindex(word) + 1)
            field, value = _WORDS[word]
            how[field] = value
        try:
            described = described_array(f"{array}]{fill}")
            return Texture(described, dimensions, layered=bool(match["layered"]), **how)
        except MemsimError as error:
            raise MemsimError(error.message, column=match.end() + (error.column or 1)) from None


# What follows the array in a text: the field that a word sets, and to what.
_WORDS: dict[str, tuple[str, int | str]] = {
    f"{name}={choice}": (name, choice)
    for name in ("memory", "filter", "address")
    for choice in Texture.CHOICES[name]
}
_WORDS |= {"normalized": ("normalized", True), "as_floats": ("integers", "normalized")}


def _usual_memory(dimensions: int) -> str:
    """Where a texture lies unless its text says otherwise."""
    return "linear" if dimensions == 1 else "array"


@dataclass(frozen=True)
class Texture1D(Texture):
    """Linear memory of float32, four to a texel, that `tex1Dfetch<float4>` reads.

    array: float32 of any shape.

    Raises:
        MemsimError: not float32, or not whole texels.
    """

    dimensions: int = 1
    memory: str = "linear"

    def __post_init__(self) -> None:
        _check_array(self.array)
        if np.dtype(self.array.dtype) != np.float32 or self.array.nbytes % 16 or not self.array.nbytes:
            raise MemsimError(
                f"a texture of four-float texels cannot lie over {self.array.dtype}{list(self.array.shape)}",
                hint="it takes a float32 array whose size is a multiple of 4",
            )

    @property
    def channels(self) -> int:
        """Channels of a texel."""
        return 4

    @property
    def size(self) -> tuple[int, ...]:
        """Texels along x."""
        return (self.array.nbytes // 16,)

    def document(self, keep: KeepMemory) -> TextureArgument:
        array = argument_of(self.array).document(keep)
        return TextureArgument(array=array)  # type: ignore[arg-type]

    def text(self) -> str:
        return f"texture over {argument_of(self.array).text()}"
