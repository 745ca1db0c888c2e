"""From the requests of a trace to the counts of its access sites; and what an atomic on shared memory costs
that is a loop of a load and a compare-and-swap.

The rounds of one warp are certain (`memsim.model.shared`), and so are those of several that never update
the same word. Another warp's update of the same word between load and swap makes a round more. A round
without an update of its own lies around one of another warp's, and each of these lies in at most one round of
each warp: with U updates by W warps there are at most U * W rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from memsim.arch import Arch
from memsim.counts import NO_WAVEFRONTS, Count, Range, SiteCounts, total
from memsim.model.choice import global_cost, group_wavefronts, shared_cost, why_no_cost
from memsim.model.coalescing import constant_access, local_access
from memsim.model.cp_async import limits_of_copies
from memsim.model.operations import operation
from memsim.model.shared import SWAP_WIDTHS, costliest_round, rounds_of_one_warp
from memsim.model.texture_fetches import texture_access, texture_limits
from memsim.source.text import code_line
from memsim.trace.trace import Trace
from memsim.trace.trace_data import AccessSite


def rows_of_trace(trace: Trace) -> list[tuple[list[int], np.ndarray]]:
    """(its sites, its rows of the trace) for each row of the analysis, in its order."""
    of_row: dict[tuple[object, ...], list[int]] = {}
    for i, site in enumerate(trace.sites):
        key = (site.file, site.line, site.op, site.space, site.width, site.array)
        of_row.setdefault(key, []).append(i)
    rows = [of_row[key] for key in sorted(of_row, key=lambda key: key[:2])]
    row_of_site = np.zeros(len(trace.sites), np.int64)
    for row, members in enumerate(rows):
        row_of_site[members] = row

    row_of_request = row_of_site[trace.site]
    by_row = np.argsort(row_of_request, kind="stable")
    ends = np.searchsorted(row_of_request[by_row], np.arange(len(rows)), side="right")
    return list(zip(rows, np.split(by_row, ends), strict=False))


def site_counts(trace: Trace, members: list[AccessSite], requests: np.ndarray, chip: Arch) -> SiteCounts:
    """One row: `members` are its sites, `requests` its rows of the trace."""
    first = members[0]
    unresolved = next((site.unresolved for site in members if site.unresolved is not None), None)
    ranges: Mapping[str, Range] = {}
    if unresolved is None:
        lanes = trace.active[requests], trace.partner[requests]
        kind = first.width, first.op, first.space
        unresolved = why_no_cost(*kind, *lanes, chip)
        ranges = _limits_of_pairs(trace, first, requests, unresolved or "")
    costs = _costs(trace, first, requests, chip) if unresolved is None else {}
    if first.space == "texture":
        idle = max(0, sum(site.instructions for site in members) - _made(trace, requests))
        costs, ranges = with_idle_fetches(costs, ranges, idle)
    if ranges and all(limits.least == limits.most for limits in ranges.values()):
        costs, ranges, unresolved = {name: limits.least for name, limits in ranges.items()}, {}, None
    elif costs:
        ranges = _ranges(trace, first, requests, costs, chip)
    return SiteCounts(
        file=first.file,
        line=first.line,
        column=first.column,
        source=code_line(trace.sources.get(first.file, ""), first.line),
        op=first.op,
        space=first.space,
        width=first.width,
        array=first.array,
        instructions=sum(site.instructions for site in members),
        unresolved=unresolved,
        **costs,
        ranges=ranges,
    )


def _made(trace: Trace, requests: np.ndarray) -> int:
    """How often a warp made one of these requests with a lane active."""
    return int(trace.count[requests] @ trace.active[requests].any(axis=1))


def with_idle_fetches(
    costs: Mapping[str, int], ranges: Mapping[str, Range], idle: int
) -> tuple[dict[str, int], dict[str, Range]]:
    """The counts of texture fetches with those that warps executed with every lane predicated off: each of
    these is one request, which touches nothing. Source: docs/model.md.
    """
    limits = {
        name: replace(one, least=one.least + idle, most=None if one.most is None else one.most + idle)
        if name == "requests"
        else one
        for name, one in ranges.items()
    }
    return {name: count + idle * (name == "requests") for name, count in costs.items()}, limits


def _limits_of_pairs(trace: Trace, site: AccessSite, requests: np.ndarray, why: str) -> dict[str, Range]:
    """Limits of what texture fetches cost that are served two lanes at a time; {} of any other access."""
    if not operation(site.space, site.op).pairs:
        return {}
    found = texture_limits(trace.addresses[requests], site.width, site.op, trace.active[requests])
    times = trace.count[requests]
    columns = {
        "requests": (found.requests, found.requests),
        "sectors": (found.fewest_sectors, found.most_sectors),
        "ideal_sectors": (found.ideal_sectors, found.ideal_sectors),
        "lines": (found.fewest_tags, found.most_tags),
    }
    return {
        name: Range(why, int(times @ least), int(times @ most)) for name, (least, most) in columns.items()
    }


def _ranges(
    trace: Trace, site: AccessSite, requests: np.ndarray, costs: Mapping[str, int], chip: Arch
) -> dict[str, Range]:
    """Limits of the counts that depend on more than addresses: those of a copy to shared memory.

    Of several warps nothing limits them: where their writes meet, arbitration adds some.
    """
    asked = operation(site.space, site.op)
    if not asked.is_copy or site.space != "shared":
        return {}
    active, times = trace.active[requests], trace.count[requests]
    sides = trace.addresses[requests], active, trace.partner[requests]
    fewest, most, why = limits_of_copies(asked, site.width, *sides, chip)
    least, limit = int(times @ fewest), None if most is None else int(times @ most)
    if least == limit:
        return {}
    if trace.launch.warps * trace.launch.blocks > 1:
        limit, why = None, f"{why}; and on arbitration between warps"
    return {"conflicts": Range(why, least, limit, max(least, costs["conflicts"]))}


def _costs(trace: Trace, site: AccessSite, requests: np.ndarray, chip: Arch) -> dict[str, int]:
    """The counts of `SiteCounts` that apply to the site's space, each distinct request times its count."""
    addresses, active, times = trace.addresses[requests], trace.active[requests], trace.count[requests]
    asked = addresses, site.width, site.op, active, trace.partner[requests], chip
    made = _made(trace, requests)
    asked_for = operation(site.space, site.op)
    if not asked_for.is_counted:
        return {"requests": made, **dict.fromkeys(NO_WAVEFRONTS, 0)}
    if asked_for.grouped:
        wavefronts = made * group_wavefronts(site.width)
        return {"requests": made, **dict(zip(NO_WAVEFRONTS, (wavefronts, 0, wavefronts, int(made > 0))))}
    columns: dict[str, np.ndarray] = {}  # of each count, by request
    counts = {"requests": made}
    if site.space == "shared" and not asked_for.remote:
        shared = shared_cost(*asked)
        columns = dict(zip(NO_WAVEFRONTS, (shared.wavefronts, shared.conflicts, shared.ideal)))
        counts["max_ways"] = int(shared.ways.max(initial=0))
    elif site.space == "constant":
        columns = {"requests": constant_access(addresses, site.width, site.op, active, chip)}
    elif site.space == "texture":
        fetched = texture_access(addresses, site.width, site.op, active, chip)
        columns = {
            "requests": fetched.requests,
            "sectors": fetched.sectors,
            "ideal_sectors": fetched.ideal_sectors,
            "lines": fetched.tags,
        }
    elif site.space == "local":
        local = local_access(addresses, site.width, site.op, active, chip)
        columns = {"requests": local.requests, "sectors": local.sectors, "ideal_sectors": local.ideal_sectors}
    else:
        cost = global_cost(*asked)
        columns = {"sectors": cost.sectors, "ideal_sectors": cost.ideal_sectors, "lines": cost.lines}
    return counts | {name: int(times @ column) for name, column in columns.items()}


