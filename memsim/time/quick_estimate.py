"""The estimate of a launch's time that other verbs tell in a line, in a bounded number of steps.

A launch in which a state comes back soon takes a fraction of a second. Of one that does not, what is left
then is extrapolated, and one that takes more than about two seconds to prepare is not estimated here, so that
no report waits long for a line of it. `memsim time` goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memsim.errors import MemsimError
from memsim.estimated_time import Effort, EstimatedTime, StallShare
from memsim.job import Job
from memsim.state.launch_memory import Memory
from memsim.time.behind_l1 import COLD, WARM
from memsim.time.launch_survey import Patience
from memsim.time.launch_time import PROJECTS_ERROR, LaunchTime
from memsim.time.predict_time import PreparedTime
from memsim.trace.trace import Trace, TraceSource

#: Instructions that are issued one after the other before the rest is extrapolated: about half a second.
#: Measured: the 19 kernels of the catalogue that are longer are 4 % off in the mean (docs/time.md).
MOST_ISSUES = 130_000
#: Lines of L1 that the replayed blocks ask for, of which each is looked up in turn: about a second.
MOST_LINES = 500_000
#: Stretches of instructions that are replayed before: about a second.
MOST_STRETCHES = 20_000
TAKES_LONG = "it takes longer than this report; `memsim time` does it"
#: Of warps that do not wait: they issue.
ISSUED = "selected"


def estimate(
    job: Job,
    whole: Trace | None = None,
    effort: Effort = "quick",
    new_memory: Callable[[], Memory] | None = None,
    l2: str = COLD,
) -> EstimatedTime | None:
    """The time of a launch in a line, or why it is not estimated; None: it has no machine code.

    whole: its trace, if there is one already. new_memory: as in `PreparedTime`. l2: "cold" or "warm".
    """
    if isinstance(job.kernel, TraceSource) or job.loaded.resources is None:
        return None
    try:
        if effort == "whole":
            return estimated_time(PreparedTime(job, whole, new_memory).predict(l2))
        prepared = PreparedTime(job, whole, new_memory, Patience(MOST_STRETCHES, TAKES_LONG))
        if prepared.looked_up > MOST_LINES:
            return EstimatedTime(unknown=TAKES_LONG)
        return estimated_time(prepared.predict(l2, most_issues=MOST_ISSUES, most_whole=0))
    except MemsimError as error:
        return EstimatedTime(unknown=error.message)


def estimated_time(time: LaunchTime) -> EstimatedTime:
    """What is told in a line of an estimate."""
    return EstimatedTime(
        cycles=time.cycles,
        elapsed=time.elapsed,
        seconds=time.seconds,
        clock=time.clock,
        l2="warm" if time.l2 == WARM else "cold",
        error=PROJECTS_ERROR,
        waiting=tuple(_waiting(time)),
        lacks=time.lacks,
    )


def _waiting(time: LaunchTime) -> Iterator[StallShare]:
    """The reasons for which warps wait, most cycles first, each with its line."""
    stalls, lines = time.stalls, time.stalls_by_line()
    total = sum(stalls.values())
    for reason, cycles in stalls.items():
        if reason != ISSUED:
            (_, line), most = max(
                ((at, of.get(reason, 0)) for at, of in lines.items()), key=lambda one: one[1]
            )
            yield StallShare(reason, cycles / total, line, most / cycles)
