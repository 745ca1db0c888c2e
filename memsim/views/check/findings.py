"""How every report of `memsim check` names a finding: its kind, its numbers and its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memsim.guard import outcome
from memsim.guard.budget import EVERY_COUNT
from memsim.guard.outcome import Finding, QuantityChange
from memsim.views.labels import access, amount

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
