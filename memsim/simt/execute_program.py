"""Execute a launch of machine code: match the arguments, lay out memory, run the blocks chunk by chunk.

In: a `MachineKernel`, a launch, arguments, a listener. Out: what the listener heard and, where everything is
executed, the arrays written in place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from memsim.arch import Arch
from memsim.errors import MemsimError
from memsim.isa.op import Flow
from memsim.isa.readers import Binder
from memsim.launch import Launch, Texture1D
from memsim.ptx.demangle import demangle
from memsim.ptx.program import Parameter
from memsim.sass.cubin import Cubin
from memsim.sass.kernel import MachineKernel
from memsim.simt.arguments import arrays_of, check_arguments, encode
from memsim.simt.code import Code
from memsim.simt.dataflow import ANYWHERE, PARAMETER_BITS, VARIABLE_BITS, Dataflow
from memsim.simt.engine import Engine
from memsim.simt.execute import MAX_STEPS, RUN_THREADS, TRACE_THREADS
from memsim.state.memory import (
    CONSTANT_WINDOW,
    GLOBAL_ALIGN,
    LOCAL_WINDOW,
    SHARED_BASE,
    Buffer,
    Memory,
    align,
)
from memsim.state.registers import Poisoned

#: Addresses by which functions of the system are known, such as vprintf; no code is there.
SYSTEM_FUNCTIONS = 0x7FFF_0000_0000
#: Bytes of stack where functions are called, of which the cubin does not always know the depth (CUDA's
#: default).
UNBOUNDED_STACK = 1024

# Constant bank 0 of sm_90, in front of the parameters, by byte offset: dimensions, windows, the stack, blocks
# of a cluster, and the descriptor of global memory, which no address depends on.
BLOCK, GRID, LOCAL_BASE, STACK, CONSTANTS, CLUSTER, DESCRIPTOR = 0x0, 0xC, 0x20, 0x28, 0xD0, 0x188, 0x208
#: The rest of it is not known.
HOLES = (
    range(0x18, LOCAL_BASE),
    range(STACK + 4, CONSTANTS),
    range(CONSTANTS + 8, CLUSTER),
    range(CLUSTER + 4, DESCRIPTOR),
)


def execute_program(
    kernel: MachineKernel,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    listener: Any,
    *,
    arch: Arch,
    everything: bool,
    blocks: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    max_steps: int = MAX_STEPS,
    chunk_threads: int | None = None,
) -> Memory:
    """Run `blocks` (linear numbers, all of them if None) of a launch; as `memsim.simt.execute.execute`.

    `arch`: the chip; the code must be made for it.

    Raises:
        MemsimError: arguments or launch that do not fit, and whatever goes wrong in the kernel.
    """
    _check_chip(kernel, arch)
    check_arguments(kernel.name, kernel.parameters, arguments, names)
    _check_launch(kernel, launch)
    memory = _memory(kernel, launch, arguments, names)
    _check_shared(memory, arch)
    code = prepare(kernel, launch, arguments, names, memory, everything)
    if not everything:
        for reason in dataflow_of(kernel).uncertain():
            listener.unsure(reason)
    engine = Engine(code, memory, launch, listener, max_steps)
    count = launch.blocks if blocks is None else len(blocks)
    limit = chunk_threads or (RUN_THREADS if everything else TRACE_THREADS)
    size = max(1, limit // engine.threads)
    with np.errstate(all="ignore"):
        for start in range(0, count, size):
            end = min(start + size, count)
            engine.run(np.arange(start, end) if blocks is None else blocks[start:end])
            if progress is not None:
                progress(end / count)
    if everything:
        try:
            memory.copy_back()
        except Poisoned as unknown:
            raise MemsimError(f"the result is not known: {unknown.poison.story()}") from None
    return memory


@lru_cache(maxsize=256)
def dataflow_of(kernel: MachineKernel) -> Dataflow:
    """What flows where in a kernel; worked out once."""
    return Dataflow(kernel.program)


def prepare(
    kernel: MachineKernel,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    memory: Memory,
    everything: bool,
) -> Code:
    """The kernel as steps, with the launch's constants in it."""
    dataflow = dataflow_of(kernel)
    addresses = iter(memory.argument_addresses)
    image = kernel.image
    content = bytearray(image.parameter_size)
    base = image.parameter_base
    pointers: dict[int, Buffer] = {}
    numbers: dict[int, tuple[str, int]] = {}
    layout = memory.layouts["global"]
    offsets = [parameter.offset for parameter in image.parameters]
    for parameter, offset, argument, name in zip(kernel.parameters, offsets, arguments, names):
        if isinstance(argument, Texture1D):
            argument = memory.bind(argument)
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
    banks, externals = _banks(kernel, launch, bytes(content), memory)
    for offset, symbol, _ in image.constant4:
        if symbol in memory.symbols:
            buffer = layout.at(memory.symbols[symbol][1])
            if buffer is not None:
                pointers[1 << (VARIABLE_BITS + offset // 8)] = buffer
    needed = None
    if not everything:
        every = ANYWHERE
        for bit in pointers:
            every |= bit
        needed = dataflow.needed(every, _same(pointers, arguments, memory))
    symbols = {name: address for name, (_, address) in memory.symbols.items()}
    code = Code(dataflow, Binder(banks, symbols | image.functions, HOLES), needed, externals)
    code.pointers, code.numbers = pointers, numbers
    code.cluster = image.cluster or (1, 1, 1)
    return code


def _typed(parameter: Parameter, argument: Any) -> Parameter:
    """A parameter of which only the size is known takes a float as one."""
    if isinstance(argument, (float, np.floating)) and parameter.type in ("b16", "b32", "b64"):
        return Parameter(
            parameter.name, f"f{parameter.type[1:]}", parameter.align, parameter.size, parameter.offset
        )
    return parameter


def _same(pointers: dict[int, Buffer], arguments: Sequence[Any], memory: Memory) -> dict[int, int]:
    """Which roots name the same or overlapping memory."""
    found: dict[int, int] = {}
    for bit, buffer in pointers.items():
        others = 0
        for other, its in pointers.items():
            if other != bit and buffer.start < its.end and its.start < buffer.end:
                others |= other
        if others:
            found[bit] = others
    return found


def _memory(kernel: MachineKernel, launch: Launch, arguments: Sequence[Any], names: Sequence[str]) -> Memory:
    """Memory with the kernel's shared arrays and the module's variables at their places."""
    buffers = [(name, array, int(array.nbytes)) for name, array in arrays_of(names, arguments)]
    memory = Memory((), buffers, 0)
    shared = memory.layouts["shared"]
    for name, address, size in kernel.shared:
        shared.add(name, address, size)
    static = kernel.image.static_shared - kernel.image.reserved_shared
    shared.end = SHARED_BASE + max(static, 0)
    memory.static_shared = max(static, 0)
    if launch.shared_bytes:
        memory.dynamic_shared = shared.end
        shared.add(kernel.dynamic_name, shared.end, launch.shared_bytes)
        shared.end += launch.shared_bytes
    _place_variables(kernel.module.cubin, memory)
    calls = any(op.flow is Flow.CALL for op in kernel.program.ops)
    local = align(max(kernel.image.local_bytes, UNBOUNDED_STACK if calls else 0), 16)
    if local:
        memory.layouts["local"].place("local memory", local, 16)
    return memory


def _place_variables(cubin: Cubin, memory: Memory) -> None:
    """The module's variables, each by itself as the driver loads them, and what they hold at first."""
    layout = memory.layouts["global"]
    for variable in cubin.variables:
        start = layout.place(variable.name, variable.size, max(variable.align, GLOBAL_ALIGN), GLOBAL_ALIGN)
        memory.symbols[variable.name] = ("global", start)
        if variable.init is not None:
            memory.contents.append((start, variable.init))
    for section in cubin.sections:
        inside = [variable for variable in cubin.variables if variable.section == section.name]
        for relocation in section.relocations:
            for variable in inside:
                offset = relocation.offset - variable.offset
                if relocation.symbol in memory.symbols and 0 <= offset < variable.size:
                    value = memory.symbols[relocation.symbol][1] + relocation.addend
                    place = memory.symbols[variable.name][1] + offset
                    memory.contents.append((place, value.to_bytes(8, "little")))


def _banks(
    kernel: MachineKernel, launch: Launch, parameters: bytes, memory: Memory
) -> tuple[dict[int, bytes], dict[int, str]]:
    """The constant banks of a launch, and the addresses that stand for functions of the system."""
    image = kernel.image
    front = bytearray(image.parameter_base)
    struct.pack_into("<3I", front, BLOCK, *launch.block)
    struct.pack_into("<3I", front, GRID, *launch.grid)
    struct.pack_into("<Q", front, LOCAL_BASE, LOCAL_WINDOW)
    struct.pack_into("<I", front, STACK, memory.layouts["local"].end)
    struct.pack_into("<Q", front, CONSTANTS, CONSTANT_WINDOW)  # of bank 3, the user's variables
    struct.pack_into("<I", front, CLUSTER, math.prod(image.cluster or (1,)))
    banks = {bank: bytes(content) for bank, content in image.constants.items()}
    banks[0] = bytes(front) + parameters
    externals: dict[int, str] = {}
    for bank, relocations in image.constant_relocations.items():
        content = bytearray(banks.get(bank, b""))
        for relocation in relocations:
            if relocation.symbol in memory.symbols:
                value = memory.symbols[relocation.symbol][1] + relocation.addend
            elif relocation.symbol in image.functions:
                value = image.functions[relocation.symbol] + relocation.addend
            else:
                value = SYSTEM_FUNCTIONS + 16 * len(externals)
                externals[value] = relocation.symbol
            end = relocation.offset + 8
            content.extend(bytes(max(0, end - len(content))))
            content[relocation.offset : end] = value.to_bytes(8, "little")
        banks[bank] = bytes(content)
    return banks, externals


def _check_chip(kernel: MachineKernel, arch: Arch) -> None:
    """Is it code for the chip whose instructions and rules are known?

    Raises:
        MemsimError: it is not.
    """
    made_for = kernel.module.cubin.arch
    if not made_for.startswith(arch.name):
        raise MemsimError(
            f"this is machine code of {made_for}; memsim executes that of {arch.name}",
            hint=f"compile for {arch.name}, or give the PTX or the source",
        )


def _check_shared(memory: Memory, arch: Arch) -> None:
    """Does the shared memory fit into a block?

    Raises:
        MemsimError: more than the chip has.
    """
    total = memory.shared_bytes
    if total > arch.shared_block_bytes:
        raise MemsimError(
            f"a block needs {total} bytes of shared memory; it can have {arch.shared_block_bytes}"
        )


def _check_launch(kernel: MachineKernel, launch: Launch) -> None:
    """Is the launch the one that `__launch_bounds__` and `__cluster_dims__` promised?

    Raises:
        MemsimError: it is not.
    """
    image = kernel.image
    name = demangle(kernel.name)
    if image.required_threads and launch.block != image.required_threads:
        raise MemsimError(f"{name} must be launched with block {image.required_threads}")
    if image.max_threads:
        x, y, z = image.max_threads
        if launch.threads > x * y * z:
            raise MemsimError(
                f"{name} is compiled for at most {x * y * z} threads a block, not {launch.threads}"
            )
    if image.cluster and any(g % max(1, c) for g, c in zip(launch.grid, image.cluster)):
        raise MemsimError(
            f"the grid of {name} must be a multiple of its cluster {image.cluster}, and {launch.grid} is not"
        )
