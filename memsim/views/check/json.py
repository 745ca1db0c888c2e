"""What `memsim check` found, as JSON."""

from __future__ import annotations

import json
from typing import Annotated

from msgspec import Meta

from memsim.document import Document, DocumentPart, Line, Texts, one_of, plain
from memsim.guard.comparison import ORDER
from memsim.guard.outcome import (
    BROKEN,
    UNRESOLVED,
    Checked,
    Coverage,
    Finding,
    Outcome,
    Problem,
    QuantityChange,
)
from memsim.launch import Natural, Positive, Space
from memsim.views.check.findings import Locate, place


class FindingPart(DocumentPart, frozen=True, kw_only=True):
    """An access that breaks a budget or differs from the baseline."""

    kind: Annotated[str, one_of(BROKEN, UNRESOLVED, *ORDER)]
    breaks: bool
    file: Annotated[str, Meta(description="relative to the repository; absolute if it is outside of it")]
    line: Positive | None
    column: Positive | None
    source: Annotated[str, Meta(description="the text of the line, empty if unknown")]
    op: str
    space: Space
    width: Annotated[Natural, Meta(description="bytes a lane")]
    array: str
    figures: tuple[QuantityChange, ...]
    reason: str
    lanes: Annotated[str, Meta(description="which lanes are to blame, empty if none are")]


class CheckPart(DocumentPart, frozen=True, kw_only=True):
    """One budget on one kernel."""

    kernel: str
    budget: str
    rows: Annotated[Positive, Meta(description="accesses that it could be broken by")]
    broken: bool
    findings: tuple[FindingPart, ...]


class ProblemPart(DocumentPart, frozen=True, kw_only=True):
    """Why something could not be judged."""

    kernel: Annotated[str, Meta(description="empty for all")]
    message: str
    file: str | None
    line: int | None
    column: int | None
    hint: str | None


class CheckDocument(Document, frozen=True, kw_only=True):
    """What became of a project's budgets."""

    verdict: Line
    exit_code: Annotated[
        int, one_of(0, 1, 2, description="0: all hold; 1: a budget is broken; 2: not all could be judged")
    ]
    kernels: Annotated[Texts, Meta(description="targets that were analyzed")]
    checks: tuple[CheckPart, ...]
    coverage: Annotated[
        Coverage | None, Meta(description="null if targets were chosen by name, or nothing was checked")
    ]
    problems: tuple[ProblemPart, ...]


def render(outcome: Outcome, locate: Locate) -> str:
    """Indented JSON, without a newline at the end."""
    document = CheckDocument.of(
        outcome,
        kernels=tuple(outcome.kernels),
        checks=tuple(_check(checked, locate) for checked in outcome.checked),
        problems=tuple(map(_problem, outcome.problems)),
    )
    return json.dumps(plain(document), indent=2)


def _check(checked: Checked, locate: Locate) -> CheckPart:
    return CheckPart.of(checked, findings=tuple(_finding(finding, locate) for finding in checked.findings))


def _finding(finding: Finding, locate: Locate) -> FindingPart:
    site, where = finding.site, place(finding, locate)
    access = {name: getattr(site, name) for name in ("source", "op", "space", "width", "array")}
    return FindingPart.of(finding, file=where.path, line=where.line, column=where.column, **access)


def _problem(problem: Problem) -> ProblemPart:
    return ProblemPart.of(problem.error, kernel=problem.kernel)
