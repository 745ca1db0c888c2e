"""The line below an analysis: what would help most, and the command that shows how."""

from __future__ import annotations

from shlex import quote

from memsim.analysis import Analysis
from memsim.arch.units import WORD

FORECAST = ", if the compiler keeps its accesses as wide as they are"


def next_command(analysis: Analysis, target: str, *, options: bool) -> str:
    """What would help most, and which command shows how, in a line; "" where there is no bank conflict.

    options: whether it needs those that the target was given.
    """
    arrays = dict.fromkeys(site.array for site in analysis.sites if site.conflicts)
    if not arrays:
        return ""
    from memsim.suggest.proposals import advise  # loaded only for a conflict: it takes a fifth of the start
    from memsim.views.suggest.advice import counted_change

    same = ", with the same options," if options else ""
    command = f"`memsim suggest {quote(target)}`{same}"
    helped = [entry for entry in advise(analysis) if entry.proposals]
    if not helped:
        return f"No layout tried for {' and '.join(arrays)} helps; {command} tries other changes."
    most = max(helped, key=lambda entry: entry.wavefronts - entry.proposals[0].cost.most)
    is_wide = any(site.array == most.tile.name and site.width > WORD for site in analysis.sites)
    forecast = FORECAST if is_wide and analysis.trace.origin is not None else ""
    best = most.proposals[0]
    shows = "shows how" if best.cost.most == most.least else "shows how, or finds a better one"
    return f"What would help: {counted_change(best, most)}{forecast}. {command} {shows}."
