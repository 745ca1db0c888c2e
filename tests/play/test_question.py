"""A state of the playground is answered as index math in Python is; nothing of its text is executed."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memsim
from memsim.launch import Launch
from memsim.layout import Layout
from memsim.play.question import Question, answer, coordinates
from memsim.sketch import SharedArray, Thread

THREAD = Thread(Launch((1, 1, 1), (8, 4, 2), 0), np.zeros(1, np.int64))
Expression = tuple[str, Callable[[int, int, int], int]]


def combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def both(sign: str) -> st.SearchStrategy[Expression]:
        def of(left: Expression, right: Expression) -> Expression:
            def value(x: int, y: int, z: int) -> int:
                a, b = left[1](x, y, z), right[1](x, y, z)
                return {"+": a + b, "-": a - b, "*": a * b, "^": a ^ b, "&": a & b, "|": a | b}[sign]

            return f"({left[0]} {sign} {right[0]})", value

        return st.builds(of, parts, parts)

    return st.sampled_from("+-*^&|").flatmap(both)


names: st.SearchStrategy[Expression] = st.sampled_from(
    [("x", lambda x, y, z: x), ("threadIdx.y", lambda x, y, z: y), ("z", lambda x, y, z: z)]
)
numbers: st.SearchStrategy[Expression] = st.integers(0, 99).map(lambda n: (str(n), lambda x, y, z: n))


@given(st.recursive(names | numbers, combined, max_leaves=6))
def test_index_math_is_integer_arithmetic_of_each_thread(expression: Expression) -> None:
    text, value = expression
    (found,) = coordinates(text, THREAD)
    expected = [value(rank % 8, rank // 8 % 4, rank // 32) for rank in range(64)]
    assert found.ravel().tolist() == expected


def test_the_answer_is_that_of_index_math_in_python() -> None:
    def tile(t: Thread) -> None:
        array = SharedArray("tile", (32, 32))
        array[t.y, t.x].store()
        t.sync()
        array[t.x, t.y ^ t.x].load()

    here = memsim.analyze(tile, block=(32, 32))
    found = answer(Question(load="x, y ^ x"))
    assert (found.wavefronts, found.sectors) == (here.wavefronts, here.sectors)
    assert "tile[x, y ^ x].load()" in found.page and "index math:2" not in found.verdict


def test_cures_are_layouts_that_were_counted() -> None:
    found = answer(Question())
    assert found.wavefronts == 32 + 1024
    assert {cure.kind: cure.layout for cure in found.cures} == {
        "swizzle": "Sw<5,0,5> o (32,32):(32,1)",
        "padding": "(32,32):(33,1)",
    }
    for cure in found.cures:
        assert Layout.parse(cure.layout).is_injective
        assert answer(Question(layout=cure.layout)).wavefronts == cure.wavefronts == 64
    assert answer(Question(layout="(32,32):(33,1)")).cures == ()
    assert answer(Question(layout="32x33")).wavefronts == 64
    halves = Question(layout="(64,64):(64,1)", element="f16", block="64x8", store="", load="x, y*8", vector=8)
    assert [cure.wavefronts * 8 for cure in answer(halves).cures] == [answer(halves).wavefronts] * 2


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ({"load": "x, __import__('os')"}, {"load": "x, rank / 32"}, "not integer arithmetic"),
        ({"load": "x, y.shape"}, {"load": "x, threadIdx.y"}, "not integer arithmetic"),
        ({"load": "x, 2 ** 9"}, {"load": "x, 2 * 9"}, "not integer arithmetic"),
        ({"load": "x, 1 if y else 0"}, {"load": "x, ~y & 31"}, "not integer arithmetic"),
        ({"load": "x, y <<"}, {"load": "x, y << 0"}, "integer arithmetic, as in"),
        ({"load": "x, y << x * 9"}, {"load": "x, 1 << x % 5"}, "a shift is by 0 to 31 bits"),
        ({"load": "x, y / x"}, {"load": "x, y / (x + 1)"}, "some thread divides by zero"),
        ({"load": "x, " + "-" * 300 + "y"}, {"load": "x, --y"}, "at most 200 characters"),
        ({"load": "x, y + 1"}, {"load": "x, (y + 1) % 32"}, "index 32 of axis 1 is outside of tile"),
        ({"layout": "(32,32"}, {"layout": "(32,32)"}, "expected , or"),
        ({"layout": "(9999,9999)"}, {"layout": "(64,64)"}, "more than 1,048,576"),
        (
            {"layout": "64x64 padded_shared<[0:+4]>"},
            {"layout": "64x64 padded_shared<[64:+4]>"},
            "not a layout",
        ),
        ({"layout": "(32,32):(-32,1)"}, {"layout": "(32,32):(32,1)"}, "before the first one"),
        ({"element": "(-1,)f4"}, {"element": "half"}, "there is no type"),
        ({"block": "64x64"}, {"block": "32,8"}, "at most 1024"),
        ({"block": "a"}, {"block": "32"}, "one to three extents"),
        ({"store": "", "load": ""}, {"store": ""}, "neither index is given"),
    ],
)
def test_a_field_that_cannot_be_read(wrong: dict[str, str], right: dict[str, str], message: str) -> None:
    with pytest.raises(memsim.MemsimError, match=message):
        answer(Question(**wrong))  # type: ignore[arg-type]
    assert json.dumps(answer(Question(**right)).verdict)  # type: ignore[arg-type]
