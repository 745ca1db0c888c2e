"""Which ncu metric counts which of the model's quantities, as far as measured.

Metrics without a measured rule are omitted: `l1tex__data_pipe_lsu_wavefronts_mem_shared.sum` without an op,
which includes wavefronts of no instruction; everything of global atomics but the Source page's columns;
`t_output_wavefronts`, which needs true addresses; caches. `idc__requests` counts loads of constants at fixed
addresses, too, which are no accesses: `memsim.analysis.totals` adds them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from memsim.model.operations import OPERATIONS, names_in

#: Requests whose cost is unknown, by their names in `Trace.uncounted`, that no predicted counter has.
ELSEWHERE = frozenset(("constant memory request", "bulk copy request"))
#: Calls of the driver's functions, whose code no file has. They leave the kernel's own arrays alone.
CALLS = frozenset(("printf call", "malloc call", "free call"))


@dataclass(frozen=True, slots=True)
class Counter:
    """One ncu metric: the sum of `quantity` over `ops` in `space`.

    unsettled: operations whose share in this metric was not measured; a kernel that uses one gets no total
    under this name.
    """

    metric: str
    space: str
    quantity: str
    ops: tuple[str, ...]
    unsettled: tuple[str, ...] = ()
    seldom: bool = False

    def is_reported(self, made: Collection[tuple[str, str]]) -> bool:
        """Whether it is reported for a kernel that makes these accesses, (space, op)."""
        return not self.seldom or any((self.space, op) in made for op in self.ops)


_SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_SHARED_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_REMOTE = "l1tex__t_", "_pipe_lsu_mem_dshared_op_"
_ENGINE_READS = "l1tex__m_xbar2l1tex_read_sectors_mem_global_op_"
_ENGINE_WRITES = "l1tex__m_l1tex2xbar_write_sectors_mem_global_op_"
# The operations in the Source page's columns of global memory, which copies by TMA are not.
_SETTLED = tuple(
    each.name for each in OPERATIONS.values() if each.space == "global" and not (each.bypass or each.engine)
)
_BYPASS = tuple(each.name for each in OPERATIONS.values() if each.space == "global" and each.bypass)
_LOADS, _STORES, _ATOMICS = (names_in("shared", end) for end in ("ld", "st", "atom"))


def _traffic(space: str) -> tuple[Counter, ...]:
    """Requests and sectors of loads and stores of a space."""
    return tuple(
        Counter(
            f"l1tex__t_{quantity}_pipe_lsu_mem_{space}_op_{end}.sum", space, quantity, names_in(space, end)
        )
        for quantity in ("requests", "sectors")
        for end in ("ld", "st")
    )


COUNTERS = (
    Counter(f"{_SHARED_WAVEFRONTS}ld.sum", "shared", "wavefronts", _LOADS),
    Counter(f"{_SHARED_WAVEFRONTS}st.sum", "shared", "wavefronts", _STORES),
    Counter(
        f"{_SHARED_WAVEFRONTS}atom.sum",
        "shared",
        "wavefronts",
        _ATOMICS,
        unsettled=("cluster_atomic", "cluster_atomic_cas"),
    ),
    Counter(f"{_SHARED_CONFLICTS}ld.sum", "shared", "conflicts", _LOADS),
    Counter(f"{_SHARED_CONFLICTS}st.sum", "shared", "conflicts", _STORES),
    Counter(f"{_SHARED_CONFLICTS}atom.sum", "shared", "conflicts", _ATOMICS),
    Counter(f"{_SHARED_CONFLICTS}ldgsts.sum", "shared", "conflicts", names_in("shared", "ldgsts")),
    *_traffic("global"),
    Counter(
        "l1tex__t_set_accesses_pipe_lsu_mem_global_op_ld.sum", "global", "lines", names_in("global", "ld")
    ),
    *_traffic("local"),
    Counter("memory_l2_theoretical_sectors_global", "global", "sectors", _SETTLED, unsettled=_BYPASS),
    Counter(
        "memory_l2_theoretical_sectors_local",
        "local",
        "sectors",
        (*names_in("local", "ld"), *names_in("local", "st")),
        unsettled=("atomic", "reduction"),
    ),
    Counter("memory_l1_tag_requests_global", "global", "lines", _SETTLED, unsettled=_BYPASS),
    *(
        Counter(
            f"{_REMOTE[0]}{name}{_REMOTE[1]}{end}.sum",
            "shared",
            quantity,
            names_in("shared", f"dshared_{end}"),
            seldom=True,
        )
        for end in ("ld", "st", "atom", "redas")
        for name, quantity in (("requests", "requests"), ("sectors", "sectors"), ("set_accesses", "lines"))
    ),
    *(
        Counter(
            f"{metric}_sectors_mem_dshared_op_{end}.sum",
            "shared",
            "sectors",
            names_in("shared", f"dshared_{end}"),
            seldom=True,
        )
        for end in ("tma_st", "tma_red")
        for metric in ("l1tex__m_l1tex2xbar_write", "l1tex__m_xbar2l1tex_read")
    ),
    *(
        Counter(
            f"l1tex__t_{name}_pipe_tex_mem_texture.sum",
            "texture",
            quantity,
            names_in("texture", "texture"),
            seldom=True,
        )
        for name, quantity in (("requests", "requests"), ("sectors", "sectors"), ("set_accesses", "lines"))
    ),
    Counter(f"{_SHARED_WAVEFRONTS}gmma.sum", "shared", "wavefronts", ("wgmma",), seldom=True),
    Counter(f"{_SHARED_CONFLICTS}gmma.sum", "shared", "conflicts", ("wgmma",), seldom=True),
    Counter(f"{_ENGINE_READS}tma_ld.sum", "global", "sectors", names_in("global", "tma_ld"), seldom=True),
    Counter(f"{_ENGINE_WRITES}tma_st.sum", "global", "sectors", ("bulk_store",), seldom=True),
    Counter(f"{_ENGINE_WRITES}tma_red.sum", "global", "sectors", ("bulk_reduction",), seldom=True),
)


def may_count_in(what: str, counter: Counter) -> bool:
    """Whether such a request may count there; one of an unknown kind may count anywhere."""
    if what in ELSEWHERE:
        return False
    if what == "texture request":
        return counter.space == "texture"
    if what == "local memory request":
        return counter.space == "local"
    if what in CALLS:  # generic atomics count in shared memory, too, if none of their lanes is there
        return counter.space in ("global", "local", "constant") or "_op_atom" in counter.metric
    return True
