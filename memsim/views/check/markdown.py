"""Findings of `memsim check` as Markdown, for a comment on a pull request or the summary of a job.

The text is bounded: GitHub takes no comment of more than 65,536 characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from memsim.guard.outcome import VANISHED, Finding, Outcome, QuantityChange
from memsim.views.check.findings import TITLES, Locate, limit, now, place, was
from memsim.views.labels import access
from memsim.views.plain import code, escaped, longest_run, plain, table

MOST_ROWS = 60
LONGEST_PROBLEM = 600

HEADINGS = ("kernel", "where", "code", "access", "what", "counts")


def render(outcome: Outcome, locate: Locate) -> str:
    """The text, without a newline at the end."""
    mark = "✅" if outcome.exit_code == 0 else "❌"
    parts = [f"### {mark} memsim: {escaped(outcome.verdict)}"]
    parts += [escaped(line) for line in (outcome.coverage.lines if outcome.coverage else ())]
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
    by_access: dict[object, list[Finding]] = {}
    for finding in findings:
        by_access.setdefault((finding.kernel, finding.site), []).append(finding)
    rows = [_row(of_access, locate) for of_access in list(by_access.values())[:MOST_ROWS]]
    shown = table(HEADINGS, rows, "l" * len(HEADINGS))
    more = len(by_access) - MOST_ROWS
    return shown if more <= 0 else f"{shown}\n\nand {more:,} rows more"


def _row(findings: Sequence[Finding], locate: Locate) -> list[str]:
    """All that there is to say of one access, whichever budgets say it."""
    first = findings[0]
    site = first.site
    what = dict.fromkeys(
        f"{TITLES[finding.kind]}: {finding.budget}" if finding.kind != VANISHED else TITLES[finding.kind]
        for finding in findings
    )
    reasons = dict.fromkeys(finding.reason for finding in findings if finding.reason)
    counts = dict.fromkeys(_count(figure) for finding in findings for figure in finding.figures)
    return [
        escaped(first.kernel),
        escaped(str(place(first, locate))),
        code(site.source),
        escaped(f"{access(site)} {site.array}".strip()),
        escaped("; ".join((*what, *reasons))),
        escaped("; ".join(counts)),
    ]


def _count(figure: QuantityChange) -> str:
    """`ways 1 -> 32, limit <= 1`; `wavefronts 32` of an access that stands alone."""
    sides = [text for text in (was(figure), now(figure)) if text != "-"]
    counted = f"{figure.quantity} {' -> '.join(sides)}".strip()
    told = figure.limit is not None and figure.limit != figure.was
    return f"{counted}, limit {limit(figure)}" if told else counted


def _problem(error: str) -> str:
    cut = error if len(error) <= LONGEST_PROBLEM else error[:LONGEST_PROBLEM] + "\n..."
    cut = plain(cut)
    fence = "`" * max(3, longest_run(cut) + 1)
    return f"{fence}text\n{cut}\n{fence}"
