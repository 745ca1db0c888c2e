"""What a family of kernels computes, and a kernel of the catalogue: its launch and arguments for a size,
the expected result, and, through `memsim.api`, its trace, analysis and run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import nan, prod
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memsim.errors import MemsimError
from memsim.files import read_text
from memsim.launch import Launch, dim3

if TYPE_CHECKING:
    import numpy as np

    from memsim.api.kernel_file import KernelFile
    from memsim.arch import Arch
    from memsim.job import Job
    from memsim.kernel import Kernel
    from memsim.kernels.shipped import Shipped
    from memsim.sass.machine_code import MachineModule
    from memsim.shown import ShownAnalysis
    from memsim.trace.trace import Trace

Arrays: TypeAlias = "dict[str, np.ndarray]"
Size = str | Sequence[int] | None  # "512,512,256", (512, 512, 256), or None for the default

PART_UNIT = 32  # lines: K is split into parts in these units; the first need not be whole
MAX_ELEMENTS = 2**31 - 1  # the kernels' index math uses int


def _product_of_parts(arrays: Mapping[str, np.ndarray]) -> Arrays:
    """A times B over each part of K. The first parts have one unit more if K does not divide evenly."""
    from numpy import stack

    a, b = (arrays[name].astype("float64") for name in "AB")
    (parts, *_), lines = arrays["C"].shape, a.shape[1]
    units = -(-lines // PART_UNIT)
    cuts = [part * (units // parts) + min(part, units % parts) for part in range(parts + 1)]
    starts = [max(0, cut * PART_UNIT - (units * PART_UNIT - lines)) for cut in cuts]
    return {"C": stack([a[:, i:j] @ b[i:j] for i, j in pairwise(starts)])}


# References of the families: from all arrays by name to the outputs by name, in float64.
REFERENCES: dict[str, Callable[[Mapping[str, np.ndarray]], Arrays]] = {
    "sgemm": lambda arrays: {"C": arrays["A"].astype("float64") @ arrays["B"].astype("float64")},
    "sgemm_parts": _product_of_parts,
    "sum_of_parts": lambda arrays: {"C": arrays["P"].astype("float64").sum(axis=0)},
    "transpose": lambda arrays: {"C": arrays["A"].T.astype("float64")},
}


@dataclass(frozen=True, slots=True)
class Family:
    """What a group of kernels computes: sizes with defaults, and arrays with their shapes by
    names of sizes.
    """

    name: str
    sizes: dict[str, int]
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, tuple[str, ...]]

    @property
    def arrays(self) -> dict[str, tuple[str, ...]]:
        """All arrays, inputs first."""
        return {**self.inputs, **self.outputs}

    def terms(self, sizes: Mapping[str, int]) -> int:
        """The number of terms that an element of the outputs is a sum of; 0 if it is only moved.

        The axes that inputs have and outputs do not are summed over.
        """
        kept = {axis for axes in self.outputs.values() for axis in axes}
        summed = {axis for axes in self.inputs.values() for axis in axes} - kept
        return prod(sizes[axis] for axis in summed) if summed else 0

    def named(self, size: Size, kernel: str, fixed: Collection[str] = ()) -> dict[str, int]:
        """The sizes by name, without the fixed ones; `kernel` is the name in errors.

        Raises:
            MemsimError: not as many positive integers as needed.
        """
        defaults = {name: value for name, value in self.sizes.items() if name not in fixed}
        if size is None:
            return defaults
        given = size.split(",") if isinstance(size, str) else size
        try:
            values = [int(value) if isinstance(value, str) else index(value) for value in given]
        except (TypeError, ValueError):
            values = []
        if len(values) != len(defaults) or min(values) < 1:
            shown = ",".join(map(str, given)) if isinstance(given, (list, tuple)) else given
            raise MemsimError(
                f"{kernel} takes a size {','.join(defaults)} of {len(defaults)} positive integers, "
                f"not {shown!r}",
                hint=f"the default is {','.join(map(str, defaults.values()))}",
            )
        return dict(zip(defaults, values))


@dataclass(frozen=True, slots=True)
class Spec:
    """A kernel of the catalogue.

    `story` is one line. `article` is the title of its article, `says` what that claims and what is true of
    it. `grid` names the size and the tile of each dimension: `("N", 128)` for ceil(N / 128) blocks.
    `requires` names the sizes that must be multiples of a number. `scalars` are arguments that are neither
    sizes nor arrays: numbers, or names of sizes. `textures` names the arrays passed as textures. `fixed`:
    sizes with a fixed value.
    """

    name: str
    story: str
    article: str
    says: str
    family: Family
    source: Path
    entry: str
    options: tuple[str, ...]
    arguments: tuple[str, ...]
    grid: tuple[tuple[str, int], ...]
    block: tuple[int, int, int]
    shared_bytes: int
    requires: tuple[tuple[str, int], ...]
    scalars: dict[str, float | str]
    textures: tuple[str, ...]
    fixed: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Spec {self.name}: {self.story}>"

    def sizes(self, size: Size = None) -> dict[str, int]:
        """The size by name: `{"M": 1024, "N": 1024, "K": 1024}`.

        Raises:
            MemsimError: not as many positive integers as the family has, or a size that the kernel does not
                support.
        """
        sizes = self.family.named(size, self.name, self.fixed)
        for name, divisor in self.requires:
            if sizes[name] % divisor:
                raise MemsimError(
                    f"{self.name} needs {name} to be a multiple of {divisor}, but it is {sizes[name]}",
                    hint=f"the next one is {-(-sizes[name] // divisor) * divisor}",
                )
        for array, shape in self.family.arrays.items():
            elements = prod({**sizes, **self.fixed}[extent] for extent in shape)
            if elements > MAX_ELEMENTS:
                raise MemsimError(
                    f"{array} would have {elements} elements, but {self.name} indexes with 32-bit integers",
                    hint=f"an array can have {MAX_ELEMENTS} elements",
                )
        return sizes

    def job(self, size: Size = None, seed: int = 0) -> Job:
        """The launch for a size. Arrays are described, not created; inputs are random by `seed`.

        Raises:
            MemsimError: as `sizes`; a grid larger than the hardware supports.
        """
        from memsim.argument_types import ArrayArg
        from memsim.job import Job

        sizes = self.sizes(size)
        extents = {**sizes, **self.fixed}
        arguments: dict[str, object] = dict(extents)
        for name, value in self.scalars.items():
            arguments[name] = extents[value] if isinstance(value, str) else value
        for number, (name, names) in enumerate(self.family.arrays.items()):
            shape = tuple(extents[extent] for extent in names)
            fill = "zeros" if name in self.family.outputs else "random"
            arguments[name] = ArrayArg(shape, "float32", fill, seed=seed * len(self.family.arrays) + number)
        launch = Launch(dim3(self.blocks(sizes), "grid"), self.block, self.shared_bytes)
        return Job(self, launch, self._in_order(arguments), name=self.name, size=sizes)

    def blocks(self, sizes: Mapping[str, int]) -> list[int]:
        """The number of blocks in each dimension of the grid, for sizes by name."""
        extents = {**sizes, **self.fixed}
        return [-(-extents[name] // tile) for name, tile in self.grid]

    def _in_order(self, arguments: Mapping[str, Any]) -> tuple[object, ...]:
        """Arguments by name in the kernel's order."""
        from memsim.argument_types import Texture1D

        return tuple(
            Texture1D(arguments[name]) if name in self.textures else arguments[name]
            for name in self.arguments
        )

    def expected(self, arrays: Mapping[str, np.ndarray]) -> Arrays:
        """The expected outputs by name, for inputs by name; in float64."""
        return REFERENCES[self.family.name](arrays)

    @property
    def folder(self) -> Path:
        """The folder that `file` is relative to."""
        return self.source.parent.parent

    @property
    def file(self) -> str:
        """The source's name in reports: `kernels/kernel_v4.cu`."""
        return f"kernels/{self.source.name}"

    @property
    def as_file(self) -> KernelFile:
        """The source, and how it is compiled: not the form that ships."""
        from memsim.api.kernel_file import KernelFile

        return KernelFile(self.folder, self.file, self.entry, self.options)

    @property
    def compiled_path(self) -> Path:
        """The file of the shipped machine code (`memsim.kernels.shipped`)."""
        return self.source.parent / "compiled" / f"{self.name}.zip"

    def source_texts(self) -> dict[str, str]:
        """The source and the headers that it includes, by name (`kernels/kernel_v4.cu`)."""
        from memsim.compile.included_files import included_files

        folder = self.source.parent
        text = read_text(self.source)
        headers = included_files(text, folder, self.options)
        return {
            self.file: text,
            **{f"kernels/{path.relative_to(folder).as_posix()}": header for path, header in headers.items()},
        }

    def load(self, arch: Arch) -> Kernel:
        """The kernel, as a `memsim.job.KernelProvider`; for another chip than sm_90 it is compiled."""
        from memsim.arch import SM_90

        return self.kernel() if arch.name == SM_90.name else self._compiled_for(arch)

    def _compiled_for(self, arch: Arch) -> Kernel:
        """The kernel for a chip for which no machine code ships.

        Raises:
            MemsimError: no compiler that supports it.
        """
        from memsim.api.loading import load

        module = load(self.source, self.options, arch=arch.name, name=self.file)
        return replace(module[self.entry], sources=self.source_texts())

    def kernel(self) -> Kernel:
        """The kernel, loaded once.

        The compiled form that ships is used if it was made from the present source; else it is recompiled.

        Raises:
            MemsimError: the source has changed, and there is no compiler or no disassembler.
        """
        return _kernel(self)

    def machine(self) -> MachineModule:
        """The kernel's cubin."""
        from memsim.sass.machine_code import read_module

        shipped = self.shipped()
        if shipped is not None:
            return read_module(shipped.cubin, shipped.listing, str(self.compiled_path), shipped.made.compiler)
        from memsim.compile.cuda_source import compile_cubin

        try:
            done = compile_cubin(self.source, self.options, name=self.file)
        except MemsimError as error:
            if error.file is not None:
                raise  # the source does not compile
            raise MemsimError(
                f"{self.source.name} or its header changed since it was compiled, and {error.message}",
                hint=error.hint,
            ) from None
        return read_module(done.cubin, None, self.file, done.compiler, done.names)

    def shipped(self) -> Shipped | None:
        """The shipped form if it was made from the present source; else None."""
        from memsim.kernels.shipped import read_shipped

        if not self.compiled_path.is_file():
            return None
        shipped = read_shipped(self.compiled_path)
        return shipped if shipped.fits(self.source_texts(), tuple(self.options)) else None

    def trace(self, size: Size = None, blocks: int | None = None) -> Trace:
        """The addresses of all memory requests; `blocks` as in `memsim.analyze`."""
        from memsim.api import running

        return running.trace_job(replace(self.job(size), blocks=blocks))

    def analyze(self, size: Size = None, blocks: int | None = None) -> ShownAnalysis:
        """What each source line costs; `blocks` as in `memsim.analyze`."""
        from memsim.shown import ShownAnalysis

        return ShownAnalysis.of_job(replace(self.job(size), blocks=blocks))

    def run(self, size: Size = None, seed: int = 0, given: Mapping[str, np.ndarray] | None = None) -> Arrays:
        """Execute everything on random inputs; returns all arrays by name, with the outputs as the kernel
        leaves them.

        Outputs are NaN before the run, so that elements that are never written show. given: inputs that are
        not random.
        """
        from memsim.api import running
        from memsim.argument_types import ArrayArg, Texture1D

        job = self.job(size, seed)
        arguments = {
            name: value.array if isinstance(value, Texture1D) else value
            for name, value in zip(self.arguments, job.args)
        }
        arrays = {name: value.make() for name, value in arguments.items() if isinstance(value, ArrayArg)}
        arrays |= given or {}
        for name in self.family.outputs:
            arrays[name].fill(nan)
        running.run_job(replace(job, args=self._in_order({**arguments, **arrays})))
        return arrays


_kernels: dict[tuple[object, ...], Kernel] = {}


def _kernel(spec: Spec) -> Kernel:
    """The kernel, loaded once, of a source that does not change."""
    from memsim.kernel import Kernel
    from memsim.kernels.shipped import digest

    texts = spec.source_texts()
    key = (spec.source, spec.name, *map(digest, texts.values()))
    if key not in _kernels:
        _kernels[key] = Kernel(spec.entry, spec.machine().kernels[spec.entry], texts)
    return _kernels[key]
