"""Checks a project: analyzes its targets, judges them, and says which of its kernels no target checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import msgspec

from memsim.api.kernel_file import KernelFile
from memsim.errors import MemsimError
from memsim.files import file_exists, read_bytes, read_text
from memsim.guard import baseline
from memsim.guard.baseline import Entry
from memsim.guard.budget import Budget
from memsim.guard.evaluate import GuardedKernel
from memsim.guard.judge import Declared, has_time_budget, judge, restrict_rule
from memsim.guard.outcome import Coverage, Outcome, Problem, UnguardedKernel
from memsim.job import Job
from memsim.reads import note_matching_names
from memsim.source.kernels import KernelSource, kernels
from memsim.targets.analyze_targets import Measured, analyze_all
from memsim.targets.cache import with_estimated_time
from memsim.targets.program_target import ProgramTarget, count_launches
from memsim.targets.project import OWN_FILE, Base, Project
from memsim.targets.revision import text_at

SUFFIXES = (".cu", ".cuh")
#: A folder with more than so many folders is no project's own.
MOST_FOLDERS = 5_000


def coverage_of(
    project: Project, chosen: Sequence[Job], cache: Path | None = None, subjects: Sequence[GuardedKernel] = ()
) -> Coverage:
    """The kernels that are defined in CUDA files below the project's folder, and those without a target.

    subjects: what was counted, the launches of programs among them.

    Hidden folders, links, the cache, and folders with a configuration of their own are left out. Nothing is
    counted if no target is of a CUDA file.
    """
    launched = [subject for subject in subjects if subject.program]
    guarded = {*filter(None, map(_definition, chosen)), *_definitions(launched)}
    base = project.base
    gone = () if base is None else (*base.gone, *_launched_no_more(project, base, launched))
    if not guarded:
        return Coverage(gone=gone)
    found = {}
    for path in _cuda_files(project.folder, cache):
        for kernel in kernels(read_bytes(path).decode("utf-8", "replace")):
            file = path.relative_to(project.folder).as_posix()
            shown = file if file.isprintable() else ascii(file)
            found[path.resolve(), kernel.plain] = UnguardedKernel(
                name=kernel.plain, file=shown, line=kernel.line
            )
    unguarded = tuple(one for key, one in found.items() if key not in guarded)
    if base is None:
        return Coverage(kernels=len(found), unguarded=unguarded)
    folder = project.folder.resolve().relative_to(base.repository.resolve()).as_posix()
    before = {file: _kernels_at(base, f"{folder}/{file}") for file in {one.file for one in unguarded}}
    unguarded = tuple(
        msgspec.structs.replace(one, is_new=one.name not in before[one.file]) for one in unguarded
    )
    return Coverage(kernels=len(found), unguarded=unguarded, gone=gone)


def _kernels_at(base: Base, place: str) -> set[str]:
    """The kernels that a file of the base's revision defines."""
    text = text_at(base.repository, base.known, PurePosixPath(place).as_posix())
    return {kernel.plain for kernel in kernels(text or "")}


def _definition(job: Job) -> tuple[Path, str] | None:
    """The file that defines a target's kernel, and its plain name; None if it is of no CUDA source."""
    file = job.kernel
    if not isinstance(file, KernelFile) or Path(file.file).suffix not in SUFFIXES:
        return None
    path = file.folder / file.file
    try:
        text = file.launching_text()
    except (MemsimError, FileNotFoundError):
        return None
    kernel = _kernel_of(text, file.name)
    return None if kernel is None else ((Path(kernel.file) if kernel.file else path).resolve(), kernel.plain)


def _kernel_of(text: str, name: str | None) -> KernelSource | None:
    """The kernel that a target names, or the only one; None if the text does not have it."""
    there = kernels(text)
    if name is None:
        return there[0] if len(there) == 1 else None
    plain = name.partition("<")[0].strip().rpartition("::")[2]
    return next((kernel for kernel in there if kernel.plain == plain), None)


def _definitions(launched: Iterable[GuardedKernel]) -> Iterator[tuple[Path, str]]:
    """The same of kernels that programs launch, as far as their line tables name files."""
    for subject in launched:
        trace = subject.analysis.trace
        plain = re.findall(r"\w+", trace.kernel.partition("<")[0])[-1]
        for file in {file for _, _, file, line in trace.listing if line}:
            yield Path(file).resolve(), plain


