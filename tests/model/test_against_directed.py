"""Directed patterns, as recorded: atomics of each kind, single copies, 16-byte loads with idle lanes."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from memsim.data import data_folder
from memsim.model import bypass_access, copy_access, shared_access, shared_source_page
from memsim.model.cp_async import limits_of_conflicts, overlaps
from memsim.model.sourcepage import UNKNOWN

FILE = data_folder("traces") / "nvidia-h100-80gb-hbm3" / "directed.npz"
SHA256 = "7c158765d96c5b3c93c02d2219089611831236626d7ca0209f1a892e91c465c3"
DATA = dict(np.load(FILE))
ATOMICS = [tuple(entry.split(":")) for entry in DATA["atomics"].tolist()]


def lanes(name: str) -> tuple[np.ndarray, np.ndarray]:
    return DATA[f"{name}_addresses"].astype(np.int64), DATA[f"{name}_active"]


def test_the_recording_is_the_one_that_was_made() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == SHA256


@pytest.mark.parametrize(("name", "op", "width"), ATOMICS, ids=[name for name, _, _ in ATOMICS])
def test_shared_atomics_equal_every_pattern_and_counter(name: str, op: str, width: str) -> None:
    addresses, active = lanes(name)
    page = shared_source_page(addresses, int(width), op, active)
    cost = shared_access(addresses, int(width), op, active)
    assert np.array_equal(np.stack([page.wavefronts, page.ideal], axis=1), DATA[f"{name}_source"])
    assert DATA[f"{name}_hw"].tolist() == [cost.wavefronts.sum(), cost.conflicts.sum()]
    assert len(addresses) == 192


def test_another_rule_would_be_found_out() -> None:
    for name, op, wrong, width in (
        ("INC", "atomic_inc", "atomic", 4),
        ("CAS", "atomic_cas", "atomic", 4),
        ("EXCH64", "atomic", "store", 8),
    ):
        addresses, active = lanes(name)
        right, other = (shared_access(addresses, width, kind, active).wavefronts for kind in (op, wrong))
        assert DATA[f"{name}_hw"][0] == right.sum() != other.sum()


def test_a_copy_of_what_is_in_the_cache_equals_the_counter() -> None:
    """Each pattern once, and twice in a row: the second of two finds its lines in the cache."""
    addresses, active = lanes("COPY")
    origins = DATA["COPY_origins"].astype(np.int64)
    once, twice = DATA["COPY_hw"].T
    cost = copy_access(addresses, origins, 4, active)
    assert np.array_equal(twice - once, cost.conflicts)
    without_origins = shared_access(addresses, 4, "cp_async", active)
    assert np.count_nonzero(twice - once != without_origins.conflicts) > 50
    lines = [len(set((row[on] // 128).tolist())) for row, on in zip(origins, active, strict=True)]
    from_one = np.array(lines) == 1
    assert np.array_equal(once[from_one], cost.conflicts[from_one]) and np.count_nonzero(from_one) == 26
    assert np.count_nonzero(once != cost.conflicts) == 30  # a miss takes its own time
    fewest, most = limits_of_conflicts(addresses, origins, 4, active, active)
    assert ((fewest <= once) & (once <= most)).all() and (fewest < once).any() and (once < most).any()


def test_a_copy_past_the_cache_equals_the_counters() -> None:
    addresses, active = lanes("BYPASS")
    cost = bypass_access(addresses, DATA["BYPASS_origins"].astype(np.int64), active)
    requests, sectors, lines = DATA["BYPASS_hw"].T
    assert DATA["BYPASS_hw_metrics"].tolist() == [
        f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("requests", "sectors", "set_accesses")
    ]
    assert (requests == 1).all()
    assert np.array_equal(lines, cost.lines)
    clear = ~overlaps(addresses, active)
    assert np.count_nonzero(clear) == 88
    assert np.array_equal(sectors[clear], cost.sectors[clear])
    assert (sectors[~clear] <= cost.sectors[~clear]).all() and (sectors[~clear] < cost.sectors[~clear]).any()


def test_the_source_page_of_loads_with_idle_lanes() -> None:
    addresses, active = lanes("LDS128")
    page = shared_source_page(addresses, 16, "load", active)
    assert not (page.wavefronts == UNKNOWN).any()
    assert np.array_equal(np.stack([page.wavefronts, page.ideal], axis=1), DATA["LDS128_source"])
    assert np.count_nonzero(~active.all(axis=1)) > 900
