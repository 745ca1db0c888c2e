"""Findings of `memsim check` for programs: GitHub Actions, JUnit, SARIF, Markdown, JSON.

As workflow commands of GitHub Actions they are an annotation on each line. GitHub shows ten annotations of a
kind for each step; the log and the summary of the job, which is Markdown, have all of them. The Markdown is
bounded: GitHub takes no comment of more than 65,536 characters.

JUnit XML has a test case for each budget of each kernel. A broken budget is a failure; what could not be
judged is an error.

SARIF 2.1.0 is for code scanning. Paths are relative to the repository's root (`%SRCROOT%`). A finding's
fingerprint is made of its kernel, budget and code, so that moving a line keeps it. Source: OASIS Standard
"Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape as escape_html
from pathlib import PurePath, PurePosixPath
from typing import Annotated
from urllib.parse import quote
from xml.etree import ElementTree

from msgspec import Meta

from memsim.document import Document, DocumentPart, JsonObject, Line, Texts, json_text, one_of
from memsim.guard.comparison import ORDER
from memsim.guard.outcome import (
    BROKEN,
    HARMLESS,
    UNRESOLVED,
    VANISHED,
    Checked,
    Coverage,
    Finding,
    Outcome,
    Problem,
    QuantityChange,
)
from memsim.launch import Natural, Positive, Space
from memsim.version import __version__
from memsim.views.check.findings import (
    TITLES,
    Locate,
    annotation,
    limit,
    now,
    picture_of,
    place,
    sentence,
    was,
)
from memsim.views.labels import access
from memsim.views.plain import code_cell, escape_markdown, fenced_block, folded, table
from memsim.views.plain import plain as plain_text

Properties = Mapping[str, str | int | None]


def github(outcome: Outcome, locate: Locate) -> str:
    """A command for each finding and problem; the last line is the verdict."""
    lines = [_of_problem(problem, locate) for problem in outcome.problems]
    lines += [_of_finding(finding, locate) for finding in outcome.findings]
    if outcome.coverage is not None:
        lines += [_command("notice", {"title": "memsim: coverage"}, line) for line in outcome.coverage.lines]
    return "\n".join([*lines, plain_text(outcome.verdict)])


def _of_finding(finding: Finding, locate: Locate) -> str:
    where = place(finding, locate)
    properties = {
        "file": where.path,
        "line": where.line,
        "col": where.column,
        "title": f"memsim: {TITLES[finding.kind]}",
    }
    return _command("error" if finding.breaks else "notice", properties, annotation(finding))


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
    said = (
        f"{key}={_data(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in properties.items()
        if value is not None
    )
    return f"::{name} {','.join(said)}::{_data(message)}"


def _data(text: str) -> str:
    """Escaped as the workflow commands want it."""
    return plain_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# Characters that XML 1.0 has no way to write.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(outcome: Outcome, locate: Locate) -> str:
    """The document, without a newline at the end."""
    attributes = {
        "name": "memsim check",
        "tests": str(len(outcome.checked) + len(outcome.problems)),
        "failures": str(sum(checked.broken for checked in outcome.checked)),
        "errors": str(len(outcome.problems)),
    }
    root = ElementTree.Element("testsuites", attributes)
    suite = ElementTree.SubElement(root, "testsuite", attributes | {"skipped": "0"})
    for checked in outcome.checked:
        _add_check(suite, checked, locate)
    for problem in outcome.problems:
        case = _add_case(suite, problem.kernel or "memsim", "is judged")
        error = ElementTree.SubElement(case, "error", message=_clean(problem.error.message), type="problem")
        error.text = _clean(str(problem.error))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _add_check(suite: ElementTree.Element, checked: Checked, locate: Locate) -> None:
    case = _add_case(suite, checked.kernel, checked.budget)
    breaking = [finding for finding in checked.findings if finding.breaks]
    if not breaking:
        return
    lines = [f"{place(finding, locate)}: {sentence(finding)}" for finding in breaking]
    failure = ElementTree.SubElement(case, "failure", message=_clean(lines[0]), type=breaking[0].kind)
    failure.text = _clean("\n".join(lines))


def _add_case(suite: ElementTree.Element, kernel: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_clean(kernel), name=_clean(name), time="0")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", plain_text(text))


MOST_ROWS = 60
LONGEST_PROBLEM = 600
PICTURE = 8_000  # characters of a request that is drawn

HEADINGS = ("kernel", "where", "code", "access", "what", "counts")


def markdown(outcome: Outcome, locate: Locate) -> str:
    """The text, without a newline at the end."""
    mark = "✅" if outcome.exit_code == 0 else "❌"
    parts = [f"### {mark} memsim: {escape_markdown(outcome.verdict)}"]
    parts += [escape_markdown(line) for line in (outcome.coverage.lines if outcome.coverage else ())]
    parts += [
        _fenced(f"{problem.kernel} {problem.error}".strip()) for problem in outcome.problems[:MOST_ROWS]
    ]
    breaking = [finding for finding in outcome.findings if finding.breaks]
    harmless = [finding for finding in outcome.findings if not finding.breaks]
    if breaking:
        parts.append(_rows_of(breaking, locate))
    lanes = [f"- `{place(f, locate)}`: {escape_markdown(f.lanes)}" for f in breaking[:MOST_ROWS] if f.lanes]
    if lanes:
        parts.append("\n".join(dict.fromkeys(lanes)))  # once, however many budgets an access breaks
    pictures = [(f, text) for f in breaking if (text := picture_of(f))]
    for finding, text in pictures[:1]:
        summary = f"Lane by lane: {place(finding, locate)}"
        parts.append(folded(escape_html(summary), _fenced(text, PICTURE)))
    if harmless:
        parts.append(folded("No longer as in the baseline", _rows_of(harmless, locate)))
    return "\n\n".join(parts)


def _rows_of(findings: Sequence[Finding], locate: Locate) -> str:
    by_access: dict[object, list[Finding]] = {}
    for finding in findings:
        by_access.setdefault((finding.kernel, finding.site), []).append(finding)
    rows = [_access_row(of_access, locate) for of_access in list(by_access.values())[:MOST_ROWS]]
    shown = table(HEADINGS, rows, "l" * len(HEADINGS))
    more = len(by_access) - MOST_ROWS
    return shown if more <= 0 else f"{shown}\n\nand {more:,} rows more"


def _access_row(findings: Sequence[Finding], locate: Locate) -> list[str]:
    """All that there is to say of one access, whichever budgets say it."""
    first = findings[0]
    site = first.site
    what = dict.fromkeys(
        f"{TITLES[finding.kind]}: {finding.budget}" if finding.kind != VANISHED else TITLES[finding.kind]
        for finding in findings
    )
    reasons = dict.fromkeys(finding.reason for finding in findings if finding.reason)
    counts = dict.fromkeys(_counted(figure) for finding in findings for figure in finding.figures)
    return [
        escape_markdown(first.kernel),
        escape_markdown(str(place(first, locate))),
        code_cell(site.source),
        escape_markdown(f"{access(site)} {site.array}".strip()),
        escape_markdown("; ".join((*what, *reasons))),
        escape_markdown("; ".join(counts)),
    ]


def _counted(figure: QuantityChange) -> str:
    """`ways 1 -> 32, limit <= 1`; `wavefronts 32` of an access that stands alone."""
    sides = [text for text in (was(figure), now(figure)) if text != "-"]
    counted = f"{figure.quantity} {' -> '.join(sides)}".strip()
    told = figure.limit is not None and figure.limit != figure.was
    return f"{counted}, limit {limit(figure)}" if told else counted


def _fenced(error: str, longest: int = LONGEST_PROBLEM) -> str:
    cut = error if len(error) <= longest else error[:longest] + "\n..."
    return fenced_block(cut, "text")


ROOT = "%SRCROOT%"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(outcome: Outcome, locate: Locate) -> str:
    """Indented JSON, without a newline at the end."""
    run = {
        "tool": {"driver": {"name": "memsim", "version": __version__, "rules": _rules()}},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not outcome.problems,
                "exitCode": outcome.exit_code,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": f"{problem.kernel}: {problem.error}".removeprefix(": ")},
                    }
                    for problem in outcome.problems
                ],
            }
        ],
        "results": [_result(finding, locate) for finding in outcome.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rules() -> list[JsonObject]:
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


def _result(finding: Finding, locate: Locate) -> JsonObject:
    where = place(finding, locate)
    region: JsonObject = {"startLine": 1}  # code scanning takes no result without a line
    if where.line is not None:
        region = {"startLine": where.line, "snippet": {"text": finding.site.source}}
    if where.column is not None:
        region["startColumn"] = where.column
    file = {"uri": quote(PurePosixPath(where.path).as_posix()), "uriBaseId": ROOT}
    if PurePath(where.path).is_absolute():
        file = {"uri": PurePath(where.path).as_uri()}
    physical = {"artifactLocation": file, "region": region}
    return {
        "ruleId": finding.kind,
        "ruleIndex": list(TITLES).index(finding.kind),
        "level": _level(finding.kind),
        "message": {"text": sentence(finding)},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"memsim/v1": _fingerprint(finding)},
    }


def _fingerprint(finding: Finding) -> str:
    site = finding.site
    parts = (finding.kernel, finding.budget, site.statement, site.op, site.space, str(site.width), site.array)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


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


def to_json(outcome: Outcome, locate: Locate) -> str:
    """Indented JSON, without a newline at the end."""
    document = CheckDocument.of(
        outcome,
        kernels=tuple(outcome.kernels),
        checks=tuple(
            CheckPart.of(one, findings=tuple(_finding(finding, locate) for finding in one.findings))
            for one in outcome.checked
        ),
        problems=tuple(ProblemPart.of(one.error, kernel=one.kernel) for one in outcome.problems),
    )
    return json_text(document)


def _finding(finding: Finding, locate: Locate) -> FindingPart:
    site, where = finding.site, place(finding, locate)
    of_site = {name: getattr(site, name) for name in ("source", "op", "space", "width", "array")}
    return FindingPart.of(finding, file=where.path, line=where.line, column=where.column, **of_site)


#: What writes an outcome, by the name of the format.
FORMATS: dict[str, Callable[[Outcome, Locate], str]] = {
    "github": github,
    "sarif": sarif,
    "junit": junit,
    "json": to_json,
    "markdown": markdown,
}
