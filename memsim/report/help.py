"""What would help an access that waits for banks: other layouts of its array, in a line each.

In: an `Analysis` and the number of a row. Out: lines. `memsim.report.suggestions` has the whole answer.
"""

from __future__ import annotations

from memsim.analysis import Analysis
from memsim.report.suggestions import change_name
from memsim.suggest.proposals import Advice, Proposal, advise


def what_would_help(analysis: Analysis, site: int) -> list[str]:
    """The best layouts of the array that a row touches; nothing where the row has no bank conflict."""
    row = analysis.sites[site]
    if not row.conflicts:
        return []
    advice = advise(analysis, row.array.split("|"))
    lines = [line for entry in advice for line in advice_lines(entry)]
    return ["", "What would help:", *(f"  {line}" for line in lines)]


def advice_lines(entry: Advice) -> list[str]:
    """Each proposal for an array in a line, or why there is none."""
    if entry.why_not:
        return [f"{entry.tile.name}: no other layout was tried: {entry.why_not}"]
    if not entry.proposals:
        return [f"{entry.tile.name}: no layout that was tried takes fewer wavefronts"]
    return [proposal_line(each, entry) for each in entry.proposals]


def proposal_line(each: Proposal, entry: Advice) -> str:
    """`s_a, padding: 16 B behind every 512 B: 2,621,440 -> 2,359,296 wavefronts in all its accesses`."""
    after = f"{each.cost.most:,}" if each.cost.certain else f"at most {each.cost.most:,}"
    lines = [str(line.line) for line in each.edit.lines] if each.edit is not None else []
    where = f"; changes line{'s' * (len(lines) > 1)} {', '.join(lines)}" if lines else ""
    return (
        f"{entry.tile.name}, {change_name(each.change, each.tile)}: "
        f"{entry.wavefronts:,} -> {after} wavefronts in all its accesses{where}"
    )
