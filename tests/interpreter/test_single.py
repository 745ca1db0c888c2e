"""Each form of an instruction computes the same by native/interpreter.c as in the emulator."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memsim.driver.native_build import libraries
from memsim.interpreter.lowered_kernel import ACCESS, OPERATION
from memsim.interpreter.lowered_op import NotLowered
from memsim.interpreter.native_launch import PLAIN, NativeInterpreter, Structure
from memsim.isa.matrix import FragmentLayout
from memsim.isa.op import PREDICATE, SLOTS, Effect, slots_of
from memsim.isa.readers import Binder
from memsim.sass.decode import decode, meaning_of_text
from memsim.state.parts import Part
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array
from tests.interpreter.single import is_truth, run_one
from tests.isa.harness import DOUBLES, HALVES, SINGLES, WORDS, Lanes
from tests.simt.listings import listing

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler"
)
SAMPLES = (Path(__file__).parents[1] / "isa" / "samples.txt").read_text().splitlines()
#: What has no operation: 8-bit floats.
NOT_LOWERED = re.compile(r"F2FP\..*E[45]M[23]")
#: Of two NaNs that are operands the processor propagates one or the other, and makes it quiet or not.
PROPAGATES = re.compile(r"U?[FD](ADD|MUL|FMA)\b|FRND|DMMA")
#: What depends on the launch, or on barriers.
OF_THE_LAUNCH = {"S2R", "S2UR", "CS2R", "CS2UR", "LEPC", "B2R", "BMOV"}


@pytest.fixture(scope="module", params=["best", "plain"])
def interpreter(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NativeInterpreter:
    """The library for this processor, and the one for all."""
    if request.param == "best":
        return NativeInterpreter(libraries())
    folder = tmp_path_factory.mktemp("plain")
    (folder / PLAIN).symlink_to(libraries() / PLAIN)
    return NativeInterpreter(folder)


def is_of_values(text: str) -> bool:
    meaning = meaning_of_text(text)
    computes = meaning.effect in (Effect.ALU, Effect.LANES) and meaning.definition.build is not None
    return computes and "c[" not in text and meaning.form.opcode not in OF_THE_LAUNCH


def words_of(text: str, chance: random.Random) -> np.ndarray:
    """Of the kinds that instructions meet: edges of integers and floats of each size, and random bits."""
    pools = [WORDS, SINGLES, [one >> 32 for one in DOUBLES] + [one & 0xFFFFFFFF for one in DOUBLES]]
    halves = [chance.choice(HALVES) | chance.choice(HALVES) << 16 for _ in range(16)]
    pools += [halves, [chance.getrandbits(32) for _ in range(32)], [chance.randrange(64) for _ in range(16)]]
    return np.array([chance.choice(chance.choice(pools)) for _ in range(32)], np.uint32)


def emulated(text: str, given: dict[int, np.ndarray]) -> dict[int, np.ndarray] | None:
    """What the emulator computes: words by slot; None if it does not execute the form."""
    meaning = meaning_of_text(text)
    registers: list[Any] = [None] * (SLOTS + 2)
    for slot, words in given.items():
        signed = words.astype(np.int32).astype(np.int64)[None, :]
        registers[slot] = from_bools(words[None, :] != 0) if is_truth(slot) else from_array(signed)
    op = decode(listing(text)).ops[0]
    with np.errstate(all="ignore"):
        run = meaning.bind(Binder({}))
        found = run(registers, Lanes(32)) if op.effect is Effect.LANES else run(registers)
    results = list(found) if len(meaning.targets) != 1 else [found]
    words: dict[int, np.ndarray] = {}
    for slot, value in zip(meaning.targets, results):
        if slot is None:
            continue
        if isinstance(value, (bool, Part)):
            array = to_bools(value).astype(np.uint32)
        else:
            array = to_array(ints(value)).astype(np.int32).view(np.uint32)
        words[slot] = np.broadcast_to(array, (1, 32))[0]
    return words


def given_for(text: str, seed: int) -> dict[int, np.ndarray]:
    op, chance = decode(listing(text)).ops[0], random.Random(f"{text} {seed}")
    given = {}
    for slot in slots_of(op.reads):
        if is_truth(slot):
            given[slot] = np.array([chance.getrandbits(1) for _ in range(32)], np.uint32)
        elif slot >= PREDICATE:
            given[slot] = np.full(32, chance.getrandbits(32), np.uint32)
        elif slot >= 256:
            given[slot] = np.full(32, words_of(text, chance)[0], np.uint32)
        else:
            given[slot] = words_of(text, chance)
    return given


def test_structures_are_as_large_as_in_c(interpreter: NativeInterpreter) -> None:
    ours = OPERATION.itemsize, ACCESS.itemsize, ctypes.sizeof(Structure)
    assert ours == tuple(map(interpreter.sizes_in_c, range(3)))


def nan_in_both(text: str, *results: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """By slot the lanes in which all results of such an instruction are NaNs."""
    slots, size = sorted(results[0]), min(2, len(results[0]))  # words of a number
    if PROPAGATES.match(text) is None:
        return dict.fromkeys(slots, np.zeros(32, bool))
    numbers = (
        np.ascontiguousarray(np.stack([words[slot] for slot in slots], axis=1)).view(f"f{4 * size}")
        for words in results
    )
    found = np.logical_and(*(np.isnan(number) for number in numbers))
    return {slot: found[:, place // size] for place, slot in enumerate(slots)}


def assert_same(interpreter: NativeInterpreter, text: str, given: dict[int, np.ndarray]) -> None:
    expected = emulated(text, given)
    assert expected is not None
    found = run_one(interpreter, text, given)
    both_nan = nan_in_both(text, expected, found)
    for slot, words in expected.items():
        same = (found[slot] == words) | both_nan[slot]
        assert same.all(), (slot, [hex(one) for one in found[slot] ^ words])


@pytest.mark.parametrize("text", [one for one in SAMPLES if is_of_values(one)])
def test_a_form_computes_the_same(text: str, interpreter: NativeInterpreter) -> None:
    if NOT_LOWERED.match(text):
        with pytest.raises(NotLowered):
            run_one(interpreter, text, given_for(text, 0))
        return
    for seed in range(6):
        assert_same(interpreter, text, given_for(text, seed))


def words_of_numbers(numbers: np.ndarray, name: str) -> np.ndarray:
    """32 words of registers that hold some of these: of a type of two words, the upper ones."""
    if name == "F64":
        return numbers[:32].astype(np.float64).view(np.uint32)[1::2]
    if name == "F16":
        return numbers[:64].astype(np.float16).view(np.uint32)
    words = numbers[:32].astype(np.float32).view(np.uint32)
    return words >> 16 | words & 0xFFFF0000 if name == "BF16" else words


@pytest.mark.parametrize("spread", [0, 3, 12])
@pytest.mark.parametrize("text", [one for one in SAMPLES if re.match("[HD]MMA", one)])
def test_products_of_numbers(text: str, spread: int, interpreter: NativeInterpreter) -> None:
    """Of similar ones, and of those of which some are cut; with zeros of both signs."""
    layout = FragmentLayout(meaning_of_text(text).form)
    first = getattr(meaning_of_text(text).form.operands[-1], "slot", None)
    rng = np.random.default_rng(spread)
    for _ in range(5):
        given = given_for(text, 0)
        for slot in given:
            numbers = rng.standard_normal(64) * 2.0 ** rng.integers(-spread, spread + 1, 64) / 8
            numbers[rng.random(64) < 0.2] *= 0
            is_addend = first is not None and first <= slot < first + 8
            given[slot] = words_of_numbers(numbers, layout.result if is_addend else layout.a)
        assert_same(interpreter, text, given)
        given = {slot: words & (0x80008000 if layout.a != "F64" else 0) for slot, words in given.items()}
        assert_same(interpreter, text, given)
