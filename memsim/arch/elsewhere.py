"""Rules for a chip on which nothing was measured here: what is published, and the rest as on sm_90.

A recording contributed for such a chip makes them measured (`memsim.arch.contributed`).
"""

from __future__ import annotations

from dataclasses import replace

from memsim.arch.chip import ASSUMED, PUBLISHED, Front, Rule
from memsim.arch.sm_90 import SM_90

_GUIDE = (
    "CUDA C++ Programming Guide, Shared Memory of compute capability 5.x and later: 32 banks of 4 bytes, no "
    "conflict within a word"
)
_SECTORS = "Nsight Compute, Kernel Profiling Guide, Memory Tables: sectors of 32 bytes, lines of 128"
#: (space, op) -> widths in bytes per lane, and where it is published.
_PUBLISHED = {
    ("shared", "load"): ((1, 2, 4), _GUIDE),
    ("shared", "store"): ((1, 2, 4), _GUIDE),
    ("global", "load"): ((1, 2, 4, 8, 16), _SECTORS),
    ("global", "store"): ((1, 2, 4, 8, 16), _SECTORS),
}

#: Operations that no older chip has.
ONLY_SM_90 = (
    *("stmatrix", "wgmma", "bulk_load", "bulk_multicast", "bulk_store", "bulk_reduction"),
    *(
        "cluster_load",
        "cluster_store",
        "cluster_atomic",
        "cluster_atomic_cas",
        "cluster_async_store",
        "async_store",
        "cluster_async_reduction",
        "async_reduction",
        "cluster_bulk_store",
        "cluster_bulk_reduction",
    ),
)

#: From sm_100 on, dimensions, stack and descriptor come last; where the size of dynamic shared memory
#: and the workspace of a grid are depends on the cluster. What SR_CgaSize is there was not measured: here it
#: is the number of blocks.
BLACKWELL_FRONT = Front(
    block=0x360,
    grid=0x370,
    shared_window=None,
    local_base=0x2F8,
    stack=0x37C,
    dynamic=0x2AC,
    constants=0x120,
    descriptor=0x358,
    workspace=0x254,
    by_cluster=0xA0,
    of_groups=None,
)


def as_on_sm_90(without: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """The rules of sm_90, each with its basis on another chip; without: operations that the chip lacks."""
    found: list[Rule] = []
    for rule in SM_90.rules:
        if rule.op in without:
            continue
        known, where = _PUBLISHED.get((rule.space, rule.op), ((), ""))
        published = tuple(width for width in rule.widths if width in known)
        assumed = tuple(width for width in rule.widths if width not in known)
        if published:
            found.append(replace(rule, widths=published, where=where, basis=PUBLISHED))
        if assumed:
            found.append(replace(rule, widths=assumed, where="as on sm_90", basis=ASSUMED))
    return tuple(found)
