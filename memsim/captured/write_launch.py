"""Saves a launch as a folder: `launch.json`, beside it the kernel's code and its listing, and the contents of
its arrays.

Arrays in one allocation refer to one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

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
from memsim.arrays import allocation
from memsim.captured import launch_document as of
from memsim.captured.launch_document import LAUNCH
from memsim.captured.launched import Launched
from memsim.captured.saved_listing import packed
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.kernel import Kernel
from memsim.source.library_files import in_library


def write_launch(launched: Launched, folder: Path) -> Path:
    """Write the folder; returns the path of its `launch.json`, which is written last.

    Raises:
        MemsimError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document = of.LaunchDocument(
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
    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain).decode(), indent=1)
    write_text(folder / LAUNCH, text + "\n", "the launch")
    return folder / LAUNCH


def _code(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """The cubin, its listing, and the PTX that it was assembled from."""
    module = kernel.machine.module
    made: dict[str, Any] = {}
    if module.ptx:
        (folder / "kernel.ptx").write_text(module.ptx, encoding="utf-8")
        made["ptx"] = "kernel.ptx"
    listing, content = packed(module.code, module.listing)
    (folder / "kernel.cubin").write_bytes(module.code)
    (folder / listing.file).write_bytes(content)
    return {**made, "code": "kernel.cubin", "listing": listing}


def _sources(launched: Launched, folder: Path) -> tuple[str, ...]:
    """Copies of the user's source files; of several with the same name the first."""
    found: dict[str, str] = {}
    for name, text in launched.kernel.sources.items():
        if not in_library(name):
            found.setdefault(PurePath(name).name, text)
    for file, text in found.items():
        (folder / file).write_text(text, encoding="utf-8")
    return tuple(sorted(found))


def _arguments(launched: Launched, folder: Path) -> tuple[of.Argument, ...]:
    named = zip(launched.kernel.argument_names, described(launched.args, folder), strict=True)
    return tuple(msgspec.structs.replace(argument, name=name) for name, argument in named)


def described(arguments: Sequence[Any], folder: Path) -> list[of.Argument]:
    """The arguments of a launch as records; the contents of their arrays are written to `folder`."""
    files = _Files(folder)
    return [_described(value, files) for value in arguments]


class _Files:
    """Writes each allocation once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[tuple[int, int], str] = {}

    def name_of(self, memory: np.ndarray, dtype: np.dtype[Any]) -> str:
        """The file with the bytes of an allocation, as elements of `dtype` if its size is a multiple."""
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self.names:
            name = self.names[place] = f"array{len(self.names)}.npy"
            plain = dtype.isbuiltin == 1 and memory.size % dtype.itemsize == 0
            np.save(self.folder / name, memory.view(dtype) if plain else memory, allow_pickle=False)
        return self.names[place]


def _described(value: Any, files: _Files) -> of.Argument:
    if value is None:
        return of.Null()
    if isinstance(value, (np.ndarray, ArrayArg)) and value.shape != ():
        return _array(value, files)
    if isinstance(value, (list, tuple)):
        parts = tuple(_described(part, files) for part in value)
        if isinstance(value, StructFields):
            parts = tuple(msgspec.structs.replace(part, name=name) for part, name in zip(parts, value.names))
        return of.Struct(parts=parts, named=isinstance(value, StructFields))
    if isinstance(value, Pointers):
        arrays = (of.Null() if array is None else _array(array, files) for array in value.arrays)
        return of.PointerTable(arrays=tuple(arrays))
    if isinstance(value, TensorMap):
        return _tensor(value, files)
    if isinstance(value, TensorMaps):
        return of.Tensors(maps=tuple(_tensor(one, files) for one in value.maps))
    if isinstance(value, Texture1D):
        return of.TextureArgument(array=_array(value.array, files))
    if isinstance(value, Texture):
        how = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "array"}
        return of.TextureArgument(array=_array(value.array, files), **how)
    if isinstance(value, (bytes, bytearray)):
        return of.Bytes(hex=value.hex())
    number = np.asarray(value)[()]
    if number.dtype.kind == "V" or not isinstance(number, np.generic):
        return of.Bytes(hex=number.tobytes().hex())
    if isinstance(value, (bool, int, float)):  # typed by the kernel's parameter
        return of.Scalar(value=value if np.isfinite(value) else str(value))
    if number.dtype.kind == "f" and not np.isfinite(number):
        return of.Bytes(hex=number.tobytes().hex())
    return of.Scalar(dtype=number.dtype.name, value=number.item())


def _tensor(one: TensorMap, files: _Files) -> of.TensorMapArgument:
    return of.TensorMapArgument(array=_array(one.array, files), box=tuple(one.box), swizzle=one.swizzle)


def _array(array: np.ndarray | ArrayArg, files: _Files) -> of.ArrayArgument:
    dtype = dtype_of(array.dtype) if isinstance(array, ArrayArg) else array.dtype
    content: dict[str, Any]
    if isinstance(array, ArrayArg):
        strides, offset = array.strides, array.start
        content = {"fill": array.fill, "seed": array.seed}
    else:
        memory, offset = allocation(array)
        strides = array.strides
        content = {"values": files.name_of(memory, dtype)}
    in_order = strides is None or tuple(strides) == c_strides(array.shape, dtype.itemsize)
    return of.ArrayArgument(
        dtype=dtype.name,
        shape=tuple(array.shape),
        strides=UNSET if strides is None or in_order else tuple(strides),
        offset=offset or UNSET,
        **content,
    )


def _plain(value: Any) -> Any:
    """A numpy number as a Python number."""
    return value.item()
