"""Runs one instruction on registers with a value in each possible representation, and compares every lane
with an oracle on single lanes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from memsim.isa.op import SLOTS, Predicate, Register
from memsim.isa.readers import Binder
from memsim.sass.decode import meaning_of_text, parse_operand
from memsim.state.parts import Part
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array

#: Words at which integer arithmetic turns.
WORDS = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x3210]
WORDS += [0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFF8000, 0xFF00FF00, 0x00FF00FF]
WORDS += [0x12345678, 0x9ABCDEF0]
#: float32: zeros, subnormal numbers, the smallest and largest, numbers that differ by one bit, infinity, NaN.
SINGLES = [0, 1, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x40490FDB]
SINGLES += [0x3F000000, 0x4B000001, 0x4B800000, 0x4F000000, 0x5F000000, 0x7E800000, 0x7F7FFFFF, 0x7F800000]
SINGLES += [0x7FC00000]
SINGLES += [word | 0x80000000 for word in SINGLES]
DOUBLES = [0, 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF << 52, (0x3FF << 52) + 1, (0x3FF << 52) - 1]
DOUBLES += [0x400921FB54442D18, 0x7FE << 52, 0x7FEFFFFFFFFFFFFF, 0x7FF << 52, 0x7FF8 << 48, 0x3CA << 52]
DOUBLES += [0x433 << 52, (0x433 << 52) + 1]
DOUBLES += [word | 1 << 63 for word in DOUBLES]
HALVES = [0, 1, 0x3FF, 0x400, 0x401, 0x3C00, 0x3C01, 0x3BFF, 0x4248, 0x7BFF, 0x7C00, 0x7E00, 0x6400, 0x3555]
HALVES += [0x0200]
HALVES += [word | 0x8000 for word in HALVES]

Lane = dict[str, Any]


def words(count: int, seed: int, edges: Sequence[int] = WORDS, bits: int = 32) -> list[int]:
    """Edge cases and random bits."""
    chance = random.Random(seed)
    found = [chance.choice(edges) for _ in range(count // 2)]
    return found + [
        chance.getrandbits(bits) >> chance.choice([0, 0, 0, 8, bits // 2]) for _ in range(count - len(found))
    ]


def near(count: int, seed: int, one: int, mantissa: int) -> list[int]:
    """Floats of a similar size, of both signs."""
    chance = random.Random(seed)
    top = one >> mantissa
    sign = 1 << (
        one.bit_length() + 1 if mantissa == 10 else (15 if one < 1 << 16 else 31 if one < 1 << 32 else 63)
    )
    return [
        ((top + chance.randint(-3, 3)) << mantissa | chance.getrandbits(mantissa))
        | (sign if chance.random() < 0.5 else 0)
        for _ in range(count)
    ]


def pair_of(low: Iterable[int], high: Iterable[int]) -> list[int]:
    """Two lists of 16-bit numbers as one of words."""
    return [x | (y << 16) for x, y in zip(low, high)]


class Lanes:
    """All lanes of some warps, for instructions that look at others."""

    reads_idle = False

    def __init__(self, count: int, active: np.ndarray | None = None) -> None:
        self.threads = count
        self._active = np.ones((1, count // 32, 32), bool) if active is None else active
        self.executing = from_bools(self._active.reshape(len(self._active), -1))

    def active(self) -> np.ndarray:
        return self._active

    def uncounted(self, what: str, active: Any = None) -> None:
        """Nothing is counted here."""


def compute(
    text: str, values: dict[str, Any], lanes: Lanes | None = None, banks: dict[int, bytes] | None = None
) -> list[Any]:
    """The results of an instruction; `values`: what registers hold, by name."""
    meaning = meaning_of_text(text)
    registers: list[Any] = [None] * (SLOTS + 2)
    for name, value in values.items():
        operand = parse_operand(name)
        assert isinstance(operand, (Register, Predicate)) and operand.slot is not None
        registers[operand.slot] = value
    run = meaning.bind(Binder(banks or {}))
    with np.errstate(all="ignore"):  # as a launch is executed
        found = run(registers, lanes) if lanes is not None else run(registers)
    return list(found) if len(meaning.targets) != 1 else [found]


def shapes(
    lists: dict[str, list[Any]],
) -> Iterable[tuple[str, dict[str, Any], Callable[[np.ndarray], np.ndarray]]]:
    """(name, registers, how a result (B, T) becomes a list) of each way to hold the lanes' values."""
    count = len(next(iter(lists.values())))
    layouts = {"of a thread": (1, count), "of a block": (count, 1), "of both": (4, count // 4)}
    for name, shape in layouts.items():
        yield (
            name,
            {key: held(value, shape) for key, value in lists.items()},
            lambda a, shape=shape: np.broadcast_to(a, shape).reshape(-1),
        )


def held(values: list[Any], shape: tuple[int, int]) -> Any:
    """Words, or truths, as a register holds them."""
    if isinstance(values[0], bool):
        return from_bools(np.array(values).reshape(shape))
    array = np.array([(value + 2**31) % 2**32 - 2**31 for value in values], np.int64)
    return from_array(array.reshape(shape))


def check(
    text: str, oracle: Callable[..., Any], alike: Callable[[int, int], bool] | None = None, **lists: list[Any]
) -> None:
    """Compare with `oracle(value of a lane for each register)`: results as words or truths."""
    count = len(next(iter(lists.values()))) // 4 * 4
    lists = {name: values[:count] for name, values in lists.items()}
    expected = []
    for lane in zip(*lists.values()):
        found = oracle(*lane)
        expected.append(found if isinstance(found, tuple) else (found,))
    for how, registers, flat in shapes(lists):
        compare(text, how, compute(text, registers), expected, list(zip(*lists.values())), flat, alike)
    for lane in list(range(0, count, max(1, count // 8))):  # the same in every thread
        alone = {name: one_for_all(values[lane]) for name, values in lists.items()}
        compare(
            text,
            "shared",
            compute(text, alone),
            [expected[lane]],
            [tuple(v[lane] for v in lists.values())],
            np.ravel,
            alike,
        )


def one_for_all(value: Any) -> Any:
    return value if isinstance(value, bool) else (value + 2**31) % 2**32 - 2**31


def compare(
    text: str,
    how: str,
    results: list[Any],
    expected: list[tuple[Any, ...]],
    inputs: list[Any],
    flat: Callable[[np.ndarray], np.ndarray],
    alike: Callable[[int, int], bool] | None,
) -> None:
    """Each result of each lane."""
    assert len(results) == len(expected[0]), f"{text} gives {len(results)} results"
    for place, result in enumerate(results):
        if isinstance(result, (bool, Part)):
            found = [bool(x) for x in flat(to_bools(result))]
        else:
            whole = to_array(ints(result))
            assert (whole == whole.astype(np.int32)).all(), f"{text}, {how}: more than 32 bits"
            found = [int(x) & 0xFFFFFFFF for x in flat(whole)]
        for lane, value in enumerate(found):
            wanted = expected[lane][place]
            same = value == wanted or (alike is not None and alike(value, wanted))
            assert same, f"{text}, {how}: {value:#x}, not {wanted:#x}, of {[hex(x) for x in inputs[lane]]}"
