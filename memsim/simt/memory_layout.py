"""The memory of a launch, laid out for its kernel: arguments, shared arrays, variables, the stack, and the
workspace in which all blocks of a cooperative launch synchronize.

A kernel that reads the address of the workspace (`cooperative_groups::this_grid()`), or calls the driver's
function that waits for the grid, is cooperative: all blocks of its grid run at once. The driver allocates the
workspace: its size, and the word in which the grid barrier counts. Source:
cooperative_groups/details/driver_abi.h and sync.h of CUDA 12.0, and the code that ptxas 12.9 generates for
%envreg1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from memsim.arch import Arch, arch_of_code
from memsim.argument_types.launch_arguments import arrays_of
from memsim.errors import MemsimError
from memsim.isa.control import GRID_SYNCHRONIZE
from memsim.isa.op import Constant, Flow, Trait
from memsim.isa.program import Executable
from memsim.isa.stack import local_name
from memsim.isa.tensor_memory import BOOK
from memsim.launch import GLOBAL_ALIGN, Launch
from memsim.names.demangle import demangle
from memsim.simt.pointer_roots import PARAMETER_BITS
from memsim.state.address_spaces import align
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison

#: The buffer's name in reports, and its size: two words.
WORKSPACE = "grid workspace"
WORKSPACE_BYTES = 8


@lru_cache(maxsize=256)
def is_cooperative(kernel: Executable) -> bool:
    """Does the kernel read the address of its grid's workspace, or wait for its grid by the driver?"""
    places, by_cluster = _places(kernel), arch_of_code(kernel.made_for).front.by_cluster > 0
    if any(op.flow is Flow.CALL and GRID_SYNCHRONIZE in op.text for op in kernel.program.ops):
        return True
    return bool(places) and any(
        isinstance(operand, Constant)
        and operand.bank == 0
        and (operand.register is not None) == by_cluster
        and operand.offset in places
        for op in kernel.program.ops
        for operand in op.form.operands
    )


def _places(kernel: Executable) -> tuple[int, ...]:
    """Offsets in constant bank 0 of the halves of the address."""
    first = arch_of_code(kernel.made_for).front.workspace
    return () if first is None else (first, first + 4)


def place_workspace(kernel: Executable, memory: Memory) -> None:
    """Allocate the workspace of a cooperative launch: zeros, a barrier that no block has reached."""
    if is_cooperative(kernel):
        start = memory.layouts["global"].place(WORKSPACE, WORKSPACE_BYTES, GLOBAL_ALIGN, GLOBAL_ALIGN)
        memory.symbols[WORKSPACE] = ("global", start)
        memory.contents.append((start, WORKSPACE_BYTES.to_bytes(4, "little")))


def workspace_of(memory: Memory) -> int:
    """Its address; 0 if there is none."""
    return memory.symbols.get(WORKSPACE, ("global", 0))[1]


def workspace_roots(kernel: Executable) -> Iterator[int]:
    """The roots (bits of `dataflow.roots_of`) of addresses derived from the workspace."""
    yield from (1 << (PARAMETER_BITS + place // 8) for place in _places(kernel))


def check_grid(kernel: Executable, launch: Launch, blocks: int, shared_bytes: int, arch: Arch) -> None:
    """Raise unless all blocks of the grid are replayed and can be resident at once.

    blocks: number of replayed blocks. shared_bytes: per block. Registers may allow even fewer.
    """
    name = demangle(kernel.name)
    if blocks < launch.blocks:
        raise MemsimError(
            f"{name} synchronizes its whole grid, but only {blocks} of {launch.blocks} blocks are replayed",
            hint="omit --blocks (blocks)",
        )
    room = arch.shared_multiprocessor_bytes // (shared_bytes + arch.shared_reserved_bytes)
    most = arch.multiprocessors * min(arch.resident_blocks, arch.resident_warps // launch.warps, room)
    if blocks > most:
        raise MemsimError(
            f"{name} synchronizes its whole grid of {blocks:,} blocks; {arch.chip} holds {most:,} at once",
            hint="a cooperative launch cannot have a larger grid",
        )


# --- all memory of a launch ------------------------------------------------------------------

#: Bytes of stack if functions are called, because cubins do not always have the depth (CUDA's default).
UNBOUNDED_STACK = 1024

#: The initial contents of a block's own memory.
NEVER_WRITTEN = {
    space: Poison(f"read of {space} memory that was never written", None) for space in ("shared", "local")
}


def memory_of(
    kernel: Executable,
    launch: Launch,
    arguments: Sequence[object],
    names: Sequence[str],
    memory: Memory | None = None,
    *,
    moved: int = 0,
) -> Memory:
    """Memory, new if none is given, with the kernel's shared arrays and the module's variables placed.

    moved: as `Memory`.
    """
    if memory is None:
        memory = Memory(list(arrays_of(names, arguments)), kernel.shared_base, moved)
    shared = memory.layouts["shared"]
    for name, address, size in kernel.shared:
        shared.add(name, address, size)
    if any(Trait.ALLOCATES in op.traits for op in kernel.program.ops):
        shared.add(BOOK, 0, kernel.shared_base)
        shared.base, memory.system_shared = 0, kernel.shared_base
    shared.end = kernel.shared_base + kernel.static_shared
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
            _, target = memory.symbols.get(pointer.symbol, ("", kernel.functions.get(pointer.symbol)))
            if target is not None:
                value = target + pointer.addend
                memory.contents.append((start + pointer.offset, value.to_bytes(8, "little")))
