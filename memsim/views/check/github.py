"""Findings of `memsim check` as workflow commands of GitHub Actions: an annotation on each line.

The table for the job's summary is `memsim.views.check.markdown`'s. GitHub shows ten annotations of a kind for
each step; the log and the summary have all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memsim.guard.outcome import Finding, Outcome, Problem
from memsim.views.check.findings import TITLES, Locate, place, sentence
from memsim.views.plain import plain

Properties = Mapping[str, str | int | None]


def render(outcome: Outcome, locate: Locate) -> str:
    """A command for each finding and problem; the last line is the verdict."""
    lines = [_of_problem(problem, locate) for problem in outcome.problems]
    lines += [_of_finding(finding, locate) for finding in outcome.findings]
    if outcome.coverage is not None:
        lines += [_command("notice", {"title": "memsim: coverage"}, line) for line in outcome.coverage.lines]
    return "\n".join([*lines, plain(outcome.verdict)])


def _of_finding(finding: Finding, locate: Locate) -> str:
    where = place(finding, locate)
    properties = {
        "file": where.path,
        "line": where.line,
        "col": where.column,
        "title": f"memsim: {TITLES[finding.kind]}",
    }
    return _command("error" if finding.breaks else "notice", properties, sentence(finding))


def _of_problem(problem: Problem, locate: Locate) -> str:
    error = problem.error
    properties = {
        "file": locate(problem.kernel, error.file) if error.file else None,
        "line": error.line,
        "col": error.column,
        "title": "memsim: not judged",
    }
    who = f"{problem.kernel}: " if problem.kernel else ""
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return _command("error", properties, f"{who}{error.message}{hint}")


def _command(name: str, properties: Properties, message: str) -> str:
    return f"::{name} {','.join(_properties(properties))}::{_data(message)}"


def _properties(properties: Properties) -> Iterator[str]:
    for name, value in properties.items():
        if value is not None:
            yield f"{name}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}"


def _data(text: str) -> str:
    """Escaped as the workflow commands want it."""
    text = plain(text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
