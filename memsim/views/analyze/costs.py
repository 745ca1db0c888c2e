"""What the accesses to a memory space cost, and what is known of what is not certain, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from memsim.analysis import Analysis, Range, SiteCounts
from memsim.views.labels import count, number, share

NAMES = {
    "shared": "Shared memory",
    "global": "Global memory",
    "local": "Local memory",
    "constant": "Constants at an index",
    "texture": "Textures",
}
#: What is counted as the cost of an access: a field of `SiteCounts`.
COST = {
    **dict.fromkeys(("global", "local", "texture"), "sectors"),
    "shared": "wavefronts",
    "constant": "requests",
}


def cost(site: SiteCounts) -> int:
    """Wavefronts of shared memory, requests of constants, sectors of others; 0 where they are not known."""
    return getattr(site, COST.get(site.space, "sectors")) or 0


def wasted(site: SiteCounts) -> int:
    """Of its cost the part that bank conflicts or needless sectors take."""
    return site.wavefronts_of_conflicts if site.space == "shared" else site.needless_sectors


def heading(sites: Sequence[SiteCounts], file: str) -> str:
    """What all accesses to one memory space cost together. file: the one that all are of, or ""."""
    counted = [site for site in sites if site.unresolved is None]
    requests = sum(site.requests or 0 for site in counted)
    total = sum(map(cost, counted))
    if sites[0].space == "shared":
        unit, waste = "wavefronts", sum(site.conflicts or 0 for site in counted)
        answer = f"{waste:,} ({share(waste, total)}) are bank conflicts" if waste else "no bank conflicts"
    else:
        unit, waste = "sectors", sum(site.needless_sectors for site in counted)
        answer = f"{waste:,} ({share(waste, total)}) are not needed" if waste else "all are needed"
    name = NAMES[sites[0].space]
    if sites[0].is_spill:
        name, kinds = "Spilled registers", Counter({"load": 0, "store": 0})
        for site in counted:
            kinds[site.op] += site.instructions
        answer = " and ".join(count(made, kind) for kind, made in kinds.items())
    place = f"{name} ({file})" if file else name
    if not counted:
        return f"{place}: no access could be counted"
    if sites[0].space == "constant":
        loads = count(sum(site.instructions for site in counted), "load")
        told = f"{place}: {count(requests, 'request')} of {loads}, one for each different address"
    else:
        told = f"{place}: {total:,} {unit} in {count(requests, 'request')}; {answer}"
    missing = len(sites) - len(counted)
    return f"{told} ({missing} of {len(sites)} accesses not counted)" if missing else told


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
