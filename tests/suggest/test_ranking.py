"""What comes first, and what is worth an edit: estimated times, and the bound where they are too close."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from memsim.analysis import Analysis, analyze_trace
from memsim.estimated_time import EstimatedTime
from memsim.kernels import catalog
from memsim.suggest import suggest
from memsim.suggest.ranking import MARGIN, Verdict, best, quickest_first, verdict
from memsim.time.quick_estimate import estimate
from memsim.views.suggest.terminal import render
from tests.suggest.kernels import analyzed, transpose


@cache
def kernel(name: str) -> Analysis:
    """A small launch of the catalogue."""
    return analyze_trace(catalog()[name].trace((64, 64)))


def timed(name: str, elapsed: int | None) -> Analysis:
    """As if its launch were estimated to take so many cycles."""
    return replace(kernel(name), estimate=EstimatedTime(elapsed=elapsed))


def test_the_quickest_comes_first_and_what_differs_less_than_an_estimate_can_tell_by_the_bound() -> None:
    assert kernel("transpose_padded").bound.cycles < kernel("transpose_naive").bound.cycles

    def ordered(of_small: int | None, of_large: int | None) -> bool:
        """Whether the one with the smaller bound comes first, with these estimated cycles."""
        ones = [timed("transpose_padded", of_small), timed("transpose_naive", of_large)]
        return min(ones[::-1], key=quickest_first(ones)) is ones[0]

    assert not ordered(2000, 1000) and ordered(1000, 2000)
    assert ordered(1000 + int(900 * MARGIN), 1000)  # within the margin the bound decides
    assert not ordered(1000 + int(1100 * MARGIN), 1000)
    assert ordered(2000, None) and ordered(None, None)  # not all are known


@pytest.mark.parametrize(
    ("after", "lower", "same"),
    [
        (0.50, Verdict.WORTH, Verdict.WORTH),
        (1 - 1.1 * MARGIN, Verdict.WORTH, Verdict.WORTH),
        (1 - 0.9 * MARGIN, Verdict.WORTH, Verdict.NOT_WORTH),  # as the bound has it
        (1 + 0.1 * MARGIN, Verdict.NOT_WORTH, Verdict.NOT_WORTH),
        (1 + 1.1 * MARGIN, Verdict.SLOWER, Verdict.SLOWER),
        (None, Verdict.WORTH, Verdict.NOT_WORTH),
    ],
)
def test_what_is_estimated_slower_is_not_worth_an_edit(
    after: float | None, lower: Verdict, same: Verdict
) -> None:
    """lower, same: what is said of a change that lowers the bound, and of one that leaves it as it is."""
    before = timed("transpose_naive", 100_000)
    elapsed = None if after is None else round(100_000 * after)
    assert verdict(before, timed("transpose_padded", elapsed)) is lower
    assert verdict(before, timed("transpose_naive", elapsed)) is same


def test_what_is_estimated_slower_comes_first_only_alone() -> None:
    before, slower = timed("transpose_naive", 1000), timed("transpose_padded", 1200)
    quicker = timed("transpose_naive", 900)
    assert best(before, [slower, quicker]) is quicker
    assert best(before, [slower]) is slower
    assert best(before, []) is None


@pytest.mark.parametrize(("elapsed", "first"), [(1000, 1), (2000, 0)])
def test_where_nothing_pays_what_wastes_least_comes_first(elapsed: int, first: int) -> None:
    """Of two that are equally quick: first is the number of what comes first, if the kernel takes so long."""

    def made(cycles: int, elapsed: int, needless: int) -> Analysis:
        site = SimpleNamespace(sectors=100, needless_sectors=needless, wavefronts_of_conflicts=None)
        bound, estimated = SimpleNamespace(lacks=(), cycles=cycles), EstimatedTime(elapsed=elapsed)
        return cast(Analysis, SimpleNamespace(estimate=estimated, bound=bound, sites=[site]))

    changed = [made(90, 1030, 20), made(95, 1020, 10)]
    assert best(made(92, elapsed, 90), changed) is changed[first]


@pytest.mark.slow
def test_a_change_that_is_hardly_quicker_does_not_pay(tmp_path: Path) -> None:
    job = transpose("float tile[32][32]").job(tmp_path)
    found = suggest(analyzed(job), job)
    assert found.taken is not None
    times = found.times
    assert times[0] == estimate(job) and times[1] is not None and times[1].cycles
    for after, gain in (
        (9_000, Verdict.WORTH),
        (9_900, Verdict.WORTH),  # by the bound
        (10_100, Verdict.NOT_WORTH),
        (12_000, Verdict.SLOWER),
    ):
        before, now = (EstimatedTime(1, cycles, cycles / 1e9, error=0.1) for cycles in (10_000, after))
        taken = replace(found.taken, analysis=replace(found.taken.analysis, estimate=now))
        changed = replace(found, analysis=replace(found.analysis, estimate=before), proof=taken, taken=taken)
        assert (changed.verdict, changed.pays) == (gain, gain is Verdict.WORTH)
        first, *_, last = render(changed).splitlines()
        assert (f", {Verdict.NOT_WORTH.value}" in first) is (gain is Verdict.NOT_WORTH)
        assert ("a layout that saves all of them is estimated slower" in first) is (gain is Verdict.SLOWER)
        ending = "not worth an edit: --apply writes it only with --take 1."
        assert last.endswith(ending) is not changed.pays
    unknown = replace(found, analysis=replace(found.analysis, estimate=None))
    assert unknown.pays and "Estimated" not in render(unknown)
