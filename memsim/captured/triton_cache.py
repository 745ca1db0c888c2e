"""Loads a compiled kernel from a folder of Triton's cache (`~/.triton/cache/...`), without the script that
launched it.

The folder has the number of threads and the shared memory of a block; grid and arguments are the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from memsim.api.loading import texts_beside
from memsim.arch.units import WARP
from memsim.arguments import read_arguments
from memsim.captured.cache_files import descriptions
from memsim.captured.launched import Launched, kernel_of_cubin
from memsim.captured.triton_launch import hidden_parameters
from memsim.errors import MemsimError
from memsim.files import read_bytes, read_json
from memsim.kernel import Kernel
from memsim.launch import dim3

_FUNCTION = re.compile(r"tt\.func public @\"?(?P<name>[^\"(]+)\"?\((?P<parameters>.*)$", re.M)
_PARAMETER = re.compile(r"%(\w+): ")


Natural = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]


class TritonDescription(msgspec.Struct):
    """What is read of Triton's description of a kernel; sizes in bytes."""

    num_warps: Positive
    shared: Natural
    num_ctas: Positive = 1
    name: str = ""
    triton_version: str = ""
    global_scratch_size: Natural = 0
    profile_scratch_size: Natural = 0


def read_cache(
    folder: Path,
    grid: int | Sequence[int],
    args: Sequence[Any],
    name: str | None = None,
    where: str = "args",
) -> Launched:
    """The launch of a cached kernel. `where` is the source of `args`, which may be texts, in errors.

    Raises:
        MemsimError: no such kernel in the folder, several, or arguments that do not match.
    """
    path = _chosen(folder, name)
    try:
        told = msgspec.convert(read_json(path, "Triton's description"), TritonDescription)
    except msgspec.ValidationError as error:
        raise MemsimError(f"this is not a Triton kernel description: {error}", file=str(path)) from None
    code, ptx = read_bytes(path.with_suffix(".cubin")), _text(path.with_suffix(".ptx"))
    kernel = kernel_of_cubin(
        code, told.name or path.stem, f"Triton {told.triton_version}".strip(), ptx, texts_beside(path)
    )
    kernel = _named(kernel, _text(path.with_suffix(".ttir")))
    x, y, z = dim3(grid, "grid")
    declared = [name for name in kernel.argument_names if not name.endswith("_scratch")]
    scratch = kernel.argument_names[len(declared) :]
    sizes = [getattr(told, f"{name}_size", 0) for name in scratch]
    values = read_arguments(args, dict(zip(declared, kernel.parameters)), where=where)
    more = [value for _, value in hidden_parameters(sizes, x * y * z * told.num_ctas)]
    return Launched(
        kernel, (x * told.num_ctas, y, z), (told.num_warps * WARP, 1, 1), (*values, *more), told.shared
    )


def _chosen(folder: Path, name: str | None) -> Path:
    found = [path for path in descriptions(folder) if name in (None, path.stem)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.stem for path in descriptions(folder))
    problem = f"there is no kernel {name!r} in it" if name else "there are several kernels in it"
    raise MemsimError(problem, file=str(folder), hint=f"choose one of {names} by its name")


def _text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace") if path.is_file() else ""


def _named(kernel: Kernel, ttir: str) -> Kernel:
    """The kernel with the parameter names of the source, if the cache has Triton's first IR of it."""
    function = _FUNCTION.search(ttir)
    names = _PARAMETER.findall(function["parameters"]) if function else []
    missing = len(kernel.parameters) - len(names)
    if not 0 <= missing <= 2 or not names:
        names, missing = [f"arg{i}" for i in range(len(kernel.parameters))], 0
    return replace(kernel, names=(*names, *(name for name, _ in hidden_parameters((0,) * missing, 0))))
