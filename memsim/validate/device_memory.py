"""What a launch needs on the GPU and CuPy does not give: its arrays, tensor maps, and launches in clusters.

Each allocation is there once, so that views of it share memory there, too. Tensor maps are as the driver
encodes them; a launch in clusters that the launch chooses is `cuLaunchKernelEx`.
Source of the driver's structures: CUlaunchConfig, CUlaunchAttribute of cuda.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from memsim.argument_types import ArrayArg, ArrayTable, TensorMap, Texture, c_strides, dtype_of
from memsim.argument_types.argument import allocation
from memsim.argument_types.array_arg import as_numpy
from memsim.argument_types.array_tables import SWIZZLES
from memsim.errors import MemsimError
from memsim.validate.standalone import Refused, load_driver

#: Element types in the order of `CUtensorMapDataType`; those that follow flush or round.
TYPES = (
    *("uint8", "uint16", "uint32", "int32", "uint64", "int64"),
    *("float16", "float32", "float64", "bfloat16"),
)

#: An array of CuPy, which states no types.
DeviceArray: TypeAlias = Any
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


def driver() -> ctypes.CDLL:
    """The driver's library.

    Raises:
        MemsimError: it cannot be loaded.
    """
    try:
        return load_driver()
    except Refused as error:
        raise MemsimError(str(error)) from None


def encode_map(library: ctypes.CDLL, one: TensorMap, address: int) -> bytes:
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
    library: ctypes.CDLL,
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


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class _Configuration(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint32),
    ]


def launch_clusters(
    function: int,
    grid: Sequence[int],
    block: Sequence[int],
    cluster: Sequence[int],
    shared_bytes: int,
    parameters: Sequence[bytes],
) -> None:
    """Launch a `CUfunction`, without waiting for it. parameters: the bytes of each.

    Raises:
        MemsimError: the driver rejects it.
    """
    attribute = _Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint32 * 16)(*cluster))
    configuration = _Configuration(
        (ctypes.c_uint32 * 3)(*grid),
        (ctypes.c_uint32 * 3)(*block),
        shared_bytes,
        None,
        ctypes.pointer(attribute),
        1,
    )
    buffers = [ctypes.create_string_buffer(one, len(one)) for one in parameters]
    places = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    refused = driver().cuLaunchKernelEx(
        ctypes.byref(configuration), ctypes.c_void_p(function), places, ctypes.c_void_p(None)
    )
    if refused:
        raise MemsimError(
            f"the driver rejects a launch in clusters of {list(cluster)} (CUDA error {refused})"
        )


class DeviceMemory:
    """What is placed stays until this object is gone."""

    def __init__(self, cupy: ModuleType) -> None:
        self.cupy = cupy
        self._placed: dict[tuple[int, int], DeviceArray] = {}
        #: Kept, so that nothing else gets their addresses.
        self._hosts: dict[int, tuple[np.ndarray | ArrayArg, np.ndarray]] = {}
        self._tables: list[DeviceArray] = []
        self._library: ctypes.CDLL | None = None

    def place(self, array: np.ndarray | ArrayArg) -> tuple[DeviceArray, int]:
        """(an array's allocation on the device, the offset of its first element in bytes).

        A plain array's has its shape and element type, and a view's is bytes.
        """
        _, host = self._hosts.get(id(array)) or self._host(array)
        memory, offset = allocation(host)
        place = int(memory.__array_interface__["data"][0]), memory.size
        if place not in self._placed:
            is_whole = host.flags.c_contiguous and host.nbytes == memory.size and host.dtype.isbuiltin == 1
            self._placed[place] = self.cupy.asarray(host if is_whole else np.array(memory))
        return self._placed[place], offset

    def address(self, argument: np.ndarray | ArrayArg | ArrayTable) -> int:
        """The address of an array's first element, or of a table, which is made of its arrays' addresses."""
        if isinstance(argument, ArrayTable):
            each = [0 if array is None else self.address(array) for array in argument.arrays]
            return self._table(
                np.frombuffer(argument.content(each, self.encode_map), np.dtype(argument.dtype))
            )
        found, offset = self.place(argument)
        return address_of(found) + offset

    def encode_map(self, one: TensorMap, address: int) -> bytes:
        """The bytes of a tensor map over an array at an address."""
        self._library = self._library or driver()
        return encode_map(self._library, one, address)

    def _host(self, array: np.ndarray | ArrayArg) -> tuple[np.ndarray | ArrayArg, np.ndarray]:
        self._hosts[id(array)] = array, as_numpy(array)
        return self._hosts[id(array)]

    def _table(self, content: np.ndarray) -> int:
        self._tables.append(self.cupy.asarray(content))
        return address_of(self._tables[-1])


class DevicePlaces:
    """Where the launch has what its arguments refer to.

    addresses: of the arrays of `arrays_of`, in that order. textures: handles of the textures, in order.
    """

    def __init__(self, memory: DeviceMemory, addresses: Iterable[int], textures: Iterable[int]) -> None:
        self._memory, self._addresses, self._textures = memory, iter(addresses), iter(textures)

    def address(self) -> int:
        """Of the next array."""
        return next(self._addresses)

    def texture(self, texture: Texture) -> int:
        """The handle of the next texture."""
        return next(self._textures)

    def tensor_map(self, one: TensorMap, array: int, at: int) -> bytes:
        """As the driver encodes it."""
        return self._memory.encode_map(one, array)


def address_of(array: DeviceArray) -> int:
    """The device address of a CuPy array."""
    return int(array.data.ptr)
