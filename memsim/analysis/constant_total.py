"""The total of `idc__requests`: loads of constants (`LDC`) at fixed addresses make a request each, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memsim.analysis.counts import SiteCounts
from memsim.analysis.ranges import Count, Range
from memsim.trace.trace import Trace

REQUESTS = "idc__requests.sum"

GUARDED = "a predicate may switch off loads of constants in whole warps"

_FIXED = re.compile(r"(?P<guard>@\S+ )?LDC(\.\S+)? (?!.*\]\[R[0-9])")


def constant_requests(trace: Trace, sites: Sequence[SiteCounts]) -> dict[str, Count]:
    """`idc__requests` of a kernel that loads constants at an index; {} for any other, and for PTX.

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
