"""Analyzes variants in local processes or on a cluster, except those already in the results file.

A launch may be split by blocks, so that one launch keeps many processes busy; the counts of the parts are
added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from memsim.errors import MemsimError
from memsim.job import Job
from memsim.sweep.cluster import counted_by
from memsim.sweep.result_files import kept_in
from memsim.sweep.results import Counts, VariantResult, counts_of, together
from memsim.sweep.variants import Variant
from memsim.targets.analyze_targets import analyze_all
from memsim.trace.trace import TraceFile


def sweep(
    variants: Sequence[Variant],
    path: Path | None,
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    scheduler: str | None = None,
    cut: int = 1,
) -> list[VariantResult]:
    """The results of all variants, in order.

    Args:
        path: the results file, None for none. It is complete even if the sweep is interrupted.
        jobs: processes; None for as many as there are processors.
        scheduler: the address of a Dask scheduler whose workers are used instead.
        cut: number of parts of each launch, at most its number of blocks.

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
        counted = _counted([part for _, part in parts], jobs, scheduler)
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
    jobs: Sequence[Job], processes: int | None, scheduler: str | None
) -> Iterator[tuple[int, Counts]]:
    """(number of the job, its counts), in order of completion."""
    if scheduler is not None:
        if jobs:
            yield from counted_by(scheduler, jobs)
        return
    for number, measured in enumerate(analyze_all(jobs, None, processes)):
        if measured.analysis is None:
            yield number, Counts(error=str(measured.error).partition("\n")[0])
        else:
            yield number, counts_of(measured.analysis)


def _others(kept: Iterable[VariantResult], variants: Sequence[Variant]) -> list[VariantResult]:
    """Kept results of other values; those of these values with other keys are stale."""
    own = {tuple(variant.values.items()) for variant in variants}
    return [result for result in kept if tuple(result.values.items()) not in own]
