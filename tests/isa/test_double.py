"""float64 instructions against fractions."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.isa.number_formats import double_of, from_double
from memsim.state.registers import ints, to_array
from tests.isa.harness import DOUBLES, check, compute, near, words
from tests.isa.oracle import F64, MODES, ORDER, decode, fused, is_nan, one, unsigned

ONE = one(F64)
A, B, C = (words(48, seed, DOUBLES, 64) + near(48, seed, ONE, 52) for seed in range(30, 33))


def halves(*numbers: list[int]) -> dict[str, list[int]]:
    """Pairs of registers R2, R4, R6."""
    found = {}
    for place, values in enumerate(numbers):
        found[f"R{2 * place + 2}"] = [unsigned(value) for value in values]
        found[f"R{2 * place + 3}"] = [value >> 32 for value in values]
    return found


def on_pairs(oracle):  # type: ignore[no-untyped-def]
    """An oracle on 64-bit numbers as one on words."""

    def run(*of_lane: int) -> tuple[int, int]:
        found = oracle(*(low | (high << 32) for low, high in zip(of_lane[::2], of_lane[1::2])))
        return unsigned(found), found >> 32

    return run


def alike(a: int, b: int) -> bool:
    """Words of NaN may differ; a high word tells that it is one."""
    return a & 0x7FF80000 == b & 0x7FF80000 == 0x7FF80000


@pytest.mark.parametrize("mode", MODES)
def test_arithmetic(mode: str) -> None:
    name = MODES[mode]
    numbers = [[x for x in values if not is_nan(x, F64)][:80] for values in (A, B, C)]
    numbers = [values[: min(map(len, numbers))] for values in numbers]
    finite = [lane for lane in zip(*numbers) if not is_nan(fused(*lane, F64), F64)]
    a, b, c = (list(values) for values in zip(*finite))
    check(
        f"DFMA{mode} R0, R2, R4, R6", on_pairs(lambda x, y, z: fused(x, y, z, F64, name)), **halves(a, b, c)
    )
    pairs = [lane for lane in zip(*numbers[:2]) if not is_nan(fused(lane[0], ONE, lane[1], F64), F64)]
    a, b = (list(values) for values in zip(*pairs))
    check(f"DADD{mode} R0, R2, R4", on_pairs(lambda x, y: fused(x, ONE, y, F64, name)), **halves(a, b))
    pairs = [lane for lane in zip(*numbers[:2]) if not is_nan(fused(*lane, None, F64), F64)]
    a, b = (list(values) for values in zip(*pairs))
    check(f"DMUL{mode} R0, R2, R4", on_pairs(lambda x, y: fused(x, y, None, F64, name)), **halves(a, b))


def test_nan_comes_out_of_nan() -> None:
    nan = 0x7FF8 << 48
    for text in ("DADD R0, R2, R4", "DMUL R0, R2, R4"):
        _, high = compute(text, {"R2": 0, "R3": nan >> 32, "R4": 0, "R5": ONE >> 32})
        assert is_nan((int(high) & 0xFFFFFFFF) << 32, F64)


@pytest.mark.parametrize("how", ["LT", "LE", "GT", "GE", "EQ", "NE", "LTU", "GTU", "NEU", "NUM", "NAN"])
def test_comparisons(how: str) -> None:
    def oracle(*of_lane: int) -> tuple[bool, bool]:
        a, b = (low | (high << 32) for low, high in zip(of_lane[::2], of_lane[1::2]))
        unordered = is_nan(a, F64) or is_nan(b, F64)
        if how in ("NUM", "NAN"):
            found = unordered == (how == "NAN")
        else:
            found = (
                how.endswith("U")
                if unordered
                else ORDER[how.removesuffix("U")](decode(a, F64)[1], decode(b, F64)[1])
            )
        return found, not found

    check(f"DSETP.{how}.AND P0, P1, R2, R4, PT", oracle, **halves(A, [*B[:48], *A[48:]]))


@pytest.mark.parametrize("how", ["MAX", "MIN"])
def test_which_operand_maximum_picks(how: str) -> None:
    def oracle(*of_lane: int) -> tuple[bool, bool]:
        a, b = (low | (high << 32) for low, high in zip(of_lane[::2], of_lane[1::2]))
        none_a, none_b = is_nan(a, F64), is_nan(b, F64)
        if none_a or none_b:
            return not none_a, none_a and none_b
        x, y = (-(w & ~F64.sign) if w & F64.sign else w + 1 for w in (a, b))
        return (x > y if how == "MAX" else x < y), False

    different = [lane for lane in zip(A, [*B[:48], *A[:48]]) if lane[0] != lane[1]]
    a, b = (list(values) for values in zip(*different))
    check(f"DSETP.{how}.AND P0, P1, R2, R4, PT", oracle, **halves(a, b))


@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (3, 1), (3, 64)])
def test_a_double_is_the_same_bits_in_two_registers(shape: tuple[int, int]) -> None:
    """Whether these hold integers or floats, of which a half may be any NaN."""
    bits = np.random.default_rng(5).integers(0, 1 << 64, shape, np.uint64)
    bits.flat[0] = 0x7FF00000_7F800001
    low, high = from_double(bits.view(np.float64))
    assert np.broadcast_to(double_of(low, high), shape).tobytes() == bits.tobytes()
    assert np.broadcast_to(double_of(ints(low), high), shape).tobytes() == bits.tobytes()
    assert (to_array(ints(low)).astype(np.uint32) == bits.astype(np.uint32)).all()
    assert (to_array(ints(high)).astype(np.uint32) == (bits >> np.uint64(32)).astype(np.uint32)).all()
