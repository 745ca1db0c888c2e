"""Budgets of a launch as a whole: its lower bound in cycles, and that of each unit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest

import memsim
from memsim.analysis import Analysis, analyze_trace
from memsim.bound import UNITS
from memsim.errors import MemsimError
from memsim.estimated_time import EstimatedTime
from memsim.guard.baseline import entry_of, parse, render
from memsim.guard.budget import parse_budget, why_it_cannot_fail
from memsim.guard.evaluate import GuardedKernel, check
from memsim.guard.judge import Declared, has_time_budget, judge
from memsim.guard.outcome import QuantityChange
from memsim.kernels import catalog
from memsim.views.check.findings import sentence
from tests.simt.cuda import machine_kernel


@pytest.fixture(scope="module")
def conflicting() -> Analysis:
    """Bound by the wavefronts of its shared memory."""
    return analyze_trace(catalog()["transpose_naive"].trace((256, 256)))


@pytest.fixture(scope="module")
def padded() -> Analysis:
    """The same without conflicts."""
    return analyze_trace(catalog()["transpose_padded"].trace((256, 256)))


@pytest.mark.parametrize(
    "budget",
    ["bound(shared) <= bound(issue)", "bound(shared)<bound(fma)", "bound( shared ) <= 60%", "cycles <= 400"],
)
def test_a_budget_of_cycles_is_broken_and_has_a_good_twin(
    budget: str, conflicting: Analysis, padded: Analysis
) -> None:
    broken = check(parse_budget(budget), GuardedKernel("bad", conflicting))
    (finding,) = broken.findings
    assert broken.broken
    assert finding.reason == conflicting.bound.verdict
    assert finding.site.conflicts
    assert not check(parse_budget(budget), GuardedKernel("good", padded)).findings


SILENT = """
extern "C" __global__ void silent(float *x, float a) {
    float v = a;
    for (int i = 0; i < 100; ++i) v = v * a + 1.0f;
    if (v == 123.456f) x[0] = v;
}
"""


def test_a_launch_without_any_access_has_cycles_too() -> None:
    found = memsim.analyze(machine_kernel(SILENT, "silent"), 4, 64, [memsim.ArrayArg((4,)), 1.5])
    cycles = found.bound.cycles
    kernel = GuardedKernel("silent", found)
    held, broken = (check(parse_budget(f"cycles <= {limit}"), kernel) for limit in (cycles, cycles - 1))
    assert held.rows and not held.findings
    (finding,) = broken.findings
    assert finding.figures[0].now == cycles
    assert sentence(finding).startswith(
        f"silent: budget broken (cycles <= {cycles - 1}): launch, (no access); "
    )


def test_the_figures_are_those_of_the_bound(conflicting: Analysis) -> None:
    (finding,) = check(parse_budget("bound(shared) <= bound(fma)"), GuardedKernel("k", conflicting)).findings
    (figure,) = finding.figures
    assert figure.quantity == "bound(shared)"
    assert figure.now == conflicting.bound.cycles_of("shared") > 0
    assert figure.limit == conflicting.bound.cycles_of("fma") > 0


def test_cycles_are_compared_with_the_baseline(conflicting: Analysis, padded: Analysis) -> None:
    entry = parse(render({"k": entry_of(padded)}), "baseline.toml")["k"]
    assert dict(entry.cycles)["issue"] == padded.bound.cycles_of("issue")
    budget = parse_budget("cycles <= baseline")
    assert not check(budget, GuardedKernel("k", padded, entry)).findings
    (finding,) = check(budget, GuardedKernel("k", conflicting, entry)).findings
    (figure,) = finding.figures
    assert (figure.was, figure.now) == (padded.bound.cycles, conflicting.bound.cycles)
    with pytest.raises(MemsimError, match="no bounds in cycles"):
        check(budget, GuardedKernel("k", padded, msgspec.structs.replace(entry, cycles={})))


def test_an_estimate_is_not_judged() -> None:
    part = analyze_trace(catalog()["transpose_padded"].trace((256, 256), blocks=2))
    assert entry_of(part).cycles == {}
    with pytest.raises(MemsimError, match="is an estimate: 2 of 64 blocks were replayed"):
        check(parse_budget("cycles <= 1000"), GuardedKernel("k", part))
    outcome = judge([GuardedKernel("k", part)], [Declared(parse_budget("cycles <= 1000"), ["k"])])
    assert outcome.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bound(shred) <= bound(fma)", "did you mean 'shared'"),
        ("bound(shared <= 4", "expected '\\)'"),
        ("bound(shared)", "expected a comparison"),
        ("bound(shared) <= fma", "expected a limit"),
        ("cycles <= ideal", "expected a limit"),
        ("cycles <= cycles", "cannot fail"),
        ("bound(fma) <= cycles", "cannot fail"),
        ("cycles >= bound(fma)", "cannot fail"),
        ("bound(shared) <= bound(l1_data)", "cannot fail"),
        ("bound(shared) <= 100%", "cannot fail"),
        ("cycles >= 0", "cannot fail"),
        ("cycles <= 4 5", "unexpected"),
    ],
)
def test_what_is_no_budget_of_cycles(text: str, said: str) -> None:
    with pytest.raises(MemsimError, match=said):
        parse_budget(text)


@pytest.mark.parametrize(
    "text",
    [
        "cycles <= 150_000",
        "bound(issue) == cycles",
        "bound(shared) < 100%",
        "bound(l1_data) <= bound(shared)",
    ],
)
def test_their_good_twins(text: str) -> None:
    assert parse_budget(text).text == text


SLOW = EstimatedTime(cycles=15_000, elapsed=20_000, seconds=1e-5, clock=2e9, error=0.1)


def test_the_estimated_time_is_compared_with_the_baseline(conflicting: Analysis) -> None:
    before = replace(conflicting, estimate=SLOW)
    entry = parse(render({"k": entry_of(before)}), "baseline.toml")["k"]
    assert entry.time == 20_000
    budget = parse_budget("time <= 1.05 * baseline")
    assert budget.needs_baseline
    for elapsed, findings in ((21_000, 0), (21_001, 1)):
        now = replace(conflicting, estimate=replace(SLOW, elapsed=elapsed))
        found = check(budget, GuardedKernel("k", now, entry)).findings
        assert len(found) == findings
    (figure,) = found[0].figures
    assert figure == QuantityChange("time in cycles", *map(Fraction, (20_000, 21_001, 21_000)))
    assert "an estimate, typically within 10 %" in found[0].reason
    assert "time in cycles" in sentence(found[0])
    assert not check(parse_budget("time < 20_001"), GuardedKernel("k", before)).findings
    assert check(parse_budget("time < 20_000"), GuardedKernel("k", before)).findings


def test_a_time_that_is_not_known_is_not_judged(conflicting: Analysis) -> None:
    """And by default it is not even estimated: no other budget needs it."""
    assert entry_of(conflicting).time is None
    assert check(parse_budget("baseline"), GuardedKernel("k", conflicting, entry_of(conflicting))).rows
    for analysis, said in (
        (conflicting, "it has no machine code"),
        (replace(conflicting, estimate=EstimatedTime(unknown="too long")), "too long"),
    ):
        with pytest.raises(MemsimError, match=said):
            check(parse_budget("time <= 4"), GuardedKernel("k", analysis))
    timed = replace(conflicting, estimate=SLOW)
    with pytest.raises(MemsimError, match="has no estimated time"):
        check(parse_budget("time <= baseline"), GuardedKernel("k", timed, entry_of(conflicting)))
    rules = [Declared(parse_budget(text), ["k"]) for text in ("cycles <= 4", "time <= 4")]
    assert [has_time_budget("k", [rule]) for rule in rules] == [False, True]
    assert not has_time_budget("other", rules)


@pytest.mark.parametrize("text", ["time == 4", "time >= baseline", "time <= 5%", "time <= 2 * 3", "time"])
def test_what_is_no_budget_of_time(text: str) -> None:
    with pytest.raises(MemsimError):
        parse_budget(text)


@pytest.mark.parametrize("unit", UNITS)
def test_a_part_is_never_more_than_the_whole(unit: str) -> None:
    said = f"bound({unit}) is a part of it"
    assert why_it_cannot_fail("cycles", ">=", unit) == why_it_cannot_fail(unit, "<=", "cycles") == said
    assert why_it_cannot_fail(unit, ">=", unit) == f"both sides are bound({unit})"
    for figure, relation, other in (("cycles", "<=", unit), (unit, ">=", "cycles"), ("cycles", ">", unit)):
        assert why_it_cannot_fail(figure, relation, other) is None
    assert why_it_cannot_fail(unit, "<", unit) is None and why_it_cannot_fail(unit, "<=", None) is None
    parts = {
        (figure, other) for figure in UNITS for other in UNITS if why_it_cannot_fail(figure, "<=", other)
    }
    assert parts == {("shared", "l1_data"), *((one, one) for one in UNITS)}
