"""Instructions that look at other lanes against loops over a warp (PTX ISA: shfl, vote, match, redux)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from memsim.state.partial import Partial, split_partial
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array
from tests.isa.harness import Lanes, compute, words
from tests.isa.oracle import signed, unsigned

VALUES = words(64, 80)
CHANCE = random.Random(81)
ACTIVE = [CHANCE.random() < 0.7 for _ in range(64)]
ACTIVE[5] = ACTIVE[40] = True


def value(numbers: list[int]):  # type: ignore[no-untyped-def]
    return from_array(np.array([[signed(number) for number in numbers]], np.int64))


def truths(numbers: list[bool]):  # type: ignore[no-untyped-def]
    return from_bools(np.array([numbers]))


def lanes() -> Lanes:
    return Lanes(64, np.array(ACTIVE).reshape(1, 2, 32))


def flat(result) -> list[int]:  # type: ignore[no-untyped-def]
    return [int(x) & 0xFFFFFFFF for x in np.broadcast_to(to_array(ints(result)), (1, 64))[0]]


def bools(result) -> list[bool]:  # type: ignore[no-untyped-def]
    return [bool(x) for x in np.broadcast_to(to_bools(result), (1, 64))[0]]


def active(warp: int) -> list[int]:
    """The lanes of a warp that execute the instruction."""
    return [lane for lane in range(32) if ACTIVE[32 * warp + lane]]


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
@pytest.mark.parametrize("clamp", [0x1F, 0x0, 0x1800, 0x181F, 0x1C07])
def test_shuffles(mode: str, clamp: int) -> None:
    by = [lane * 5 % 40 for lane in range(64)]
    clamps = [clamp] * 64
    answer, moved = compute(
        f"SHFL.{mode} P0, R0, R1, R2, R3",
        {"R1": value(VALUES), "R2": value(by), "R3": value(clamps)},
        lanes(),
    )
    moved, known, _ = split_partial(moved)
    for lane, (holds, found) in enumerate(zip(bools(answer), flat(moved))):
        here, segment, limit = lane % 32, clamp >> 8 & 31, clamp & 31
        most = (here & segment) | (limit & ~segment)
        amount = by[lane] & 31
        source = {
            "IDX": (here & segment) | (amount & ~segment),
            "UP": here - amount,
            "DOWN": here + amount,
            "BFLY": here ^ amount,
        }[mode]
        valid = source >= most if mode == "UP" else source <= most
        assert holds == valid
        read = lane - here + source if valid else lane
        if ACTIVE[read]:
            assert found == VALUES[read]
        assert bools(known)[lane] == (ACTIVE[read] or not ACTIVE[lane])


@pytest.mark.parametrize("mode", ["IDX", "UP", "DOWN", "BFLY"])
@pytest.mark.parametrize("amount", [0, 1, 6, 16])
@pytest.mark.parametrize("clamp", [0x1F, 0x181F, 0x1C07])
def test_shuffles_by_constants_are_those_by_registers(mode: str, amount: int, clamp: int) -> None:
    given = {"R1": value(VALUES), "R2": value([amount] * 64), "R3": value([clamp] * 64)}
    answer, moved = compute(f"SHFL.{mode} P0, R0, R1, {amount:#x}, {clamp:#x}", given, lanes())
    expected, by_registers = compute(f"SHFL.{mode} P0, R0, R1, R2, R3", given, lanes())
    assert bools(answer) == bools(expected)
    assert flat(split_partial(moved)[0]) == flat(split_partial(by_registers)[0])


def summed(numbers: np.ndarray, operation: str = "FADD R2, R1, R0") -> np.ndarray:
    """What a reduction by shuffles leaves in the lanes of warps that are rows of float32 numbers [n, 32]."""
    warps = Lanes(32, np.ones((len(numbers), 1, 32), bool))
    for apart in (16, 8, 4, 2, 1):
        _, other = compute(f"SHFL.BFLY PT, R0, R1, {apart:#x}, 0x1f", {"R1": numbers}, warps)
        (numbers,) = compute(operation, {"R0": other, "R1": numbers})
    return numbers


@pytest.mark.parametrize("operation", ["FADD R2, R1, R0", "FMNMX R2, R1, R0, !PT"])
def test_after_a_reduction_a_warp_holds_one_number(operation: str) -> None:
    numbers = np.random.default_rng(7).standard_normal((5, 32)).astype(np.float32)
    found = summed(numbers, operation)
    assert found.shape == (5, 1)
    halves = numbers
    while halves.shape[1] > 1:  # the order in which the lanes are added
        left, right = np.split(halves, 2, axis=1)
        halves = left + right if "FADD" in operation else np.maximum(left, right)
    assert found.tobytes() == halves.tobytes()


def test_lanes_that_differ_in_a_sign_or_in_one_row_do_not_hold_one_number() -> None:
    signs = np.where(np.arange(32) == 9, np.float32(-0.0), np.float32(0.0))[None, :]
    one_row = np.ones((3, 32), np.float32)
    one_row[2, 31] = 2
    for numbers in (signs, one_row):
        (found,) = compute("FADD R0, R1, -RZ", {"R1": numbers})
        assert found.shape == numbers.shape
        assert found.tobytes() == numbers.tobytes()


@pytest.mark.parametrize("of_three", [(0, 2), (), (0, 1, 2), (1,)])
def test_votes(of_three: tuple[int, ...]) -> None:
    holds = [lane % 3 in of_three for lane in range(64)]
    given = {"P1": truths(holds)}
    mask, answer = compute("VOTE.ANY R0, P0, P1", given, lanes())
    for warp in (0, 1):
        yes = [lane for lane in active(warp) if holds[32 * warp + lane]]
        assert flat(mask)[32 * warp] == sum(1 << lane for lane in yes)
        assert bools(answer)[32 * warp] == bool(yes)
        (every,) = compute("VOTE.ALL P0, P1", given, lanes())
        assert bools(every)[32 * warp] == (len(yes) == len(active(warp)))
        (alike,) = compute("VOTE.EQ P0, P1", given, lanes())
        assert bools(alike)[32 * warp] == (len(yes) in (0, len(active(warp))))


def test_matches() -> None:
    numbers = [number % 5 for number in VALUES]
    (found,) = compute("MATCH.ANY R0, R1", {"R1": value(numbers)}, lanes())
    for lane, mask in enumerate(flat(found)):
        warp = lane // 32
        same = sum(1 << other for other in active(warp) if numbers[32 * warp + other] == numbers[lane])
        assert mask == same or not ACTIVE[lane]
    numbers = [7] * 32 + numbers[32:]
    agreed, members = compute("MATCH.ALL P0, R0, R1", {"R1": value(numbers)}, lanes())
    for lane in (5, 40):
        warp = lane // 32
        alike = len({numbers[32 * warp + other] for other in active(warp)}) == 1
        assert bools(agreed)[lane] == alike
        assert flat(members)[lane] == (sum(1 << other for other in active(warp)) if alike else 0)


@pytest.mark.parametrize("opcode", ["REDUX", "CREDUX"])
@pytest.mark.parametrize("name", ["SUM", "MIN.S32", "MAX.S32", "MIN", "MAX", "OR", "XOR", ""])
def test_reductions(name: str, opcode: str) -> None:
    text = f"{opcode}.{name} UR4, R1" if name else f"{opcode} UR4, R1"
    (found,) = compute(text, {"R1": value(VALUES)}, lanes())
    for warp in (0, 1):
        numbers = [VALUES[32 * warp + lane] for lane in active(warp)]
        total = {
            "SUM": sum,
            "OR": lambda x: joined(x, "|"),
            "XOR": lambda x: joined(x, "^"),
            "": lambda x: joined(x, "&"),
        }
        if name in total:
            wanted = unsigned(total[name](numbers))
        else:
            pick = min if name.startswith("MIN") else max
            wanted = unsigned(pick(signed(x) for x in numbers) if "S32" in name else pick(numbers))
        assert flat(found)[32 * warp] == wanted


def joined(numbers: list[int], how: str) -> int:
    found = numbers[0]
    for number in numbers[1:]:
        found = found | number if how == "|" else found ^ number if how == "^" else found & number
    return found


def test_a_value_of_a_warp_is_that_of_its_first_active_lane() -> None:
    (found,) = compute("R2UR UR4, R1", {"R1": value(VALUES)}, lanes())
    for warp in (0, 1):
        assert flat(found)[32 * warp] == VALUES[32 * warp + active(warp)[0]]


def test_lanes_with_another_value_are_left_for_the_next_round() -> None:
    numbers = [number % 3 for number in VALUES]
    other, found = compute("R2UR P0, UR4, R1", {"R1": value(numbers)}, lanes())
    for warp in (0, 1):
        picked = numbers[32 * warp + active(warp)[0]]
        assert flat(found)[32 * warp] == picked
        for lane in active(warp):
            assert bools(other)[32 * warp + lane] == (numbers[32 * warp + lane] != picked)


def test_lanes_that_differ_in_any_of_several_registers_are_left() -> None:
    numbers = [number % 2 for number in VALUES]
    before = [lane % 3 == 0 for lane in range(64)]
    other, found = compute(
        "R2UR.OR P0, UR4, R1", {"R1": value(numbers), "P0": from_bools(np.array([before]))}, lanes()
    )
    for warp in (0, 1):
        picked = numbers[32 * warp + active(warp)[0]]
        assert flat(found)[32 * warp] == picked
        for lane in active(warp):
            thread = 32 * warp + lane
            assert bools(other)[thread] == (before[thread] or numbers[thread] != picked)


def test_one_lane_is_elected() -> None:
    elected, leader, *_ = compute("ELECT P0, UR4, PT", {}, lanes())
    for warp in (0, 1):
        first = active(warp)[0]
        assert flat(leader)[32 * warp] == first
        assert [lane for lane in range(32) if bools(elected)[32 * warp + lane]] == [first]


def test_what_is_not_known_stays_so() -> None:
    with pytest.raises(Poisoned):
        compute("SHFL.BFLY PT, R0, R1, 0x1, 0x1f", {"R1": Poison("unknown", None)}, lanes())


BLOCKS = 2
HERE = np.array([[CHANCE.random() < 0.8 for _ in range(64)] for _ in range(BLOCKS)])
HERE[:, [3, 60]] = True


def any_register(shape: tuple[int, int], kind: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """(a register, its words in each lane, where they are known)."""
    random_words = np.random.default_rng(shape[0] + shape[1]).integers(-(2**31), 2**31, shape)
    known = np.ones((BLOCKS, 64), bool)
    register: Any = from_array(random_words)
    if kind == "floats":
        register = random_words.astype(np.int32).view(np.float32)
    if kind == "some unknown":
        known = np.random.default_rng(9).random((BLOCKS, 64)) < 0.7
        register = Partial(register, from_bools(known), Poison("a reason", None))  # type: ignore[arg-type]
    return register, np.broadcast_to(random_words, (BLOCKS, 64)), known


@pytest.mark.parametrize("kind", ["integers", "floats", "some unknown"])
@pytest.mark.parametrize("shape", [(1, 64), (2, 1), (2, 64)])
@pytest.mark.parametrize("by", ["a constant", "(1, 64)", "(2, 64)", "the same in each warp"])
@pytest.mark.parametrize("reads_idle", [True, False])
def test_shuffles_of_any_register(shape: tuple[int, int], kind: str, by: str, reads_idle: bool) -> None:
    """In two blocks of two warps, by `SHFL.IDX`: a value is known if it is in a lane that takes part."""
    register, of_lanes, known = any_register(shape, kind)
    distance: np.ndarray = np.full((1, 1), 5)
    if by != "a constant":
        distance = np.random.default_rng(4).integers(0, 32, (2 if by == "(2, 64)" else 1, 64))
    if by.startswith("the same"):
        distance[:, 32:] = distance[:, :32]
    warps = Lanes(64, HERE.reshape(BLOCKS, 2, 32))
    warps.reads_idle = reads_idle
    values = {"R1": register, "R2": from_array(distance), "R3": 0x1F}
    if by == "a constant":
        values["R2"] = 5
    answer, moved = compute("SHFL.IDX P0, R0, R1, R2, R3", values, warps)
    assert answer is True
    if isinstance(moved, Poison):
        moved_known: Any = False
    else:
        moved, moved_known, _ = split_partial(moved)
    is_known = np.broadcast_to(to_bools(moved_known), (BLOCKS, 64))
    found = np.broadcast_to(to_array(ints(moved)), (BLOCKS, 64))
    every = np.broadcast_to(distance, (BLOCKS, 64))
    for block, lane in np.argwhere(HERE).tolist():
        source = lane // 32 * 32 + int(every[block, lane])
        sure = known[block, source] and (reads_idle or HERE[block, source] or shape == (2, 1))
        if shape != (2, 1):  # whose value is that of all lanes, whoever executes
            assert is_known[block, lane] == sure
        if sure and is_known[block, lane]:
            assert found[block, lane] == of_lanes[block, source]


@pytest.mark.parametrize("shape", [(1, 64), (2, 1), (2, 64), (1, 1)])
def test_a_uniform_register_gets_the_first_active_lanes_word(shape: tuple[int, int]) -> None:
    register, of_lanes, _ = any_register(shape, "integers")
    (found,) = compute("R2UR UR4, R1", {"R1": register}, Lanes(64, HERE.reshape(BLOCKS, 2, 32)))[-1:]
    found = np.broadcast_to(to_array(ints(found)), (BLOCKS, 64))
    for block in range(BLOCKS):
        for warp in range(2):
            first = next(lane for lane in range(32 * warp, 32 * warp + 32) if HERE[block, lane])
            assert (found[block, 32 * warp : 32 * warp + 32] == of_lanes[block, first]).all()
