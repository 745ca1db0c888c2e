"""Describes the worst request of a row in a sentence: the lanes that conflict, or the sectors they touch.

`memsim.views.explain` shows the whole request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from memsim.analysis import Analysis, SiteCounts
from memsim.views.labels import count, dim3, lane_names

if TYPE_CHECKING:
    from memsim.guard.outcome import Finding, Outcome
    from memsim.pictures.worst_request import GlobalRequest, RequestOrigin, SharedRequest


def with_lanes(outcome: Outcome) -> Outcome:
    """The same outcome, where each finding whose access was analyzed says which lanes are to blame."""

    def told(finding: Finding) -> Finding:
        if finding.analysis is None:
            return finding
        return replace(finding, lanes=worst_request(finding.analysis, finding.site))

    checked = (replace(one, findings=tuple(map(told, one.findings))) for one in outcome.checked)
    return replace(outcome, checked=tuple(checked))


def worst_request(analysis: Analysis, site: SiteCounts) -> str:
    """The conflicting lanes of the row's most expensive request; "" if unknown or not decided by lanes."""
    if not (site.wavefronts or site.sectors) or not site.operation.is_of_lanes:
        return ""
    from memsim.pictures.worst_request import SharedRequest, take_apart

    number = next(i for i, other in enumerate(analysis.sites) if _place(other) == _place(site))
    request = take_apart(analysis, number)
    return _shared(request) if isinstance(request, SharedRequest) else _global(request)


def _place(site: SiteCounts) -> tuple[object, ...]:
    """What a row of an analysis is for, and one of a statement the worst of its rows."""
    return site.file, site.line, site.op, site.space, site.width, site.array


def _shared(request: SharedRequest) -> str:
    who = _warp(request.origin)
    if request.ways <= 1:
        served = count(request.wavefronts, "wavefront")
        return f"no lanes of {who} conflict; they take {served}, ideal is {request.ideal}"
    if request.read_together():
        readers = lane_names(max(request.read_together(), key=len))
        turns = f"{request.ways} accesses one after the other"
        return f"{readers} of {who} read from one bank of the L1 cache: {turns}"
    worst = max(request.meetings(), key=lambda meeting: len(meeting.seats))
    lanes = sorted(lane for seat in worst.seats for lane in seat.lanes)
    first, last = worst.banks[0], worst.banks[-1]
    banks = f"bank {first}" if first == last else f"banks {first}-{last}"
    what = "different words" if request.shares else "accesses that cannot share"
    return f"{lane_names(lanes)} of {who} meet in {banks}: {len(worst.seats)} {what}"


def _global(request: GlobalRequest) -> str:
    lanes = lane_names(np.flatnonzero(request.active).tolist())
    apart = "" if request.stride is None else f", {request.stride:,} bytes apart,"
    touched = count(request.sectors, "sector")
    return f"{lanes} of {_warp(request.origin)}{apart} access {touched} instead of {request.ideal_sectors}"


def _warp(origin: RequestOrigin) -> str:
    return f"warp {origin.warp}, block {dim3(origin.block)}"
