"""Totals by ncu's names: a number where it is certain, else its limits and the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memsim.analysis.atomic_totals import ENDS, atomic_totals
from memsim.analysis.bypass_totals import bypass_totals
from memsim.analysis.constant_total import REQUESTS, constant_requests
from memsim.analysis.counts import SiteCounts, known
from memsim.analysis.ranges import Count, Range, total
from memsim.analysis.swap_costs import LOOP
from memsim.arch import Arch
from memsim.model import COUNTERS
from memsim.model.counters import Counter
from memsim.model.operations import operation
from memsim.model.uncounted import may_count_in
from memsim.trace.trace import Trace

#: Opcodes of generic addresses, which may lie in any space.
ANY_SPACE = frozenset(("LD", "ST", "ATOM", "RED", "REDS"))
#: Opcodes for which some machines make a store to global memory.
FENCES = frozenset(("MEMBAR",))


def totals_of(
    trace: Trace, sites: Sequence[SiteCounts], arch: Arch
) -> tuple[dict[str, int | None], dict[str, Range]]:
    """(ncu metric -> value, None if it is not certain; metric -> what is known of each that is not)."""
    made = {(site.space, op) for site in sites for op in (site.op, *site.operation.counted_as)}
    counters = {counter.metric: counter for counter in COUNTERS if counter.is_reported(made)}
    of_copies = bypass_totals(trace, arch)
    counts = {
        metric: total([*_parts(counter, sites), of_copies.get(metric, 0)])
        for metric, counter in counters.items()
    }
    others = {**atomic_totals(trace, sites), **constant_requests(trace, sites)}
    counters |= {metric: _counter_of_others(metric) for metric in others}
    counts |= others
    order, opcodes = "; ".join(trace.uncertain), _opcodes(trace)
    for metric, counter in counters.items():
        if order and (counts[metric] or _may_be_made(counter, opcodes)):
            counts[metric] = _in_some_order(counts[metric], order)
        if any(may_count_in(what, counter) for what in trace.uncounted):
            counts[metric] = _with_uncounted(counts[metric], trace.not_counted)
    ranges = {metric: count for metric, count in counts.items() if isinstance(count, Range)}
    return {metric: None if metric in ranges else count for metric, count in counts.items()}, ranges  # type: ignore[misc]


def _parts(counter: Counter, sites: Sequence[SiteCounts]) -> Iterator[Count]:
    """What each row adds to a counter."""
    own = frozenset(counter.ops)
    for site in sites:
        if site.space != counter.space:
            continue
        ops = {site.op, *site.operation.counted_as}
        if site.operation.bypass:  # lanes that write zeros may have conflicts
            ops.add("cp_async")
        if site.op in counter.unsettled and not site.operation.bypass:  # those are in `bypass_totals`
            yield Range(f"the share of {site.operation.access} in it was not measured")
        elif site.op == LOOP and (
            site.ranges or site.unresolved is None
        ):  # its loads have a row of their own
            if "atomic" in counter.ops:
                yield site.ranges.get(counter.quantity, known(getattr(site, counter.quantity)))
        elif counter.quantity in site.ranges and not ops.isdisjoint(counter.ops):
            yield site.ranges[counter.quantity]
        elif site.unresolved is None and (site.op in counter.ops or (site.operation.pairs and ops & own)):
            yield known(getattr(site, counter.quantity))
        elif site.unresolved and not ops.isdisjoint(counter.ops):
            yield Range(site.unresolved)


def _counter_of_others(metric: str) -> Counter:
    """The counter of a total that is not a sum over rows."""
    if metric == REQUESTS:
        return Counter(metric, "constant", "requests", ("load",))
    op = next(op for op, end in ENDS.items() if f"_op_{end}." in metric)
    return Counter(metric, "global", "requests", (op,))


def _opcodes(trace: Trace) -> frozenset[str]:
    """Opcodes of the kernel's machine code, with or without a warp that executes them; none for PTX."""
    words = (text.split() for _, text, _, _ in trace.listing)
    instructions = (next((word for word in line if not word.startswith("@")), "") for line in words)
    return frozenset(instruction.split(".")[0] for instruction in instructions)


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
