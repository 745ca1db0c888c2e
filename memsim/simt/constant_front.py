"""The part of constant bank 0 before a kernel's parameters, which the driver fills for a launch (`Front`)."""

from __future__ import annotations

import math
import struct

from memsim.arch import Front
from memsim.launch import Launch
from memsim.state.address_spaces import CONSTANT_WINDOW, LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW


def front_bytes(
    front: Front,
    size: int,
    launch: Launch,
    stack: int,
    clusters: tuple[int, int, int] | None,
    workspace: int = 0,
) -> tuple[bytes, tuple[range, ...]]:
    """(the bytes, the ranges that are unknown). stack: per thread, in bytes; clusters: blocks of a cluster,
    None without clusters.

    ptxas reads the size of dynamic shared memory (%dynamic_smem_size) there.
    """
    cluster = clusters or (1, 1, 1)
    counts = (-(-extent // size) for extent, size in zip(launch.grid, cluster))
    in_cluster = clusters is not None, *cluster, *(1 / extent for extent in cluster), *counts
    fields: list[tuple[int | None, str, tuple[float, ...]]] = [
        (front.block, "<3I", launch.block),
        (front.grid, "<3I", launch.grid),
        (front.shared_window, "<Q", (SHARED_WINDOW,)),
        (front.local_base, "<Q", (LOCAL_WINDOW,)),
        (front.stack, "<I", (stack,)),
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