LOOP = "atomic_loop"
SWAP = re.compile(r"ATOMS\.CAST\.SPIN(\.64)? \S+, \[[^]]+\], (?P<old>R[0-9]+)")
LOAD = re.compile(r"LDS(\.64)? (?P<old>R[0-9]+),")
NO_COUNTS = ("requests", *NO_WAVEFRONTS)
#: Instructions before a compare-and-swap among which its load is.
BEFORE = 12
WHY = "how often a loop of compare-and-swaps goes round depends on which warps update a word at the same time"

Ranges = dict[str, Range]
#: Of `ranges_of_sites`: the lanes that execute an instruction of a loop, summed over its rounds. No count of
#: a row is of these, but the profiler's Source page has them.
LANES = "lanes"


def counts_of_rows(
    trace: Trace, rows: Iterable[tuple[Sequence[int], np.ndarray]], arch: Arch
) -> tuple[SiteCounts, ...]:
    """The counts of rows, given as their sites and their requests; of such loops limits, or numbers."""
    of_sites = ranges_of_sites(trace, arch)
    return tuple(_counted(trace, members, requests, of_sites, arch) for members, requests in rows)


def ranges_of_sites(trace: Trace, arch: Arch) -> dict[int, Ranges]:
    """Site -> limits of its counts and `LANES`, of the compare-and-swaps and loads of loops in machine code;
    both limits are the number if that is certain.
    """
    loops = {
        number: load
        for number, site in enumerate(trace.sites)
        if site.op == LOOP and site.width in SWAP_WIDTHS and (load := _load_of(trace, site)) is not None
    }
    updates = _updates(trace, [number for number, site in enumerate(trace.sites) if _updates_words(site)])
    others = any(site.op != LOOP for site in trace.sites if _updates_words(site))
    found: dict[int, Ranges] = {}
    for number, load in loops.items():
        width, rows = trace.sites[number].width, trace.site == number
        addresses, active, times = trace.addresses[rows], trace.active[rows], trace.count[rows]
        least = [times @ column for column in rounds_of_one_warp(addresses, width, active, False, arch)]
        if trace.launch.warps == 1 or (trace.sites[number].apart and not others):
            most = [times @ column for column in rounds_of_one_warp(addresses, width, active, True, arch)]
        else:
            limit = _updates(trace, [number]) + (trace.launch.warps - 1) * updates
            most = [limit, *(limit * cost for cost in costliest_round(addresses, width, active, arch))]
        rounds, swaps, loads, conflicts, lanes = (
            Range(WHY, int(few), int(many)) for few, many in zip(least, most, strict=True)
        )
        none, one = Range(WHY, 0, 0), Range(WHY, 1, 1)
        of_both = {"instructions": rounds, "requests": rounds, LANES: lanes}
        found[number] = {**of_both, "wavefronts": swaps, "conflicts": none, "max_ways": one}
        found[load] = {**of_both, "wavefronts": loads, "conflicts": conflicts}
    return found


