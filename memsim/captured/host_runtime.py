"""The CUDA runtime functions called by host code of CuTe DSL, for a machine without a driver.

Each launch is reported to a listener: its machine code, its shape, and the addresses of its parameters.
Memory, streams and tensor maps are not supported; host code that needs them gets "no driver".
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from ctypes import CFUNCTYPE, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any

from memsim.arch import SM_90
from memsim.sass.binary import HEADER, read_fatbins

SUCCESS, NO_DRIVER, UNKNOWN = 0, 35, 999  # cudaError of driver_types.h
CLUSTER = 4  # cudaLaunchAttributeClusterDimension
ATTRIBUTE = 72  # bytes of a cudaLaunchAttribute: its kind, and its value from byte 8 on
#: cudaDeviceAttr -> value; 0 for all others.
ATTRIBUTES = {
    1: 1024,  # threads of a block
    8: 48 * 1024,  # shared memory of a block
    10: 32,  # threads of a warp
    16: 132,  # multiprocessors
    75: 9,  # compute capability, major
    97: SM_90.shared_block_bytes,  # shared memory of a block that asks for more
}

Dim3 = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A launch made by host code; `parameters` is the address of a table of pointers to them."""

    code: bytes
    name: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    cluster: Dim3 | None
    parameters: int


class Runtime:
    """One per process: host code may call it for as long as the process lives.

    listener: called for each launch; without one there is no driver. error: what the listener raised.
    """

    def __init__(self) -> None:
        self.listener: Callable[[HostLaunch], None] | None = None
        self.error: Exception | None = None
        self._codes: list[bytes] = []
        self._kernels: list[tuple[bytes, str]] = []

    def load(self, library: int, code: int) -> int:
        """_cudaLibraryLoadData: a fat binary by address."""
        size = c_uint64.from_address(code + 8).value
        found = read_fatbins(ctypes.string_at(code, HEADER + size)).cubins
        if not found:
            return UNKNOWN
        self._codes.append(found[0])
        c_uint64.from_address(library).value = len(self._codes)
        return SUCCESS

    def kernel(self, kernel: int, library: int, name: int) -> int:
        """_cudaLibraryGetKernel: a handle of the kernel `name` of a library."""
        self._kernels.append((self._codes[library - 1], ctypes.string_at(name).decode()))
        c_uint64.from_address(kernel).value = len(self._kernels)
        return SUCCESS

    def launch_extended(self, configuration: int, kernel: int, parameters: int) -> int:
        """_cudaLaunchKernelEx, with a cudaLaunchConfig_t."""
        numbers = (c_uint32 * 6).from_address(configuration)
        shared = c_uint64.from_address(configuration + 24).value
        return self._launch(kernel, list(numbers), shared, parameters, _cluster(configuration))

    def launch(self, kernel: int, *rest: int) -> int:
        """_cudaLaunchKernel: grid, block, parameters, shared memory, stream."""
        return self._launch(kernel, list(rest[:6]), rest[7], rest[6], None)

    def _launch(
        self, kernel: int, shape: list[int], shared: int, parameters: int, cluster: Dim3 | None
    ) -> int:
        if self.listener is None:
            return NO_DRIVER
        code, name = self._kernels[kernel - 1]
        gx, gy, gz, bx, by, bz = shape
        try:
            self.listener(HostLaunch(code, name, (gx, gy, gz), (bx, by, bz), shared, cluster, parameters))
        except Exception as error:  # exceptions must not propagate through host code
            self.error = error
            return UNKNOWN
        return SUCCESS


def _cluster(configuration: int) -> Dim3 | None:
    attributes = c_uint64.from_address(configuration + 40).value
    for place in range(c_uint32.from_address(configuration + 48).value):
        attribute = attributes + ATTRIBUTE * place
        if c_uint32.from_address(attribute).value == CLUSTER:
            x, y, z = (c_uint32 * 3).from_address(attribute + 8)
            return x, y, z
    return None


RUNTIME = Runtime()


@cache
def functions() -> dict[str, Any]:
    """The functions by the names that host code uses; ctypes callbacks, which are never freed."""
    return dict(_functions())


def _functions() -> Iterator[tuple[str, Any]]:
    def said(number: int) -> Callable[..., int]:
        def say(out: int, *_: int) -> int:
            c_int32.from_address(out).value = number
            return SUCCESS

        return say

    def attribute(out: int, asked: int, _: int) -> int:
        return said(ATTRIBUTES.get(asked, 0))(out)

    def nothing(*_: Any) -> int:
        return SUCCESS

    pointer, number, long = c_void_p, c_int32, c_int64
    made: list[tuple[str, Callable[..., int], tuple[Any, ...]]] = [
        ("_cudaLibraryLoadData", lambda out, code, *_: RUNTIME.load(out, code),
         (pointer, pointer, pointer, pointer, number, pointer, pointer, number)),
        ("_cudaLibraryGetKernel", RUNTIME.kernel, (pointer, pointer, pointer)),
        ("_cudaLaunchKernelEx", RUNTIME.launch_extended, (pointer, pointer, pointer)),
        ("_cudaLaunchKernel", RUNTIME.launch, (pointer, *(number,) * 6, pointer, long, pointer)),
        ("_cudaGetDevice", said(0), (pointer,)),
        ("_cudaGetDeviceCount", said(1), (pointer,)),
        ("_cudaDeviceGetAttribute", attribute, (pointer, number, number)),
        ("_cuKernelGetAttribute", said(0), (pointer, number, pointer, number)),
        ("_cudaOccupancyMaxActiveBlocksPerMultiprocessor", said(1), (pointer, pointer, number, long)),
        ("_cudaKernelSetAttributeForDevice", nothing, (pointer, number, number, number)),
        ("_cudaFuncSetAttribute", nothing, (pointer, number, number)),
    ]  # fmt: skip
    for name, function, types in made:
        yield name, CFUNCTYPE(number, *types)(function)
