"""Findings of `memsim check` for people: what is broken and where, the verdict, and what explains it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING, TextIO

from memsim.guard.outcome import Finding, Outcome
from memsim.views.check.findings import Locate, limit, now, place, title, was
from memsim.views.check.verdict_line import write_passed
from memsim.views.labels import access
from memsim.views.screen import open_console
from memsim.views.tables import Column, Row, fitted

if TYPE_CHECKING:
    from rich.table import Table

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
        write_passed(outcome.verdict, stream)
        return
    from rich.text import Text

    console, room = open_console(stream)
    for problem in outcome.problems:
        who = f"{problem.kernel}: " if problem.kernel else ""
        console.print(Text(f"error: {who}{problem.error}", style="red"))
        console.print()
    for findings in _groups(outcome.findings):
        first = findings[0]
        style = "bold red" if first.breaks else "bold green"
        console.print(Text(title(first), style=style))
        console.print(table(findings, locate, room))
        for line in filter(None, (*remarks(findings, locate), _hint(findings))):
            console.print(Text(f"{INDENT}{line}"))
        console.print()
    console.print(Text(outcome.verdict, style="bold green" if outcome.exit_code == 0 else "bold red"))
    if explanation:
        console.print(Text(explanation))


def text(findings: Sequence[Finding], locate: Locate) -> str:
    """The findings alone, as plain text: what a failed test shows."""
    from io import StringIO

    stream = StringIO()
    console, room = open_console(stream)
    for group in _groups(findings):
        console.print(title(group[0]))
        console.print(table(group, locate, room))
        for line in remarks(group, locate):
            console.print(f"{INDENT}{line}")
    return stream.getvalue()


def table(findings: Iterable[Finding], locate: Locate, room: int) -> Table:
    """A row for each figure."""
    rows = []
    for finding in findings:
        site = finding.site
        shown = ["", str(place(finding, locate)), site.source, access(site), site.array]
        figures = [[f.quantity, was(f), now(f), limit(f)] for f in finding.figures] or [["", "-", "-", "-"]]
        for figure in figures:
            rows.append(Row((*shown, *figure)))
            shown = [""] * len(shown)
    return fitted(COLUMNS, rows, room)


def remarks(findings: Iterable[Finding], locate: Locate) -> list[str]:
    """What there is to say beside the numbers: reasons, and the lanes to blame."""
    return [
        f"{place(finding, locate)}: {remark}"
        for finding in findings
        for remark in (finding.reason, finding.lanes)
        if remark
    ]


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
