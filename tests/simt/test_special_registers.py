"""Numbers of threads are the same whether a block is a row or each of its warps."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.launch import Launch
from memsim.simt.active_lanes import Lanes, special_register
from memsim.state.registers import Sum, to_array

BLOCKS = np.arange(3)


def values(name: str, block: tuple[int, int, int], apart: bool) -> np.ndarray:
    lanes = Lanes(Launch((3, 1, 1), block), (1, 1, 1))
    lanes.start(BLOCKS, apart)
    found = to_array(special_register(name, lanes, 0))
    return np.broadcast_to(found, lanes.shape).reshape(len(BLOCKS), -1)


@pytest.mark.parametrize("name", ["SR_TID.X", "SR_TID.Y", "SR_TID.Z", "SR_TID", "SR_LANEID", "SR_LTMASK"])
@pytest.mark.parametrize("block", [(256, 1, 1), (8, 8, 4), (48, 5, 1), (20, 1, 1), (32, 4, 2), (1, 100, 1)])
def test_each_thread_has_its_number(name: str, block: tuple[int, int, int]) -> None:
    x, y, _ = block
    number = np.arange(-(-int(np.prod(block)) // 32) * 32)
    tid = number % x, number // x % y, number // (x * y) % block[2]
    expected = {
        "SR_TID.X": tid[0],
        "SR_TID.Y": tid[1],
        "SR_TID.Z": tid[2],
        "SR_TID": tid[0] | tid[1] << 16 | tid[2] << 26,
        "SR_LANEID": number % 32,
        "SR_LTMASK": (1 << number % 32) - 1,
    }[name]
    for apart in (False, True):
        assert (values(name, block, apart) == np.tile(expected, (len(BLOCKS), 1))).all()


def test_warps_that_are_rows_have_a_part_for_the_warp_and_one_for_the_lane() -> None:
    lanes = Lanes(Launch((3, 1, 1), (256, 1, 1)), (1, 1, 1))
    lanes.start(BLOCKS, True)
    found = special_register("SR_TID.X", lanes, 0)
    assert isinstance(found, Sum) and found.f is None
    assert found.u is not None and found.u.shape == (24, 1)
    assert found.v is not None and found.v.shape == (1, 32)
