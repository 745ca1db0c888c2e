"""Cache of traces, keyed by everything that determines a trace.

Traces are cached, not counts, which are computed each time. If all files that are read are known before a
compiler runs, they make up the key, and a cached trace needs no compiler and no disassembler; otherwise the
key is made from the compiled kernel.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from memsim.api.kernel_file import KernelFile
from memsim.api.loading import SOURCE_SUFFIXES, look_beside
from memsim.api.running import Progress, trace_job
from memsim.argument_types.argument import argument_of
from memsim.argument_types.foreign_arrays import as_arguments
from memsim.boundary import confinement
from memsim.compile.options import absolute_paths
from memsim.compile.toolkit import find_tool, find_tools, identity
from memsim.errors import MemsimError
from memsim.estimated_time import Effort, EstimatedTime
from memsim.files import read_bytes
from memsim.job import Job
from memsim.kernels import Spec
from memsim.reads import digest
from memsim.store import Store, current, kept_in
from memsim.targets.kept_answers import own_code
from memsim.trace.trace import Trace, TraceSource

if TYPE_CHECKING:
    from memsim.analysis import Analysis

_FILE = re.compile(r"@([^+]*)")  # an array file in the text of an argument


def trace_of(
    job: Job,
    folder: Path | None,
    progress: Progress | None = None,
    *,
    apart: bool = False,
    make: Callable[..., Trace] | None = None,
) -> Trace:
    """The trace of a job; `folder` None: do not use the cache. apart: as in `trace_job`; make: instead of it.

    Raises:
        MemsimError: an error in the kernel.
    """
    make = make or trace_job
    if isinstance(job.kernel, TraceSource):  # already a trace, or cheap to make
        return make(job, progress, apart=apart)
    with kept_in(folder) as store:
        if store is None or (isinstance(job.kernel, KernelFile) and job.kernel.text is not None):
            return make(job, progress, apart=apart)
        for key in _keys(job, store, apart):
            if (kept := _read(store, key)) is not None:
                return kept
        trace = make(job, progress, apart=apart)
        from memsim.trace import storage

        if len(trace.count) <= storage.MOST_ROWS:
            content = io.BytesIO()
            storage.write(trace, content)
            store.put(key, content.getvalue())
        return trace


def with_estimated_time(analysis: Analysis, job: Job, cache: Path | None, effort: Effort) -> Analysis:
    """The analysis of a job, with its estimated time if it has machine code.

    Raises:
        MemsimError: the kernel cannot be loaded.
    """
    return replace(analysis, estimate=time_of(job, cache, analysis.trace, effort))


def time_of(job: Job, folder: Path | None, trace: Trace, effort: Effort = "quick") -> EstimatedTime | None:
    """The estimated time of a job in a line; None: it has no machine code. trace: its own.

    Raises:
        MemsimError: the kernel cannot be loaded.
    """
    if isinstance(job.kernel, TraceSource):
        return None
    with kept_in(folder) as store:
        if store is None or (isinstance(job.kernel, KernelFile) and job.kernel.text is not None):
            return _estimate(job, trace, effort)
        for key in _keys(job, store):
            if (kept := store.get(f"time {effort} {key}")) is not None:
                return msgspec.json.decode(kept, type=EstimatedTime)
        found = _estimate(job, trace, effort)
        store.put(f"time {effort} {key}", msgspec.json.encode(found))
        return found


def _estimate(job: Job, trace: Trace, effort: Effort) -> EstimatedTime | None:
    from memsim.time.quick_estimate import estimate  # loaded only if nothing was kept

    return estimate(job, trace, effort)


def _keys(job: Job, store: Store, apart: bool = False) -> Iterator[str]:
    """Under which a trace may be kept, or is to be; the last one if it is under none."""
    key = key_before(job, apart)
    if key is None and _keep_names(job, store):
        key = key_before(job, apart)
    if key is not None:
        yield key
    if key is None or not _is_read_by_nvrtc_alone(job):
        yield key_of(job, apart)


def notes_of(job: Job, folder: Path | None) -> tuple[str, ...]:
    """Notes about a job's compilation, cached beside its trace.

    Raises:
        MemsimError: as `trace_of`.
    """
    if isinstance(job.kernel, (TraceSource, Spec)):
        return ()
    with kept_in(folder) as store:
        key = None if store is None else key_before(job)
        if store is None or key is None or store.get(key) is None:
            return job.loaded.notes
        content = store.get(f"notes {key}")
        if content is None:
            content = json.dumps(job.loaded.notes).encode()
            store.put(f"notes {key}", content)
        return tuple(json.loads(content))


def kept_trace(job: Job, folder: Path | None) -> Trace | None:
    """The cached trace, if it can be identified without a compiler."""
    with kept_in(folder) as store:
        return None if store is None else _read(store, key_before(job))


def is_known_before(job: Job, folder: Path | None) -> bool:
    """Whether there is a cached trace that can be identified without a compiler."""
    with kept_in(folder) as store:
        key = None if store is None else key_before(job)
        return store is not None and key is not None and store.has(key)


def is_all_read(job: Job, folder: Path | None) -> bool:
    """Whether memsim itself reads all that decides what a job does, and keeps anything of it.

    The kernel is loaded unless its trace is kept.
    """
    if is_known_before(job, folder):
        return True
    return folder is not None and key_before(job) is not None and _is_read_by_nvrtc_alone(job)


def _is_read_by_nvrtc_alone(job: Job) -> bool:
    """Whether `key_before` covers everything that was read.

    nvcc also reads the system's headers, and host code removal looks up headers in other folders.
    """
    if not isinstance(job.kernel, KernelFile) or _is_compiled(job.kernel):
        return True
    from memsim.compile.cuda_source import SET_ASIDE

    compiler = job.loaded.origin.compiler
    return not ("nvcc" in compiler or SET_ASIDE in compiler)


def key_before(job: Job, apart: bool = False) -> str | None:
    """The key of the trace if known before anything is compiled; else None."""
    try:
        read = _what_is_read(job)
        arguments = _arguments(job.args, job.kernel.folder) if read is not None else []
    except (MemsimError, OSError):
        return None  # compiling reports the reason
    return None if read is None else _key("before", job, read, arguments, apart)


def _what_is_read(job: Job) -> list[object] | None:
    kernel = job.kernel
    disassembler = find_tool("nvdisasm")
    if disassembler is None:
        return None
    tools = [identity(disassembler)]
    if isinstance(kernel, Spec):
        texts = {name: digest(text.encode()) for name, text in kernel.source_texts().items()}
        return [kernel.name, kernel.entry, kernel.options, texts, digest(read_bytes(kernel.compiled_path))]
    if not isinstance(kernel, KernelFile):
        return None
    if _is_compiled(kernel):
        return _read_beside(job, kernel)
    if kernel.compiler == "nvcc":
        return None
    from memsim.compile.compile_cache import what_is_read

    options = absolute_paths(kernel.options, kernel.folder)
    read = what_is_read(kernel.folder / kernel.file, options, kernel.file)
    return None if read is None else [kernel.file, kernel.name, kernel.compiler, tools, read]


def _is_compiled(kernel: KernelFile) -> bool:
    return Path(kernel.file).suffix not in SOURCE_SUFFIXES


def _read_beside(job: Job, kernel: KernelFile) -> list[object] | None:
    """A compiled file and the sources that it names; None before it was read once."""
    key, store = _names_key(job, kernel), current()
    names = None if store is None else store.get(key)
    if names is None:
        return None
    given, sources = look_beside(kernel.folder / kernel.file, json.loads(names))
    texts = {name: digest(text.encode("utf-8", "surrogateescape")) for name, text in sources.items()}
    return [key, kernel.name, kernel.options, repr(given), texts]


def _names_key(job: Job, kernel: KernelFile) -> str:
    """The key of the source names in a compiled file."""
    tools = [find_tool("nvdisasm"), find_tool("cuobjdump")]
    if Path(kernel.file).suffix == ".ptx":
        tools += find_tools("ptxas", wheels_first=False)
    content = digest(read_bytes(kernel.folder / kernel.file))
    known = [identity(tool) for tool in tools if tool is not None]
    return json.dumps(["names", model_version(), kernel.file, content, job.arch.name, known])


def _keep_names(job: Job, store: Store) -> bool:
    """Cache the source names in a compiled file; False if the job has no such file."""
    kernel = job.kernel
    if not isinstance(kernel, KernelFile) or not _is_compiled(kernel):
        return False
    given = job.loaded.given
    if given is not None:
        store.put(_names_key(job, kernel), json.dumps(given.named).encode())
    return given is not None


def key_of(job: Job, apart: bool = False) -> str:
    """The key of the trace: code, sources, launch, arguments and memsim itself."""
    kernel = job.loaded
    read = [kernel.key, kernel.name, dict(kernel.sources)]
    read += [kernel.title, kernel.argument_names, repr(kernel.given)]
    return _key("after", job, read, _arguments(job.values, job.kernel.folder), apart)


def _key(when: str, job: Job, read: Sequence[object], arguments: Sequence[object], apart: bool) -> str:
    launch = job.launch
    shape = [launch.grid, launch.block, launch.shared_bytes, launch.cluster, job.blocks, job.arch.name]
    shape += [job.allow_out_of_bounds, job.uncertain, apart, confinement() is not None]
    return json.dumps([when, model_version(), read, shape, arguments], sort_keys=True, default=_plain)


def _plain(value: Mapping[str, object] | np.generic) -> object:
    """numpy numbers and mappings, for JSON."""
    return dict(value) if isinstance(value, Mapping) else value.item()


@cache
def model_version() -> str:
    """A version of memsim: its code, and numpy, which generates random arrays."""
    return f"{own_code(current())}, numpy {np.__version__}"


def _arguments(values: Sequence[object], folder: Path) -> list[object]:
    """The records of all arguments, and the contents of their memory; of a text the files that it names."""
    contents: dict[int, str] = {}  # of each allocation, by its address

    def number_of(memory: np.ndarray, dtype: np.dtype) -> str:
        start = int(memory.__array_interface__["data"][0])
        if start not in contents:
            contents[start] = digest(memory.data)
        return str(list(contents).index(start))

    def record_of(value: object) -> object:
        if isinstance(value, str):
            return [value, [digest(read_bytes(folder / name)) for name in _FILE.findall(value)]]
        try:
            return msgspec.to_builtins(argument_of(value).document(number_of), enc_hook=repr)
        except MemsimError:  # no argument at all, which is said when it meets its parameter
            return repr(value)

    return [list(map(record_of, as_arguments(values))), list(contents.values())]


def _read(store: Store, key: str | None) -> Trace | None:
    """The trace that is kept under a key; None if there is none, or no key."""
    content = None if key is None else store.get(key)
    if content is None:
        return None
    from memsim.trace import storage

    try:
        return Trace(**vars(storage.read_trace(content, "the trace that was kept")))
    except MemsimError:
        return None
