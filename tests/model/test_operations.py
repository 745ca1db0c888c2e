"""The table of operations says the same as the chip's data, the rules, the counters and the opcodes."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.arch import SM_90
from memsim.guard.select import OPS
from memsim.model import COUNTERS, shared_access
from memsim.model.choice import why_no_cost
from memsim.model.operations import OPERATIONS, REMOTE, Operation, names_in, operation
from memsim.validate.profiles import access_of
from tests.model.oracle import COUNTS_LANES
from tests.model.summed import totals
from tests.model.test_counters import QUANTITIES

SAME = np.zeros(32, np.int64)
SHARED = [row for row in OPERATIONS.values() if row.space == "shared" and row.is_of_lanes and not row.why]


def test_what_has_a_rule_was_measured_and_the_other_way_round() -> None:
    assert {(entry.space, entry.op) for entry in SM_90.rules} <= set(OPERATIONS)
    for (space, name), row in OPERATIONS.items():
        assert (row.space, row.name) == (space, name)
        assert bool(SM_90.widths(space, name)) == (row.is_counted and not row.why)
        reason = why_no_cost(3, name, space, SAME > 0, SAME, SM_90)
        assert (reason is None) == (not row.is_counted)
        assert not row.why or reason == row.why


@pytest.mark.parametrize("row", SHARED, ids=lambda row: row.name)
def test_lanes_share_a_word_where_the_table_says_so(row: Operation) -> None:
    assert row.shares == (row.name not in COUNTS_LANES)
    if not row.is_copy and not row.remote:
        cost = shared_access(SAME, SM_90.widths("shared", row.name)[-1], row.name)
        assert (cost.conflicts == 0) == row.shares
        assert cost.wavefronts % row.passes == 0


def test_each_operation_is_in_the_counters_of_its_own_end_only() -> None:
    for (space, name), row in OPERATIONS.items():
        for counter in COUNTERS:
            if counter.metric.startswith("l1tex__") and counter.space == space and not counter.seldom:
                end = counter.metric.removesuffix(".sum").rpartition("_")[2]
                assert (name in counter.ops) == (row.counter == end)
        sums = {(space, name): dict.fromkeys(QUANTITIES[space], int(row.is_counted and not row.why))}
        found = {metric for metric, total in totals(sums).items() if isinstance(total, int) and total}
        assert bool(found) == (bool(row.counter) or space == "global")
        assert bool(row.counted_as) == bool(row.why)
        assert {(space, other) for other in row.counted_as} <= set(OPERATIONS)
    assert names_in("shared", "ld") == ("load", "ldmatrix", "load_generic")
    assert names_in("shared", "atom") == (
        *("atomic", "reduction", "atomic_inc", "atomic_cas"),
        *("atomic_unmade", "atomic_cas_unmade"),
    )
    assert names_in("global", "ld") == ("load", "cp_async", "cp_async_cg")


def test_lanes_decide_nothing_of_what_goes_elsewhere() -> None:
    elsewhere = {name for space, name in OPERATIONS if name.startswith(("cluster_", "async_"))}
    copies = {"cp_async_cg", "bulk_load", "bulk_store"}
    assert {row.name for row in OPERATIONS.values() if row.remote} == elsewhere == REMOTE
    assert {row.name for row in OPERATIONS.values() if row.grouped} == {"wgmma"}
    not_counted = {name for (space, name), row in OPERATIONS.items() if not row.is_counted}
    assert not_counted == copies
    assert {(row.space, row.name) for row in OPERATIONS.values() if not row.is_of_lanes} == {
        *(("shared", name) for name in {*elsewhere, *copies, "wgmma"}),
        *((space, name) for space, name in OPERATIONS if space == "texture"),
    }


def test_an_opcode_is_called_what_its_operation_is() -> None:
    for row in OPERATIONS.values():
        for opcode in row.opcodes:
            place = "c[0x3][R2+0x10]" if row.space == "constant" else "[R2]"
            assert access_of(f"@P0 {opcode}.E R4, {place}") == row.access
    assert access_of("TLD R4, [R2]") is None


def test_a_budget_can_name_each_and_what_is_unknown_is_counted_nowhere() -> None:
    assert set(OPS) == {name for _, name in OPERATIONS}
    strange = operation("shared", "frob")
    assert (strange.counter, strange.opcodes, strange.access) == ("", (), "shared frob")


def test_a_constant_at_a_fixed_address_is_no_access() -> None:
    assert access_of("LDC.64 R2, c[0x0][0x210]") is None
    assert access_of("@!P1 LDC.64 R2, c[0x3][R4]") == "constant load"
