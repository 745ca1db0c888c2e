"""Where elements of boxes and of matrices lie, against one element after the other."""

from __future__ import annotations

import numpy as np
import pytest

from memsim import ArrayArg, TensorMap
from memsim.errors import MemsimError
from memsim.state.tensors import SWIZZLES, Descriptor, Tensor, descriptor_of, swizzle_address, tensor_of

TENSOR = Tensor(0x1000, (10, 5, 3), (2, 32, 160), (8, 2, 2), 2, 0)


@pytest.mark.parametrize("corner", [(0, 0, 0), (4, 4, 2), (-3, -1, 1), (-9, 0, 0), (10, 0, 0), (12, 5, 3)])
def test_rows_of_a_box(corner: tuple[int, ...]) -> None:
    start, first, end = TENSOR.rows(corner)
    row = 0
    for z in range(2):
        for y in range(2):
            at = corner[1] + y, corner[2] + z
            assert start[row] == 0x1000 + 2 * corner[0] + 32 * at[0] + 160 * at[1]
            is_there = 0 <= at[0] < 5 and 0 <= at[1] < 3
            wanted = [x for x in range(8) if is_there and 0 <= corner[0] + x < 10]
            assert list(range(first[row] // 2, end[row] // 2)) == wanted
            row += 1
    assert row == len(start) == len(end)


@pytest.mark.parametrize("step", [2, 8])
def test_elements_that_are_not_side_by_side_have_no_map(step: int) -> None:
    apart = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 4), (64, step))
    with pytest.raises(MemsimError, match="contiguous elements"):
        tensor_of(TensorMap(apart, (4, 4)), 0)
    beside = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (4, 4), (64, 4))
    assert tensor_of(TensorMap(beside, (4, 4)), 0).steps == (4, 64)


def test_sizes() -> None:
    assert (TENSOR.pitch, TENSOR.bytes) == (16, 64)
    assert Tensor(0, (8,), (2,), (8,), 2, 128).pitch == 128


def test_swizzles() -> None:
    address = np.arange(0, 4096, 16)
    assert SWIZZLES.keys() == {0, 32, 64, 128}
    for swizzle, bits in {0: 0, 32: 1, 64: 2, 128: 3}.items():
        wanted = [at ^ (at // 128 % 2**bits * 16) for at in address.tolist()]
        assert swizzle_address(address, swizzle).tolist() == wanted


def test_a_tensor_map() -> None:
    made = tensor_of(TensorMap(ArrayArg((6, 64), "float16"), (4, 32), swizzle=64), 0x40)
    assert made == Tensor(0x40, (64, 6), (2, 128), (32, 4), 2, 64, "float16")
    five = tensor_of(TensorMap(ArrayArg((2, 3, 4, 5, 8), "float16"), (1, 2, 1, 2, 8)), 0)
    assert (five.extents, five.steps, five.box) == ((8, 5, 4, 3, 2), (2, 16, 80, 320, 960), (8, 2, 1, 2, 1))


@pytest.mark.parametrize(
    ("shape", "box", "address", "why"),
    [
        ((6, 64), (4, 32), 8, "multiples of 16 bytes"),
        ((6, 63), (4, 32), 0, "multiples of 16 bytes"),
        ((6, 64), (4, 31), 0, "is not a multiple of 16 bytes"),
        ((6, 64), (32,), 0, "cannot have the box"),
        ((1,) * 5 + (64,), (1,) * 5 + (32,), 0, "cannot have the box"),
    ],
)
def test_what_no_tensor_map_can_be(
    shape: tuple[int, ...], box: tuple[int, ...], address: int, why: str
) -> None:
    with pytest.raises(MemsimError, match=why):
        tensor_of(TensorMap(ArrayArg(shape, "float16"), box), address)


def test_fields_of_a_descriptor() -> None:
    word = 0x1234 | 0x0567 << 16 | 0x089A << 32 | 5 << 49 | 2 << 62
    assert descriptor_of(word) == Descriptor(0x12340, 0x5670, 0x89A0, 64, 5)
    assert [descriptor_of(mode << 62).span for mode in range(4)] == [16, 128, 64, 32]


@pytest.mark.parametrize("base", [0, 3])
@pytest.mark.parametrize("span", [16, 32, 64, 128])
@pytest.mark.parametrize("side_by_side", [False, True])
def test_places_of_elements(side_by_side: bool, span: int, base: int) -> None:
    of = Descriptor(0x400, 0x1000, 0x2400, span, base)
    rows, k, size = np.array([0, 1, 7, 8, 33, 127]), 24, 2
    found = of.places(rows, k, size, side_by_side)
    for at, row in enumerate(rows.tolist()):
        for depth in range(k):
            long, short = (row, depth) if side_by_side else (depth, row)  # `long`: along contiguous bytes
            along, across = divmod(long * size, span), divmod(short, 8)
            steps = (of.leading, of.stride)
            if side_by_side and span == 16:
                steps = steps[::-1]
            place = of.start + along[1] + along[0] * steps[0] + across[1] * span + across[0] * steps[1]
            if span > 16:
                moved = place - 128 * base
                place = (moved ^ (moved >> 7 & span // 16 - 1) << 4) + 128 * base
            assert found[at, depth] == place
