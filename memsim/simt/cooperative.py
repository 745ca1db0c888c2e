"""Cooperative launches: all blocks of the grid run at once and synchronize in a workspace.

A kernel that reads the address of the workspace (`cooperative_groups::this_grid()`) is cooperative. The
driver allocates the workspace: its size, and the word in which the grid barrier counts. Source:
cooperative_groups/details/driver_abi.h and sync.h of CUDA 12.0, and the code that ptxas 12.9 generates for
%envreg1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from memsim.arch import Arch, arch_of_code
from memsim.errors import MemsimError
from memsim.isa.executable import Executable
from memsim.isa.op import Constant
from memsim.launch import GLOBAL_ALIGN, Launch
from memsim.names.demangle import demangle
from memsim.simt.pointer_roots import PARAMETER_BITS
from memsim.state.launch_memory import Memory

#: The buffer's name in reports, and its size: two words.
WORKSPACE = "grid workspace"
WORKSPACE_BYTES = 8


@lru_cache(maxsize=256)
def is_cooperative(kernel: Executable) -> bool:
    """Does the kernel read the address of its grid's workspace?"""
    places, by_cluster = _places(kernel), arch_of_code(kernel.made_for).front.by_cluster > 0
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
