"""The rows of a site: each distinct request once, in the order in which they came, whatever their hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsim.access import SiteRequests
from memsim.trace import site_records as module
from memsim.trace.site_records import RequestRows, joined_requests

PERIODS = 128, 128


def drawn(data: st.DataObject, copies: bool) -> list[SiteRequests]:
    """Events of a few requests that often are the same, all lanes on or not."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    events = []
    for count in data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)):
        addresses = random.integers(0, 3, (count, 32)) * 4 + random.integers(0, 3, (count, 1)) * 64
        active = random.random((count, 32)) < random.choice([0.02, 0.5, 1.0])
        active[:, 0] |= ~active.any(1)
        partner = np.where(active, addresses[::-1] + 128, -1) if copies else None
        events.append(SiteRequests(addresses, active, partner, np.arange(count), np.arange(count) % 7))
    return events


def told_one_by_one(events: list[SiteRequests]) -> dict[Any, list[int]]:
    """Each distinct request to [how often, block and warp of the first]; a scalar oracle."""
    found: dict[Any, list[int]] = {}
    for event in events:
        for i in range(len(event)):
            lanes = [lane for lane in range(32) if event.active[i, lane]]
            sides = [event.addresses[i]] if event.partner is None else [event.addresses[i], event.partner[i]]
            key = []
            for side in sides:
                low = min(int(side[lane]) for lane in lanes) // 128 * 128
                key.append(tuple((lane, int(side[lane]) - low) for lane in lanes))
            found.setdefault(tuple(key), [0, int(event.block[i]), int(event.warp[i])])[0] += 3
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("hashes", ["as they are", "a few bits", "all the same"])
@pytest.mark.parametrize("copies", [False, True])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_rows_are_what_one_by_one_is_found(hashes: str, copies: bool, data: st.DataObject) -> None:
    events = drawn(data, copies)
    with pytest.MonkeyPatch.context() as patch:
        if hashes != "as they are":
            kept = 1 if hashes == "a few bits" else 0
            patch.setattr(module, "HASH", module.HASH * 0 + kept)
        patch.setattr(module, "SLICE", data.draw(st.sampled_from([1, 7, 4096])))
        rows = RequestRows(lambda requests: requests.relative(PERIODS))
        for event in events:
            rows.add_counts(*rows.number(event, np.full(len(event), 3)))
    assert hashes != "as they are" or not rows.by_bytes  # which is slower
    expected = told_one_by_one(events)
    assert list(zip(rows.counts, rows.block.array, rows.warp.array)) == [
        tuple(one) for one in expected.values()
    ]
    again = rows.requests()
    assert list(told_one_by_one([again])) == list(expected)
    assert (again.addresses[~again.active] == 0).all()


def test_factors_of_the_hash_are_odd_and_differ() -> None:
    assert (module.HASH & 1).all() and len(np.unique(module.HASH)) == len(module.HASH)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_folded_rows_stand_for_all(data: st.DataObject) -> None:
    """By the number of active lanes: as many rows as there are numbers, and no request is lost."""
    events = drawn(data, copies=False)
    rows = RequestRows(lambda requests: requests.relative(PERIODS))
    for event in events:
        rows.add_counts(*rows.number(event, np.ones(len(event), np.int64)))
    folded = rows.fold(lambda requests: requests.active.sum(1, keepdims=True))
    lanes = np.concatenate([event.active.sum(1) for event in events])
    numbers, counts = np.unique(lanes, return_counts=True)
    kept = folded.active.array.sum(1)
    assert dict(zip(kept.tolist(), folded.counts.tolist())) == dict(zip(numbers.tolist(), counts.tolist()))
    assert list(kept) == list(dict.fromkeys(lanes.tolist()))


def test_rows_found_by_hash_are_found_by_bytes_after_a_collision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of two lanes are the same if the lanes' sum is."""
    monkeypatch.setattr(module, "HASH", module.HASH * 0 + 1)
    rows = RequestRows(lambda requests: requests.expanded().addresses[:, :2])
    numbers = []
    for low, high in ((0, 8), (4, 8), (8, 0), (0, 8), (4, 4), (4, 8)):
        addresses = np.array([[low, high, *range(30)]])
        block = np.zeros(1, np.int64)
        event = SiteRequests(addresses, np.ones((1, 32), bool), None, block, block)
        numbers.append(int(rows.number(event, np.ones(1, np.int64))[0][0]))
        assert rows.by_bytes == (len(numbers) > 2)
    assert numbers == [0, 1, 2, 0, 3, 1]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("copies", [True, False])
def test_requests_are_joined_in_order(count: int, copies: bool) -> None:
    events = []
    for number in range(count):
        lanes = np.arange(64).reshape(2, 32) + number
        events.append(
            SiteRequests(lanes, lanes % 3 > 0, lanes + 7 if copies else None, lanes[:, 0], lanes[:, 1])
        )
    found = joined_requests(events)
    assert type(found) is SiteRequests and (found.partner is None) != copies
    for column in ("addresses", "active", "block", "warp", *(["partner"] if copies else [])):
        wanted = [row for event in events for row in getattr(event, column).tolist()]
        assert getattr(found, column).tolist() == wanted
