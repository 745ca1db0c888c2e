"""What an atomic on shared memory costs that is a loop of a load and a compare-and-swap.

The rounds of one warp are certain (`memsim.model.shared`), and so are those of several that never update
the same word. Another warp's update of the same word between load and swap makes a round more. A round
without an update of its own lies around one of another warp's, and each of these lies in at most one round of
each warp: with U updates by W warps there are at most U * W rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from memsim.analysis.sites import site_counts
from memsim.arch import Arch
from memsim.counts import NO_WAVEFRONTS, Count, Range, SiteCounts, total
from memsim.model.operations import operation
from memsim.model.shared import SWAP_WIDTHS, costliest_round, rounds_of_one_warp
from memsim.trace.trace import Trace
from memsim.trace.trace_data import AccessSite

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
