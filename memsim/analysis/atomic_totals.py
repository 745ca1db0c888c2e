"""Totals of atomics and reductions on global memory, which the chip serves one line at a time.

Which lanes it serves together depends on the banks of their lines, and these on where the array lies. The
totals are known if that makes no difference to any request. Source: docs/model.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memsim.analysis.counts import SiteCounts
from memsim.model.remote import cost_anywhere, is_same_anywhere
from memsim.trace.trace import AccessSite, Trace

METRIC = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
COUNTS = ("requests", "sectors", "set_accesses")
#: Operation -> the end of the names of its counters.
ENDS = {"atomic": "atom", "reduction": "red"}
#: Bytes per lane that were measured.
WIDTHS = (4, 8, 16)
BY_PLACE = (
    "lanes of an atomic ask for one place of several lines: which of them are served together depends on "
    "where the array lies"
)


def atomic_totals(trace: Trace, rows: Sequence[SiteCounts]) -> tuple[dict[str, int | None], dict[str, str]]:
    """(metric -> total, metric -> why it is unknown although every access is analyzed), of machine code with
    such accesses; otherwise empty.

    None if an access is unresolved, has a width that was not measured, or lanes in local memory, which count
    here, too; sectors and lines also if they depend on where an array lies.
    """
    totals: dict[str, int | None] = {}
    reasons: dict[str, str] = {}
    for op, end in ENDS.items():
        made = [i for i, site in enumerate(trace.sites) if (site.space, site.op) == ("global", op)]
        if not made or any(trace.sites[i].address < 0 for i in made):
            continue
        metrics = [METRIC.format(count, end) for count in COUNTS]
        if not _is_complete(trace, rows, op):
            totals |= dict.fromkeys(metrics)
            continue
        costs = [_cost(trace, i) for i in made]
        totals |= {metric: sum(cost[i] for cost in costs) for i, metric in enumerate(metrics)}
        if not all(cost.sure for cost in costs):
            totals |= dict.fromkeys(metrics[1:])
            reasons |= dict.fromkeys(metrics[1:], BY_PLACE)
    return totals, reasons


def _is_complete(trace: Trace, rows: Sequence[SiteCounts], op: str) -> bool:
    """Whether all requests of this operation are known, of a measured width, and in global memory."""
    resolved = not any(row.unresolved for row in rows if row.op == op and row.space in ("global", "local"))
    return resolved and all(
        site.space == "global" and site.width in WIDTHS
        for site in trace.sites
        if site.op == op and site.space in ("global", "local")
    )


class _Cost(NamedTuple):
    """The counts of a site. sure: whether they are the same wherever the array lies; else without sectors and
    lines.
    """

    requests: int
    sectors: int
    lines: int
    sure: bool


def _cost(trace: Trace, number: int) -> _Cost:
    site, rows = trace.sites[number], trace.site == number
    addresses, active, times = trace.addresses[rows], trace.active[rows], trace.count[rows]
    sure = bool(is_same_anywhere(addresses, site.width, active).all())
    if not sure:
        return _Cost(int(times @ active.any(axis=1)), 0, 0, sure)
    sectors, lines = cost_anywhere(addresses, site.width, passes_of(site), active)
    return _Cost(int(times @ active.any(axis=1)), int(times @ sectors), int(times @ lines), sure)


def passes_of(site: AccessSite) -> int:
    """2 of a compare-and-swap, which has two operands, otherwise 1."""
    return 2 if ".CAS" in site.instruction else 1
