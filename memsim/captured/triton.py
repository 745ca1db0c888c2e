"""Captures Triton's launches by a driver of our own: `triton.runtime.driver.set_active`.

Every launch is captured, each configuration of an autotuner included. If Triton has a driver of its own, the
launch is also made. There are no results without a GPU: a kernel then reads memory that no kernel has
written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memsim.arch import SM_90
from memsim.arch.units import WARP
from memsim.arrays import allocation, as_argument, is_foreign
from memsim.captured.launched import Launched, loaded, snapshot
from memsim.captured.tensor_map_bits import SWIZZLES
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import GLOBAL_ALIGN, ArrayArg, TensorMap

Keep = Callable[[Launched], None]

#: Triton's names of scalar types -> numpy's. It passes 16-bit floats as `float`.
SCALARS = {
    "i1": "int8",
    "u1": "uint8",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("fp16", "bf16", "fp32", "f32"), "float32"),
    "fp64": "float64",
}
#: Hidden parameters, which Triton appends to the declared ones.
HIDDEN = ("global_scratch", "profile_scratch")
THREADS = 1024


@contextmanager
def capturing(keep: Keep, arch: str) -> Iterator[None]:
    """Within the context, Triton compiles for `arch`, and its launches are captured."""
    import triton  # type: ignore[import-not-found,unused-ignore]
    from triton.runtime.jit import JITFunction  # type: ignore[import-not-found,unused-ignore]

    config = triton.runtime.driver
    before, run = config._active, JITFunction.run

    def run_with_arrays(function: Any, *args: Any, **kwargs: Any) -> Any:
        return run(function, *map(_as_tensor, args), **{k: _as_tensor(v) for k, v in kwargs.items()})

    config.set_active(Driver(keep, arch, _own_driver(config)))
    JITFunction.run = run_with_arrays
    try:
        yield
    finally:
        config._active, JITFunction.run = before, run


def _own_driver(config: Any) -> Any:
    """The driver of this machine; None if there is none."""
    try:
        return config.active
    except RuntimeError:
        return None


class _Tensor:
    """Gives `array`, which has no `data_ptr`, the interface that Triton needs."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = str(np.dtype(array.dtype)) if isinstance(array, np.ndarray) else array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        """An address with the alignment of the first element."""
        if isinstance(self.array, np.ndarray):
            return GLOBAL_ALIGN + allocation(self.array)[1]
        return GLOBAL_ALIGN + int(self.array.start)


def _as_tensor(value: Any) -> Any:
    if isinstance(value, (np.ndarray, ArrayArg)) and value.shape != ():
        return _Tensor(value)
    if not hasattr(value, "data_ptr") and not isinstance(value, np.generic) and is_foreign(value):
        return _Tensor(as_argument(value))
    return value


class _Device(int):
    """A device number that equals only itself: Triton caches kernels by device, each with its launcher."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class Driver:
    """The interface that Triton needs of a driver. `own`: the machine's, None if it has none."""

    def __init__(self, keep: Keep, arch: str, own: Any = None) -> None:
        self.keep = keep
        self.arch = arch
        self.own = own
        self.utils = Utils(own)
        self.device = _Device(own.get_current_device() if own is not None else 0)

    def __getattr__(self, name: str) -> Any:
        if self.own is None:
            raise AttributeError(f"{name} needs a GPU, and there is none")
        return getattr(self.own, name)

    def launcher_cls(self, source: Any, metadata: Any) -> Launcher:
        """The launcher of a kernel."""
        return Launcher(self, source, metadata)

    def get_current_target(self) -> Any:
        """The chip to compile for."""
        from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found,unused-ignore]

        return GPUTarget("cuda", int(self.arch.removeprefix("sm_")), WARP)

    def get_current_device(self) -> int:
        """This capture's own device."""
        return self.device

    def set_current_device(self, device: int) -> None:
        """Does nothing: there is only one device."""

    def get_current_stream(self, device: int) -> Any:
        """The stream of the machine's driver, or the default stream."""
        return self.own.get_current_stream(int(device)) if self.own is not None else 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """(9, 0) for sm_90."""
        return divmod(int(self.arch.removeprefix("sm_")), 10)

    def get_active_torch_device(self) -> Any:
        """Where scripts put their tensors: on the CPU if there is no GPU."""
        if self.own is not None:
            return self.own.get_active_torch_device()
        return sys.modules["torch"].device("cpu")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Calls each configuration of an autotuner once; all take equally long, so the first one wins."""

        def once(call: Callable[[], Any], *, quantiles: Sequence[float] = (0.5,), **how: Any) -> list[float]:
            call()
            return [1.0 for _ in quantiles]

        return once

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache."""

    def clear_cache(self, cache: Any) -> None:
        """There is no cache."""


