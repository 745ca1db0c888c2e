"""The constant banks of a launch: in bank 0 the driver's part (`Front`) and the parameters; the pointers."""

from __future__ import annotations

import math
import struct

from memsim.arch import Front, arch_of_code
from memsim.isa.executable import Executable
from memsim.launch import Launch
from memsim.simt.cooperative import workspace_of
from memsim.simt.launch_checks import cluster_of
from memsim.state.address_spaces import CONSTANT_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW
from memsim.state.launch_memory import Memory

#: Addresses of system functions such as vprintf; they have no code.
SYSTEM_FUNCTIONS = 0x7FFF_0000_0000


def constant_banks(
    kernel: Executable, launch: Launch, parameters: bytes, memory: Memory
) -> tuple[dict[int, bytes], tuple[range, ...], dict[int, str]]:
    """The constant banks of a launch, the unknown ranges of bank 0, and addresses of system functions."""
    front, holes = _front(kernel, launch, memory)
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


def _front(kernel: Executable, launch: Launch, memory: Memory) -> tuple[bytes, tuple[range, ...]]:
    """What the driver writes before the parameters: (the bytes, the ranges that are unknown).

    ptxas reads the size of dynamic shared memory (%dynamic_smem_size) there.
    """
    front, size = arch_of_code(kernel.made_for).front, kernel.parameter_base
    workspace, clusters = workspace_of(memory), cluster_of(kernel, launch)
    cluster = clusters or (1, 1, 1)
    counts = (-(-extent // width) for extent, width in zip(launch.grid, cluster))
    in_cluster = clusters is not None, *cluster, *(1 / extent for extent in cluster), *counts
    fields: list[tuple[int | None, str, tuple[float, ...]]] = [
        (front.block, "<3I", launch.block),
        (front.grid, "<3I", launch.grid),
        (front.shared_window, "<Q", (SHARED_WINDOW,)),
        (front.local_base, "<Q", (LOCAL_WINDOW,)),
        (front.stack, "<I", (memory.layouts["local"].end,)),
        (_of_cluster(front, front.dynamic, cluster), "<I", (launch.shared_bytes,)),
        (front.constants, "<Q", (CONSTANT_WINDOW,)),
        (front.in_cluster, "<4I3f3I", in_cluster),
        (front.parameters, "<Q", (PARAMETER_WINDOW,)),
        (front.cluster, "<I", (math.prod(cluster),)),
        (front.descriptor, "<Q", (0,)),  # no address depends on it
        (_of_cluster(front, front.workspace, cluster), "<2I", (workspace >> 32, workspace & 0xFFFFFFFF)),
    ]
    content = bytearray(size)
    known: list[range] = []
    for place, form, values in fields:
        if place is not None and place >= 0 and place + struct.calcsize(form) <= size:
            struct.pack_into(form, content, place, *values)
            known.append(range(place, place + struct.calcsize(form)))
    return bytes(content), _between(known, size)


def _of_cluster(front: Front, place: int | None, cluster: tuple[int, int, int]) -> int | None:
    return None if place is None else place - front.by_cluster * math.prod(cluster)


def _between(known: list[range], size: int) -> tuple[range, ...]:
    """The gaps between the ranges."""
    holes, at = [], 0
    for each in sorted(known, key=lambda each: each.start):
        if at < each.start:
            holes.append(range(at, each.start))
        at = max(at, each.stop)
    return (*holes, range(at, size)) if at < size else tuple(holes)
