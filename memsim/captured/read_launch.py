"""Loads a launch from a folder that `write_launch` made; arrays of one file share memory."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from memsim.api import loading
from memsim.api.source_texts import texts_beside
from memsim.argument_types import (
    ArrayArg,
    Pointers,
    StructFields,
    TensorMap,
    TensorMaps,
    Texture,
    Texture1D,
    c_strides,
    dtype_of,
)
from memsim.boundary import boundary_of
from memsim.captured import launch_document as of
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
        document = msgspec.json.decode(read_bytes(path, "the launch"), type=of.LaunchDocument)
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
        msgspec.json.decode(read_bytes(path), type=of.LaunchDocument)
    except (OSError, MemsimError, msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True


def _kernel(document: of.LaunchDocument, path: Path) -> Kernel:
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


def _listing(document: of.LaunchDocument, cubin: bytes, path: Path) -> str | None:
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


def _texts(document: of.LaunchDocument, kernel: Kernel, path: Path) -> dict[str, str]:
    """The source files beside it, by their names in the code."""
    texts = {file: _beside(file, path).decode("utf-8", "replace") for file in document.sources}
    named = {file for _, _, file, _ in kernel.listing}
    called = {name: texts[PurePath(name).name] for name in named if PurePath(name).name in texts}
    return {**texts, **called}


def arguments_of(records: Sequence[of.Argument], path: Path) -> list[Any]:
    """The inverse of `described`: the arguments of the launch at `path`, whose files lie beside it.

    Raises:
        MemsimError: a file is missing or does not match.
    """
    memories = _Memories(path)
    return [_value(record, memories) for record in records]


class _Memories:
    """Reads each allocation of a launch once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.read:
            content = _beside(name, self.path)
            try:
                array = read_array(io.BytesIO(content), len(content))
            except ValueError as error:
                raise MemsimError(f"cannot read {name}: {error}", file=str(self.path)) from None
            self.read[name] = np.array(array).reshape(-1).view(np.uint8)
        return self.read[name]

    def array(self, record: of.ArrayArgument) -> np.ndarray:
        """The array that a record describes, in its allocation."""
        dtype, shape, values = dtype_of(record.dtype), record.shape, record.values
        try:
            if not isinstance(values, str):
                return np.array(values, dtype).reshape(shape)
            strides = record.strides or c_strides(shape, dtype.itemsize)
            view: np.ndarray = np.ndarray(shape, dtype, self[values], record.offset or 0, strides)
            return view
        except (TypeError, ValueError, OverflowError) as error:
            what = values if isinstance(values, str) else "the list of values"
            raise MemsimError(
                f"{what} does not contain {shape} of {dtype}: {error}", file=str(self.path)
            ) from None


def _value(record: of.Argument, memories: _Memories) -> Any:
    match record:
        case of.Null():
            return None
        case of.Bytes():
            return bytes.fromhex(record.hex)
        case of.Scalar():
            return _number(record)
        case of.Struct():
            parts = tuple(_part(part, memories) for part in record.parts)
            return StructFields(parts, [part.name for part in record.parts]) if record.named else parts
        case of.PointerTable():
            return Pointers(tuple(_value(array, memories) for array in record.arrays))
        case of.TensorMapArgument():
            return TensorMap(_value(record.array, memories), record.box, record.swizzle)
        case of.Tensors():
            return TensorMaps(tuple(_value(one, memories) for one in record.maps))
        case of.TextureArgument() if record.dimensions is UNSET:
            return Texture1D(_value(record.array, memories))
        case of.TextureArgument():
            how = {
                field.name: getattr(record, field.name) for field in fields(Texture) if field.name != "array"
            }
            return Texture(_value(record.array, memories), **how)
        case of.ArrayArgument() if record.values is not UNSET:
            return memories.array(record)
        case _:
            return ArrayArg(
                record.shape,
                record.dtype,
                record.fill,
                record.seed,
                record.strides or None,
                None if record.offset is UNSET else record.offset,
            )


def _number(record: of.Scalar) -> Any:
    value = float(record.value) if isinstance(record.value, str) else record.value
    if record.dtype is UNSET:
        return value
    try:
        return dtype_of(record.dtype).type(value)
    except (ValueError, OverflowError):
        raise MemsimError(f"{value} is not of type {record.dtype}") from None


def _part(record: of.Argument, memories: _Memories) -> Any:
    """A part of a struct, which must have a size."""
    value = _value(record, memories)
    if value is None:
        return np.uint64(0)
    return np.void(value) if isinstance(value, bytes) else value
