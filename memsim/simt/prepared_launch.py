"""Executes a launch: matches the arguments, lays out memory, and runs the blocks chunk by chunk.

Before many of them run at once, a few tell whether their accesses are regular.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from memsim.access import Listener, SiteAccess
from memsim.arch import Arch
from memsim.arch.units import WARP
from memsim.argument_types.launch_arguments import check_arguments
from memsim.errors import MemsimError
from memsim.isa.op import Flow, Trait
from memsim.isa.program import GLOBAL, Executable, Op, Program, spaces_read
from memsim.launch import Launch
from memsim.names.demangle import demangle
from memsim.order.order_listener import OrderListener, Race
from memsim.simt.bounds import Origins
from memsim.simt.code import Code
from memsim.simt.engine import Engine
from memsim.simt.faults import KernelFault, check_chip, check_launch, check_shared
from memsim.simt.launch_code import code_of_launch
from memsim.simt.launch_places import LoadedValues, reasons_of_places
from memsim.simt.memory_layout import check_grid, is_cooperative, memory_of
from memsim.simt.order_of_launch import listener_of_global, listener_of_shared, reasons_of_races
from memsim.simt.waits import whole_clusters
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poisoned
from memsim.state.registers import Sum


def are_regular(code: Code, memory: Memory, origins: Origins, launch: Launch, max_steps: int) -> bool:
    """Whether the blocks at both ends of the grid are regular, where guards leave some threads out.

    Blocks far from each other are tried apart, as addresses in two words are sums only within 4 GiB.
    memory: of its own for this trial.
    """
    ears = RegularAccesses()
    tried = Engine(code, memory, origins, launch, ears, max_steps)
    for end in (0, 1):
        x, y, z = np.meshgrid(*(_two(number, end) for number in launch.grid), indexing="ij")
        try:
            tried.run(np.sort((x + launch.grid[0] * (y + launch.grid[1] * z)).ravel()))
        except MemsimError:  # the launch itself says which block it is
            return False
        if not (ears.are_regular and memory.is_unused):
            return False
    return True


def _two(number: int, end: int) -> np.ndarray:
    """The first or the last two of a number of blocks."""
    return np.unique((0, min(1, number - 1)) if end == 0 else (max(0, number - 2), number - 1))


class RegularAccesses(Listener):
    """A listener for the blocks.

    are_regular: every address was a sum of a block's part and a thread's part, and which lanes executed an
    instruction or accessed memory depended on the block or on the thread, but not on both.
    """

    def __init__(self) -> None:
        self.are_regular = True

    def access(self, made: SiteAccess) -> None:
        """Look at the address and the lanes."""
        for place, lanes in made.sides:
            if (isinstance(place, Sum) and place.f is not None) or _is_of_each_thread(lanes):
                self.are_regular = False

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Look at the lanes that execute something."""
        if _is_of_each_thread(mask):
            self.are_regular = False

    def irregular(self, *event: object) -> None:
        """Accesses of single lanes, and copies that are known warp by warp."""
        self.are_regular = False

    scattered: Callable[..., None] = irregular
    stretches: Callable[..., None] = irregular


def _is_of_each_thread(lanes: Mask) -> bool:
    return isinstance(lanes, Part) and min(lanes.shape) > 1


# --- launches --------------------------------------------------------------------------------

#: Threads that run at once. Results need every value in every thread, a trace only few of them.
RUN_THREADS = 1 << 15
TRACE_THREADS = 1 << 20
#: Blocks that run at once if all addresses are sums of a block's part and a thread's part, and all blocks
#: take the same way: an instruction then costs the same for any number of blocks. It is tried with a few
#: blocks if the launch has at least so many chunks otherwise.
REGULAR_BLOCKS = 1 << 14
WORTH_TRYING = 8
#: With divergence, each thread has its own values; larger chunks take more memory and are no faster.
APART_THREADS = 1 << 19

#: Bytes of an array that is allocated and freed once: from then on glibc serves smaller arrays from its heap,
#: and trims it only above twice as much (mallopt(3), M_MMAP_THRESHOLD). Otherwise temporaries of some hundred
#: KB spend most of their time in page faults.
KEPT_HEAP = 1 << 24

#: Instructions that a chunk of blocks may execute, counted for each group of its threads, before it
#: counts as endless. The longest kernel of the catalogue needs 620 thousand at 4096 cubed.
MAX_STEPS = 5_000_000


