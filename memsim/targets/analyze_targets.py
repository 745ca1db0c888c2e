"""Analyzes targets in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, TypeVar

from memsim.analysis import Analysis, analyze_trace
from memsim.api.kernel_file import KernelFile, files_loaded_once
from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.estimated_time import Effort
from memsim.job import Job
from memsim.targets.cache import kept_trace, timed, trace_of
from memsim.workers import begin_worker, interrupts_held, processors, start_method

_Result: TypeAlias = "Analysis | MemsimError"
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class AnalyzedTarget:
    """A target with its analysis, or with the error that kept it from having one."""

    target: Job
    analysis: Analysis | None = None
    error: MemsimError | None = None

    def result(self) -> Analysis:
        """The analysis.

        Raises:
            MemsimError: the error, with the target's name.
        """
        if self.analysis is not None:
            return self.analysis
        error = self.error or MemsimError("was not analyzed")
        error.message = f"{self.target.name}: {error.message}"
        raise error


def analyze_job(job: Job, cache: Path | None, time: Effort | None = None, apart: bool = False) -> Analysis:
    """The analysis of one job; its trace from the cache folder if it is there. time: it is estimated, too.
    apart: the trace that is kept is one that `suggest` takes, as of `trace_job`.

    Raises:
        MemsimError: whatever is wrong with the kernel, its launch or what it does.
    """
    analysis = analyze_trace(trace_of(job, cache, apart=apart), job.arch)
    return analysis if time is None else timed(analysis, job, cache, time)


def analyze_all(
    targets: Sequence[Job],
    cache: Path | None,
    jobs: int | None = None,
    time: Effort | None = None,
    apart: bool = False,
) -> Iterator[AnalyzedTarget]:
    """The targets in order; `jobs` processes, as many as there are processors if left out. time, apart: as
    above.

    What is kept in the cache is read by this process; the rest is shared out, and targets of one file with
    the same options stay together, so that it is compiled and read once.
    """
    known = () if time is not None else enumerate(targets)
    done = {number: kept for number, target in known if (kept := _kept(target, cache))}
    groups: dict[object, list[int]] = {}
    for number, target in enumerate(targets):
        if number not in done:
            groups.setdefault(_made_together(target), []).append(number)
    work = [[targets[number] for number in numbers] for numbers in groups.values()]
    made = zip(
        groups.values(),
        shared_out(partial(_measured, cache=cache, time=time, apart=apart), work, jobs),
        strict=True,
    )
    for number in range(len(targets)):
        while number not in done:
            numbers, found = next(made)
            done.update(
                (one, _analyzed(targets[one], result)) for one, result in zip(numbers, found, strict=True)
            )
        yield done.pop(number)


def _made_together(job: Job) -> object:
    """What is equal for jobs whose kernels come from one compilation."""
    kernel = job.kernel
    return kernel.whole if isinstance(kernel, KernelFile) else id(job)


def _analyzed(target: Job, result: _Result) -> AnalyzedTarget:
    if isinstance(result, MemsimError):
        return AnalyzedTarget(target, error=result)
    return AnalyzedTarget(target, result)


def shared_out(one: Callable[[_Item], _Made], items: Sequence[_Item], jobs: int | None) -> Iterator[_Made]:
    """What `one` makes of each item, in order, by `jobs` processes; as many as there are processors if None.

    Raises:
        MemsimError: a process was killed; or as `one`.
    """
    workers = min(jobs or processors(), len(items))
    if workers <= 1:
        yield from map(one, items)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # Forked where that is safe: what every target needs is loaded once, and not by each process.
    method = start_method()
    if method == "fork":
        import_module("memsim.simt.prepared_launch")
    context = multiprocessing.get_context(method)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=begin_worker, initargs=(confinement(),)
    )
    finished = False
    try:
        with interrupts_held():
            found = pool.map(one, items)  # starts the workers
        yield from found
        finished = True
    except BrokenProcessPool:
        raise MemsimError(
            "a process that analyzed a kernel was killed", hint="it may have run out of memory; try --jobs 1"
        ) from None
    finally:
        if not finished:  # nobody waits for what they do
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


def _kept(target: Job, cache: Path | None) -> AnalyzedTarget | None:
    """The target with what is kept of it; None where it has to be made."""
    try:
        trace = kept_trace(target, cache)
        return None if trace is None else AnalyzedTarget(target, analyze_trace(trace, target.arch))
    except MemsimError as error:
        return AnalyzedTarget(target, error=error)


def _measured(targets: list[Job], cache: Path | None, time: Effort | None, apart: bool) -> list[_Result]:
    """In a worker, what is asked for and no more: a target by now holds its loaded program."""
    from memsim.programs import within_time_limit

    found: list[_Result] = []
    with files_loaded_once():
        for target in targets:
            try:
                with within_time_limit("the analysis"):
                    found.append(analyze_job(target, cache, time, apart))
            except MemsimError as error:
                found.append(error)
    return found
