"""Distinct requests, classes of blocks, and the names of operations in other tools' traces."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.access import AccessSide, Requests, SiteRequests
from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.trace import site_records as rows_module
from memsim.trace.events import block_classes, content, identity
from memsim.trace.foreign.collect import read_opcode
from memsim.trace.foreign.formats import _opcode
from memsim.trace.site_records import GrowingColumn, RequestRows, distinct, distinct_rows, hashes
from tests.traces import site

RANDOM = np.random.default_rng(11)


def requests(kinds: np.ndarray) -> SiteRequests:
    """Requests that are equal where their kinds are."""
    addresses = kinds[:, None] * 1000 + np.arange(32)
    block = np.arange(len(kinds))
    return SiteRequests(addresses, np.ones(addresses.shape, np.bool_), None, block, block.astype(np.int32))


def by_address(of: Requests) -> np.ndarray:
    return of.expanded().addresses[:, :1]


def by_two(of: Requests) -> np.ndarray:
    return of.expanded().addresses[:, :2]


@pytest.mark.parametrize("tell", [by_address, by_two])
@pytest.mark.parametrize("collide", [False, True])
def test_rows_are_those_of_a_dictionary(
    tell: rows_module.Tell, collide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if all hashes of wide keys collide, and in slices."""
    if collide:
        wide = rows_module.hashes
        monkeypatch.setattr(
            rows_module, "hashes", lambda keys: wide(keys[:, :1] * 0 + (keys.shape[1] == 1) * keys)
        )
        monkeypatch.setattr(rows_module, "SLICE", 7)
    rows, wanted = RequestRows(tell), dict[int, int]()
    for weights in ([1] * 20, RANDOM.integers(1, 5, 20), [1] * 20):
        kinds = RANDOM.integers(0, 12, 20)
        rows.add_counts(*rows.number(requests(kinds), np.array(weights)))
        for kind, weight in zip(kinds.tolist(), np.array(weights).tolist()):
            wanted[kind] = wanted.get(kind, 0) + weight
    assert (rows.requests().addresses[:, 0] // 1000).tolist() == list(wanted)  # in order of occurrence
    assert rows.counts.tolist() == list(wanted.values()) and len(rows) == len(wanted)
    folded = rows.fold(lambda of: by_address(of) // 1000 % 2)
    assert folded.folded and len(folded) == 2
    assert sorted(folded.counts.tolist()) == sorted(
        sum(count for kind, count in wanted.items() if kind % 2 == odd) for odd in (0, 1)
    )


def test_distinct_values() -> None:
    values = np.array([5, 3, 5, 9, 3])
    first, which = distinct(values)
    assert (first.tolist(), which.tolist()) == ([1, 0, 3], [1, 0, 1, 2, 0])
    keys = np.array([[1, 2], [2, 1], [1, 2]])
    first, which = distinct_rows(keys)
    assert keys[first][which].tolist() == keys.tolist() and len(first) == 2
    assert len(set(hashes(np.arange(1000)[:, None]).tolist())) == 1000


def test_a_column_grows() -> None:
    column = GrowingColumn(np.int64, (2,))
    for size in (1, 3, 2):
        column.extend(np.full((size, 2), size))
    assert column.array.tolist() == [[1, 1]] + [[3, 3]] * 3 + [[2, 2]] * 2


U, V = Part(np.array([[0], [128], [256], [130]])), Part(np.arange(32)[None, :] * 4)
MASK = Part(np.array([[True], [False], [True], [True]]))


def test_classes_of_blocks() -> None:
    """Blocks stand for each other if they run, and differ by a multiple of the period."""

    def classes(*sides: tuple[int | Sum, bool | Part]) -> list[list[int]]:
        return [
            column.tolist() for column in block_classes([AccessSide(*side) for side in sides], (128, 32), 4)
        ]

    assert classes((64, True)) == [[0], [4]]
    assert classes((Sum(0, v=V), MASK)) == [[0], [3]]
    assert classes((Sum(0, u=U, v=V), True)) == [[0, 3], [3, 1]]
    assert classes((Sum(0, u=U, v=V), MASK)) == [[0, 3], [2, 1]]
    assert classes((Sum(0, f=Part(np.arange(128).reshape(4, 32))), True)) == [[0, 1, 2, 3], [1] * 4]
    assert classes((0, Part(np.eye(4, 32, dtype=bool)))) == [[0, 1, 2, 3], [1] * 4]
    assert classes((0, True), (Sum(0, v=V), MASK)) == [[0, 1], [3, 1]]


def test_keys_of_executions() -> None:
    threads = Part(np.arange(32)[None, :] < 7)
    address = Sum(5, u=U, v=V)
    assert identity(address, threads, 128) == identity(Sum(133, u=U, v=V), threads, 128)
    others: list[int | Sum] = [Sum(6, u=U, v=V), Sum(5, v=V), Sum(5, u=U), Sum(5, u=V, v=V), Sum(5, f=V), 5]
    keys = {identity(one, threads, 128) for one in [address, *others]}
    assert len(keys) == 7 and len({identity(5, active, 128) for active in (True, False, threads)}) == 3
    assert identity(133, True, 128) == identity(5, True, 128) == (5, 0, 0, 0, -1)  # a uid is positive
    again = Sum(133, u=U, v=Part(V.array.copy()))
    assert content(again, Part(threads.array.copy()), 128) == content(address, threads, 128) is not None
    assert content(address, True, 128) != content(address, threads, 128)
    assert content(Sum(6, u=U, v=V), True, 128) != content(address, True, 128)
    for useless in (5, Sum(5, u=U), Sum(5, f=V)):
        assert content(useless, True, 128) is None
    assert content(address, MASK, 128) is None


@pytest.mark.parametrize(
    ("lanes", "suffix"), [(8, ""), (9, ".2"), (16, ".2"), (17, ".4"), (32, ".4"), (0, "")]
)
def test_matrices_by_their_lanes(lanes: int, suffix: str) -> None:
    for op, name in (("ldmatrix", "LDSM"), ("stmatrix", "STSM")):
        written = _opcode(site(op=op, width=16), np.arange(32) < lanes)
        assert written == f"{name}.16.M88{suffix}"
        read = read_opcode(written)
        assert not isinstance(read, str) and read is not None
        assert (read.access, read.width, read.lanes) == (op, 16, {"": 8, ".2": 16, ".4": 32}[suffix])
