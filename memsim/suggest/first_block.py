"""The requests of one block to global memory, where they lie.

In: a `Job`. Out: an `Analysis` of its first block, whose requests all stand at their own addresses: a trace
of all blocks has one for those that cost the same, and after a change they may not.
"""

from __future__ import annotations

from dataclasses import replace

from memsim.analysis import BADLY_COALESCED, Analysis, SiteCounts, analyze_trace
from memsim.api import running
from memsim.job import Job
from memsim.trace.trace_source import TraceFile

MOST_REQUESTS = 20_000  # of a block; beyond this it is not looked at


def first_block(job: Job, analysis: Analysis) -> Analysis | None:
    """Block 0 alone; None if its global accesses waste nothing, are too many, or a trace was saved."""
    badly = [site for site in analysis.sites if is_badly_coalesced(site)]
    made = sum(site.requests or 0 for site in analysis.sites if site.space == "global")
    if not badly or isinstance(job.kernel, TraceFile):
        return None
    if made > MOST_REQUESTS * analysis.trace.blocks_replayed:
        return None
    return analyze_trace(running.trace_job(replace(job, blocks=1), everywhere=True), job.arch)


def is_badly_coalesced(site: SiteCounts) -> bool:
    """Whether a quarter or more of what a row of global loads or stores moves is not needed."""
    if site.space != "global" or site.op not in ("load", "store") or not site.sectors:
        return False
    return site.sectors - (site.ideal_sectors or 0) >= BADLY_COALESCED * site.sectors
