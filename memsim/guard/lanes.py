"""Which lanes are to blame: the worst request of a row of an analysis, in a sentence.

In: an `Analysis` and one of its rows. Out: the lanes that meet in one bank, or how many sectors they
touch. Left out on purpose: every other request, and pictures (`memsim.inspect` has all of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from memsim.analysis import Analysis, SiteCounts

if TYPE_CHECKING:
    from memsim.inspect.request import GlobalRequest, Origin, SharedRequest


def worst_request(analysis: Analysis, site: SiteCounts) -> str:
    """The lanes of the row's dearest request that collide, or "" if none is known or lanes do not decide."""
    if not (site.wavefronts or site.sectors) or not site.operation.is_of_lanes:
        return ""
    from memsim.inspect.request import SharedRequest, take_apart

    number = next(i for i, other in enumerate(analysis.sites) if other is site)
    request = take_apart(analysis, number)
    return _shared(request) if isinstance(request, SharedRequest) else _global(request)


def _shared(request: SharedRequest) -> str:
    who = _warp(request.origin)
    if request.ways <= 1:
        served = _count(request.wavefronts, "wavefront")
        return f"no lanes of {who} collide; they take {served}, and {request.ideal} would be ideal"
    if request.read_together():
        readers = lane_list(max(request.read_together(), key=len))
        turns = f"{request.ways} accesses one after the other"
        return f"{readers} of {who} read from one bank of the L1 cache: {turns}"
    worst = max(request.meetings(), key=lambda meeting: len(meeting.seats))
    lanes = sorted(lane for seat in worst.seats for lane in seat.lanes)
    first, last = worst.banks[0], worst.banks[-1]
    banks = f"bank {first}" if first == last else f"banks {first}-{last}"
    what = "different words" if request.shares else "accesses that cannot share"
    return f"{lane_list(lanes)} of {who} meet in {banks}: {len(worst.seats)} {what}"


def _global(request: GlobalRequest) -> str:
    lanes = lane_list(np.flatnonzero(request.active).tolist())
    apart = "" if request.stride is None else f", {request.stride:,} bytes apart,"
    touched = _count(request.sectors, "sector")
    return f"{lanes} of {_warp(request.origin)}{apart} access {touched} instead of {request.ideal_sectors}"


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


def _warp(origin: Origin) -> str:
    return f"warp {origin.warp}, block ({','.join(map(str, origin.block))})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
