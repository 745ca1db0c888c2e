"""Analyzes variants in local processes or on a Dask scheduler, except those already in the results file.

A launch may be split by blocks, so that one launch keeps many processes busy; the counts of the parts are
added. Workers of a scheduler need memsim and the same files at the same paths. It needs distributed (`pip
install distributed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memsim.errors import MemsimError
from memsim.estimated_time import Effort
from memsim.job import Job
from memsim.sweep.results import Counts, VariantResult, counts_of, kept_in, together
from memsim.sweep.variants import Variant
from memsim.targets.analyze_targets import analyze_all, analyze_job
from memsim.trace.trace import TraceFile

PATIENCE = 10  # seconds to wait for the scheduler


def count_job(job: Job, time: Effort | None = None) -> Counts:
    """The counts of a job, or the reason why there are none. time: it is estimated, too."""
    try:
        return counts_of(analyze_job(job, None, time))
    except MemsimError as error:
        return Counts(error=str(error).partition("\n")[0])


def counted_by(address: str, jobs: Sequence[Job], time: Effort | None = None) -> Iterator[tuple[int, Counts]]:
    """(number of the job, its counts), in order of completion.

    Raises:
        MemsimError: distributed is missing, the scheduler does not respond, or a worker fails.
    """
    distributed = _distributed()
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise MemsimError(
            f"no Dask scheduler answers at {address}: {error}",
            hint="such as tcp://10.0.0.1:8786; `dask scheduler` prints its own",
        ) from None
    with client:
        futures = client.map(partial(count_job, time=time), jobs, pure=False)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            try:
                counts = future.result()
            except Exception as error:  # such as memsim missing, or a worker killed
                raise MemsimError(
                    f"a worker of {address} could not analyze {jobs[numbers[future.key]].name}: {error}",
                    hint="its Python needs the same memsim, and the files at the same paths",
                ) from None
            yield numbers[future.key], counts


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise MemsimError("a Dask scheduler needs distributed", hint="pip install distributed") from None
    return distributed


def sweep(
    variants: Sequence[Variant],
    path: Path | None,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    scheduler: str | None = None,
    cut: int = 1,
    time: Effort | None = None,
) -> list[VariantResult]:
    """The results of all variants, in order.

    Args:
        path: the results file, None for none. It is complete even if the sweep is interrupted.
        jobs: processes; None for as many as there are processors.
        scheduler: the address of a Dask scheduler whose workers are used instead.
        cut: number of parts of each launch, at most its number of blocks.
        time: it is estimated, too; not of parts.

    Raises:
        MemsimError: the file is of another sweep, or cannot be read or written; a saved trace cannot be
            split;
            `scheduler` does not respond.
    """
    file = None if path is None else kept_in(path, tuple(variants[0].values))
    kept = {} if file is None else {result.key: result for result in file.read()}
    missing = [variant for variant in variants if variant.key not in kept]
    found = {variant.key: kept[variant.key] for variant in variants if variant.key in kept}
    if file is not None:
        file.write([*_others(kept.values(), variants), *found.values()])
    parts = [(variant, part) for variant in missing for part in parts_of(variant.job, cut)]
    waiting = {variant.key: len(parts_of(variant.job, cut)) for variant in missing}
    counts: dict[str, list[Counts]] = {key: [] for key in waiting}
    try:
        counted = _counted([part for _, part in parts], jobs, scheduler, time)
        for done, (number, some) in enumerate(counted, 1):
            variant = parts[number][0]
            counts[variant.key].append(some)
            if len(counts[variant.key]) == waiting[variant.key]:
                result = VariantResult(variant.values, together(counts.pop(variant.key)), variant.key)
                found[variant.key] = result
                if file is not None:
                    file.add(result)
            if progress is not None:
                progress(done / len(parts))
    finally:
        if file is not None:
            file.close()
    return [found[variant.key] for variant in variants]


def parts_of(job: Job, cut: int) -> list[Job]:
    """The launch split into parts of about equally many blocks.

    Raises:
        MemsimError: it is a saved trace.
    """
    if cut > 1 and isinstance(job.kernel, TraceFile):
        raise MemsimError(f"{job.kernel.file} is a saved trace, which is not replayed by blocks")
    parts = min(cut, job.launch.blocks, job.blocks or job.launch.blocks)
    return [job] if parts == 1 else [replace(job, part=(number, parts)) for number in range(parts)]


def _counted(
    jobs: Sequence[Job], processes: int | None, scheduler: str | None, time: Effort | None
) -> Iterator[tuple[int, Counts]]:
    """(number of the job, its counts), in order of completion."""
    if scheduler is not None:
        if jobs:
            yield from counted_by(scheduler, jobs, time)
        return
    for number, measured in enumerate(analyze_all(jobs, None, processes, time)):
        if measured.analysis is None:
            yield number, Counts(error=str(measured.error).partition("\n")[0])
        else:
            yield number, counts_of(measured.analysis)


def _others(kept: Iterable[VariantResult], variants: Sequence[Variant]) -> list[VariantResult]:
    """Kept results of other values; those of these values with other keys are stale."""
    own = {tuple(variant.values.items()) for variant in variants}
    return [result for result in kept if tuple(result.values.items()) not in own]