def _launched_no_more(project: Project, base: Base, launched: Sequence[GuardedKernel]) -> list[str]:
    """Launches in the base's baseline whose programs have run and do not make them any more."""
    ran, names = {one.program for one in launched}, {one.name for one in launched}
    makers = {name: project.program_of(name) for name in base.entries if name not in names}
    return [name for name, program in makers.items() if program is not None and program.name in ran]


def _cuda_files(folder: Path, cache: Path | None) -> Iterator[Path]:
    """The CUDA files below a folder, in order, but for the cache's."""
    waiting = [folder]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        here = waiting.pop()
        inside: set[str] = set()
        for suffix in SUFFIXES:
            names = note_matching_names(here / f"*{suffix}")
            inside |= {name for name in names if name.endswith("/") and not name.startswith(".")}
            files = (here / name for name in names if not name.endswith("/"))
            yield from (file for file in files if not file.is_symlink() and file_exists(file))
        folders = (here / name for name in sorted(inside, reverse=True))
        waiting += [one for one in folders if one != cache and not file_exists(one / OWN_FILE)]


def check_project(
    project: Project,
    chosen: Sequence[Job | ProgramTarget],
    cache: Path | None,
    jobs: int | None = None,
    progress: Progress = None,
) -> Outcome:
    """The outcome for the selected targets; `cache` and `jobs` as in `memsim.targets.analyze_targets`.

    Raises:
        MemsimError: the baseline cannot be read, or is required and missing.
    """
    base = project.base
    some = len(chosen) < len(project.targets) + len(project.programs)
    names = [target.name for target in chosen]
    rules = [restrict_rule(rule, names) for rule in project.rules if set(rule.kernels) & set(names)]
    entries = read_baseline(project.baseline)
    if base is not None:
        own = {name: entry for name, entry in (entries or {}).items() if name not in base.names}
        entries = {**own, **base.entries} or None
    if entries is None and any(rule.what.needs_baseline for rule in rules):
        hint = "memsim baseline writes it; then commit it"
        raise MemsimError("there is no baseline", file=str(project.baseline), hint=hint)

    subjects: list[GuardedKernel] = []
    single = [target for target in chosen if isinstance(target, Job)]
    problems: list[Problem] = []
    for one in measure_all(chosen, rules, cache, jobs, progress):
        if one.analysis is not None:
            entry = (entries or {}).get(one.name)
            subjects.append(GuardedKernel(one.name, one.analysis, entry, one.arguments, one.program))
        if one.error is not None:
            problems.append(Problem(one.name, one.error))
    if base is not None and not some:
        problems += base.problems
    elif not some and any(rule.what.needs_baseline for rule in rules):
        problems += _left_over(project, entries or {}, [*names, *(one.name for one in subjects)], problems)
    is_part = some or base is not None  # what a base declares for all need not apply to what is left
    outcome = judge(subjects, rules, project.acceptances, problems, some=is_part)
    covered = None if some else coverage_of(project, single, cache, subjects)
    return replace(outcome, coverage=covered, against=None if base is None else base.revision)


def read_baseline(path: Path) -> dict[str, Entry] | None:
    """The entries of a baseline file, None if there is no file.

    Raises:
        MemsimError: it cannot be read, or is not a baseline.
    """
    try:
        return baseline.parse(read_text(path, "the baseline"), str(path))
    except FileNotFoundError:
        return None


def _left_over(
    project: Project, entries: dict[str, Entry], names: Sequence[str], problems: Sequence[Problem]
) -> Iterator[Problem]:
    """Kernels in the baseline that are no longer targets, or that their programs no longer launch."""
    failed = {problem.kernel for problem in problems}
    for name in entries:
        program = project.program_of(name)
        if name in names or name in failed or (program is not None and program.name in failed):
            continue
        why = "is no longer a target" if program is None else f"{program} no longer launches it"
        error = MemsimError(
            f"{name} is in the baseline but {why}",
            file=str(project.baseline),
            hint="memsim baseline removes it",
        )
        yield Problem(name, error)


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
    single = [target for target in chosen if isinstance(target, Job)]
    for target, found in zip(single, analyze_all(single, cache, jobs)):
        analysis = found.analysis
        if analysis is not None and has_time_budget(target.name, rules):
            analysis = with_estimated_time(analysis, target, cache, "whole")
        yield [replace(found, analysis=analysis, arguments=target.given)]
    for program in chosen:
        if isinstance(program, ProgramTarget):
            try:
                yield count_launches(program, time=has_time_budget(program.name, rules))
            except MemsimError as error:
                yield [Measured(program.name, error=error, program=program.name)]
