"""Copies of one warp whose lines are in the L1 cache, and copies that miss, on an H200 (`misses.npz`)."""

from __future__ import annotations

import numpy as np

from memsim.model import copy_access
from memsim.model.cp_async import limits_of_conflicts
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


def test_copies_that_miss_lie_within_their_limits() -> None:
    executed, zeros = FILE["flags"] & 1 > 0, FILE["flags"] & 2 > 0
    wide = 0
    for width in (4, 8, 16):
        rows = width == WIDTHS
        on = executed[rows]
        fewest, most = limits_of_conflicts(FILE["to"][rows], FILE["from"][rows], width, on, on & ~zeros[rows])
        assert (TIMES * fewest <= FILE["missing"][rows]).all()
        assert (FILE["missing"][rows] <= TIMES * most).all()
        wide += np.count_nonzero(fewest < most)
    assert 0 < wide < len(WIDTHS)  # those of side by side lanes have no limits but a number
