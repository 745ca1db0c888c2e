"""A launch as a folder: `launch.json`, the kernel's code beside it, and the contents of its arrays.

In: a `Launched`, or the path of a `launch.json`, as `launch.schema.json` beside this file describes it. Out:
files, or a `Launched`. Arrays that lie in one allocation name one file, and lie in one again when it is read.
Left out on purpose: what the kernel does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import fastjsonschema
import numpy as np

from memsim import api
from memsim.arrays import allocation
from memsim.captured.launched import Launched
from memsim.errors import MemsimError
from memsim.kernel import Kernel, PtxKernel
from memsim.launch import ArrayArg, Pointers, TensorMap, Texture1D, c_strides, dim3, dtype_of

SCHEMA_FILE = Path(__file__).with_name("launch.schema.json")
LAUNCH = "launch.json"
VERSION = 1


# --- writing


def write_launch(launched: Launched, folder: Path) -> Path:
    """Writes the folder, and gives the path of its `launch.json`, which appears last.

    Raises:
        MemsimError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        record = {
            **_code(launched.kernel, folder),
            **_shape(launched),
            **_sources(launched, folder),
            **_arguments(launched, folder),
        }
        path, scratch = folder / LAUNCH, folder / f"{LAUNCH}.part"
        scratch.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        scratch.replace(path)
    except OSError as error:
        raise MemsimError(f"cannot write {error.filename}: {error.strerror}") from None
    return path


