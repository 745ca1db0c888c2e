"""What the estimate of time would pick: which choices there are, how they are timed and judged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from studies.choices import record
from studies.choices.choice import TILES, Choice
from studies.choices.page import decisions
from studies.choices.tiles import choice_of, tiles_at
from studies.dispatch import Piece, dispatchers
from studies.sizes import DISPATCHER

SIZE = (33, 17, 19)


@pytest.mark.parametrize("size", [(512, 512, 512), (333, 555, 777)])
def test_what_sgemm_picks_is_one_of_the_tiles(size: tuple[int, int, int]) -> None:
    (picked,) = dispatchers()[DISPATCHER].pieces(size)
    tiles = tiles_at(size)
    assert picked in tiles
    assert len({piece.spec.name for piece in tiles}) == len(tiles) > 5
    aligned = {"sgemm_tuned", "tile_32x64x32"} & {piece.spec.name for piece in tiles}
    assert bool(aligned) == (size[1] % 4 == 0)


class Bench:
    """Times nothing: each round takes so many milliseconds more. `wrong`: a kernel that computes nonsense."""

    wrong = ""

    def __init__(self, *what: object) -> None:
        self.rounds = 0.0

    def time_kernel(self, pieces: Sequence[Piece], budget_ms: float) -> tuple[float, ...] | None:
        self.rounds += 1
        return None if pieces[0].spec.name == self.wrong else (self.rounds,)


def test_tiles_are_timed_in_one_order_and_in_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "Bench", Bench)
    monkeypatch.setattr(record, "CuBlas", lambda cupy: None)
    names = [choice_of(SIZE, piece) for piece in tiles_at(SIZE)]
    wrong: list[str] = []
    found = record.measure_tiles(None, wrong, [SIZE])
    assert [(one.choice, one.warm_ms) for one in found] == [
        (name, (place + 1, 2 * len(names) - place)) for place, name in enumerate(names)
    ]
    assert not wrong
    monkeypatch.setattr(Bench, "wrong", tiles_at(SIZE)[0].spec.name)
    found = record.measure_tiles(None, wrong, [SIZE])
    assert [one.choice for one in found] == names[1:]
    assert len(wrong) == 2
    assert all(Bench.wrong in one for one in wrong)


def test_a_decision_costs_what_its_pick_takes_longer() -> None:
    fast, near, slow = (Choice(TILES, "1x1x1", name, "0" * 64) for name in "abc")
    estimates = {fast: 101, near: 100, slow: 300}
    (one,) = decisions(estimates, {fast: 1.0, near: 1.25, slow: 2.0}, TILES)
    assert (one.picked, one.fastest, one.missing) == ("b", "a", 0)
    assert np.allclose([one.cost, one.typical], 0.25)
    (one,) = decisions({**estimates, fast: 99}, {fast: 1.0, near: 1.25, slow: 2.0}, TILES)
    assert (one.picked, one.cost) == ("a", 0)


def test_other_code_is_not_compared() -> None:
    estimated, ran = (Choice(TILES, "1x1x1", "a", code * 64) for code in "01")
    assert not list(decisions({estimated: 1}, {ran: 1.0}, TILES))
    same = Choice(TILES, "1x1x1", "b", "0" * 64)
    (one,) = decisions({estimated: 1, same: 2}, {ran: 1.0, same: 1.0}, TILES)
    assert (one.picked, one.missing) == ("b", 2)
