"""`memsim.analyze` for anything that stands for a kernel: a loaded one, a captured launch, or a raw kernel of
CuPy, compiled as CuPy would.

Launches of raw kernels are not captured: they cannot be called without a GPU.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memsim.api import loading, running
from memsim.api.sanitizing import sanitize_job
from memsim.arch import SM_90, Arch, get_arch
from memsim.captured.launched import Launched
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.sanitizer.hazards import TOOLS, read_allowance
from memsim.shown import ShownAnalysis, ShownSanitized

#: Options that CuPy adds to the user's (`cupy/cuda/compiler.py`).
OWN_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
_CHIP = re.compile(r"-{1,2}(gpu-architecture|arch)\b.*")


def is_raw(kernel: object) -> bool:
    """Is it a `RawKernel` or a `RawModule`?"""
    return (
        type(kernel).__module__.startswith("cupy") and hasattr(kernel, "code") and hasattr(kernel, "options")
    )


#: Packages whose kernels run, and are counted, by `memsim exec` only.
RUN_ONLY = {"cupy": "CuPy", "cupyx": "CuPy", "numba": "Numba"}


def check_is_raw(kernel: object) -> None:
    """Raise a MemsimError for a kernel whose package generates its code itself: the source is not at hand."""
    package = RUN_ONLY.get(type(kernel).__module__.partition(".")[0])
    if package is not None and not is_raw(kernel):
        raise MemsimError(
            f"memsim.analyze takes no {type(kernel).__name__} of {package}; of CuPy RawKernel and RawModule",
            hint=f"`memsim exec --analyze -- python SCRIPT` runs it, and counts what {package} compiles",
        )


def kernel_of(raw: Any, name: str | None, arch: str) -> Kernel:
    """The kernel `name` of CuPy's `raw`; None for a `RawKernel` or a module's only kernel.

    Raises:
        MemsimError: no such kernel, several, or code that does not compile.
    """
    options = [option for option in raw.options if not _CHIP.match(option)]
    if raw.code is None:
        raise MemsimError("this RawModule was loaded from a file", hint="pass that file to memsim.load")
    wanted = name or getattr(raw, "name", None)
    called = f"{(wanted or 'kernel').partition('<')[0]}.cu"
    includes = [f"-I{folder}" for folder in _headers()]
    module = loading.from_text(raw.code, [*OWN_OPTIONS, *options, *includes], arch, called)
    choice = tuple(getattr(raw, "name_expressions", None) or module)
    if wanted is None and len(choice) == 1:
        wanted = choice[0]
    if wanted is None:
        raise MemsimError("the module has several kernels", hint=f"choose one by name: {', '.join(choice)}")
    return module[wanted]


def _headers() -> list[Path]:
    """CuPy's own headers."""
    file = getattr(sys.modules.get("cupy"), "__file__", None)
    return [Path(file).parent / "_core" / "include"] if file else []


Dims = int | Sequence[int]


def analyze(
    kernel: object,
    grid: Dims | None = None,
    block: Dims | None = None,
    args: Sequence[object] = (),
    shared_bytes: int | None = 0,
    blocks: int | None = None,
    arch: str | Arch | None = None,
    progress: running.Progress | None = None,
    *,
    cluster: Dims | None = None,
    max_steps: int | None = None,
    allow_out_of_bounds: bool = False,
    name: str | None = None,
) -> ShownAnalysis:
    """What every access of a launch costs, by source line.

    Args:
        kernel: `load(...)[name]`; index math in Python, a function of the `Thread` and of `args`
            (docs/layouts.md); a `RawKernel` or `RawModule` of CuPy; an `ObjectCode` of cuda.core; a launch
            from `capture`.
        grid, block: one to three ints, as CUDA's `dim3`; not for a launch. Of a function, `grid` may be left
            out: one block.
        args: arrays and scalars, in the kernel's order. An array is one of numpy, torch, CuPy or whoever
            speaks DLPack, or an `ArrayArg` by shape and type. Allocations lie at multiples of 256 bytes, as
            `cudaMalloc` gives them, and a view where it begins in its own; none is changed. None is a null
            pointer, `Pointers` a table of them; `TensorMap` a parameter or part of a struct, `TensorMaps` a
            table of them. A struct is a list of its parts, as `[A, 3]` for a pointer and an int, with types
            (`np.int32(3)`) if its size leaves them open, a numpy scalar, or bytes. Texts are read as `--arg`
            of the command line: `"f32[1024,1024]"`.
        shared_bytes: dynamic shared memory per block, in bytes; None if unknown: then as much as a
            block can have, and the report says so.
        blocks: replay only so many blocks, spread evenly over the grid; None for all.
        arch: the chip to compile for and whose rules to use; default: the one that the code was made
            for, and sm_90 to compile for.
        cluster: blocks of a cluster, as `grid`, if the launch sets it; None leaves it to the code.
        max_steps: instructions after which a chunk of blocks counts as an endless loop; None for five
            million.
        allow_out_of_bounds: count a load outside of every array, whose value is then unknown, instead of
            raising an error.
        name: which kernel of a `RawModule` or an `ObjectCode`.

    Raises:
        MemsimError: a launch or arguments that do not match the kernel, or an error in the kernel.
    """
    job = job_of_any(
        kernel,
        grid,
        block,
        args,
        shared_bytes,
        cluster,
        name,
        arch,
        blocks=blocks,
        max_steps=max_steps,
        allow_out_of_bounds=allow_out_of_bounds,
    )
    return ShownAnalysis.of_job(job, progress)


