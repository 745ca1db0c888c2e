"""Measures the targets of a project, its programs among them, as far as their budgets ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memsim.analysis import Analysis
from memsim.errors import MemsimError
from memsim.guard.budget import Budget
from memsim.guard.judge import Declared, has_time_budget
from memsim.job import Job
from memsim.targets.analyze_targets import analyze_all
from memsim.targets.cache import timed
from memsim.targets.program_target import ProgramTarget, count_launches

Progress = Callable[[float], None] | None


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


def measure_all(
    chosen: Sequence[Job | ProgramTarget],
    rules: Sequence[Declared[Budget]],
    cache: Path | None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Iterator[Measured]:
    """The launches of targets; `cache` and `jobs` as in `memsim.targets.analyze_targets`."""
    programs = [target for target in chosen if isinstance(target, ProgramTarget)]
    single = [target for target in chosen if isinstance(target, Job)]
    done = 0
    for found in analyze_all(single, cache, jobs):
        target, analysis = found.target, found.analysis
        if analysis is not None and has_time_budget(target.name, rules):
            analysis = timed(analysis, target, cache, "whole")
        yield Measured(target.name, analysis, found.error, target.given)
        done += 1
        if progress is not None:
            progress(done / len(chosen))
    for program in programs:
        yield from _launches(program, has_time_budget(program.name, rules))
        done += 1
        if progress is not None:
            progress(done / len(chosen))


def _launches(program: ProgramTarget, is_timed: bool) -> Iterator[Measured]:
    try:
        counted = count_launches(program, time=is_timed)
    except MemsimError as error:
        yield Measured(program.name, error=error, program=program.name)
        return
    for launch in counted:
        yield Measured(launch.name, launch.analysis, launch.error, program=program.name)
