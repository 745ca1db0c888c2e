"""What Nsight Compute 2025.3.1 shows of copies under a predicate: it takes P0 and P2 wrong (`copies.npz`)."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.arch import SM_90
from memsim.model import bypass_source_page, copy_source_page, global_source_page
from memsim.validate.predict import accesses_of, predict, unreliable
from tests.traces import Request, make_trace, site
from tests.validate.conftest import H200, TRACES


def copy_page(instruction: str) -> tuple[dict[str, int | None], frozenset[str]]:
    """What is predicted of two executions of a `.cg`, one of which has no lane on, and what is unreliable."""
    row = np.arange(32) * 16
    sides = (("shared", row, row + 1024), ("global", row + 1024, row))
    said = {"instruction": instruction, "address": 16, "instructions": 2}
    sites = [
        (site(space=space, op="cp_async_cg", width=16, **said), [Request(to, 1, True, source)])
        for space, to, source in sides
    ]
    accesses = list(accesses_of(make_trace(*sites)))
    return predict(accesses, SM_90), unreliable(accesses)


BYPASS = "LDGSTS.E.BYPASS.128 [R3], desc[UR4][R2.64]"
PAGE = {"memory_l1_wavefronts_shared": 4, "memory_l2_theoretical_sectors_global": 16}


@pytest.mark.parametrize(
    ("instruction", "expected", "wrong"),
    [
        (BYPASS, PAGE, set()),
        (f"@P1 {BYPASS}", PAGE, set()),
        (f"@!P6 {BYPASS}", PAGE, set()),
        (f"@!P2 {BYPASS}", PAGE, set(PAGE)),
        (f"@P0 {BYPASS}", dict.fromkeys(PAGE, 0), set()),  # as if P0 were false
        (f"@!P0 {BYPASS}", dict.fromkeys(PAGE), set()),  # lanes that are off count
        (f"{BYPASS}, P0", PAGE, set(PAGE)),
        (f"{BYPASS}, P2", PAGE, set(PAGE)),
        (f"{BYPASS}, P5", PAGE, set()),
    ],
)
def test_the_profiler_takes_some_predicates_of_copies_wrong(
    instruction: str, expected: dict[str, int | None], wrong: set[str]
) -> None:
    page, lost = copy_page(instruction)
    assert {name: page[name] for name in PAGE} == expected
    assert lost & set(PAGE) == wrong


COPIES = np.load(TRACES / H200 / "copies.npz")
SIZES = {"cg": 16, "ca4": 4, "ca8": 8, "ca16": 16}


@pytest.mark.parametrize(
    "name",
    [
        "cg_guard",
        "cg_not",
        "cg_guard_many",
        "ca4_guard",
        "ca4_not",
        "ca4_guard_many",
        "ca8_guard",
        "ca16_guard",
    ],
)
def test_copies_under_each_predicate(name: str) -> None:
    """Row k has predicate k % 7; of some hundred rows one launch has each."""
    kind, width = name.partition("_")[0], SIZES[name.partition("_")[0]]
    to, source = COPIES[f"{name}_to"][0].astype(np.int64), COPIES[f"{name}_from"][0].astype(np.int64)
    on = np.unpackbits(COPIES[f"{name}_lanes"][0], axis=1) > 0
    page = dict(zip(COPIES["metrics"].tolist(), COPIES[f"{name}_figures"][0].T))
    times = 264 * 8 if name.endswith("many") else 1
    number = np.arange(len(to)) % 7
    if kind == "cg":
        assert (page["memory_l1_wavefronts_shared"] == 0)[number == 0].all() == (name == "cg_not")
        on[number == 0] |= name != "cg_not"
        shared, outside = bypass_source_page(to, source, on)
        sectors = outside.sectors
    else:
        shared = copy_source_page(to, source, width, on)
        sectors = global_source_page(source, width, "cp_async", on).sectors
    usual = (number != 2) if times > 1 else (number != 0) | (name != "cg_not")
    known = usual & (shared.wavefronts != -1)
    assert known.sum() > len(to) // 2 and (known & (on.sum(axis=1) == 0)).sum() > 10
    assert np.array_equal(page["memory_l1_wavefronts_shared"][known], times * shared.wavefronts[known])
    assert np.array_equal(page["memory_l1_wavefronts_shared_ideal"][known], times * shared.ideal[known])
    assert np.array_equal(page["memory_l2_theoretical_sectors_global"][usual], times * sectors[usual])
    if times > 1:  # under P2, warps that compete are lost
        lost = page["memory_l1_wavefronts_shared"] != times * shared.wavefronts
        assert (lost & (shared.wavefronts > 0))[number == 2].sum() > 30


def test_copies_of_which_no_two_lanes_read_one_place_for_the_same_line() -> None:
    """971 of 2,560; sectors in all."""
    to, source = (COPIES[f"cg_plain_{side}"].reshape(-1, 32).astype(np.int64) for side in ("to", "from"))
    page = dict(zip(COPIES["metrics"].tolist(), COPIES["cg_plain_figures"].reshape(len(to), -1).T))
    shared, outside = bypass_source_page(to, source)
    known = shared.wavefronts != -1
    assert (known.sum(), len(known)) == (971, 2560)
    assert np.array_equal(page["memory_l1_wavefronts_shared"][known], shared.wavefronts[known])
    assert np.array_equal(page["memory_l2_theoretical_sectors_global"], outside.sectors)
