"""Mistakes in index math: each with the line, the thread and the index, and the right thing beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import memsim
from memsim import GlobalArray, Layout, SharedArray
from memsim.sketch import Thread

TILE = SharedArray("tile", (32, 33))
WIDE = SharedArray("wide", (8, 64), "f16")


def refused(function: Callable[..., object], block: Any = (32, 32), **how: Any) -> memsim.MemsimError:
    with pytest.raises(memsim.MemsimError) as caught:
        memsim.analyze(function, block=block, **how)
    return caught.value


def line_after(function: Callable[..., object], lines: int) -> int:
    return function.__code__.co_firstlineno + lines


def test_an_index_outside_of_the_array() -> None:
    def kernel(t: Thread) -> None:
        TILE[t.x, t.y + 2].load()

    error = refused(kernel)
    assert error.line == line_after(kernel, 1)
    assert error.file is not None
    assert error.file.endswith("test_mistakes.py")
    assert error.source == "TILE[t.x, t.y + 2].load()"
    assert error.message == (
        "index 33 of axis 1 is outside of tile, whose shape is (32, 33): "
        "thread (0,31,0) of block (0,0,0) accesses tile[0][33]"
    )
    memsim.analyze(lambda t: TILE[t.x, t.y + 1].load(), block=(32, 32))


def test_the_block_is_named_too() -> None:
    array = GlobalArray("a", 100)
    error = refused(lambda t: array[t.blockIdx.x * 32 + t.x].load(), block=32, grid=(4, 2))
    assert "thread (4,0,0) of block (3,0,0) accesses a[100]" in error.message
    memsim.analyze(lambda t: array[t.blockIdx.x * 32 + t.x].load(mask=t.x < 4), block=32, grid=4)


def test_threads_that_take_no_part_may_be_outside() -> None:
    def kernel(t: Thread) -> None:
        TILE[t.x - 1, t.y].load(mask=t.x > 0)
        with t.when(t.x < 31):
            TILE[t.x + 1, t.y].load()

    memsim.analyze(kernel, block=(32, 32))


def test_an_access_that_is_not_aligned() -> None:
    error = refused(lambda t: WIDE[0, 2 * t.x].load(vector=4), block=8)
    assert (
        "misaligned access: thread (1,0,0) of block (0,0,0) accesses 8 bytes at wide[0][2]" in error.message
    )
    assert "byte 4 of shared memory" in error.message
    memsim.analyze(lambda t: WIDE[0, 2 * t.x].load(vector=2), block=8)


@pytest.mark.parametrize(
    ("layout", "good"),
    [
        (Layout.xor(8, 64, chunk=4), Layout.xor(8, 64, chunk=8)),  # a swizzle that tears 16 bytes apart
        (Layout.z_order(8, 64), Layout.row_major(8, 64)),
    ],
)
def test_elements_that_are_not_side_by_side(layout: Layout, good: Layout) -> None:
    def kernel(t: Thread, array: SharedArray) -> None:
        array[t.x // 8, t.x % 8 * 8].load(vector=8)

    error = refused(kernel, block=64, args=[SharedArray("h", layout, "f16")])
    assert "are not contiguous" in error.message
    assert "thread (" in error.message
    memsim.analyze(kernel, block=64, args=[SharedArray("h", good, "f16")])


def test_a_vector_may_lie_along_any_axis() -> None:
    columns = SharedArray("c", Layout.column_major(64, 8))
    (site,) = memsim.analyze(lambda t: columns[4 * (t.x % 16), t.x // 16].load(vector=4), block=32).sites
    assert (site.width, site.max_ways) == (16, 1)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda t: TILE[t.x].load(), "tile has 2 axes but 1 indices"),
        (lambda t: TILE[t.x / 2, 0].load(), "indexed by float64"),
        (lambda t: TILE[t.x < 3, 0].load(), "indexed by bool"),
        (lambda t: TILE[:, 0].load(), "indexed by slice"),
        (lambda t: TILE[[0, 1], 0].load(), "has shape (2,)"),
        (lambda t: TILE[t.y, t.x].load(vector=3), "3 elements of 4 bytes cannot be one access"),
        (lambda t: TILE[t.y, t.x].load(mask=t.x), "a mask must be bool"),
        (lambda t: TILE[t.y, t.x].atomic("sub"), "there is no atomic 'sub'"),
        (lambda t: TILE[t.y, t.x].ldmatrix(3), "1, 2 or 4 matrices"),
        (lambda t: GlobalArray("a", 64)[t.x].ldmatrix(1), "works on shared memory"),
        (lambda t: SharedArray("a", 64, "f64x")[t.x].load(), "there is no type 'f64x'"),
        (lambda t: GlobalArray("a", 64)[t.x].cp_async(TILE[t.y, t.x]), "copies from global to shared"),
        (lambda t: TILE[0, t.x].cp_async(GlobalArray("a", 64)[t.x], bypass=True), "copies 16 bytes, not 4"),
        (lambda t: TILE[0, t.x].cp_async(GlobalArray("a", 64, "f16")[t.x]), "copies bytes unchanged"),
        (lambda t: SharedArray("tile", 4)[t.x % 4].load() or TILE[0, 0].load(), "two arrays are called tile"),
        (lambda t: GlobalArray("tile", 64)[t.x].load() or TILE[0, 0].load(), "in shared memory"),
        (lambda t: SharedArray("a", 60_000)[t.x].load(), "a block has at most 232,448"),
        (lambda t: SharedArray("a", 1.5), "neither extents nor a layout"),
        (lambda t: SharedArray("a", 4, offset=-4), "not a number of bytes"),
        (lambda t: SharedArray("a", 4, align=0), "not a number of bytes"),
    ],
)
def test_each_mistake_has_its_line(access: Callable[[Thread], object], message: str) -> None:
    error = refused(access, block=(32, 2))
    assert message in error.message
    assert error.line == access.__code__.co_firstlineno


def test_a_condition_on_threads_is_no_if() -> None:
    def kernel(t: Thread) -> None:
        if t.x < 16:
            TILE[0, t.x].load()

    error = refused(kernel)
    assert (error.line, error.source) == (line_after(kernel, 1), "if t.x < 16:")
    assert "decides once" in error.message
    assert error.hint is not None
    assert "t.when" in error.hint


def test_a_loop_runs_as_often_for_all_threads() -> None:
    def kernel(t: Thread) -> None:
        for i in range(t.x):
            TILE[0, i].load()

    assert "a single number is needed here" in refused(kernel).message


def test_a_barrier_is_for_all_threads() -> None:
    def kernel(t: Thread, limit: int) -> None:
        with t.when(t.y < limit):
            t.sync()

    error = refused(kernel, args=[16])
    assert "only some threads" in error.message
    assert error.line == line_after(kernel, 2)
    memsim.analyze(kernel, block=(32, 30), args=[30])


def test_an_error_of_the_functions_own_is_shown_with_its_line() -> None:
    def kernel(t: Thread) -> None:
        t.threadIdx.w  # noqa: B018

    error = refused(kernel)
    assert "AttributeError" in error.message
    assert error.line == line_after(kernel, 1)
    assert isinstance(error.__cause__, AttributeError)


def test_how_it_is_called() -> None:
    def kernel(t: Thread, size: int) -> None:
        TILE[0, t.x % size].load()

    assert "missing a required argument: 'size'" in refused(kernel).message
    assert "too many positional arguments" in refused(kernel, args=[1, 2]).message
    memsim.analyze(kernel, block=32, args=[8])
    with pytest.raises(memsim.MemsimError, match="block must be one to three positive integers, not None"):
        memsim.analyze(kernel, args=[8])
    with pytest.raises(memsim.MemsimError, match="outside of a kernel"):
        TILE[0, 0].load()


@pytest.mark.parametrize("dtype", ["V0", "U0", "void", "(-1,)f4", "(", ""])
def test_a_type_without_bytes(dtype: str) -> None:
    assert SharedArray("t", 32, "V8").itemsize == 8
    with pytest.raises(memsim.MemsimError, match="there is no type"):
        SharedArray("t", 32, dtype)


@pytest.mark.parametrize("array", [SharedArray, GlobalArray])
def test_an_array_begins_with_its_first_element(array: type[SharedArray]) -> None:
    backwards = array("t", Layout(32, -1, offset=31))
    assert memsim.analyze(lambda t: backwards[t.x].load(), block=32).verdict
    with pytest.raises(memsim.MemsimError, match=r"t: \(32\):\(-1\) has elements before|t: 32:-1 has"):
        array("t", Layout(32, -1))
