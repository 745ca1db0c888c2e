"""The first races in shared memory that a launch shows while its accesses are counted.

To look at all accesses takes as long as to count them; most races show in the first turns of a loop. So only
these are looked at, and nothing is said of a launch in which they show none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from memsim.access import Again, Listener, Site, SiteAccess
from memsim.isa.program import SHARED, Executable, Program, spaces_read, spaces_written
from memsim.launch import Launch
from memsim.order.order_listener import OrderListener
from memsim.sanitizer.contents import ContentDoubts
from memsim.sanitizer.describe import Description
from memsim.sanitizer.examples import Pair
from memsim.sanitizer.hazards import Hazard, by_lines
from memsim.sanitizer.race_listener import RaceListener, setting_of
from memsim.sanitizer.shared_races import TooManyClasses
from memsim.source.text import code_line
from memsim.state.parts import Mask
from memsim.state.predicates import to_bools
from memsim.state.registers import Sum
from memsim.state.sums import Int
from memsim.trace.trace_data import SeenRace

#: Accesses, of an instruction by all threads, that are looked at.
MOST_ACCESSES = 1 << 14
#: Of these, threads that are looked at one by one, as each has an address of its own, or takes part or not.
MOST_THREADS = 1 << 19
#: What an analysis leaves out if there are more.
LIMIT = "races behind the first accesses to shared memory (memsim sanitize looks at all)"

T = TypeVar("T")


def may_race(program: Program) -> bool:
    """Whether a program stores to shared memory and loads from there."""
    ops = program.ops
    return any(SHARED in spaces_written(op) for op in ops) and any(SHARED in spaces_read(op) for op in ops)


class FirstRaces(OrderListener):
    """Hears the first accesses, and what orders them. limits: what is left out, in words."""

    def __init__(self, executable: Executable, launch: Launch) -> None:
        self._program = executable.program
        self._races = RaceListener(*setting_of(executable, launch))
        self._left, self._threads = MOST_ACCESSES, MOST_THREADS
        self.limits: set[str] = set()
        for event, nothing in vars(OrderListener).items():
            if not event.startswith("_") and getattr(RaceListener, event) is not nothing:
                setattr(self, event, partial(self._hear, getattr(self._races, event)))

    def _hear(self, tell: Callable[..., T], *event: object) -> T | None:
        """The answer to an event, if it still matters."""
        if self._left > 0:
            try:
                return tell(*event)
            except TooManyClasses:
                self._left = 0
                self.limits = {LIMIT}
        return None

    def shared_access(self, site: Site, address: Int, active: Mask) -> Again | None:
        """Lanes access shared memory; returns what tells the same again."""
        threads = to_bools(active).size
        if isinstance(address, Sum) and address.f is not None:
            threads = max(threads, address.f.array.size)
        again = self._hear(self._races.shared_access, site, address, active)
        self._count(threads)
        return None if again is None else partial(self._once_more, again, threads)

    def _once_more(self, again: Again, threads: int) -> bool:
        self._hear(again)
        self._count(threads)
        return True

    def _count(self, threads: int) -> None:
        self._threads -= threads
        if self._left <= 0 or self._threads < 0:  # those since the last barrier are not compared, either
            self._left = 0
            self.limits = {LIMIT}
        if self._left == 1:
            self._hear(self._races.finish)
        self._left -= 1

    def seen(self, sources: Mapping[str, str], contents: ContentDoubts) -> tuple[SeenRace, ...]:
        """Those that are certain, by line, once the launch has ended. contents: that may decide them."""
        self._hear(self._races.finish)
        pairs = [(pair, one) for pair, one in self._races.found.items() if isinstance(pair, Pair)]
        if not pairs:
            return ()
        said = Description(self._program, sources, self._races.layout)
        hazards = sorted(by_lines([said.race(*one) for one in pairs]), key=lambda one: one.rank)
        return tuple(_seen(one, sources) for one in hazards if not one.doubt and not contents.doubt(one))


class Overheard(Listener):
    """A listener to a launch, whose accesses to shared memory `FirstRaces` hears, too."""

    def __init__(self, listener: Listener, races: FirstRaces) -> None:
        self._listener, self._races = listener, races
        for event in vars(Listener):
            if not event.startswith("_") and event != "access":
                setattr(self, event, getattr(listener, event))

    def access(self, made: SiteAccess) -> Again | None:
        """As `Listener.access`."""
        again = self._listener.access(made)
        if made.site.space != SHARED:
            return again
        heard = self._races.shared_access(made.site, made.address, made.active)
        if again is None or heard is None:
            return again
        count, hear = again, heard
        return lambda: count() and hear()


def _seen(hazard: Hazard, sources: Mapping[str, str]) -> SeenRace:
    (file, line), places = hazard.places[-1], hazard.places
    first, second = (code_line(sources.get(one, ""), at) for one, at in places)
    one, other = hazard.accesses
    does = one.does, other.does
    return SeenRace(file, line, hazard.array, hazard.line, (first, second), hazard.element, does)