def _code(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """Machine code as a cubin, with the PTX that it was made of; PTX as itself."""
    made: dict[str, Any] = {"version": VERSION, "kernel": kernel.name, "made_by": kernel.origin.compiler}
    if kernel.called:
        made["called"] = kernel.called
    ptx = kernel.code.module.text if isinstance(kernel.code, PtxKernel) else kernel.code.machine.module.ptx
    if ptx:
        (folder / "kernel.ptx").write_text(ptx, encoding="utf-8")
        made["ptx"] = "kernel.ptx"
    if isinstance(kernel.code, PtxKernel):
        return {**made, "code": "kernel.ptx", "form": "ptx"}
    (folder / "kernel.cubin").write_bytes(kernel.code.machine.module.code)
    return {**made, "code": "kernel.cubin"}


def _shape(launched: Launched) -> dict[str, Any]:
    return {
        "grid": list(launched.grid),
        "block": list(launched.block),
        "shared_bytes": launched.shared_bytes,
        "cluster": list(launched.cluster) if launched.cluster else None,
        "note": launched.note,
    }


def _sources(launched: Launched, folder: Path) -> dict[str, Any]:
    """Copies of the source files; of several with one name the first."""
    found: dict[str, str] = {}
    for name, text in launched.kernel.sources.items():
        found.setdefault(PurePath(name).name, text)
    for file, text in found.items():
        (folder / file).write_text(text, encoding="utf-8")
    return {"sources": sorted(found)}


def _arguments(launched: Launched, folder: Path) -> dict[str, Any]:
    files = _Files(folder)
    named = zip(launched.kernel.argument_names, launched.args, strict=True)
    return {"arguments": [{"name": name, **_described(value, files)} for name, value in named]}


class _Files:
    """Writes allocations, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[tuple[int, int], str] = {}

    def name_of(self, memory: np.ndarray, dtype: np.dtype[Any]) -> str:
        """The file that holds the bytes of an allocation, as elements of `dtype` where that goes up."""
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self.names:
            name = self.names[place] = f"array{len(self.names)}.npy"
            plain = dtype.isbuiltin == 1 and memory.size % dtype.itemsize == 0
            np.save(self.folder / name, memory.view(dtype) if plain else memory, allow_pickle=False)
        return self.names[place]


def _described(value: Any, files: _Files) -> dict[str, Any]:
    if value is None:
        return {"kind": "null"}
    if isinstance(value, (np.ndarray, ArrayArg)) and value.shape != ():
        return _array(value, files)
    if isinstance(value, (list, tuple)):
        return {"kind": "struct", "parts": [_described(part, files) for part in value]}
    if isinstance(value, Pointers):
        return {"kind": "pointers", "arrays": [_described(array, files) for array in value.arrays]}
    if isinstance(value, TensorMap):
        return {"kind": "tensor map", "array": _described(value.array, files), "box": list(value.box)}
    if isinstance(value, Texture1D):
        return {"kind": "texture", "array": _described(value.array, files)}
    if isinstance(value, (bytes, bytearray)):
        return {"kind": "bytes", "hex": value.hex()}
    number = np.asarray(value)[()]
    if number.dtype.kind == "V" or not isinstance(number, np.generic):
        return {"kind": "bytes", "hex": number.tobytes().hex()}
    if isinstance(value, (bool, int, float)):  # as the kernel's parameter takes it
        return {"kind": "scalar", "value": value}
    if number.dtype.kind == "f" and not np.isfinite(number):
        return {"kind": "bytes", "hex": number.tobytes().hex()}
    return {"kind": "scalar", "dtype": number.dtype.name, "value": number.item()}


def _array(array: np.ndarray | ArrayArg, files: _Files) -> dict[str, Any]:
    dtype = dtype_of(array.dtype) if isinstance(array, ArrayArg) else array.dtype
    found: dict[str, Any] = {"kind": "array", "dtype": dtype.name, "shape": list(array.shape)}
    if isinstance(array, ArrayArg):
        strides, offset = array.strides, array.start
        content: dict[str, Any] = {"fill": array.fill, **({"seed": array.seed} if array.seed else {})}
    else:
        memory, offset = allocation(array)
        strides = array.strides
        content = {"values": files.name_of(memory, dtype)}
    if strides is not None and tuple(strides) != c_strides(array.shape, dtype.itemsize):
        found["strides"] = list(strides)
    if offset:
        found["offset"] = offset
    return {**found, **content}


# --- reading


@cache
def _check() -> Callable[[Any], Any]:
    checked: Callable[[Any], Any] = fastjsonschema.compile(json.loads(SCHEMA_FILE.read_text("utf-8")))
    return checked


def read_launch(path: Path) -> Launched:
    """The launch that a `launch.json` describes; files are looked for beside it.

    Raises:
        MemsimError: no such file, not a launch, or a file that it names is missing or does not fit.
    """
    try:
        record = json.loads(path.read_text("utf-8"))
        _check()(record)
    except OSError as error:
        raise MemsimError(f"cannot read the launch: {error.strerror}", file=str(path)) from None
    except (ValueError, fastjsonschema.JsonSchemaValueException) as error:
        raise MemsimError(f"this is no launch: {error}", file=str(path)) from None
    memories = _Memories(path)
    code = path.parent / record["code"]
    kernel = _kernel(record, code, path)
    names = tuple(argument.get("name", "") for argument in record["arguments"])
    kernel = replace(
        kernel,
        called=record.get("called", ""),
        names=names if all(names) else (),
        sources=_texts(record, kernel, path) or kernel.sources,
    )
    return Launched(
        kernel=kernel,
        grid=dim3(record["grid"], "grid"),
        block=dim3(record["block"], "block"),
        args=tuple(_value(argument, memories) for argument in record["arguments"]),
        shared_bytes=record.get("shared_bytes", 0),
        cluster=dim3(record["cluster"], "cluster") if record.get("cluster") else None,
        note=record.get("note", ""),
    )


def _kernel(record: dict[str, Any], code: Path, path: Path) -> Kernel:
    if not code.is_file():
        raise MemsimError(f"there is no {record['code']} beside it", file=str(path))
    if code.suffix == ".cubin":
        module = api.from_cubin(code.read_bytes(), record.get("made_by", ""), _ptx(record, path))
    else:
        module = api.load(code, record.get("options", ()), code=record.get("form"))
    return module[record["kernel"]]


def _texts(record: dict[str, Any], kernel: Kernel, path: Path) -> dict[str, str]:
    """The source files that are beside it, by what the code calls them."""
    beside = [file for file in record.get("sources", ()) if (path.parent / file).is_file()]
    texts = {file: (path.parent / file).read_text("utf-8", "replace") for file in beside}
    named = {file for _, _, file, _ in kernel.code.listing}
    called = {name: texts[PurePath(name).name] for name in named if PurePath(name).name in texts}
    return {**texts, **called}


def _ptx(record: dict[str, Any], path: Path) -> str:
    ptx = path.parent / record["ptx"] if record.get("ptx") else None
    return ptx.read_text("utf-8") if ptx is not None and ptx.is_file() else ""


class _Memories:
    """Reads the allocations that a launch names, each once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.read:
            try:
                array = np.load(self.path.parent / name, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise MemsimError(f"cannot read {name}: {error}", file=str(self.path)) from None
            self.read[name] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return self.read[name]

    def array(self, record: dict[str, Any]) -> np.ndarray:
        """The array that a record describes, in its allocation."""
        dtype, shape = dtype_of(record["dtype"]), tuple(record["shape"])
        if not isinstance(record["values"], str):
            return np.array(record["values"], dtype).reshape(shape)
        strides = tuple(record.get("strides", c_strides(shape, dtype.itemsize)))
        try:
            memory, offset = self[record["values"]], record.get("offset", 0)
            view: np.ndarray = np.ndarray(shape, dtype, memory, offset, strides)
            return view
        except (TypeError, ValueError) as error:
            raise MemsimError(
                f"{record['values']} does not hold {shape} of {dtype}: {error}", file=str(self.path)
            ) from None


def _value(record: dict[str, Any], memories: _Memories) -> Any:
    kind = record["kind"]
    if kind == "null":
        return None
    if kind == "bytes":
        return bytes.fromhex(record["hex"])
    if kind == "scalar":
        return np.dtype(record["dtype"]).type(record["value"]) if "dtype" in record else record["value"]
    if kind == "struct":
        return tuple(_part(part, memories) for part in record["parts"])
    if kind == "pointers":
        return Pointers(tuple(_value(array, memories) for array in record["arrays"]))
    if kind == "tensor map":
        return TensorMap(_value(record["array"], memories), tuple(record.get("box", ())))
    if kind == "texture":
        return Texture1D(_value(record["array"], memories))
    if "values" in record:
        return memories.array(record)
    return ArrayArg(
        tuple(record["shape"]),
        record["dtype"],
        record.get("fill", "random"),
        record.get("seed", 0),
        tuple(record["strides"]) if "strides" in record else None,
        record.get("offset"),
    )


def _part(record: dict[str, Any], memories: _Memories) -> Any:
    """A part of a struct, which needs a size."""
    value = _value(record, memories)
    if value is None:
        return np.uint64(0)
    return np.void(value) if isinstance(value, bytes) else value
