"""The heads of loops: what is read of them, and the values that a variable takes."""

from __future__ import annotations

import pytest

from memsim.source.syntax import parse, walk
from memsim.suggest.loops import LoopHead, loop_of


def loop(head: str, body: str = "{ x += i; }") -> LoopHead | None:
    """Of a function with one loop."""
    tree = parse(f"void f(int n) {{ int x = 0, i; for ({head}) {body} }}")
    (node,) = (node for node in walk(tree.root) if node.type == "for_statement")
    return loop_of(tree, node)


@pytest.mark.parametrize(
    ("head", "read"),
    [
        ("int i = 0; i < n; ++i", ("i", "int", "0", "<", "n", "1")),
        ("i = x; i != n - 1; i += 1", ("i", "", "x", "!=", "n - 1", "1")),
        ("; n > i; i++", ("i", "", "", "<", "n", "1")),
        ("unsigned int i = n; i >= 2; i -= x + 1", ("i", "unsigned int", "n", ">=", "2", "-(x + 1)")),
        ("int i = 1; i < n; i = i + x", ("i", "int", "1", "<", "n", "x")),
        ("int i = n / 2; i > 0; i >>= 1", ("i", "int", "n / 2", ">", "0", ">>1")),
    ],
)
def test_what_is_read(head: str, read: tuple[str, ...]) -> None:
    found = loop(head)
    assert found is not None
    assert (found.variable, found.type, found.start, found.test, found.end, found.step) == read
    assert found.is_steady


@pytest.mark.parametrize(
    "head",
    [
        "int i = 0, j = 1; i < n; ++i",
        "int i = 0; i < n; ++x",
        "int i = 0; i < n && x; ++i",
        "int i = 0; ; ++i",
    ],
)
def test_what_is_no_such_loop(head: str) -> None:
    assert loop(head) is None


@pytest.mark.parametrize(
    ("head", "values"),
    [
        ("int i = 0; i < 3; ++i", [0, 1, 2]),
        ("int i = 0; i <= 4; i += 2", [0, 2, 4]),
        ("int i = 2; i >= 0; --i", [2, 1, 0]),
        ("int i = 0; i != 4; i += 2", [0, 2]),
    ],
)
def test_values(head: str, values: list[int]) -> None:
    found = loop(head)
    assert found is not None
    assert list(found.values({}, 9) or ()) == values


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("int i = 0; i < 10; ++i", "{ x += i; }"),  # too many
        ("int i = 0; i < 3; ++i", "{ ++i; }"),
        ("int i = 0; i < n; ++i", "{ x += i; }"),
        ("int i = 0; i != 3; i += 2", "{ x += i; }"),  # never ends
        ("int i = 0; i < 3; --i", "{ x += i; }"),
        ("int i = 4; i > 1; i /= 2", "{ x += i; }"),
    ],
)
def test_values_that_are_not_known(head: str, body: str) -> None:
    found = loop(head, body)
    assert found is not None
    assert found.values({}, 9) is None
