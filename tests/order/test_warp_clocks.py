"""What warps know of agents by their numbers, of which there are not more than a mark has room for."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.order.warp_clocks import MOST_AGENTS, OTHERS, WarpClocks
from memsim.order.word_marks import AGE, MarkGroups

ROW = np.zeros(1, np.int64)


def _known_of_the_last(agents: int) -> tuple[bool, bool]:
    """Whether a warp knows of the last of so many agents if it waited for the last but one, or for it."""
    found = []
    for waited in (agents - 2, agents - 1):
        clocks = WarpClocks(1, 1)
        numbers = [clocks.agent(key) for key in range(agents)]
        mark = np.array([1 << AGE | numbers[-1]])
        clocks.hear(ROW, clocks.holder("phase"), numbers[waited])
        clocks.learn(ROW, ROW, clocks.holder("phase"))
        found.append(bool(MarkGroups().are_known(clocks, mark, ROW, ROW)[0]))
    return found[0], found[1]


@pytest.mark.parametrize("more", [0, 1, 5])
def test_agents_that_share_a_number_are_never_known(more: int) -> None:
    assert _known_of_the_last(MOST_AGENTS - OTHERS + more) == (False, more == 0)
