"""Saves a launch as a folder, and loads it: `launch.json`, beside it the kernel's code and its listing, and
the contents of its arrays.

The contents of a `launch.json` are types, by which files are validated, and docs/launch.schema.json is
generated from them (`docs/schemas.py`). Arrays in one allocation refer to one file, and share memory when
they are loaded.

With the listing of its cubin a launch is counted where there is no disassembler. It is bound to the cubin by
a digest of both, so that a cubin which was compiled anew, or the listing of another, is refused. A digest
finds mistakes and not lies: whoever writes a `launch.json` can write that, too. So a disassembler that is
installed has the word, and where nothing is trusted there has to be one.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType

from memsim.api import loading
from memsim.api.loading import texts_beside
from memsim.argument_types.argument import ArgumentDocument, argument_of, documents_of, value_of
from memsim.boundary import boundary_of, confinement
from memsim.captured.launched import Launched
from memsim.compile.shown_sources import in_library
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.files import file_exists, folder_exists, read_bytes, write_text
from memsim.kernel import Kernel
from memsim.launch import Natural, Positive, dim3
from memsim.npy import read_array
from memsim.reads import digest
from memsim.sass import disassemble

#: The name of the file.
LAUNCH = "launch.json"
#: What else a launch is saved in; a source file of such a name lies in a folder of its own.
_OWN = re.compile(r"launch\.json|kernel\.(?:cubin|ptx|sass\.gz)|array\d+\.npy", re.IGNORECASE)

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
        str, Meta(description="The PTX that a cubin was assembled from, to find lines of inline assembly.")
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
        Natural | None, Meta(description="Dynamic shared memory per block; null if unknown.")
    ] = 0
    cluster: Annotated[
        Extents | None, Meta(description="Blocks of a cluster, if set by the launch and not by the code.")
    ] = None
    note: Annotated[str, Meta(description="What distinguishes this launch from others of the kernel.")] = ""
    #: Each a record of `memsim.argument_types.argument.KINDS`.
    arguments: Annotated[tuple[Any, ...], Meta(description="One for each parameter, in order.")]

    def __post_init__(self) -> None:
        self.arguments = documents_of(self.arguments, "$.arguments")


def write_launch(launched: Launched, folder: Path) -> Path:
    """Write the folder; returns the path of its `launch.json`, which is written last.

    Raises:
        MemsimError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document = LaunchDocument(
            version=2,
            kernel=launched.kernel.name,
            called=launched.kernel.called,
            made_by=launched.kernel.origin.compiler,
            **_code(launched.kernel, folder),
            grid=launched.grid,
            block=launched.block,
            shared_bytes=launched.shared_bytes,
            cluster=launched.cluster,
            note=launched.note,
            sources=_sources(launched, folder),
            arguments=_arguments(launched, folder),
        )
    except OSError as error:
        raise MemsimError(f"cannot write {error.filename}: {error.strerror}") from None
    content = msgspec.json.encode(document, enc_hook=np.generic.item)
    text = msgspec.json.format(content.decode(), indent=1)
    write_text(folder / LAUNCH, text + "\n", "the launch")
    return folder / LAUNCH


def _code(kernel: Kernel, folder: Path) -> JsonObject:
    """The cubin, its listing, and the PTX that it was assembled from."""
    module = kernel.machine.module
    made: JsonObject = {}
    if module.ptx:
        (folder / "kernel.ptx").write_text(module.ptx, encoding="utf-8")
        made["ptx"] = "kernel.ptx"
    content = gzip.compress(module.listing.encode(), mtime=0)
    listing = ListingDocument(file=FILE, sha256=digest(module.content + content))
    (folder / "kernel.cubin").write_bytes(module.content)
    (folder / listing.file).write_bytes(content)
    return {**made, "code": "kernel.cubin", "listing": listing}


def _sources(launched: Launched, folder: Path) -> tuple[str, ...]:
    """Copies of the user's source files; of several with the same name the first."""
    found: dict[str, str] = {}
    for name, text in launched.kernel.sources.items():
        if not in_library(name):
            plain = PurePath(name).name
            found.setdefault(f"sources/{plain}" if _OWN.fullmatch(plain) else plain, text)
    for file, text in found.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    return tuple(sorted(found))


def _arguments(launched: Launched, folder: Path) -> tuple[ArgumentDocument, ...]:
    named = zip(launched.kernel.argument_names, record_arguments(launched.args, folder), strict=True)
    return tuple(msgspec.structs.replace(argument, name=name) for name, argument in named)


def record_arguments(arguments: Sequence[object], folder: Path) -> list[ArgumentDocument]:
    """The arguments of a launch as records; the contents of their arrays are written to `folder`."""
    names: dict[tuple[int, int], str] = {}  # each allocation is written once

    def file_of(memory: np.ndarray, dtype: np.dtype) -> str:
        """The file with the bytes of an allocation, as elements of `dtype` if its size is a multiple."""
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in names:
            name = names[place] = f"array{len(names)}.npy"
            plain = dtype.isbuiltin == 1 and memory.size % dtype.itemsize == 0
            np.save(folder / name, memory.view(dtype) if plain else memory, allow_pickle=False)
        return names[place]

    return [argument_of(value).document(file_of) for value in arguments]


