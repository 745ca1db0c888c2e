"""Captures Triton's launches by a driver of our own.

Every launch is captured, each configuration of an autotuner included. If Triton has a driver of its own, the
launch is also made. There are no results without a GPU: a kernel then reads memory that no kernel has
written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from memsim.arch import SM_90
from memsim.arch.units import WARP
from memsim.argument_types import ArrayArg
from memsim.argument_types.array_arg import with_a_dimension
from memsim.argument_types.foreign_arrays import as_argument, is_foreign
from memsim.captured.launched import Launched
from memsim.captured.session import replaced_attributes
from memsim.captured.triton_launch import TritonTensor, launched_by_triton
from memsim.sass.machine_code import read_module

Keep = Callable[[Launched], None]

THREADS = 1024


@contextmanager
def capture_launches(keep: Keep, arch: str) -> Iterator[None]:
    """Within the context, Triton compiles for `arch`, and its launches are captured."""
    import triton  # type: ignore[import-not-found,unused-ignore]
    from triton.runtime.jit import JITFunction  # type: ignore[import-not-found,unused-ignore]

    config, run = triton.runtime.driver, JITFunction.run

    def run_with_arrays(function: object, *args: object, **kwargs: object) -> object:
        return run(function, *map(_as_tensor, args), **{k: _as_tensor(v) for k, v in kwargs.items()})

    driver = Driver(keep, arch, _own_driver(config))
    with replaced_attributes((config, {"_active": driver}), (JITFunction, {"run": run_with_arrays})):
        yield


def _own_driver(config: Any) -> Any:
    """The driver of this machine; None if there is none."""
    try:
        return config.active
    except (RuntimeError, AssertionError):  # the latter where a driver's library is missing
        return None


def _as_tensor(value: object) -> object:
    if isinstance(value, (np.ndarray, ArrayArg)):
        return TritonTensor(with_a_dimension(value))
    if not hasattr(value, "data_ptr") and not isinstance(value, np.generic) and is_foreign(value):
        return TritonTensor(as_argument(value))
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

    def get_current_target(self) -> object:
        """The chip to compile for."""
        from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found,unused-ignore]

        return GPUTarget("cuda", int(self.arch.removeprefix("sm_")), WARP)

    def get_current_device(self) -> int:
        """This capture's own device."""
        return self.device

    def set_current_device(self, device: int) -> None:
        """Does nothing: there is only one device."""

    def get_current_stream(self, device: int) -> object:
        """The stream of the machine's driver, or the default stream."""
        return self.own.get_current_stream(int(device)) if self.own is not None else 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """(9, 0) for sm_90."""
        return divmod(int(self.arch.removeprefix("sm_")), 10)

    def get_active_torch_device(self) -> object:
        """Where scripts put their tensors: on the CPU if there is no GPU."""
        if self.own is not None:
            return self.own.get_active_torch_device()
        return sys.modules["torch"].device("cpu")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Calls each configuration of an autotuner once; all take equally long, so the first one wins."""

        def once(
            call: Callable[[], object], *, quantiles: Sequence[float] = (0.5,), **how: object
        ) -> list[float]:
            call()
            return [1.0 for _ in quantiles]

        return once

    def get_empty_cache_for_benchmark(self) -> None:
        """There is no cache."""

    def clear_cache(self, cache: object) -> None:
        """There is no cache."""


class Utils:
    """The part of a driver that loads code."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        if self.own is None:
            raise AttributeError(f"{name} needs a GPU, and there is none")
        return getattr(self.own.utils, name)

    def load_binary(self, name: str, cubin: bytes, shared: int, device: int) -> tuple[object, ...]:
        """(module, function, registers, spilled words, maximum threads); without a GPU nothing is loaded, and
        the machine code says how much of each its kernel takes.
        """
        if self.own is None:
            kernel = read_module(cubin).kernels[name]
            bounds = kernel.image.required_threads or kernel.image.max_threads or (THREADS,)
            spilled = kernel.image.local_bytes // 4
            return None, _KernelHandle(0, cubin), kernel.registers, spilled, prod(bounds)
        module, function, *rest = self.own.utils.load_binary(name, cubin, shared, int(device))
        return module, _KernelHandle(function, cubin), *rest

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

    def unload_module(self, module: object) -> None:
        """Nothing was loaded."""
        if self.own is not None:
            self.own.utils.unload_module(module)


class _KernelHandle(int):
    """A handle of a loaded kernel, with its cubin: launches refer to it."""

    cubin: bytes

    def __new__(cls, handle: int, cubin: bytes) -> _KernelHandle:
        made = super().__new__(cls, handle)
        made.cubin = cubin
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
        self.driver.keep(launched_by_triton(self.source, self.metadata, function.cubin, grid, arguments))
        described = any(isinstance(one, TritonTensor) for one in arguments)  # is not on the GPU
        if self.own is not None and (not described or isinstance(self.own, Launcher)):
            self.own(*call)
