"""What is refused: errors of a running kernel, with their place in its source; and launches that a kernel, or
its chip, does not allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memsim.arch import Arch, arch_of_code
from memsim.errors import MemsimError
from memsim.isa.program import OF_TILES, Executable, Op
from memsim.launch import Launch
from memsim.names.demangle import demangle
from memsim.state.launch_memory import Memory
from memsim.state.poison import Poison

#: The kind of a fault: what is done with an mbarrier.
MBARRIER = "mbarrier"


class KernelFault(MemsimError):
    """An error for which a GPU stops the kernel. kind: "address", "alignment", "mbarrier", "assert", "trap",
    or "endless". by: the access that is wrong, if it is one.
    """

    def __init__(self, message: str, kind: str, by: WrongLanes | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.kind = kind
        self.by = by


class Deadlock(MemsimError):
    """Lanes wait for others that never come. by: some of them."""

    def __init__(self, message: str, by: WrongLanes) -> None:
        super().__init__(message, **place_in_source(by.op))
        self.by = by


def together(stuck: Sequence[Deadlock]) -> Deadlock:
    """The first of several errors, which says who else waits for whom."""
    first, *others = stuck
    also = (f"; at {one.by.op.where}, {one.message.removeprefix('deadlock: ')}" for one in others)
    return Deadlock(first.message + "".join(also), first.by)


@dataclass(frozen=True)
class WrongLanes:
    """Lanes with an error at an instruction: the linear numbers of the first one's block and of its thread,
    and how many they are. space, width: of an access. where: in words, as ` at byte 128 of s (128 bytes)`.
    """

    op: Op
    block: int
    thread: int
    count: int
    space: str = ""
    width: int = 0
    where: str = ""


def place_in_source(op: Op) -> dict[str, Any]:
    """The place of an instruction, for errors."""
    if op.source is not None:
        return {"file": op.source.file, "line": op.source.line}
    return {"file": f"machine code at {op.address:#x}"}


def unknown_branch(op: Op, poison: Poison) -> MemsimError:
    """The error for control flow that depends on an unknown value."""
    return MemsimError(
        f"cannot go on: {op.text} depends on an unknown value: {poison.story()}", **place_in_source(op)
    )


def refused_instruction(op: Op, why: str) -> MemsimError:
    """The error for an instruction that cannot be executed."""
    return MemsimError(f"cannot go on: {op.text} {why}", **place_in_source(op))


def endless(budget: int, op: Op, stuck: Sequence[Deadlock] = ()) -> KernelFault:
    """The error for a kernel that does not end, and is at an instruction after so many. stuck: others."""
    said = f"the kernel has not finished after {budget:,} instructions; it is still in this loop"
    return KernelFault(
        f"{said}; {together(stuck).message}" if stuck else said,
        "endless",
        hint="if the kernel really is this long, allow more by --max-steps (max_steps)",
        **place_in_source(op),
    )


# --- launches --------------------------------------------------------------------------------


def check_chip(kernel: Executable, arch: Arch) -> None:
    """Raise unless the code runs on the chip."""
    if not arch.runs(kernel.made_for):
        raise MemsimError(
            f"this is machine code for {kernel.made_for}, which {arch.name} cannot run",
            hint=f"compile for {arch.name}, omit --arch, or pass the PTX or the source",
        )


def check_launch(kernel: Executable, launch: Launch) -> None:
    """Raise unless the launch conforms to `__launch_bounds__` and `__cluster_dims__`."""
    check_threads(kernel, launch)
    check_cluster(kernel, launch)


def check_threads(kernel: Executable, launch: Launch) -> None:
    """Raise unless the launch conforms to `__launch_bounds__`."""
    name = demangle(kernel.name)
    if kernel.required_threads and launch.block != kernel.required_threads:
        raise MemsimError(f"{name} must be launched with block {kernel.required_threads}")
    if kernel.max_threads:
        x, y, z = kernel.max_threads
        if launch.threads > x * y * z:
            raise MemsimError(
                f"{name} is compiled for at most {x * y * z} threads per block, not {launch.threads}"
            )


def check_cluster(kernel: Executable, launch: Launch) -> tuple[int, int, int] | None:
    """Blocks of a cluster, as `cluster_of`; raises unless the grid is a multiple of it, too."""
    cluster = cluster_of(kernel, launch)
    if cluster and any(g % max(1, c) for g, c in zip(launch.grid, cluster)):
        name = demangle(kernel.name)
        raise MemsimError(
            f"the grid of {name} must be a multiple of its cluster {cluster}, unlike {launch.grid}"
        )
    return cluster


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


def check_shared(kernel: Executable, memory: Memory, arch: Arch) -> None:
    """Raise if a block needs more shared memory than the chip has."""
    if memory.static_shared > arch.static_shared_bytes and OF_TILES not in memory.symbols:
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
