"""Checks a project: analyzes its targets and judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from memsim.errors import MemsimError
from memsim.files import read_text
from memsim.guard import baseline
from memsim.guard.baseline import Entry
from memsim.guard.evaluate import GuardedKernel
from memsim.guard.judge import judge, restricted
from memsim.guard.outcome import Outcome, Problem
from memsim.job import Job
from memsim.targets.analyze_targets import analyze_all
from memsim.targets.coverage import coverage_of
from memsim.targets.project import Project
from memsim.targets.source_launch import Followed, follow

Progress = Callable[[float], None] | None


def check_project(
    project: Project,
    chosen: Sequence[Job],
    cache: Path | None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Outcome:
    """The outcome for the selected targets; `cache` and `jobs` as in `memsim.targets.analyze_targets`.

    Raises:
        MemsimError: the baseline cannot be read, or is required and missing.
    """
    base = project.base
    some = len(chosen) < len(project.targets)
    names = [target.name for target in chosen]
    rules = [restricted(rule, names) for rule in project.rules if set(rule.kernels) & set(names)]
    entries = read_baseline(project.baseline)
    if base is not None:
        own = {name: entry for name, entry in (entries or {}).items() if name not in base.names}
        entries = {**own, **base.entries} or None
    if entries is None and any(rule.what.needs_baseline for rule in rules):
        hint = "memsim baseline writes it; then commit it"
        raise MemsimError("there is no baseline", file=str(project.baseline), hint=hint)

    subjects: list[GuardedKernel] = []
    problems, unknown = _follow_sources(project, chosen)
    for number, measured in enumerate(analyze_all(chosen, cache, jobs), 1):
        target = measured.target
        name = target.name
        if measured.analysis is not None:
            subjects.append(GuardedKernel(name, measured.analysis, (entries or {}).get(name), target.given))
        if measured.error is not None:
            problems.append(Problem(name, measured.error))
        if progress is not None:
            progress(number / len(chosen))
    if base is not None and not some:
        problems += base.problems
    elif not some and any(rule.what.needs_baseline for rule in rules):
        problems += _left_over(project, entries or {}, names)
    is_part = some or base is not None  # what a base declares for all need not apply to what is left
    outcome = judge(subjects, rules, project.acceptances, problems, some=is_part)
    covered = None if some else replace(coverage_of(project, chosen, cache), not_compared=tuple(unknown))
    return replace(outcome, coverage=covered, against=None if base is None else base.revision)


def _follow_sources(project: Project, chosen: Sequence[Job]) -> tuple[list[Problem], list[tuple[str, str]]]:
    """Targets that are not what their sources launch, and (target, why) of those that cannot be compared."""
    problems: list[Problem] = []
    unknown: list[tuple[str, str]] = []
    for target in chosen:
        said = project.from_source.get(target.name)
        if said is None:
            continue
        try:
            followed = follow(target, said.instead_of, said.let)
        except MemsimError as error:
            followed = Followed(error)
        if followed.stale is not None:
            problems.append(Problem(target.name, followed.stale))
        elif followed.unknown:
            unknown.append((target.name, followed.unknown))
    return problems, unknown


def read_baseline(path: Path) -> dict[str, Entry] | None:
    """The entries of a baseline file, None if there is no file.

    Raises:
        MemsimError: it cannot be read, or is not a baseline.
    """
    try:
        return baseline.parse(read_text(path, "the baseline"), str(path))
    except FileNotFoundError:
        return None


def _left_over(project: Project, entries: dict[str, Entry], names: Sequence[str]) -> list[Problem]:
    """Kernels in the baseline that are no longer targets."""
    return [
        Problem(
            name,
            MemsimError(
                f"{name} is in the baseline but is no longer a target",
                file=str(project.baseline),
                hint="memsim baseline removes it",
            ),
        )
        for name in entries
        if name not in names
    ]
