"""Totals under ncu's names, and which are refused."""

from __future__ import annotations

import numpy as np
import pytest

from lab.probe.instructions import INSTRUCTIONS
from lab.probe.run_probe import GLOBAL_METRICS, SHARED_METRICS
from memsim.analysis.totals import sums_of_rows
from memsim.arch import ARCHS
from memsim.counts import Range
from memsim.model import COUNTERS, global_access, shared_access
from memsim.validate.profiles import SOURCE_METRICS
from tests.model.probed import NAMES, RECORDING, counted
from tests.model.summed import row, totals

#: What rows of a space have.
QUANTITIES = {
    "shared": ("wavefronts", "conflicts", "requests", "sectors", "lines"),
    "global": ("requests", "sectors", "lines"),
    "local": ("requests", "sectors"),
    "constant": ("requests",),
    "texture": ("requests", "sectors", "lines"),
}
METRICS = {"shared": SHARED_METRICS, "global": GLOBAL_METRICS}


def sums_of(name: str, launch: int) -> dict[str, int]:
    instruction, probed = INSTRUCTIONS[name], RECORDING.probed[name]
    addresses, active = probed.addresses[launch], probed.active[launch]
    if instruction.space == "shared":
        shared = shared_access(addresses, instruction.width, instruction.op, active)
        return {"wavefronts": shared.wavefronts.sum(), "conflicts": shared.conflicts.sum()}
    cost = global_access(addresses, instruction.width, instruction.op, active)
    return {"requests": active.any(axis=1).sum(), "sectors": cost.sectors.sum(), "lines": cost.lines.sum()}


@pytest.mark.parametrize("launch", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_totals_equal_the_hardware_metrics_of_those_names(name: str, launch: int) -> None:
    """Every metric that was collected, also those to which this instruction must add nothing."""
    instruction, measured = INSTRUCTIONS[name], counted(name, launch)
    predicted = totals({(instruction.space, instruction.op): sums_of(name, launch)})
    compared = [metric for metric in predicted if metric in measured]
    assert len(compared) == sum(counter.metric in METRICS[instruction.space] for counter in COUNTERS)
    assert {metric: predicted[metric] for metric in compared} == {
        metric: measured[metric] for metric in compared
    }


def test_names_quantities_and_ops_are_real() -> None:
    measured = {(entry.space, entry.op) for arch in ARCHS.values() for entry in arch.rules}
    names = {*RECORDING.metrics, *SOURCE_METRICS}
    assert len({counter.metric for counter in COUNTERS}) == len(COUNTERS)
    for counter in COUNTERS:
        assert counter.metric in names or counter.space == "local" or counter.seldom
        assert counter.quantity in QUANTITIES[counter.space]
        assert {(counter.space, op) for op in counter.ops} <= measured
        assert not set(counter.unsettled) & set(counter.ops)


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
    assert short["memory_l2_theoretical_sectors_global"] == 8  # copies add to it by a formula of their own
    assert short["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 4


def test_what_has_limits_is_no_number() -> None:
    copies = row("shared", "cp_async", {"wavefronts": 5, "conflicts": 4})
    open_ = copies.with_counts({"conflicts": 4}, None, {"conflicts": Range("why", 1, 6)})
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"
    assert sums_of_rows([copies])[metric] == 4
    assert sums_of_rows([copies, open_])[metric] == Range("why", 5, 10)
