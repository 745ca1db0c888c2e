"""Single copies, generic accesses and loads of constants, as two GPUs counted them (`requests.npz`).

Row d of a launch was executed 64**d times, so a counter is the sum of the predictions with these weights.
"""

from __future__ import annotations

import numpy as np
import pytest

from memsim.model import bypass_access, global_access, shared_access
from memsim.model.coalescing import constant_access, local_access
from memsim.model.cp_async import overlaps
from tests.validate.conftest import H100, H200, TRACES

FILE, ON_H100 = (np.load(TRACES / gpu / "requests.npz") for gpu in (H200, H100))
TIMES = 64 ** np.arange(5)
GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
LOCAL = "l1tex__t_{}_pipe_lsu_mem_local_op_{}.sum"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
Columns = dict[str, np.ndarray]


def rows_of(kernel: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(addresses, those copied from, executing lanes, zero-filling lanes or space) [launches, rows, 32]."""
    at, source, flags, _ = np.moveaxis(FILE[f"{kernel}_tables"].astype(np.int64), -1, 0)
    return at, source, flags % 2 > 0, flags // 2


def compared(
    kernel: str, expected: Columns, keep: np.ndarray | None = None, times: np.ndarray = TIMES
) -> int:
    """Assert that counters are as expected, of the launches to keep; returns how many there are."""
    metrics = FILE[f"{kernel}_metrics"].tolist()
    counters = FILE[f"{kernel}_counters"]
    kept = np.ones(len(counters), np.bool_) if keep is None else keep
    for metric, rows in expected.items():
        weighted = (rows.astype(np.int64) * times).sum(axis=1)
        assert np.array_equal(counters[kept, metrics.index(metric)], weighted[kept]), metric
    return len(expected) * int(np.count_nonzero(kept))


def test_an_h100_counts_the_same_as_an_h200() -> None:
    assert FILE.files == ON_H100.files and len(FILE.files) == 1 + 3 * 15
    assert [name for name in FILE.files if not np.array_equal(FILE[name], ON_H100[name])] == ["head"]


@pytest.mark.parametrize("width", [4, 8, 16])
def test_copies_under_a_guard_and_with_zeros_count_as_loads_of_the_lanes_that_read(width: int) -> None:
    _, source, on, zeros = rows_of(f"copy_ca{width}")
    read = on & (zeros == 0)
    cost = global_access(source, width, "cp_async", read)
    expected = {"requests": read.any(axis=-1), "sectors": cost.sectors, "set_accesses": cost.lines}
    assert (
        compared(f"copy_ca{width}", {GLOBAL.format(what, "ld"): column for what, column in expected.items()})
        == 24
    )


def test_copies_past_the_cache_under_a_guard_and_with_zeros() -> None:
    to, source, on, zeros = rows_of("copy_cg16")
    read = on & (zeros == 0)
    cost = bypass_access(to, source, read)
    always = {"requests": read.any(axis=-1), "set_accesses": cost.lines}
    expected = {GLOBAL.format(what, "ld"): column for what, column in always.items()}
    stored = shared_access(to, 16, "store", on & (zeros > 0))
    assert compared("copy_cg16", {**expected, CONFLICTS.format("ldgsts"): stored.conflicts}) == 24
    apart = ~overlaps(to, on).any(axis=-1)
    compared("copy_cg16", {GLOBAL.format("sectors", "ld"): cost.sectors}, apart)


@pytest.mark.parametrize("kernel", ["load1", "load4", "load8", "load16", "store4", "store8", "store16"])
def test_generic_accesses_count_each_lane_in_its_space(kernel: str) -> None:
    op = kernel.rstrip("0123456789")
    width, end = int(kernel.removeprefix(op)), {"load": "ld", "store": "st"}[op]
    at, _, on, space = rows_of(kernel)
    of_global, of_shared, of_local = (on & (space == number) for number in range(3))
    far, own = global_access(at, width, op, of_global), local_access(at, width, op, of_local)
    shared = shared_access(at, width, "load_generic" if op == "load" else op, of_shared)
    expected = {
        GLOBAL.format("requests", end): of_global.any(axis=-1),
        GLOBAL.format("sectors", end): far.sectors,
        GLOBAL.format("set_accesses", end): far.lines,
        LOCAL.format("requests", end): own.requests,
        LOCAL.format("sectors", end): own.sectors,
        WAVEFRONTS.format(end): shared.wavefronts,
        CONFLICTS.format(end): shared.conflicts,
    }
    assert compared(kernel, expected) == 56


@pytest.mark.parametrize(("kernel", "op"), [("add4", "atomic"), ("max4", "atomic"), ("cas4", "atomic_cas")])
def test_generic_atomics_take_a_wavefront_where_no_lane_is_in_shared_memory(kernel: str, op: str) -> None:
    at, _, on, space = rows_of(kernel)
    there = on & (space == 1)
    cost = shared_access(at, 4, op, there)
    nobody = (on.any(axis=-1) & ~there.any(axis=-1))[..., None] & (np.arange(32) == 0)
    unmade = shared_access(0 * at, 4, f"{op}_unmade", nobody)
    expected = {
        GLOBAL.format("requests", "atom"): (on & (space == 0)).any(axis=-1),
        WAVEFRONTS.format("atom"): cost.wavefronts + unmade.wavefronts,
        CONFLICTS.format("atom"): cost.conflicts + unmade.conflicts,
    }
    assert compared(kernel, expected) == 24


def test_constants_make_a_request_for_each_distinct_address() -> None:
    """The compiler takes the load out of the loop: 128 blocks execute it once, of two rows only one."""
    at, _, on, _ = rows_of("constant4")
    expected = {
        "idc__requests.sum": constant_access(at, 4, active=on),
        "smsp__inst_executed_op_ldc.sum": np.ones(at.shape[:2], np.int64),
    }
    assert compared("constant4", expected, times=np.array([1, 1, 128, 128, 128])) == 16


def test_a_pair_rule_for_generic_loads_would_be_found() -> None:
    at, _, on, space = rows_of("load16")
    merged = shared_access(at, 16, "load", on & (space == 1))
    with pytest.raises(AssertionError):
        compared("load16", {WAVEFRONTS.format("ld"): merged.wavefronts})
