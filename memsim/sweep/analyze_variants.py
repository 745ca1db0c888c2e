"""Analyzes variants in processes, except those already in the results file.

A launch may be split by blocks, so that one launch keeps many processes busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from memsim.analysis import analyze_trace
from memsim.api.launch_parts import trace_shared
from memsim.errors import MemsimError
from memsim.estimated_time import Effort
from memsim.job import Job
from memsim.sweep.results import Counts, VariantResult, counts_of, kept_in
from memsim.sweep.variants import Variant
from memsim.targets.analyze_targets import analyze_all, analyze_job
from memsim.trace.trace import Trace
from memsim.workers import Progress, WorkersError, processors


def count_job(job: Job) -> Counts:
    """The counts of a job, or the reason why there are none."""
    try:
        return counts_of(analyze_job(job, None))
    except MemsimError as error:
        return _failed(error)


def _failed(error: MemsimError) -> Counts:
    return Counts(error=str(error).partition("\n")[0])


def sweep(
    variants: Sequence[Variant],
    path: Path | None,
    jobs: int | None = None,
    progress: Progress | None = None,
    *,
    cut: int = 1,
    time: Effort | None = None,
    tell: Callable[[str], None] = lambda why: None,
) -> list[VariantResult]:
    """The results of all variants, in order.

    path: the results file, None for none. It is complete even if the sweep is interrupted. jobs: processes;
    None for as many as there are processors. cut: number of parts of each launch, at most its number of
    blocks. time: it is estimated, too; not of parts. tell: is told why a launch is not split.

    Raises:
        MemsimError: the file is of another sweep, or cannot be read or written.
    """
    file = None if path is None else kept_in(path, tuple(variants[0].values))
    kept = {} if file is None else {result.key: result for result in file.read()}
    missing = [variant for variant in variants if variant.key not in kept]
    found = {
        variant.key: replace(kept[variant.key], work=variant.work)
        for variant in variants
        if variant.key in kept
    }
    if file is not None:
        file.write([*_others(kept.values(), variants), *found.values()])
    try:
        if cut > 1:
            traced = partial(trace_shared, parts=cut, jobs=jobs or processors(), tell=tell)
            counted = _counted_in_parts(missing, traced, progress)
        else:
            counted = _counted([variant.job for variant in missing], jobs, time)
        for done, (number, counts) in enumerate(counted, 1):
            variant = missing[number]
            result = found[variant.key] = VariantResult(variant.values, counts, variant.key, variant.work)
            if file is not None:
                file.add(result)
            if progress is not None:
                progress(done / len(missing))
    finally:
        if file is not None:
            file.close()
    return [found[variant.key] for variant in variants]


def _counted(jobs: Sequence[Job], processes: int | None, time: Effort | None) -> Iterator[tuple[int, Counts]]:
    """(number of the job, its counts), in order of completion."""
    for number, measured in enumerate(analyze_all(jobs, None, processes, time)):
        if measured.analysis is None:
            assert measured.error is not None
            yield number, _failed(measured.error)
        else:
            yield number, counts_of(measured.analysis)


def _counted_in_parts(
    variants: Sequence[Variant], traced: Callable[..., Trace], progress: Progress | None
) -> Iterator[tuple[int, Counts]]:
    """The same, of launches whose parts are shared out, one launch after the other."""
    for number, variant in enumerate(variants):

        def share(done: float, before: int = number) -> None:
            if progress is not None:
                progress((before + done) / len(variants))

        try:
            trace = traced(variant.job, share)
            yield number, counts_of(analyze_trace(trace, variant.job.arch))
        except WorkersError:
            raise
        except MemsimError as error:
            yield number, _failed(error)


def _others(kept: Iterable[VariantResult], variants: Sequence[Variant]) -> list[VariantResult]:
    """Kept results of other values; those of these values with other keys are stale."""
    own = {tuple(variant.values.items()) for variant in variants}
    return [result for result in kept if tuple(result.values.items()) not in own]
