"""All budgets together: what cannot fail is a problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from memsim.errors import MemsimError
from memsim.guard.budget import parse_budget
from memsim.guard.evaluate import GuardedKernel
from memsim.guard.judge import Declared, judge
from memsim.guard.outcome import Outcome, Problem
from memsim.guard.select import parse_selector
from tests.guard.subjects import CLEAN, LOAD, STORE, TWO_WAY, entry, out, shared, subject, unresolved
from tests.traces import LANES, Request, site

SHARED = dataclasses.replace(subject(shared(CLEAN)), name="shared")
GLOBAL = dataclasses.replace(subject(out(CLEAN)), name="global")
BAD = dataclasses.replace(subject(shared(TWO_WAY)), name="bad")
UNKNOWN = dataclasses.replace(subject(shared(CLEAN, STORE), unresolved()), name="unknown")


def judged(subjects: Sequence[GuardedKernel], *budgets: str, some: bool = False, accept: str = "") -> Outcome:
    names = [one.name for one in subjects]
    rules = [Declared(parse_budget(text), names, general=True) for text in budgets]
    accepted = [Declared(parse_selector(accept), names, general=True)] if accept else []
    return judge(subjects, rules, accepted, some=some)


def test_what_holds_is_zero_and_what_breaks_is_one() -> None:
    good = judged([SHARED], "ways <= 1", "excess < 1%")
    assert (good.exit_code, good.verdict) == (0, "OK: 1 kernel, 2 checks passed")
    bad = judged([SHARED, BAD], "ways <= 1")
    assert (bad.exit_code, bad.verdict) == (1, "FAILED: 1 of 2 checks failed, in bad")


def test_no_kernel_is_a_problem() -> None:
    assert judged([], "ways <= 1").exit_code == 2


@pytest.mark.parametrize(
    "idle", ["sites(array=nothing).ways <= 1", "sites(line=99).ways <= 1", "sectors <= 1"]
)
def test_a_budget_about_nothing_is_a_problem(idle: str) -> None:
    outcome = judged([SHARED], "ways <= 1", idle)
    assert outcome.exit_code == 2
    (problem,) = outcome.problems
    assert "this budget applies to no access of shared" in problem.error.message
    assert problem.error.source == idle
    assert judged([SHARED], "ways <= 1", "sites(line=3).ways <= 1").exit_code == 0


def test_a_general_budget_needs_one_kernel_that_it_is_about() -> None:
    assert judged([SHARED, GLOBAL], "ways <= 1", "sectors <= ideal").exit_code == 0
    assert judged([SHARED], "ways <= 1", "sectors <= ideal").exit_code == 2
    # Only some of the kernels were asked for: the others are what it is about.
    assert judged([SHARED], "ways <= 1", "sectors <= ideal", some=True).exit_code == 0


def test_a_kernel_that_no_budget_is_about_is_a_problem() -> None:
    outcome = judged([SHARED, GLOBAL], "ways <= 1")
    assert outcome.exit_code == 2
    assert [problem.kernel for problem in outcome.problems] == ["global"]
    assert judged([SHARED, GLOBAL], "requests < 100").exit_code == 0
    assert judged([GLOBAL], "ways <= 1", some=True).exit_code == 2


def test_an_access_that_no_lane_makes_guards_nothing() -> None:
    never = dataclasses.replace(subject((LOAD, [])), name="never")
    assert judged([never], "ways <= 1").exit_code == 2
    assert judged([never, SHARED], "ways <= 1").exit_code == 2  # nothing is said about one of them
    both = dataclasses.replace(subject((LOAD, []), shared(CLEAN, STORE)), name="both")
    assert judged([both], "ways <= 1").exit_code == 0
    before = entry((LOAD, []))
    assert judged([dataclasses.replace(never, entry=before)], "baseline").exit_code == 2


def test_an_acceptance_that_nothing_needs_is_a_problem() -> None:
    assert judged([UNKNOWN], "ways <= 1").exit_code == 1
    assert judged([UNKNOWN], "ways <= 1", accept="sites(load)").exit_code == 0
    assert judged([SHARED], "ways <= 1", accept="sites(load)").exit_code == 2
    assert judged([SHARED], "ways <= 1", accept="sites(load)", some=True).exit_code == 0


def test_a_kernel_that_could_not_be_analyzed_outweighs_a_broken_budget() -> None:
    problem = Problem("lost", MemsimError("does not compile", file="lost.cu", line=3))
    rule = Declared(parse_budget("ways <= 1"), ["bad", "lost"])
    outcome = judge([BAD], [rule], problems=[problem])
    assert outcome.exit_code == 2
    assert outcome.verdict.startswith("FAILED: 1 of 1 check failed, in bad; 1 problem")


def test_what_failed_is_not_advised_to_be_accepted() -> None:
    better = dataclasses.replace(subject(shared(CLEAN)), name="better", entry=entry(shared(TWO_WAY)))
    worse = dataclasses.replace(subject(shared(TWO_WAY)), name="worse", entry=entry(shared(CLEAN)))
    outcome = judged([better, worse], "baseline")
    assert outcome.exit_code == 1
    assert outcome.verdict == "FAILED: 1 of 2 checks failed, in worse"
    assert judged([better], "baseline").verdict.endswith("; improved: run memsim baseline")


def test_a_better_kernel_says_so() -> None:
    better = dataclasses.replace(subject(shared(CLEAN)), entry=entry(shared(TWO_WAY)))
    outcome = judged([better], "baseline")
    assert outcome.exit_code == 0
    assert outcome.verdict.endswith("; improved: run memsim baseline")
    same = dataclasses.replace(subject(shared(CLEAN)), entry=entry(shared(CLEAN)))
    assert "baseline" not in judged([same], "baseline").verdict


def test_what_breaks_is_told_first() -> None:
    before = entry(shared(TWO_WAY, STORE), shared(CLEAN))
    of = dataclasses.replace(subject(shared(CLEAN, STORE), shared(TWO_WAY)), entry=before)
    assert [finding.kind for finding in judged([of], "baseline").findings] == ["worse", "improved"]


# --- each alternative of a filter


@pytest.mark.parametrize(
    ("idle", "column", "fine"),
    [
        ("sites(array=tile, array=s_b).ways <= 1", 19, "sites(array=tile, array=t*).ways <= 1"),
        ("sites(store, load, atomic).ways <= 1", 20, "sites(store, load).ways <= 1"),
        ("sites(load, line=2, line=3).ways <= 1", 13, "sites(line=2, line=3).ways <= 1"),
        ("sites(kernel=k, kernel=pair).ways <= 1", 7, "sites(kernel=p*, kernel=pair).ways <= 1"),
    ],
)
def test_every_alternative_of_a_filter_means_something(idle: str, column: int, fine: str) -> None:
    pair = dataclasses.replace(subject(shared(CLEAN, STORE), shared(CLEAN, LOAD)), name="pair")
    outcome = judged([pair], "ways <= 1", idle)
    assert outcome.exit_code == 2
    (problem,) = outcome.problems
    assert "matches no access of" in problem.error.message
    assert (problem.error.source, problem.error.column) == (idle, column)
    assert judged([pair], "ways <= 1", fine).exit_code == 0
    # Only some of the kernels were asked for: the others may be what it is about.
    assert judged([pair], "ways <= 1", idle, some=True).exit_code == 0


def test_every_alternative_of_an_acceptance_is_needed() -> None:
    assert judged([UNKNOWN], "ways <= 1", accept="sites(load, line=3)").exit_code == 0
    outcome = judged([UNKNOWN], "ways <= 1", accept="sites(load, store)")
    assert outcome.exit_code == 2
    assert "alternative op=store matches" in outcome.problems[0].error.message


# --- what is accepted


@pytest.mark.parametrize(
    ("array", "accept", "accepted"),
    [
        ("h", "sites(array=h)", True),
        ("s", "sites(array=h)", False),
        ("", "sites(array=h)", False),  # nobody knows what it touches
        ("h|s", "sites(array=h)", False),  # it touches another, too
        ("h|s", "sites(array=h, array=s)", True),
        ("h|s", "sites(array=h, array=s, array=t)", False),  # nothing is a t
        ("h|s", "sites(array=*)", True),
        ("", "sites(load)", True),
    ],
)
def test_only_what_is_meant_for_certain_is_accepted(array: str, accept: str, accepted: bool) -> None:
    of = dataclasses.replace(subject(shared(CLEAN, STORE), unresolved(array=array)), name="of")
    assert (judged([of], "ways <= 1", accept=accept).exit_code == 0) is accepted
    assert judged([of], "ways <= 1").exit_code == 1


def test_local_memory_that_shall_not_be_there() -> None:
    """Such a budget says something of a kernel without spills, and fails on one that has some."""
    spill = site(space="local", op="store", line=2, array="spills")
    spilling = dataclasses.replace(subject(shared(CLEAN), (spill, [Request(LANES * 0)])), name="spilling")
    good = judged([SHARED], "local_sectors == 0")
    assert (good.exit_code, good.verdict) == (0, "OK: 1 kernel, 1 check passed")
    bad = judged([SHARED, spilling], "local_sectors == 0")
    assert (bad.exit_code, bad.verdict) == (1, "FAILED: 1 of 2 checks failed, in spilling")
    assert judged([spilling], "local_sectors <= ideal", "sites(local, store).requests <= 1").exit_code == 0
    assert judged([SHARED], "ways <= 1", "sites(local).requests <= 1").exit_code == 2
