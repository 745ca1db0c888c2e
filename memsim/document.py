"""What a verb prints as JSON: a record that says once what the document holds, and its schema.

A document is a `msgspec.Struct` whose parts are Structs or the records themselves. `plain` gives its values,
`schema_of` what holds of them. The schemas that ship, in `memsim/schemas/`, are generated.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memsim.launch import Natural, Positive
from memsim.version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self

Line = Annotated[str, Meta(pattern="^[^\\n]+$", description="the answer in one line")]
Chip = Annotated[str, Meta(pattern="^sm_[0-9]+[a-z]?$")]
Dim3 = tuple[Positive, Positive, Positive]
Texts = tuple[str, ...]
Count = Natural | None
#: Of a part that some documents leave out: its default is `msgspec.UNSET`.
LEFT_OUT = {"left_out": True}


def one_of(*values: str | int | None, description: str | None = None) -> Meta:
    """A text or a number of these, which are listed where they are used; values are not looked at again."""
    return Meta(description=description, extra_json_schema={"enum": list(values)})


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document."""

    @classmethod
    def of(cls, record: object, **given: Any) -> Self:
        """A part whose fields are those of a record of the same names, but for the ones that are `given`."""
        names = (name for name in cls.__struct_fields__ if name not in given and hasattr(record, name))
        return cls(**{name: getattr(record, name) for name in names}, **given)


class CountChange(DocumentPart, frozen=True, kw_only=True):
    """A count as it is, and after a change."""

    before: Natural
    after: Natural


class Document(DocumentPart, frozen=True, kw_only=True):
    """What every document begins with."""

    schema: Literal[1] = 1
    memsim: Annotated[str, Meta(description="the version of memsim that wrote it")] = __version__


class WrittenDocument(Document, frozen=True, kw_only=True):
    """What a verb that writes files has written."""

    answer: Line
    files: Annotated[Texts, Meta(description="what was written, in this order")]
    notes: Annotated[Texts, Meta(description="what else it says: what was left out, and what is next")] = ()


def plain(document: msgspec.Struct) -> dict[str, Any]:
    """The values of a document as dicts, lists and numbers."""
    values: dict[str, Any] = _with_lists(msgspec.to_builtins(document, enc_hook=_number))
    return values


def _number(fraction: Fraction) -> int | float:
    """A fraction as JSON has it: an integer wherever it is one."""
    return int(fraction) if fraction.denominator == 1 else float(fraction)


def _with_lists(value: Any) -> Any:
    """msgspec leaves tuples as they are; who reads the document gets lists."""
    if isinstance(value, dict):
        return {key: _with_lists(one) for key, one in value.items()}
    return list(map(_with_lists, value)) if isinstance(value, (list, tuple)) else value


def schema_of(document: type[msgspec.Struct], name: str, title: str) -> dict[str, Any]:
    """A document as a JSON schema: each field is there, and no other."""

    def of_fraction(kind: type) -> dict[str, Any]:
        if kind is Fraction:
            return {"type": "number"}
        raise NotImplementedError  # msgspec then says which type it is

    (whole,), parts = msgspec.json.schema_components(
        [document], schema_hook=of_fraction, ref_template="#/$defs/{name}"
    )
    for part in parts.values():
        if "properties" in part:
            fields = part["properties"].items()
            part["required"] = [field for field, how in fields if not how.pop("left_out", False)]
            part["additionalProperties"] = False
            for _, how in fields:
                how.pop("default", None)
    top = parts.pop(whole["$ref"].rpartition("/")[2])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:memsim:schema:{name}:1"}
    return {**head, **top, "title": f"{title}, schema 1", "$defs": parts}
