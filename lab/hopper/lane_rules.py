"""What the rules predict of microbenchmarks of single requests: lanes in memory of several blocks, generic
atomics on local memory, atomics on global memory; and of instructions without an access.
"""

from __future__ import annotations

from lab.hopper.hopper_launch import (
    CONFLICTS,
    REMOTE,
    WAVEFRONTS,
    Counters,
    Expected,
    Parts,
    of_request,
)
from memsim.model import global_access
from memsim.model.coalescing import local_access
from memsim.model.remote import global_atomic_access, remote_access

#: Bytes of a lane, operation and counter of requests to other blocks, by the kernels' names.
SEVERAL = {
    **{"add": (4, "cluster_atomic", "atom"), "exch64": (8, "cluster_atomic", "atom")},
    **{"cas": (4, "cluster_atomic_cas", "atom"), "red_async": (4, "cluster_async_reduction", "redas")},
    **{"st_async": (4, "cluster_async_store", "st"), "ld32": (4, "cluster_load", "ld")},
    **{"st32": (4, "cluster_store", "st"), "st128": (16, "cluster_store", "st")},
}
#: Bytes of a lane, counter and passes of atomics on global memory.
GLOBAL = {
    **{
        "g_add": (4, "atom", 1),
        "g_cas": (4, "atom", 2),
        "g_exch64": (8, "atom", 1),
        "g_cas64": (8, "atom", 2),
    },
    **{"g_red": (4, "red", 1), "g_redf": (4, "red", 1), "g_red16x2": (4, "red", 1), "g_red64": (8, "red", 1)},
}
OF_GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
#: In a table: the rank of the block, of an address in shared memory; whether it is in global memory.
RANK_BITS, GLOBAL_BIT = 24, 30
#: Wavefronts in `..._op_misc` of each of sixteen instructions, and of a block's first barrier.
MISC = {
    **dict.fromkeys(("x_shfl", "x_idx", "x_bulk", "x_movm"), 1),
    **dict.fromkeys(("x_membar", "x_proxy", "x_cluster"), 2),
}
FIRST_BARRIER = ("x_bar", "x_barred")


def several(parts: Parts) -> Expected:
    """Lanes of a block in memory of others of its cluster; those of asynchronous stores also in its own."""
    for launch in (one for launches in parts.values() for one in launches):
        kind = launch.kernel.removeprefix("e_").rpartition("_")[0]
        if not launch.kernel.startswith("e_") or kind not in SEVERAL:
            continue
        width, op, end = SEVERAL[kind]
        addresses, active = launch.lanes
        if "async" not in op:
            active = active & (addresses >> RANK_BITS > 0)
        if op in ("cluster_load", "cluster_store"):
            cost = global_access(addresses, width, op.removeprefix("cluster_"), active)
        else:
            cost = remote_access(addresses, width, op, active)
        yield launch, of_request(REMOTE, end, cost, int(active.any()))


def of_global_memory(parts: Parts) -> Expected:
    """Atomics and reductions; the memory starts at a multiple of its size."""
    for launch in parts.get("global_atomics", ()):
        width, end, passes = GLOBAL[launch.kernel]
        addresses, active = launch.lanes
        yield launch, of_request(OF_GLOBAL, end, global_atomic_access(addresses, width, passes, active))


def of_local_memory(parts: Parts) -> Expected:
    """Generic atomics, all lanes in local memory: of 4 bytes in the counters of global atomics, of 8 bytes in
    none.
    """
    for launch in parts.get("generic_atomics", ()):
        places, active = launch.lanes
        if launch.kernel == "t_empty" or (places[active] >> GLOBAL_BIT).any():
            continue
        sectors = int(local_access(places, 4, "load", active).sectors)
        requests, sectors = (0, 0) if launch.kernel.endswith("64") else (1, sectors)
        yield (
            launch,
            {OF_GLOBAL.format("requests", "atom"): requests, OF_GLOBAL.format("sectors", "atom"): sectors},
        )


def others(parts: Parts) -> Expected:
    """Instructions without an access, sixteen times in each warp; beyond those one for each warp's end."""
    for launch in parts.get("other_instructions", ()):
        warps = launch.grid * launch.block // 32
        expected: Counters = {CONFLICTS.format("misc"): 0}
        first = launch.grid if launch.kernel in FIRST_BARRIER else 0
        expected[WAVEFRONTS.format("misc")] = warps * (1 + 16 * MISC.get(launch.kernel, 0)) + first
        yield launch, expected
