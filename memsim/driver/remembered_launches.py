"""Launches that were made before: a launch is a function of its code, its parameters and memory, and so its
effect can be remembered. Programs that measure themselves launch the same again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from memsim.access import Listener, SiteAccess
from memsim.driver.program_memory import ALIGNMENT, ProgramMemory
from memsim.interpreter.seen_order import reads_clock
from memsim.isa.control import DRIVER_FUNCTIONS
from memsim.isa.op import Flow
from memsim.job import Job
from memsim.kernel import Kernel
from memsim.simt.accesses import only_reads
from memsim.simt.memory_layout import WORKSPACE
from memsim.state.address_spaces import Buffer, align

#: Bytes that a launch accesses, in whole allocations, up to which it is remembered; what it only reads does
#: not count if the calls and kernels that write it are known.
MOST_MEMORY = 1 << 28
#: Bytes that are kept in all; what was not used for the longest time goes first.
MOST_KEPT = 1 << 30
#: Executions of a launch after which it is not looked at any more, if none found memory as one before it.
PATIENCE = 8
#: Bytes that are compared at once: they and their copy are in the processor's cache.
PIECE = 1 << 19
#: Functions of the driver with effects of their own.
EFFECTS = frozenset({"vprintf", "malloc", "free"})


class AllocationListener(Listener):
    """Listens which allocations a launch accesses, and writes, by their names. is_whole: it may be any."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.written: set[str] = set()
        self.is_whole = False

    def access(self, made: SiteAccess) -> None:
        """Allocations in global memory; a texture does not say which one it is in."""
        site = made.site
        if site.space == "global":
            self.names |= made.arrays
            if not only_reads(site.access, site.space):
                self.written |= made.arrays
        elif site.space == "texture":
            self.is_whole = True

    def any_memory(self, *event: object) -> None:
        """Accesses to places that are not known, and copies by TMA, whose description may be in memory."""
        self.is_whole = True

    def may_write(self, buffer: Buffer) -> bool:
        """Whether it may have written an allocation."""
        return self.is_whole or buffer.name in self.written

    scattered: Callable[..., None] = any_memory
    stretches: Callable[..., None] = any_memory
    unknown: Callable[..., None] = any_memory
    uncounted: Callable[..., None] = any_memory

    def allocations(self, memory: ProgramMemory) -> list[Buffer]:
        """What it accessed of a program's memory."""
        return [
            one
            for one in memory.layout.buffers
            if (self.is_whole or one.name in self.names) and one.name != WORKSPACE
        ]


@dataclass
class AllocationEffect:
    """An allocation that a launch accesses: its bytes before, the places of those that it changed, in units
    of ALIGNMENT, and these after it.

    was, becomes: what `ProgramMemory.contents` has for it before and after; before: None if that is enough.
    """

    start: int
    end: int
    before: np.ndarray | None
    changed: np.ndarray
    after: np.ndarray
    was: object | None
    becomes: object | None

    def is_in(self, memory: ProgramMemory) -> bool:
        """Whether it is in memory as it was before."""
        contents = memory.contents.get(self.start)
        if contents is not None and contents is self.was:
            return True
        there = memory.layout.at(self.start)
        if self.before is None or there is None or there.end != self.end:
            return False
        now = whole(memory, there)
        is_same = all(
            np.array_equal(now[i : i + PIECE].view(np.uint64), self.before[i : i + PIECE].view(np.uint64))
            for i in range(0, len(now), PIECE)
        )
        if is_same:
            self.was = contents
        return is_same

    def restore(self, memory: ProgramMemory) -> None:
        """Changes it as the launch did."""
        if len(self.changed):
            units(whole(memory, self))[self.changed] = self.after
            if self.becomes is not None:
                memory.contents[self.start] = self.becomes


@dataclass
class Known:
    """What is known of a launch. effects: by what it finds; misses: executions since one was found."""

    accessed: AllocationListener
    effects: list[tuple[AllocationEffect, ...]] = field(default_factory=list)
    misses: int = 0

    @property
    def kept(self) -> int:
        """Bytes of it."""
        arrays = (one for effect in self.effects for part in effect for one in (part.before, part.after))
        return sum(one.size for one in arrays if one is not None)


