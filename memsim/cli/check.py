"""`memsim check`: whether the kernels of a project keep within their budgets; and `memsim baseline`, which
writes what they cost, to be committed.

The project is read, its targets are analyzed and judged, and all is said.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from pathlib import Path, PurePath

import click

from memsim.cli.answered import may_be_given_again
from memsim.cli.options import (
    JSON,
    format_option,
    open_cache,
    open_project,
    output_option,
    path_here,
    project_options,
)
from memsim.cli.output import echo_document, path_to_write, progress_bar, say, say_written
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.guard.baseline import Entry, entry_of, render
from memsim.guard.outcome import UNRESOLVED, VANISHED, Outcome, Problem
from memsim.job import Job
from memsim.kernels import Spec, catalog
from memsim.targets.cache import is_known_before
from memsim.targets.program_target import ProgramTarget
from memsim.targets.project import Project
from memsim.targets.project_check import check_project, measure_all, read_baseline
from memsim.targets.revision import locator, project_against, repository_root
from memsim.views.check.findings import Locate, with_lanes, write_outcome

#: Those of `memsim.views.check.check_formats`, and the suffix of a file of each.
FORMATS = {"github": ".txt", "sarif": ".sarif", "junit": ".xml", "json": ".json", "markdown": ".md"}
TEXT = "text"
SUMMARY = "GITHUB_STEP_SUMMARY"  # the file that GitHub Actions shows as the summary of a job


@click.command()
@click.argument("target", nargs=-1)
@format_option(*FORMATS)
@output_option(
    "--output",
    "-o",
    help="Write the chosen format to FILE, by default memsim-check with its suffix; the terminal gets text.",
)
@click.option(
    "--against",
    metavar="REVISION",
    help="Take settings, budgets, acceptances and baseline from this git revision, such as main.",
)
@project_options
@click.pass_context
def check(
    ctx: click.Context,
    /,
    target: tuple[str, ...],
    form: str,
    output: Path | None,
    against: str | None,
    config: Path | None,
    jobs: int | None,
    no_cache: bool,
) -> None:
    """Checks the kernels of a project against their budgets.

    Targets and budgets are defined in memsim.toml or in [tool.memsim] of pyproject.toml. TARGET is a
    name or a pattern such as 'guide_*'; the default is all targets. A target without a budget is
    compared with the baseline (see memsim baseline).

    Exit code: 0 if every budget holds, 1 if one is exceeded, 2 if something could not be checked: bad
    input, a kernel that does not compile, a budget that matches no access.
    """
    if output is not None and form == TEXT:
        raise click.UsageError("--output needs --format", ctx)
    cache, here = open_cache(no_cache), Path.cwd()
    folder = here
    targets: tuple[Job, ...] = ()
    programs: tuple[ProgramTarget, ...] = ()
    try:
        project = open_project(config)
        if against is not None:
            project = project_against(project, against)
        folder, targets, programs = project.folder, project.targets, project.programs
        with progress_bar("memsim check") as report:
            chosen = project.chosen(target)
            outcome = with_lanes(check_project(project, chosen, cache, jobs, report))
        is_all_read = all(isinstance(one, Job) and is_known_before(one, cache) for one in chosen)
        is_clean = not (outcome.problems or outcome.findings)
        if is_all_read and is_clean and form == TEXT and against is None:
            may_be_given_again()
    except MemsimError as error:  # whoever reads the format must see it too
        outcome = Outcome((), (), (Problem("", error),))

    for note in outcome.notes:
        say(f"note: {note}", err=True)
    in_repository = locator(targets, repository_root(folder))
    if form == TEXT or output is not None:
        explanation = _explanation(outcome, (*targets, *programs), folder)
        write_outcome(outcome, locator(targets, here), sys.stdout, explanation)
    comment = ""
    if form == "markdown" or (form == "github" and os.environ.get(SUMMARY)):
        comment = _writer("markdown")(outcome, in_repository) + _cure(outcome, targets, cache)
    if form != TEXT:
        text = comment if form == "markdown" else _writer(form)(outcome, in_repository)
        if output is None:
            echo_document(text)
        else:
            with path_to_write(output, Path("memsim-check" + FORMATS[form])) as path:
                write_text(path, text + "\n", "it")
    if form == "github" and comment:
        _append(Path(os.environ[SUMMARY]), comment)
    ctx.exit(outcome.exit_code)


def _explanation(outcome: Outcome, targets: Sequence[Job | ProgramTarget], folder: Path) -> str:
    """The command that takes the first access apart that breaks a budget; "" if there is no such one."""
    alone = (UNRESOLVED, VANISHED)  # of these there is no request to show
    found = (finding for finding in outcome.findings if finding.breaks and finding.kind not in alone)
    finding = next((finding for finding in found if finding.site.line > 0 and finding.site.op), None)
    if finding is None:
        return ""
    is_meant = (
        one.makes(finding.kernel) if isinstance(one, ProgramTarget) else one.name == finding.kernel
        for one in targets
    )
    target = next(compress(targets, is_meant), None)
    if target is None:
        return ""
    if isinstance(target, ProgramTarget):
        if Path.cwd() != folder:
            return ""
        record = shlex.join(["memsim", "exec", "--record", "launches", "--", *target.words])
        return f"{record}  # writes a launch.json of each, for memsim explain and suggest"
    if isinstance(target.kernel, Spec):
        words = [target.kernel.name, "--size", ",".join(map(str, target.size.values()))]
    elif target.name not in catalog() and (here := path_here()) is not None and here.parent == folder:
        words = [target.name]
    else:
        return ""
    file, line = PurePath(finding.site.file).name, str(finding.site.line)
    place = line if file == PurePath(target.kernel.file).name else f"{file}:{line}"
    return shlex.join(["memsim", "explain", *words, "--line", place])


def _cure(outcome: Outcome, targets: Sequence[Job], cache: Path | None) -> str:
    """The change that `memsim suggest` proves for the first kernel whose bank conflicts break a budget."""
    broken = {finding.kernel for finding in outcome.findings if finding.breaks and finding.site.conflicts}
    job = next((one for one in targets if one.name in broken), None)
    if job is None:
        return ""
    from memsim.analysis import analyze_trace
    from memsim.suggest.suggestions import suggest
    from memsim.targets.cache import trace_of
    from memsim.views.suggest.terminal import as_comment

    try:
        found = suggest(analyze_trace(trace_of(job, cache, None, apart=True), job.arch), job)
    except MemsimError:
        return ""  # the check has said what is wrong
    return f"\n\n{as_comment(job.name, found.taken)}" if found.taken is not None and found.pays else ""


def _writer(form: str) -> Callable[[Outcome, Locate], str]:
    """What writes a format; imported only when one is asked for."""
    from memsim.views.check.check_formats import FORMATS

    return FORMATS[form]


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise MemsimError(f"cannot write the summary: {error.strerror}", file=str(path)) from None


@click.command()
@project_options
@JSON
@click.pass_context
def baseline(
    ctx: click.Context, /, config: Path | None, jobs: int | None, no_cache: bool, as_json: bool
) -> None:
    """Writes the counts of all targets of a project to one file.

    Commit the file: its diff shows what a change to a kernel does to each access. memsim check
    compares with it and fails where a count has risen.

    Exit code: 0 if every target was analyzed; 2 if one was not. Such a target keeps the entry that the
    file already has.
    """
    project = open_project(config)
    entries: dict[str, Entry] = {}
    failed: list[str] = []
    remarks: list[str] = []
    with progress_bar("memsim baseline") as report:
        cache = open_cache(no_cache)
        for one in measure_all(project.chosen(()), project.rules, cache, jobs, report):
            if one.analysis is None:
                failed.append(one.name)
                remarks.append(f"error: {one.name}: {one.error}")
            else:
                entries[one.name] = entry_of(one.analysis, one.arguments)
                if one.analysis.trace.origin is not None and one.analysis.trace.origin.doubt:
                    remarks.append(f"note: {one.name}: {one.analysis.trace.origin.doubt}")
    for remark in remarks:
        say(remark, err=True)
    before = _before(project.baseline)
    kept = {name: entry for name, entry in (before or {}).items() if _target(project, name) in failed}
    had = {_target(project, name) for name in kept}
    if failed and (before is None or not entries):
        why = (
            "it cannot be read, so their entries would be lost"
            if before is None
            else "no target was analyzed"
        )
        say_written(f"{project.baseline.name}: not written, for {why}", (), as_json=as_json)
        ctx.exit(2)
    entries |= kept
    write_text(project.baseline, render(entries), "the baseline")
    accesses = sum(len(entry.rows) for entry in entries.values())
    changed = _changed(before, entries)
    kernels = f"{len(entries)} kernel{'s' * (len(entries) != 1)}"
    answer = f"{project.baseline.name}: {kernels}, {accesses} accesses; {changed}"
    lacking = (
        f"NOT ANALYZED: {name}, {'whose entry is as before' if name in had else 'which has no entry'}"
        for name in failed
    )
    say_written(answer, [project.baseline], lacking, as_json=as_json)
    ctx.exit(2 if failed else 0)


def _before(path: Path) -> dict[str, Entry] | None:
    """The entries that are there, none if there is no file; None if it cannot be read."""
    try:
        return read_baseline(path) or {}
    except MemsimError:
        return None


def _target(project: Project, entry: str) -> str:
    """The target that an entry is of, which may be a program."""
    program = project.program_of(entry)
    return entry if program is None else program.name


def _changed(before: Mapping[str, Entry] | None, now: Mapping[str, Entry]) -> str:
    """Which kernels have other counts than before."""
    if not before:
        return "there was none before" if before is not None else "what was there could not be read"
    other = sorted(name for name in {**before, **now} if _rows(before.get(name)) != _rows(now.get(name)))
    return f"changed: {', '.join(other)}" if other else "nothing changed"


def _rows(entry: Entry | None) -> str:
    return "" if entry is None else render({"": entry})
