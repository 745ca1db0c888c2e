"""The arrays of a launch on the GPU: each allocation once, so that views of it share memory there, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.argument_types import ArrayArg, Pointers, TensorMap, TensorMaps
from memsim.arrays import allocation
from memsim.validate.driver_calls import driver, encoded


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
        if isinstance(argument, Pointers):
            each = [0 if array is None else self.address(array) for array in argument.arrays]
            return self._table(np.array(each, np.uint64))
        if isinstance(argument, TensorMaps):
            maps = b"".join(self.encoded(one, self.address(one.array)) for one in argument.maps)
            return self._table(np.frombuffer(maps, np.uint8))
        found, offset = self.place(argument)
        return address_of(found) + offset

    def encoded(self, one: TensorMap, address: int) -> bytes:
        """The bytes of a tensor map over an array at an address."""
        self._library = self._library or driver()
        return encoded(self._library, one, address)

    def _host(self, array: np.ndarray | ArrayArg) -> tuple[Any, np.ndarray]:
        self._hosts[id(array)] = array, made(array)
        return self._hosts[id(array)]

    def _table(self, content: np.ndarray) -> int:
        self._tables.append(self.cupy.asarray(content))
        return address_of(self._tables[-1])


def made(array: ArrayArg | np.ndarray) -> np.ndarray:
    """The array, created if necessary."""
    return array.make() if isinstance(array, ArrayArg) else array


def address_of(array: Any) -> int:
    """The device address of a CuPy array."""
    return int(array.data.ptr)
