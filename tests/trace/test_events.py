"""Blocks that ask for the same but for whole periods are counted as one."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.trace.events import block_classes

PERIOD = 128


@pytest.mark.parametrize("further", [0, 7 * PERIOD, 1 << 63, 1 << 80, -(1 << 90)])
def test_a_constant_of_more_bits_than_an_address_has_is_a_period_further(further: int) -> None:
    """Where a damaged kernel adds up what no address is, or a block's part brings it back."""
    blocks = Part(np.array([[0], [32], [PERIOD], [PERIOD + 32], [5 * PERIOD]], np.int64))
    chosen, weights = block_classes([(Sum(64 + further, u=blocks), True)], (PERIOD, PERIOD), 5)
    assert (chosen.tolist(), weights.tolist()) == ([0, 1], [3, 2])
