"""What is told of a launch's estimated time, in a line: how long it takes and what its warps wait for, or why
that is not known.

`memsim/time` makes the estimate, with all that it says of each instruction; this is what reports, documents,
sweeps, comparisons and budgets read of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from memsim.bound import percent
from memsim.document import Count, Texts
from memsim.launch import Natural

#: ncu's reasons why a warp does not issue, in words after "waits".
REASONS = {
    "long_scoreboard": "for global or local memory",
    "short_scoreboard": "for shared memory",
    "barrier": "at the barrier",
    "mio_throttle": "for room in the queue to shared memory",
    "lg_throttle": "for room in the queue to global or local memory",
    "math_pipe_throttle": "for a busy arithmetic unit",
    "wait": "for results of fixed latency",
    "not_selected": "for other warps to be issued",
    "dispatch_stall": "for operands from register banks",
    "no_instruction": "for instructions to be fetched",
    "branch_resolving": "for branches",
    "membar": "at fences",
    "imc_miss": "for constants",
}
#: Reasons that the line tells, at most, and of which share of the warps' time.
MOST_REASONS, WORTH_A_WORD = 2, 0.1
#: What an estimate is without a unit.
NOT_MODELLED = "not modelled, so it may be far off, mostly too short, by how much nobody measured"
#: A line that has less of a reason's cycles than this is only where warps wait longest.
MAINLY = 0.9
Share = Annotated[float, Meta(ge=0, le=1)]
#: How long an estimate may take: a fraction of a second, as a line of a report, or as `memsim time`.
Effort = Literal["quick", "whole"]


@dataclass(frozen=True, slots=True)
class StallShare:
    """A reason for which warps wait, by ncu's name, and the source line that waits for it most; 0: not known.

    share: of the time of all warps. of_line: share of the line in it.
    """

    reason: str
    share: Share
    line: Natural
    of_line: Share

    @property
    def words(self) -> str:
        """`for shared memory (line 53)`, after "waits"."""
        words = REASONS.get(self.reason, f"for {self.reason}")
        if not self.line:
            return words
        return f"{words} ({'' if self.of_line >= MAINLY else 'most at '}line {self.line})"


@dataclass(frozen=True, slots=True)
class EstimatedTime:
    """The estimated time of a launch.

    cycles: of ncu's `sm__cycles_active.max`. elapsed: of its `sm__cycles_elapsed.max`. seconds: of these at
    the chip's clock, in Hz. All None if there is no estimate; `unknown` says why. error: the median one of
    cycles, as measured (docs/time-accuracy.md). waiting: what its warps wait for, most first. lacks: what is
    not modelled.
    """

    cycles: Count = None
    elapsed: Count = None
    seconds: float | None = None
    clock: float = 0.0
    l2: Literal["cold", "warm"] = "cold"
    error: Share = 0.0
    waiting: tuple[StallShare, ...] = ()
    lacks: Texts = ()
    unknown: str = ""

    @property
    def verdict(self) -> str:
        """The answer in a line."""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        if self.cycles is None or self.seconds is None:
            yield f"not estimated: {self.unknown}"
            return
        yield (
            f"about {rounded_cycles(self.cycles)} cycles, {duration(self.seconds)} with the launch, at "
            f"{self.clock / 1e6:,.0f} MHz (an estimate, typically within {percent(self.error)})"
        )
        if self.lacks:
            yield f"{NOT_MODELLED}: {', '.join(self.lacks)}"
        told = [one for one in self.waiting[:MOST_REASONS] if one.share >= WORTH_A_WORD]
        shares = [f"{percent(one.share)}{'' if at else ' of warp time waits'}" for at, one in enumerate(told)]
        if told:
            yield ", ".join(f"{share} {one.words}" for share, one in zip(shares, told))


def time_change(before: EstimatedTime | None, after: EstimatedTime | None) -> str:
    """`9.0 us -> 5.3 us, 41 % less (estimates)`; "" unless both are estimated."""
    if before is None or after is None or before.seconds is None or after.seconds is None:
        return ""
    less = 1 - after.seconds / before.seconds
    error = max(before.error, after.error)
    change = f"{percent(abs(less))} {'less' if less > 0 else 'more'}" if less else "the same"
    within = "; within their error of" if 0 < abs(less) <= error else ", typically within"
    return (
        f"about {duration(before.seconds)} -> {duration(after.seconds)}, {change} "
        f"(estimates{within} {percent(error)})"
    )


def rounded_cycles(cycles: int) -> str:
    """`361,000`: three digits, as an estimate has no more."""
    return f"{float(f'{cycles:.3g}'):,.0f}"


def duration(seconds: float) -> str:
    """`9.0 us`, `0.18 ms`, `120 s`: two digits before it is long."""
    units = (("s", seconds), ("ms", 1e3 * seconds), ("us", 1e6 * seconds))
    unit, number = next((one for one in units if one[1] >= 0.0995), units[-1])
    return f"{f'{number:#.2g}'.removesuffix('.') if number < 99.5 else f'{number:,.0f}'} {unit}"
