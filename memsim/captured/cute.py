"""Captures CuTe DSL's launches by replacing the CUDA runtime under the host code that it compiles.

Each launch made by the host code of a `cute.jit` function becomes a `Launched`; addresses in its parameters
are mapped back to the caller's arrays. Nothing is executed, with or without a GPU. Functions compiled before
the capture are not supported; nor are memory, streams and tensor maps of the runtime: host code that needs
them gets "no driver".
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from ctypes import CFUNCTYPE, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

import numpy as np

from memsim.arch import SM_90
from memsim.argument_types import StructFields, TensorMap
from memsim.argument_types.argument import allocation
from memsim.argument_types.array_tables import decode_tensor_map
from memsim.argument_types.foreign_arrays import as_argument
from memsim.captured.launched import POINTER, Launched, kernel_of_cubin, snapshot, with_arrays
from memsim.captured.session import replaced_attributes
from memsim.errors import MemsimError
from memsim.sass.fat_binary import HEADER, packed_cubins, unpack

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

    cubin: bytes
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
        self._cubins: list[bytes] = []
        self._kernels: list[tuple[bytes, str]] = []

    def load(self, library: int, image: int) -> int:
        """_cudaLibraryLoadData: a fat binary by address."""
        size = c_uint64.from_address(image + 8).value
        data = ctypes.string_at(image, HEADER + size)
        found = next(filter(None, (unpack(data, one) for one in packed_cubins(data)[0])), None)
        if found is None:
            return UNKNOWN
        self._cubins.append(found)
        c_uint64.from_address(library).value = len(self._cubins)
        return SUCCESS

    def kernel(self, kernel: int, library: int, name: int) -> int:
        """_cudaLibraryGetKernel: a handle of the kernel `name` of a library."""
        self._kernels.append((self._cubins[library - 1], ctypes.string_at(name).decode()))
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
        cubin, name = self._kernels[kernel - 1]
        gx, gy, gz, bx, by, bz = shape
        try:
            self.listener(HostLaunch(cubin, name, (gx, gy, gz), (bx, by, bz), shared, cluster, parameters))
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

    def nothing(*_: object) -> int:
        return SUCCESS

    pointer, number, long = c_void_p, c_int32, c_int64
    made: list[tuple[str, Callable[..., int], tuple[type[c_void_p | c_int32 | c_int64], ...]]] = [
        ("_cudaLibraryLoadData", lambda out, image, *_: RUNTIME.load(out, image),
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


GPU = 2  # kDLCUDA of dlpack.h
#: Modules with a `benchmark`, which times a function by a driver's events; a release has one or both.
BENCHMARKS = ("cutlass.testing", "cutlass.cute.testing")
#: Execution engines whose host code calls our runtime, by id.
_OURS: set[int] = set()


@contextmanager
def capture_launches(keep: Callable[[Launched], None], arch: str) -> Iterator[None]:
    """Within the context, CuTe DSL compiles for `arch`, and launches of what it compiles are captured."""
    from cutlass._mlir.execution_engine import ExecutionEngine  # type: ignore[import-not-found,unused-ignore]
    from cutlass.base_dsl.jit_executor import ExecutionArgs  # type: ignore[import-not-found,unused-ignore]
    from cutlass.cute.runtime import _Tensor  # type: ignore[import-not-found,unused-ignore]
    from cutlass.cutlass_dsl import CuTeDSL  # type: ignore[import-not-found,unused-ignore]
    from cutlass.cutlass_dsl.cuda_jit_executor import (  # type: ignore[import-not-found,unused-ignore]
        CudaDialectJitCompiledFunction as Compiled,
    )

    session = Session(keep)
    is_specific = arch[-1].isdigit() and int(arch.removeprefix("sm_")) >= 90
    with_features = f"{arch}a" if is_specific else arch  # sm_90a: it uses instructions of the architecture
    start, wrap = ExecutionEngine.__init__, _Tensor.__init__
    call, take = CuTeDSL._func, ExecutionArgs.generate_execution_args
    load = Compiled._load_cuda_library

    def start_with_ours(engine: Any, *args: object, **kwargs: object) -> None:
        start(engine, *args, **kwargs)
        for name, function in functions().items():
            engine.raw_register_runtime(name, ctypes.cast(function, ctypes.c_void_p))
        _OURS.add(id(engine))

    def wrap_as_on_a_gpu(tensor: Any, array: object, *args: object, **kwargs: object) -> None:
        wrap(tensor, array, *args, **kwargs)
        _say_gpu(tensor._dlpack_data)
        session.arrays.append(as_argument(array))

    def note(signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        for name, value in (*zip(signature.parameters, args), *kwargs.items()):
            if isinstance(value, _Tensor):
                session.name(value.data_ptr, name)

    def call_named(dsl: object, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        note(inspect.signature(function), args, kwargs)
        return call(dsl, function, *args, **kwargs)

    def take_named(described: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
        note(described.signature, args, kwargs)
        return take(described, args, kwargs)

    def load_ours(compiled: Any) -> object:
        if id(compiled.engine) not in _OURS:
            raise MemsimError(
                f"{compiled.function_name} was compiled before the capture",
                hint="call cute.compile, or call the function for the first time, inside the capture",
            )
        return load(compiled)

    changes: tuple[tuple[object, Mapping[str, object]], ...] = (
        (ExecutionEngine, {"__init__": start_with_ours}),
        (_Tensor, {"__init__": wrap_as_on_a_gpu}),
        (CuTeDSL, {"_func": call_named}),
        (ExecutionArgs, {"generate_execution_args": take_named}),
        (Compiled, {"_load_cuda_library": load_ours, "num_devices": 1}),
        (CuTeDSL._get_dsl().envar, {"_arch": with_features, "lineinfo": True}),
        (RUNTIME, {"listener": session.launch}),
        *((module, {"benchmark": _once}) for module in _benchmarks()),
    )
    RUNTIME.error = None
    try:
        with replaced_attributes(*changes):
            yield
    except Exception:
        if RUNTIME.error is not None:
            raise RUNTIME.error from None
        raise


def _benchmarks() -> list[ModuleType]:
    """The modules of `BENCHMARKS` that this release has."""
    found = []
    for name in BENCHMARKS:
        with suppress(ImportError):
            found.append(import_module(name))
    return [module for module in found if hasattr(module, "benchmark")]


def _once(function: Callable[..., object], **how: Any) -> float:
    """In place of `benchmark`: calls the function once, which takes a microsecond."""
    make = how.get("workspace_generator")
    arguments = how["kernel_arguments"] if make is None else make()
    function(*arguments.args, **arguments.kwargs)
    return 1.0


def _say_gpu(capsule: object) -> None:
    """Make a DLPack capsule claim GPU memory, so that the code's pointers to it are global pointers."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    ctypes.c_int32.from_address(get(capsule, b"dltensor") + POINTER).value = GPU


