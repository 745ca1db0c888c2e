"""How what a form of an instruction computes depends on what it reads, as executing it on samples shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from memsim.isa.definitions import Bound, meaning_of
from memsim.isa.op import (
    PREDICATE,
    SLOTS,
    Constant,
    Form,
    Immediate,
    Operand,
    Predicate,
    Register,
    Symbolic,
    Unsupported,
    slots_of,
)
from memsim.isa.program import Op
from memsim.isa.readers import Binder, Registers
from memsim.state.poison import Poisoned
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array

#: What of a register or constant is read.
SIGNS = ("negated", "absolute", "inverted", "part")
#: Lanes on which an instruction is tried.
SAMPLES = 512
#: Of a word.
ALL_BITS = 0xFFFFFFFF


def with_numbered_registers(op: Op) -> tuple[Form, dict[int, tuple[Operand, int]]]:
    """The form with its n-th source from register 4n on, or in predicate register n; by slot, which word of
    which operand is there.

    So most instructions are alike, and constants are read from registers.
    """
    operands: list[Operand] = []
    words: dict[int, tuple[Operand, int]] = {}
    for _, one in op.meaning.results:
        if isinstance(one, (Register, Predicate)):
            operands.append(one if one.slot is None else replace(one, slot=0))
    for number, (token, one) in enumerate(op.meaning.sources):
        if one is None:
            continue
        if isinstance(one, Predicate) and one.slot is not None:
            first = PREDICATE + number
            operands.append(replace(one, slot=first))
        elif isinstance(one, (Constant, Symbolic)) or (isinstance(one, Register) and one.slot is not None):
            signs = {name: getattr(one, name) for name in SIGNS if hasattr(one, name)}
            first = 4 * number
            operands.append(Register(first, **signs))
        else:
            operands.append(one)
            words |= {slot: (Register(slot), 0) for slot in slots_of(token.slots(one))}
            continue
        words |= {first + more: (one, more) for more in range(token.span)}
    return replace(op.form, operands=tuple(operands)), words


@lru_cache(maxsize=1 << 12)
def are_copies(form: Form, slot: int) -> list[bool]:
    """Which of the predicates that a form computes are the one in a slot, which is all that it reads."""
    registers: Registers = [None] * SLOTS
    both = np.array([[False, True]])
    registers[slot] = from_bools(both)
    meaning = meaning_of(form)
    made = meaning.bind(Binder({}))(registers)
    values = [made] if len(meaning.targets) == 1 else made
    return [np.array_equal(np.broadcast_to(to_bools(value), both.shape), both) for value in values]


@dataclass
class Influence:
    """How a word that is computed depends on the words that are read, by their slots.

    factors: those that change it, and by what they are multiplied in a sum; None: it is none. carried: those
    that change the upper one of two words by what the sum in the lower one carries. known: so many of its
    lowest bits none of them changes.
    """

    factors: dict[int, int | None] = field(default_factory=dict)
    carried: set[int] = field(default_factory=set)
    known: int = 32


@lru_cache(maxsize=1 << 14)
def influences_of(
    form: Form, slots: tuple[int, ...], inputs: tuple[tuple[int, int], ...]
) -> list[Influence] | None:
    """How each word that a form computes from `slots` depends on the inputs: slots, and how many of their
    lowest bits are known. None if it cannot be executed.
    """
    chance = np.random.default_rng(0)
    numbers = (one.value for one in form.operands if isinstance(one, Immediate))
    immediates = [number & ALL_BITS for number in numbers if type(number) is int]
    shared = _samples(chance, immediates)
    samples = {  # in some lanes several words are equal
        slot: np.where(chance.random(SAMPLES) < 0.25, shared, _samples(chance, immediates)) for slot in slots
    }
    try:
        compute = meaning_of(form).bind(Binder({}))
        before = _words_of(form, compute, samples)
        found = [Influence() for _ in before]
        for slot, known in inputs:
            fixed = (1 << known) - 1
            moved = samples[slot] & fixed | _samples(chance, immediates) & (ALL_BITS & ~fixed)
            if slot >= PREDICATE:
                moved = samples[slot] ^ 1
            after = _words_of(form, compute, samples | {slot: moved})
            _compare(found, slot, known, moved - samples[slot], before, after)
    except (Unsupported, Poisoned):
        return None
    return found


@lru_cache(maxsize=1 << 12)
def bits_changed(form: Form, slots: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    """For each bit of a word, in `own` of the slots from which a form computes one word: which bits of that
    change with it.
    """
    chance = np.random.default_rng(0)
    samples = {slot: chance.integers(0, 1 << 32, SAMPLES) for slot in slots} | dict.fromkeys(
        own, chance.integers(0, 1 << 32, SAMPLES)
    )
    compute = meaning_of(form).bind(Binder({}))
    (before,) = _words_of(form, compute, samples)
    found = []
    for bit in range(32):
        (after,) = _words_of(form, compute, samples | {slot: samples[slot] ^ 1 << bit for slot in own})
        found.append(int(np.bitwise_or.reduce(before ^ after)))
    return tuple(found)


def _samples(chance: np.random.Generator, immediates: Sequence[int]) -> np.ndarray:
    """Words of all sizes and both signs, and those at which an instruction may turn."""
    numbers = chance.integers(0, 1 << 32, SAMPLES) >> chance.integers(0, 32, SAMPLES)
    numbers ^= -chance.integers(0, 2, SAMPLES)
    near = chance.choice([0, *immediates], SAMPLES) + chance.integers(-1, 2, SAMPLES)
    return np.where(chance.random(SAMPLES) < 0.25, near, numbers) & ALL_BITS


def _words_of(form: Form, compute: Bound, samples: Mapping[int, np.ndarray]) -> list[np.ndarray]:
    """The words of an instruction's results, unsigned."""
    registers: Registers = [None] * SLOTS
    for slot, words in samples.items():
        row = words[None]
        signed = row.astype(np.int32).astype(np.int64)
        registers[slot] = from_array(signed) if slot < PREDICATE else from_bools(row & 1 == 1)
    with np.errstate(all="ignore"):
        made = compute(registers)
    meaning = meaning_of(form)
    kinds = [token.kind for token, one in meaning.results if one is not None for _ in range(token.span)]
    values = [made] if len(meaning.targets) == 1 else made
    words_made = [value for value, kind in zip(values, kinds) if kind != "P"]
    return [np.broadcast_to(to_array(ints(value)) & ALL_BITS, (1, SAMPLES))[0] for value in words_made]


