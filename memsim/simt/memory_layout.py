"""The memory of a launch, laid out for its kernel: arguments, shared arrays, variables and the stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memsim.argument_types.launch_arguments import arrays_of
from memsim.isa.executable import Executable
from memsim.isa.op import Flow
from memsim.isa.stack import local_name
from memsim.launch import GLOBAL_ALIGN, Launch
from memsim.simt.cooperative import place_workspace
from memsim.state.address_spaces import align
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison

#: Bytes of stack if functions are called, because cubins do not always have the depth (CUDA's default).
UNBOUNDED_STACK = 1024

#: The initial contents of a block's own memory.
NEVER_WRITTEN = {
    space: Poison(f"read of {space} memory that was never written", None) for space in ("shared", "local")
}


def memory_of(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[Any],
    names: Sequence[str],
    memory: Memory | None = None,
) -> Memory:
    """Memory, new if none is given, with the kernel's shared arrays and the module's variables placed."""
    if memory is None:
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
    missing = [variable for variable in kernel.variables if variable.name not in memory.symbols]
    for variable in missing:
        start = layout.place(variable.name, variable.size, max(variable.align, GLOBAL_ALIGN), GLOBAL_ALIGN)
        memory.symbols[variable.name] = ("global", start)
        if variable.init is not None:
            memory.contents.append((start, variable.init))
    for variable in missing:
        start = memory.symbols[variable.name][1]
        for pointer in variable.pointers:
            if pointer.symbol in memory.symbols:
                value = memory.symbols[pointer.symbol][1] + pointer.addend
                memory.contents.append((start + pointer.offset, value.to_bytes(8, "little")))
                memory.tables.append(start)
