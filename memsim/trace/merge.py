"""Traces of parts of a launch, recorded apart from each other, as one: what was recorded, to be sent, and put
together again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from memsim.access import Site, SiteRequests
from memsim.instruction import Instruction
from memsim.trace.events import Executions
from memsim.trace.footprint import MarkedSectors
from memsim.trace.record import Recorder
from memsim.trace.site_records import SiteRecord, SiteTotals


@dataclass
class RecordedSite(SiteTotals):
    """What was recorded of a site. times: how often each of its distinct requests was made."""

    site: Site
    distinct: SiteRequests
    times: np.ndarray
    folded: bool


@dataclass(frozen=True, slots=True)
class RecordedBlocks:
    """All that a recorder has of some blocks of a launch; the fields are those of `Recorder`."""

    sites: dict[int, RecordedSite]
    uncounted_requests: Counter[str]
    noted_requests: Counter[str]
    uncertain_reasons: frozenset[str]
    passed_branches: frozenset[str]
    remarks: frozenset[str]
    executions: Executions
    writers: np.ndarray
    swapped_meet: bool
    sectors: MarkedSectors


def recorded_blocks(recorder: Recorder) -> RecordedBlocks:
    """What a recorder has recorded, once its blocks have ended."""
    recorder.forget()
    return RecordedBlocks(
        sites={index: _recorded_site(record) for index, record in recorder.sites.items()},
        uncounted_requests=recorder.uncounted_requests,
        noted_requests=recorder.noted_requests,
        uncertain_reasons=frozenset(recorder.uncertain_reasons),
        passed_branches=frozenset(recorder.passed_branches),
        remarks=frozenset(recorder.remarks),
        executions=recorder.executions,
        writers=recorder.writers.threads,
        swapped_meet=recorder.swapped.meet,
        sectors=recorder.marks.sectors_so_far,
    )


def _recorded_site(record: SiteRecord) -> RecordedSite:
    plain = record.site.instruction  # an `Op` has functions, which cannot be sent
    return RecordedSite(
        site=replace(record.site, instruction=Instruction(plain.text, plain.source, plain.address)),
        distinct=record.rows.requests(),
        times=record.rows.counts,
        folded=record.rows.folded,
        **{one.name: getattr(record, one.name) for one in fields(SiteTotals)},
    )


def merge(recorder: Recorder, parts: Sequence[RecordedBlocks]) -> None:
    """Adds to a recorder what others recorded of parts of a launch, given in the order of their blocks.

    Site by site: whether many requests hardly repeat is seen from those of all parts.
    """
    for index in sorted({index for part in parts for index in part.sites}):
        for part in parts:
            if index in part.sites:
                _add_site(recorder, part.sites[index])
    for part in parts:
        recorder.uncounted_requests.update(part.uncounted_requests)
        recorder.noted_requests.update(part.noted_requests)
        recorder.uncertain_reasons |= part.uncertain_reasons
        recorder.passed_branches |= part.passed_branches
        recorder.remarks |= part.remarks
        recorder.executions.add_others(part.executions)
        recorder.swapped.meet |= part.swapped_meet
        recorder.marks.add(part.sectors)
    if parts:
        recorder.writers.threads = parts[0].writers  # the first block's


def _add_site(recorder: Recorder, found: RecordedSite) -> None:
    record = recorder.record(found.site)
    if found.folded and not record.rows.folded:
        recorder.fold(record)
    if len(found.distinct):
        tally = recorder.count_rows(record, found.distinct, found.times)
        record.rows.add_counts(tally.rows, tally.counts)
    record.add(found)
    recorder.keep_bounded(record)
