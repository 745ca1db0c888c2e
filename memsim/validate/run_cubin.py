"""A program for `run_under_ncu` that launches cubins as a plan says, a JSON list of `Step`s beside them.

Its answer: for each kernel of the catalogue the error of its outputs relative to the reference, null for
others. The machine code and arguments are exactly those of the prediction. ncu measures only between the
profiler's start and stop here, so the reference does not affect the counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import msgspec
import numpy as np

from memsim.argument_types import ArrayTable, Texture, Texture1D
from memsim.argument_types.argument import documents_of
from memsim.argument_types.array_arg import as_numpy
from memsim.argument_types.foreign_arrays import as_arguments
from memsim.argument_types.launch_arguments import arrays_of, parameter_bytes
from memsim.captured.saved_launch import LAUNCH, arguments_of, record_arguments
from memsim.document import JsonObject
from memsim.errors import MemsimError
from memsim.kernels import Spec, catalog
from memsim.names.demangle import demangle
from memsim.sass.machine_code import MachineKernel, read_module
from memsim.validate.device import load_cupy
from memsim.validate.device_memory import DeviceArray, DeviceMemory, DevicePlaces, launch_clusters
from memsim.validate.profiler import answer

PLAN = "plan.json"
REFERENCE = "the same in float64 on the GPU, by CuPy (products by cuBLAS)"
UNIT_ROUNDOFF = 2.0**-24  # of float32
STATIC_SHARED_BYTES = 49_152  # more requires opting in
Arguments: TypeAlias = Mapping[str, object]  # by name


@dataclass(frozen=True, slots=True)
class Step:
    """One launch. cubin: the name of a file beside the plan. args: as returned by `pack`; their files are
    in a folder beside the plan, called as the cubin without its suffix. cluster: where the launch chooses it.

    catalogue: the name of a catalogue kernel, and `size` its problem size; else "" and ().
    """

    cubin: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    args: tuple[object, ...]
    cluster: tuple[int, ...] | None = None
    catalogue: str = ""
    size: tuple[int, ...] = ()


def pack(args: Sequence[object], folder: Path) -> list[object]:
    """Arguments as `launch.json` has them; existing arrays are written to `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    packed: list[object] = msgspec.to_builtins(
        record_arguments(as_arguments(args), folder), enc_hook=np.generic.item
    )
    return packed


def unpack(records: Sequence[object], folder: Path) -> list[object]:
    """The inverse of `pack`."""
    return arguments_of(documents_of(records, "$"), folder / LAUNCH)


def main(arguments: Sequence[str]) -> int:
    """Run the plan in the folder `arguments[0]`; returns 0 if every launch succeeds."""
    folder = Path(arguments[0])
    steps = json.loads((folder / PLAN).read_text("utf-8"))
    return answer(folder, lambda: [run(Step(**record), folder) for record in steps])


def run(step: Step, folder: Path) -> JsonObject | None:
    """Launch a kernel, measured, and compare the outputs of a catalogue kernel with the reference.

    Raises:
        MemsimError: CuPy is missing, arguments do not match, or CUDA rejects the kernel or its launch.
    """
    spec = catalog()[step.catalogue] if step.catalogue else None
    cupy = load_cupy()
    path = folder / step.cubin
    kernel = read_module(path.read_bytes(), file=step.cubin).kernels[step.kernel]
    names = spec.arguments if spec else [f"arg{i}" for i in range(len(step.args))]
    with refusals(cupy, step.catalogue or step.kernel, step.size or step.grid):
        arrays = launch(
            cupy,
            path,
            kernel,
            step,
            dict(zip(names, unpack(step.args, path.with_suffix("")), strict=True)),
            spec,
        )
        return check(cupy, spec, spec.sizes(step.size), arrays) if spec else None


@dataclass(frozen=True, slots=True)
class ReadyLaunch:
    """A kernel on the device, and what it is launched with. buffers: the bytes of each parameter. arrays: by
    name. kept: what these point to, which must not be freed before.
    """

    step: Step
    function: Any
    buffers: Sequence[bytes]
    arrays: dict[str, DeviceArray]
    kept: tuple[object, ...]

    def run(self) -> None:
        """Launch it, without waiting for it."""
        step, shared = self.step, self.step.shared_bytes
        if step.cluster is None:
            values = tuple(np.frombuffer(buffer, f"V{len(buffer)}") for buffer in self.buffers)
            self.function(tuple(step.grid), tuple(step.block), values, shared_mem=shared)
        else:
            kernel = self.function.kernel.ptr
            launch_clusters(kernel, step.grid, step.block, step.cluster, shared, self.buffers)


def launch(
    cupy: ModuleType, path: Path, kernel: MachineKernel, step: Step, args: Arguments, spec: Spec | None
) -> dict[str, DeviceArray]:
    """The launch itself, between the profiler's start and stop; returns the arrays by name, on the device."""
    from cupyx.profiler import profile  # type: ignore[import-not-found,unused-ignore]

    ready = prepare(cupy, path, kernel, step, args, spec)
    cupy.cuda.Device().synchronize()
    with profile():
        ready.run()
        cupy.cuda.Device().synchronize()
    return ready.arrays


def prepare(
    cupy: ModuleType, path: Path, kernel: MachineKernel, step: Step, args: Arguments, spec: Spec | None
) -> ReadyLaunch:
    """Put all that a launch needs on the device."""
    memory = DeviceMemory(cupy)
    given = list(arrays_of([*args], [*args.values()]))
    addresses = [memory.address(value) for _, value in given]
    arrays = {name: memory.place(value)[0] for name, value in given if not isinstance(value, ArrayTable)}
    if any(isinstance(value, Texture) and not isinstance(value, Texture1D) for value in args.values()):
        raise MemsimError(
            "only textures over float4 in linear memory are made on a GPU here",
            hint="memsim.argument_types.Texture1D; others are analyzed without one",
        )
    over_arrays = {name: one for name, one in args.items() if isinstance(one, Texture1D)}
    textured = {name: cupy.asarray(as_numpy(one.array)) for name, one in over_arrays.items()}
    textures = [texture_over(cupy, array) for array in textured.values()]
    for name in spec.family.outputs if spec else ():
        arrays[name].fill(np.nan)  # so that elements that are never written show
    buffers = parameter_bytes(
        demangle(kernel.name),
        kernel.parameters,
        [*args.values()],
        DevicePlaces(memory, addresses, [int(texture.ptr) for texture in textures]),
    )
    function = cupy.RawModule(path=str(path)).get_function(kernel.name)
    static = kernel.image.static_shared - kernel.image.reserved_shared
    if step.shared_bytes and step.shared_bytes + static > STATIC_SHARED_BYTES:
        function.max_dynamic_shared_size_bytes = step.shared_bytes
    return ReadyLaunch(step, function, buffers, {**arrays, **textured}, (memory, textures))


def check(
    cupy: ModuleType, spec: Spec, sizes: Mapping[str, int], arrays: Mapping[str, DeviceArray]
) -> JsonObject:
    """The error of the outputs relative to the reference, and whether float32 rounding explains it.

    The bound: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1, for sums of products in
    any order; the same reference computed on absolute values gives its second factor. A kernel without sums
    must be exact.
    """
    roundings = spec.family.terms(sizes) * UNIT_ROUNDOFF
    expected = spec.expected(arrays)
    scale = spec.expected({name: cupy.abs(array) for name, array in arrays.items()})
    right, largest = True, 0.0
    for name in spec.family.outputs:
        error = cupy.abs(arrays[name] - expected[name])
        right = right and bool((error <= roundings / (1 - roundings) * scale[name]).all())
        largest = max(largest, float(cupy.nan_to_num(error, nan=np.inf).max()))
    return {
        "reference": REFERENCE,
        "right": right,
        "largest_error": largest if np.isfinite(largest) else None,
    }


def texture_over(cupy: ModuleType, array: DeviceArray) -> DeviceArray:
    """A texture object over a float32 array, as `Texture1D` describes it."""
    texture, runtime = cupy.cuda.texture, cupy.cuda.runtime
    channels = texture.ChannelFormatDescriptor(32, 32, 32, 32, runtime.cudaChannelFormatKindFloat)
    resource = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=array, chDesc=channels, sizeInBytes=array.nbytes
    )
    return texture.TextureObject(resource, texture.TextureDescriptor())


@contextmanager
def refusals(cupy: ModuleType, kernel: str, size: Sequence[int]) -> Iterator[None]:
    """Converts CUDA's errors about a kernel.

    Raises:
        MemsimError: CUDA rejects the kernel or its launch, or there is not enough memory.
    """
    try:
        yield
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        raise MemsimError(f"{kernel} does not run on this GPU: {error}") from None
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise MemsimError(f"{kernel} at {size} does not fit this GPU: {error}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
