"""Captures TileLang's launches: its NVRTC backend makes them from Python, through functions of cuda-python.

Within a capture every kernel is compiled by that backend, for the capture's chip, and those functions are
replaced. Nothing is executed, with or without a GPU. Kernels compiled before the capture are not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from memsim.argument_types import TensorMap
from memsim.argument_types.argument import allocation
from memsim.argument_types.array_tables import SWIZZLES, EncodedMap
from memsim.argument_types.foreign_arrays import as_argument
from memsim.captured.launched import Launched, kernel_of_cubin, snapshot
from memsim.captured.session import replaced_attributes
from memsim.compile.toolkit import cccl_folders, header_folders
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import dim3

BACKEND = "nvrtc"
#: The file in the line table of what NVRTC compiles, and the line that TileLang puts before its source.
SOURCE, BEFORE = "tvm_kernels", "#include <tl_templates/cuda/nvrtc_std.h>\n"
#: The outermost block of each kernel in a program, which has the annotations of its launch.
KERNEL_BLOCK = "tilelang_root"


@contextmanager
def capture_launches(keep: Callable[[Launched], None], arch: str) -> Iterator[None]:
    """Within the context, TileLang compiles for `arch`, and launches of what it compiles are captured.

    Raises:
        MemsimError: cuda-python is missing.
    """
    try:
        import cuda.bindings.driver as driver  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise MemsimError(
            "launches of TileLang are captured through cuda-python, which is not installed",
            hint="pip install cuda-bindings",
        ) from None
    import tilelang.backend.module as backends  # type: ignore[import-not-found,unused-ignore]
    from tilelang import cache  # type: ignore[import-not-found,unused-ignore]
    from tilelang.jit import JITImpl, JITKernel  # type: ignore[import-not-found,unused-ignore]
    from tilelang.jit.adapter.nvrtc import (  # type: ignore[import-not-found,unused-ignore]
        NVRTCKernelAdapter,
        NVRTCLibraryGenerator,
    )

    session = TileLangSession(keep, driver)
    resolve, compile, call = backends.create_backend_context, JITImpl.compile, JITKernel.__call__
    build, forward = NVRTCLibraryGenerator.compile_lib, NVRTCKernelAdapter._forward_from_prebuild_lib
    functions: list[Any] = []
    in_memory = cache._dispatch_map[BACKEND]._memory_cache

    def resolve_ours(target: Any = "auto", host: Any = None, backend: Any = "auto") -> Any:
        chosen = {"kind": "cuda", "arch": arch} if target in (None, "auto", "cuda") else target
        return resolve(chosen, host, BACKEND)

    def compile_and_note(function: Any, *args: Any, **kwargs: Any) -> Any:
        functions.append(function)
        return compile(function, *args, **kwargs)

    def call_ours(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        ours = getattr(kernel.adapter, "kernels", {}).values()
        if not all(isinstance(one, _Loaded) for one in ours) or not ours:
            raise MemsimError(
                "a kernel was compiled by TileLang before the capture",
                hint="compile it, or call it for the first time, inside the capture",
            )
        return call(kernel, *args, **kwargs)

    def build_with_lines(generator: Any, *args: Any) -> None:
        headers = dict.fromkeys((*header_folders(), *cccl_folders()))
        more = (*(f"-I{folder}" for folder in headers), "-lineinfo")
        generator.assign_compile_flags([*(generator.compile_flags or ()), *more])
        with generator.target:  # without it TileLang asks a GPU which chip it is
            build(generator, *args)

    def forward_named(adapter: Any, *args: Any, **kwargs: Any) -> Any:
        session.arrays = [as_argument(one) for one in args if hasattr(one, "data_ptr")]
        session.source = BEFORE + adapter.get_kernel_source()
        session.clusters = iter(_clusters(adapter.prim_func))
        return forward(adapter, *args, **kwargs)

    changes = (
        (driver, session.functions()),
        (backends, {"create_backend_context": resolve_ours}),
        (JITImpl, {"compile": compile_and_note}),
        (JITKernel, {"__call__": call_ours}),
        (NVRTCLibraryGenerator, {"compile_lib": build_with_lines}),
        (NVRTCKernelAdapter, {"_forward_from_prebuild_lib": forward_named}),
    )
    in_memory.clear()
    try:
        with replaced_attributes(*changes):
            yield
    finally:  # what was compiled here cannot be launched later
        session.over = True
        in_memory.clear()
        for function in functions:
            function._kernel_cache.clear()
            function._call_form_cache = type(function._call_form_cache)()


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A kernel where TileLang keeps the driver's handle of it."""

    kernel: Kernel

    @property
    def file(self) -> str:
        """The file of its source in the line table: `SOURCE` in the folder where it was compiled."""
        files = {Path(file) for _, _, file, _ in self.kernel.listing}
        return next((str(file) for file in files if file.name == SOURCE), SOURCE)


