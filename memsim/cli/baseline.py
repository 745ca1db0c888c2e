"""`memsim baseline`: writes what the kernels of a project cost, to be committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from memsim.cli.output import say
from memsim.cli.progress import progress_bar
from memsim.cli.project import open_cache, open_project, project_options
from memsim.errors import MemsimError
from memsim.files import write_text
from memsim.guard.baseline import Entry, entry_of, render
from memsim.targets.analyze_targets import analyze_all
from memsim.targets.project_check import read_baseline


@click.command()
@project_options
def baseline(config: Path | None, jobs: int | None, no_cache: bool) -> None:
    """Writes the counts of all targets of a project to one file.

    Commit the file: its diff shows what a change to a kernel does to each access. memsim check
    compares with it and fails where a count has risen.
    """
    project = open_project(config)
    entries: dict[str, Entry] = {}
    doubts: list[str] = []
    with progress_bar("memsim baseline") as report:
        for measured in analyze_all(project.targets, open_cache(no_cache), jobs):
            target = measured.target
            analysis = measured.result()
            entries[target.name] = entry_of(analysis, target.given)
            if analysis.trace.origin is not None and analysis.trace.origin.doubt:
                doubts.append(f"note: {target.name}: {analysis.trace.origin.doubt}")
            if report is not None:
                report(len(entries) / len(project.targets))
    for doubt in doubts:
        say(doubt, err=True)
    before = _before(project.baseline)
    write_text(project.baseline, render(entries), "the baseline")
    accesses = sum(len(entry.sites) for entry in entries.values())
    changed = _changed(before, entries)
    kernels = f"{len(entries)} kernel{'s' * (len(entries) != 1)}"
    say(f"{project.baseline.name}: {kernels}, {accesses} accesses; {changed}")


def _before(path: Path) -> dict[str, Entry]:
    """The entries that are there; none if they cannot be read, for they are about to be replaced."""
    try:
        return read_baseline(path) or {}
    except MemsimError:
        return {}


def _changed(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> str:
    """Which kernels have other counts than before."""
    if not before:
        return "there was none before"
    other = sorted(name for name in {**before, **now} if _rows(before.get(name)) != _rows(now.get(name)))
    return f"changed: {', '.join(other)}" if other else "nothing changed"


def _rows(entry: Entry | None) -> str:
    return "" if entry is None else render({"": entry})
