"""Findings of `memsim check` as SARIF 2.1.0, for code scanning.

Paths are relative to the repository's root (`%SRCROOT%`). A finding's fingerprint is made of its kernel,
budget and code, so that moving a line keeps it.
Source: OASIS Standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import quote

from memsim.guard.outcome import HARMLESS, Finding, Outcome, Problem
from memsim.views.check.findings import TITLES, Locate, place, sentence

ROOT = "%SRCROOT%"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(outcome: Outcome, locate: Locate, version: str) -> str:
    """Indented JSON, without a newline at the end; `version` is memsim's."""
    run = {
        "tool": {"driver": {"name": "memsim", "version": version, "rules": _rules()}},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not outcome.problems,
                "exitCode": outcome.exit_code,
                "toolExecutionNotifications": [_notification(problem) for problem in outcome.problems],
            }
        ],
        "results": [_result(finding, locate) for finding in outcome.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rules() -> list[dict[str, Any]]:
    return [
        {
            "id": kind,
            "shortDescription": {"text": f"{title[0].upper()}{title[1:]}."},
            "defaultConfiguration": {"level": _level(kind)},
        }
        for kind, title in TITLES.items()
    ]


def _level(kind: str) -> str:
    return "note" if kind in HARMLESS else "error"


def _result(finding: Finding, locate: Locate) -> dict[str, Any]:
    where = place(finding, locate)
    region: dict[str, Any] = {"startLine": 1}  # code scanning takes no result without a line
    if where.line is not None:
        region = {"startLine": where.line, "snippet": {"text": finding.site.source}}
    if where.column is not None:
        region["startColumn"] = where.column
    physical = {"artifactLocation": _artifact(where.path), "region": region}
    return {
        "ruleId": finding.kind,
        "ruleIndex": list(TITLES).index(finding.kind),
        "level": _level(finding.kind),
        "message": {"text": sentence(finding)},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"memsim/v1": _fingerprint(finding)},
    }


def _artifact(path: str) -> dict[str, str]:
    if PurePath(path).is_absolute():
        return {"uri": PurePath(path).as_uri()}
    return {"uri": quote(PurePosixPath(path).as_posix()), "uriBaseId": ROOT}


def _fingerprint(finding: Finding) -> str:
    site = finding.site
    parts = (
        finding.kernel,
        finding.budget,
        site.statement,
        site.op,
        site.space,
        str(site.width),
        site.array,
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _notification(problem: Problem) -> dict[str, Any]:
    who = f"{problem.kernel}: " if problem.kernel else ""
    return {"level": "error", "message": {"text": f"{who}{problem.error}"}}