class RememberedLaunches:
    """The effects of launches, by what decides them: what they access, in whole allocations.

    The first launch with its parameters tells what that is: most are made once. The second is remembered, and
    those after it are not executed if they find what it found.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        self._kept = 0

    def execute(
        self,
        job: Job,
        memory: ProgramMemory,
        constants: Mapping[int, bytes],
        run: Callable[[AllocationListener], None],
    ) -> bool:
        """Executes a launch by `run`, or does what it did before; whether it did that."""
        said = (job.loaded.key, job.loaded.name, job.launch, list(map(bytes, job.args)), constants)
        launch = blake2b(repr(said).encode()).digest()
        known = self._known.pop(launch, None)
        if known is None:
            accessed = execute(run, memory)
            if is_function_of_memory(job.loaded):
                self._known[launch] = Known(accessed)
            return False
        self._known[launch] = known  # it was used last
        for effect in known.effects:
            if all(part.is_in(memory) for part in effect):
                for part in effect:
                    part.restore(memory)
                known.misses = 0
                return True
        buffers = known.accessed.allocations(memory)
        copied = buffers
        if size_of(buffers) > MOST_MEMORY:
            copied = [
                one for one in buffers if known.accessed.may_write(one) or one.start not in memory.contents
            ]
        if known.misses > PATIENCE or size_of(copied) > MOST_MEMORY:
            self._kept -= known.kept
            known.effects = []
            execute(run, memory)
            return False
        known.misses += 1
        starts = {one.start for one in copied}
        before = [
            (one, whole(memory, one).copy() if one.start in starts else None, memory.contents.get(one.start))
            for one in buffers
        ]
        accessed = execute(run, memory)
        is_kept = all(one.start in starts for one in buffers if accessed.may_write(one))
        if is_kept and set(accessed.allocations(memory)) <= set(buffers):
            self._keep(known, tuple(effect_on_allocation(memory, accessed, *one) for one in before))
        known.accessed = accessed
        return False

    def _keep(self, known: Known, effect: tuple[AllocationEffect, ...]) -> None:
        """Adds an effect; what was not used for the longest time makes room for it."""
        self._kept -= known.kept
        known.effects = [effect, *known.effects[: PATIENCE - 1]]
        self._kept += known.kept
        for other in self._known.values():
            if self._kept <= MOST_KEPT:
                break
            self._kept -= other.kept
            other.effects = []


def execute(run: Callable[[AllocationListener], None], memory: ProgramMemory) -> AllocationListener:
    """Executes a launch: what it accessed."""
    accessed = AllocationListener()
    try:
        run(accessed)
    finally:
        memory.lose(None if accessed.is_whole else accessed.written)
    return accessed


def size_of(buffers: list[Buffer]) -> int:
    """Bytes of allocations."""
    return sum(one.end - one.start for one in buffers)


def whole(memory: ProgramMemory, buffer: Buffer | AllocationEffect) -> np.ndarray:
    """An allocation's bytes in place, up to the next one's alignment, uint8."""
    return memory.view(buffer.start, align(buffer.end - buffer.start, ALIGNMENT))


def units(array: np.ndarray) -> np.ndarray:
    """Bytes as rows of ALIGNMENT."""
    return array.reshape(-1, ALIGNMENT)


def effect_on_allocation(
    memory: ProgramMemory,
    accessed: AllocationListener,
    buffer: Buffer,
    before: np.ndarray | None,
    was: object | None,
) -> AllocationEffect:
    """What a launch did to an allocation that had these bytes before."""
    after, places = units(whole(memory, buffer)), np.zeros(0, np.int64)
    if before is not None and accessed.may_write(buffer):
        places = (after.view(np.uint64) != units(before).view(np.uint64)).any(axis=1).nonzero()[0]
    if not len(places) and was is not None:
        memory.contents[buffer.start] = was
    becomes = memory.contents.get(buffer.start)
    return AllocationEffect(buffer.start, buffer.end, before, places, after[places], was, becomes)


def called_by(kernel: Kernel) -> frozenset[str]:
    """The functions of the driver that a kernel may call: those of its module, if it calls any."""
    if not any(op.flow is Flow.CALL for op in kernel.executable.program.ops):
        return frozenset()
    image = kernel.machine.image
    symbols = {one.symbol for one in image.relocations} | {one.symbol for one in image.pointers.get(4, ())}
    return DRIVER_FUNCTIONS & symbols


def is_function_of_memory(kernel: Kernel) -> bool:
    """Whether what a kernel does is decided by its parameters and memory, and is all in memory."""
    if called_by(kernel) & EFFECTS:
        return False
    return not reads_clock(kernel.executable.program.ops)
