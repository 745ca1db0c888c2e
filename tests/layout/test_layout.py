"""Layouts against `tensor-layouts`, an independent implementation of CuTe's, and by what they promise."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import tensor_layouts as cute
from hypothesis import assume, given
from hypothesis import strategies as st

from memsim.errors import MemsimError
from memsim.layout import Layout, Swizzle
from memsim.layout.notation import Nested, leaves, like

SHAPES = st.recursive(
    st.integers(1, 6), lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=5
)
SWIZZLES = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-5, 5)).filter(
    lambda each: abs(each[2]) >= each[0]
)


@st.composite
def layouts(draw: st.DrawFn, swizzled: bool = True) -> Layout:
    shape = draw(SHAPES)
    strides = draw(
        st.lists(st.integers(0, 70), min_size=len([*leaves(shape)]), max_size=len([*leaves(shape)]))
    )
    swizzle = Swizzle(*draw(SWIZZLES)) if swizzled and draw(st.booleans()) else None
    offset = draw(st.integers(0, 40)) if swizzle else 0
    return Layout(shape, like(shape, iter(strides)), swizzle, offset)


def theirs(layout: Layout) -> list[int]:
    """All offsets by the other implementation, the first mode fastest."""
    plain = cute.Layout(layout.shape, layout.stride)
    inner = [int(plain(i)) + layout.offset for i in range(layout.size)]
    if layout.swizzle is None:
        return inner
    swizzle = cute.Swizzle(layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift)
    return [int(swizzle(offset)) for offset in inner]


@given(layouts())
def test_every_offset_is_the_other_implementations(layout: Layout) -> None:
    assert layout.table().tolist() == theirs(layout)


@given(layouts())
def test_the_notation_is_read_as_it_is_printed(layout: Layout) -> None:
    assert Layout.parse(str(layout)) == layout


@given(layouts())
def test_the_footprint_is_the_largest_offset_and_one(layout: Layout) -> None:
    assert layout.footprint == max(theirs(layout)) + 1


@given(layouts(), st.randoms(use_true_random=False))
def test_coordinates_of_modes_and_their_inverse(layout: Layout, random: object) -> None:
    grid = np.indices(layout.extents)
    offsets = layout(*grid)
    by_number = layout.table().reshape(layout.extents, order="F")
    assert np.array_equal(np.broadcast_to(offsets, layout.extents), by_number)
    for offset in {int(offsets.flat[0]) if np.ndim(offsets) else int(offsets)}:
        found = layout.coordinate(offset)
        assert found is not None
        assert int(layout(*found)) == offset
    assert layout.coordinate(layout.footprint) is None


@given(layouts(), layouts(swizzled=False))
def test_composition_is_one_after_the_other(outer: Layout, inner: Layout) -> None:
    assume(int(inner.table().max()) < outer.size)
    try:
        made = outer.compose(inner)
    except MemsimError:
        return  # strides that do not divide: the other one refuses more or fewer of them
    assert made.table().tolist() == outer.table()[inner.table()].tolist()
    if isinstance(inner.shape, tuple):
        assert made.extents == inner.extents


@pytest.mark.parametrize(
    ("outer", "inner", "composed"),
    [
        ("(4,2):(1,16)", "8:1", "(4,2):(1,16)"),
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),  # 02_layout_algebra.md
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("Sw<2,0,3> o 64:1", "(8,8):(8,1)", "Sw<2,0,3> o (8,8):(8,1)"),
    ],
)
def test_compositions_of_the_book(outer: str, inner: str, composed: str) -> None:
    assert str(Layout.parse(outer).compose(Layout.parse(inner))) == composed


def test_what_cannot_be_composed() -> None:
    with pytest.raises(MemsimError, match="does not divide"):
        Layout((4, 6), (1, 8)).compose(Layout(3, 3))
    with pytest.raises(MemsimError, match="is not a shape with strides"):
        Layout((1, 2, 2), (0, 0, 1)).compose(Layout((1, 2, 2), (0, 1, 1)))
    with pytest.raises(MemsimError, match="cannot be the inner layout"):
        Layout(64).compose(Layout.xor(8, 8))


@pytest.mark.parametrize(
    ("layout", "notation"),
    [
        (Layout.row_major(8, 64), "(8,64):(64,1)"),
        (Layout.row_major(2, 3, 4), "(2,3,4):(12,4,1)"),
        (Layout.column_major(8, 64), "(8,64):(1,8)"),
        (Layout((2, (3, 4))), "(2,(3,4)):(1,(2,6))"),
        (Layout.padded(32, 32), "(32,32):(33,1)"),
        (Layout.padded(4, 32, 32, pad=8), "(4,32,32):(1280,40,1)"),
        (Layout.xor(32, 32), "Sw<5,0,5> o (32,32):(32,1)"),
        (Layout.xor(32, 64, chunk=8, rows_per_step=2), "Sw<3,3,4> o (32,64):(64,1)"),
        (Layout.z_order(4, 8), "((2,2),(2,2,2)):((2,8),(1,4,16))"),
        (Layout.z_order(1, 4), "(1,(2,2)):(0,(1,2))"),
        (Layout.row_major(8, 64).swizzled(3, 3, 3), "Sw<3,3,3> o (8,64):(64,1)"),
        (Layout.row_major(8, 64).tiled(16, 128), "((8,2),(64,2)):((64,512),(1,1024))"),
        (Layout(32, 2), "32:2"),
    ],
)
def test_each_family(layout: Layout, notation: str) -> None:
    assert str(layout) == notation
    assert Layout.parse(notation) == layout


def test_xor_is_what_its_formula_says() -> None:
    row, column = np.indices((16, 64))
    layout = Layout.xor(16, 64, chunk=4, rows_per_step=2)
    assert np.array_equal(layout(row, column), row * 64 + (column ^ (row // 2 * 4) % 64))
    assert layout.is_injective


def test_z_order_takes_the_bits_in_turns() -> None:
    layout = Layout.z_order(8, 4)
    for row in range(8):
        for column in range(4):
            bits = [column & 1, row & 1, column >> 1 & 1, row >> 1 & 1, row >> 2 & 1]
            assert int(layout(row, column)) == sum(bit << place for place, bit in enumerate(bits))


def test_a_tile_is_repeated() -> None:
    atom = Layout.parse("Sw<3,3,3> o (8,64):(64,1)")
    whole = atom.tiled(16, 128)
    row, column = np.indices((16, 128))
    tile = row // 8 + 2 * (column // 64)
    assert np.array_equal(whole(row, column), tile * 512 + atom(row % 8, column % 64))
    with pytest.raises(MemsimError, match="is not a multiple of the tile"):
        atom.tiled(12, 128)


def test_a_swizzle_of_bytes_is_read_for_its_elements() -> None:
    printed = "Sw<3,4,3>_smem_ptr[16b](unset) o (_8,_64):(_64,_1)"
    assert str(Layout.parse(printed)) == "Sw<3,3,3> o (8,64):(64,1)"
    assert Layout.parse("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)") == Layout.parse(printed)
    assert str(Layout.parse("S<3,4,3> o 0 o (8,64):(64,1)")) == "Sw<3,4,3> o (8,64):(64,1)"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("(8,64)", 7, "the : after the shape is missing"),
        ("(8,64):(64)", 1, "nested differently"),
        ("(8,,64):(64,1)", 4, "an integer or"),
        ("(8,64:(64,1)", 6, "expected , or )"),
        ("(8,64):(64,1) o 4", 15, "unexpected text after"),
        ("Sw<3,4,3> (8,64):(64,1)", 11, "expected o between"),
        ("Sw<3,4,2> o 8:1", 1, "XOR bits with themselves"),
        ("Sw<3,1,3> o smem_ptr[32b](unset) o 8:1", 1, "split elements"),
        ("(8,0):(64,1)", 1, "must be positive"),
    ],
)
def test_a_bad_text_has_a_caret(text: str, column: int, message: str) -> None:
    with pytest.raises(MemsimError) as caught:
        Layout.parse(text)
    assert message in caught.value.message
    assert caught.value.column == column
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Layout((4, 0)), "positive"),
        (lambda: Layout((4, 8), (1,)), "do not match"),
        (lambda: Layout((4, 2.5)), "unlike"),  # type: ignore[arg-type]
        (lambda: Layout.z_order(3, 4), "powers of two"),
        (lambda: Layout.xor(8, 4, chunk=4), "fewer than two chunks"),
        (lambda: Layout.xor(8, 8).swizzled(1, 0, 1), "is already swizzled"),
        (lambda: Layout((4, 8))(1, 2, 3), "3 coordinates"),
        (lambda: Layout((4, 8))(((1, 2), 3)), "nested deeper"),
    ],
)
def test_what_is_no_layout(make: object, message: str) -> None:
    with pytest.raises(MemsimError, match=message):
        make()  # type: ignore[operator]


@given(SHAPES)
def test_the_default_is_cutes(shape: Nested) -> None:
    assert Layout(shape).table().tolist() == list(range(prod(leaves(shape))))


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("Sw<3,41,3> o (8,64):(64,1)", "Sw<3,42,3> o (8,64):(64,1)"),
        ("Sw<1,0,46> o (8,64):(64,1)", "Sw<99999999,0,99999999> o (8,64):(64,1)"),
        ("Sw<3,4,3> o (8,64):(64,1)", f"Sw<{'9' * 5000},4,3> o (8,64):(64,1)"),
        ("(32,32):(4294967296,1)", "(32,32):(4611686018427387904,1)"),
        ("(32,32):(4294967296,1)", f"(32,32):({'9' * 5000},1)"),
        ("(1000000,1000000):(1,0)", "(100000000,100000000):(1,0)"),
        ("(" * 20 + "8" + ")" * 20 + ":" + "(" * 20 + "1" + ")" * 20, "(" * 5000 + "8"),
        ("64x64 #ttg.padded_shared<[32:+4]>", "64x64 #ttg.padded_shared<[0:+4]>"),
        ("64x64 shared(vec=8, perPhase=1, maxPhase=8)", f"64x64 shared(vec=8, order=[{'9' * 5000}])"),
    ],
)
def test_a_layout_that_no_memory_holds_is_an_error(good: str, bad: str) -> None:
    assert Layout.parse(good).size
    with pytest.raises(MemsimError):
        Layout.parse(bad)
