"""One launch in parts: its blocks are divided among processes, each of which records what its blocks do, and
the records are put together to the trace that one process makes.

That needs blocks that run apart from each other with the same counts: none may decide what another accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from memsim.api.running import (
    Progress,
    blocks_of,
    prepared_launch,
    recorder_of,
    run_blocks,
    trace_job,
    trace_of_launch,
)
from memsim.job import Job
from memsim.simt.prepared_launch import Heard, PreparedLaunch
from memsim.trace.merge import RecordedBlocks, merge, recorded_blocks
from memsim.trace.trace import Trace, TraceSource
from memsim.trace.trace_data import SeenRace
from memsim.workers import in_processes


@dataclass(frozen=True, slots=True)
class PartOfLaunch:
    """What the blocks of a part did."""

    recorded: RecordedBlocks
    heard: Heard
    races: tuple[SeenRace, ...]


@dataclass(frozen=True)
class CutLaunch:
    """A launch in parts, which runs one of them when it is called.

    ends: of each part, among the blocks that are to be replayed. at_once: blocks that run at once. apart: as
    `trace_job`.
    """

    job: Job
    ends: tuple[int, ...]
    at_once: int
    apart: bool

    def __getstate__(self) -> dict[str, object]:
        """Another process prepares the launch itself; a forked one has it."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def launch(self) -> PreparedLaunch:
        """Ready to run."""
        return prepared_launch(self.job, everything=False)

    def __call__(self, number: int, progress: Progress | None = None) -> PartOfLaunch:
        first, end = (0, *self.ends)[number : number + 2]
        chosen = blocks_of(self.job)
        blocks = np.arange(first, end) if chosen is None else chosen[first:end]
        recorder = recorder_of(self.job, apart=self.apart)
        heard, races = run_blocks(self.job, self.launch, recorder, blocks, progress, self.at_once)
        return PartOfLaunch(recorded_blocks(recorder), heard, races)

    def together(self, parts: Sequence[PartOfLaunch]) -> Trace:
        """The trace of the launch, from all of its parts in order."""
        recorder, heard = recorder_of(self.job, apart=self.apart), Heard()
        merge(recorder, [part.recorded for part in parts])
        races: dict[str, SeenRace] = {}
        for part in parts:
            heard.add(part.heard)
            for race in part.races:
                races.setdefault(race.text.removeprefix(race.element), race)
        return trace_of_launch(self.job, self.launch, recorder, heard, tuple(races.values()))


def cut_launch(job: Job, most: int, *, apart: bool = False) -> CutLaunch | str:
    """A launch in at most so many parts; or why it is not divided, in words.

    Raises:
        MemsimError: as `trace_job`.
    """
    if isinstance(job.kernel, TraceSource):
        return "it has no machine code"
    launch, chosen = prepared_launch(job, everything=False), blocks_of(job)
    why = launch.why_together()
    if why:
        return why
    count = job.launch.blocks if chosen is None else len(chosen)
    at_once = launch.blocks_at_once(count, tries=chosen is None)
    # Blocks that are alike are executed as one: that takes as long for a part of them as for all.
    together = at_once if launch.is_regular else launch.whole_clusters(1)
    pieces = -(-count // together)
    parts = min(most, pieces)
    if parts == 1:
        return "all blocks do the same, at once" if launch.is_regular else "it is one block, or one cluster"
    ends = tuple(min(count, (number + 1) * pieces // parts * together) for number in range(parts))
    cut = CutLaunch(job, ends, at_once, apart)
    vars(cut)["launch"] = launch
    return cut


def trace_shared(
    job: Job,
    progress: Progress | None = None,
    *,
    parts: int,
    jobs: int,
    apart: bool = False,
    tell: Callable[[str], None] = lambda why: None,
) -> Trace:
    """As `trace_job`, in at most so many parts, by so many processes at once.

    `tell`: is told why it is done by this process alone.

    Raises:
        MemsimError: as `trace_job`, or processes die.
    """
    cut = cut_launch(job, parts, apart=apart) if parts > 1 else ""
    if isinstance(cut, str):
        if cut:
            tell(cut)
        return trace_job(job, progress, apart=apart)
    return cut.together(in_processes(cut, range(len(cut.ends)), jobs, progress))
