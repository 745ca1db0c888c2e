"""Tensor maps as the CUDA driver encodes them, for kernels that run on a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from memsim.argument_types import TensorMap, c_strides, dtype_of
from memsim.captured.tensor_map_bits import SWIZZLES
from memsim.errors import MemsimError
from memsim.validate.standalone import Refused, load_driver

#: Element types in the order of `CUtensorMapDataType`; those that follow flush or round.
TYPES = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float64", "bfloat16"),
)


def driver() -> Any:
    """The driver's library.

    Raises:
        MemsimError: it cannot be loaded.
    """
    try:
        return load_driver()
    except Refused as error:
        raise MemsimError(str(error)) from None


def encoded(library: Any, one: TensorMap, address: int) -> bytes:
    """The bytes of a tensor map over an array whose first element is at `address`.

    Raises:
        MemsimError: the driver rejects it, or it has no box.
    """
    array = one.array
    dtype = dtype_of(str(array.dtype))
    if dtype.name not in TYPES or len(one.box) != len(array.shape):
        raise MemsimError(
            f"the driver has no tensor map over {dtype.name}{list(array.shape)} with such a box"
        )
    strides = array.strides or c_strides(array.shape, dtype.itemsize)
    return encode_tiled(
        library,
        kind=TYPES.index(dtype.name),
        address=address,
        extents=array.shape[::-1],
        steps=strides[-2::-1],
        box=one.box[::-1],
        swizzle=SWIZZLES.index(one.swizzle),
    )


def encode_tiled(
    library: Any,
    kind: int,
    address: int,
    extents: Sequence[int],
    steps: Sequence[int],
    box: Sequence[int],
    swizzle: int,
    fill: int = 0,
) -> bytes:
    """`cuTensorMapEncodeTiled` without interleave, element strides and promotion; dimensions innermost first.

    Raises:
        MemsimError: the driver rejects it.
    """
    room = (ctypes.c_uint8 * (2 * TensorMap.nbytes))()
    first = -ctypes.addressof(room) % TensorMap.alignment
    rank = len(extents)
    refused = library.cuTensorMapEncodeTiled(
        ctypes.byref(room, first),
        ctypes.c_int(kind),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*extents),
        (ctypes.c_uint64 * max(1, rank - 1))(*steps),
        (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(0),  # no interleave
        ctypes.c_int(swizzle),
        ctypes.c_int(0),  # no promotion in L2
        ctypes.c_int(fill),
    )
    if refused:
        raise MemsimError(
            f"the driver rejects a tensor map of {list(extents)} elements with boxes of {list(box)}"
            f" (CUDA error {refused})"
        )
    return bytes(room[first : first + TensorMap.nbytes])
