"""Arrays of other packages as arguments: torch (meta and fake too), CuPy, and whatever speaks a protocol.

In: anything. Out: a numpy array that lies as the other does in its allocation, an `ArrayArg` where there is
no content to read, or the thing itself if it is no array. No package is imported: an array is known by what
it can do. Left out on purpose: what a kernel does with it.

Content is read from the GPU only where a package offers to copy it (`.get()`, `.cpu()`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import (
    GLOBAL_ALIGN,
    ArrayArg,
    Pointers,
    StructFields,
    TensorMap,
    TensorMaps,
    Texture1D,
    dtype_of,
    owner,
)

OURS = (np.ndarray, np.generic, ArrayArg, Pointers, TensorMap, TensorMaps, Texture1D, str, bytes, bytearray)
PROTOCOLS = ("__cuda_array_interface__", "__array_interface__", "__dlpack__")
MOST_STRUCTS = 64  # one in the other
CPU = 1  # kDLCPU in dlpack.h


def as_arguments(arguments: Sequence[Any], depth: int = 0) -> Sequence[Any]:
    """Every argument as the emulator takes it; the parts of a struct too. What is no list stays as it is.

    depth: structs around these.

    Raises:
        MemsimError: an array whose content cannot be had, or a struct in itself or in very many others.
    """
    if not isinstance(arguments, (list, tuple)):
        return arguments
    if depth > MOST_STRUCTS:
        raise MemsimError(f"an argument has structs within structs, more than {MOST_STRUCTS} deep")
    return [as_argument(argument, depth) for argument in arguments]


def as_argument(value: Any, depth: int = 0) -> Any:
    """An array of whatever package as a numpy array or `ArrayArg`; anything else as it is.

    Raises:
        MemsimError: as `as_arguments`.
    """
    if value is None or isinstance(value, (*OURS, int, float)):
        return value
    if isinstance(value, StructFields):
        return StructFields(as_arguments(value, depth + 1), value.names)
    if isinstance(value, (list, tuple)):
        return as_arguments(value, depth + 1)
    if hasattr(value, "data_ptr") and hasattr(value, "storage_offset"):
        return _of_torch(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _on_the_gpu(value)
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return _by_dlpack(value)
    return value


def is_foreign(value: Any) -> bool:
    """Is it an array of another package?"""
    return not isinstance(value, OURS) and (
        hasattr(value, "data_ptr") or any(hasattr(value, name) for name in PROTOCOLS)
    )


# --- torch


def _of_torch(tensor: Any) -> np.ndarray | ArrayArg:
    """A tensor in its storage; one of the devices `meta` and fake ones have no content."""
    dtype = dtype_of(str(tensor.dtype).rpartition(".")[2])
    strides = tuple(int(step) * dtype.itemsize for step in tensor.stride())
    shape = tuple(int(extent) for extent in tensor.shape)
    offset = int(tensor.storage_offset()) * dtype.itemsize
    if _has_no_content(tensor):
        return ArrayArg(shape, dtype.name, strides=strides, offset=offset)
    whole = _bytes_of(tensor)
    found: np.ndarray = np.ndarray(shape, dtype, whole, offset, strides)
    return found


def _has_no_content(tensor: Any) -> bool:
    return "Fake" in type(tensor).__name__ or bool(getattr(tensor, "is_meta", False))


def _bytes_of(tensor: Any) -> np.ndarray:
    """The whole storage of a tensor, in place where the CPU can reach it."""
    storage = tensor.untyped_storage()
    if str(tensor.device).partition(":")[0] != "cpu":
        storage = storage.cpu()
    size = int(storage.nbytes())
    if size == 0:
        return np.zeros(0, np.uint8)
    return _memory(int(storage.data_ptr()), size, storage)


# --- protocols


def _on_the_gpu(value: Any) -> np.ndarray | ArrayArg:
    """An array on a GPU: its content by `.get()`, at an address that is aligned as its own."""
    interface = value.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    described = ArrayArg(
        shape, dtype.name, "zeros", strides=strides and tuple(strides), offset=_offset(interface, dtype)
    )
    copy = getattr(value, "get", None) or getattr(value, "copy_to_host", None)
    if copy is None:
        return ArrayArg(shape, dtype.name, strides=described.strides, offset=described.start)
    array = described.make()
    array[...] = copy()
    return array


def _offset(interface: dict[str, Any], dtype: np.dtype[Any]) -> int:
    """Where the first element lies behind a multiple of 256 bytes, with room in front for what lies there."""
    strides = interface.get("strides") or ()
    before = -sum((extent - 1) * step for extent, step in zip(interface["shape"], strides) if step < 0)
    past = (int(interface["data"][0]) - before) % GLOBAL_ALIGN
    return int(before + past)


def _by_dlpack(value: Any) -> np.ndarray:
    device, _ = value.__dlpack_device__()
    if int(device) != CPU:
        raise MemsimError(
            f"the content of a {type(value).__name__} on a GPU cannot be read",
            hint="give a copy on the CPU, or describe it: memsim.ArrayArg(shape, dtype)",
        )
    return np.from_dlpack(value)


# --- memory


def allocation(array: np.ndarray) -> tuple[np.ndarray, int]:
    """The memory that an array is a view of, as bytes in place, and where its first element lies in it."""
    whole = owner(array)
    bounds = (*np.lib.array_utils.byte_bounds(whole), *np.lib.array_utils.byte_bounds(array))
    low, high = min(bounds), max(bounds)
    first = int(array.__array_interface__["data"][0])
    return _memory(low, high - low, whole), first - low


def _memory(start: int, size: int, keeper: Any) -> np.ndarray:
    """The bytes at an address, which `keeper` keeps alive."""
    memory = (ctypes.c_uint8 * size).from_address(start)
    memory._keeper = keeper  # type: ignore[attr-defined]
    return np.ctypeslib.as_array(memory)
