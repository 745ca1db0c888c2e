"""One launch of a kernel: its code, its shape and its arguments, as they were when the launch was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.api import loading, running
from memsim.api.loading import SourceTexts
from memsim.arch import get_arch
from memsim.argument_types import StructFields
from memsim.argument_types.argument import Copies, argument_of
from memsim.argument_types.foreign_arrays import as_arguments
from memsim.boundary import Boundary
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.shown import ShownAnalysis

if TYPE_CHECKING:
    from memsim.trace.trace import Trace

POINTER = 8  # bytes
#: The sources of kernels that this very process compiles and launches: it has read them already.
OF_THIS_PROGRAM = SourceTexts(Boundary(everywhere=True))


@dataclass(frozen=True, eq=False)
class Launched:
    """A launch that was captured or loaded. `note` distinguishes it from others, such as by a configuration.

    shared_bytes: dynamic shared memory per block, in bytes; None if unknown. cluster: blocks of a cluster if
    set by the launch and not by the code.
    """

    kernel: Kernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[object, ...] = field(repr=False)
    shared_bytes: int | None = 0
    cluster: tuple[int, int, int] | None = None
    note: str = ""

    @staticmethod
    def of(job: Job) -> Launched:
        """The launch of a job."""
        shape = job.launch
        values = tuple(job.values)
        return Launched(job.loaded, shape.grid, shape.block, values, shape.shared_bytes, shape.cluster)

    def _described(self) -> dict[str, Any]:
        """The launch as keywords of `memsim.api.running`."""
        names = ("kernel", "grid", "block", "args", "shared_bytes", "cluster")
        return {name: getattr(self, name) for name in names}

    def job(self, **more: Any) -> Job:
        """The launch as a `Job`; `more` are other fields of it."""
        return running.job_of(**self._described(), **more)

    def trace(self, **how: Any) -> Trace:
        """As `memsim.api.running.trace`; `how` are its options."""
        return running.trace(**self._described(), **how)

    def analyze(self, progress: running.Progress | None = None, **how: Any) -> ShownAnalysis:
        """As `memsim.analyze`; `how` are its options, such as `blocks=4`."""
        if how.get("arch") is not None:
            how["arch"] = get_arch(how["arch"])
        job = self.job(**{name: value for name, value in how.items() if value is not None})
        return ShownAnalysis.of_job(job, progress)

    def run(self, **how: Any) -> None:
        """As `memsim.run`: this record's arrays are written in place."""
        running.run(**self._described(), **how)


def snapshot(arguments: Sequence[object]) -> tuple[object, ...]:
    """Copies of arguments, independent of the caller's arrays; arrays that share memory still do."""
    copies = Copies()
    return tuple(argument_of(argument).with_arrays(copies) for argument in as_arguments(arguments))


def with_arrays(raw: bytes, pointers: Iterable[tuple[int, object, str]]) -> StructFields:
    """A parameter's bytes with arrays in place of addresses: (offset, array, its name), in order."""
    parts: list[object] = []
    names: list[str] = []
    end = 0
    for offset, array, name in (*pointers, (len(raw), None, "")):
        if offset > end:
            parts.append(np.void(raw[end:offset]))
            names.append("")
        if array is not None:
            parts.append(array)
            names.append(name)
        end = offset + POINTER
    return StructFields(parts, names)


@lru_cache(maxsize=32)
def kernel_of_cubin(
    cubin: bytes, name: str, package: str, ptx: str = "", texts: SourceTexts = OF_THIS_PROGRAM
) -> Kernel:
    """The kernel `name` of a cubin made by `package`, with its PTX if known."""
    from memsim.sass.cubin import read_cubin

    return loading.from_cubin(cubin, f"{package} ({read_cubin(cubin).compiler})", ptx, texts)[name]
