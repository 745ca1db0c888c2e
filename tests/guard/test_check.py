"""One budget on one kernel: what holds has what breaks beside it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest

from memsim.analysis import Range, SiteCounts
from memsim.errors import MemsimError
from memsim.guard.budget import parse_budget
from memsim.guard.evaluate import check
from memsim.guard.outcome import BROKEN, QuantityChange
from memsim.views.check.findings import worst_request
from tests.guard.subjects import (
    BROADCAST,
    CLEAN,
    LOAD,
    OUT,
    SCATTERED,
    STORE,
    TWO_WAY,
    checked,
    entry,
    out,
    shared,
    subject,
    unresolved,
)
from tests.traces import Request, site

CLEAN_KERNEL = subject(shared(CLEAN, STORE, 10), shared(CLEAN, LOAD, 10), out(CLEAN, 10))
# Stores 2-way (20 wavefronts of 10 requests), loads clean; 32 sectors a request where 4 would do.
BAD_KERNEL = subject(shared(TWO_WAY, STORE, 10), shared(CLEAN, LOAD, 10), out(SCATTERED, 10))


@pytest.mark.parametrize(
    "budget",
    [
        "ways <= 1", "ways < 2", "ways == 1", "wavefronts <= ideal", "wavefronts <= 20", "conflicts == 0",
        "conflicts <= 0%", "wavefronts_per_request <= 1", "wavefronts_per_request <= ideal", "sectors <= 40",
        "sectors <= ideal", "sectors_per_request <= 4", "sectors_per_request <= ideal", "lines <= 10",
        "lines_per_request <= 1", "excess < 1%", "excess <= 0", "sites(store).conflicts == 0",
    ],
)  # fmt: skip
def test_a_budget_holds_or_is_broken(budget: str) -> None:
    assert not checked(budget, CLEAN_KERNEL).broken
    assert checked(budget, BAD_KERNEL).broken


@pytest.mark.parametrize(
    ("holds", "broken"),
    [
        ("requests <= 30", "requests < 30"),
        ("requests >= 30", "requests > 30"),
        ("requests == 30", "requests == 31"),
        ("instructions <= 3", "instructions <= 2"),
    ],
)
def test_counts_of_what_is_executed(holds: str, broken: str) -> None:
    assert not checked(holds, CLEAN_KERNEL).broken
    assert checked(broken, CLEAN_KERNEL).broken


FETCH = site(line=1, op="fetch", space="texture", array="A", instruction="TLD.LZ")


@pytest.mark.parametrize(
    ("holds", "broken"),
    [
        ("sites(texture).requests <= 4", "sites(texture).requests <= 3"),  # of eight lanes each
        ("sites(texture).instructions <= 1", "sites(texture).instructions < 1"),
        ("sites(texture).sectors <= 32", "sites(texture).sectors <= 31"),
        ("sites(texture).sectors_per_request <= 8", "sites(texture).sectors_per_request <= ideal"),
        ("sites(texture).lines <= 32", "sites(texture).lines_per_request < 8"),
        ("sites(texture).excess <= 28", "sites(texture).excess < 80%"),
        ("sectors <= 36", "sectors <= 35"),
    ],
)
def test_what_is_counted_of_textures_has_budgets(holds: str, broken: str) -> None:
    kernel = subject((FETCH, [Request(SCATTERED)]), out(CLEAN))
    assert checked(holds, kernel).rows and not checked(holds, kernel).broken
    assert checked(broken, kernel).broken
    without = subject(shared(CLEAN), out(CLEAN))
    assert not checked("sites(texture).requests <= 4", without).rows


def test_the_row_that_breaks_it_is_named() -> None:
    (finding,) = checked("ways <= 1", BAD_KERNEL).findings
    assert (finding.kind, finding.kernel, finding.budget) == ("broken", "k", "ways <= 1")
    assert (finding.site.file, finding.site.line, finding.site.source) == ("kernel.cu", 2, "tile[i] = 1;")
    assert finding.figures == (QuantityChange("ways", None, Fraction(2), Fraction(1)),)
    assert finding.analysis is not None
    lanes = worst_request(finding.analysis, finding.site)
    assert lanes == "lanes 0, 16 of warp 0, block (0,0,0) meet in bank 0: 2 different words"


def test_a_limit_in_numbers_is_for_the_sum() -> None:
    assert not checked("wavefronts <= 30", BAD_KERNEL).broken
    (finding,) = checked("wavefronts <= 29", BAD_KERNEL).findings
    assert finding.figures == (QuantityChange("wavefronts", None, Fraction(30), Fraction(29)),)
    assert finding.site.line == 2  # the row that adds most
    assert finding.reason == "the sum over 2 rows; this one adds most"
    assert not checked("sites(load).wavefronts <= 10", BAD_KERNEL).broken


@pytest.mark.parametrize(
    ("holds", "broken"),
    [
        (
            "sites(store).wavefronts == 200% of {load}.wavefronts",
            "sites(store).wavefronts <= {load}.wavefronts",
        ),
        ("sites(load).requests == sites(store).requests", "sites(load).requests < sites(store).requests"),
        ("wavefronts == 75% of {other}.wavefronts", "wavefronts >= {other}.wavefronts"),
        ("wavefronts == 50% of {stores}.wavefronts", "wavefronts == {stores}.wavefronts"),
    ],
)
def test_a_limit_may_be_the_sum_of_other_accesses(holds: str, broken: str) -> None:
    mine = subject(shared(TWO_WAY, STORE), shared())
    other = replace(subject(shared(TWO_WAY, STORE, count=2)), name="other")
    names = {"load": "sites(load)", "other": "sites(kernel=other)", "stores": "sites(kernel=*, store)"}
    assert not check(parse_budget(holds.format(**names)), mine, (), [mine, other]).findings
    (finding,) = check(parse_budget(broken.format(**names)), mine, (), [mine, other]).findings
    assert finding.kind == BROKEN


def test_what_a_budget_compares_with_is_there_and_counted() -> None:
    mine = subject(shared(TWO_WAY, STORE), shared(), unresolved(OUT))
    budget = parse_budget("wavefronts <= sites(kernel=other).wavefronts")
    with pytest.raises(
        MemsimError, match=r"no access .* is sites\(kernel=other\), to compare with"
    ) as caught:
        check(budget, mine, (), [mine])
    assert caught.value.hint == "memsim analyze lists the accesses; the kernels are k"
    assert not check(parse_budget("sites(load, width=16).lines <= sites(kernel=o).lines"), mine).findings
    with pytest.raises(MemsimError, match="line 4 of k is not counted: it depends on a call"):
        check(parse_budget("sites(shared).requests <= sites(global).requests"), mine, (), [mine])


def test_ideal_and_baseline_are_limits_of_each_row() -> None:
    spread = subject(shared(CLEAN, STORE, 10), shared(TWO_WAY, LOAD, 10))
    (finding,) = checked("wavefronts <= ideal", spread).findings
    assert finding.site.line == 3
    # The sum is as before; one row is better and one is worse.
    before = entry(shared(TWO_WAY, STORE, 10), shared(CLEAN, LOAD, 10))
    swapped = subject(shared(CLEAN, STORE, 10), shared(TWO_WAY, LOAD, 10), entry=before)
    (finding,) = checked("wavefronts <= baseline", swapped).findings
    assert finding.figures == (QuantityChange("wavefronts", Fraction(10), Fraction(20), Fraction(10)),)


def test_excess_is_of_each_space_by_itself() -> None:
    assert checked("excess < 50%", subject(shared(CLEAN, count=1000), out(SCATTERED))).broken
    assert checked("excess < 50%", subject(shared(SCATTERED), out(CLEAN, 1000))).broken
    assert not checked("excess < 50%", subject(shared(CLEAN), out(CLEAN))).broken
    (finding,) = checked("excess < 50%", subject(shared(SCATTERED), out(CLEAN, 1000))).findings
    assert finding.figures == (QuantityChange("excess", None, Fraction(3100, 32), Fraction(50), "<", True),)


def test_a_percentage_is_exact() -> None:
    quarter = subject(shared(CLEAN, STORE, 2), shared(TWO_WAY, LOAD, 1))  # 1 conflict of 4 wavefronts
    assert not checked("conflicts <= 25%", quarter).broken
    assert checked("conflicts < 25%", quarter).broken
    assert checked("conflicts <= 24.99%", quarter).broken


def test_what_was_comes_from_the_baseline() -> None:
    of = subject(shared(TWO_WAY, STORE), entry=entry(shared(CLEAN, STORE)))
    (finding,) = checked("ways <= 1", of).findings
    assert finding.figures[0].was == 1
    (finding,) = checked("conflicts == 0", of).findings
    assert finding.figures[0].was == 0


# --- the baseline


def test_every_count_is_compared() -> None:
    before = entry(shared(CLEAN, STORE, 10), out(CLEAN, 10))
    same = checked("baseline", subject(shared(CLEAN, STORE, 10), out(CLEAN, 10), entry=before))
    assert (same.rows, same.findings) == (2, ())
    (finding,) = checked(
        "baseline", subject(shared(TWO_WAY, STORE, 10), out(CLEAN, 10), entry=before)
    ).findings
    assert finding.kind == "worse"
    assert [(f.quantity, f.was, f.now) for f in finding.figures] == [
        ("wavefronts", 10, 20), ("conflicts", 0, 10), ("ways", 1, 2),
    ]  # fmt: skip
    assert finding.analysis is not None
    assert "meet in bank 0" in worst_request(finding.analysis, finding.site)


def test_better_breaks_nothing() -> None:
    of = subject(shared(CLEAN, STORE), entry=entry(shared(TWO_WAY, STORE)))
    result = checked("baseline", of)
    assert [finding.kind for finding in result.findings] == ["improved"]
    assert not result.broken


def test_new_and_vanished_break_it() -> None:
    before = entry(shared(CLEAN, STORE))
    result = checked("baseline", subject(shared(CLEAN, STORE), out(CLEAN), entry=before))
    assert [(f.kind, f.site.line) for f in result.findings] == [("new", 4)]
    assert result.broken
    before = entry(shared(CLEAN, STORE), out(CLEAN))
    result = checked("baseline", subject(shared(CLEAN, STORE), entry=before))
    assert [(f.kind, f.site.source, f.site.file) for f in result.findings] == [
        ("vanished", "out[i] = x;", "")
    ]
    assert result.broken


def test_a_kernel_without_a_baseline_cannot_be_judged() -> None:
    for budget in ("baseline", "wavefronts <= baseline"):
        with pytest.raises(MemsimError, match="kernel k is not in the baseline"):
            checked(budget, subject(shared(CLEAN)))
    assert not checked("ways <= 1", subject(shared(CLEAN))).broken


def test_another_launch_is_another_baseline() -> None:
    before = entry(shared(CLEAN), blocks_replayed=1)
    with pytest.raises(MemsimError, match="another launch") as caught:
        checked("baseline", subject(shared(CLEAN), entry=before))
    assert "2 of 2 blocks" in str(caught.value.hint)
    same = entry(shared(CLEAN), blocks_replayed=2)
    assert not checked("baseline", subject(shared(CLEAN), entry=same)).broken


def test_other_arguments_are_another_launch() -> None:
    now = replace(subject(shared(CLEAN)), arguments="f32[64], 900")
    before = msgspec.structs.replace(entry(shared(CLEAN)), arguments="f32[64], 1000")
    with pytest.raises(MemsimError, match=r"another launch: grid .*, arguments f32\[64\], 1000") as caught:
        checked("baseline", replace(now, entry=before))
    assert "arguments f32[64], 900" in str(caught.value.hint)
    for arguments in ("f32[64], 900", None):  # None: written before arguments were kept
        same = msgspec.structs.replace(before, arguments=arguments)
        assert not checked("baseline", replace(now, entry=same)).broken


def test_a_new_access_breaks_a_limit_by_the_baseline() -> None:
    of = subject(shared(CLEAN, STORE), shared(CLEAN, LOAD), entry=entry(shared(CLEAN, STORE)))
    assert [finding.kind for finding in checked("wavefronts <= baseline", of).findings] == ["new"]
    assert not checked("sites(store).wavefronts <= baseline", of).broken


# --- accesses that could not be analyzed


@pytest.mark.parametrize(
    "budget",
    ["ways <= 1", "wavefronts <= ideal", "conflicts < 99%", "wavefronts <= 1_000_000_000", "excess < 99%",
     "sites(load).ways <= 31", "sites(array=other).ways <= 31", "requests < 1_000", "baseline"],
)  # fmt: skip
def test_an_unknown_access_breaks_whatever_it_might_fall_under(budget: str) -> None:
    before = entry(shared(CLEAN, STORE), unresolved(LOAD))
    of = subject(shared(CLEAN, STORE), unresolved(LOAD), entry=before)
    result = checked(budget, of)
    assert [(finding.kind, finding.site.line) for finding in result.findings] == [("unresolved", 3)]
    assert "it depends on a call" in result.findings[0].reason
    assert not checked(budget, of, "sites(array=tile, load)").broken  # accepted by name
    assert checked(budget, of, "sites(line=99)").broken


def test_what_is_accepted_must_be_unknown_in_the_baseline_too() -> None:
    """A cost that was known and is not known any more is no change at the same cost."""
    accepted = "sites(load)"
    known, lost = (shared(CLEAN, STORE), shared(CLEAN, LOAD)), (shared(CLEAN, STORE), unresolved(LOAD))
    assert not checked("baseline", subject(*lost, entry=entry(*lost)), accepted).findings
    (finding,) = checked("baseline", subject(*lost, entry=entry(*known)), accepted).findings
    assert (finding.kind, finding.breaks) == ("worse", True)
    assert "can no longer be analyzed" in finding.reason
    (finding,) = checked("baseline", subject(*lost, entry=entry(shared(CLEAN, STORE))), accepted).findings
    assert (finding.kind, finding.breaks) == ("new", True)


def test_an_edit_of_what_is_accepted_is_no_change_at_the_same_cost() -> None:
    before = (shared(CLEAN, STORE), unresolved(LOAD, array="other"))
    of = subject(shared(CLEAN, STORE), unresolved(LOAD), entry=entry(*before))
    (finding,) = checked("baseline", of, "sites(load)").findings
    assert (finding.kind, finding.breaks) == ("unknown", False)
    assert finding.reason.startswith("its array was other; it could not be analyzed then")


def test_an_acceptance_leaves_counts_with_limits_at_their_worse_end() -> None:
    """It is for what is not known at all: then nothing takes the place of the unknown count."""
    limits = {"max_ways": Range("the order of its lanes is not known", 1, 7)}
    of = subject(shared(CLEAN, LOAD))
    (site,) = of.analysis.sites
    limited = replace(site, max_ways=None, unresolved=None, ranges=limits)
    lost = replace(limited, unresolved="it depends on a call")

    def judged(row: SiteCounts, *accepted: str) -> list[tuple[str, int | None]]:
        kernel = replace(of, analysis=replace(of.analysis, sites=(row,)))
        found = checked("ways <= 4", kernel, *accepted).findings
        return [(finding.kind, finding.site.max_ways) for finding in found]

    assert judged(limited) == judged(limited, "sites(load)") == [("broken", 7)]
    assert judged(lost) == [("broken", 7)]
    assert judged(lost, "sites(load)") == []


def test_growing_waste_breaks_the_baseline() -> None:
    """Half of as many sectors is needed; then a quarter, by half of the requests."""
    half, quarter = CLEAN * 2, CLEAN * 4
    before = entry(out(half, 4))
    (finding,) = checked("baseline", subject(out(quarter, 2), entry=before)).findings
    assert finding.kind == "worse"
    assert [(f.quantity, f.was, f.now) for f in finding.figures][-1] == ("excess", 16, 24)
    (finding,) = checked("baseline", subject(out(half, 2), entry=before)).findings
    assert finding.kind == "improved"


@pytest.mark.parametrize("budget", ["sites(store).ways <= 1", "sites(line=2).ways <= 1", "sectors < 1_000"])
def test_an_unknown_access_breaks_nothing_else(budget: str) -> None:
    of = subject(shared(CLEAN, STORE), unresolved(LOAD), out(CLEAN))
    result = checked(budget, of)
    assert result.rows == 1
    assert not result.broken


def test_how_often_it_ran_is_known() -> None:
    of = subject(shared(CLEAN, STORE), unresolved(LOAD, instructions=7))
    assert not checked("instructions <= 8", of).broken
    assert checked("instructions <= 7", of).broken


def test_a_global_access_has_no_ways() -> None:
    assert checked("ways <= 1", subject(out(SCATTERED))).rows == 0
    assert checked("sectors <= 4", subject(shared(SCATTERED, OUT))).rows == 1
    assert checked("ways <= 1", subject(shared(BROADCAST))).rows == 1
