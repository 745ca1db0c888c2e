"""Which row is which: by code and order, never by line."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memsim.analysis import SiteCounts
from memsim.guard.comparison import ORDER, Side, align, compare, compare_all
from tests.guard.test_select import SITE


def row(source: str, line: int = 1, **fields: Any) -> SiteCounts:
    counts = {"requests": 8, "wavefronts": 8, "conflicts": 0, "ideal_wavefronts": 8, "max_ways": 1}
    return dataclasses.replace(SITE, **({"source": source, "line": line, **counts} | fields))


A, B, C = row("s[i] = a;", 1), row("s[j] = b;", 2), row("completely = different(code, here);", 3)


def kinds(before: list[SiteCounts], now: list[SiteCounts]) -> list[str]:
    changes = [pair.change for pair in align(before, now)]
    return [change.kind if change else "=" for change in changes]


def test_a_line_that_moved_is_no_change() -> None:
    moved = [dataclasses.replace(site, line=site.line + 40, file="elsewhere.cu") for site in (A, B, C)]
    assert kinds([A, B, C], moved) == ["=", "=", "="]
    assert kinds([A, B, C], moved[::-1]) == ["=", "=", "="]


def test_spacing_is_no_change() -> None:
    assert kinds([row("s[i]  =   a;")], [row("s[i] = a;")]) == ["="]
    assert kinds([row("s[i]  =   a;")], [row("s[i] = b;")]) == ["changed"]


def test_equal_lines_are_told_apart_by_their_order() -> None:
    twice = [row("x = s[i];", 1, wavefronts=8), row("x = s[i];", 2, wavefronts=16)]
    assert kinds(twice, twice) == ["=", "="]
    assert kinds(twice, twice[::-1]) == ["worse", "improved"]


def test_a_new_and_a_vanished_access_are_no_changed_ones() -> None:
    assert kinds([A], [A, C]) == ["=", "new"]
    assert kinds([A, C], [A]) == ["=", "vanished"]
    other = row("something(else_entirely) + 1;", 9, array="s_b")
    assert kinds([A, C], [A, other]) == ["=", "new", "vanished"]


def test_an_edited_line_is_one_that_changed() -> None:
    before = [row("x = s_a[k][ty * TM ^ 16 * (k / 4)];", op="load")]
    assert kinds(before, [row("x = s_a[k][ty * TM];", op="load", wavefronts=16)]) == ["worse"]
    assert kinds(before, [row("x = s_a[k][ty * TM];", op="load", wavefronts=4)]) == ["improved"]
    assert kinds(before, [row("x = s_a[k][ty * TM];", op="load")]) == ["changed"]


def test_a_line_in_its_predecessor_s_place_is_that_line() -> None:
    """However much of its code is other code: between the same neighbours, the same access of the array."""
    written = row("completely = anew(in_other_words);", 2, wavefronts=16)
    assert kinds([A, B, C], [A, written, C]) == ["=", "worse", "="]
    assert kinds([B], [written]) == ["worse"]
    # Elsewhere it is another access.
    assert kinds([A, B, C], [A, C, written]) == ["=", "=", "new", "vanished"]
    assert kinds([A, B, C], [A, dataclasses.replace(written, op="load"), C]) == [
        "=", "new", "=", "vanished",
    ]  # fmt: skip


def test_an_array_that_was_renamed_is_the_same_access() -> None:
    before = [row("s_a[a_k + 0][a_col] = a.x;", array="s_a"), row("s_b[b_k][b_col] = b.x;", array="s_b")]
    now = [row("t_a[a_k + 0][a_col] = a.x;", array="t_a"), before[1]]
    assert kinds(before, now) == ["changed", "="]


def test_an_access_that_stands_alone_has_one_count() -> None:
    for pair in align([A, C], [A, row("z = 1;", 9, op="load")]):
        change = pair.change
        assert change is None or [figure.quantity for figure in change.figures] == ["wavefronts"]


def test_the_most_alike_lines_belong_together() -> None:
    before = [row("s_a[a_k + 0][a_col] = a.x;"), row("s_a[a_k + 1][a_col] = a.y;")]
    now = [row("s_a[a_k + 1][a_m] = a.y;"), row("s_a[a_k + 0][a_m] = a.x;")]
    assert [pair.before for pair in align(before, now)] == before[::-1]


def test_another_width_or_array_in_the_same_code_is_a_change() -> None:
    wide = row("*p = v;", width=16, wavefronts=4, requests=1)
    narrow = row("*p = v;", width=4, wavefronts=4, requests=4)
    (change,) = [pair.change for pair in align([wide], [narrow])]
    assert change is not None
    assert change.kind == "worse"  # four requests where there was one
    assert change.reason == "it was 16 B per lane and is now 4 B"
    (change,) = [pair.change for pair in align([row("*p = v;")], [row("*p = v;", array="s_b")])]
    assert change is not None
    assert (change.kind, change.reason) == ("changed", "its array was s_a")


def test_a_store_is_never_a_load() -> None:
    assert kinds([row("x[i] = s[i];", op="load")], [row("x[i] = s[i];", op="store")]) == ["new", "vanished"]


def test_worse_in_one_count_is_worse() -> None:
    assert kinds([row("a", wavefronts=8)], [row("a", wavefronts=9)]) == ["worse"]
    assert kinds([row("a", wavefronts=8, max_ways=2)], [row("a", wavefronts=9, max_ways=1)]) == ["worse"]
    assert kinds([row("a", wavefronts=8, max_ways=2)], [row("a", wavefronts=8, max_ways=1)]) == ["improved"]
    assert kinds([row("a", ideal_wavefronts=4)], [row("a", ideal_wavefronts=8)]) == ["changed"]
    assert kinds([row("a", ideal_wavefronts=8)], [row("a", ideal_wavefronts=4)]) == ["worse"]  # more waste


def test_what_could_not_be_analyzed() -> None:
    unknown = row("a", wavefronts=None, requests=None, unresolved="why")
    assert kinds([unknown], [unknown]) == ["="]
    assert kinds([unknown], [row("a")]) == ["improved"]
    assert kinds([row("a")], [unknown]) == ["worse"]


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["a = s[i];", "a = s[i + 1];", "b = t[j];", ""]),
        st.integers(1, 9),
        op=st.sampled_from(["load", "store"]),
        width=st.sampled_from([4, 16]),
        wavefronts=st.integers(0, 3),
    ),
    max_size=6,
)


@given(before=ROWS, now=ROWS)
def test_every_row_has_one_place(before: list[SiteCounts], now: list[SiteCounts]) -> None:
    pairs = align(before, now)
    assert [pair.now for pair in pairs if pair.now is not None] == now
    assert sorted(id(pair.before) for pair in pairs if pair.before is not None) == sorted(map(id, before))
    assert all(pair.before is not None or pair.now is not None for pair in pairs)


@given(rows=ROWS)
def test_nothing_differs_from_itself(rows: list[SiteCounts]) -> None:
    assert all(pair.before == pair.now for pair in align(rows, rows))


# --- two sides, and several


def side(name: str, sites: list[SiteCounts], totals: dict[str, int | None]) -> Side:
    return Side(name, tuple(sites), totals, "1 block of 32 threads")


def test_two_sides_differ_by_an_access_or_a_total() -> None:
    worse, better = row("s[i] = a;", wavefronts=16), row("s[j] = b;", 2, wavefronts=4)
    found = compare(
        side("a", [A, B, C], {"x": 1, "y": 2}), side("b", [better, C, worse], {"x": 1, "y": 3, "z": 4})
    )
    assert [line.change.kind if line.change else "=" for line in found.lines] == ["worse", "improved", "="]
    assert [(total.metric, total.a, total.b) for total in found.totals] == [
        ("y", 2, 3),
        ("z", None, 4),
        ("x", 1, 1),
    ]
    assert found.differs and found.first == ORDER.index("worse")
    assert found.verdict == "a -> b: 1 worse, 1 improved, of 3 accesses"
    for names, said in ((("k", "k"), "k"), (("b", "a"), "b -> a"), (("a", "b"), "a -> b")):
        same = compare(side(names[0], [A, B], {"x": None}), side(names[1], [A, B], {"x": None}))
        assert not same.differs and same.first == len(ORDER)
        assert same.verdict == f"{said}: no difference in 2 accesses"
    only_totals = compare(side("k", [A], {"x": 1}), side("k", [A], {"x": None}))
    assert only_totals.differs and only_totals.verdict == "k: totals differ, of 1 accesses"


def test_of_several_kernels_those_that_became_worse_come_first() -> None:
    worse, better = row("s[i] = a;", wavefronts=16), row("s[i] = a;", wavefronts=4)
    before = {name: side(name, [A], {}) for name in ("same", "better", "worse", "gone", "broken")}
    now = {"same": [A], "better": [better], "worse": [worse], "new": [A], "more": [A]}
    found = compare_all(before, {name: side(name, sites, {}) for name, sites in now.items()}, ["broken"])
    assert [pair.a.name for pair in found.pairs] == ["worse", "better", "same"]
    assert (found.only_a, found.only_b, found.failed) == (("gone",), ("new", "more"), ("broken",))
    assert found.verdict == (
        "2 of 3 kernels changed; only in the first: gone; only in the second: new, more; NOT COMPARED: broken"
    )
    one = compare_all({"k": side("k", [A], {})}, {"k": side("k", [A], {})})
    assert one.verdict == "k: no difference in 1 accesses"
    for more in ({"gone": before["gone"]}, {}):
        partly = compare_all(
            {"k": side("k", [A], {}), **more}, {"k": side("k", [A], {})}, [] if more else ["x"]
        )
        assert partly.verdict.startswith("0 of 1 kernels changed; ")
    two = compare_all(
        {name: before[name] for name in ("same", "worse")}, {name: before[name] for name in before}
    )
    assert two.verdict.startswith("0 of 2 kernels changed; only in the second: better")
