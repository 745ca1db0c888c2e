"""Captures Warp's launches by hooking `warp.launch`; a kernel's module is compiled ahead of time for the
chip.

The launch is also made: on the CPU if the script's arrays are there, so that a kernel reads what the previous
one has written. Not supported: launches recorded to be made later (`record_cmd`), deterministic mode, and
indexed and fabric arrays.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from memsim.argument_types import StructFields
from memsim.argument_types.argument import allocation
from memsim.captured.launched import Launched, kernel_of_cubin, snapshot, with_arrays
from memsim.captured.session import replaced_attributes
from memsim.errors import MemsimError
from memsim.kernel import Kernel
from memsim.launch import dim3

Keep = Callable[[Launched], None]

#: Default number of threads in a block (`warp.launch`).
BLOCK = 256
#: Limits of a kernel without a grid-stride loop (`native/warp.cu`): threads in x, blocks in y and z.
LEAN_THREADS, LEAN_BLOCKS = 1 << 24, 65535


@contextmanager
def capture_launches(keep: Keep, arch: str) -> Iterator[None]:
    """Within the context, launches of Warp are captured, and made."""
    import warp  # type: ignore[import-not-found,unused-ignore]
    from warp._src import context  # type: ignore[import-not-found,unused-ignore]

    inside = False  # a tiled launch calls a plain one
    with TemporaryDirectory() as folder:
        modules = Modules(Path(folder), arch)

        def hooked(function: Callable[..., object], tiled: bool) -> Callable[..., object]:
            signature = inspect.signature(context.launch)

            @wraps(function)
            def call(*args: object, **kwargs: object) -> object:
                nonlocal inside
                if not inside:
                    said = signature.bind(*args, **kwargs)
                    said.apply_defaults()
                    _keep_one(keep, modules, said.arguments, tiled)
                before, inside = inside, True
                try:
                    return function(*args, **kwargs)
                finally:
                    inside = before

            return call

        hooks = {
            "launch": hooked(context.launch, tiled=False),
            "launch_tiled": hooked(context.launch_tiled, tiled=True),
        }
        with replaced_attributes((warp, hooks), (context, hooks)):
            yield


def _keep_one(keep: Keep, modules: Modules, said: dict[str, Any], tiled: bool) -> None:
    """Capture a launch, unless it is empty, only recorded, or refused by Warp."""
    dim = said["dim"] if hasattr(said["dim"], "__iter__") else (said["dim"],)
    extents = tuple(int(extent) for extent in dim)
    if prod(extents) > 0 and not said["record_cmd"] and hasattr(said["kernel"], "adj"):
        block = said["block_dim"] if said["block_dim"] and said["block_dim"] > 0 else BLOCK
        keep(launched_by_warp(modules, said, (*extents, block) if tiled else extents, block))


def launched_by_warp(
    modules: Modules, said: dict[str, Any], extents: tuple[int, ...], block: int
) -> Launched:
    """A launch as Warp would make it on a GPU; `said` are the arguments of `warp.launch`.

    Raises:
        MemsimError: an argument of an unsupported type.
    """
    from warp._src.context import _build_launch_bounds_from_tuple

    kernel, values = said["kernel"], [*said["inputs"], *said["outputs"]]
    if kernel.is_generic and len(values) == len(kernel.adj.args):
        kernel = kernel._add_normalized_overload(kernel.infer_argument_types(values))
    direction = "backward" if said["adjoint"] else "forward"
    compiled, shared = modules.compile_kernel(kernel, block, direction)
    bounds = _build_launch_bounds_from_tuple(extents, kernel.adj.kernel_dim)
    declared = [(str(variable.label), variable.type) for variable in kernel.adj.args]
    passed = list(zip(declared, values))
    adjoint = list(zip(declared, [*said["adj_inputs"], *said["adj_outputs"]]))
    names = ["dim", *(name for (name, _), _ in passed), *(f"adj_{name}" for (name, _), _ in adjoint)]
    args: list[StructFields | bytes] = [bytes(bounds)]
    for given, backward in ((passed, False), (adjoint, True)):
        args += [_argument(kernel, name, kind, value, backward) for (name, kind), value in given]
    return Launched(
        kernel=replace(compiled, called=str(kernel.key), names=tuple(names)),
        grid=_grid(int(bounds.size), block, int(said["max_blocks"]), bool(kernel.grid_stride)),
        block=dim3(block, "block"),
        args=snapshot(args),
        shared_bytes=shared,
        note="backward" if said["adjoint"] else "",
    )


def _grid(size: int, block: int, most: int, strides: bool) -> tuple[int, int, int]:
    """The grid of a launch of `size` threads, as computed by `wp_cuda_launch_kernel` in `native/warp.cu`."""
    blocks = -(-size // block)
    if strides:
        return (min(blocks, most) if most > 0 else blocks), 1, 1
    x = min(blocks, LEAN_THREADS // block)
    rest = -(-blocks // x)
    y = min(rest, LEAN_BLOCKS)
    return x, y, -(-rest // y)


class Modules:
    """Warp's modules as machine code, each compiled once for each block size."""

    def __init__(self, folder: Path, arch: str) -> None:
        self.folder = folder
        self.chip = int(arch.removeprefix("sm_"))

    def compile_kernel(self, kernel: Any, block: int, direction: str) -> tuple[Kernel, int]:
        """(a kernel's machine code, with line information, which changes no instruction; its dynamic shared
        memory in bytes, from Warp's metadata).
        """
        from warp._src import codegen

        module = kernel.module
        options = dict(module.options)
        module.options.update(lineinfo=True, block_dim=block)
        try:
            paths = sys.modules["warp"].compile_aot_module(
                module, arch=self.chip, module_dir=self.folder, use_ptx=False
            )
        finally:
            module.options.clear()
            module.options.update(options)
            module.mark_modified()
        path = Path(paths[0])
        described = path.with_name(re.sub(r"\.sm\w+\.cubin$", ".meta", path.name))
        name = str(getattr(codegen, f"cuda_kernel_{direction}_name")(kernel))
        shared = json.loads(described.read_text("utf-8")).get(f"{name}_smem_bytes", 0)
        made_by = f"Warp {sys.modules['warp'].__version__}"
        return kernel_of_cubin(path.read_bytes(), name, made_by), int(shared)


