"""Findings of `memsim check` for people: what is broken and where, the verdict, and what explains it.

How every report names a finding is here, too: its kind, its numbers, its place, and the lanes to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from shlex import quote
from typing import TYPE_CHECKING, TextIO

import numpy as np

from memsim.analysis import Analysis, SiteCounts
from memsim.guard import outcome
from memsim.guard.budget import EVERY_COUNT
from memsim.guard.outcome import Finding, Outcome, QuantityChange
from memsim.views.labels import access, amount, count, dim3, lane_names
from memsim.views.screen import Column, Row, Screen, text_of

if TYPE_CHECKING:
    from memsim.pictures.worst_request import GlobalRequest, RequestOrigin, SharedRequest

# (kernel, file of one of its accesses, "" for the kernel's own) -> the path that the reader knows it by.
Locate = Callable[[str, str], str]

TITLES = {
    outcome.BROKEN: "budget broken",
    outcome.UNRESOLVED: "access not analyzed",
    outcome.WORSE: "worse than the baseline",
    outcome.NEW: "new access",
    outcome.VANISHED: "access vanished",
    outcome.IMPROVED: "better than the baseline",
    outcome.CHANGED: "changed at the same cost",
    outcome.UNKNOWN: "changed, accepted at an unknown cost",
}


@dataclass(frozen=True, slots=True)
class Location:
    """line and column are None where nobody knows them."""

    path: str
    line: int | None
    column: int | None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


def place(finding: Finding, locate: Locate) -> Location:
    """Where the access is; of one that has vanished only the file."""
    site = finding.site
    known = bool(site.file) and site.line > 0
    return Location(
        locate(finding.kernel, site.file),
        site.line if known else None,
        site.column if known and site.column > 0 else None,
    )


def title(finding: Finding) -> str:
    """`kernel_v4: budget broken: ways <= 1`; `kernel_v4: new access` if the baseline is the only budget."""
    budget = "" if finding.budget == EVERY_COUNT else f": {finding.budget}"
    return f"{finding.kernel}: {TITLES[finding.kind]}{budget}"


def sentence(finding: Finding) -> str:
    """Everything about the finding but its place, in a line."""
    site = finding.site
    what = f"{access(site)} {site.array}".strip()
    parts = [f"{finding.kernel}: {TITLES[finding.kind]} ({finding.budget}): {what}, {site.source}"]
    parts += [figure_text(figure) for figure in finding.figures]
    return "; ".join(part for part in (*parts, finding.reason, finding.lanes) if part)


def annotation(finding: Finding) -> str:
    """One sentence for the line in question: what it costs now, and why."""
    site = finding.site
    what = f"{access(site)} {'of' if site.array else ''} {site.array}".strip()
    what += "" if site.line > 0 else f", {site.source}"
    broken = f"{TITLES[finding.kind]} ({finding.budget})"
    cost = _clause(finding.figures[0]) if finding.figures else broken
    cause = f", because {finding.lanes}" if finding.lanes else f": {finding.reason}" if finding.reason else ""
    return f"{finding.kernel}: {what}: {cost}{cause}."


def _clause(figure: QuantityChange) -> str:
    """`32 ways instead of 1`; with the limit where nothing says what it was."""
    number, before = now(figure), was(figure)
    unit = figure.quantity.replace("_", " ")
    if number == "-":
        return f"{unit} not known"
    instead = f" instead of {before}" if before not in ("-", number) else ""
    allowed = f", {limit(figure)} allowed" if limit(figure) != "-" and not instead else ""
    return f"{number} {unit}{instead}{allowed}"


def figure_text(figure: QuantityChange) -> str:
    """`ways was 1, is 2, limit <= 1`."""
    parts = [f"{name} {text}" for name, text in (("was", was(figure)), ("is", now(figure))) if text != "-"]
    if limit(figure) != "-":
        parts.append(f"limit {limit(figure)}")
    return f"{figure.quantity} {', '.join(parts)}" if parts else figure.quantity


def was(figure: QuantityChange) -> str:
    """The number in the baseline, `-` if there is none."""
    return amount(figure.was, figure.percent)


def now(figure: QuantityChange) -> str:
    """The number as it is, `-` if it is not known."""
    return amount(figure.now, figure.percent)


def limit(figure: QuantityChange) -> str:
    """`<= 4`, `-` if there is none."""
    if figure.limit is None:
        return "-"
    return f"{figure.relation} {amount(figure.limit, figure.percent)}"


def with_lanes(outcome: Outcome) -> Outcome:
    """The same outcome, where each finding whose access was analyzed says which lanes are to blame."""

    def told(finding: Finding) -> Finding:
        if finding.analysis is None:
            return finding
        return replace(finding, lanes=worst_request(finding.analysis, finding.site))

    checked = (replace(one, findings=tuple(map(told, one.findings))) for one in outcome.checked)
    return replace(outcome, checked=tuple(checked))


def worst_request(analysis: Analysis, site: SiteCounts) -> str:
    """The conflicting lanes of the row's most expensive request; "" if unknown or not decided by lanes."""
    from memsim.pictures.worst_request import SharedRequest

    request = _most_expensive(analysis, site)
    if request is None:
        return ""
    return _shared(request) if isinstance(request, SharedRequest) else _global(request)


