"""The budget language: what it says, and where a mistake in it stands."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.guard.budget import RELATIONS, parse_budget
from memsim.guard.quantities import QUANTITIES
from memsim.guard.select import parse_selector


@pytest.mark.parametrize(
    ("text", "quantity", "relation", "limit", "percent", "reference"),
    [
        ("ways <= 1", "ways", "<=", 1, False, None),
        ("wavefronts <= ideal", "wavefronts", "<=", 0, False, "ideal"),
        ("sectors_per_request <= 4.5", "sectors_per_request", "<=", Fraction(9, 2), False, None),
        ("wavefronts <= baseline", "wavefronts", "<=", 0, False, "baseline"),
        ("excess < 5%", "excess", "<", 5, True, None),
        ("  conflicts==1_000 ", "conflicts", "==", 1000, False, None),
        ("requests > 1", "requests", ">", 1, False, None),
        ("lines >= baseline", "lines", ">=", 0, False, "baseline"),
    ],
)
def test_a_budget_says(
    text: str, quantity: str, relation: str, limit: Fraction, percent: bool, reference: str | None
) -> None:
    budget = parse_budget(text)
    assert budget.quantity is QUANTITIES[quantity]
    assert (budget.relation, budget.limit, budget.percent, budget.reference) == (
        relation, limit, percent, reference,
    )  # fmt: skip
    assert budget.selector.filters == ()
    assert budget.needs_baseline == (reference == "baseline")


def test_the_budget_of_every_count() -> None:
    assert parse_budget(" baseline ").quantity is None
    assert parse_budget("baseline").needs_baseline


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("sites(store).conflicts == 0", (("op", "store"),)),
        ("sites( shared , load ) . ways <= 1", (("space", "shared"), ("op", "load"))),
        ("sites(array=s_a, width=16).ways <= 1", (("array", "s_a"), ("width", "16"))),
        ("sites(line=043).ways <= 1", (("line", "43"),)),
        ('sites(code="a, (b)").ways <= 1', (("code", "a, (b)"),)),
        ("sites(code='say \"x\"').ways <= 1", (("code", 'say "x"'),)),
        ("sites(kernel=guide_*, file=a/b.cu).ways <= 1", (("kernel", "guide_*"), ("file", "a/b.cu"))),
        ("sites(op=load,space=global).lines <= 1", (("op", "load"), ("space", "global"))),
    ],
)
def test_a_filter_says(text: str, filters: tuple[tuple[str, str], ...]) -> None:
    assert parse_budget(text).selector.filters == filters
    alone = text[: text.rindex(")") + 1]
    assert parse_selector(alone).filters == filters


@pytest.mark.parametrize(
    ("wrong", "column", "message", "right"),
    [
        ("way <= 1", 1, "no quantity 'way'", "ways <= 1"),
        ("bound", 1, "bound needs a unit", "bound(shared) <= bound(fma)"),
        ("sites(store).bound <= 1", 14, "bound is of the whole launch", "sites(store).ways <= 1"),
        ("sites(store).cycles <= 1", 14, "cycles is of the whole launch", "cycles <= 1"),
        ("", 1, "expected quantity", "ways <= 1"),
        ("ways", 5, "expected a comparison", "ways <= 1"),
        ("ways = 1", 6, "expected a comparison", "ways == 1"),
        ("ways =< 1", 6, "expected a comparison", "ways <= 1"),
        ("ways <=", 8, "expected a limit", "ways <= 1"),
        ("ways <= one", 9, "expected a limit", "ways <= 1"),
        ("ways <= -1", 9, "expected a limit", "ways <= 1"),
        ("wavefronts <= 1e5", 15, "expected a limit", "wavefronts <= 100000"),
        ("ways <= ideal", 9, "ways has no ideal", "wavefronts <= ideal"),
        ("ways <= 5%", 10, "ways cannot be a percentage", "conflicts <= 5%"),
        ("sectors < 5%", 12, "sectors cannot be a percentage", "excess < 5%"),
        ("ways <= 1 and more", 11, "unexpected 'and more'", "ways <= 1"),
        ("baseline <= 1", 1, "no quantity 'baseline'", "baseline"),
        ("sites(stor).ways <= 1", 7, "no kind of access 'stor'", "sites(store).ways <= 1"),
        ("sites().ways <= 1", 7, "expected kind of access", "sites(shared).ways <= 1"),
        ("sites(store,).ways <= 1", 13, "expected kind of access", "sites(store).ways <= 1"),
        ("sites(store.ways <= 1", 12, "expected ',' or ')'", "sites(store).ways <= 1"),
        ("sites(store)ways <= 1", 13, "expected '.'", "sites(store).ways <= 1"),
        ("sites(store).way <= 1", 14, "no quantity 'way'", "sites(store).ways <= 1"),
        ("sites(arr=s).ways <= 1", 7, "no filter 'arr'", "sites(array=s).ways <= 1"),
        ("sites(array=).ways <= 1", 13, "expected a value", "sites(array=s).ways <= 1"),
        ("sites(line=x).ways <= 1", 12, "expected a number for line", "sites(line=4).ways <= 1"),
        ("sites(width=16B).ways <= 1", 13, "expected a number for width", "sites(width=16).ways <= 1"),
        ("sites(op=read).ways <= 1", 10, "no op 'read'", "sites(op=load).ways <= 1"),
        (
            "ways <= sites(load).ways",
            20,
            "ways of several",
            "lines <= sites(load).lines",
        ),
        ("sectors <= sites(load)", 23, "expected '.sectors'", "sectors <= sites(load).sectors"),
        ("lines < sites(load).sectors", 21, "expected lines, the quantity", "lines < sites(load).lines"),
        ("lines < 5% of lines", 15, "expected sites(...)", "lines < 5% of sites(load).lines"),
        ("  sites(code=a(b).ways <= 1", 15, "expected ',' or ')'", '  sites(code="a(b").ways <= 1'),
    ],
)
def test_a_mistake_gets_a_caret(wrong: str, column: int, message: str, right: str) -> None:
    with pytest.raises(MemsimError, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        parse_budget(wrong)
    assert caught.value.column == column
    assert caught.value.source == wrong
    assert caught.value.exit_code == 2
    assert parse_budget(right).text == right.strip()


@pytest.mark.parametrize(
    ("cannot_fail", "reason", "can"),
    [
        ("ways >= 1", "ways are never below 1", "ways >= 2"),
        ("ways > 0", "ways are never below 1", "ways > 1"),
        ("ways <= 32", "ways are never above 32", "ways <= 31"),
        ("ways < 33", "ways are never above 32", "ways < 32"),
        ("sites(load).ways <= 1_000", "ways are never above 32", "sites(load).ways <= 1"),
        ("sectors_per_request <= 32", "are never above 32", "sectors_per_request <= 31.5"),
        ("lines_per_request < 32.5", "are never above 32", "lines_per_request < 32"),
        ("excess <= 100%", "excess can never be all of the total", "excess <= 99.9%"),
        ("excess < 100%", "excess can never be all of the total", "excess < 99.9%"),
        ("conflicts < 100%", "conflicts can never be all of the total", "conflicts < 99.9%"),
        ("conflicts <= 250%", "conflicts can never be all of the total", "conflicts <= 2.5%"),
        ("excess >= 0%", "excess are never below 0", "excess > 0%"),
        ("wavefronts >= 0", "wavefronts are never below 0", "wavefronts > 0"),
        ("requests > 0", "requests are never below 1", "requests > 1"),
        ("instructions >= 1", "instructions are never below 1", "instructions >= 2"),
        ("sites(load).lines <= sites(load).lines", "both sides are equal", "lines <= sites(load).lines"),
        ("sectors >= ideal", "never below their ideal", "sectors <= ideal"),
    ],
)
def test_a_budget_that_cannot_fail_is_refused(cannot_fail: str, reason: str, can: str) -> None:
    with pytest.raises(MemsimError, match=f"this budget cannot fail: .*{reason}") as caught:
        parse_budget(cannot_fail)
    relation = next(at for at, character in enumerate(cannot_fail, 1) if character in "<>")
    assert caught.value.column == relation
    assert parse_budget(can).text == can


@pytest.mark.parametrize("text", [f"wavefronts <= {'9' * 5000}", f"sites(line={'9' * 5000}).ways <= 1"])
def test_a_number_without_end_is_a_mistake(text: str) -> None:
    with pytest.raises(MemsimError, match="expected a") as caught:
        parse_budget(text)
    assert caught.value.column is not None


def test_the_caret_is_printed_under_the_mistake() -> None:
    with pytest.raises(MemsimError) as caught:
        parse_budget("sites(stor).ways <= 1")
    lines = str(caught.value).splitlines()
    assert lines[1:3] == ["    sites(stor).ways <= 1", "          ^"]
    assert "did you mean 'store'?" in lines[3]


def test_a_selector_is_nothing_else() -> None:
    assert parse_selector("sites(array=index)").filters == (("array", "index"),)
    for wrong, column in (("index", 1), ("sites(array=index).ways", 19), ("", 1)):
        with pytest.raises(MemsimError) as caught:
            parse_selector(wrong)
        assert caught.value.column == column


@given(text=st.text(st.sampled_from('sites(load).ways<=1 %="k*,baseline_'), max_size=30))
def test_any_text_is_a_budget_or_has_a_place(text: str) -> None:
    try:
        budget = parse_budget(text)
    except MemsimError as error:
        assert error.column is not None
        assert 1 <= error.column <= len(text) + 1
    else:
        assert parse_budget(budget.text) == budget


@given(
    value=st.fractions(0, 10, max_denominator=4),
    limit=st.integers(1, 10),
    relation=st.sampled_from(sorted(RELATIONS)),
)
def test_a_limit_holds_exactly(value: Fraction, limit: int, relation: str) -> None:
    budget = parse_budget(f"wavefronts {relation} {limit}")
    expected = {"<=": value <= limit, "<": value < limit, "==": value == limit, ">=": value >= limit}
    assert budget.holds(value, budget.limit) == expected.get(relation, value > limit)
