"""The contents of a `launch.json` as types, by which files are validated, and docs/launch.schema.json,
generated from them.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memsim.argument_types.argument import KINDS, documents_of
from memsim.launch import Natural, Positive

#: The name of the file.
LAUNCH = "launch.json"

Text = Annotated[str, Meta(min_length=1)]
Extents = Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=3)]


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
    #: Each a record of `memsim.argument_types.argument.KINDS`.
    arguments: Annotated[tuple[Any, ...], Meta(description="One for each parameter, in order.")]

    def __post_init__(self) -> None:
        self.arguments = documents_of(self.arguments, "$.arguments")


def schema() -> dict[str, Any]:
    """`LaunchDocument` as a JSON schema."""
    arguments = reduce(or_, (kind.Document for kind in KINDS.values()))
    schemas, parts = msgspec.json.schema_components(
        [LaunchDocument, arguments], ref_template="#/$defs/{name}"
    )
    whole, argument = schemas
    parts["LaunchDocument"]["properties"]["arguments"]["items"] = argument
    parts["Struct"]["properties"]["parts"]["items"] = argument
    return {**whole, "$defs": parts}
