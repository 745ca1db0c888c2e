"""Boxes of tensors moved between shared and global memory, and lanes that meet at an mbarrier."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.isa.mbarrier import MbarrierLanes
from memsim.isa.tensor_copy import box_places, load_box, store_box
from memsim.state.parts import Part
from memsim.state.registers import Sum
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor, swizzle_address

#: Rows of 10 two-byte elements, 32 bytes apart; boxes of 8 by 3.
TENSOR = Tensor(64, (10, 4), (2, 32), (8, 3), 2, 0)


def spaces() -> tuple[SpaceBytes, SpaceBytes]:
    """Two blocks' shared memory, filled with 255; and global memory that counts its bytes."""
    shared = SpaceBytes(np.full((2, 1024), 255, np.uint8), 0, (2, 32), "block")
    return shared, SpaceBytes(np.arange(256, dtype=np.uint8)[None].copy(), 0, (2, 32), "one")


@pytest.mark.parametrize("corner", [(0, 0), (2, 1), (-3, -1), (6, 2), (20, 0)])
def test_a_box_is_loaded_and_what_is_outside_is_zero(corner: tuple[int, int]) -> None:
    shared, memory = spaces()
    load_box(shared, memory, 1, 128, TENSOR, corner)
    for y in range(3):
        for byte in range(16):
            at = corner[0] + byte // 2, corner[1] + y
            is_there = 0 <= at[0] < 10 and 0 <= at[1] < 4
            wanted = 64 + 32 * at[1] + 2 * at[0] + byte % 2 if is_there else 0
            assert shared.data[1, 128 + 16 * y + byte] == wanted
    assert (shared.data[0] == 255).all() and (shared.data[1, 176:] == 255).all()


def test_a_box_is_stored_and_what_is_outside_is_dropped() -> None:
    shared, memory = spaces()
    before = memory.data.copy()
    shared.data[1, 128:176] = np.arange(48)
    store_box(memory, shared, 1, 128, TENSOR, (0, 2))
    assert memory.data[0, 128:144].tolist() == list(range(16))
    assert memory.data[0, 160:176].tolist() == list(range(16, 32))
    changed = np.flatnonzero(memory.data[0] != before[0])
    assert changed.min() >= 128 and changed.max() < 176  # the third row is below the tensor


def test_places_of_a_swizzled_box() -> None:
    one = Tensor(0, (64, 8), (2, 128), (64, 8), 2, 128)
    there, here, inside = box_places(one, 0, (0, 0))
    assert inside.all() and here.tolist() == list(range(1024))
    assert there.tolist() == swizzle_address(np.arange(1024), 128).tolist()


def test_lanes_of_a_warp_at_one_object() -> None:
    address = Sum(0, v=Part(np.arange(64)[None, :] % 2 * 8))
    mask = np.zeros((2, 64), np.bool_)
    mask[0, [0, 1, 2, 33]] = mask[1, [5, 7]] = True

    def of_shared(value: Any, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.nonzero(held)[0], np.broadcast_to(value.array, held.shape)[held]

    machine: Any = SimpleNamespace(full=lambda active: active.array, of_shared=of_shared)
    lanes = MbarrierLanes(machine, address, Part(mask))
    assert lanes.lane.tolist() == [0, 1, 2, 1, 5, 7]
    assert lanes.together().tolist() == [0b101, 0b10, 0b101, 0b10, 0b10100000, 0b10100000]
    assert lanes.column(7).tolist() == [7] * 6
    spread = lanes.spread(np.arange(1, 7))
    assert spread[mask].tolist() == [1, 2, 3, 4, 5, 6] and spread.sum() == 21
