"""The arrays of a launch on the GPU: each allocation once, so that views of it share memory there, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from memsim.argument_types import ArrayArg, ArrayTable, TensorMap, Texture
from memsim.argument_types.allocations import allocation
from memsim.argument_types.array_arg import made
from memsim.validate.driver_calls import driver, encode_map


class DeviceMemory:
    """What is placed stays until this object is gone."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self._placed: dict[tuple[int, int], Any] = {}
        self._hosts: dict[int, tuple[Any, np.ndarray]] = {}  # kept, so that nothing else gets their addresses
        self._tables: list[Any] = []
        self._library: Any = None

    def place(self, array: np.ndarray | ArrayArg) -> tuple[Any, int]:
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

    def address(self, argument: Any) -> int:
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

    def _host(self, array: np.ndarray | ArrayArg) -> tuple[Any, np.ndarray]:
        self._hosts[id(array)] = array, made(array)
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


def address_of(array: Any) -> int:
    """The device address of a CuPy array."""
    return int(array.data.ptr)
