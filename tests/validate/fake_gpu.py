"""A GPU made of memsim: what memsim uses of CuPy and cuBLAS, done by the emulator and numpy.

Time is made up: each launch advances a clock by what the test says.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import memsim
from memsim.argument_types import Pointers, TensorMap, Texture1D
from memsim.argument_types.array_tables import decode_tensor_map
from memsim.validate import device, device_memory
from memsim.validate.run_cubin import STATIC_SHARED_BYTES
from tests.state.tensor_map_format import encoded

CUBLAS = "cuBLAS"
TF32_BITS = np.uint32(0xFFFFE000)


class CUDARuntimeError(Exception):
    pass


class CUBLASError(Exception):
    pass


class OutOfMemoryError(Exception):
    pass


class Function:
    """A kernel of a PTX file."""

    def __init__(self, path: Path, entry: str) -> None:
        self.kernel = memsim.load(path)[entry]
        self.max_dynamic_shared_size_bytes = STATIC_SHARED_BYTES

    def __call__(self, grid: Any, block: Any, arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")
        memsim.run(self.kernel, grid, block, arguments, shared_bytes=shared_mem)


class CubinFunction(Function):
    """A kernel of a cubin, which gets its parameters as bytes with addresses in them."""

    def __init__(self, path: Path, entry: str, lying: dict[int, Any]) -> None:
        super().__init__(path, entry)
        self.lying = lying

    def __call__(self, grid: Any, block: Any, arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
        assert all(
            isinstance(each, np.ndarray) and each.size == 1 for each in arguments
        )  # as CuPy wants them
        super().__call__(grid, block, tuple(self.read(each.tobytes()) for each in arguments), shared_mem)

    def read(self, raw: bytes) -> Any:
        """The argument that the bytes came from."""
        if len(raw) == TensorMap.nbytes and (encoded := decode_tensor_map(raw)):
            memory, start = self.at(encoded.address)  # type: ignore[misc]
            return encoded.over(memory.reshape(-1).view(np.uint8), start)
        words = [raw[start : start + 8] for start in range(0, len(raw), 8)]
        parts = [self.argument(int.from_bytes(word, "little")) for word in words]
        if len(parts) == 1 and parts[0] is not None:
            return parts[0]
        if not any(part is not None for part in parts):
            return raw
        whole = zip(parts, words, strict=True)
        return [np.frombuffer(word, f"V{len(word)}")[0] if part is None else part for part, word in whole]

    def at(self, address: int) -> tuple[Any, int] | None:
        """The array that contains an address, and its offset there."""
        for start, array in self.lying.items():
            if start <= address < start + getattr(array, "nbytes", 1):
                return array, address - start
        return None

    def argument(self, address: int) -> Any:
        """The array at an address, or the rest of the one around it."""
        found = self.at(address)
        if found is None:
            return None
        array, offset = found
        if offset:
            return array.reshape(-1).view(np.uint8)[offset:]
        return self.table(array) if getattr(array, "dtype", None) == np.uint64 else array

    def table(self, array: np.ndarray) -> Any:
        """A table of pointers, if these are addresses."""
        pointees = [self.argument(int(address)) if address else None for address in array]
        return Pointers(pointees) if any(each is not None for each in pointees) else array


class FakeDriver:
    """A driver that only encodes tensor maps."""

    def cuTensorMapEncodeTiled(self, room: Any, kind: Any, rank: Any, *given: Any) -> int:  # noqa: N802
        address, extents, steps, box, _, _, swizzle, _, fill = given
        content = encoded(
            kind.value,
            address.value,
            list(extents),
            list(steps)[: rank.value - 1],
            list(box),
            swizzle.value,
            fill.value,
        )
        ctypes.memmove(ctypes.cast(room, ctypes.c_void_p).value or 0, content, len(content))
        return 0


class LaidTexture(Texture1D):
    """A texture object with a handle, as the driver gives it."""

    @property
    def ptr(self) -> int:
        return int(self.array.ctypes.data)  # type: ignore[union-attr]


def spoiled(spoil: Callable[[np.ndarray], None]) -> type[Function]:
    """A kernel that computes what it should, and then does this to its output."""

    class Wrong(Function):
        def __call__(self, grid: Any, block: Any, arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
            super().__call__(grid, block, arguments, shared_mem)
            spoil(arguments[2 if len(arguments) > 4 else 1])

    return Wrong


def leave_out(array: np.ndarray) -> None:
    array[-1, -1] = np.nan


def add_little(array: np.ndarray) -> None:
    array[0, 0] += 1e-3


class Event:
    """A CUDA event that takes the time of the made-up clock."""

    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.time = gpu, -1.0

    @property
    def done(self) -> bool:
        """Whether the GPU has come to it: what is queued behind others is not."""
        return False

    def record(self) -> None:
        self.time = self.gpu.clock

    def synchronize(self) -> None:
        self.gpu.waits += 1


class FakeGpu:
    """What was launched, in which time.

    milliseconds: by the kernel's name in its PTX, or `CUBLAS`: how long a launch takes, by how many there
    were before; 100 if not named. tf32: whether cuBLAS drops bits.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits, self.clock = 0, 0.0
        self.lying: dict[int, Any] = {}  # arrays and textures by where they lie
        self.launched: list[str] = []
        self.milliseconds: dict[str, Callable[[int], float]] = {}
        self.tf32 = False
        cupy: Any = ModuleType("cupy")
        cupy.__version__ = "14.2.0"
        cupy.asarray, cupy.abs, cupy.nan_to_num, cupy.empty_like = (
            self.lay,
            np.abs,
            np.nan_to_num,
            np.empty_like,
        )
        cupy.RawModule = lambda path: SimpleNamespace(
            get_function=lambda entry: Timed(self, entry, self.function(Path(path), entry))
        )
        cupy.cublas = SimpleNamespace(gemm=self.gemm)
        cupy.cuda = SimpleNamespace(
            Device=lambda: SimpleNamespace(synchronize=lambda: None),
            Event=lambda: Event(self),
            get_elapsed_time=lambda start, stop: stop.time - start.time,
            device=SimpleNamespace(get_cublas_handle=lambda: 1),
            cublas=SimpleNamespace(
                CUBLASError=CUBLASError,
                CUBLAS_DEFAULT_MATH=0,
                setMathMode=lambda handle, mode: None,
                getVersion=lambda handle: 130_002,
            ),
            runtime=SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                cudaResourceTypeLinear=2,
                cudaChannelFormatKindFloat=2,
                cudaDevAttrClockRate=13,
                cudaDevAttrMultiProcessorCount=16,
                deviceGetAttribute=lambda attribute, number: {13: 1_980_000, 16: 132}[attribute],
                getDeviceProperties=lambda number: {"name": b"NVIDIA H100 80GB HBM3", "major": 9, "minor": 0},
                driverGetVersion=lambda: 13000,
            ),
            driver=SimpleNamespace(CUDADriverError=CUDARuntimeError),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            texture=SimpleNamespace(
                ChannelFormatDescriptor=lambda *bits: bits,
                ResourceDescriptor=lambda kind, arr, chDesc, sizeInBytes: arr,  # noqa: N803
                TextureDescriptor=lambda: None,
                TextureObject=lambda array, descriptor: self.texture(array),
            ),
        )
        profiler: Any = ModuleType("cupyx.profiler")
        profiler.profile = contextlib.nullcontext
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setitem(sys.modules, "cupy.cublas", cupy.cublas)
        monkeypatch.setitem(sys.modules, "cupy.cuda", cupy.cuda)
        monkeypatch.setitem(sys.modules, "cupyx", ModuleType("cupyx"))
        monkeypatch.setitem(sys.modules, "cupyx.profiler", profiler)
        monkeypatch.setattr(device, "driver_version", lambda: "580.159.04")
        monkeypatch.setattr(device_memory, "address_of", lambda array: int(array.ctypes.data))
        monkeypatch.setattr(device_memory, "driver", FakeDriver)
        self.cupy = cupy

    def function(self, path: Path, entry: str) -> Any:
        """The kernel; tests put something else in its place."""
        return CubinFunction(path, entry, self.lying) if path.suffix == ".cubin" else Function(path, entry)

    def lay(self, array: np.ndarray) -> np.ndarray:
        """The array on the device."""
        laid = np.array(array)
        self.lying[laid.ctypes.data] = laid
        return laid

    def texture(self, array: np.ndarray) -> LaidTexture:
        """A texture over it."""
        made = LaidTexture(array)
        self.lying[made.ptr] = made
        return made

    def gemm(self, transa: str, transb: str, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        """cuBLAS's product of row-major matrices."""
        assert (transa, transb) == ("N", "N")
        if self.tf32:
            a, b = ((each.view(np.uint32) & TF32_BITS).view(np.float32) for each in (a, b))
        np.matmul(a, b, out=out)
        self.launch(CUBLAS)

    def launch(self, name: str) -> None:
        """Moves the clock on."""
        times = self.milliseconds.get(name, lambda number: 100.0)
        self.clock += times(self.launched.count(name))
        self.launched.append(name)


class Timed:
    """A kernel whose launches take time."""

    def __init__(self, gpu: FakeGpu, entry: str, function: Any) -> None:
        self.gpu, self.entry, self.function = gpu, entry, function

    def allow(self, shared_bytes: int) -> None:
        self.function.max_dynamic_shared_size_bytes = shared_bytes

    max_dynamic_shared_size_bytes = property(None, allow)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.function(*arguments, **options)
        self.gpu.launch(self.entry)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return FakeGpu(monkeypatch)


@pytest.fixture(params=["emulator", pytest.param("chip", marks=pytest.mark.gpu)])
def any_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs on the emulator; with `-m gpu` the same test runs on this machine's GPU."""
    if request.param == "emulator":
        FakeGpu(monkeypatch)
