"""What to type next.

In: an `Analysis` or findings of a check. Out: a line of text, "" where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING

from memsim.analysis import Analysis

if TYPE_CHECKING:
    from memsim.guard.outcome import Finding


def next_command(analysis: Analysis, target: str, *, options: bool) -> str:
    """What would help most, and which command shows how, in a line; "" where there is no bank conflict.

    options: whether it needs those that the target was given.
    """
    arrays = dict.fromkeys(site.array for site in analysis.sites if site.conflicts)
    if not arrays:
        return ""
    from memsim.report.help import counted_change
    from memsim.suggest.proposals import advise

    same = ", with the same options," if options else ""
    command = f"`memsim suggest {quote(target)}`{same}"
    helped = [entry for entry in advise(analysis) if entry.proposals]
    if not helped:
        return f"{command} tries other layouts of {' and '.join(arrays)}."
    most = max(helped, key=lambda entry: entry.wavefronts - entry.proposals[0].cost.most)
    return f"What would help: {counted_change(most.proposals[0], most)}. {command} shows how."


def hint_of_findings(findings: Iterable[Finding]) -> str:
    """Which command looks for a better layout for a kernel that breaks a budget by bank conflicts."""
    conflicting = [finding for finding in findings if finding.breaks and finding.site.conflicts]
    if not conflicting:
        return ""
    arrays = dict.fromkeys(finding.site.array for finding in conflicting)
    return f"memsim suggest {quote(conflicting[0].kernel)}  # tries other layouts of {' and '.join(arrays)}"
