"""Which ncu metric counts which of the model's quantities, as far as that was measured.

In: sums of the model's numbers for each space and operation. Out: totals under ncu's names.
Left out on purpose: metrics with no measured rule (`l1tex__data_pipe_lsu_wavefronts_mem_shared.sum`
without an op, which has wavefronts of no instruction's own; everything of global atomics but the
Source page's columns; `t_output_wavefronts`; caches).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

EXACT = "exact on every pattern recorded"
ARBITRATION = (
    "exact for one warp; in whole kernels arbitration between warps adds up to about 6 %,"
    " different in each run"
)

# Quantities that `totals` reads for each space.
QUANTITIES = {
    "shared": ("wavefronts", "conflicts"),
    "global": ("requests", "sectors", "lines"),
}


@dataclass(frozen=True, slots=True)
class Counter:
    """One ncu metric: the sum of `quantity` over `ops` in `space`.

    accuracy: what the comparison with hardware showed. unsettled: operations whose share in this
    metric was not measured; a kernel that uses one gets no total under this name.
    """

    metric: str
    space: str
    quantity: str
    ops: tuple[str, ...]
    accuracy: str = EXACT
    unsettled: tuple[str, ...] = ()


_LOADS = ("load", "ldmatrix")
_STORES = ("store", "stmatrix")
_ATOMICS = ("atomic", "reduction")
_SHARED_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_SHARED_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_GLOBAL = "pipe_lsu_mem_global_op_"
_CP = ("cp_async",)
_ANY_GLOBAL = ("load", "store", *_ATOMICS)

COUNTERS = (
    Counter(f"{_SHARED_WAVEFRONTS}ld.sum", "shared", "wavefronts", _LOADS),
    Counter(f"{_SHARED_WAVEFRONTS}st.sum", "shared", "wavefronts", _STORES, ARBITRATION),
    Counter(f"{_SHARED_WAVEFRONTS}atom.sum", "shared", "wavefronts", _ATOMICS),
    Counter(f"{_SHARED_CONFLICTS}ld.sum", "shared", "conflicts", _LOADS),
    Counter(f"{_SHARED_CONFLICTS}st.sum", "shared", "conflicts", _STORES, ARBITRATION),
    Counter(f"{_SHARED_CONFLICTS}atom.sum", "shared", "conflicts", _ATOMICS),
    Counter(f"{_SHARED_CONFLICTS}ldgsts.sum", "shared", "conflicts", _CP),
    Counter(f"l1tex__t_requests_{_GLOBAL}ld.sum", "global", "requests", ("load",), unsettled=_CP),
    Counter(f"l1tex__t_requests_{_GLOBAL}st.sum", "global", "requests", ("store",)),
    Counter(f"l1tex__t_sectors_{_GLOBAL}ld.sum", "global", "sectors", ("load",), unsettled=_CP),
    Counter(f"l1tex__t_sectors_{_GLOBAL}st.sum", "global", "sectors", ("store",)),
    Counter(f"l1tex__t_set_accesses_{_GLOBAL}ld.sum", "global", "lines", ("load",), unsettled=_CP),
    Counter("memory_l2_theoretical_sectors_global", "global", "sectors", _ANY_GLOBAL, unsettled=_CP),
    Counter("memory_l1_tag_requests_global", "global", "lines", _ANY_GLOBAL, unsettled=_CP),
)


def totals(sums: Mapping[tuple[str, str], Mapping[str, int]]) -> dict[str, int]:
    """Totals under ncu's names, for a kernel that makes the accesses in `sums`.

    Args:
        sums: for each (space, op) that occurs, such as ("shared", "load"), the sum over all
            requests of each quantity in `QUANTITIES[space]`. An op whose requests could not all be
            resolved belongs here all the same, with what is known; the caller says that it is short.

    Returns:
        Metric name -> count, in the order of `COUNTERS`; 0 where nothing occurs. A metric is
        left out if the kernel uses an op whose share in it was not measured.
    """
    result = {}
    for counter in COUNTERS:
        if any((counter.space, op) in sums for op in counter.unsettled):
            continue
        keys = ((counter.space, op) for op in counter.ops)
        result[counter.metric] = sum(int(sums[key][counter.quantity]) for key in keys if key in sums)
    return result
