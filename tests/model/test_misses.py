"""Copies of one warp whose lines are in the L1 cache, and copies that miss, on an H200 (`misses.npz`)."""

from __future__ import annotations

import numpy as np

from memsim.model import copy_access
from tests.validate.conftest import H200, TRACES

FILE = np.load(TRACES / H200 / "misses.npz")
TIMES = 512
WIDTHS, KINDS = FILE["width"], FILE["kind"]
#: Launches in which a lane writes zeros; those with lanes in many rows, of which some miss in another order.
ZEROS, ROWS = (name == KINDS for name in ("zeros", "rows"))


def by_rule() -> np.ndarray:
    """The conflicts of a copy in each launch."""
    executed, zeros = FILE["flags"] & 1 > 0, FILE["flags"] & 2 > 0
    found = [
        int(
            copy_access(
                FILE["to"][i], FILE["from"][i], int(width), executed[i], executed[i] & ~zeros[i]
            ).conflicts
        )
        for i, width in enumerate(WIDTHS)
    ]
    return np.array(found)


def test_copies_that_hit_have_the_conflicts_of_the_rule() -> None:
    """Of each width; the first of a launch misses."""
    hits = FILE["hitting"] - FILE["missing"] // TIMES
    kept = ~ZEROS
    assert np.array_equal(hits[kept], (TIMES - 1) * by_rule()[kept])
    assert [np.count_nonzero(kept & (width == WIDTHS)) for width in (4, 8, 16)] == [37, 39, 38]


def test_copies_that_miss_have_others_only_if_they_read_many_lines() -> None:
    same = FILE["missing"] == TIMES * by_rule()
    assert same[~ROWS].all() and np.count_nonzero(~same) == 3
