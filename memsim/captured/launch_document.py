"""The contents of a `launch.json` as types, by which files are validated, and docs/launch.schema.json,
generated from them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memsim.launch import Natural, Positive

#: The name of the file.
LAUNCH = "launch.json"

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
    """An array: its placement in its allocation, and its contents."""

    dtype: Annotated[str, Meta(description="A type of numpy or ml_dtypes: float32, bfloat16.")]
    shape: Annotated[tuple[Natural, ...], Meta(min_length=1)]
    strides: Annotated[
        tuple[Signed, ...] | UnsetType,
        Meta(description="Bytes from one element to the next, in each dimension; default: C order."),
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
        Meta(description="The fill value if there are no values."),
    ] = "random"
    seed: Natural = 0


class Scalar(ArgumentDocument, tag="scalar"):
    """A number."""

    value: bool | int | float | Literal["inf", "-inf", "nan"]
    dtype: Annotated[str | UnsetType, Meta(description="A type of numpy; default: the parameter's.")] = UNSET


class Bytes(ArgumentDocument, tag="bytes"):
    """The bytes of a parameter, as hexadecimal digits."""

    hex: Annotated[str, Meta(pattern="^([0-9a-fA-F]{2})*$")]


class Null(ArgumentDocument, tag="null"):
    """A null pointer."""


class Struct(ArgumentDocument, tag="struct"):
    """A struct. Parts are laid out as in C, each at a multiple of its own size, or packed, whichever matches
    the parameter's size.
    """

    parts: Annotated[tuple[Argument, ...], Meta(min_length=1)]
    named: Annotated[
        bool,
        Meta(description="Arrays in it are reported by their names, or by the struct's if they have none."),
    ] = False


class PointerTable(ArgumentDocument, tag="pointers"):
    """A table of pointers to other arrays, in global memory."""

    arrays: tuple[ArrayArgument | Null, ...]


class TensorMapArgument(ArgumentDocument, tag="tensor map"):
    """A tensor map: 128 bytes that only TMA reads; swizzle: span in bytes, 0 for none."""

    array: ArrayArgument
    box: tuple[Positive, ...] = ()
    swizzle: Natural = 0


class Tensors(ArgumentDocument, tag="tensor maps"):
    """A table in global memory, of tensor maps."""

    maps: tuple[TensorMapArgument, ...]


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


Argument = (
    ArrayArgument
    | Scalar
    | Bytes
    | Null
    | Struct
    | PointerTable
    | TensorMapArgument
    | Tensors
    | TextureArgument
)


class ListingDocument(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The disassembly of a cubin, which is read where no disassembler is installed."""

    file: Annotated[
        Text, Meta(description="A file beside this one, compressed by gzip: the output of nvdisasm -c -gi.")
    ]
    sha256: Annotated[
        str,
        Meta(
            pattern="^[0-9a-f]{64}$",
            description="SHA-256 of the cubin's bytes followed by those of the listing's file.",
        ),
    ]


class LaunchDocument(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A launch of a CUDA kernel: its code, its shape and its arguments."""

    version: Annotated[
        Literal[1, 2] | UnsetType, Meta(description="2 since a launch has its listing; 1 is read, too.")
    ] = UNSET
    kernel: Annotated[Text, Meta(description="The entry's name in the code.")]
    called: Annotated[str, Meta(description="Its display name, if different.")] = ""
    code: Annotated[
        Text,
        Meta(
            description="A file beside this one, or an absolute path: .cubin, .ptx, .cu, or any file with "
            "machine code."
        ),
    ]
    options: Annotated[tuple[str, ...], Meta(description="For the compiler of a .cu file.")] = ()
    listing: Annotated[ListingDocument | None, Meta(description="Of a .cubin file.")] = None
    ptx: Annotated[
        str,
        Meta(description="The PTX that a cubin was assembled from, to find lines of inline assembly."),
    ] = ""
    sources: Annotated[
        tuple[str, ...],
        Meta(
            description="Copies of source files beside this one; their names in the code's line table end so."
        ),
    ] = ()
    made_by: Annotated[str, Meta(description="The compiler.")] = ""
    grid: Extents
    block: Extents
    shared_bytes: Annotated[
        Natural | None,
        Meta(description="Dynamic shared memory per block; null if unknown."),
    ] = 0
    cluster: Annotated[
        Extents | None,
        Meta(description="Blocks of a cluster, if set by the launch and not by the code."),
    ] = None
    note: Annotated[str, Meta(description="What distinguishes this launch from others of the kernel.")] = ""
    arguments: Annotated[tuple[Argument, ...], Meta(description="One for each parameter, in order.")]


def schema() -> dict[str, Any]:
    """`LaunchDocument` as a JSON schema."""
    return msgspec.json.schema(LaunchDocument)