# --- arguments


def _argument(kernel: Any, name: str, kind: Any, value: object, adjoint: bool) -> StructFields | bytes:
    """An argument as the machine code takes it: bytes, with arrays where pointers are."""
    from warp._src.context import pack_arg, runtime

    device = getattr(value, "device", None) or runtime.get_device(None)  # the default, if there are several
    packed = pack_arg(kernel, kind, name, value, device, adjoint)
    pointers = list(_pointers(kind, type(packed), value, 0, "", name))
    return with_arrays(bytes(packed), pointers) if pointers else bytes(packed)


def _pointers(
    kind: Any, layout: Any, value: object, offset: int, called: str, argument: str
) -> Iterator[tuple[int, np.ndarray, str]]:
    """(offset, array, name) of each array that a value of Warp's type `kind` points to.

    layout: its ctypes type at `offset` in the argument; the argument itself has no name.
    """
    from warp._src import types
    from warp._src.codegen import Struct

    if types.is_array(kind):
        if not types.matches_array_class(kind, sys.modules["warp"].array):
            refused = types.type_repr(kind)
            raise MemsimError(f"argument {argument} has Warp's type {refused}, which memsim does not support")
        if isinstance(value, types.array_t):
            raise MemsimError(
                f"argument {argument} is a descriptor of an array", hint="pass the array itself"
            )
        array = _memory(value)
        if array is not None:
            yield offset + layout.data.offset, array, called
        gradient = _memory(getattr(value, "grad", None))
        if gradient is not None:
            yield offset + layout.grad.offset, gradient, f"{called}.grad".lstrip(".")
    elif isinstance(kind, Struct):
        members = dict(layout._fields_)
        for name, variable in kind.vars.items():
            start = offset + getattr(layout, name).offset
            inner = f"{called}.{name}".lstrip(".")
            yield from _pointers(variable.type, members[name], getattr(value, name), start, inner, argument)


def _memory(array: Any) -> np.ndarray | None:
    """A Warp array in the allocation that it is a part of; None if there is none."""
    if array is None or not getattr(array, "size", 1):
        return None
    if not hasattr(array, "ptr"):  # of another package
        return np.asarray(array)
    owner = array
    while hasattr(getattr(owner, "_ref", None), "ptr"):
        owner = owner._ref
    if not owner.is_contiguous:
        owner = array
    content = array.numpy()  # no copy on the CPU; a copy from a GPU
    memory, first = allocation(owner.numpy())
    inner = content.shape[array.ndim :]  # of vectors and matrices
    strides = (*array.strides, *content.strides[array.ndim :])
    shape, dtype = (*array.shape, *inner), content.dtype
    if dtype.kind == "V":  # structs as bytes
        shape, strides, dtype = (*shape, dtype.itemsize), (*strides, 1), np.dtype(np.uint8)
    start = first + int(array.ptr) - int(owner.ptr)
    view: np.ndarray = np.ndarray(shape, dtype, memory, start, strides)
    return view