class Utils:
    """The part of a driver that loads code."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        if self.own is None:
            raise AttributeError(f"{name} needs a GPU, and there is none")
        return getattr(self.own.utils, name)

    def load_binary(self, name: str, code: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """(module, function, registers, spills, maximum threads); without a GPU nothing is loaded."""
        if self.own is None:
            return None, _KernelHandle(0, code), 0, 0, THREADS
        module, function, *rest = self.own.utils.load_binary(name, code, shared, int(device))
        return module, _KernelHandle(function, code), *rest

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Limits of the chip."""
        if self.own is not None:
            found: dict[str, int] = self.own.utils.get_device_properties(int(device))
            return found
        return {
            "max_shared_mem": SM_90.shared_block_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": 132,
            "warpSize": WARP,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
        }

    def unload_module(self, module: Any) -> None:
        """Nothing was loaded."""
        if self.own is not None:
            self.own.utils.unload_module(module)


class _KernelHandle(int):
    """A handle of a loaded kernel, with its cubin: launches refer to it."""

    code: bytes

    def __new__(cls, handle: int, code: bytes) -> _KernelHandle:
        made = super().__new__(cls, handle)
        made.code = code
        return made


class Launcher:
    """Called by Triton for each launch of a kernel; captures it, and makes it if possible."""

    def __init__(self, driver: Driver, source: Any, metadata: Any) -> None:
        self.driver = driver
        self.source = source
        self.metadata = metadata
        self.own = driver.own.launcher_cls(source, metadata) if driver.own is not None else None

    def __call__(self, *call: Any) -> None:
        """(grid x, y, z, stream, function, packed metadata, launch metadata, two hooks, arguments...)."""
        grid, function, arguments = call[:3], call[4], call[9:]
        self.driver.keep(launched(self.source, self.metadata, function.code, grid, arguments))
        described = any(isinstance(one, _Tensor) for one in arguments)  # is not on the GPU
        if self.own is not None and (not described or isinstance(self.own, Launcher)):
            self.own(*call)


def launched(
    source: Any, metadata: Any, code: bytes, grid: Sequence[int], arguments: Sequence[Any]
) -> Launched:
    """A launch as Triton describes it: `source` has the signature, `metadata` the shape of a block.

    Raises:
        MemsimError: the arguments do not match the kernel's parameters.
    """
    found: list[tuple[str, Any]] = []
    maps = list(getattr(metadata, "tensordesc_meta", None) or ())
    for (name, kind), value in zip(source.signature.items(), arguments):
        found += _parameters(str(name), kind, value, maps)
    ptx = _ptx(metadata)
    kernel = loaded(code, metadata.name, f"Triton {_release()}", ptx)
    ctas = getattr(metadata, "num_ctas", 1)
    x, y, z = (int(extent) for extent in grid)
    missing = len(kernel.parameters) - len(found)
    if not 0 <= missing <= len(HIDDEN):
        raise MemsimError(
            f"Triton passes {len(found)} arguments to {metadata.name}, which takes {len(kernel.parameters)}",
            hint=f"memsim supports Triton 3.3 to 3.9; this is {_release()}",
        )
    sizes = [getattr(metadata, f"{name}_size", 0) for name in HIDDEN[:missing]]
    found += hidden(sizes, x * y * z * ctas)
    return Launched(
        kernel=replace(kernel, names=tuple(name for name, _ in found), sources=_sources(kernel, source)),
        grid=(x * ctas, y, z),
        block=(metadata.num_warps * WARP, 1, 1),
        args=snapshot([value for _, value in found]),
        shared_bytes=metadata.shared,
        note=_configuration(source, metadata),
    )


