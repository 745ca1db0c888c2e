"""Which accesses `sites(...)` means, those that could not be analyzed among them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from memsim.analysis import SiteCounts
from memsim.guard.select import parse_selector

SITE = SiteCounts(
    file="src/tile.cu",
    line=7,
    column=3,
    source="s_a[k][m] = a.x;",
    op="store",
    space="shared",
    width=4,
    array="s_a",
    instructions=1,
)


def row(**fields: Any) -> SiteCounts:
    return dataclasses.replace(SITE, **fields)


@pytest.mark.parametrize(
    ("means", "does_not"),
    [
        ("sites(store)", "sites(load)"),
        ("sites(shared)", "sites(global)"),
        ("sites(load, store)", "sites(load, atomic)"),
        ("sites(store, shared)", "sites(store, global)"),
        ("sites(array=s_a)", "sites(array=s_b)"),
        ("sites(array=s_*)", "sites(array=t_*)"),
        ("sites(array=s_b, array=s_a)", "sites(array=s_b, array=s_c)"),
        ("sites(width=4)", "sites(width=16)"),
        ("sites(line=7)", "sites(line=8)"),
        ('sites(code="[k][m]")', 'sites(code="[m][k]")'),
        ("sites(file=tile.cu)", "sites(file=tile.cuh)"),
        ("sites(file=src/tile.cu)", "sites(file=lib/tile.cu)"),
        ("sites(kernel=guide_*)", "sites(kernel=guide_*, kernel=opt_*, line=8)"),
    ],
)
def test_a_row_is_meant_or_not(means: str, does_not: str) -> None:
    assert parse_selector(means).matches("guide_v2", SITE) is True
    assert parse_selector(does_not).matches("guide_v2", SITE) is False


def test_a_row_that_touches_several_arrays_is_meant_by_each() -> None:
    both = row(array="s_a|s_b")
    assert parse_selector("sites(array=s_b)").matches("k", both) is True
    assert parse_selector("sites(array=s_c)").matches("k", both) is False


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("sites(array=s_b)", {}),  # its address is not known: it may touch s_b too
        ("sites(array=s_b)", {"array": ""}),
        ("sites(line=9)", {"file": "", "line": 0}),
        ("sites(file=other.cu)", {"file": ""}),
        ("sites(code=other)", {"source": ""}),
        ("sites(width=16)", {"width": 0}),
    ],
)
def test_nobody_knows_of_an_access_that_could_not_be_analyzed(text: str, fields: dict[str, Any]) -> None:
    selector = parse_selector(text)
    assert selector.matches("k", row(**fields, unresolved="why")) is None
    assert selector.matches("k", row(**fields)) is False


@pytest.mark.parametrize("text", ["sites(line=9)", "sites(code=other)", "sites(load)", "sites(kernel=other)"])
def test_what_is_known_of_it_still_counts(text: str) -> None:
    assert parse_selector(text).matches("k", row(unresolved="why")) is False


def test_a_filter_that_fails_outweighs_one_that_is_not_known() -> None:
    unknown = row(array="", unresolved="why")
    assert parse_selector("sites(array=s_a, load)").matches("k", unknown) is False
    assert parse_selector("sites(array=s_a, store)").matches("k", unknown) is None
