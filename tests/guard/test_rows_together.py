"""Budgets over several rows and several kernels: which rows are compared, and which one is shown."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import pytest

from memsim.counts import Range
from memsim.errors import MemsimError
from memsim.guard.budget import parse_budget
from memsim.guard.comparison import Comparison, compare, compare_all, side_of, side_of_document
from memsim.guard.evaluate import GuardedKernel, at_worse_end, check
from memsim.guard.judge import Declared, judge, restrict_rule
from memsim.guard.statement_rows import combine_rows
from tests.guard.subjects import CLEAN, LOAD, SCATTERED, STORE, TWO_WAY, out, shared, subject, unresolved


def named(name: str, one: GuardedKernel) -> GuardedKernel:
    return replace(one, name=name)


def test_the_row_that_adds_most_is_shown_wherever_it_stands() -> None:
    for first, second in ((1, 10), (10, 1)):
        of = subject(shared(CLEAN, STORE, first), shared(CLEAN, LOAD, second))
        (finding,) = check(parse_budget("wavefronts <= 10"), of).findings
        assert finding.site.line == (STORE.line if first > second else LOAD.line)
        assert finding.figures[0].now == 11
    (alone,) = check(parse_budget("wavefronts <= 9"), subject(shared(CLEAN, LOAD, 10))).findings
    assert alone.reason == ""


def test_a_budget_that_compares_looks_at_its_own_kernel() -> None:
    """Kernels before and after it in the alphabet have other counts."""
    own = named("k", subject(shared(CLEAN, STORE, 10), shared(CLEAN, LOAD, 10)))
    others = [named(name, subject(shared(CLEAN, STORE, 1), shared(CLEAN, LOAD, 5))) for name in ("a", "z")]
    budget = parse_budget("sites(store).wavefronts <= sites(load).wavefronts")
    assert not check(budget, own, others=[others[0], own, others[1]]).findings
    more = parse_budget("sites(store).wavefronts < sites(load).wavefronts")
    assert check(more, own, others=[others[0], own, others[1]]).findings


def test_every_row_that_may_match_is_compared() -> None:
    """Loads of shared and of global memory: only those of the quantity's space count."""
    of = subject(shared(CLEAN, STORE, 10), shared(CLEAN, LOAD, 10), out(SCATTERED, 50))
    assert not check(parse_budget("sites(load).wavefronts <= sites(store).wavefronts"), of).findings
    assert check(parse_budget("sites(load).wavefronts < sites(store).wavefronts"), of).findings
    with pytest.raises(MemsimError, match="is not counted: it depends on a call"):
        unknown = subject(shared(CLEAN, STORE), unresolved(LOAD))
        check(parse_budget("sites(store).wavefronts <= sites(load).wavefronts"), unknown)


def test_rules_are_of_the_targets_for_which_they_were_declared() -> None:
    rule = Declared(parse_budget("ways <= 1"), ["a", "b"])
    assert not rule.general
    assert not restrict_rule(rule, ["b", "a", "c"]).general
    fewer = restrict_rule(rule, ["b", "c"])
    assert fewer.general and list(fewer.kernels) == ["b"]
    assert restrict_rule(replace(rule, general=True), ["a", "b"]).general
    # A budget of one's own that is about nothing is a problem also where only some targets are checked.
    idle = Declared(parse_budget("sectors <= 1"), ["k"])
    held = Declared(parse_budget("ways <= 1"), ["k"])
    assert judge([subject(shared(CLEAN))], [held, idle], some=True).exit_code == 2
    assert judge([subject(shared(CLEAN))], [held, replace(idle, general=True)], some=True).exit_code == 0


def test_rows_of_one_statement_are_added() -> None:
    rows = subject(
        shared(TWO_WAY, LOAD, 3), shared(CLEAN, replace(LOAD, line=4), 2), out(CLEAN, 7)
    ).analysis.sites
    two = combine_rows(rows[:2])
    assert (two.requests, two.wavefronts, two.conflicts) == (5, 8, 3)
    assert two.sectors is None  # of global memory alone
    assert combine_rows(rows[2:]).sectors == rows[2].sectors == 28
    assert two.max_ways == 2
    limited = replace(rows[0], ranges={"conflicts": Range("what hits the L1 cache", 1, 5)})
    assert combine_rows([limited, limited]).ranges == {"conflicts": Range("what hits the L1 cache", 2, 10)}
    lost = combine_rows([rows[0], replace(rows[1], unresolved="it depends on a call")])
    assert (lost.unresolved, lost.wavefronts, lost.max_ways) == ("it depends on a call", None, None)
    assert lost.instructions == two.instructions


@pytest.mark.parametrize(
    ("relation", "known", "conflicts", "wavefronts"),
    [("<=", 2, 5, 13), (">=", 2, 1, 9), ("<=", None, 5, 15), (">=", None, 1, 11)],
)
def test_wavefronts_rise_with_conflicts_that_have_limits(
    relation: str, known: int | None, conflicts: int, wavefronts: int
) -> None:
    (site,) = subject(shared(CLEAN)).analysis.sites
    limits = {"conflicts": Range("what hits the L1 cache", 1, 5)}
    worse = at_worse_end(replace(site, wavefronts=10, conflicts=known, ranges=limits), relation)
    assert (worse.conflicts, worse.wavefronts) == (conflicts, wavefronts)


def test_a_saved_analysis_is_a_side() -> None:
    analysis = subject(shared(TWO_WAY), out(CLEAN)).analysis
    document = json.loads(json.dumps(analysis.to_dict()))
    assert not compare(side_of("k", analysis), side_of_document("k", document)).differs
    with pytest.raises(MemsimError, match=r"k is damaged: .*>= 0 - at `\$.sites\[0\].requests`"):
        document["sites"][0]["requests"] = -1
        side_of_document("k", document)
    for wrong, said in (({}, "k is not a saved analysis"), ({**document, "schema": 2}, "k has schema 2")):
        with pytest.raises(MemsimError, match=said):
            side_of_document("k", wrong)


def test_what_a_comparison_says() -> None:
    clean, conflict = (side_of("k", subject(shared(cost), out(CLEAN)).analysis) for cost in (CLEAN, TWO_WAY))
    worse, same = compare(clean, conflict), compare(clean, clean)
    assert worse.differs and not same.differs
    assert worse.first == 0 and same.first > worse.first
    assert worse.verdict == "k: 1 worse, of 2 accesses"
    both = compare_all({"k": clean}, {"k": conflict})
    assert [pair.verdict for pair in both.pairs] == [worse.verdict]
    assert isinstance(same, Comparison)
    with pytest.raises(FrozenInstanceError):
        same.a = conflict  # type: ignore[misc]
