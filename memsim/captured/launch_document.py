"""What a `launch.json` says, as types: what is read is checked against them.

Out: the types, and docs/launch.schema.json, which is made of them. Left out on purpose: files
(`memsim.captured.launch_json`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memsim.launch import Natural, Positive

Text = Annotated[str, Meta(min_length=1)]
Signed = Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)]
Extents = Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=3)]


class ArgumentDocument(
    msgspec.Struct,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="kind",
):
    """An argument. name: the parameter's."""

    name: str = ""


class ArrayArgument(ArgumentDocument, tag="array"):
    """An array, where it lies in its allocation, and what it holds."""

    dtype: Annotated[str, Meta(description="A type of numpy's or of ml_dtypes': float32, bfloat16.")]
    shape: Annotated[tuple[Natural, ...], Meta(min_length=1)]
    strides: Annotated[
        tuple[Signed, ...] | UnsetType,
        Meta(description="Bytes from one element to the next, in each dimension; left out: C order."),
    ] = UNSET
    offset: Annotated[
        Natural | UnsetType,
        Meta(description="Bytes from the start of the allocation, a multiple of 256, to the first element."),
    ] = UNSET
    values: Annotated[
        Text | list[bool | int | float] | UnsetType,
        Meta(
            description="A .npy file beside this one that holds the allocation (arrays that name one file "
            "share its memory), or the elements themselves in C order."
        ),
    ] = UNSET
    fill: Annotated[
        Literal["random", "zeros", "ones", "iota"],
        Meta(description="What it holds where there are no values."),
    ] = "random"
    seed: Natural = 0


class Scalar(ArgumentDocument, tag="scalar"):
    """A number."""

    value: bool | int | float | Literal["inf", "-inf", "nan"]
    dtype: Annotated[
        str | UnsetType, Meta(description="A type of numpy's; left out: as the parameter is.")
    ] = UNSET


class Bytes(ArgumentDocument, tag="bytes"):
    """The bytes of a parameter, as hexadecimal digits."""

    hex: Annotated[str, Meta(pattern="^([0-9a-fA-F]{2})*$")]


class Null(ArgumentDocument, tag="null"):
    """A null pointer."""


class Struct(ArgumentDocument, tag="struct"):
    """A struct. Parts lie as C lays them out, each at a multiple of its own size, or one right behind the
    other, whichever is as long as the parameter.
    """

    parts: Annotated[tuple[Argument, ...], Meta(min_length=1)]
    named: Annotated[
        bool,
        Meta(
            description="Reports call arrays in it by their names, and by the struct's where they have none."
        ),
    ] = False


class PointerTable(ArgumentDocument, tag="pointers"):
    """A table in global memory, of pointers to other arrays."""

    arrays: tuple[ArrayArgument | Null, ...]


class TensorMapArgument(ArgumentDocument, tag="tensor map"):
    """128 bytes that only the copy engine (TMA) reads; swizzle: over how many bytes, 0 for none."""

    array: ArrayArgument
    box: tuple[Positive, ...] = ()
    swizzle: Natural = 0


class Tensors(ArgumentDocument, tag="tensor maps"):
    """A table in global memory, of tensor maps."""

    maps: tuple[TensorMapArgument, ...]


class Texture(ArgumentDocument, tag="texture"):
    """A texture object over float32 in linear memory, four to a texel."""

    array: ArrayArgument


Argument = (
    ArrayArgument | Scalar | Bytes | Null | Struct | PointerTable | TensorMapArgument | Tensors | Texture
)


class LaunchDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A launch of a CUDA kernel: its code, its shape and its arguments."""

    version: Literal[1] | UnsetType = UNSET
    kernel: Annotated[Text, Meta(description="The entry's name in the code.")]
    called: Annotated[str, Meta(description="What people call it, where that is another name.")] = ""
    code: Annotated[
        Text,
        Meta(
            description="A file beside this one, or an absolute path: .cubin, .ptx, .cu, or whatever holds "
            "machine code."
        ),
    ]
    options: Annotated[tuple[str, ...], Meta(description="For the compiler of a .cu file.")] = ()
    form: Annotated[
        Literal["sass", "ptx"] | UnsetType,
        Meta(
            description="Whether PTX is read as machine code or as itself; left out: machine code where it "
            "can be had."
        ),
    ] = UNSET
    ptx: Annotated[
        str,
        Meta(description="The PTX that a cubin was made from; lines of inline assembly are looked up in it."),
    ] = ""
    sources: Annotated[
        tuple[str, ...],
        Meta(
            description="Copies of source files beside this one; what the code's line table calls them ends "
            "so."
        ),
    ] = ()
    made_by: Annotated[str, Meta(description="Who made the code.")] = ""
    grid: Extents
    block: Extents
    shared_bytes: Annotated[
        Natural | None,
        Meta(description="Dynamic shared memory of a block; null if that is not known."),
    ] = 0
    cluster: Annotated[
        Extents | None,
        Meta(description="Blocks of a cluster, where the launch says so and not the code."),
    ] = None
    note: Annotated[str, Meta(description="What tells this launch from others of the kernel.")] = ""
    arguments: Annotated[
        tuple[Argument, ...], Meta(description="One for each parameter of the code, in order.")
    ]


def schema() -> dict[str, Any]:
    """`LaunchDocument` as a JSON schema."""
    return msgspec.json.schema(LaunchDocument)