def _updates_words(site: AccessSite) -> bool:
    return site.space == "shared" and operation(site.space, site.op).verb == "update"


def _updates(trace: Trace, sites: Sequence[int]) -> int:
    """How many lanes update words."""
    rows = np.isin(trace.site, sites)
    return int(trace.count[rows] @ np.count_nonzero(trace.active[rows], axis=1))


def _load_of(trace: Trace, swap: AccessSite) -> int | None:
    """The site of the load whose result a compare-and-swap compares with; None if it is not found."""
    compared = SWAP.search(swap.instruction)
    places = [place for place, *_ in trace.listing]
    if compared is None or swap.address not in places:
        return None
    at = places.index(swap.address)
    for place, text, *_ in reversed(trace.listing[max(0, at - BEFORE) : at]):
        loaded = LOAD.search(text)
        if loaded and loaded["old"] == compared["old"]:
            return next((n for n, site in enumerate(trace.sites) if site.address == place), None)
    return None


def _counted(
    trace: Trace, members: Sequence[int], requests: np.ndarray, of_sites: dict[int, Ranges], arch: Arch
) -> SiteCounts:
    """One row, of whose sites some belong to such loops, or none."""
    row = site_counts(trace, [trace.sites[number] for number in members], requests, arch)
    loops = [of_sites[number] for number in members if number in of_sites]
    if not loops:
        return row
    others = [number for number in members if number not in of_sites]
    counts: dict[str, list[Count]] = {
        name: [one[name] for one in loops] for name in loops[0] if name not in ("max_ways", LANES)
    }
    if others:
        apart = requests[np.isin(trace.site[requests], others)]
        rest = site_counts(trace, [trace.sites[number] for number in others], apart, arch)
        if rest.unresolved:
            return row if row.unresolved else row.with_counts(dict.fromkeys(NO_COUNTS), WHY, {})
        counts = {name: [*of_loops, rest.count(name)] for name, of_loops in counts.items()}
    limits = {name: total(parts) for name, parts in counts.items()}
    ranges = {name: count for name, count in limits.items() if isinstance(count, Range)}
    numbers = {name: count for name, count in limits.items() if isinstance(count, int)}
    if ranges:
        whole = {name: Range(WHY, count, count) for name, count in numbers.items()}
        return row.with_counts(dict.fromkeys(NO_COUNTS), WHY, {**whole, **ranges})
    if row.op != LOOP:
        return row.with_counts(numbers, None, {})
    more = {"ideal_wavefronts": numbers["wavefronts"], "max_ways": 1}
    return row.with_counts({**numbers, **more}, None, {})
