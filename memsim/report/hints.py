"""What to type next.

In: an `Analysis` or findings of a check. Out: a line of text, "" where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from memsim.analysis import Analysis
from memsim.guard.outcome import Finding


def next_command(analysis: Analysis, target: str, *, options: bool) -> str:
    """Which command looks for a better layout, in a line; "" where there is no bank conflict.

    options: whether it needs those that the target was given.
    """
    arrays = dict.fromkeys(site.array for site in analysis.sites if site.conflicts)
    if not arrays:
        return ""
    same = ", with the same options," if options else ""
    return f"`memsim suggest {quote(target)}`{same} tries other layouts of {' and '.join(arrays)}."


def hint_of_findings(findings: Iterable[Finding]) -> str:
    """Which command looks for a better layout for a kernel that breaks a budget by bank conflicts."""
    conflicting = [finding for finding in findings if finding.breaks and finding.site.conflicts]
    if not conflicting:
        return ""
    arrays = dict.fromkeys(finding.site.array for finding in conflicting)
    return f"memsim suggest {quote(conflicting[0].kernel)}  # tries other layouts of {' and '.join(arrays)}"