def sanitize(
    kernel: object,
    grid: Dims | None = None,
    block: Dims | None = None,
    args: Sequence[object] = (),
    shared_bytes: int | None = 0,
    blocks: int | None = None,
    arch: str | Arch | None = None,
    progress: running.Progress | None = None,
    *,
    cluster: Dims | None = None,
    max_steps: int | None = None,
    name: str | None = None,
    tools: Sequence[str] = ("all",),
    allow: Sequence[str] = (),
    unwritten: Sequence[str] = (),
) -> ShownSanitized:
    """The errors of a launch: races, accesses out of bounds, unwritten shared memory, deadlocks.

    `errors` of the result are the findings that are not allowed, `unjudged` what is not known; `print` shows
    all. The arguments are those of `memsim.analyze`, and:

    Args:
        tools: what to look for: "race", "bounds", "init", "sync", or "all".
        allow: findings that are allowed, as `"s:all lanes store one value"` (docs/sanitize.md).
        unwritten: arrays in global memory, by the names of their parameters, that nobody has written before.

    Raises:
        MemsimError: a launch or arguments that do not match the kernel.
    """
    if unknown := {*tools} - {*TOOLS, "all"}:
        raise MemsimError(f"there is no tool {min(unknown)!r}", hint=", ".join((*TOOLS, "all")))
    how = {"blocks": blocks, "max_steps": max_steps}
    job = job_of_any(kernel, grid, block, args, shared_bytes, cluster, name, arch, **how)
    allowances = [read_allowance(text) for text in allow]
    chosen = TOOLS if "all" in tools else tools
    return ShownSanitized.of(sanitize_job(job, progress, chosen, allowances, unwritten=unwritten))


def job_of_any(
    kernel: Any,
    grid: Dims | None,
    block: Dims | None,
    args: Sequence[object],
    shared_bytes: int | None,
    cluster: Dims | None,
    name: str | None,
    arch: str | Arch | None,
    **more: Any,
) -> Job:
    """The job that the arguments of `analyze` describe; `more` are other fields of it.

    Raises:
        MemsimError: a launch that does not match the kernel.
    """
    chip = None if arch is None else get_arch(arch)
    compiled_for = (chip or SM_90).name
    if chip is not None:
        more = {**more, "arch": chip}
    if isinstance(kernel, Launched):
        if grid is not None or block is not None or shared_bytes != 0 or cluster is not None:
            raise MemsimError("grid, block, shared memory and cluster are already set by the launch")
        return kernel.job(**more)
    check_is_raw(kernel)
    if is_raw(kernel):
        kernel = kernel_of(kernel, name, compiled_for)
    elif isinstance(kernel, loading.ObjectCode):
        module = loading.load(kernel, arch=None if chip is None else chip.name)
        kernel = module[name] if name is not None else module
    if grid is None and block is None and isinstance(kernel, Kernel):
        raise MemsimError("a kernel needs a grid and a block", hint="pass grid and block")
    return running.job_of(kernel, grid, block, args, shared_bytes, cluster, **more)
