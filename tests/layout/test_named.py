"""Layouts in other words than CuTe's."""

from __future__ import annotations

import re

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.layout import Layout

# What `to_linear_layout` of Triton 3.9 says: the element at offset 1, 2, 4, ... has these coordinates.
LINEAR = [
    (
        "64x64 SwizzledSharedLayout(vec=8, per_phase=1, max_phase=8, order=[1, 0])",
        "01 02 04 08 0g 0w 18 2g 4w 80 g0 w0",
    ),
    (
        "32x32 #ttg.swizzled_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
        "01 02 04 08 0g 10 24 48 80 g0",
    ),
    (
        "32x64 #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 16, order = [0, 1]}>",
        "10 20 40 80 g0 11 22 44 88 0g 0w",
    ),
    (
        "64x32 #triton_gpu.shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
        "01 02 04 08 0g 18 2g 40 80 g0 w0",
    ),
    (
        "64x64 NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)",
        "01 02 04 08 0g 0w 18 2g 4w 80 g0 w0",
    ),
    (
        "64x128 #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
        "01 02 04 08 0g 0w 18 2g 4w 80 g0 w0 0W",
    ),
    (
        "64x64 NVMMASharedLayout(swizzle_byte_width=64, element_bitwidth=16)",
        "01 02 04 08 0g 10 28 4g 80 g0 w0 0w",
    ),
    (
        "64x16 NVMMASharedLayout(swizzle_byte_width=32, element_bitwidth=32)",
        "01 02 04 10 20 44 80 g0 w0 08",
    ),
    (
        "64x64 NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, transposed=True)",
        "10 20 40 80 g0 w0 81 g2 w4 08 0g 0w",
    ),
    (
        "64x64 NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32)",
        "01 02 04 08 0g 14 28 4g 80 g0 w0 0w",
    ),
    (
        "64x64 NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=16)",
        "01 02 04 08 0g 0w 10 20 40 80 g0 w0",
    ),
]
VALUES = {**{str(n): n for n in range(9)}, "g": 16, "w": 32, "W": 64}


@pytest.mark.parametrize(("text", "coordinates"), LINEAR)
def test_what_triton_says_is_what_triton_does(text: str, coordinates: str) -> None:
    layout = Layout.parse(text)
    for bit, at in enumerate(coordinates.split()):
        assert layout(*(VALUES[part] for part in at)) == 1 << bit, at
    every = layout(*np.indices(layout.extents).reshape(len(layout.extents), -1))
    assert sorted(every) == list(range(layout.size))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("32x32", Layout.row_major(32, 32)),
        ("64", Layout.row_major(64)),
        ("2x32x32 pad 4", Layout.padded(2, 32, 32, pad=4)),
        ("32x32 pad", Layout.padded(32, 32)),
        ("32x32 xor", Layout.xor(32, 32)),
        ("64x64 xor 8", Layout.xor(64, 64, 8)),
        (
            "32x32 #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>",
            Layout.row_major(32, 32),
        ),
        ("32x32 #ttg.padded_shared<[32:+1] {order = [1, 0], shape = [32, 32]}>", Layout.padded(32, 32)),
        (
            "32x32 PaddedSharedLayout(interval_padding_pairs=[[32, 4]], shape=[32, 32])",
            Layout.padded(32, 32, pad=4),
        ),
    ],
)
def test_they_say_the_same(text: str, same: Layout) -> None:
    assert Layout.parse(text) == same


def test_a_padding_within_and_across_rows() -> None:
    layout = Layout.parse("8x32 #ttg.padded_shared<[16:+2, 64:+4] {order = [1, 0]}>")
    row, column = np.indices((8, 32))
    at = row * 32 + column
    assert (layout(row, column) == at + at // 16 * 2 + at // 64 * 4).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("32x32 pads", "'32x32 pads' is not a layout"),
        ("32x32 xor 32", "is not a layout"),
        ("32x0", "an extent must be positive"),
        ("32x32 #ttg.swizzled_shared<{vec = 8, perPhase = 1}>", "the layout says no number maxphase"),
        ("30x30 xor 2", "a row of a swizzled layout is a power of two, not 30"),
        ("32x32 #ttg.swizzled_shared<{vec = 3, perPhase = 1, maxPhase = 2}>", "vec is a power of two, not 3"),
        (
            "32x32 #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 2, order = [1, 1]}>",
            "does not name the 2 axes",
        ),
        ("32x32 #ttg.padded_shared<[24:+1] {order = [1, 0]}>", "an interval of 24 elements does not divide"),
        (
            "32x24 NVMMASharedLayout(swizzle_byte_width=32, element_bitwidth=16)",
            "are not divided by a swizzle",
        ),
        (
            "32x32 NVMMASharedLayout(swizzle_byte_width=48, element_bitwidth=16)",
            "swizzles of 0, 32, 64 or 128 bytes",
        ),
        ("32x32 #ttg.shared_linear<{offset = []}>", "is not a layout"),
    ],
)
def test_what_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(MemsimError, match=re.escape(message)):
        Layout.parse(text)
