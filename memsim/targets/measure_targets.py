"""Measures the targets of a project, its programs among them, as far as their budgets ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from memsim.errors import MemsimError
from memsim.guard.budget import Budget
from memsim.guard.judge import Declared, has_time_budget
from memsim.job import Job
from memsim.targets.analyze_targets import analyze_all
from memsim.targets.cache import timed
from memsim.targets.program_target import Measured, ProgramTarget, count_launches

Progress = Callable[[float], None] | None


def measure_all(
    chosen: Sequence[Job | ProgramTarget],
    rules: Sequence[Declared[Budget]],
    cache: Path | None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Iterator[Measured]:
    """The launches of targets; `cache` and `jobs` as in `memsim.targets.analyze_targets`."""
    for done, launches in enumerate(_of_each(chosen, rules, cache, jobs), 1):
        yield from launches
        if progress is not None:
            progress(done / len(chosen))


def _of_each(
    chosen: Sequence[Job | ProgramTarget],
    rules: Sequence[Declared[Budget]],
    cache: Path | None,
    jobs: int | None,
) -> Iterator[list[Measured]]:
    """The launches of each target, those of programs last."""
    for found in analyze_all([target for target in chosen if isinstance(target, Job)], cache, jobs):
        target, analysis = found.target, found.analysis
        if analysis is not None and has_time_budget(target.name, rules):
            analysis = timed(analysis, target, cache, "whole")
        yield [Measured(target.name, analysis, found.error, target.given)]
    for program in chosen:
        if isinstance(program, ProgramTarget):
            try:
                yield count_launches(program, time=has_time_budget(program.name, rules))
            except MemsimError as error:
                yield [Measured(program.name, error=error, program=program.name)]