class Session:
    """A capture. arrays: those that became CuTe tensors; names: of the call's tensors, by address."""

    def __init__(self, keep: Callable[[Launched], None]) -> None:
        self.keep = keep
        self.arrays: list[np.ndarray] = []
        self.names: dict[int, str] = {}

    def name(self, address: int, name: str) -> None:
        """Name the tensor at an address.

        Raises:
            MemsimError: it was created before the capture.
        """
        self.names[address] = name
        if self._at(address) is None:
            raise MemsimError(
                f"{name} became a CuTe tensor before the capture and is not in GPU memory",
                hint="call from_dlpack inside the capture",
            )

    def launch(self, made: HostLaunch) -> None:
        """Record one launch."""
        release = metadata.version("nvidia-cutlass-dsl")
        kernel = kernel_of_cubin(made.cubin, made.name, f"CuTe DSL {release}")
        args, names = [], []
        for place, parameter in enumerate(kernel.parameters):
            address = ctypes.c_uint64.from_address(made.parameters + POINTER * place).value
            argument, name = self._argument(ctypes.string_at(address, parameter.size))
            args.append(argument)
            names.append(name or f"arg{place}")
        self.keep(
            Launched(
                kernel=replace(kernel, called=_short(made.name), names=tuple(names)),
                grid=made.grid,
                block=made.block,
                args=snapshot(args),
                shared_bytes=made.shared_bytes,
                cluster=made.cluster,
            )
        )

    def _argument(self, raw: bytes) -> tuple[TensorMap | StructFields | bytes, str]:
        """(a parameter's bytes with arrays in place of their addresses; the first array's name).

        A tensor map, which host code encodes itself, becomes one over the array.
        """
        if len(raw) == TensorMap.nbytes and (tensor := self._tensor_map(raw)):
            return tensor
        found = [
            (start, *there)
            for start in range(0, len(raw) - POINTER + 1, POINTER)
            if (there := self._at(int.from_bytes(raw[start : start + POINTER], "little"))) is not None
        ]
        if not found:
            return raw, ""
        first = found[0][2]
        pointers = ((start, array, "" if name == first else name) for start, array, name in found)
        return with_arrays(raw, pointers), first

    def _tensor_map(self, raw: bytes) -> tuple[TensorMap, str] | None:
        """The tensor map over one of the arrays, and the array's name; None if these bytes are none."""
        encoded = decode_tensor_map(raw)
        if encoded is None:
            return None
        for array in self.arrays:
            memory, _ = allocation(array)
            start = encoded.address - int(memory.__array_interface__["data"][0])
            if 0 <= start < memory.size:
                return encoded.over(memory, start), self.names.get(encoded.address, "array")
        return None

    def _at(self, address: int) -> tuple[np.ndarray, str] | None:
        """The array that contains an address, from there on, and its name."""
        for array in self.arrays:
            memory, start = allocation(array)
            offset = address - int(memory.__array_interface__["data"][0])
            if 0 <= offset < memory.size:
                inside: np.ndarray = np.ndarray((memory.size - offset,), np.uint8, memory, offset)
                return (array if offset == start else inside), self.names.get(address, "array")
        return None


def _short(name: str) -> str:
    """`scale_kernel` of `kernel_cutlass_scale_kernel_tensorptrf32gmemo20481_..._0`."""
    plain = name.removeprefix("kernel_cutlass_")
    for mark in ("_tensorptr", "_Tensor", "_CopyAtom", "_TiledMMA", "_TiledCopy", "_f32_", "_i32_"):
        plain = plain.partition(mark)[0]
    return plain
