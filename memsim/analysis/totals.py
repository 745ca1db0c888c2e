"""Totals by ncu's names: a number where it is certain, else its limits and the reason.

Most are sums over rows. Three are not: global atomics, which the chip serves one line at a time; copies that
bypass the L1 cache, for which the profiler's Source page has formulas of its own; and loads of constants, of
which those at fixed addresses are no accesses. Source: docs/model.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memsim.analysis.sites import LOOP
from memsim.arch import Arch
from memsim.counts import Count, Range, SiteCounts, total
from memsim.instruction import condition_of, guard_of, opcode_of
from memsim.model import COUNTERS, bypass_source_page, global_source_page
from memsim.model.choice import why_no_cost
from memsim.model.counters import Counter, may_count_in
from memsim.model.operations import operation
from memsim.model.remote import limits_anywhere
from memsim.trace.trace import Trace

#: Opcodes of generic addresses, which may lie in any space.
ANY_SPACE = frozenset(("LD", "ST", "ATOM", "RED", "REDS"))
#: Opcodes for which some machines make a store to global memory.
FENCES = frozenset(("MEMBAR",))

#: Of global atomics.
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

#: The Source page, to which copies that bypass the L1 cache add by formulas of their own.
SECTORS, TAGS = "memory_l2_theoretical_sectors_global", "memory_l1_tag_requests_global"
BY_PREDICATE = "of copies with a predicate ncu 2025.3.1 may show other sectors than the chip has"

REQUESTS = "idc__requests.sum"

GUARDED = "a predicate may switch off loads of constants in whole warps"

_FIXED = re.compile(r"(?P<guard>@\S+ )?LDC(\.\S+)? (?!.*\]\[R[0-9])")


def totals_of(
    trace: Trace, sites: Sequence[SiteCounts], arch: Arch
) -> tuple[dict[str, int | None], dict[str, Range]]:
    """(ncu metric -> value, None if it is not certain; metric -> what is known of each that is not)."""
    counts = sums_of_rows(sites)
    counters = {counter.metric: counter for counter in COUNTERS if counter.metric in counts}
    counts |= {metric: total([counts[metric], more]) for metric, more in bypass_totals(trace, arch).items()}
    others = {**atomic_totals(trace, sites), **constant_requests(trace, sites)}
    counters |= {metric: _counter_of_others(metric) for metric in others}
    counts |= others
    order = "; ".join(trace.uncertain)
    opcodes = frozenset(opcode_of(text).split(".")[0] for _, text, _, _ in trace.listing)
    for metric, counter in counters.items():
        if order and (counts[metric] or _may_be_made(counter, opcodes)):
            counts[metric] = _in_some_order(counts[metric], order)
        if any(may_count_in(what, counter) for what in trace.uncounted):
            counts[metric] = _with_uncounted(counts[metric], trace.not_counted)
    ranges = {metric: count for metric, count in counts.items() if isinstance(count, Range)}
    return {metric: None if metric in ranges else count for metric, count in counts.items()}, ranges  # type: ignore[misc]


def sums_of_rows(sites: Sequence[SiteCounts]) -> dict[str, Count]:
    """Metric -> what all rows together add to it."""
    made = {(site.space, op) for site in sites for op in (site.op, *site.operation.counted_as)}
    return {
        counter.metric: total(_parts(counter, sites)) for counter in COUNTERS if counter.is_reported(made)
    }


def _parts(counter: Counter, sites: Sequence[SiteCounts]) -> Iterator[Count]:
    """What each row adds to a counter."""
    for site in sites:
        if site.space != counter.space:
            continue
        made = {site.op, *site.operation.counted_as}
        if site.op == LOOP and (site.ranges or site.unresolved is None):
            made = {"atomic"}  # its loads have a row of their own
        elif site.operation.bypass and site.space == "shared":
            made = {"cp_async"}  # of which it has only the conflicts of lanes that write zeros
        if site.op in counter.unsettled and not site.operation.bypass:  # those are in `bypass_totals`
            yield Range(f"the share of {site.operation.access} in it was not measured")
        elif not made.isdisjoint(counter.ops):
            yield site.count(counter.quantity)


def _counter_of_others(metric: str) -> Counter:
    """The counter of a total that is not a sum over rows."""
    if metric == REQUESTS:
        return Counter(metric, "constant", "requests", ("load",))
    op = next(op for op, end in ENDS.items() if f"_op_{end}." in metric)
    return Counter(metric, "global", "requests", (op,))


def _may_be_made(counter: Counter, opcodes: frozenset[str]) -> bool:
    """Whether warps may make accesses of this counter in another order, though in this one they made none."""
    own = {opcode for op in counter.ops for opcode in operation(counter.space, op).opcodes}
    return not opcodes or not opcodes.isdisjoint(own | ANY_SPACE | (FENCES if "STG" in own else set()))


def _in_some_order(count: Count, why: str) -> Range:
    """A count of one order of warps of several; without an estimate if it is not certain in this one."""
    if isinstance(count, Range):
        return Range(f"{count.why}; {why}")
    return Range(why, estimate=count)


def _with_uncounted(count: Count, why: str) -> Range:
    """A count with that of requests whose cost is unknown: it is at least the one without."""
    if isinstance(count, Range):
        return replace(count, why=f"{count.why}; {why}", most=None, estimate=None)
    return Range(why, least=count)


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
    passes = 2 if ".CAS" in site.instruction else 1  # a compare-and-swap has two operands
    for fewest, most in limits_anywhere(addresses, site.width, passes, active):
        least, limit = int(times @ fewest), int(times @ most)
        found.append(least if least == limit else Range(BY_PLACE, least, limit))
    return made, found[0], found[1]


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


def constant_requests(trace: Trace, sites: Sequence[SiteCounts]) -> dict[str, Count]:
    """`idc__requests` of a kernel that loads constants at an index; {} for any other.

    Not certain if an indexed load is unresolved, or if a guard may switch off a load at a fixed address in a
    whole warp: it then makes no request, and the trace does not tell how often. Source: docs/model.md.
    """
    indexed = [site for site in sites if site.space == "constant"]
    if not indexed or not len(trace.executed):
        return {}
    least, most = 0, 0
    for site in indexed:
        if site.requests is None:
            return {REQUESTS: Range(site.unresolved or "")}
        least += site.requests
    for (_, text, *_), executed in zip(trace.listing, trace.executed):
        fixed = _FIXED.match(text)
        if fixed and executed:
            most += int(executed)
            least += 0 if fixed["guard"] else int(executed)
    most += sum(site.requests or 0 for site in indexed)
    return {REQUESTS: least if least == most else Range(GUARDED, least, most)}
