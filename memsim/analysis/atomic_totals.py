"""Totals of atomics and reductions on global memory, which the chip serves one line at a time.

Which lanes it serves together depends on the banks of their lines, and these on where the array lies. The
totals are certain if that makes no difference to any request; otherwise they have limits. Source:
docs/model.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from memsim.analysis.counts import SiteCounts
from memsim.analysis.ranges import Count, Range, total
from memsim.model.remote import limits_anywhere
from memsim.trace.trace import AccessSite, Trace

METRIC = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
COUNTS = ("requests", "sectors", "set_accesses")
#: Operation -> the end of the names of its counters.
ENDS = {"atomic": "atom", "reduction": "red"}
#: Bytes per lane that were measured.
WIDTHS = (4, 8, 16)
IN_LOCAL = "lanes of it are in local memory, which the chip counts here, too"
BY_PLACE = (
    "lanes of an atomic ask for one place of several lines: which of them are served together depends on "
    "where the array lies"
)


def atomic_totals(trace: Trace, rows: Sequence[SiteCounts]) -> dict[str, Count]:
    """metric -> total, of machine code with such accesses; otherwise empty.

    Not certain if an access is unresolved, has a width that was not measured, or lanes in local memory, which
    count here, too; sectors and lines also if they depend on where an array lies.
    """
    totals: dict[str, Count] = {}
    for op, end in ENDS.items():
        made = [i for i, site in enumerate(trace.sites) if (site.space, site.op) == ("global", op)]
        if not made or any(trace.sites[i].address < 0 for i in made):
            continue
        metrics = [METRIC.format(count, end) for count in COUNTS]
        missing = _why_incomplete(trace, rows, op)
        if missing is not None:
            totals |= dict.fromkeys(metrics, Range(missing))
            continue
        costs = zip(*(_cost(trace, i) for i in made), strict=True)
        totals |= {metric: total(each) for metric, each in zip(metrics, costs, strict=True)}
    return totals


def _why_incomplete(trace: Trace, rows: Sequence[SiteCounts], op: str) -> str | None:
    """Why requests of this operation are not all known, of a measured width and in global memory; None if
    they are.
    """
    spaces = ("global", "local")
    for row in rows:
        if row.op == op and row.space in spaces and row.unresolved:
            return row.unresolved
    for site in trace.sites:
        if site.op == op and site.space == "local":
            return IN_LOCAL
        if site.op == op and site.space == "global" and site.width not in WIDTHS:
            return f"global {op} of {site.width} bytes per lane was not measured"
    return None


def _cost(trace: Trace, number: int) -> tuple[Count, Count, Count]:
    """Requests, sectors and lines of a site."""
    site, rows = trace.sites[number], trace.site == number
    addresses, active, times = trace.addresses[rows], trace.active[rows], trace.count[rows]
    made = int(times @ active.any(axis=1))
    found: list[Count] = []
    for fewest, most in limits_anywhere(addresses, site.width, passes_of(site), active):
        least, limit = int(times @ fewest), int(times @ most)
        found.append(least if least == limit else Range(BY_PLACE, least, limit))
    return made, found[0], found[1]


def passes_of(site: AccessSite) -> int:
    """2 of a compare-and-swap, which has two operands, otherwise 1."""
    return 2 if ".CAS" in site.instruction else 1
