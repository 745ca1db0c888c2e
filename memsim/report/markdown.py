"""What `memsim check` found, as Markdown: for a comment on a pull request, or the summary of a job.

In: an `Outcome`. Out: text, bounded: GitHub takes no comment of more than 65,536 characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from memsim.guard.outcome import Finding, Outcome
from memsim.report.findings import TITLES, Locate, limit, now, place, was
from memsim.report.labels import access

MOST_ROWS = 60
LONGEST_CODE = 80
LONGEST_PROBLEM = 600

HEAD = (
    "| kernel | where | code | access | what | count | was | is | limit |",
    "|---|---|---|---|---|---|---:|---:|---:|",
)


def render(outcome: Outcome, locate: Locate) -> str:
    """The text, without a newline at the end."""
    mark = "✅" if outcome.exit_code == 0 else "❌"
    parts = [f"### {mark} memsim: {escaped(outcome.verdict)}"]
    parts += [
        _problem(f"{problem.kernel} {problem.error}".strip()) for problem in outcome.problems[:MOST_ROWS]
    ]
    breaking = [finding for finding in outcome.findings if finding.breaks]
    harmless = [finding for finding in outcome.findings if not finding.breaks]
    if breaking:
        parts.append(_table(breaking, locate))
    lanes = [f"- `{place(f, locate)}`: {escaped(f.lanes)}" for f in breaking[:MOST_ROWS] if f.lanes]
    if lanes:
        parts.append("\n".join(dict.fromkeys(lanes)))  # once, however many budgets an access breaks
    if harmless:
        parts.append(
            "<details><summary>No longer as in the baseline</summary>\n\n"
            + _table(harmless, locate)
            + "\n\n</details>"
        )
    return "\n\n".join(parts)


def _table(findings: Sequence[Finding], locate: Locate) -> str:
    rows = [row for finding in findings for row in _rows(finding, locate)]
    shown = "\n".join([*HEAD, *rows[:MOST_ROWS]])
    more = len(rows) - MOST_ROWS
    return shown if more <= 0 else f"{shown}\n\nand {more:,} rows more"


def _rows(finding: Finding, locate: Locate) -> list[str]:
    site = finding.site
    cells = [
        escaped(finding.kernel),
        escaped(str(place(finding, locate))),
        code(site.source),
        escaped(f"{access(site)} {site.array}".strip()),
        escaped("; ".join(filter(None, (TITLES[finding.kind], finding.reason)))),
    ]
    figures = [[f.quantity, was(f), now(f), limit(f)] for f in finding.figures] or [["", "-", "-", "-"]]
    return [f"| {' | '.join((*cells, *map(escaped, figure)))} |" for figure in figures]


def _problem(error: str) -> str:
    cut = error if len(error) <= LONGEST_PROBLEM else error[:LONGEST_PROBLEM] + "\n..."
    fence = "`" * max(3, longest_run(cut) + 1)
    return f"{fence}text\n{cut}\n{fence}"


def code(text: str) -> str:
    """Source in a cell, cut where it is long."""
    text = " ".join(text.split())
    if not text:
        return ""
    cut = text if len(text) <= LONGEST_CODE else text[: LONGEST_CODE - 3] + "..."
    fence = "`" * (longest_run(cut) + 1)
    pad = " " if cut.startswith("`") or cut.endswith("`") else ""
    return f"{fence}{pad}{cut}{pad}{fence}".replace("|", "\\|")


def longest_run(text: str) -> int:
    """How many backticks stand side by side at most."""
    most = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        most = max(most, run)
    return most


def escaped(text: str) -> str:
    """Text in a cell: nothing in it is Markdown or HTML."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
