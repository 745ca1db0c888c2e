"""The total of `idc__requests`: loads of constants (`LDC`) at fixed addresses make a request each, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memsim.analysis.counts import SiteCounts
from memsim.trace.trace import Trace

REQUESTS = "idc__requests.sum"

_FIXED = re.compile(r"(?P<guard>@\S+ )?LDC(\.\S+)? (?!.*\]\[R[0-9])")


def constant_requests(trace: Trace, sites: Sequence[SiteCounts]) -> dict[str, int | None]:
    """`idc__requests` of a kernel that loads constants at an index; {} for any other, and for PTX.

    None if an indexed load is unresolved, or if a guard may switch off a load at a fixed address in a whole
    warp: it then makes no request, and the trace does not tell how often. Source: docs/model.md.
    """
    indexed = [site for site in sites if site.space == "constant"]
    if not indexed or not len(trace.executed):
        return {}
    total = 0
    for site in indexed:
        if site.requests is None:
            return {REQUESTS: None}
        total += site.requests
    for (_, text, *_), executed in zip(trace.listing, trace.executed):
        fixed = _FIXED.match(text)
        if fixed and executed:
            if fixed["guard"]:
                return {REQUESTS: None}
            total += int(executed)
    return {REQUESTS: total}
