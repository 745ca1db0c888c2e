"""What `memsim check` found, as JSON, as `check.schema.json` beside this file describes it."""

from __future__ import annotations

import json
from typing import Any

from memsim.guard.outcome import Checked, Coverage, Finding, Outcome, Problem, QuantityChange
from memsim.version import __version__
from memsim.views.check.findings import Locate, place
from memsim.views.labels import json_number

SCHEMA = 1


def render(outcome: Outcome, locate: Locate) -> str:
    """Indented JSON, without a newline at the end."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "memsim": __version__,
            "verdict": outcome.verdict,
            "exit_code": outcome.exit_code,
            "kernels": list(outcome.kernels),
            "checks": [_check(checked, locate) for checked in outcome.checked],
            "coverage": None if outcome.coverage is None else _coverage(outcome.coverage),
            "problems": [_problem(problem) for problem in outcome.problems],
        },
        indent=2,
    )


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {
        "kernels": coverage.kernels,
        "unguarded": [
            {"kernel": one.name, "file": one.file, "line": one.line, "new": one.is_new}
            for one in coverage.unguarded
        ],
        "not_compared": [{"kernel": name, "why": why} for name, why in coverage.not_compared],
        "gone": list(coverage.gone),
    }


def _check(checked: Checked, locate: Locate) -> dict[str, Any]:
    return {
        "kernel": checked.kernel,
        "budget": checked.budget,
        "rows": checked.rows,
        "broken": checked.broken,
        "findings": [_finding(finding, locate) for finding in checked.findings],
    }


def _finding(finding: Finding, locate: Locate) -> dict[str, Any]:
    site, where = finding.site, place(finding, locate)
    return {
        "kind": finding.kind,
        "breaks": finding.breaks,
        "file": where.path,
        "line": where.line,
        "column": where.column,
        "source": site.source,
        "op": site.op,
        "space": site.space,
        "width": site.width,
        "array": site.array,
        "figures": [_figure(figure) for figure in finding.figures],
        "reason": finding.reason,
        "lanes": finding.lanes,
    }


def _figure(figure: QuantityChange) -> dict[str, Any]:
    return {
        "quantity": figure.quantity,
        "was": json_number(figure.was),
        "is": json_number(figure.now),
        "limit": json_number(figure.limit),
        "relation": figure.relation,
        "percent": figure.percent,
    }


def _problem(problem: Problem) -> dict[str, Any]:
    error = problem.error
    return {
        "kernel": problem.kernel,
        "message": error.message,
        "file": error.file,
        "line": error.line,
        "column": error.column,
        "hint": error.hint,
    }
