"""Boxes of tensors moved between shared and global memory, and lanes that meet at an mbarrier."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.access import Stretches
from memsim.errors import MemsimError
from memsim.isa.bulk_copy import (
    Issue,
    copies_cut_at_lines,
    cut_at_lines,
    dimensions,
    multicast,
    targets,
    wide,
)
from memsim.isa.mbarrier import MbarrierLanes
from memsim.isa.op import Form, Unsupported
from memsim.isa.tensor_copy import _of_tensors, box_places, load_box, report_boxes, store_box
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


# --- which stretches of memory the copies of a warp count ------------------------------------

Pieces = list[tuple[int, int, int]]


def pieces_of(start: int, length: int, place: int, copy: int = 0) -> Pieces:
    """(start, length, copy) of a copy byte by byte: a piece ends where a line of `place` does."""
    found: Pieces = []
    for byte in range(length):
        if not byte or (place + byte) % 128 == 0:
            found.append((start + byte, 0, copy))
        first, count, _ = found[-1]
        found[-1] = first, count + 1, copy
    return found


def columns(rows: list[tuple[int, ...]]) -> list[np.ndarray]:
    return [np.array(column) for column in zip(*rows)]


COPIES = [(64, 16, 0), (0, 128, 128), (32, 128, 144), (1000, 400, 112), (7, 128, 255), (0, 256, 1)]


def test_copies_end_at_lines_of_shared_memory() -> None:
    found = list(zip(*(column.tolist() for column in cut_at_lines(*columns(COPIES)))))
    assert found == [piece for copy, one in enumerate(COPIES) for piece in pieces_of(*one, copy)]


def test_copies_inside_shared_memory_end_at_lines_of_both_sides() -> None:
    source, length, to = columns(COPIES)
    found = list(zip(*(column.tolist() for column in copies_cut_at_lines(source, to, length))))
    wanted: Pieces = []
    for copy, (start, count, place) in enumerate(COPIES):
        for begin, part, _ in pieces_of(start, count, place):  # by lines of the destination
            wanted += pieces_of(place + begin - start, part, begin, copy)  # and of the source
    assert found == wanted


class Told:
    """A machine that keeps what it is told; block b of a cluster of four is its b-th."""

    mask = True

    def __init__(self) -> None:
        self.stretched: list[tuple[int, int, int, int]] = []
        self.lost: list[str] = []

    def stretches(self, op: Any, access: str, space: str, made: Stretches) -> None:
        columns = made.start, made.length, made.rows, made.warps
        self.stretched += zip(*(column.tolist() for column in columns))

    def lose(self, op: Any, access: str, space: str, width: int, poison: Any, active: Any) -> None:
        self.lost.append(f"{access} {space} {width}: {poison.reason}")

    def in_cluster(self, block: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.where(place >> 24, place >> 24, block), place & 0xFFFFFF


ISSUE = Issue(np.array([0, 1, 1]), np.array([0, 2, 3]), [])


def test_a_multicast_counts_once_for_each_block_and_also_by_lines_of_global_memory() -> None:
    machine: Any = Told()
    ranks = np.array([0b1, 0b101, 0b1111])
    multicast(machine, None, ISSUE, tuple(columns([(100, 60, 0), (256, 128, 1), (0, 16, 2)])), ranks)  # type: ignore[arg-type]
    assert machine.stretched == [
        (100, 28, 0, 0),
        (128, 32, 0, 0),
        *[(256, 128, 1, 2)] * 2,
        *[(0, 16, 1, 3)] * 4,
    ]


def test_a_multicast_reaches_the_blocks_of_its_mask() -> None:
    machine: Any = Told()
    place = np.array([16, 32, 3 << 24 | 48])
    every = [[column.tolist() for column in one] for one in targets(machine, ISSUE, place, None)]
    assert every == [[[0, 1, 2], [0, 1, 3], [16, 32, 48]]]
    found = targets(machine, ISSUE, place, np.array([0b10, 0b1010, 0b1000]))
    assert [[column.tolist() for column in one] for one in found] == [
        [[0, 1], [1, 1], [16, 32]],
        [[1, 2], [3, 3], [32, 48]],
    ]


def boxes_reported(one: Tensor, corner: tuple[int, ...], access: str, ranks: int | None = None) -> Any:
    machine: Any = Told()
    issue = Issue(np.array([1]), np.array([2]), [])
    given = None if ranks is None else np.array([ranks])
    report_boxes(machine, None, access, issue, [one], np.array([corner]), np.array([256]), given)  # type: ignore[arg-type]
    return machine


#: Rows of 32 four-byte elements, 128 bytes apart; boxes of 16 by 2.
WIDE = Tensor(1024, (32, 8), (4, 128), (16, 2), 4, 0)


def test_a_box_inside_its_tensor_is_read_row_by_row() -> None:
    rows = [(1024 + 2 * 128 + 32, 64, 1, 2), (1024 + 3 * 128 + 32, 64, 1, 2)]
    assert boxes_reported(WIDE, (8, 2), "bulk_load").stretched == rows
    assert boxes_reported(WIDE, (8, 2), "bulk_store").stretched == rows


def test_a_load_also_fills_what_lies_outside() -> None:
    beyond = boxes_reported(WIDE, (24, 7), "bulk_load").stretched
    # 32 bytes of the tensor; the rest of that row and the row below it are filled, 64-byte rows from 256 on.
    assert beyond == [(1024 + 7 * 128 + 96, 32, 1, 2), (1024, 32, 1, 2), (1024, 64, 1, 2)]
    before = boxes_reported(WIDE, (-8, 0), "bulk_load").stretched
    assert before == [(1024, 32, 1, 2), (1152, 32, 1, 2), (1024, 32, 1, 2), (1024, 32, 1, 2)]
    assert boxes_reported(WIDE, (24, 7), "bulk_store").stretched == [(1024 + 7 * 128 + 96, 32, 1, 2)]


@pytest.mark.parametrize(
    ("corner", "units"),
    [
        ((8, 2), [(256, 128)]),
        ((28, 7), [(256, 16)]),
        ((-8, 0), [(288, 16), (304, 16), (352, 16), (368, 16)]),
        ((24, 7), [(256, 16), (272, 16)]),
    ],
)
def test_a_store_reads_of_its_box_what_is_in_the_tensor(
    corner: tuple[int, int], units: list[tuple[int, int]]
) -> None:
    """Rows of 64 bytes from 256 on, in units of 16."""
    box = Stretches(*(np.array([value]) for value in (1, 256, 128, 2)))
    found = _of_tensors(box, [WIDE], np.array([corner]))
    assert list(zip(found.start.tolist(), found.length.tolist())) == units
    assert {*found.rows.tolist()} == {1} and {*found.warps.tolist()} == {2}


def test_boxes_that_an_h200_rejects() -> None:
    for access, corner in (("bulk_load", (1, 0)), ("bulk_store", (-4, 0)), ("bulk_store", (0, -1))):
        with pytest.raises(MemsimError, match="an H200 rejects boxes"):
            boxes_reported(WIDE, corner, access)


def test_a_multicast_of_a_tiny_tensor_was_not_measured() -> None:
    machine = boxes_reported(TENSOR, (0, 0), "bulk_load", 0b11)
    assert machine.stretched == [] and len(machine.lost) == 1
    assert machine.lost[0].startswith("bulk_multicast global 16: a multicast of a tensor of less than 256")
    assert boxes_reported(WIDE, (0, 0), "bulk_load", 0b11).stretched == [
        *[(1024, 64, 1, 2)] * 2,
        *[(1152, 64, 1, 2)] * 2,
    ]
    for rows, lost in ((2, 1), (3, 0)):  # of 252 bytes, and of 380
        assert len(boxes_reported(replace(WIDE, extents=(32, rows)), (0, 0), "bulk_load", 1).lost) == lost


def test_a_multicast_fills_at_least_three_sectors_with_what_lies_outside() -> None:
    beyond = boxes_reported(WIDE, (28, 7), "bulk_load", 1).stretched  # 16 bytes of the tensor
    assert beyond == [(1024 + 7 * 128 + 112, 16, 1, 2), (1024 + 16, 80, 1, 2), (1024, 96, 1, 2)]
    assert boxes_reported(WIDE, (-16, 0), "bulk_load", 1).stretched == [(1024, 96, 1, 2)] * 2


def test_words_of_an_address() -> None:
    assert wide(np.array([1, 2**32 - 1]), np.array([0, 1])).tolist() == [1, 2**33 - 1]


def test_a_copy_says_the_dimensions_of_its_tensor() -> None:
    assert [dimensions(Form("UTMALDG", (f"{n}D",), ())) for n in range(1, 6)] == [1, 2, 3, 4, 5]
    assert dimensions(Form("UTMALDG", ("MULTICAST", "3D"), ())) == 3
    for names in ((), ("6D",), ("1D", "2D"), ("1D", "ADD")):
        with pytest.raises(Unsupported):
            dimensions(Form("UTMALDG", names, ()))
    assert dimensions(Form("UTMAREDG", ("1D", "ADD"), ()), frozenset({"ADD"})) == 1
