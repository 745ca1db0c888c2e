"""Loads a launch from a folder that `write_launch` made; arrays of one file share memory."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np

from memsim.api import loading
from memsim.api.loading import texts_beside
from memsim.argument_types.argument import ArgumentDocument, value_of
from memsim.boundary import boundary_of
from memsim.captured.launch_document import LaunchDocument
from memsim.captured.launched import Launched
from memsim.captured.saved_listing import check_replaceable, unpacked
from memsim.errors import MemsimError
from memsim.files import file_exists, read_bytes
from memsim.kernel import Kernel
from memsim.launch import dim3
from memsim.npy import read_array


def read_launch(path: Path) -> Launched:
    """The launch that a `launch.json` describes; files are looked up beside it.

    Raises:
        MemsimError: no such file, not a launch, or a referenced file is missing or does not match.
    """
    try:
        document = msgspec.json.decode(read_bytes(path, "the launch"), type=LaunchDocument)
    except FileNotFoundError as error:
        raise MemsimError(f"cannot read the launch: {error.strerror}", file=str(path)) from None
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
        listing = _listing(document, content, path)
        ptx = _beside(document.ptx, path).decode("utf-8", "replace") if document.ptx else ""
        module = loading.from_cubin(content, document.made_by, ptx, texts_beside(path), listing)
    elif document.listing is not None:
        raise MemsimError(f"{document.code} is not a cubin, so it has no listing", file=str(path))
    else:
        module = loading.load(code, document.options)
    return module[document.kernel]


def _listing(document: LaunchDocument, cubin: bytes, path: Path) -> str | None:
    """The listing of its cubin; None if a disassembler makes it."""
    if document.listing is None:
        check_replaceable(str(path))
        return None
    return unpacked(cubin, document.listing, _beside(document.listing.file, path), str(path))


def _beside(name: str, path: Path) -> bytes:
    """The file of that name beside a launch, or in a folder there.

    Raises:
        MemsimError: there is none, it lies elsewhere, or it cannot be read.
    """
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
    texts = {file: _beside(file, path).decode("utf-8", "replace") for file in document.sources}
    named = {file for _, _, file, _ in kernel.listing}
    called = {name: texts[PurePath(name).name] for name in named if PurePath(name).name in texts}
    return {**texts, **called}


def arguments_of(documents: Sequence[ArgumentDocument], path: Path) -> list[Any]:
    """The inverse of `described`: the arguments of the launch at `path`, whose files lie beside it.

    Raises:
        MemsimError: a file is missing or does not match.
    """
    memories = _Memories(path)
    try:
        return [value_of(document, memories) for document in documents]
    except MemsimError as error:
        error.file = error.file or str(path)
        raise


class _Memories:
    """Reads each allocation of a launch once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read: dict[str, np.ndarray] = {}

    def memory(self, name: str) -> np.ndarray:
        """The bytes in a file beside the launch."""
        if name not in self.read:
            content = _beside(name, self.path)
            try:
                array = read_array(io.BytesIO(content), len(content))
            except ValueError as error:
                raise MemsimError(f"cannot read {name}: {error}", file=str(self.path)) from None
            self.read[name] = np.array(array).reshape(-1).view(np.uint8)
        return self.read[name]
