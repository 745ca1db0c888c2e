"""Each lane gets what a thread alone gets, in whatever way registers hold the lanes' values."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.isa.op import BARRIER, PREDICATE, SLOTS, UNIFORM_PREDICATE, Effect, Unsupported, slots_of
from memsim.isa.readers import Binder
from memsim.sass.decode import meaning_of_text
from memsim.state.parts import Part
from memsim.state.poison import Poisoned
from memsim.state.predicates import to_bools
from memsim.state.registers import ints, to_array
from tests.isa.harness import DOUBLES, HALVES, SINGLES, WORDS, held, one_for_all, pair_of, words
from tests.isa.test_slots import MORE

SAMPLES = (Path(__file__).parent / "samples.txt").read_text().splitlines()
ROWS, COLUMNS = 2, 8
LANES = ROWS * COLUMNS
#: How registers hold one value for each lane: by block, by thread, and by both.
SHAPES = {"of a thread": (1, LANES), "of a block": (LANES, 1), "of both": (ROWS, COLUMNS)}
EDGES = [*WORDS, *SINGLES, *(word >> 32 for word in DOUBLES), *pair_of(HALVES, HALVES[::-1])]


def is_truth(slot: int) -> bool:
    return PREDICATE <= slot < BARRIER


def values_of(slots: list[int]) -> dict[int, list[Any]]:
    """For each register a value for each lane."""
    chance = random.Random(len(slots))
    return {
        slot: [chance.random() < 0.5 for _ in range(LANES)] if is_truth(slot) else words(LANES, slot, EDGES)
        for slot in slots
    }


def results(made: Any, registers: dict[int, Any]) -> list[Any]:
    """The results' lanes as truths or unsigned words."""
    slots: list[Any] = [None] * (SLOTS + 2)
    for slot, value in registers.items():
        slots[slot] = value
    with np.errstate(all="ignore"):  # as a launch is executed
        found = made(slots)
    return [
        to_bools(one) if isinstance(one, (bool, np.bool_, Part)) else to_array(ints(one)) & 0xFFFFFFFF
        for one in (found if isinstance(found, (tuple, list)) else (found,))
    ]


@pytest.mark.parametrize("text", [*SAMPLES, *MORE], ids=lambda text: text.split()[0])
def test_each_lane_gets_what_a_thread_alone_gets(text: str) -> None:
    meaning = meaning_of_text(text.rpartition("@!P3 ")[2])
    if meaning.definition.build is None or meaning.effect is not Effect.ALU:
        return
    try:
        made = meaning.bind(Binder({bank: bytes(range(256)) * 16 for bank in range(5)}))
    except (Unsupported, Poisoned):
        return
    read = slots_of(meaning.reads)
    if UNIFORM_PREDICATE in read or PREDICATE in read:
        read = sorted({*read, *range(PREDICATE, BARRIER)})
    values = values_of(read)
    alone = [
        [
            one.reshape(()).item()
            for one in results(made, {s: one_for_all(v[lane]) for s, v in values.items()})
        ]
        for lane in range(LANES)
    ]
    for how, shape in SHAPES.items():
        found = results(made, {slot: held(value, shape) for slot, value in values.items()})
        lanes = [np.broadcast_to(one, shape).reshape(-1).tolist() for one in found]
        assert [list(one) for one in zip(*lanes)] == alone, how
