"""Runs a launch for its errors: the same slice as for an analysis, heard by what looks for races."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memsim.access import AccessSide, Site
from memsim.api.running import blocks_of, execute_job
from memsim.errors import MemsimError
from memsim.isa.executable import Executable
from memsim.isa.op import Flow
from memsim.isa.program import SHARED
from memsim.job import Job
from memsim.launch import Launch
from memsim.sanitize.describe import Description
from memsim.sanitize.hazards import Hazard
from memsim.sanitize.race_listener import RaceListener
from memsim.sanitize.shared_races import TooManyClasses
from memsim.simt.launch_checks import cluster_of
from memsim.simt.order_of_launch import NARROW
from memsim.simt.spins import swap_loops
from memsim.state.poison import Poison

#: Threads that run at once where the blocks differ so much that what is kept of each would not fit.
FEWER_THREADS = 1 << 14


@dataclass(frozen=True)
class Sanitized:
    """What was found in a launch: findings, worst first. unjudged: what was not executed or is not known, in
    words.
    """

    kernel: str
    launch: Launch
    blocks_run: int
    findings: tuple[Hazard, ...]
    unjudged: tuple[str, ...]
    sources: Mapping[str, str]

    @property
    def errors(self) -> tuple[Hazard, ...]:
        """Those that are not allowed."""
        return tuple(one for one in self.findings if one.allowed is None)


def sanitize_job(job: Job, progress: Callable[[float], None] | None = None) -> Sanitized:
    """The errors of a job with machine code.

    Raises:
        MemsimError: there is no machine code, or whatever goes wrong in the kernel that is no finding.
    """
    kernel, launch, chosen = job.loaded, job.launch, blocks_of(job)
    program = kernel.executable.program
    for limit in (None, FEWER_THREADS, 1):
        races, ears = RaceListener(*_setting(kernel.executable, launch)), _Ears()
        ears.races = races
        try:
            memory = execute_job(
                job, ears, progress, everything=False, blocks=chosen, order=races, chunk_threads=limit
            )
            races.finish()
            break
        except TooManyClasses:
            continue
    else:
        raise MemsimError("the blocks of this launch need more shared memory than can be followed")
    said = Description(program, memory.layouts[SHARED], kernel.sources)
    found = [said.race(pair, example) for pair, example in races.found.items()]
    found.sort(key=lambda one: (bool(one.doubt), one.lines, one.array))
    blocks = launch.blocks if chosen is None else len(chosen)
    return Sanitized(kernel.title, launch, blocks, tuple(found), tuple(sorted(ears.unjudged)), kernel.sources)


def _setting(executable: Executable, launch: Launch) -> tuple[int, bool, frozenset[int]]:
    """Bytes of the smallest access to shared memory, whether blocks access that of others, and the loads
    that are a part of an atomic made of a loop.
    """
    program = executable.program
    shared = [op for op in program.ops if any(space in (SHARED, "generic") for _, space in op.touches)]
    unit = min((NARROW.get(name, 4) for op in shared for name in op.form.modifiers), default=4)
    loads = frozenset(loop.load.index for loop in swap_loops(program.ops))
    met = any(op.flow in (Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER) for op in program.ops)
    return unit, met or cluster_of(executable, launch) not in (None, (1, 1, 1)), loads


class _Ears:
    """Hears the accesses of a launch and tells those that look for errors."""

    races: RaceListener

    def __init__(self) -> None:
        self.unjudged: set[str] = set()

    def access(
        self, site: Site, address: Any, mask: Any, active: Any, arrays: Any, other: AccessSide | None = None
    ) -> Callable[[], bool] | None:
        """Lanes `active` access memory."""
        return self.races.shared_access(site, address, active) if site.space == "shared" else None

    def unknown(self, site: Site, poison: Poison, mask: Any, active: Any) -> None:
        """Lanes access unknown addresses."""
        said = f"the {site.access} at {site.instruction.where} has unknown addresses: {poison.story()}"
        self.unjudged.add(said)

    def uncertain(self, what: str) -> None:
        """Of costs: no error."""

    def passed_by(self, where: str) -> None:
        """Lanes that may or may not execute what follows a branch."""
        self.unjudged.add(f"whether lanes execute what follows the branch at {where} is unknown")

    def ignore(self, *event: Any) -> None:
        """Nothing to hear."""

    start_chunk = scattered = stretches = issued = uncounted = noted = executed = ignore