@dataclass
class Heard:
    """What became known of a launch as blocks of it ran, from which follows why counts are uncertain.

    blocks: so many. reached: the instructions that warps came to. constants, pointers: as `LoadedValues`.
    met, moved: as `Margins`.
    depends, reads_back: as `GlobalOrder`. races, reach: as `SharedListener`.
    """

    blocks: int = 0
    reached: set[int] = field(default_factory=set)
    constants: dict[int, set[int]] = field(default_factory=dict)
    pointers: dict[tuple[int, int], dict[Hashable, str]] = field(default_factory=dict)
    met: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    depends: bool = False
    reads_back: bool = False
    races: dict[Race, None] = field(default_factory=dict)
    reach: dict[int, tuple[int, int]] = field(default_factory=dict)

    def add(self, other: Heard) -> None:
        """What became known of other blocks."""
        self.blocks += other.blocks
        self.reached |= other.reached
        for load, places in other.constants.items():
            self.constants.setdefault(load, set()).update(places)
        for pair, pointers in other.pointers.items():
            self.pointers.setdefault(pair, {}).update(pointers)
        self.met |= other.met
        self.moved |= other.moved
        self.depends |= other.depends
        self.reads_back |= other.reads_back
        self.races |= other.races
        for op, (first, last) in other.reach.items():
            known = self.reach.get(op, (first, last))
            self.reach[op] = min(known[0], first), max(known[1], last)


