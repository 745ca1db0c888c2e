"""Cooperative launches: all blocks of the grid run at once, and wait for each other in a workspace.

A kernel that reads the address of the workspace (`cooperative_groups::this_grid()`) is one of them. The
workspace is memory of the driver's: its size, and the word that the barrier of the grid counts in. Source:
cooperative_groups/details/driver_abi.h and sync.h of CUDA 12.0, and code that ptxas 12.9 makes of %envreg1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from memsim.arch import Arch, arch_of_code
from memsim.errors import MemsimError
from memsim.isa.executable import Executable
from memsim.isa.op import Constant
from memsim.launch import GLOBAL_ALIGN, Launch
from memsim.ptx.demangle import demangle
from memsim.simt.dataflow import PARAMETER_BITS
from memsim.state.launch_memory import Memory

#: What reports call the memory, and its size: two words.
WORKSPACE = "grid workspace"
WORKSPACE_BYTES = 8


@lru_cache(maxsize=256)
def is_cooperative(kernel: Executable) -> bool:
    """Does the kernel read where the workspace of its grid is?"""
    places = _places(kernel)
    return bool(places) and any(
        isinstance(operand, Constant)
        and operand.bank == 0
        and not operand.register
        and operand.offset in places
        for op in kernel.program.ops
        for operand in op.form.operands
    )


def _places(kernel: Executable) -> tuple[int, ...]:
    """The bytes of constant bank 0 at which the halves of the address begin."""
    first = arch_of_code(kernel.made_for).front.workspace
    return () if first is None else (first, first + 4)


def place_workspace(kernel: Executable, memory: Memory) -> None:
    """Give a cooperative launch its workspace: zeros, which is a barrier that nobody has come to."""
    if is_cooperative(kernel):
        start = memory.layouts["global"].place(WORKSPACE, WORKSPACE_BYTES, GLOBAL_ALIGN, GLOBAL_ALIGN)
        memory.symbols[WORKSPACE] = ("global", start)
        memory.contents.append((start, WORKSPACE_BYTES.to_bytes(4, "little")))


def workspace_of(memory: Memory) -> int:
    """Where it lies; 0 where there is none."""
    return memory.symbols.get(WORKSPACE, ("global", 0))[1]


def workspace_roots(kernel: Executable) -> Iterator[int]:
    """The roots (bits of `dataflow.roots_of`) of addresses that start from the workspace."""
    yield from (1 << (PARAMETER_BITS + place // 8) for place in _places(kernel))


def check_grid(kernel: Executable, launch: Launch, blocks: int, shared_bytes: int, arch: Arch) -> None:
    """Do all blocks run that wait for each other, and does the chip hold them at once?

    blocks: of the launch, that are replayed. shared_bytes: of a block. Registers may allow even fewer.

    Raises:
        MemsimError: they do not.
    """
    name = demangle(kernel.name)
    if blocks < launch.blocks:
        raise MemsimError(
            f"{name} waits for its whole grid, and only {blocks} of {launch.blocks} blocks are replayed",
            hint="leave out --blocks (blocks)",
        )
    room = arch.shared_multiprocessor_bytes // (shared_bytes + arch.shared_reserved_bytes)
    most = arch.multiprocessors * min(arch.resident_blocks, arch.resident_warps // launch.warps, room)
    if blocks > most:
        raise MemsimError(
            f"{name} waits for its whole grid of {blocks:,} blocks; {arch.chip} holds {most:,} at once",
            hint="a cooperative launch takes no larger grid",
        )
