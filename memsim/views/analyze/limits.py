"""What is known of totals that are not certain, in words."""

from __future__ import annotations

from collections.abc import Iterator

from memsim.analysis import Analysis, Range, SiteCounts
from memsim.views.labels import number

#: Totals that are told one by one; of more only their number.
FEW = 3


def limits_of_totals(analysis: Analysis) -> Iterator[str]:
    """A line for each, or for many of one reason; none for a reason that is told elsewhere."""
    trace = analysis.trace
    told = {"; ".join(trace.uncertain), *(site.unresolved for site in analysis.sites)}
    by_reason: dict[str, list[tuple[str, Range]]] = {}
    for metric, limits in analysis.undecided.items():
        by_reason.setdefault(limits.why, []).append((metric, limits))
    for why, totals in by_reason.items():
        if why in told:
            continue
        if len(totals) > FEW:
            yield f"Not certain: {len(totals)} of ncu's metrics, whose limits --metrics shows: {why}"
        else:
            yield from (f"Not certain: {metric}: {_said(limits)}: {why}" for metric, limits in totals)


def limited(site: SiteCounts, name: str, unknown: str) -> str:
    """A count of a row as a cell of a table: `96`, `32 to 1,024`, or `unknown`."""
    count, limits = getattr(site, name), site.ranges.get(name)
    if count is not None or limits is None:
        return number(count, unknown)
    if limits.least == limits.most:
        return number(limits.least, unknown)
    return f"{limits.least:,} to {number(limits.most, 'any')}"


def _said(limits: Range) -> str:
    return str(limits) if limits.estimate is None else f"{limits} ({limits.estimate:,} as counted here)"