class PreparedLaunch:
    """A launch whose code is bound and whose memory is laid out, so that its blocks can run.

    `everything`: execute all instructions and write arrays in place; else only what addresses and branches
    depend on, and not which way branches take that decide no access (`harmless_branches.py`).
    `every_branch`: those are executed, too, so that all counts of instructions are exact. `looked_at`: slots
    whose values matter at instructions, too, by the index of these, and what they store does; listeners to
    order are told when lanes come there. `names` are the
    parameters' names in the source, for messages. `max_steps`: as `MAX_STEPS`. `arch`: the chip; the code
    must be compiled for it. `memory`: that of the launch, if its global memory is there already, and
    arguments are addresses in it; the kernel's own parts are placed in it. `moved`: as `Memory`. is_regular:
    a few blocks have shown that all do the same.

    Raises:
        MemsimError: arguments or launch that do not match.
    """

    def __init__(
        self,
        kernel: Executable,
        launch: Launch,
        arguments: Sequence[object],
        names: Sequence[str],
        *,
        arch: Arch,
        everything: bool,
        every_branch: bool = False,
        looked_at: Mapping[int, int] | None = None,
        max_steps: int = MAX_STEPS,
        memory: Memory | None = None,
        moved: int = 0,
    ) -> None:
        check_chip(kernel, arch)
        check_arguments(demangle(kernel.name), kernel.parameters, arguments, names)
        check_launch(kernel, launch)
        self.kernel, self.launch, self.arch, self.everything = kernel, launch, arch, everything
        self.max_steps = max_steps
        self._laid_out = partial(memory_of, kernel, launch, arguments, names, moved=moved)
        self._given, self.memory = memory, self._laid_out(memory)
        self._prepared = partial(
            PreparedLaunch,
            *(kernel, launch, arguments, names),
            arch=arch,
            everything=everything,
            every_branch=every_branch,
            looked_at=looked_at,
            max_steps=max_steps,
        )
        check_shared(kernel, self.memory, arch)
        self.code, self.origins = code_of_launch(
            kernel, launch, arguments, names, self.memory, everything, every_branch, looked_at
        )
        self.is_regular = False
        self._apart = are_independent(kernel.program, self.code.needed, self.memory)

    @property
    def is_given(self) -> bool:
        """Whether it runs in memory that was given, with its contents."""
        return self._given is not None

    def elsewhere(self, seed: int) -> PreparedLaunch | None:
        """The same launch with its arrays at other places, for each seed; None if their places are given."""
        return None if self._given is not None else self._prepared(moved=seed)

    def why_together(self) -> str:
        """Why its blocks cannot run apart from each other with the same counts; "" if they can."""
        if is_cooperative(self.kernel):
            return "its blocks wait for each other"
        again = sorted(self.code.dataflow.stores_read_again)
        if again:
            where = self.code.dataflow.ops[again[0]].where
            return f"what blocks write at {where} may decide what others access"
        return ""

    def blocks_at_once(self, blocks: int, chunk_threads: int | None = None, tries: bool = True) -> int:
        """How many run at once, of so many in all. tries: a few may tell whether accesses are regular."""
        if is_cooperative(self.kernel):
            check_grid(self.kernel, self.launch, blocks, self.memory.shared_bytes, self.arch)
            return blocks
        most = RUN_THREADS if self.everything else APART_THREADS if self._apart else TRACE_THREADS
        limit = chunk_threads or most
        size = self.whole_clusters(limit // (self.launch.warps * WARP))
        if size * WORTH_TRYING <= blocks and most == TRACE_THREADS and not chunk_threads and tries:
            trial = self._laid_out(self._given and self._given.for_trial())
            with np.errstate(all="ignore"):
                self.is_regular = are_regular(self.code, trial, self.origins, self.launch, self.max_steps)
        return self.whole_clusters(max(size, REGULAR_BLOCKS)) if self.is_regular else size

    def whole_clusters(self, blocks: int) -> int:
        """About so many blocks, one at least, that are whole clusters."""
        return whole_clusters(max(1, blocks), self.launch.grid, self.code.cluster)

    def run(
        self,
        listener: Listener,
        blocks: np.ndarray | None = None,
        *,
        progress: Callable[[float], None] | None = None,
        chunk_threads: int | None = None,
        at_once: int | None = None,
        allow_out_of_bounds: bool = False,
        order: OrderListener | None = None,
        judges_order: bool = True,
        collect: Callable[[KernelFault], None] | None = None,
    ) -> Heard:
        """Run `blocks` (linear numbers, all if None).

        `progress` is called with the share of blocks that are done, 0 to 1. `at_once`: how many run at once,
        if that was found out before. `order`: is told of all that orders accesses, too. `judges_order`: find
        out whether order decides a count. `collect`: takes the errors of accesses, whose lanes go on without
        them; None: the first one is raised.

        Raises:
            MemsimError: an error in the kernel.
        """
        code, everything = self.code, self.everything
        count = self.launch.blocks if blocks is None else len(blocks)
        heard = Heard(count, depends=True, reads_back=True)
        of_global = of_shared = loaded = None
        if not everything:
            loaded = LoadedValues(self.memory.layouts["global"], self.kernel.functions.values())
            heard.constants, heard.pointers = loaded.constants, loaded.pointers
        if judges_order and not everything:
            of_global = listener_of_global(code.dataflow, self.memory)
            report, needed = heard.races.setdefault, code.needed or ()
            of_shared = listener_of_shared(self.kernel.program, code.dataflow, needed, report)
        size = at_once or self.blocks_at_once(count, chunk_threads, blocks is None)
        rows, divides = size * self.launch.warps if self._apart else 0, order is None
        np.empty(KEPT_HEAP, np.uint8)
        engine = Engine(
            *(code, self.memory, self.origins, self.launch, listener, self.max_steps, allow_out_of_bounds),
            *(rows, divides),  # who hears the order of accesses knows warps by their rows
        )
        engine.machine.tell_order(*filter(None, (of_global, of_shared, order)))
        engine.machine.reads_idle = everything
        engine.machine.loaded = loaded
        engine.machine.collect = collect
        with np.errstate(all="ignore"):
            for start in range(0, count, size):
                end = min(start + size, count)
                engine.run(np.arange(start, end) if blocks is None else blocks[start:end])
                if progress is not None:
                    progress(end / count)
            engine.finish()
        heard.reached = engine.reached()
        heard.met, heard.moved = engine.machine.margins.met, engine.machine.margins.moved
        if of_global is not None:
            heard.depends, heard.reads_back = of_global.order.depends, of_global.order.reads_back
        if of_shared is not None:
            heard.reach = of_shared.reach
        return heard

    def finish(self, heard: Heard, listener: Listener) -> tuple[str, ...]:
        """Once all blocks have run: arrays get their results, or the listener the reasons for doubt.

        Returns what else would be one, if the same launch has other counts `elsewhere`.

        Raises:
            MemsimError: a result depends on an instruction that is not executed.
        """
        if self.everything:
            try:
                self.memory.copy_back()
            except Poisoned as unknown:
                raise MemsimError(f"the result is unknown: {unknown.poison.story()}") from None
            return ()
        dataflow = self.code.dataflow
        of_races = reasons_of_races(dataflow, heard.races, heard.reach, heard.depends or heard.reads_back)
        settled = heard.met - heard.moved
        of_order = dataflow.uncertain(heard.depends, heard.reads_back, heard.reached, settled)
        places = self.origins, self.memory, heard.constants, heard.pointers, heard.reached
        of_places, perhaps = reasons_of_places(self.kernel, *places)
        for reason in (*of_races, *of_order, *of_places):
            listener.uncertain(reason)
        return perhaps


def are_independent(program: Program, needed: frozenset[int] | None, memory: Memory) -> bool:
    """Whether the warps of a launch are independent, and running them as rows may pay off.

    It does if loaded values decide the control flow; otherwise most blocks do the same. needed: the
    instructions whose values addresses and branches depend on; None if all are executed.
    """
    if needed is None or memory.shared_bytes:
        return False
    meetings = (Flow.BLOCK_BARRIER, Flow.ARRIVE_CLUSTER, Flow.WAIT_CLUSTER, Flow.SLEEP, Flow.YIELD)
    if any(op.flow in meetings for op in program.ops):
        return False
    loads = [op for op in program.ops if op.index in needed and GLOBAL in spaces_read(op)]
    return bool(loads) and not any(may_wait(op) for op in loads)


def may_wait(op: Op) -> bool:
    """May it observe writes of other warps meanwhile: an atomic, or a load that bypasses the L1 cache?"""
    return Trait.OBSERVES in op.traits or any(access != "load" for access, _ in op.touches)
