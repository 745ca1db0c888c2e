"""Totals under ncu's names, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.arch import ARCHS
from memsim.model import COUNTERS, global_access, shared_access, totals
from memsim.model.counters import QUANTITIES
from studies.access_patterns import DATA, GLOBAL, SHARED, Recorded


def sums_of(recorded: Recorded, launch: int) -> dict[str, int]:
    rows = slice(256 * launch, 256 * (launch + 1))
    addresses, active = recorded.addresses[rows], recorded.active[rows]
    if recorded.space == "shared":
        shared = shared_access(addresses, recorded.width, recorded.op, active)
        return {"wavefronts": shared.wavefronts.sum(), "conflicts": shared.conflicts.sum()}
    cost = global_access(addresses, recorded.width, recorded.op, active)
    return {"requests": active.any(axis=1).sum(), "sectors": cost.sectors.sum(), "lines": cost.lines.sum()}


@pytest.mark.parametrize("launch", [0, 1])
@pytest.mark.parametrize("recorded", SHARED + GLOBAL, ids=lambda r: r.name)
def test_totals_equal_the_hardware_metrics_of_those_names(recorded: Recorded, launch: int) -> None:
    """Every metric in the table, also those to which this instruction must add nothing."""
    predicted = totals({(recorded.space, recorded.op): sums_of(recorded, launch)})
    compared = [metric for metric in predicted if metric in DATA["hw_metrics"]]
    # Two are Source page columns, with no sum in hardware; local memory was measured with compiled kernels.
    assert len(compared) == sum(counter.space != "local" and not counter.seldom for counter in COUNTERS) - 2
    assert {m: predicted[m] for m in compared} == {m: recorded.hardware(m)[launch] for m in compared}


def test_names_quantities_and_ops_are_real() -> None:
    measured = {(entry.space, entry.op) for arch in ARCHS.values() for entry in arch.rules}
    names = {*DATA["hw_metrics"], *DATA["source_columns"]}
    assert len({counter.metric for counter in COUNTERS}) == len(COUNTERS)
    for counter in COUNTERS:
        assert counter.metric in names or counter.space == "local" or counter.seldom
        assert counter.quantity in QUANTITIES[counter.space]
        assert {(counter.space, op) for op in counter.ops} <= measured
        assert not set(counter.unsettled) & set(counter.ops)
        assert counter.accuracy


def test_ops_add_up_and_nothing_is_zero() -> None:
    wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
    loads = {"wavefronts": np.int64(5), "conflicts": 1}
    both = totals({("shared", "load"): loads, ("shared", "ldmatrix"): {"wavefronts": 2, "conflicts": 0}})
    assert both[wavefronts] == 7
    assert type(both[wavefronts]) is int
    assert set(totals({}).values()) == {0}


def test_an_unsettled_op_takes_its_metrics_out() -> None:
    load = {"requests": 1, "sectors": 4, "lines": 1}
    metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    assert totals({("global", "load"): load})[metric] == 4
    short = totals({("global", "load"): load, ("global", "cp_async_cg"): load, ("global", "store"): load})
    assert short[metric] == 8
    assert "memory_l2_theoretical_sectors_global" not in short
    assert short["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 4


def test_what_is_undecided_is_left_out() -> None:
    copies = {("shared", "cp_async"): {"wavefronts": 5, "conflicts": 4}}
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    assert totals(copies)[metric] == 4
    assert set(totals(copies)) - set(totals(copies, undecided=[metric])) == {metric}