def read_launch(path: Path) -> Launched:
    """The launch that a `launch.json`, or the one in a folder, describes; files are looked up beside it.

    Raises:
        MemsimError: no such file, not a launch, or a referenced file is missing or does not match.
    """
    path = path / LAUNCH if folder_exists(path) else path
    try:
        document = msgspec.json.decode(read_bytes(path, "the launch"), type=LaunchDocument)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MemsimError(f"this is not a launch: {error}", file=str(path)) from None
    kernel = _kernel(document, path)
    names = tuple(argument.name for argument in document.arguments)
    kernel = replace(
        kernel,
        called=document.called,
        names=names if all(names) else (),
        sources=_texts(document, kernel, path) or kernel.sources,
    )
    return Launched(
        kernel=kernel,
        grid=dim3(document.grid, "grid"),
        block=dim3(document.block, "block"),
        args=tuple(arguments_of(document.arguments, path)),
        shared_bytes=document.shared_bytes,
        cluster=dim3(document.cluster, "cluster") if document.cluster else None,
        note=document.note,
    )


def is_launch(path: Path) -> bool:
    """Is it a launch that memsim saved, and not another program's file of that name?"""
    try:
        msgspec.json.decode(read_bytes(path), type=LaunchDocument)
    except (OSError, MemsimError, msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _kernel(document: LaunchDocument, path: Path) -> Kernel:
    content, code = _beside(document.code, path), path.parent / document.code
    if code.suffix == ".cubin":
        listing = None
        if document.listing is None:
            check_replaceable(str(path))
        else:
            packed = _beside(document.listing.file, path)
            listing = unpack_listing(content, document.listing, packed, str(path))
        ptx = _beside(document.ptx, path).decode("utf-8", "replace") if document.ptx else ""
        module = loading.from_cubin(content, document.made_by, ptx, texts_beside(path), listing)
    elif document.listing is not None:
        raise MemsimError(f"{document.code} is not a cubin, so it has no listing", file=str(path))
    else:
        module = loading.load(code, document.options)
    return module[document.kernel]


def _beside(name: str, path: Path) -> bytes:
    """The file of that name beside a launch, or in a folder there."""
    if file_exists(path.parent / name) and not boundary_of(path.parent).holds(path.parent / name):
        raise MemsimError(
            f"{name} is not a file in its folder", file=str(path), hint="copy it beside the launch"
        )
    try:
        return read_bytes(path.parent / name, name)
    except FileNotFoundError:
        raise MemsimError(f"there is no {name} beside it", file=str(path)) from None


def _texts(document: LaunchDocument, kernel: Kernel, path: Path) -> dict[str, str]:
    """The source files beside it, by their names in the code."""
    texts = {PurePath(file).name: _beside(file, path).decode("utf-8", "replace") for file in document.sources}
    named = {file for _, _, file, _ in kernel.listing}
    called = {name: texts[PurePath(name).name] for name in named if PurePath(name).name in texts}
    return {**texts, **called}


def arguments_of(documents: Sequence[ArgumentDocument], path: Path) -> list[object]:
    """The inverse of `record_arguments`: the arguments of the launch at `path`, whose files lie beside it.

    Raises:
        MemsimError: a file is missing or does not match.
    """

    @cache  # each allocation is read once
    def memory(name: str) -> np.ndarray:
        content = _beside(name, path)
        try:
            array = read_array(io.BytesIO(content), len(content))
        except ValueError as error:
            raise MemsimError(f"cannot read {name}: {error}", file=str(path)) from None
        return np.array(array).reshape(-1).view(np.uint8)

    try:
        return [value_of(document, memory) for document in documents]
    except MemsimError as error:
        error.file = error.file or str(path)
        raise


FILE = "kernel.sass.gz"
#: The longest listing that is unpacked, in bytes per byte of the cubin; most have fewer bytes than three.
MOST_PER_BYTE = 256


def unpack_listing(cubin: bytes, record: ListingDocument, content: bytes, launch: str) -> str | None:
    """The listing in the content of its file; None where a disassembler makes it. `launch`: of whose cubin.

    Raises:
        MemsimError: it is another cubin's, it is not trusted, or it cannot be unpacked.
    """
    if digest(cubin + content) != record.sha256:
        raise MemsimError(
            f"{record.file} is not the listing of its cubin: one of them was changed",
            file=launch,
            hint='save the launch again; or remove "listing", and nvdisasm makes it',
        )
    if disassemble.is_installed():
        return None
    if confinement() is not None:
        raise MemsimError(
            "a listing is not trusted that others made, and there is no nvdisasm to make it",
            file=launch,
            hint=f"pip install {disassemble.WHEEL}",
        )
    unzip = zlib.decompressobj(wbits=31)  # gzip
    try:
        text = unzip.decompress(content, MOST_PER_BYTE * len(cubin)).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise MemsimError(f"cannot read {record.file}: {error}", file=launch) from None
    if not unzip.eof:
        raise MemsimError(f"{record.file} is truncated, or too long for its cubin", file=launch)
    return text


def check_replaceable(launch: str) -> None:
    """Check that a cubin saved without a listing can be disassembled.

    Raises:
        MemsimError: no disassembler is installed.
    """
    if not disassemble.is_installed():
        raise MemsimError(
            "it was saved without the listing of its cubin, and there is no nvdisasm to make it",
            file=launch,
            hint=f"pip install {disassemble.WHEEL} (Linux and Windows), or save it again where that is: "
            "memsim analyze launch.json --save-launch FOLDER",
        )
