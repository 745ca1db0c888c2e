"""Analyzes targets in parallel processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from memsim.analysis import Analysis, analyze_trace
from memsim.api.kernel_file import KernelFile, files_loaded_once
from memsim.boundary import confinement
from memsim.errors import MemsimError
from memsim.estimated_time import Effort
from memsim.job import Job
from memsim.targets.cache import kept_trace, trace_of, with_estimated_time
from memsim.workers import begin_worker, interrupts_held, processors, start_method

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Measured:
    """A launch with its analysis, or the error that kept it from having one; of a program that failed there
    is no launch. arguments: in a line, None if unknown. program: that makes the launch, "" if none does.
    """

    name: str
    analysis: Analysis | None = None
    error: MemsimError | None = None
    arguments: str | None = None
    program: str = ""

    def result(self) -> Analysis:
        """The analysis.

        Raises:
            MemsimError: the error, with the target's name.
        """
        if self.analysis is not None:
            return self.analysis
        error = self.error or MemsimError("was not analyzed")
        error.message = f"{self.name}: {error.message}"
        raise error


def analyze_job(job: Job, cache: Path | None, time: Effort | None = None, apart: bool = False) -> Analysis:
    """The analysis of one job; its trace from the cache folder if it is there. time: it is estimated, too.
    apart: the trace that is kept is one that `suggest` takes, as of `trace_job`.

    Raises:
        MemsimError: whatever is wrong with the kernel, its launch or what it does.
    """
    analysis = analyze_trace(trace_of(job, cache, apart=apart), job.arch)
    return analysis if time is None else with_estimated_time(analysis, job, cache, time)


def analyze_all(
    targets: Sequence[Job],
    cache: Path | None,
    jobs: int | None = None,
    time: Effort | None = None,
    apart: bool = False,
) -> Iterator[Measured]:
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
            kernel = target.kernel  # those of one compilation are equal in this
            made_of = kernel.whole if isinstance(kernel, KernelFile) else id(target)
            groups.setdefault(made_of, []).append(number)
    work = [[targets[number] for number in numbers] for numbers in groups.values()]
    made = zip(
        groups.values(),
        shared_out(partial(_measured, cache=cache, time=time, apart=apart), work, jobs),
        strict=True,
    )
    for number in range(len(targets)):
        while number not in done:
            done.update(zip(*next(made), strict=True))
        yield done.pop(number)


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


def _kept(target: Job, cache: Path | None) -> Measured | None:
    """What is kept of a target; None where it has to be made."""
    try:
        trace = kept_trace(target, cache)
        return None if trace is None else Measured(target.name, analyze_trace(trace, target.arch))
    except MemsimError as error:
        return Measured(target.name, error=error)


def _measured(targets: list[Job], cache: Path | None, time: Effort | None, apart: bool) -> list[Measured]:
    """In a worker, what is asked for and no more: a target by now holds its loaded program."""
    from memsim.programs import within_time_limit

    found: list[Measured] = []
    with files_loaded_once():
        for target in targets:
            try:
                with within_time_limit("the analysis"):
                    found.append(Measured(target.name, analyze_job(target, cache, time, apart)))
            except MemsimError as error:
                found.append(Measured(target.name, error=error))
    return found
