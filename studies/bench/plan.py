"""Which kernels to time, at which sizes, as a user names them; or that part of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memsim.errors import MemsimError
from memsim.kernels import Spec, catalog
from studies.bench.recording import CUBLAS, BenchRecording, Size
from studies.dispatch import Dispatcher, entry_of, picked

SIZES = ((1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3)
FAMILY = "sgemm"


def read_size(text: str) -> Size:
    """`4096` for a cube, or `M,N,K`.

    Raises:
        MemsimError: neither.
    """
    parts = text.split(",")
    if len(parts) not in (1, 3) or not all(part.strip().isdecimal() and int(part) for part in parts):
        raise MemsimError(
            f"a size is one positive integer, or three as M,N,K, and not {text!r}",
            hint="--size 4096, or --size 4096,4096,512",
        )
    m, n, k = (int(part) for part in (parts if len(parts) == 3 else parts * 3))
    return m, n, k


def takes(name: str, sizes: Sequence[Size]) -> bool:
    """Whether a kernel of the catalogue takes all these sizes."""
    try:
        for size in sizes:
            picked(entry_of(name), size).sizes(size)
    except MemsimError:
        return False
    return True


def sgemm_names() -> list[str]:
    """The SGEMMs of the catalogue."""
    return [name for name, entry in catalog().items() if entry.family.name == FAMILY]


def plan_bench(names: Sequence[str], sizes: Sequence[Size]) -> dict[Size, list[Spec | Dispatcher]]:
    """The kernels to time at each size, each once; a dispatcher stands for what it picks.

    Raises:
        MemsimError: no such kernel, one that multiplies nothing, or a size that it does not take.
    """
    entries = [entry_of(name) for name in names]
    for entry in entries:
        if entry.family.name != FAMILY:
            raise MemsimError(
                f"{entry.name} is not an SGEMM, so there is nothing to compare its speed with",
                hint="without a name, every SGEMM is timed",
            )
    plan: dict[Size, list[Spec | Dispatcher]] = {}
    for size in sizes:
        for entry in entries:
            entry.job(size)  # refused before anything runs
        plan[size] = list({picked(entry, size).name: entry for entry in entries}.values())
    return plan


def part_of(recording: BenchRecording, names: Sequence[str], sizes: Sequence[Size]) -> BenchRecording:
    """What was recorded of some kernels at some sizes, cuBLAS with them; none means all.

    Raises:
        MemsimError: as `plan_bench`, or it was not recorded.
    """
    there = {(timing.kernel, timing.size) for timing in recording.timings}
    at = sizes or recording.sizes
    wanted = {(kernel, size) for kernel, size in there if kernel != CUBLAS and size in at}
    if names:
        plan = plan_bench(names, at)
        wanted = {(picked(entry, size).name, size) for size, entries in plan.items() for entry in entries}
    missing = sorted(wanted - there) + [(CUBLAS, size) for size in at if size not in recording.sizes]
    if missing:
        kernel, size = missing[0]
        raise MemsimError(
            f"the recording of {recording.date} has no time of {kernel} at {','.join(map(str, size))}",
            hint=f"it has {', '.join(recording.kernels)}, "
            f"at {' and '.join(','.join(map(str, each)) for each in recording.sizes)}",
        )
    kernels = {kernel for kernel, _ in wanted}
    return replace(
        recording,
        kernels={name: code for name, code in recording.kernels.items() if name in kernels},
        timings=tuple(
            timing
            for timing in recording.timings
            if timing.size in at and (timing.kernel == CUBLAS or (timing.kernel, timing.size) in wanted)
        ),
    )
