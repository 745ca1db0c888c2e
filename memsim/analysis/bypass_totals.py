"""What `cp.async.cg` adds to totals of the profiler's Source page, which has formulas of its own."""

from __future__ import annotations

from memsim.analysis.ranges import Count, Range, total
from memsim.arch import Arch
from memsim.model import bypass_source_page, global_source_page
from memsim.model.choice import why_no_cost
from memsim.model.operations import operation
from memsim.trace.predicates_of_text import condition_of, guard_of
from memsim.trace.trace import Trace

SECTORS, TAGS = "memory_l2_theoretical_sectors_global", "memory_l1_tag_requests_global"
BY_PREDICATE = "of copies with a predicate ncu 2025.3.1 may show other sectors than the chip has"


def bypass_totals(trace: Trace, arch: Arch) -> dict[str, Count]:
    """Metric -> what the launch's copies that bypass the L1 cache add to it; {} without such copies."""
    found: dict[str, list[Count]] = {SECTORS: [], TAGS: []}
    for number, site in enumerate(trace.sites):
        if site.space != "global" or not operation(site.space, site.op).bypass:
            continue
        rows = trace.site == number
        source, to, active, times = (
            column[rows] for column in (trace.addresses, trace.partner, trace.active, trace.count)
        )
        why = site.unresolved or why_no_cost(site.width, site.op, site.space, active, to, arch)
        if why is not None:
            found[SECTORS].append(Range(why))
            found[TAGS].append(Range(why))
            continue
        page = global_source_page(source, site.width, site.op, active, arch)
        found[TAGS].append(int(times @ page.tag_requests))
        guard, condition = guard_of(site.instruction), condition_of(site.instruction)
        if guard == "P0":  # which it takes for false
            found[SECTORS].append(0)
        elif "P2" in (guard.lstrip("!"), condition) or "P0" in (guard.lstrip("!"), condition):
            found[SECTORS].append(Range(BY_PREDICATE))
        else:
            moves = bypass_source_page(to, source, active, active, arch)[1]
            found[SECTORS].append(int(times @ moves.sectors))
    return {metric: total(counts) for metric, counts in found.items() if counts}
