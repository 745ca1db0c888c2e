"""Integers of many threads: whatever the parts, the numbers are those of each thread by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.registers import (
    SAFE,
    Sum,
    as_unsigned,
    bounds,
    choose,
    fit,
    floats,
    from_array,
    from_floats,
    ints,
    low_zeros,
    plus,
    times,
    to_array,
    trailing_zeros,
    wrap_int,
)
from memsim.state.sums import (
    and_ints,
    disjoint,
    high_bits,
    invert_bits,
    low_bits,
    minus,
    non_negative,
    or_ints,
    product,
    shift_left,
    shift_right,
    xor_ints,
)

BLOCKS, THREADS = 3, 32
WHY = Poison("why", None)
U = np.arange(BLOCKS)[:, None]
V = np.arange(THREADS)[None, :]
F = np.random.default_rng(1).integers(-1000, 1000, (BLOCKS, THREADS))

VALUES: dict[str, Any] = {
    "zero": 0,
    "five": 5,
    "negative": -7,
    "blocks": Sum(4, u=Part(U * 64)),
    "threads": Sum(0, v=Part(V)),
    "both parts": Sum(3, u=Part(U * 256), v=Part(V * 4)),
    "parts that carry": Sum(31, u=Part(U * 5), v=Part(V * 3)),
    "negative parts": Sum(-9, u=Part(U * -64), v=Part(V * 4)),
    "all threads": Sum(2, f=Part(F)),
    "around the wrap": Sum((1 << 31) - 16, v=Part(V)),
    "above the wrap": Sum((1 << 31) + 16, v=Part(V)),
}
BITS = (1, 3, 5, 8, 31, 32)


def full(value: Any) -> np.ndarray:
    return np.broadcast_to(to_array(value), (BLOCKS, THREADS))


def wrapped(array: np.ndarray, bits: int) -> np.ndarray:
    half = 1 << (bits - 1)
    return ((array + half) & ((1 << bits) - 1)) - half


OF_TWO: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "plus": (plus, np.add),
    "minus": (minus, np.subtract),
    "product": (product, np.multiply),
    "and": (and_ints, np.bitwise_and),
    "or": (or_ints, np.bitwise_or),
    "xor": (xor_ints, np.bitwise_xor),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_operations_on_two(name: str) -> None:
    ours, numpys = OF_TWO[name]
    for a in VALUES.values():
        for b in VALUES.values():
            found = ours(a, b)
            assert np.array_equal(full(found), numpys(full(a), full(b)))
            low, high = bounds(found)
            assert low <= full(found).min() and full(found).max() <= high
            if disjoint(a, b):
                assert not (full(a) & full(b)).any()


@pytest.mark.parametrize("name", VALUES)
def test_operations_on_one(name: str) -> None:
    value = VALUES[name]
    array = full(value)
    assert np.array_equal(full(invert_bits(value)), ~array)
    assert non_negative(value) == (array >= 0).all()
    for bits in BITS:
        mask = (1 << bits) - 1
        assert np.array_equal(full(low_bits(value, bits)), array & mask)
        assert np.array_equal(full(high_bits(value, bits)), array & ~mask)
        assert np.array_equal(full(as_unsigned(value, bits)), array & mask)
        assert np.array_equal(full(and_ints(value, mask << 2)), array & mask << 2)
    assert high_bits(value, 0) is value
    for bits in (8, 16, 32, 64):
        assert np.array_equal(full(fit(value, bits)), array if bits == 64 else wrapped(array, bits))
    for factor in (-3, 0, 1, 2, 12):
        assert np.array_equal(full(times(value, factor)), array * factor)
    zeros = low_zeros(value)
    assert not (array & ((1 << zeros) - 1)).any()


@pytest.mark.parametrize("amount", [0, 1, 5, 31, 32, 40])
def test_shifts_of_32_bits(amount: int) -> None:
    for value in VALUES.values():
        held = fit(value, 32)
        array = full(held)
        signed, plain = shift_right(held, amount, True, 32), shift_right(held, amount, False, 32)
        assert np.array_equal(full(signed), array >> min(amount, 31))
        assert np.array_equal(full(plain), (array if amount == 0 else (array & 0xFFFFFFFF) >> amount))
        left = wrapped(array << amount, 32) if amount < 32 else 0 * array
        assert np.array_equal(full(shift_left(held, amount, 32)), left)


def test_shifts_of_64_bits_are_logical_where_asked() -> None:
    value = VALUES["negative parts"]
    assert np.array_equal(
        full(shift_right(value, 3, False, 64)),
        (full(value).astype(np.uint64) >> np.uint64(3)).astype(np.int64),
    )
    for amount in (63, 64, 65, 100):
        assert np.array_equal(full(shift_right(value, amount, True, 64)), full(value) >> 63)
    assert shift_right(value, 64, False, 64) == 0


def test_what_stays_in_parts() -> None:
    """An index that no carry leaves is a block's and a thread's part; its twin that carries is not."""
    value = VALUES["both parts"]
    for found in (low_bits(value, 8), high_bits(value, 7), shift_right(value, 2, True, 32), times(value, 3)):
        assert isinstance(found, Sum) and found.f is None
    agreed = high_bits(value, 7)
    assert isinstance(agreed, Sum) and agreed.v is None  # all threads agree there
    carries = VALUES["parts that carry"]
    for found in (low_bits(carries, 5), high_bits(carries, 5), shift_right(carries, 5, True, 32)):
        assert isinstance(found, Sum) and found.f is not None
    assert and_ints(Sum(0, u=Part(U * 32)), Sum(0, v=Part(V))) == 0
    for step, apart in ((32, True), (16, False)):
        joined = or_ints(Sum(0, u=Part(U * step)), Sum(0, v=Part(V)))
        assert isinstance(joined, Sum) and (joined.f is None) == apart
    assert fit(value, 32) is value
    moved = fit(VALUES["above the wrap"], 32)
    assert isinstance(moved, Sum) and moved.v is VALUES["above the wrap"].v
    assert as_unsigned(value, 32) is value


def test_sums_at_the_ends_of_64_bits_wrap() -> None:
    near = Sum(SAFE, v=Part(V))
    assert np.array_equal(full(times(near, 3)), full(near) * 3)
    assert np.array_equal(full(plus(near, near)), full(near) + full(near))
    assert [wrap_int(value, 8) for value in (127, 128, -128, -129, 256)] == [127, -128, -128, 127, 0]


def test_low_zeros() -> None:
    assert [trailing_zeros(value) for value in (0, 1, 8, -4)] == [63, 0, 3, 2]
    assert low_zeros(Sum(16, u=Part(U * 8), v=Part(V * 4))) == 2
    assert low_zeros(Sum(1, u=Part(U * 8))) == 0


def test_shapes_are_the_smallest() -> None:
    assert from_array(np.array([[7]]), 2) == 9
    blocks, threads, every = from_array(U, 1), from_array(V, 1), from_array(F, 1)
    assert isinstance(blocks, Sum) and blocks.u is not None and blocks.s == 1
    assert isinstance(threads, Sum) and threads.v is not None
    assert isinstance(every, Sum) and every.f is not None
    assert (blocks.lo, blocks.hi) == (1, BLOCKS) and (every.lo, every.hi) == (F.min() + 1, F.max() + 1)


def test_floats_and_bits() -> None:
    array = np.linspace(-2, 2, THREADS, dtype=np.float32)[None, :].repeat(BLOCKS, 0)
    assert np.array_equal(full(ints(array)), array.view(np.int32))
    assert np.array_equal(floats(ints(array), np.float32), array)
    assert floats(array, np.float32) is array
    assert floats(0x3F800000, np.float32).item() == 1.0
    halves = floats(0x3C003C00, np.float16)
    assert halves.item() == 1.0
    assert from_floats(array) is array
    column = np.array([[1.5], [2.5], [0.0]], np.float32)
    assert np.array_equal(from_floats(column.repeat(4, 1)), column)
    late = column.repeat(4, 1)
    late[2, 3] = -0.0  # equal, but not bit by bit
    assert from_floats(late) is late


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_chosen_side(dtype: type) -> None:
    held = np.random.default_rng(2).random((BLOCKS, THREADS)) < 0.5
    for condition in (held, held[:, :1], held[:1]):
        part = Part(condition)
        yes, no = VALUES["both parts"], VALUES["all threads"]
        assert np.array_equal(full(choose(part, yes, no)), np.where(condition, full(yes), full(no)))
        one: Any = np.full((BLOCKS, THREADS), 1.5, dtype)
        other: Any = np.full((BLOCKS, THREADS), -2.0, dtype)
        assert np.array_equal(choose(part, one, other), np.where(condition, one, other))
        number = from_array(np.asarray(-2.0, dtype).reshape(1, 1).view(f"i{one.itemsize}").astype(np.int64))
        for sides in ((one, number), (number, one)):
            wanted = np.where(condition, *(np.broadcast_to(floats(side, dtype), one.shape) for side in sides))
            found = choose(part, *sides)
            assert found.dtype == dtype and np.array_equal(found, wanted)
    assert choose(Part(held), 4, 4) == 4
    assert choose(True, 1, 2) == 1 and choose(False, 1, 2) == 2
    assert np.array_equal(full_bools(choose(Part(held), True, False)), held)


def test_a_side_that_is_unknown_is_not_chosen_from() -> None:
    held = Part(np.arange(THREADS)[None, :] < 5)
    for sides in ((1, WHY), (WHY, 1), (None, 1), (1, None)):
        with pytest.raises(Poisoned):
            choose(held, *sides)
    assert choose(True, 1, WHY) == 1 and choose(False, WHY, 2) == 2
    for read in (ints, lambda value: floats(value, np.float32)):
        with pytest.raises(Poisoned, match="why"):
            read(WHY)


def full_bools(value: Any) -> np.ndarray:
    return np.broadcast_to(value.array, (BLOCKS, THREADS))


def test_equal_parts_have_equal_digests() -> None:
    part, same, other = (Part(np.array([[1, 2, last]])) for last in (3, 3, 4))
    assert part.digest == same.digest == part.digest != other.digest
    assert part.uid != same.uid
