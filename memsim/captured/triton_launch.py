"""A launch as Triton describes it, to one of machine code: its parameters, sources and configuration; and a
compiled kernel loaded from a folder of Triton's cache (`~/.triton/cache/...`), without the script that
launched it.

The folder has the number of threads and the shared memory of a block; grid and arguments are the caller's.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from memsim.api.loading import texts_beside
from memsim.arch.units import WARP
from memsim.argument_types import ArrayArg, TensorMap
from memsim.argument_types.argument import allocation
from memsim.argument_types.array_tables import SWIZZLES
from memsim.argument_types.foreign_arrays import as_argument
from memsim.arguments import Value, read_arguments
from memsim.captured.cache_files import descriptions
from memsim.captured.launched import Launched, kernel_of_cubin, snapshot
from memsim.errors import MemsimError
from memsim.files import read_bytes, read_json
from memsim.kernel import Kernel
from memsim.launch import GLOBAL_ALIGN, dim3

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


class TritonTensor:
    """Gives `array`, which has no `data_ptr`, the interface that Triton needs."""

    def __init__(self, array: np.ndarray | ArrayArg) -> None:
        self.array = array
        self.dtype = str(np.dtype(array.dtype)) if isinstance(array, np.ndarray) else array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        """An address with the alignment of the first element."""
        if isinstance(self.array, np.ndarray):
            return GLOBAL_ALIGN + allocation(self.array)[1]
        return GLOBAL_ALIGN + int(self.array.start)


def launched_by_triton(
    source: Any, metadata: Any, cubin: bytes, grid: Sequence[int], arguments: Sequence[object]
) -> Launched:
    """A launch as Triton describes it: `source` has the signature, `metadata` the shape of a block.

    Raises:
        MemsimError: the arguments do not match the kernel's parameters.
    """
    found: list[tuple[str, object]] = []
    maps = list(getattr(metadata, "tensordesc_meta", None) or ())
    for (name, kind), value in zip(source.signature.items(), arguments):
        found += _parameters(str(name), kind, value, maps)
    ptx = _ptx(metadata)
    kernel = kernel_of_cubin(cubin, metadata.name, f"Triton {_release()}", ptx)
    ctas = getattr(metadata, "num_ctas", 1)
    x, y, z = (int(extent) for extent in grid)
    missing = len(kernel.parameters) - len(found)
    if not 0 <= missing <= len(HIDDEN):
        raise MemsimError(
            f"Triton passes {len(found)} arguments to {metadata.name}, which takes {len(kernel.parameters)}",
            hint=f"memsim supports Triton 3.3 to 3.9; this is {_release()}",
        )
    sizes = [getattr(metadata, f"{name}_size", 0) for name in HIDDEN[:missing]]
    found += hidden_parameters(sizes, x * y * z * ctas)
    return Launched(
        kernel=replace(kernel, names=tuple(name for name, _ in found), sources=_sources(kernel, source)),
        grid=(x * ctas, y, z),
        block=(metadata.num_warps * WARP, 1, 1),
        args=snapshot([value for _, value in found]),
        shared_bytes=metadata.shared,
        note=_configuration(source, metadata),
    )


def hidden_parameters(sizes: Sequence[int], blocks: int) -> list[tuple[str, ArrayArg | None]]:
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
    for _, _, file, _ in kernel.listing:
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


def _parameters(name: str, kind: Any, value: Any, maps: list[object]) -> list[tuple[str, object]]:
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
    while not isinstance(value, (TritonTensor, np.ndarray)) and hasattr(value, "data_ptr"):
        if not hasattr(value, "base") or hasattr(value, "storage_offset"):
            break
        value = value.base  # a TensorWrapper, as of triton.reinterpret
    return value.array if isinstance(value, TritonTensor) else as_argument(value)


def _descriptor(name: str, value: Any, described: Any) -> list[tuple[str, object]]:
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
    args: Sequence[str | Value],
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
    cubin, ptx = read_bytes(path.with_suffix(".cubin")), _text(path.with_suffix(".ptx"))
    kernel = kernel_of_cubin(
        cubin, told.name or path.stem, f"Triton {told.triton_version}".strip(), ptx, texts_beside(path)
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
