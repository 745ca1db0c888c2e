"""What each kind of argument says of itself, and all that others ask; a kernel's parameter, and numbers as
the bytes that it takes; the memory that numpy arrays are views of.

Memory places `pointees()`, a launch's parameters are `encode()`, `launch.json` and the keys of caches are
`document()`, reports show `text()`, copies are made by `with_arrays()`. A kind is one class in one file. What
the fields of a dataclass hold is found there, so that most kinds say only what they are encoded as.
"""

from __future__ import annotations

import ctypes
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from sys import intern
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec
import numpy as np

from memsim.errors import short_repr


def owner(array: np.ndarray) -> np.ndarray:
    """The array that a view is a part of; the array itself if it is not a view."""
    found, base = array, array.base
    while base is not None:
        found = base if isinstance(base, np.ndarray) else found
        base = getattr(base, "base", None)  # as_strided inserts an object between a view and its array
    return found


def allocation(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory that an array is a view of, as bytes without a copy, and the offset of its first element."""
    whole = owner(array)
    bounds = (*np.lib.array_utils.byte_bounds(whole), *np.lib.array_utils.byte_bounds(array))
    low, high = min(bounds), max(bounds)
    first = int(array.__array_interface__["data"][0])
    return memory_at(low, high - low, whole), first - low


def memory_at(start: int, size: int, keeper: object) -> np.ndarray:
    """The bytes at an address, kept alive by `keeper`."""
    memory = (ctypes.c_uint8 * size).from_address(start)
    memory._keeper = keeper  # type: ignore[attr-defined]
    return np.ctypeslib.as_array(memory)


class Copies:
    """Copies arrays with the allocations that they are views of, each allocation once."""

    def __init__(self) -> None:
        self.copies: dict[tuple[int, int], np.ndarray] = {}

    def __call__(self, array: Held) -> Held:
        """A view of the copy with the same layout as `array`; one that is only described as it is."""
        if not isinstance(array, np.ndarray):
            return array
        memory, offset = allocation(array)
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self.copies:
            self.copies[place] = memory.copy()
        return np.ndarray(array.shape, array.dtype, self.copies[place], offset, array.strides)


#: Formats of `struct` by the type of a parameter.
_FORMATS = {
    **{f"{kind}8": "b" for kind in "sb"},
    **{f"{kind}16": "h" for kind in "sb"},
    **{f"{kind}32": "i" for kind in "sb"},
    **{f"{kind}64": "q" for kind in "sb"},
    "u8": "B",
    "u16": "H",
    "u32": "I",
    "u64": "Q",
    "f16": "e",
    "f32": "f",
    "f64": "d",
}
POINTER_BYTES = 8
_POINTERS = ("u64", "b64", "s64")
_UNTYPED = ("b16", "b32", "b64")  # of a cubin, which only has sizes


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel or function parameter. `offset` and `size` in bytes within the parameter space.

    `pointer` is the state space named by `.ptr` (`"global"`), "" for a bare `.ptr`, else None.
    """

    name: str
    type: str
    align: int
    size: int
    offset: int
    pointer: str | None = None

    @property
    def is_struct(self) -> bool:
        """Is it passed as bytes rather than as a number?"""
        return struct.calcsize(_FORMATS.get(self.type, "0s")) != self.size

    @property
    def is_pointer(self) -> bool:
        """May it be a pointer?"""
        return self.type in _POINTERS and not self.is_struct

    def takes(self, number: object) -> bool:
        """Whether a Python number can be passed for it."""
        if self.is_struct or not isinstance(number, (int, float)):
            return False
        if self.type.startswith("f") or (isinstance(number, float) and self.type in _UNTYPED):
            with suppress(OverflowError):
                return bool(self.encoded(number))
            return False
        bits = self.size * 8
        return isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << bits

    def encoded(self, number: int | float) -> bytes:
        """The bytes of a number that it takes."""
        is_float = isinstance(number, float) and self.type in _UNTYPED
        code = _FORMATS[f"f{self.type[1:]}" if is_float else self.type]
        if code in "efd":
            return struct.pack(f"<{code}", float(number))
        return (int(number) & ((1 << self.size * 8) - 1)).to_bytes(self.size, "little")

    def in_words(self) -> str:
        """What it takes."""
        if self.type in _POINTERS:
            return "an array (pointer), None (a null pointer) or a 64-bit integer"
        if self.type.startswith("f"):
            return f"a float ({self.type})"
        if self.is_struct:
            return f"a struct of {self.size} bytes (bytes, a numpy scalar of that size, or a list of parts)"
        return f"an integer ({self.type})"


class ArgumentPlaces(Protocol):
    """Where a launch has what its arguments refer to: in the emulator, or on a GPU."""

    def address(self) -> int:
        """Of the next array, in the order of `Argument.pointees`."""

    def texture(self, texture: Any) -> int:
        """The handle of a texture object."""

    def tensor_map(self, one: Any, array: int, at: int) -> bytes:
        """The bytes of a tensor map over the array at an address; they lie `at` another."""


#: An array of an argument: numpy's, or of a kind that is defined behind this module (`ArrayArg`, a table).
Held: TypeAlias = Any
#: Keeps an allocation, given as bytes, while arguments are written, and gives it a name; the type is that of
#: the elements which a person would see in it.
KeepMemory = Callable[[np.ndarray, np.dtype], str]
#: The bytes of the allocation that is kept under a name.
ReadMemory = Callable[[str], np.ndarray]


class ArgumentDocument(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="kind",
):
    """An argument. name: the parameter's."""

    name: str = ""

    def __post_init__(self) -> None:
        """A default is left out if it is the very object, which a text that was sent or read is not."""
        for name in self.__struct_fields__:
            if type(value := getattr(self, name)) is str:
                setattr(self, name, intern(value))


class Argument(ABC):
    """A kind of argument. One of Python's or numpy's values is an argument by `argument_of`."""

    #: Its record in `launch.json`, whose tag is its name there.
    Document: ClassVar[type[ArgumentDocument]] = ArgumentDocument

    def __init_subclass__(cls) -> None:
        if "Document" in cls.__dict__:
            KINDS[str(cls.Document.__struct_config__.tag)] = cls

    def held(self) -> list[Held]:
        """The arrays that it is made of, numpy's or described."""
        found: list[Held] = []
        self.with_arrays(lambda array: found.append(array) or array)  # type: ignore[func-returns-value]
        return found

    def pointees(self) -> Iterator[tuple[str, Held]]:
        """(what follows the parameter's name in reports, the array) for all that it points to, in order."""
        yield from (("", array) for array in self.held())

    def with_arrays(self, change: Callable[[Held], object]) -> object:
        """The same with `change` applied to each of the arrays that it holds."""
        given = ((one.name, getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        return replace(self, **{name: argument_of(value).with_arrays(change) for name, value in given})  # type: ignore[type-var]

    def as_part(self) -> tuple[int, int] | None:
        """Its bytes as a part of a struct, and what it lies at a multiple of; None if it cannot be one."""
        return None

    @abstractmethod
    def fits(self, parameter: Parameter, name: str) -> bool:
        """Whether it can be passed for a parameter that users know as `name`.

        Raises:
            MemsimError: it cannot, and there is more to say.
        """

    def hint(self, parameter: Parameter) -> str | None:
        """What to do if it does not fit."""
        return None

    @abstractmethod
    def encode(self, parameter: Parameter, places: ArgumentPlaces, at: int) -> bytes:
        """The bytes of a parameter that it fits. They lie at address `at`."""

    def document(self, keep: KeepMemory) -> ArgumentDocument:
        """Its record; `keep` has the contents of arrays. Equal records mean equal arguments."""
        values = {one.name: _recorded(getattr(self, one.name), keep) for one in fields(self)}  # type: ignore[arg-type]
        return self.Document(**values)

    @classmethod
    def of_document(cls, document: Any, memory: ReadMemory) -> Any:
        """The inverse of `document`."""
        names = (name for name in document.__struct_fields__ if name != "name")
        return cls(**{name: _value_of(getattr(document, name), memory) for name in names})

    def text(self) -> str:
        """In a word for reports: `pointers(f32[64],f32[64])`."""
        kind = str(self.Document.__struct_config__.tag).replace(" ", "")
        return f"{kind}({','.join(argument_of(array).text() for array in self.held())})"

    @classmethod
    def of_text(cls, text: str) -> Argument | None:
        """What a text says, if it is one of this kind.

        Raises:
            MemsimError: it begins as one, and then does not go on so. Its column is that in the text.
        """
        return None

    def in_errors(self) -> str:
        """What it is, in errors."""
        return short_repr(self)


#: The kinds by their names in `launch.json`.
KINDS: dict[str, type[Argument]] = {}
#: What Python's and numpy's values are as arguments, by their types; of any other type as `object`.
OF_VALUES: dict[type, Callable[[Any], Argument]] = {}


def argument_of(value: object) -> Argument:
    """Anything given for a parameter as an argument."""
    if isinstance(value, Argument):
        return value
    kind = next(one for one in type(value).__mro__ if one in OF_VALUES)
    return OF_VALUES[kind](value)


def _recorded(value: object, keep: KeepMemory) -> Any:
    """The value of a field as a record has it."""
    if value is None or isinstance(value, (np.ndarray, Argument)):
        return argument_of(value).document(keep)
    if isinstance(value, (list, tuple)):
        return tuple(_recorded(one, keep) for one in value)
    return value


def _value_of(recorded: object, memory: ReadMemory) -> object:
    if isinstance(recorded, ArgumentDocument):
        return value_of(recorded, memory)
    return tuple(_value_of(one, memory) for one in recorded) if isinstance(recorded, tuple) else recorded


def value_of(document: ArgumentDocument, memory: ReadMemory) -> Any:
    """The argument that a record describes.

    Raises:
        MemsimError: it describes none, or contents are missing or do not match.
    """
    return KINDS[str(document.__struct_config__.tag)].of_document(document, memory)


def documents_of(records: Sequence[object], path: str) -> tuple[ArgumentDocument, ...]:
    """Records of arguments, as JSON has them, checked: kinds are looked up, not listed in a type.

    path: their place in the whole, in errors.

    Raises:
        msgspec.ValidationError: one is of no kind, or not what its kind has.
    """
    return tuple(_document_of(record, f"{path}[{place}]") for place, record in enumerate(records))


def _document_of(record: object, path: str) -> ArgumentDocument:
    if isinstance(record, ArgumentDocument):
        return record
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise msgspec.ValidationError(f"Unknown kind of argument {short_repr(kind)} - at `{path}`")
    try:
        return msgspec.convert(record, KINDS[kind].Document)
    except msgspec.ValidationError as error:
        message, _, inside = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{message} - at `{path}{inside or '`'}") from None
