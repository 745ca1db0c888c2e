"""Arrays of other packages as arguments: torch (also meta and fake tensors), CuPy, and anything with an array
protocol.

Becomes a numpy array with the same layout in its allocation, or an `ArrayArg` if there is no content. No
package is imported: arrays are recognized by their interface. Content is read from a GPU only if the package
offers a copy (`.get()`, `.cpu()`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memsim.argument_types.argument import Argument, memory_at
from memsim.argument_types.array_arg import ArrayArg, dtype_of
from memsim.argument_types.given_values import StructFields
from memsim.errors import MemsimError
from memsim.launch import GLOBAL_ALIGN

OURS = (np.ndarray, np.generic, Argument, str, bytes, bytearray)
PROTOCOLS = ("__cuda_array_interface__", "__array_interface__", "__dlpack__")
MOST_STRUCTS = 64  # nesting depth
CPU = 1  # kDLCPU in dlpack.h


def as_arguments(arguments: Sequence[object], depth: int = 0) -> Sequence[Any]:
    """Every argument as the emulator takes it, including parts of structs. Anything but a list is returned as
    it is.

    depth: nesting depth of structs.

    Raises:
        MemsimError: an array whose content is inaccessible, or structs nested too deeply.
    """
    if not isinstance(arguments, (list, tuple)):
        return arguments
    if depth > MOST_STRUCTS:
        raise MemsimError(f"an argument has structs within structs, more than {MOST_STRUCTS} deep")
    return [as_argument(argument, depth) for argument in arguments]


def as_argument(value: object, depth: int = 0) -> Any:
    """An array of any package as a numpy array or `ArrayArg`; anything else as it is. One without dimensions
    is one of one element: to a kernel it is a pointer, as every array.

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
        return np.atleast_1d(np.asarray(value))
    if hasattr(value, "__dlpack__"):
        return _by_dlpack(value)
    return value


def is_foreign(value: object) -> bool:
    """Is it an array of another package?"""
    return not isinstance(value, OURS) and (
        hasattr(value, "data_ptr") or any(hasattr(value, name) for name in PROTOCOLS)
    )


# --- torch


def _of_torch(tensor: Any) -> np.ndarray | ArrayArg:
    """A tensor in its storage; tensors on `meta` and fake ones have no content.

    Raises:
        MemsimError: a sparse one, which is several arrays.
    """
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise MemsimError(
            f"a tensor of layout {layout} is several arrays, and a kernel's argument is one",
            hint="pass its parts, such as tensor.values() and tensor.col_indices()",
        )
    dtype = dtype_of(str(tensor.dtype).rpartition(".")[2])
    strides = tuple(int(step) * dtype.itemsize for step in tensor.stride())
    shape = tuple(int(extent) for extent in tensor.shape)
    if not shape:
        shape, strides = (1,), (dtype.itemsize,)
    offset = int(tensor.storage_offset()) * dtype.itemsize
    if _has_no_content(tensor):
        return ArrayArg(shape, dtype.name, strides=strides, offset=offset)
    whole = _bytes_of(tensor)
    found: np.ndarray = np.ndarray(shape, dtype, whole, offset, strides)
    return found


def _has_no_content(tensor: object) -> bool:
    return "Fake" in type(tensor).__name__ or bool(getattr(tensor, "is_meta", False))


def _bytes_of(tensor: Any) -> np.ndarray:
    """The whole storage of a tensor, without a copy if on the CPU."""
    storage = tensor.untyped_storage()
    if str(tensor.device).partition(":")[0] != "cpu":
        storage = storage.cpu()
    size = int(storage.nbytes())
    if size == 0:
        return np.zeros(0, np.uint8)
    return memory_at(int(storage.data_ptr()), size, storage)


# --- protocols


def _on_the_gpu(value: Any) -> np.ndarray | ArrayArg:
    """An array on a GPU: its content by `.get()`, with the alignment of its own address."""
    interface = value.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    shape, strides = tuple(interface["shape"]) or (1,), interface.get("strides") or None
    described = ArrayArg(
        shape, dtype.name, "zeros", strides=strides and tuple(strides), offset=_offset(interface, dtype)
    )
    copy = getattr(value, "get", None) or getattr(value, "copy_to_host", None)
    if copy is None:
        return ArrayArg(shape, dtype.name, strides=described.strides, offset=described.start)
    array = described.make()
    array[...] = copy()
    return array


def _offset(interface: dict[str, Any], dtype: np.dtype) -> int:
    """The offset of the first element from a multiple of 256 bytes, with room for what precedes it."""
    strides = interface.get("strides") or ()
    before = -sum((extent - 1) * step for extent, step in zip(interface["shape"], strides) if step < 0)
    past = (int(interface["data"][0]) - before) % GLOBAL_ALIGN
    return int(before + past)


def _by_dlpack(value: Any) -> np.ndarray:
    device, _ = value.__dlpack_device__()
    if int(device) != CPU:
        raise MemsimError(
            f"the content of a {type(value).__name__} on a GPU cannot be read",
            hint="pass a copy on the CPU, or describe it: memsim.ArrayArg(shape, dtype)",
        )
    try:
        return np.atleast_1d(np.from_dlpack(value))
    except (BufferError, TypeError, RuntimeError) as error:  # by what the package says
        raise MemsimError(f"the content of a {type(value).__name__} cannot be read: {error}") from None
