"""What the accesses to a memory space cost, together and each: the same for the text and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memsim.analysis import SiteCounts
from memsim.views.labels import count, share

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
