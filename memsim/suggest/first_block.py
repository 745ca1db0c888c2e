"""The global requests of one block at their exact addresses.

A trace of all blocks merges requests that cost the same, but after a change they may not.
"""

from __future__ import annotations

from dataclasses import replace

from memsim.analysis import BADLY_COALESCED, Analysis, SiteCounts, analyze_trace
from memsim.api import running
from memsim.job import Job
from memsim.trace.trace import TraceFile

MOST_REQUESTS = 20_000  # of a block; larger ones are skipped


def first_block(job: Job, analysis: Analysis) -> Analysis | None:
    """Block 0 alone; None if its global accesses waste nothing, are too many, or the trace was loaded from a
    file.
    """
    badly = [site for site in analysis.sites if is_badly_coalesced(site)]
    made = sum(site.requests or 0 for site in analysis.sites if site.space == "global")
    if not badly or isinstance(job.kernel, TraceFile):
        return None
    if made > MOST_REQUESTS * analysis.trace.blocks_replayed:
        return None
    return analyze_trace(running.trace_job(replace(job, blocks=1), everywhere=True), job.arch)


def is_badly_coalesced(site: SiteCounts) -> bool:
    """Whether a quarter or more of the bytes moved for a row of global loads or stores is unused."""
    if site.space != "global" or site.op not in ("load", "store") or not site.sectors:
        return False
    return site.sectors - (site.ideal_sectors or 0) >= BADLY_COALESCED * site.sectors
