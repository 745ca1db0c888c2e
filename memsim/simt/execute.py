"""Execute a launch: match the arguments, lay out the memory, run the blocks chunk by chunk.

In: a kernel, a launch, arguments, a listener. Out: what the listener heard and, where everything
is executed, the arrays written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import memsim.simt.access
import memsim.simt.assertions
import memsim.simt.atomics
import memsim.simt.bits
import memsim.simt.carry
import memsim.simt.compare
import memsim.simt.convert
import memsim.simt.copies
import memsim.simt.floats
import memsim.simt.integers
import memsim.simt.lanes
import memsim.simt.logic
import memsim.simt.matrices
import memsim.simt.mbarriers
import memsim.simt.moves
import memsim.simt.textures  # noqa: F401  (these register what they execute)
from memsim.arch import get_arch
from memsim.errors import MemsimError
from memsim.launch import Launch, Texture1D, owner
from memsim.ptx.demangle import demangle
from memsim.ptx.program import Address, CallTarget, Function, Module, Symbol, Variable
from memsim.ptx.slice import ANYWHERE, address_slice
from memsim.simt.arguments import arrays_of, check, encode, is_array, is_parts
from memsim.simt.machine import Listener, Machine
from memsim.simt.plan import Plan
from memsim.state.memory import Memory
from memsim.state.registers import Poisoned

#: Threads that run at once. Results need every value in every thread; a trace only few of them.
RUN_THREADS = 1 << 15
TRACE_THREADS = 1 << 20

#: Instructions that a chunk of blocks may execute, each fragment of its threads for itself, before it
#: counts as endless. The longest kernel of the catalogue takes 620 thousand at 4096 cubed.
MAX_STEPS = 5_000_000


def execute(
    module: Module,
    function: Function,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    listener: Listener,
    *,
    everything: bool,
    blocks: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    max_steps: int = MAX_STEPS,
    chunk_threads: int | None = None,
) -> Memory:
    """Run `blocks` (linear numbers, all of them if None) of a launch.

    `everything`: execute all instructions and write arrays in place; else only what addresses
    and branches depend on. `names` are the parameters' names in the source, for messages.
    `progress` is told the share of blocks that are done, 0 to 1. `max_steps`: as `MAX_STEPS`.

    Raises:
        MemsimError: arguments or launch that do not fit, and whatever goes wrong in the kernel.
    """
    check(function, arguments, names)
    buffers = list(arrays_of(names, arguments))
    memory = Memory(variables_of(module, function), buffers, launch.shared_bytes)
    check_shared(function, memory)
    check_launch(function, launch)
    plan = make_plan(function, memory, arguments, names, everything)
    machine = Machine(plan, plan.flow, launch, listener, max_steps)
    wanted = np.arange(launch.blocks) if blocks is None else blocks
    limit = chunk_threads or (RUN_THREADS if everything else TRACE_THREADS)
    size = max(1, limit // machine.threads)
    with np.errstate(all="ignore"):
        for start in range(0, len(wanted), size):
            machine.run(wanted[start : start + size])
            if progress is not None:
                progress(min(1.0, (start + size) / len(wanted)))
    if everything:
        try:
            memory.copy_back()
        except Poisoned as unknown:
            raise MemsimError(f"the result is not known: {unknown.poison.story()}") from None
    return memory


def variables_of(module: Module, function: Function) -> list[Variable]:
    """The module's and the function's variables; shared ones only where the kernel names them.

    What a call that was not spliced in names is not known: then all of them.
    """
    operands = [operand for instruction in function.instructions for operand in instruction.operands]
    bases = [operand.base if isinstance(operand, Address) else operand for operand in operands]
    named = {base.name for base in bases if isinstance(base, Symbol)}
    calls = any(isinstance(operand, CallTarget) for operand in operands)
    ours = [v for v in module.variables.values() if v.space != "shared" or calls or v.name in named]
    return [*ours, *function.variables.values()]


def make_plan(
    function: Function, memory: Memory, arguments: Sequence[Any], names: Sequence[str], everything: bool
) -> Plan:
    """The kernel as steps, for all instructions or for the slice that addresses need."""
    addresses = iter(memory.argument_addresses)
    parameters: dict[str, bytes] = {}
    first: dict[int, str] = {}
    same: dict[str, str] = {}
    for parameter, argument in zip(function.parameters, arguments):
        if is_array(argument):
            base = owner(argument) if isinstance(argument, np.ndarray) else argument
            same[parameter.name] = first.setdefault(id(base), parameter.name)
        elif is_parts(argument):
            same[parameter.name] = ANYWHERE  # a pointer in it may be any of its arrays, or another argument
        elif isinstance(argument, Texture1D):
            argument = memory.bind(argument)
        parameters[parameter.name] = encode(parameter, argument, addresses)
    plan = Plan(function, memory, parameters, dict(zip(parameters, names)))
    needed = None if everything else address_slice(function, same)
    for index in range(len(function.instructions)):
        plan.prepare(index, needed is None or index in needed)
    return plan


def check_shared(function: Function, memory: Memory) -> None:
    """Does the shared memory fit into a block?

    Raises:
        MemsimError: more than the chip has.
    """
    chip = get_arch("sm_90")
    if memory.static_shared > chip.static_shared_bytes:
        raise MemsimError(
            f"{demangle(function.name)} declares {memory.static_shared} bytes of shared memory;"
            f" at most {chip.static_shared_bytes} can be declared",
            hint="use dynamic shared memory (extern __shared__) for more",
        )
    total = memory.shared_bytes
    if total > chip.shared_block_bytes:
        raise MemsimError(
            f"a block needs {total} bytes of shared memory; it can have {chip.shared_block_bytes}"
        )


def check_launch(function: Function, launch: Launch) -> None:
    """Is the launch the one that `__launch_bounds__` and `__cluster_dims__` promised?

    Raises:
        MemsimError: it is not.
    """
    if function.reqntid and launch.block != function.reqntid:
        raise MemsimError(f"{demangle(function.name)} must be launched with block {function.reqntid}")
    if function.maxntid:
        x, y, z = function.maxntid
        if launch.threads > x * y * z:
            raise MemsimError(
                f"{demangle(function.name)} is compiled for at most {x * y * z} threads a block,"
                f" not {launch.threads}"
            )
    if function.cluster and any(g % max(1, c) for g, c in zip(launch.grid, function.cluster)):
        raise MemsimError(
            f"the grid of {demangle(function.name)} must be a multiple of its cluster {function.cluster},"
            f" and {launch.grid} is not"
        )
