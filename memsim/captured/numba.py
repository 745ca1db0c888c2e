"""Numba's kernels, compiled for a launch as Numba would, and captured launches.

Numba's compiler generates the PTX, and an assembler found on this machine the machine code. Kernels that link
other files are not supported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from memsim.argument_types import ArrayArg, c_strides, dtype_of
from memsim.argument_types.foreign_arrays import as_argument, is_foreign
from memsim.captured.launched import Launched, kernel_of_cubin, snapshot
from memsim.captured.session import replaced_attributes
from memsim.compile.assemble import assemble_ptx
from memsim.errors import MemsimError
from memsim.launch import dim3

_ENTRY = re.compile(r"\.entry\s+(\S+)\(")
#: The options of `cuda.jit` that a kernel is compiled with.
OPTIONS = ("debug", "opt", "fastmath", "launch_bounds")


def is_configured(kernel: Any) -> bool:
    """Is it a Numba kernel with a launch configuration, as `kernel[grid, block]`?"""
    return all(hasattr(kernel, name) for name in ("dispatcher", "griddim", "blockdim", "sharedmem"))


def is_kernel(kernel: Any) -> bool:
    """Is it a Numba kernel without a launch configuration?"""
    return hasattr(kernel, "py_func") and hasattr(kernel, "targetoptions")


@contextmanager
def capture_launches(keep: Callable[[Launched], None], arch: str) -> Iterator[None]:
    """Within the context, launches of Numba are captured, and also made if there is a GPU."""
    from numba import cuda  # type: ignore[import-not-found,unused-ignore]
    from numba.cuda import dispatcher  # type: ignore[import-not-found,unused-ignore]

    configured = dispatcher._LaunchConfiguration
    launch, on_gpu = configured.__call__, cuda.is_available()

    def call(configuration: Any, *arguments: Any) -> Any:
        keep(launched_by_numba(configuration, arguments, arch))
        return launch(configuration, *arguments) if on_gpu else None

    with replaced_attributes((configured, {"__call__": call})):
        yield


def launched_by_numba(configuration: Any, arguments: Sequence[Any], arch: str) -> Launched:
    """A launch as Numba would make it.

    Raises:
        MemsimError: an argument of an unsupported type, or no assembler for the PTX.
    """
    dispatcher = configuration.dispatcher
    options = dispatcher.targetoptions
    name = dispatcher.py_func.__name__
    if options.get("link"):
        raise MemsimError(f"{name} links {', '.join(map(str, options['link']))}, which is not supported")
    values = [_value(value) for value in arguments]
    types = [_type_of(value) for value in values]
    names = dispatcher.py_func.__code__.co_varnames
    found = [one for n, t, v in zip(names, types, values) for one in _parameters(n, t, v)]
    code, ptx = _compiled(dispatcher.py_func, tuple(types), options, arch)
    kernel = kernel_of_cubin(code, _ENTRY.findall(ptx)[-1], f"Numba {_release()}", ptx)
    return Launched(
        kernel=replace(kernel, called=name, names=tuple(name for name, _ in found)),
        grid=dim3(configuration.griddim, "grid"),
        block=dim3(configuration.blockdim, "block"),
        args=snapshot([value for _, value in found]),
        shared_bytes=int(configuration.sharedmem),
    )


def _release() -> str:
    """The release of numba-cuda, else Numba's own."""
    for package in ("numba-cuda", "numba"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _compiled(function: Any, types: tuple[Any, ...], options: dict[str, Any], arch: str) -> tuple[bytes, str]:
    """(cubin, PTX) of a function for arguments of these types.

    Raises:
        MemsimError: a part of Numba is missing, or there is no assembler.
    """
    from numba import cuda

    chip = divmod(int(arch.removeprefix("sm_")), 10)
    chosen = {key: options[key] for key in OPTIONS if options.get(key) is not None}
    try:
        ptx, _ = cuda.compile(
            function, types, device=False, abi="numba", output="ptx", cc=chip, lineinfo=True, **chosen
        )
    except Exception as error:
        if "NotFound" in type(error).__name__:  # NVVM and NVRTC come with an extra of Numba
            raise MemsimError(
                f"Numba cannot compile here: {error}", hint="pip install 'numba-cuda[cu13]'"
            ) from None
        raise
    compiled = assemble_ptx(ptx, arch, f"the PTX of {function.__qualname__}", linker_first=True)
    return compiled.cubin, ptx


def _value(value: Any) -> Any:
    """Arrays of other packages as memsim takes them; a tuple is an argument type of Numba's."""
    if isinstance(value, tuple):
        return tuple(map(_value, value))
    return as_argument(value) if is_foreign(value) else value


def _type_of(value: Any) -> Any:
    """Numba's type of an argument."""
    from numba import types

    numba = sys.modules["numba"]
    if isinstance(value, ArrayArg):
        element = numba.from_dtype(dtype_of(value.dtype))
        dense = value.strides in (None, c_strides(value.shape, dtype_of(value.dtype).itemsize))
        return types.Array(element, len(value.shape), "C" if dense else "A")
    return numba.typeof(value)


def _parameters(name: str, kind: Any, value: Any) -> list[tuple[str, Any]]:
    """(name, argument) of each machine code parameter; an array is passed with its shape and strides."""
    from numba import types

    if isinstance(kind, types.Array):
        size, item = int(np.prod(value.shape)), dtype_of(str(np.dtype(value.dtype))).itemsize
        strides = value.strides or c_strides(value.shape, item)
        ends = [(f"{name}.shape[{i}]", np.int64(extent)) for i, extent in enumerate(value.shape)]
        ends += [(f"{name}.strides[{i}]", np.int64(step)) for i, step in enumerate(strides)]
        counts = [(f"{name}.size", np.int64(size)), (f"{name}.itemsize", np.int64(item))]
        return [(f"{name}.meminfo", None), (f"{name}.parent", None), *counts, (name, value), *ends]
    if isinstance(kind, types.Boolean):
        return [(name, np.int8(value))]
    if isinstance(kind, (types.Integer, types.Float)):
        return [(name, np.dtype(str(kind)).type(value))]
    if isinstance(kind, types.Complex):
        part = np.dtype(str(kind.underlying_float)).type
        return [(f"{name}.real", part(value.real)), (f"{name}.imag", part(value.imag))]
    if isinstance(kind, types.BaseTuple):
        parts = enumerate(zip(kind, value))
        return [one for i, (k, v) in parts for one in _parameters(f"{name}.{i}", k, v)]
    raise MemsimError(f"argument {name} has Numba's type {kind}, which memsim does not support")