class _Library(dict[str, Kernel]):
    """The kernels of a cubin, where TileLang keeps the driver's handle; false, so that it is not unloaded."""

    def __bool__(self) -> bool:
        return False


@dataclass
class TileLangSession:
    """A capture. driver: cuda-python's module; arrays, source: of the call in progress; clusters: of its
    launches to come.
    """

    keep: Callable[[Launched], None]
    driver: Any
    arrays: list[Any] = field(default_factory=list)
    source: str = ""
    clusters: Iterator[tuple[int, int, int] | None] = field(default_factory=lambda: iter(()))
    over: bool = False

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What replaces functions of cuda-python, by their names."""
        done = self.driver.CUresult.CUDA_SUCCESS
        return {
            "cuCtxGetCurrent": lambda: (done, None),
            "cuCtxGetApiVersion": lambda context: (done, 0),
            "cuLibraryLoadFromFile": lambda path, *_: (done, _library(Path(path.decode()))),
            "cuLibraryGetKernel": lambda library, name: (done, _Loaded(library[name.decode()])),
            "CUdevice": lambda index: index,  # None for an array that is not on a GPU
            "cuKernelSetAttribute": lambda *_: (done,),
            "cuTensorMapEncodeTiled": lambda *given: (done, self.tensor_map(*given)),
            "cuLaunchKernelEx": self.launch,
        }

    def launch(self, config: Any, called: _Loaded, parameters: Any, _: Any) -> tuple[Any]:
        """Record one launch. parameters: (values, their types).

        Raises:
            MemsimError: the capture is over.
        """
        if self.over:
            raise MemsimError(
                "a kernel that TileLang compiled in a capture is called outside of the capture",
                hint="compile it again, with tilelang.compile or the function that is decorated with jit",
            )
        values, types = parameters
        args = [self._argument(value, kind) for value, kind in zip(values, types, strict=True)]
        self.keep(
            Launched(
                kernel=replace(called.kernel, sources={called.file: self.source}),
                grid=(config.gridDimX, config.gridDimY, config.gridDimZ),
                block=(config.blockDimX, config.blockDimY, config.blockDimZ),
                args=snapshot(args),
                shared_bytes=config.sharedMemBytes,
                cluster=next(self.clusters, None),
            )
        )
        return (self.driver.CUresult.CUDA_SUCCESS,)

    def tensor_map(
        self,
        kind: Any,
        rank: int,
        address: int,
        extents: Sequence[Any],
        steps: Sequence[Any],
        box: Sequence[Any],
        elements: Sequence[Any],
        interleave: Any,
        swizzle: Any,
        *_: Any,
    ) -> TensorMap:
        """As `cuTensorMapEncodeTiled`, which needs a driver.

        Raises:
            MemsimError: interleaved, or with steps between elements.
        """
        array = self._at(int(address))
        if int(interleave) or any(int(one) != 1 for one in elements):
            raise MemsimError("a tensor map with interleave or element strides is not supported")
        encoded = EncodedMap(
            address=int(address),
            dtype=array.dtype.name,
            extents=tuple(map(int, extents)),
            steps=tuple(map(int, steps)),
            box=tuple(map(int, box)),
            swizzle=SWIZZLES[int(swizzle)],
        )
        return encoded.over(*allocation(array))

    def _argument(self, value: Any, kind: Any) -> Any:
        if isinstance(value, TensorMap):
            return value
        if kind.__name__ == "c_void_p":
            return self._at(int(value))
        return np.dtype(kind).type(value)

    def _at(self, address: int) -> Any:
        for array in self.arrays:
            if int(array.__array_interface__["data"][0]) == address:
                return array
        raise MemsimError("TileLang passes an address that is not of an array of the call")


def _clusters(program: Any) -> list[tuple[int, int, int] | None]:
    """The cluster that each kernel of a program asks for, in the order of their launches: what TileLang's own
    launcher sets and its NVRTC backend, 0.1.15, omits.
    """
    from tvm.tirx.stmt_functor import post_order_visit  # type: ignore[import-not-found,unused-ignore]

    found: list[tuple[int, int, int] | None] = []

    def visit(node: Any) -> None:
        if getattr(node, "name_hint", "") == KERNEL_BLOCK:
            dims = node.annotations.get("cluster_dims")
            found.append(dim3([int(one) for one in dims], "cluster") if dims is not None else None)

    post_order_visit(program.body, visit)
    return found


def _library(path: Path) -> _Library:
    from memsim.sass.cubin import read_cubin

    code, made = path.read_bytes(), f"TileLang {metadata.version('tilelang')}"
    return _Library((name, kernel_of_cubin(code, name, made)) for name in read_cubin(code).kernels)
