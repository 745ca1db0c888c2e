"""Findings of `memsim check` for people: what is broken and where, the verdict, and what explains it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from shlex import quote
from typing import TextIO

from memsim.guard.outcome import Finding, Outcome
from memsim.views.check.findings import Locate, limit, now, place, title, was
from memsim.views.labels import access
from memsim.views.plain import write_passed
from memsim.views.screen import Column, Row, Screen

COLUMNS = (
    Column(""),
    Column("where"),
    Column("code", is_code=True),
    Column("access", keep=2),
    Column("array", keep=1),
    Column("count"),
    *(Column(name, right=True) for name in ("was", "is", "limit")),
)
INDENT = "  "


def write(outcome: Outcome, locate: Locate, stream: TextIO, explanation: str = "") -> None:
    """Prints the report on `stream`; `explanation`: the command that shows more of what failed."""
    if outcome.is_clean:
        write_passed(outcome.report, stream)
        return
    screen = Screen(stream)
    for problem in outcome.problems:
        who = f"{problem.kernel}: " if problem.kernel else ""
        for line in f"error: {who}{problem.error}".split("\n"):
            screen.say(line, "red")
        screen.say()
    for findings in _groups(outcome.findings):
        _write_group(screen, findings, locate)
        hint = _hint(findings)
        if hint:
            screen.say(f"{INDENT}{hint}")
        screen.say()
    for line in outcome.coverage.lines if outcome.coverage else ():
        screen.say(line)
    screen.say(outcome.verdict, "bold green" if outcome.exit_code == 0 else "bold red")
    if explanation:
        screen.say(explanation)


def text(findings: Sequence[Finding], locate: Locate) -> str:
    """The findings alone, as plain text: what a failed test shows."""
    from io import StringIO

    stream = StringIO()
    screen = Screen(stream, force_terminal=False)
    for group in _groups(findings):
        _write_group(screen, group, locate)
    return stream.getvalue()


def _write_group(screen: Screen, findings: Sequence[Finding], locate: Locate) -> None:
    """A title, a row for each figure, and what there is to say beside the numbers."""
    rows = []
    for finding in findings:
        site = finding.site
        shown = ["", str(place(finding, locate)), site.source, access(site), site.array]
        figures = [[f.quantity, was(f), now(f), limit(f)] for f in finding.figures] or [["", "-", "-", "-"]]
        for figure in figures:
            rows.append(Row((*shown, *figure)))
            shown = [""] * len(shown)
    screen.say(title(findings[0]), "bold red" if findings[0].breaks else "bold green")
    screen.table(COLUMNS, rows)
    for finding in findings:
        for remark in filter(None, (finding.reason, finding.lanes)):
            screen.say(f"{INDENT}{place(finding, locate)}: {remark}")


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one kernel, budget and kind, as they come."""
    return [list(group) for _, group in groupby(findings, lambda f: (f.kernel, f.budget, f.kind))]


def _hint(findings: Iterable[Finding]) -> str:
    """Which command looks for a better layout for a kernel that breaks a budget by bank conflicts."""
    conflicting = [finding for finding in findings if finding.breaks and finding.site.conflicts]
    if not conflicting:
        return ""
    arrays = dict.fromkeys(finding.site.array for finding in conflicting)
    return f"memsim suggest {quote(conflicting[0].kernel)}  # tries other layouts of {' and '.join(arrays)}"
