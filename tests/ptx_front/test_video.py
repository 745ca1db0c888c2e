"""Video instructions and saturated sums: what the document says, and what ptxas makes of them."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from memsim.api.loading import Module, load
from memsim.api.running import run
from memsim.compile.toolkit import find_tool
from memsim.errors import MemsimError
from tests.ptx_front.loading import load_ptx

HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"
KERNEL = """
.visible .entry {name}(.param .u64 out, .param .u64 in)
{{
    .reg .b32 %r<2>, %a, %b, %c, %d; .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
    cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, %tid.x; mad.wide.u32 %rd5, %r1, 4, %rd3; mad.wide.u32 %rd6, %r1, 12, %rd4;
    ld.global.u32 %a, [%rd6]; ld.global.u32 %b, [%rd6+4]; ld.global.u32 %c, [%rd6+8];
    {body}
    st.global.u32 [%rd5], %d;
    ret;
}}"""

#: Instruction, a, b and c, and the result.
RESULTS = [
    ("vadd.s32.u32.s32 %d, %a.b3, %b.h0;", 0xFF000000, 0x8000, 0, 0xFFFF80FF),
    ("vadd.s32.s32.s32.sat %d, %a, %b;", 0x7FFFFFFF, 1, 0, 0x7FFFFFFF),
    ("add.sat.s32 %d, %a, %b;", 0x80000000, 0xFFFFFFFF, 0, 0x80000000),
    ("add.sat.s32 %d, %a, 5;", 0x7FFFFFFE, 0, 0, 0x7FFFFFFF),
    ("sub.sat.s32 %d, %a, %b;", 5, 0xFFFFFFFF, 0, 6),
    ("sub.sat.s32 %d, %a, %b;", 0, 0x80000000, 0, 0x7FFFFFFF),
    ("vsub.u32.u32.u32.add %d, %a.b0, %b.b0, %c;", 1, 2, 5, 4),
    ("vabsdiff.u32.s32.s32 %d, %a, %b;", 0x80000000, 0x7FFFFFFF, 0, 0xFFFFFFFF),
    ("vmin.s32.s32.u32 %d, %a.b0, %b.b0;", 0xFF, 0xFF, 0, 0xFFFFFFFF),
    ("vmax.s32.s32.u32 %d.b2, %a.b0, %b.b0, %c;", 0xFF, 0xFE, 0x11223344, 0x11FE3344),
    ("vshl.u32.u32.u32.clamp %d, %a, %b;", 1, 33, 0, 0),
    ("vshl.u32.u32.u32.wrap %d, %a, %b;", 1, 33, 0, 2),
    ("vshr.s32.s32.u32.clamp %d, %a, %b;", 0x80000000, 99, 0, 0xFFFFFFFF),
    ("vset.s32.u32.lt.add %d, %a, %b, %c;", 0xFFFFFFFF, 0, 7, 8),
    ("vadd2.s32.s32.s32.sat %d, %a, %b, %c;", 0x7FFF8000, 0x0001FFFF, 0, 0x7FFF8000),
    ("vadd2.u32.u32.u32 %d.h1, %a.h00, %b.h32, %c;", 5, 0x00070001, 0x11223344, 0x000C3344),
    ("vsub2.s32.s32.s32.add %d, %a, %b, %c;", 0x00030004, 0x00010001, 10, 15),
    ("vavrg2.s32.s32.s32 %d, %a, %b, %c;", 0x0003FFFD, 0x00040000, 0, 0x0004FFFE),
    ("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", 0x01020304, 0x04030201, 100, 108),
    ("vabsdiff4.u32.s32.s32 %d, %a, %b, %c;", 0x80000102, 0x7F010102, 0, 0xFF010000),
    ("vmin4.u32.u32.u32 %d.b20, %a, %b, %c;", 0x01020304, 0x04030201, 0xAABBCCDD, 0xAA02CC01),
    ("vmax4.s32.s32.s32 %d, %a.b0123, %b.b7777, %c;", 0x01020304, 0x02000000, 0, 0x04030202),
    ("vset4.u32.u32.ge %d, %a, %b, %c;", 0x01020304, 0x04030201, 0, 0x00000101),
]
#: Not in the document, or ptxas 13.0 computes something else than it says.
REFUSED = [
    "add.sat.u32 %d, %a, %b;",
    "vadd.u32.u32.u32.max %d, %a, %b, %c;",
    "vset.s32.s32.ge.min %d, %a, %b, %c;",
    "vadd.s32.s32.s32.sat %d.b1, %a, %b, %c;",
    "vadd.u32.u32.u32.sat %d, %a.h1, %b;",
    "vadd.u32.u32.u32 %d.h1, %a, %b, %c;",
    "vadd2.s32.s32.s32 %d, %a.b10, %b, %c;",
]
SIGNS = ("s32", "u32")


def random_forms(count: int) -> list[str]:
    """Forms that are executed: with any types, selections and masks."""
    pick = random.Random(3).choice
    parts = ["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"]
    found: list[str] = []
    while len(found) < count:
        types = ".".join(pick(SIGNS) for _ in range(3))
        verb = pick(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"))
        letter, places = pick((("h", 2), ("b", 4)))
        if verb != "vavrg" and pick((True, False)):
            a, b = pick(parts), pick(parts)
            to, more = pick((("", ""), (".b1", ", %c"), (".h0", ", %c"), ("", ", %c")))
            found.append(f"{verb}.{types}{'.add' * (bool(more) and not to)} %d{to}, %a{a}, %b{b}{more};")
            continue
        a, b = ("." + letter + "".join(str(pick(range(2 * places))) for _ in range(places)) for _ in "ab")
        mask = pick(("", f".{letter}1", f".{letter}10"))
        found.append(f"{verb}{places}.{types}{pick(('', '.sat', '.add'))} %d{mask}, %a{a}, %b{b}, %c;")
    return found


FORMS = [*(text for text, *_ in RESULTS), *random_forms(40)]


@cache
def text() -> str:
    """A kernel for each form."""
    return HEAD + "".join(KERNEL.format(name=f"k{at}", body=form) for at, form in enumerate(FORMS))


@cache
def ptx() -> Module:
    return load_ptx(text())


def result(module: Module, name: str, words: np.ndarray) -> np.ndarray:
    out = np.zeros(len(words) // 3, np.uint32)
    run(module[name], 1, len(out), [out, words])
    return out


@pytest.mark.parametrize("at", range(len(RESULTS)), ids=[text.split()[0] for text, *_ in RESULTS])
def test_the_result_is_that_of_the_document(at: int) -> None:
    _, *words, expected = RESULTS[at]
    assert hex(result(ptx(), f"k{at}", np.array(words, np.uint32))[0]) == hex(expected)


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_certain_is_not_executed(form: str) -> None:
    kernel = load_ptx(HEAD + KERNEL.format(name="k", body=form))["k"]
    with pytest.raises(MemsimError, match="is not executed by the emulator"):
        run(kernel, 1, 1, [np.zeros(1, np.uint32), np.zeros(3, np.uint32)])


@pytest.mark.slow
@pytest.mark.skipif(find_tool("ptxas") is None, reason="needs ptxas")
def test_machine_code_computes_the_same() -> None:
    machine = load(text(), arch="sm_90")
    rng = np.random.default_rng(1)
    edges = np.array([0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 32) - 1], np.uint32)
    words = rng.integers(0, 1 << 32, 3 * 256, np.uint32)
    words = np.where(rng.random(words.size) < 0.4, rng.choice(edges, words.size), words)
    for at, form in enumerate(FORMS):
        found, expected = (result(module, f"k{at}", words).tolist() for module in (ptx(), machine))
        assert found == expected, form
