"""The bytes of state spaces: where buffers lie, which bytes are unknown, and what lanes read and write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memsim import ArrayArg
from memsim.errors import MemsimError
from memsim.launch import GLOBAL_ALIGN, MOST_BYTES
from memsim.state.address_spaces import (
    CLEAR,
    CONSTANT_WINDOW,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAMETER_WINDOW,
    PARAMETERS,
    SHARED_BASE,
    SHARED_WINDOW,
    TEXTURE_HANDLES,
    WINDOW_SIZE,
    WRAP,
    ConstantBytes,
    SpaceLayout,
    align,
)
from memsim.state.launch_memory import Memory
from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import Sum, from_array
from memsim.state.space_bytes import SpaceBytes, as_register, of_active, to_store

WHY, OTHER = Poison("first", None), Poison("second", None)


# --- where buffers lie


def test_multiples() -> None:
    assert [align(value, 16) for value in (0, 1, 16, 17)] == [0, 16, 16, 32]


@pytest.mark.parametrize(
    ("pointers", "name"),
    [("a", "a"), ("aa", "a"), ("abc", "a, b, c"), ("abcde", "a and 4 others")],
)
def test_an_allocation_is_called_by_the_pointers_to_it(pointers: str, name: str) -> None:
    """As of a tensor library, whose arrays lie in one: each starts an element further on."""
    whole = np.zeros(8, np.uint32)
    memory = Memory([(one, whole[at:]) for at, one in enumerate(pointers)])
    assert [buffer.name for buffer in memory.layouts["global"].buffers] == [name]


def test_buffers_are_found_by_their_bytes() -> None:
    layout = SpaceLayout("shared", 0x400)
    assert [layout.place("a", 10, 16), layout.place("b", 4, 16), layout.place("c", 4, 1, gap=8)] == [
        0x400,
        0x410,
        0x414,
    ]
    assert layout.end == 0x414 + 4 + 8
    assert [getattr(layout.find(lo, end), "name", None) for lo, end in (
        (0x400, 0x40A), (0x400, 0x40B), (0x40A, 0x40B), (0x3FF, 0x400), (0x413, 0x414), (0x414, 0x415),
        (0x418, 0x419),
    )] == ["a", None, None, None, "b", "c", None]  # fmt: skip
    assert [getattr(layout.at(at), "name", None) for at in (0x400, 0x401, 0x410, 0x414, 0x500)] == [
        *("a", None, "b", "c", None)
    ]
    addresses = np.array([0x3FF, 0x400, 0x406, 0x407, 0x410, 0x411, 0x414])
    assert layout.owners(addresses, 4).tolist() == [-1, 0, 0, -1, 1, -1, 2]
    assert SpaceLayout("local").owners(addresses, 4).tolist() == [-1] * 7
    for lo in range(0x3FE, 0x420):
        for end in range(lo + 1, 0x420):
            meets = [one for one in layout.buffers if {*range(lo, end)} & {*range(one.start, one.end)}]
            assert layout.between(lo, end) == meets


def test_global_buffers_keep_clear_of_the_wrap() -> None:
    layout = SpaceLayout("global", GLOBAL_BASE)
    first = layout.place("a", WRAP // 2, 256)
    second = layout.place("b", WRAP // 2, 256)
    assert first == GLOBAL_BASE and CLEAR == GLOBAL_BASE % WRAP > 0
    assert second % WRAP == CLEAR and second > first  # its low words would wrap where it would have been
    most = WRAP - 2 * CLEAR  # what is larger cannot keep clear, and follows the one before
    for size, start in ((most - 256, second), (most, second), (most + 256, first + WRAP // 2)):
        other = SpaceLayout("global", GLOBAL_BASE)
        other.place("a", WRAP // 2, 256)
        assert other.place("b", size, 256) == start
    elsewhere = SpaceLayout("local", GLOBAL_BASE)
    assert [elsewhere.place(name, WRAP // 2, 256) for name in "ab"] == [first, first + WRAP // 2]
    last = layout.place("c", 256, 256)
    assert last == second + WRAP // 2
    with pytest.raises(MemsimError, match="huge is larger than any GPU's memory"):
        layout.add("huge", 0, MOST_BYTES + 1)
    layout.add("whole", 0, MOST_BYTES)


# --- a constant bank


def test_constants_and_parameters() -> None:
    bank = ConstantBytes(bytes(range(8)), bytes([9, 0, 0, 0]))

    def load(at: int) -> int:
        return int(bank.load(at, np.uint32, True)[0, 0])

    assert [load(0), load(4), load(PARAMETERS)] == [0x03020100, 0x07060504, 9]
    for outside in (-1, 5, 8, PARAMETERS - 1, PARAMETERS + 1):
        with pytest.raises(Poisoned, match="outside of the known part"):
            load(outside)
        assert bank.lost(outside, np.uint32, True) is True
    assert bank.lost(4, np.uint32, True) is False
    some = Sum(0, v=Part(np.array([[0, 8]])))
    assert bank.load(some, np.uint32, Part(np.array([[True, False]])))[0, 0] == 0x03020100
    assert ConstantBytes(b"").load(0, np.uint32, False).tolist() == [[0]]
    assert [load(at) for at in (1, 2, 3)] == [0x04030201, 0x05040302, 0x06050403]  # at no multiple of 4


# --- bytes, known and unknown


def space(rows: str = "block", words: int = 8) -> SpaceBytes:
    """Two blocks of four threads; each row counts its words from its number times 100 on."""
    many = {"one": 1, "block": 2, "thread": 8}[rows]
    data = (np.arange(words) + 100 * np.arange(many)[:, None]).astype(np.uint32)
    return SpaceBytes(data.view(np.uint8), 0x400, (2, 4), rows)


EACH = from_array(0x400 + 4 * np.arange(8).reshape(2, 4))
OF_THREADS = from_array(0x400 + 4 * np.arange(4)[None, :])
SOME = np.array([[True, False, False, True], [False, True, False, False]])


@pytest.mark.parametrize("rows", ["one", "block", "thread"])
@pytest.mark.parametrize("address", [EACH, OF_THREADS, 0x408], ids=["each", "threads", "one"])
def test_each_thread_reads_and_writes_its_row(rows: str, address: Any) -> None:
    words = space(rows).data.view(np.uint32)
    row: Any = {"one": 0, "block": np.arange(2)[:, None], "thread": np.arange(8).reshape(2, 4)}[rows]
    at = (address - 0x400) // 4 if isinstance(address, int) else (address.array - 0x400) // 4
    wanted = np.broadcast_to(words[row, at], (2, 4))
    assert np.array_equal(np.broadcast_to(space(rows).load(address, np.uint32, True), (2, 4)), wanted)
    found = np.broadcast_to(space(rows).load(address, np.uint32, Part(SOME)), (2, 4))
    assert np.array_equal(found[SOME], wanted[SOME])
    for active in (True, False, Part(SOME), Part(SOME[:, :1]), Part(SOME[:1])):
        one, copy = space(rows), words.copy()
        values = np.arange(8, dtype=np.uint32).reshape(2, 4)
        one.store(address, values, active)
        rows_of, places = (np.broadcast_to(x, (2, 4)) for x in (row, at))
        for lane in np.ndindex(2, 4):
            if np.broadcast_to(to_bools(active), (2, 4))[lane]:
                copy[rows_of[lane], places[lane]] = values[lane]
        assert np.array_equal(one.data.view(np.uint32), copy)


def test_rows_of_consecutive_elements() -> None:
    """A block's part and a thread's part, one word apart; and twins that are not."""
    for places in ([0, 1, 2, 3], [0, 2, 4, 6], [3, 2, 1, 0], [1, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 6]):
        address = Sum(0x400, u=Part(np.array([[0], [4]])), v=Part(4 * np.array([places])))
        wanted = (address.array - 0x400) // 4
        assert space("one").load(address, np.uint32, True).tolist() == wanted.tolist()
        found = space("one").load(address, np.uint32, Part(np.array([[True], [False]])))
        assert found[0].tolist() == wanted[0].tolist()


@pytest.mark.parametrize(
    ("steps", "by_block"), [((0, 4, 8, 12), 16), ((0, 4, 8, 12), 20), ((4, 0, 8, 12), 16)]
)
def test_elements_of_all_threads_one_after_the_other(steps: tuple[int, ...], by_block: int) -> None:
    """The first; of the others the blocks leave gaps, or two threads are swapped."""
    address = Sum(0x404, u=Part(np.array([[0], [by_block]])), v=Part(np.array([steps])))
    places = (address.array - 0x400) // 4
    one = space("one", words=12)
    wanted = one.view(np.uint32)[0].copy()
    found = one.load(address, np.uint32, True)
    assert found.tolist() == wanted[places].tolist()
    values = np.arange(100, 108, dtype=np.uint32).reshape(2, 4)
    one.store(address, values, True)
    one.store(Sum(0x400, v=Part(np.array([[0, 0, 0, 0]]))), np.uint32([[7]]), True)
    wanted[places], wanted[0] = values, 7
    assert one.view(np.uint32)[0].tolist() == wanted.tolist()
    assert found.max() < 100  # what was read stays


def test_places_of_idle_lanes_are_those_of_an_active_one() -> None:
    index = np.array([[5, 6, 7, 8], [1, 2, 3, 4]])
    held = np.array([[False, False, True, True], [True, False, False, False]])
    assert of_active(index, Part(held)).tolist() == [[7, 7, 7, 8], [1, 7, 7, 7]]
    assert of_active(index, False).tolist() == [[0] * 4] * 2
    assert of_active(index, True) is index
    assert of_active(index[:1], Part(held[:, 3:])).tolist() == [[5, 6, 7, 8], [5] * 4]


def test_unknown_bytes_are_told_with_their_reason() -> None:
    one = space()
    assert one.all_known and one.lost(EACH, np.uint32, True) is False
    one.forget(OF_THREADS, np.uint32, Part(SOME), WHY)
    assert not one.all_known
    lost = one.lost(OF_THREADS, np.uint32, True)
    assert to_bools(lost).tolist() == SOME.tolist()
    assert one.why(OF_THREADS, np.uint32, lost) is WHY
    with pytest.raises(Poisoned, match="first"):
        one.load(OF_THREADS, np.uint32, True)
    one.load(OF_THREADS, np.uint32, from_bools(~SOME))
    one.forget(0x404, np.uint8, True, OTHER)
    assert one.why(0x404, np.uint32, True) is OTHER  # the last of its reasons
    both = np.array([[False, True, True, False]] * 2)
    one.forget(OF_THREADS, np.uint32, Part(both & (np.arange(4) == 2)), WHY)
    assert one.why(OF_THREADS, np.uint32, Part(both)) is OTHER  # of the first thread
    one.store(OF_THREADS, np.zeros((2, 4), np.uint32), True)
    assert one.lost(OF_THREADS, np.uint32, True) is False
    one.poison = WHY
    assert one.lost(0x404, np.uint32, True) is True and one.why(0x404, np.uint32, True) is WHY


def test_the_marks_go_when_everything_has_been_written() -> None:
    one = space()
    one.forget(0x404, np.uint32, True, WHY)
    one.store(0x404, np.zeros((2, 4), np.uint32), True)
    for _ in range(64):
        one.lost(0x404, np.uint32, True)
    assert one.all_known
    one.forget(0x404, np.uint32, True, WHY)
    assert all(one.lost(0x404, np.uint32, True) is True for _ in range(130))


def test_bytes_of_a_row() -> None:
    one, at = space(), np.array([0x404, 0x405])
    assert one.get(1, at)[0].tolist() == [101, 0] and one.get(1, at)[1] is None
    one.put(1, at, np.array([7, 8], np.uint8), (np.array([False, True]), WHY))
    found, lost = one.get(1, at)
    assert found.tolist() == [7, 8]
    assert lost is not None and lost[0].tolist() == [False, True] and lost[1] is WHY
    assert one.get(0, at)[0].tolist() == [1, 0] and one.get(0, at)[1] is None
    one.put(1, at, np.array([1, 2], np.uint8), None)
    assert one.get(1, at)[1] is None
    one.poison = OTHER
    (_, lost) = one.get(0, at)
    assert lost is not None and lost[0].all() and lost[1] is OTHER


def test_what_was_never_written_and_what_becomes_zero() -> None:
    one = space()
    one.never_written(WHY, 6)
    assert one.lost(0x400, np.uint32, True) is True and one.lost(0x408, np.uint32, True) is False
    assert one.lost(0x405, np.uint8, True) is True and one.lost(0x406, np.uint8, True) is False
    one.forget(0x401, np.uint8, True, OTHER)
    one.begin_words(0x400, True)
    assert one.lost(0x400, np.uint8, True) is False and one.lost(0x402, np.uint8, True) is False
    assert one.why(0x401, np.uint8, True) is OTHER
    assert one.lost(0x404, np.uint8, True) is True  # another word
    space().begin_words(0x400, True)


def test_one_number_for_a_reason() -> None:
    one = space()
    assert [one._number(why) for why in (WHY, OTHER, Poison("first", None))] == [1, 2, 1]
    numbers = [one._number(Poison(f"reason {number}", None)) for number in range(300)]
    assert (numbers[0], numbers[252], numbers[253], numbers[-1]) == (3, 255, 255, 255)


def test_updates_in_the_order_of_threads() -> None:
    one = space("one")
    seen = one.update(0x408, np.uint32, Part(SOME), "add", [np.full((1, 1), 10, np.uint32)], True)
    assert seen.tolist() == [[2, 0, 0, 12], [0, 22, 0, 0]]
    assert one.data.view(np.uint32)[0, 2] == 32
    silent = one.update(0x408, np.uint32, True, "max", [np.full((1, 1), 99, np.uint32)], False)
    assert silent.tolist() == [[0] * 4] * 2 and one.data.view(np.uint32)[0, 2] == 99
    compared = [np.full((2, 4), 99, np.uint32), np.arange(8, dtype=np.uint32).reshape(2, 4)]
    assert one.update(0x408, np.uint32, True, "cas", compared, True)[0].tolist() == [99, 0, 0, 0]


def test_pairs_of_words() -> None:
    data = np.arange(8, dtype=np.uint64).reshape(1, 8)
    one = SpaceBytes(data.view(np.uint8).copy(), 0, (1, 2), "one")
    address = Sum(0, v=Part(np.array([[0, 16]])))

    def pair(*words: int) -> list[np.ndarray]:
        return [np.array([[word, word]], np.uint64) for word in words]

    old = one.exchange_pairs(address, True, "cas", [pair(2, 3), pair(8, 9)])
    assert [column.tolist() for column in old] == [[[0, 2]], [[1, 3]]]
    assert one.data.view(np.uint64)[0].tolist() == [0, 1, 8, 9, 4, 5, 6, 7]
    one.exchange_pairs(address, Part(np.array([[True, False]])), "exch", [pair(5, 6)])
    assert one.data.view(np.uint64)[0].tolist() == [5, 6, 8, 9, 4, 5, 6, 7]


def test_elements_and_registers() -> None:
    assert as_register(np.array([[0xFFFFFFFF]], np.uint32)) == -1
    halves = np.array([[1.5]], np.float16)
    assert as_register(halves) is halves
    assert to_store(-1, np.uint32).tolist() == [[0xFFFFFFFF]]
    assert to_store(0x3F800000, np.float32).tolist() == [[1.0]]


# --- the memory of a launch


def test_arrays_that_share_memory_overlap_as_they_do_in_the_callers() -> None:
    whole, alone = np.arange(64, dtype=np.float32), np.ones(8, np.float32)
    memory = Memory([("a", whole[8:]), ("b", alone), ("c", whole), ("d", ArrayArg((4,))), ("e", whole[:0])])
    a, b, c, d, e = memory.argument_addresses
    assert (a - c, c) == (32, GLOBAL_BASE)
    assert len({b, c, d, e}) == 4 and all(at % GLOBAL_ALIGN == 0 for at in (b, c, d, e))
    names = [buffer.name for buffer in memory.layouts["global"].buffers]
    assert names == ["a, c", "b", "d", "e"]
    assert b - (c + whole.nbytes) >= GLOBAL_ALIGN  # a gap
    memory.go_on(1, 32)
    assert memory.is_unused
    held = memory.space("global")
    assert not memory.is_unused
    assert held.load(a, np.float32, True).item() == 8.0 and held.load(b, np.float32, True).item() == 1.0
    held.store(a, np.full((1, 32), 5, np.float32), True)
    memory.copy_back()
    assert whole[8] == 5 and whole[7] == 7


def test_spaces_are_made_when_they_are_used_and_anew_for_each_chunk() -> None:
    memory = Memory([])
    memory.layouts["shared"].place("tile", 20, 4)
    assert (memory.shared_bytes, memory.shared_size) == (20, 48)
    memory.uninitialised, memory.system_shared = {"shared": WHY}, 4
    memory.start_chunk(2, 32)
    shared, local = memory.space("shared"), memory.space("local")
    assert memory.space("shared") is shared and memory.space("local") is local
    assert shared.data.shape == (2, 48) and local.data.shape == (64, 16)
    assert shared.lost(SHARED_BASE + 16, np.uint32, True) is True
    assert shared.lost(SHARED_BASE, np.uint32, True) is False  # the system's part is written
    assert shared.lost(SHARED_BASE + 20, np.uint32, True) is False
    memory.start_chunk(1, 32)
    assert memory.space("shared") is not shared and memory.is_as_given
    memory.space("global")
    assert not memory.is_as_given
    spoiled = Memory([])
    spoiled.spoil("global", WHY)
    assert not spoiled.is_as_given
    memory.go_on(3, 64)
    assert memory.space("global").shape == (3, 64)


def test_contents_besides_arguments() -> None:
    memory = Memory([("a", np.zeros(4, np.uint32))])
    memory.contents.append((GLOBAL_BASE + 4, bytes([7, 0, 0, 0])))
    memory.go_on(1, 32)
    assert [memory.space("global").load(GLOBAL_BASE + 4 * i, np.uint32, True).item() for i in range(3)] == [
        0,
        7,
        0,
    ]


def test_what_is_unknown_is_not_copied_back() -> None:
    held = np.zeros(4, np.float32)
    for spoil in (lambda memory: None, lambda memory: memory.space("global")):
        memory = Memory([("a", held)])
        memory.go_on(1, 32)
        spoil(memory)
        memory.spoil("global", WHY)
        memory.start_chunk(1, 32)  # global memory stays what it was
        with pytest.raises(Poisoned, match="first"):
            memory.copy_back()
        assert memory.space("global").poison is WHY
    memory = Memory([("a", held)])
    memory.go_on(1, 32)
    memory.space("global").forget(GLOBAL_BASE, np.uint8, True, OTHER)
    with pytest.raises(Poisoned, match="second"):
        memory.copy_back()
    memory.spoil("shared", WHY)
    assert memory.space("shared").poison is WHY
    Memory([("a", held)]).copy_back()


def test_windows_of_generic_addresses_are_apart_from_each_other_and_from_arrays() -> None:
    windows = sorted((SHARED_WINDOW, LOCAL_WINDOW, CONSTANT_WINDOW))
    assert all(start % WINDOW_SIZE == 0 for start in (*windows, GLOBAL_BASE, TEXTURE_HANDLES))
    ends = [start + WINDOW_SIZE for start in windows]
    assert all(end <= start for end, start in zip(ends, [*windows[1:], GLOBAL_BASE]))
    assert CONSTANT_WINDOW < PARAMETER_WINDOW < CONSTANT_WINDOW + WINDOW_SIZE
    assert not any(start <= TEXTURE_HANDLES < end for start, end in zip(windows, ends))
    assert TEXTURE_HANDLES < GLOBAL_BASE and SHARED_BASE == 1024
