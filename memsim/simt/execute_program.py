"""Executes a launch: matches the arguments, lays out memory, and runs the blocks chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memsim.arch import Arch, arch_of_code
from memsim.arch.units import WARP
from memsim.errors import MemsimError
from memsim.isa.executable import Executable, Parameter
from memsim.isa.op import Flow
from memsim.isa.readers import Binder
from memsim.isa.stack import local_name
from memsim.launch import GLOBAL_ALIGN, Launch, Texture1D
from memsim.ptx.demangle import demangle
from memsim.simt.bounds import Origins
from memsim.simt.code import Code
from memsim.simt.constant_front import front_bytes
from memsim.simt.cooperative import (
    check_grid,
    is_cooperative,
    place_workspace,
    workspace_of,
    workspace_roots,
)
from memsim.simt.dataflow import Dataflow
from memsim.simt.engine import Engine
from memsim.simt.independent_warps import are_independent
from memsim.simt.launch_arguments import arrays_of, check_arguments, encode
from memsim.simt.listener import Listener
from memsim.simt.ordered_accesses import ordered_accesses
from memsim.simt.pointer_roots import ANYWHERE, PARAMETER_BITS, VARIABLE_BITS, roots_of_symbols
from memsim.simt.regular_accesses import RegularAccesses
from memsim.simt.tensor_maps import place_tensor_maps
from memsim.simt.unordered import report_of_order
from memsim.simt.unused_halves import without_unused_halves
from memsim.state.address_spaces import Buffer, align
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison, Poisoned

#: Threads that run at once. Results need every value in every thread, a trace only few of them.
RUN_THREADS = 1 << 15
TRACE_THREADS = 1 << 20
#: Blocks that run at once if all addresses are sums of a block's part and a thread's part, and all blocks
#: take the same way: an instruction then costs the same for any number of blocks. It is tried with a few
#: blocks if the launch has at least so many chunks otherwise.
REGULAR_BLOCKS = 1 << 14
WORTH_TRYING = 8
#: With divergence, each thread has its own values; larger chunks take more memory and are no faster.
APART_THREADS = 1 << 18

#: Bytes of an array that is allocated and freed once: from then on glibc serves smaller arrays from its heap,
#: and trims it only above twice as much (mallopt(3), M_MMAP_THRESHOLD). Otherwise temporaries of some hundred
#: KB spend most of their time in page faults.
KEPT_HEAP = 1 << 24

#: Instructions that a chunk of blocks may execute, counted for each group of its threads, before it
#: counts as endless. The longest kernel of the catalogue needs 620 thousand at 4096 cubed.
MAX_STEPS = 5_000_000

#: Addresses of system functions such as vprintf; they have no code.
SYSTEM_FUNCTIONS = 0x7FFF_0000_0000
#: Bytes of stack if functions are called, because cubins do not always have the depth (CUDA's default).
UNBOUNDED_STACK = 1024

#: The initial contents of a block's own memory.
NEVER_WRITTEN = {
    space: Poison(f"read of {space} memory that was never written", None) for space in ("shared", "local")
}


def execute_program(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    listener: Listener,
    *,
    arch: Arch,
    everything: bool,
    blocks: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    max_steps: int = MAX_STEPS,
    chunk_threads: int | None = None,
    allow_out_of_bounds: bool = False,
) -> Memory:
    """Run `blocks` (linear numbers, all if None) of a launch.

    `everything`: execute all instructions and write arrays in place; else only what addresses and branches
    depend on. `names` are the parameters' names in the source, for messages. `progress` is called with the
    share of blocks that are done, 0 to 1. `max_steps`: as `MAX_STEPS`.

    `arch`: the chip; the code must be compiled for it.

    Raises:
        MemsimError: arguments or launch that do not match, or an error in the kernel.
    """
    _check_chip(kernel, arch)
    check_arguments(kernel.name, kernel.parameters, arguments, names)
    _check_launch(kernel, launch)
    memory = _memory(kernel, launch, arguments, names)
    _check_shared(kernel, memory, arch)
    code, origins = prepare(kernel, launch, arguments, names, memory, everything)
    ordered = None if everything else ordered_accesses(dataflow_of(kernel), memory)
    if not everything:
        memory.report = report_of_order(code.dataflow, code.needed or (), listener)
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
    engine.machine.ordered = ordered
    with np.errstate(all="ignore"):
        if size * WORTH_TRYING <= count and most == TRACE_THREADS and not chunk_threads and blocks is None:
            ears = RegularAccesses()
            tried = Engine(code, _memory(kernel, launch, arguments, names), origins, launch, ears, max_steps)
            if _is_regular(tried, launch.grid, ears):
                size = whole_clusters(max(size, REGULAR_BLOCKS), launch.grid, code.cluster)
        for start in range(0, count, size):
            end = min(start + size, count)
            engine.run(np.arange(start, end) if blocks is None else blocks[start:end])
            if progress is not None:
                progress(end / count)
        engine.finish()
    if not everything:
        found = (True, True) if ordered is None else (ordered.order.depends, ordered.order.reads_back)
        for reason in dataflow_of(kernel).uncertain(*found, engine.reached()):
            listener.uncertain(reason)
    if everything:
        try:
            memory.copy_back()
        except Poisoned as unknown:
            raise MemsimError(f"the result is unknown: {unknown.poison.story()}") from None
    return memory


def _is_regular(tried: Engine, grid: tuple[int, int, int], ears: RegularAccesses) -> bool:
    """Whether the blocks at both ends of the grid are regular, where guards leave some threads out.

    Blocks far from each other are tried apart, as addresses in two words are sums only within 4 GiB.
    """
    for end in (0, 1):
        x, y, z = np.meshgrid(*(_two(number, end) for number in grid), indexing="ij")
        try:
            tried.run(np.sort((x + grid[0] * (y + grid[1] * z)).ravel()))
        except MemsimError:  # the launch itself says which block it is
            return False
        if not (ears.are_regular and tried.machine.memory.is_unused):
            return False
    return True


def _two(number: int, end: int) -> np.ndarray:
    """The first or the last two of a number of blocks."""
    return np.unique((0, min(1, number - 1)) if end == 0 else (max(0, number - 2), number - 1))


def whole_clusters(blocks: int, grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> int:
    """The number of blocks rounded up so that no cluster is split, because its blocks access each other's
    memory.

    Blocks are numbered along x first.
    """
    if cluster[2] > 1:
        span = grid[0] * grid[1] * cluster[2]
    else:
        span = grid[0] * cluster[1] if cluster[1] > 1 else cluster[0]
    return align(blocks, span)


@lru_cache(maxsize=256)
def dataflow_of(kernel: Executable) -> Dataflow:
    """The dataflow analysis of a kernel, cached."""
    return Dataflow(without_unused_halves(kernel.program))


def prepare(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    memory: Memory,
    everything: bool,
) -> tuple[Code, Origins]:
    """The kernel as steps with the launch's constants, and the origins of its addresses."""
    dataflow = dataflow_of(kernel)
    addresses = iter(memory.argument_addresses)
    content = bytearray(kernel.parameter_size)
    base = kernel.parameter_base
    pointers: dict[int, Buffer] = {}
    numbers: dict[int, tuple[str, int]] = {}
    layout = memory.layouts["global"]
    for parameter, argument, name in zip(kernel.parameters, arguments, names):
        if isinstance(argument, Texture1D):
            argument = memory.bind(argument)
        offset = parameter.offset
        raw = encode(_typed(parameter, argument), argument, addresses)
        content[offset : offset + len(raw)] = raw
        for at in range(-(-offset // 8) * 8, offset + len(raw) - 7, 8):
            value = int.from_bytes(content[at : at + 8], "little")
            bit = 1 << (PARAMETER_BITS + (base + at) // 8)
            buffer = layout.find(value, value + 1)
            if buffer is not None:
                pointers[bit] = buffer
            elif len(raw) == 8:
                numbers[bit] = name, value
    place_tensor_maps(kernel.parameters, arguments, names, memory)
    banks, holes, externals = _banks(kernel, launch, bytes(content), memory)
    for pointer in kernel.pointers.get(4, ()):
        if pointer.symbol in memory.symbols:
            buffer = layout.at(memory.symbols[pointer.symbol][1])
            if buffer is not None:
                pointers[1 << (VARIABLE_BITS + pointer.offset // 8)] = buffer
    for symbol, bit in roots_of_symbols(kernel.program).items():
        if symbol in memory.symbols and (variable := layout.at(memory.symbols[symbol][1])) is not None:
            pointers[bit] = variable
    workspace = layout.at(workspace_of(memory))
    if workspace is not None:
        pointers |= dict.fromkeys(workspace_roots(kernel), workspace)
    needed = None
    if not everything:
        every = ANYWHERE
        for bit in pointers:
            every |= bit
        of_grid = sum(workspace_roots(kernel)) if is_cooperative(kernel) else 0
        needed = dataflow.needed(every, _same(pointers, arguments, memory), of_grid)
    symbols = {name: address for name, (_, address) in memory.symbols.items()}
    of_groups = arch_of_code(kernel.made_for).front.of_groups
    binder = Binder(banks, symbols | dict(kernel.functions), holes, bytes(content), of_groups)
    code = Code(dataflow, binder, needed, externals, cluster_of(kernel, launch) or (1, 1, 1))
    return code, Origins(dataflow, pointers, numbers)


def _typed(parameter: Parameter, argument: Any) -> Parameter:
    """A parameter of which only the size is known accepts a float."""
    if isinstance(argument, (float, np.floating)) and parameter.type in ("b16", "b32", "b64"):
        return Parameter(
            parameter.name, f"f{parameter.type[1:]}", parameter.align, parameter.size, parameter.offset
        )
    return parameter


def _same(pointers: dict[int, Buffer], arguments: Sequence[Any], memory: Memory) -> dict[int, int]:
    """Which roots refer to the same or overlapping memory."""
    found: dict[int, int] = {}
    for bit, buffer in pointers.items():
        others = 0
        for other, its in pointers.items():
            if other != bit and buffer.start < its.end and its.start < buffer.end:
                others |= other
        if others:
            found[bit] = others
    return found


def _memory(kernel: Executable, launch: Launch, arguments: Sequence[Any], names: Sequence[str]) -> Memory:
    """Memory with the kernel's shared arrays and the module's variables placed."""
    memory = Memory(list(arrays_of(names, arguments)), kernel.shared_base)
    shared = memory.layouts["shared"]
    for name, address, size in kernel.shared:
        shared.add(name, address, size)
    shared.end = shared.base + kernel.static_shared
    memory.static_shared = kernel.static_shared
    if launch.shared_bytes or kernel.dynamic:
        memory.dynamic_shared = shared.end
        shared.add(kernel.dynamic_name, shared.end, launch.shared_bytes)
        shared.end += launch.shared_bytes
    _place_variables(kernel, memory)
    place_workspace(kernel, memory)
    memory.uninitialised = NEVER_WRITTEN
    calls = any(op.flow is Flow.CALL for op in kernel.program.ops)
    local = align(max(kernel.local_bytes, UNBOUNDED_STACK if calls else 0), 16)
    if local:
        memory.layouts["local"].place(local_name(kernel.program), local, 16)
    return memory


def _place_variables(kernel: Executable, memory: Memory) -> None:
    """The module's variables, each separately allocated as by the driver, and their initial contents."""
    layout = memory.layouts["global"]
    for variable in kernel.variables:
        start = layout.place(variable.name, variable.size, max(variable.align, GLOBAL_ALIGN), GLOBAL_ALIGN)
        memory.symbols[variable.name] = ("global", start)
        if variable.init is not None:
            memory.contents.append((start, variable.init))
    for variable in kernel.variables:
        start = memory.symbols[variable.name][1]
        for pointer in variable.pointers:
            if pointer.symbol in memory.symbols:
                value = memory.symbols[pointer.symbol][1] + pointer.addend
                memory.contents.append((start + pointer.offset, value.to_bytes(8, "little")))


def _banks(
    kernel: Executable, launch: Launch, parameters: bytes, memory: Memory
) -> tuple[dict[int, bytes], tuple[range, ...], dict[int, str]]:
    """The constant banks of a launch, the unknown ranges of bank 0, and addresses of system functions."""
    stack = memory.layouts["local"].end
    layout = arch_of_code(kernel.made_for).front
    cluster, workspace = cluster_of(kernel, launch), workspace_of(memory)
    front, holes = front_bytes(layout, kernel.parameter_base, launch, stack, cluster, workspace)
    banks = {bank: bytes(content) for bank, content in kernel.constants.items()}
    banks[0] = front + parameters
    externals: dict[int, str] = {}
    for bank, pointers in kernel.pointers.items():
        content = bytearray(banks.get(bank, b""))
        for pointer in pointers:
            if pointer.symbol in memory.symbols:
                value = memory.symbols[pointer.symbol][1] + pointer.addend
            elif pointer.symbol in kernel.functions:
                value = kernel.functions[pointer.symbol] + pointer.addend
            else:
                value = SYSTEM_FUNCTIONS + 16 * len(externals)
                externals[value] = pointer.symbol
            end = pointer.offset + 8
            content.extend(bytes(max(0, end - len(content))))
            content[pointer.offset : end] = value.to_bytes(8, "little")
        banks[bank] = bytes(content)
    return banks, holes, externals


def _check_chip(kernel: Executable, arch: Arch) -> None:
    """Raise unless the code runs on the chip."""
    if not arch.runs(kernel.made_for):
        raise MemsimError(
            f"this is machine code for {kernel.made_for}, which {arch.name} cannot run",
            hint=f"compile for {arch.name}, omit --arch, or pass the PTX or the source",
        )


def _check_shared(kernel: Executable, memory: Memory, arch: Arch) -> None:
    """Raise if a block needs more shared memory than the chip has."""
    if memory.static_shared > arch.static_shared_bytes:
        raise MemsimError(
            f"{demangle(kernel.name)} declares {memory.static_shared} bytes of shared memory;"
            f" the limit is {arch.static_shared_bytes}",
            hint="use dynamic shared memory (extern __shared__) for more",
        )
    total = memory.shared_bytes
    if total > arch.shared_block_bytes:
        raise MemsimError(
            f"a block needs {total} bytes of shared memory; the limit is {arch.shared_block_bytes}"
        )


def _check_launch(kernel: Executable, launch: Launch) -> None:
    """Raise unless the launch conforms to `__launch_bounds__` and `__cluster_dims__`."""
    name = demangle(kernel.name)
    if kernel.required_threads and launch.block != kernel.required_threads:
        raise MemsimError(f"{name} must be launched with block {kernel.required_threads}")
    if kernel.max_threads:
        x, y, z = kernel.max_threads
        if launch.threads > x * y * z:
            raise MemsimError(
                f"{name} is compiled for at most {x * y * z} threads per block, not {launch.threads}"
            )
    cluster = cluster_of(kernel, launch)
    if cluster and any(g % max(1, c) for g, c in zip(launch.grid, cluster)):
        raise MemsimError(
            f"the grid of {name} must be a multiple of its cluster {cluster}, unlike {launch.grid}"
        )


def cluster_of(kernel: Executable, launch: Launch) -> tuple[int, int, int] | None:
    """Blocks of a cluster, from the code or the launch; None if neither has clusters.

    Raises:
        MemsimError: they differ, or the chip has no clusters.
    """
    if launch.cluster is None or launch.cluster == kernel.cluster:
        return kernel.cluster
    if kernel.cluster is not None:
        raise MemsimError(
            f"{demangle(kernel.name)} is compiled for clusters of {kernel.cluster}, not of {launch.cluster}",
            hint="omit the cluster or __cluster_dims__",
        )
    if arch_of_code(kernel.made_for).front.in_cluster is None:
        raise MemsimError(f"{kernel.made_for} has no clusters", hint="omit the cluster")
    return launch.cluster
