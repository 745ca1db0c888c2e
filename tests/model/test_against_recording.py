"""The models equal the recorded counters, with no tolerance, and a wrong rule is found out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from memsim.arch import ARCHS, SM_90
from memsim.model import shared
from memsim.model.checked_requests import Lanes, Mask
from memsim.model.shared import SharedRule
from tests.model.probed import NAMES, unequal

RULE = shared.shared_rule
PAIR_RULE = shared.pair_rule
GROUP_COSTS = shared.group_costs


@pytest.mark.parametrize("name", NAMES)
def test_every_counter_is_equal(name: str) -> None:
    errors = unequal(name)
    assert errors and not any(errors.values()), errors


def no_pairs(units: Lanes, active: Mask | None) -> Mask:
    return np.zeros(len(units), np.bool_)


def any_pairs(units: Lanes, active: Mask | None) -> Mask:
    return np.ones(len(units), np.bool_)


def pairs_of_distance_one_only(units: Lanes, active: Mask | None) -> Mask:
    on = np.ones(units.shape, np.bool_) if active is None else active
    same = units[:, ::2] == units[:, 1::2]
    return (same | ~(on[:, ::2] & on[:, 1::2])).all(axis=1)


def idle_partner_breaks_the_pair(units: Lanes, active: Mask | None) -> Mask:
    """As if the addresses of idle lanes counted."""
    return PAIR_RULE(units, None)


def merge_only_without_conflict(units: Lanes, active: Mask | None) -> Mask:
    """What the profiler does on 8-byte loads, and the hardware does not."""
    together = GROUP_COSTS(units, active, RULE("load", 8, SM_90), 32)
    return PAIR_RULE(units, active) & (together[:, 0] <= 1)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (no_pairs, "LDS64"),
        (no_pairs, "LDS128"),
        (any_pairs, "LDS64"),
        (any_pairs, "LDS128"),
        (pairs_of_distance_one_only, "LDS64"),
        (pairs_of_distance_one_only, "LDS128"),
        (idle_partner_breaks_the_pair, "LDS64"),
        (idle_partner_breaks_the_pair, "LDS128"),
        (merge_only_without_conflict, "LDS64"),
    ],
)
def test_a_wrong_pair_rule_is_found_out(
    monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Lanes, Mask | None], Mask], name: str
) -> None:
    assert not any(unequal(name).values())
    monkeypatch.setattr(shared, "pair_rule", wrong)
    assert all(unequal(name).values())


def one_condition_for_each_half(
    units: Lanes, active: Mask | None, rule: SharedRule, lanes: int
) -> np.ndarray:
    """Merges each half-warp by itself, where the whole warp's condition fails."""
    costs = GROUP_COSTS(units, active, rule, lanes)
    if rule.lanes != 8 or lanes != 8:
        return costs
    halves = units.reshape(-1, 16)
    on = None if active is None else active.reshape(-1, 16)
    holds = PAIR_RULE(halves, on).reshape(-1, 2)
    together = GROUP_COSTS(units, active, rule, 16)
    costs[:, ::2] = np.where(holds, together, costs[:, ::2])
    costs[:, 1::2] = np.where(holds, 0, costs[:, 1::2])
    return costs


def test_a_pair_rule_for_each_half_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "group_costs", one_condition_for_each_half)
    assert all(unequal("LDS128").values())


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"merges": True}, "STS64"),
        ({"merges": True}, "STS128"),
        ({"shares": True}, "ATOMS"),
        ({"shares": False}, "STS32"),
        ({"shares": False}, "LDS32"),
        ({"lanes": 32, "unit": 4}, "LDM4"),  # only the first word of a lane, as some simulators do
        ({"lanes": 32, "unit": 4}, "STS128"),
    ],
)
def test_a_wrong_rule_for_an_instruction_is_found_out(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, int], name: str
) -> None:
    assert not any(unequal(name).values())
    monkeypatch.setattr(
        shared, "shared_rule", lambda op, width, arch: replace(RULE(op, width, arch), **change)
    )
    assert all(unequal(name).values())


def test_counting_idle_lanes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_lanes(units: Lanes, active: Mask | None, rule: SharedRule, lanes: int) -> np.ndarray:
        return GROUP_COSTS(units, None, rule, lanes)

    monkeypatch.setattr(shared, "group_costs", all_lanes)
    assert any(unequal("LDS32").values())


@pytest.mark.parametrize("change", [{"sector_bytes": 64}, {"line_bytes": 64}])
def test_a_wrong_sector_or_line_is_found_out(monkeypatch: pytest.MonkeyPatch, change: dict[str, int]) -> None:
    assert not any(unequal("LDG32").values())
    monkeypatch.setitem(ARCHS, "sm_90", replace(SM_90, **change))
    assert any(unequal("LDG32").values())