def hidden(sizes: Sequence[int], blocks: int) -> list[tuple[str, Any]]:
    """(name, argument) of the hidden parameters, for so many bytes of scratch memory per block."""
    scratch = [ArrayArg((size * blocks,), "uint8", "zeros") if size else None for size in sizes]
    return list(zip(HIDDEN, scratch))


def _release() -> str:
    return str(sys.modules["triton"].__version__)


def _sources(kernel: Kernel, source: Any) -> dict[str, str]:
    """The texts of the source files; the script may have moved since Triton's cache recorded its path."""
    texts = dict(kernel.sources)
    code = getattr(getattr(getattr(source, "fn", None), "fn", None), "__code__", None)
    script = Path(code.co_filename) if code is not None else None
    for _, _, file, _ in kernel.code.listing:
        if file not in texts and script is not None and script.name == Path(file).name and script.is_file():
            texts[file] = script.read_text("utf-8", "replace")
    return texts


def _ptx(metadata: Any) -> str:
    """The PTX of a kernel, from Triton's cache."""
    from triton.runtime.cache import get_cache_manager  # type: ignore[import-not-found,unused-ignore]

    path = get_cache_manager(metadata.hash).get_file(f"{metadata.name}.ptx")
    return Path(path).read_text("utf-8") if path else ""


def _configuration(source: Any, metadata: Any) -> str:
    """Describes a configuration of an autotuner: constants, warps, stages."""
    names = source.fn.arg_names if hasattr(source, "fn") else ()
    constants = {
        names[place[0]]: value
        for place, value in getattr(source, "constants", {}).items()
        if isinstance(place, tuple) and len(place) == 1 and place[0] < len(names)
    }
    options = {key: getattr(metadata, key) for key in ("num_warps", "num_stages") if hasattr(metadata, key)}
    return ", ".join(f"{name}={value}" for name, value in {**constants, **options}.items())


def _parameters(name: str, kind: Any, value: Any, maps: list[Any]) -> list[tuple[str, Any]]:
    """(name, argument) of each machine code parameter that a Triton value becomes.

    maps: Triton's metadata of the remaining tensor maps.
    """
    if kind == "constexpr":
        return []
    if isinstance(kind, tuple):
        parts = zip(kind, value)
        return [one for i, (k, v) in enumerate(parts) for one in _parameters(f"{name}.{i}", k, v, maps)]
    if kind.startswith("tensordesc"):
        return _descriptor(name, value, maps.pop(0) if maps else None)
    if kind.startswith("*"):
        return [(name, _pointer(value))]
    if kind not in SCALARS:
        raise MemsimError(f"argument {name} has Triton's type {kind}, which memsim does not support")
    return [(name, np.dtype(SCALARS[kind]).type(value))]


def _pointer(value: Any) -> Any:
    while (
        not isinstance(value, (_Tensor, np.ndarray)) and hasattr(value, "base") and hasattr(value, "data_ptr")
    ):
        if hasattr(value, "storage_offset"):
            break
        value = value.base  # a TensorWrapper, as of triton.reinterpret
    return value.array if isinstance(value, _Tensor) else as_argument(value)


def _descriptor(name: str, value: Any, described: Any) -> list[tuple[str, Any]]:
    """A tensor descriptor: a tensor map for TMA, or else the pointer with shape and strides."""
    base = _pointer(value.base)
    shape = [(f"{name}.shape[{i}]", extent) for i, extent in enumerate(value.shape)]
    strides = [(f"{name}.strides[{i}]", step) for i, step in enumerate(value.strides)]
    tail = [(n, np.int32(v)) for n, v in shape] + [(n, np.int64(v)) for n, v in strides]
    if described:
        box = tuple(described.get("block_size", value.block_shape))
        return [(name, TensorMap(base, box, SWIZZLES[described.get("swizzle", 0)])), *tail]
    wide = [(n, np.int64(v)) for n, v in (*shape, *strides)]
    flags = [(f"{name}.padding", np.int8(value.padding == "nan")), (f"{name}.round", np.int8(0))]
    return [(name, base), *wide, *flags, *tail]