def _compare(
    found: list[Influence],
    slot: int,
    known: int,
    moves: np.ndarray,
    before: list[np.ndarray],
    after: list[np.ndarray],
) -> None:
    """Note how results change if the word in a slot does, by `moves`."""
    lower = after[0] - before[0] if found else moves
    for number, influence in enumerate(found):
        changes = after[number] - before[number]
        if not changes.any():
            continue
        bits = int(np.bitwise_or.reduce(after[number] ^ before[number]))
        influence.known = min(influence.known, (bits & -bits).bit_length() - 1)
        factor = found[0].factors.get(slot) if number else None
        pair = (changes << 32) + lower
        if factor is not None and np.array_equal(pair, moves * factor):
            influence.carried.add(slot)
        else:
            factor = None if slot >= PREDICATE else _factor(moves, changes, known)
        influence.factors[slot] = factor


def _factor(moves: np.ndarray, changes: np.ndarray, known: int) -> int | None:
    """By what moves of all but the `known` lowest bits are multiplied in the changes of a word; None if by no
    number. Only its own lowest bits matter.
    """
    size = 1 << 32 - known
    odd = np.flatnonzero(moves >> known & 1)
    if not len(odd):
        return None
    factor = int(changes[odd[0]] >> known) * pow(int(moves[odd[0]] >> known), -1, size) % size
    factor -= size if factor >= size // 2 else 0
    return factor if not ((moves * factor - changes) & ALL_BITS).any() else None
