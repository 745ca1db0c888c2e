"""Saves a launch as a folder, and loads it: `launch.json`, the kernel's code beside it, and the contents of
its arrays.

Arrays in one allocation refer to one file, and share memory again when loaded.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from memsim.api import loading
from memsim.arrays import allocation
from memsim.captured import launch_document as of
from memsim.captured.launched import Launched
from memsim.errors import MemsimError
from memsim.files import read_bytes, write_text
from memsim.kernel import Kernel, PtxKernel
from memsim.launch import (
    ArrayArg,
    Pointers,
    StructFields,
    TensorMap,
    TensorMaps,
    Texture1D,
    c_strides,
    dim3,
    dtype_of,
)
from memsim.npy import read_array
from memsim.sass.attributed_lines import in_library

LAUNCH = "launch.json"


# --- writing


def write_launch(launched: Launched, folder: Path) -> Path:
    """Write the folder; returns the path of its `launch.json`, which is written last.

    Raises:
        MemsimError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document = of.LaunchDocument(
            version=1,
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
    """Machine code as a cubin, with the PTX that it was assembled from; PTX as it is."""
    ptx = kernel.code.module.text if isinstance(kernel.code, PtxKernel) else kernel.code.machine.module.ptx
    made = {}
    if ptx:
        (folder / "kernel.ptx").write_text(ptx, encoding="utf-8")
        made["ptx"] = "kernel.ptx"
    if isinstance(kernel.code, PtxKernel):
        return {**made, "code": "kernel.ptx", "form": "ptx"}
    (folder / "kernel.cubin").write_bytes(kernel.code.machine.module.code)
    return {**made, "code": "kernel.cubin"}


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
        return of.Texture(array=_array(value.array, files))
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


# --- reading


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


def _kernel(document: of.LaunchDocument, path: Path) -> Kernel:
    code = path.parent / document.code
    content = _beside(document.code, path)
    if code.suffix == ".cubin":
        ptx = _beside(document.ptx, path).decode("utf-8", "replace") if document.ptx else ""
        module = loading.from_cubin(content, document.made_by, ptx)
    else:
        module = loading.load(code, document.options, code=document.form or None)
    return module[document.kernel]


def _beside(name: str, path: Path) -> bytes:
    """The file of that name beside a launch.

    Raises:
        MemsimError: there is none, or it cannot be read.
    """
    try:
        return read_bytes(path.parent / name, name)
    except FileNotFoundError:
        raise MemsimError(f"there is no {name} beside it", file=str(path)) from None


def _texts(document: of.LaunchDocument, kernel: Kernel, path: Path) -> dict[str, str]:
    """The source files beside it, by their names in the code."""
    texts = {file: _beside(file, path).decode("utf-8", "replace") for file in document.sources}
    named = {file for _, _, file, _ in kernel.code.listing}
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
        case of.Texture():
            return Texture1D(_value(record.array, memories))
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


def _plain(value: Any) -> Any:
    """A numpy number as a Python number."""
    return value.item()
