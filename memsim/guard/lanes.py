"""Which lanes are to blame: the worst request of a row of an analysis, in a sentence.

In: an `Analysis` and one of its rows. Out: the lanes that meet in one bank, or how many sectors they
touch. Left out on purpose: every other request, and pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memsim.analysis import Analysis, SiteCounts, rows_of_trace
from memsim.arch import get_arch
from memsim.model import global_access, shared_access
from memsim.model.explain import serve_lanes
from memsim.model.shared import shared_rule


def worst_request(analysis: Analysis, site: SiteCounts) -> str:
    """The lanes of the row's dearest request that collide, or "" if no request of it is known."""
    rows = _requests_of(analysis, site)
    if site.unresolved is not None or not len(rows):
        return ""
    if site.space == "shared":
        return _shared(analysis, site, rows)
    return _global(analysis, site, rows)


def lane_list(lanes: Sequence[int]) -> str:
    """`lanes 0-3, 8`, or `lane 5`."""
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and lane == runs[-1][-1] + 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    parts = [", ".join(map(str, run)) if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"lane{'s' * (len(lanes) > 1)} {', '.join(parts)}"


def _requests_of(analysis: Analysis, site: SiteCounts) -> np.ndarray:
    """Rows of the trace that the row of the analysis stands for."""
    parts = zip(analysis.sites, rows_of_trace(analysis.trace), strict=True)
    return next((rows for other, (_, rows) in parts if other is site), np.zeros(0, np.int64))


def _shared(analysis: Analysis, site: SiteCounts, rows: np.ndarray) -> str:
    trace = analysis.trace
    cost = shared_access(trace.addresses[rows], site.width, site.op, trace.active[rows], analysis.arch)
    # Most ways first, then most wavefronts above the ideal, then the most frequent.
    dearest = int(np.lexsort((trace.count[rows], cost.wavefronts - cost.ideal, cost.ways))[-1])
    row = int(rows[dearest])
    if cost.ways[dearest] <= 1:
        return (
            f"no lanes of {_where(analysis, row)} collide; they are served in {cost.wavefronts[dearest]} "
            f"wavefront{'s' * int(cost.wavefronts[dearest] != 1)}, and {cost.ideal[dearest]} would be ideal"
        )
    chip = get_arch(analysis.arch)
    rule = shared_rule(site.op, site.width, chip)
    addresses, active = trace.addresses[row], trace.active[row]
    group = serve_lanes(addresses, site.width, site.op, active, analysis.arch).group
    unit = addresses // rule.unit
    slot = unit % rule.lanes
    meeting = [
        np.flatnonzero((group == g) & (slot == s))
        for g, s in sorted({(int(g), int(s)) for g, s in zip(group, slot, strict=True) if g})
    ]
    # Lanes that share a word are served together; where they do not share, each counts.
    weights = [len(set(unit[lanes].tolist())) if rule.shares else len(lanes) for lanes in meeting]
    most = weights.index(max(weights))
    first_bank = int(slot[meeting[most][0]]) * rule.unit // chip.bank_bytes
    banks = rule.unit // chip.bank_bytes
    bank = f"bank {first_bank}" if banks == 1 else f"banks {first_bank}-{first_bank + banks - 1}"
    what = "different words" if rule.shares else "accesses that cannot share"
    return (
        f"{lane_list(meeting[most].tolist())} of {_where(analysis, row)} meet in {bank}: "
        f"{weights[most]} {what}"
    )


def _global(analysis: Analysis, site: SiteCounts, rows: np.ndarray) -> str:
    trace = analysis.trace
    cost = global_access(trace.addresses[rows], site.width, site.op, trace.active[rows], analysis.arch)
    dearest = int(np.lexsort((trace.count[rows], cost.sectors, cost.sectors - cost.ideal_sectors))[-1])
    row = int(rows[dearest])
    lanes = np.flatnonzero(trace.active[row])
    steps = np.unique(np.diff(trace.addresses[row][lanes]))
    apart = f", {int(steps[0]):,} bytes apart," if len(steps) == 1 else ""
    return (
        f"{lane_list(lanes.tolist())} of {_where(analysis, row)}{apart} touch {cost.sectors[dearest]} "
        f"sector{'s' * int(cost.sectors[dearest] != 1)} where {cost.ideal_sectors[dearest]} would do"
    )


def _where(analysis: Analysis, row: int) -> str:
    return f"warp {analysis.trace.warp[row]}, block {analysis.trace.block[row]}"
