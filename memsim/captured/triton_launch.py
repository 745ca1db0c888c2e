"""A launch as Triton describes it, to one of machine code: its parameters, sources and configuration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from memsim.arch.units import WARP
from memsim.argument_types import ArrayArg, TensorMap
from memsim.argument_types.allocations import allocation
from memsim.argument_types.foreign_arrays import as_argument
from memsim.captured.launched import Launched, kernel_of_cubin, snapshot
from memsim.captured.tensor_map_bits import SWIZZLES
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import GLOBAL_ALIGN

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

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = str(np.dtype(array.dtype)) if isinstance(array, np.ndarray) else array.dtype
        self.shape = array.shape

    def data_ptr(self) -> int:
        """An address with the alignment of the first element."""
        if isinstance(self.array, np.ndarray):
            return GLOBAL_ALIGN + allocation(self.array)[1]
        return GLOBAL_ALIGN + int(self.array.start)


def launched_by_triton(
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
    kernel = kernel_of_cubin(code, metadata.name, f"Triton {_release()}", ptx)
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


def hidden_parameters(sizes: Sequence[int], blocks: int) -> list[tuple[str, Any]]:
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
    while not isinstance(value, (TritonTensor, np.ndarray)) and hasattr(value, "data_ptr"):
        if not hasattr(value, "base") or hasattr(value, "storage_offset"):
            break
        value = value.base  # a TensorWrapper, as of triton.reinterpret
    return value.array if isinstance(value, TritonTensor) else as_argument(value)


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