def picture_of(finding: Finding) -> str:
    """The row's most expensive request lane by lane, as text; "" where no lane decides."""
    from memsim.views.explain.request_text import write

    request = None if finding.analysis is None else _most_expensive(finding.analysis, finding.site)
    return "" if request is None else text_of(partial(write, request))


def _most_expensive(analysis: Analysis, site: SiteCounts) -> SharedRequest | GlobalRequest | None:
    """A row's request; None where no lane decides. A statement stands where the worst of its rows does."""
    if not (site.wavefronts or site.sectors) or not site.operation.is_of_lanes:
        return None
    from memsim.pictures.worst_request import take_apart

    place_of = attrgetter("file", "line", "op", "space", "width", "array")
    number = next(i for i, other in enumerate(analysis.sites) if place_of(other) == place_of(site))
    return take_apart(analysis, number)


def _shared(request: SharedRequest) -> str:
    who = _warp(request.origin)
    if request.ways <= 1:
        served = count(request.wavefronts, "wavefront")
        return f"no lanes of {who} conflict; they take {served}, ideal is {request.ideal}"
    if request.read_together():
        readers = lane_names(max(request.read_together(), key=len))
        turns = f"{request.ways} accesses one after the other"
        return f"{readers} of {who} read from one bank of the L1 cache: {turns}"
    worst = max(request.meetings(), key=lambda meeting: len(meeting.seats))
    lanes = sorted(lane for seat in worst.seats for lane in seat.lanes)
    first, last = worst.banks[0], worst.banks[-1]
    banks = f"bank {first}" if first == last else f"banks {first}-{last}"
    what = "different words" if request.shares else "accesses that cannot share"
    return f"{lane_names(lanes)} of {who} meet in {banks}: {len(worst.seats)} {what}"


def _global(request: GlobalRequest) -> str:
    lanes = lane_names(np.flatnonzero(request.active).tolist())
    apart = "" if request.stride is None else f", {request.stride:,} bytes apart,"
    touched = count(request.sectors, "sector")
    return f"{lanes} of {_warp(request.origin)}{apart} access {touched} instead of {request.ideal_sectors}"


def _warp(origin: RequestOrigin) -> str:
    return f"warp {origin.warp}, block {dim3(origin.block)}"


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


def write_outcome(outcome: Outcome, locate: Locate, stream: TextIO, explanation: str = "") -> None:
    """Prints the report on `stream`; `explanation`: the command that shows more of what failed."""
    screen = Screen(stream)
    for problem in outcome.problems:
        who = f"{problem.kernel}: " if problem.kernel else ""
        for line in f"error: {who}{problem.error}".split("\n"):
            screen.say(line, "red")
        screen.say()
    for findings in _groups(outcome.findings):
        _write_group(screen, findings, locate)
        hint = _hint(findings)
        if hint and findings[0].kernel not in outcome.of_programs:
            screen.say(f"{INDENT}{hint}")
        screen.say()
    for line in outcome.coverage.lines if outcome.coverage else ():
        screen.say(line)
    screen.say(outcome.verdict, "bold green" if outcome.exit_code == 0 else "bold red")
    if explanation:
        screen.say(explanation)


def text_of_findings(findings: Sequence[Finding], locate: Locate) -> str:
    """The findings alone, as plain text: what a failed test shows."""

    def write(stream: TextIO) -> None:
        screen = Screen(stream, colours=False)
        for group in _groups(findings):
            _write_group(screen, group, locate)

    return text_of(write)


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
