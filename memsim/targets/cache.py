"""Traces that were made before: nothing that decides a trace may change without another name for it.

In: a `Job`. Out: its trace, from the user's cache folder if it is there. Kept are traces and not counts:
what they cost is worked out anew each time. A file that is damaged, cannot be read or cannot be written
is as good as none. Left out on purpose: taking old files away; the folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from memsim.api import Progress, trace_job
from memsim.arrays import allocation, as_arguments
from memsim.errors import MemsimError
from memsim.job import Job
from memsim.launch import Pointers, TensorMap, Texture1D
from memsim.trace.source import TraceSource
from memsim.trace.trace import Trace

FOLDER_VARIABLE = "MEMSIM_CACHE_DIR"


def cache_folder() -> Path:
    """Where this user's traces are kept; `MEMSIM_CACHE_DIR` says otherwise."""
    if os.environ.get(FOLDER_VARIABLE):
        return Path(os.environ[FOLDER_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("memsim", appauthor=False)


def trace_of(job: Job, folder: Path | None, progress: Progress | None = None) -> Trace:
    """The trace of a job; `folder` None makes it anew and keeps nothing.

    Raises:
        MemsimError: whatever goes wrong in the kernel.
    """
    if folder is None or isinstance(job.kernel, TraceSource):  # a trace is there, or made at once
        return trace_job(job, progress)
    path = folder / f"{key_of(job)}.npz"
    kept = _read(path)
    if kept is not None and (kept.kernel, kept.launch) == (job.loaded.title, job.launch):
        return kept
    trace = trace_job(job, progress)
    _write(trace, path)
    return trace


def key_of(job: Job) -> str:
    """A name for everything that decides the trace: code, sources, launch, arguments and memsim itself."""
    allocations: dict[str, str] = {}
    parts = [
        model_version(),
        job.loaded.code.key,
        job.loaded.name,
        dict(job.loaded.sources),
        job.launch.grid,
        job.launch.block,
        job.launch.shared_bytes,
        job.blocks,
        job.allow_out_of_bounds,
        [_argument(value, allocations) for value in as_arguments(job.values)],
        list(allocations.values()),
        job.loaded.title,
        job.loaded.argument_names,
        job.unsure,
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def model_version() -> str:
    """A name for this memsim: a hash of its own code, and numpy's version, which fills random arrays."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256(np.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _argument(value: Any, allocations: dict[str, str]) -> str:
    """An argument in words; of an array its place in its memory, whose content goes to `allocations`."""
    if isinstance(value, (Texture1D, TensorMap)):
        return f"{type(value).__name__} {_argument(value.array, allocations)}"
    if isinstance(value, Pointers):
        return f"pointers {[_argument(array, allocations) for array in value.arrays]}"
    if isinstance(value, (list, tuple)):
        return f"struct {[_argument(part, allocations) for part in value]}"
    if isinstance(value, np.ndarray) and value.shape != ():
        memory, first = allocation(value)
        start = str(memory.__array_interface__["data"][0])
        if start not in allocations:
            allocations[start] = hashlib.sha256(memory.data).hexdigest()
        which = list(allocations).index(start)
        return f"{value.dtype} {value.shape} {value.strides} at byte {first} of allocation {which}"
    return f"{type(value).__name__} {value!r}"


def _read(path: Path) -> Trace | None:
    try:
        return Trace.load(path)
    except MemsimError:
        return None


def _write(trace: Trace, path: Path) -> None:
    """The file appears whole or not at all (see `memsim.trace.storage`)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        trace.save(path)
    except (MemsimError, OSError):
        return
