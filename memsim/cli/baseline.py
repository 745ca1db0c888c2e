"""`memsim baseline`: writes what the kernels of a project cost, to be committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from memsim.cli.options import JSON, open_cache, open_project, project_options
from memsim.cli.output import progress_bar, say, say_written
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.guard.baseline import Entry, entry_of, render
from memsim.targets.project import Project
from memsim.targets.project_check import measure_all, read_baseline


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
