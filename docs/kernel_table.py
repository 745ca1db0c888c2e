"""The tables of docs/catalog.md: what every kernel of the catalogue costs, by article.

An access that could not be counted has a row that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memsim.analysis import SiteCounts
from memsim.kernels import Spec, by_article
from memsim.views.plain import table
from studies.counted import shipped

COLUMNS = (
    *("shared loads: wavefronts/request (ideal)", "ways"),
    *("shared stores: wavefronts/request (ideal)", "ways"),
    "global loads: sectors/request (ideal)",
    "global stores: sectors/request (ideal)",
    *("shared bytes", "above the ideal"),
)
READS = ("load", "ldmatrix")
WRITES = ("store", "stmatrix", "cp_async")
GLOBAL_READS = ("load", "cp_async", "cp_async_cg")


def kernel_table() -> str:
    """A table for each article, its kernels in the catalogue's order, and their stories."""
    lines: list[str] = []
    for article, members in by_article().items():
        rows = [row(entry) for entry in members]
        lines += [f"### {article}", "", table(("kernel", *COLUMNS), rows, "l" + "r" * len(COLUMNS))]
        lines += ["", *(f"- `{entry.name}`: {entry.story}" for entry in members), ""]
    return "\n".join(lines)


def row(spec: Spec) -> list[str]:
    """A kernel's row."""
    sites = shipped().analysis(spec.name).sites
    cells = [f"`{spec.name}`"]
    for ops in (READS, WRITES):
        rows = [site for site in sites if site.space == "shared" and site.op in ops]
        cells += [each(rows, "wavefronts", "ideal_wavefronts"), worst_ways(rows)]
    for ops in (GLOBAL_READS, ("store",)):
        rows = [site for site in sites if site.space == "global" and site.op in ops]
        cells.append(each(rows, "sectors", "ideal_sectors"))
    return [*cells, f"{shipped().shared_bytes(spec.name):,}", ", ".join(shares(sites))]


def each(rows: Sequence[SiteCounts], quantity: str, ideal: str) -> str:
    """Quantity a request over some rows, and its ideal."""
    if not rows:
        return "-"
    if any(site.unresolved for site in rows):
        return "not counted"
    requests = sum(site.requests or 0 for site in rows)
    total, least = (sum(getattr(site, name) or 0 for site in rows) for name in (quantity, ideal))
    return f"{total / requests:.3g} ({least / requests:.3g})"


def worst_ways(rows: Sequence[SiteCounts]) -> str:
    """The most ways of any request."""
    if any(site.unresolved for site in rows):
        return "not counted"
    return str(max((site.max_ways or 0 for site in rows), default=0)) if rows else "-"


def shares(sites: Sequence[SiteCounts]) -> Iterator[str]:
    """How much more than the ideal: `+33 % wavefronts` and `+300 % sectors`, of what the kernel has."""
    for space, quantity in (("shared", "wavefronts"), ("global", "sectors")):
        rows = [site for site in sites if site.space == space]
        if not rows:
            continue
        if any(site.unresolved for site in rows):
            yield f"{quantity} not counted"
            continue
        total = sum(getattr(site, quantity) or 0 for site in rows)
        least = sum(getattr(site, f"ideal_{quantity}") or 0 for site in rows)
        yield f"+{100 * (total - least) / least:.0f} % {quantity}"
