"""What each kind of argument says of itself, and all that others ask.

Memory places `pointees()`, a launch's parameters are `encode()`, `launch.json` and the keys of caches are
`document()`, reports show `text()`, copies are made by `with_arrays()`. A kind is one class in one file. What
the fields of a dataclass hold is found there, so that most kinds say only what they are encoded as.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np

from memsim.argument_types.parameter import Parameter
from memsim.errors import shown


class ArgumentPlaces(Protocol):
    """Where a launch has what its arguments refer to: in the emulator, or on a GPU."""

    def address(self) -> int:
        """Of the next array, in the order of `Argument.pointees`."""

    def texture(self, texture: Any) -> int:
        """The handle of a texture object."""

    def tensor_map(self, one: Any, array: int, at: int) -> bytes:
        """The bytes of a tensor map over the array at an address; they lie `at` another."""


#: Keeps an allocation, given as bytes, while arguments are written, and gives it a name; the type is that of
#: the elements which a person would see in it.
KeepMemory = Callable[[np.ndarray, np.dtype[Any]], str]
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


class Argument(ABC):
    """A kind of argument. One of Python's or numpy's values is an argument by `argument_of`."""

    #: Its record in `launch.json`, whose tag is its name there.
    Document: ClassVar[type[ArgumentDocument]] = ArgumentDocument

    def __init_subclass__(cls) -> None:
        if "Document" in cls.__dict__:
            KINDS[str(cls.Document.__struct_config__.tag)] = cls

    def held(self) -> list[Any]:
        """The arrays that it is made of, numpy's or described."""
        found: list[Any] = []
        self.with_arrays(lambda array: found.append(array) or array)  # type: ignore[func-returns-value]
        return found

    def pointees(self) -> Iterator[tuple[str, Any]]:
        """(what follows the parameter's name in reports, the array) for all that it points to, in order."""
        yield from (("", array) for array in self.held())

    def with_arrays(self, change: Callable[[Any], Any]) -> Any:
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
        return shown(self)


#: The kinds by their names in `launch.json`.
KINDS: dict[str, type[Argument]] = {}
#: What Python's and numpy's values are as arguments, by their types; of any other type as `object`.
OF_VALUES: dict[type, Callable[[Any], Argument]] = {}


def argument_of(value: Any) -> Argument:
    """Anything given for a parameter as an argument."""
    if isinstance(value, Argument):
        return value
    kind = next(one for one in type(value).__mro__ if one in OF_VALUES)
    return OF_VALUES[kind](value)


def _recorded(value: Any, keep: KeepMemory) -> Any:
    """The value of a field as a record has it."""
    if value is None or isinstance(value, (np.ndarray, Argument)):
        return argument_of(value).document(keep)
    if isinstance(value, (list, tuple)):
        return tuple(_recorded(one, keep) for one in value)
    return value


def _value_of(recorded: Any, memory: ReadMemory) -> Any:
    if isinstance(recorded, ArgumentDocument):
        return value_of(recorded, memory)
    return tuple(_value_of(one, memory) for one in recorded) if isinstance(recorded, tuple) else recorded


def value_of(document: ArgumentDocument, memory: ReadMemory) -> Any:
    """The argument that a record describes.

    Raises:
        MemsimError: it describes none, or contents are missing or do not match.
    """
    return KINDS[str(document.__struct_config__.tag)].of_document(document, memory)


def documents_of(records: Sequence[Any], path: str) -> tuple[ArgumentDocument, ...]:
    """Records of arguments, as JSON has them, checked: kinds are looked up, not listed in a type.

    path: their place in the whole, in errors.

    Raises:
        msgspec.ValidationError: one is of no kind, or not what its kind has.
    """
    return tuple(_document_of(record, f"{path}[{place}]") for place, record in enumerate(records))


def _document_of(record: Any, path: str) -> ArgumentDocument:
    if isinstance(record, ArgumentDocument):
        return record
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise msgspec.ValidationError(f"Unknown kind of argument {shown(kind)} - at `{path}`")
    try:
        found: ArgumentDocument = msgspec.convert(record, KINDS[kind].Document)
        return found
    except msgspec.ValidationError as error:
        message, _, inside = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{message} - at `{path}{inside or '`'}") from None
