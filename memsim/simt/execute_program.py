"""Executes a launch: matches the arguments, lays out memory, and runs the blocks chunk by chunk.

Before many of them run at once, a few tell whether their accesses are regular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from memsim.access import AccessSide, Site
from memsim.arch import Arch
from memsim.arch.units import WARP
from memsim.argument_types.launch_arguments import check_arguments
from memsim.errors import MemsimError
from memsim.isa.executable import Executable
from memsim.isa.op import Flow, Trait
from memsim.isa.program import GLOBAL, Op, Program, spaces_read
from memsim.launch import Launch
from memsim.names.demangle import demangle
from memsim.order.order_listener import Listeners, OrderListener
from memsim.simt.bounds import Origins
from memsim.simt.code import Code
from memsim.simt.engine import Engine
from memsim.simt.faults import KernelFault, check_chip, check_launch, check_shared
from memsim.simt.launch_code import code_of_launch
from memsim.simt.launch_places import reasons_of_places
from memsim.simt.listener import Listener
from memsim.simt.loaded_values import LoadedValues
from memsim.simt.memory_layout import check_grid, is_cooperative, memory_of
from memsim.simt.order_of_launch import listener_of_global, races_of_shared
from memsim.simt.waits import whole_clusters
from memsim.state.launch_memory import Memory
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poisoned
from memsim.state.registers import Sum
from memsim.state.sums import Int


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


class RegularAccesses:
    """A listener for the blocks.

    are_regular: every address was a sum of a block's part and a thread's part, and which lanes executed an
    instruction or accessed memory depended on the block or on the thread, but not on both.
    """

    def __init__(self) -> None:
        self.are_regular = True

    def access(
        self,
        site: Site,
        address: Int,
        mask: Mask,
        active: Mask,
        arrays: frozenset[str],
        other: AccessSide | None = None,
    ) -> None:
        """Look at the address and the lanes."""
        for place, lanes in (
            [AccessSide(address, active)] if other is None else [AccessSide(address, active), other]
        ):
            if (isinstance(place, Sum) and place.f is not None) or _is_of_each_thread(lanes):
                self.are_regular = False

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Look at the lanes that execute something."""
        if _is_of_each_thread(mask):
            self.are_regular = False

    def irregular(self, *event: Any) -> None:
        """Accesses of single lanes, and copies that are known warp by warp."""
        self.are_regular = False

    def ignore(self, *event: Any) -> None:
        """Nothing to see."""

    scattered = stretches = irregular
    start_chunk = issued = unknown = uncounted = noted = uncertain = passed_by = ignore


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


def execute_program(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    listener: Listener,
    *,
    arch: Arch,
    everything: bool,
    every_branch: bool = False,
    blocks: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    max_steps: int = MAX_STEPS,
    chunk_threads: int | None = None,
    allow_out_of_bounds: bool = False,
    order: OrderListener | None = None,
    judges_order: bool = True,
    collect: Callable[[KernelFault], None] | None = None,
    memory: Memory | None = None,
) -> Memory:
    """Run `blocks` (linear numbers, all if None) of a launch.

    `everything`: execute all instructions and write arrays in place; else only what addresses and branches
    depend on, and not which way branches take that decide no access (`passed_branches.py`).
    `every_branch`: those are executed, too, so that all counts of instructions are exact. `names` are the
    parameters' names in the source, for messages. `progress` is called with the share of blocks that are
    done, 0 to 1. `max_steps`: as `MAX_STEPS`. `order`: is told of all that orders
    accesses, too. `judges_order`: find out whether order decides a count. `collect`: takes the errors of
    accesses, whose lanes go on without them; None: the first one is raised.

    `arch`: the chip; the code must be compiled for it. `memory`: that of the launch, if its global memory is
    there already, and arguments are addresses in it; the kernel's own parts are placed in it.

    Raises:
        MemsimError: arguments or launch that do not match, or an error in the kernel.
    """
    check_chip(kernel, arch)
    check_arguments(demangle(kernel.name), kernel.parameters, arguments, names)
    check_launch(kernel, launch)
    given, memory = memory, memory_of(kernel, launch, arguments, names, memory)
    check_shared(kernel, memory, arch)
    code, origins = code_of_launch(kernel, launch, arguments, names, memory, everything, every_branch)
    of_global = of_shared = None
    loaded = None if everything else LoadedValues(memory.layouts["global"], kernel.functions.values())
    if judges_order and not everything:
        of_global = listener_of_global(code.dataflow, memory)
        of_shared = races_of_shared(kernel.program, code.dataflow, code.needed or ())
    in_shared = of_shared.listener if of_shared is not None else None
    apart = are_independent(kernel.program, code.needed, memory)
    count = launch.blocks if blocks is None else len(blocks)
    most = RUN_THREADS if everything else APART_THREADS if apart else TRACE_THREADS
    limit = chunk_threads or most
    size = whole_clusters(max(1, limit // (launch.warps * WARP)), launch.grid, code.cluster)
    if is_cooperative(kernel):
        check_grid(kernel, launch, count, memory.shared_bytes, arch)
        size = count
    rows = size * launch.warps if apart else 0
    np.empty(KEPT_HEAP, np.uint8)
    engine = Engine(code, memory, origins, launch, listener, max_steps, allow_out_of_bounds, rows)
    engine.machine.order = Listeners(*filter(None, (of_global, in_shared, order)))
    engine.machine.reads_idle = everything
    engine.machine.loaded = loaded
    engine.machine.collect = collect
    with np.errstate(all="ignore"):
        if size * WORTH_TRYING <= count and most == TRACE_THREADS and not chunk_threads and blocks is None:
            for_trial = memory_of(kernel, launch, arguments, names, given and given.for_trial())
            if are_regular(code, for_trial, origins, launch, max_steps):
                size = whole_clusters(max(size, REGULAR_BLOCKS), launch.grid, code.cluster)
        for start in range(0, count, size):
            end = min(start + size, count)
            engine.run(np.arange(start, end) if blocks is None else blocks[start:end])
            if progress is not None:
                progress(end / count)
        engine.finish()
    if loaded is None:
        try:
            memory.copy_back()
        except Poisoned as unknown:
            raise MemsimError(f"the result is unknown: {unknown.poison.story()}") from None
    else:
        found = (True, True) if of_global is None else (of_global.order.depends, of_global.order.reads_back)
        for reason in of_shared.reasons(any(found)) if of_shared is not None else ():
            listener.uncertain(reason)
        reached = engine.reached()
        for reason in code.dataflow.uncertain(*found, reached):
            listener.uncertain(reason)
        for reason in reasons_of_places(kernel, origins, memory, loaded, reached):
            listener.uncertain(reason)
    return memory


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
