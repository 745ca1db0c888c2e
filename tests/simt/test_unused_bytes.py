"""Bytes of a word that nobody uses: a kernel that stores bytes and loads words around them is certain."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.analysis import Analysis
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from memsim.sass.decode import decode
from memsim.simt.unused_parts import with_unused_bytes
from tests.simt.cuda import kernels_of
from tests.simt.listings import listing

#: What is stored, and where: each thread stores one piece of a word of its own.
BYTE, HALF = "unsigned char", "unsigned short"
#: (type of a piece, its number in the word, what the thread makes of the word w)
CERTAIN = {
    "masked": (BYTE, 0, "o[w & 0xff] = 1;"),
    "shifted": (HALF, 1, "o[w >> 16] = 1;"),
    "shifted_and_masked": (BYTE, 2, "o[(w >> 16 & 63) * 2] = 1;"),
    "set": (BYTE, 0, "o[(w | 0xffffff00) & 0x3ff] = 1;"),
    "picked": (BYTE, 3, "o[__byte_perm(w, 0, 0x4443)] = 1;"),
    "tested": (BYTE, 2, "if (w & 0x100000) o[t * 2] = 1;"),
}
UNCERTAIN = {
    "a_bit_more": (BYTE, 0, "o[w & 0x1ff] = 1;"),
    "shifted_less": (HALF, 1, "o[w >> 15] = 1;"),
    "added": (BYTE, 3, "o[w + 0x00fffff1 >> 24] = 1;"),  # with a carry of the bytes below
    "a_bit_of_another": (BYTE, 2, "if (w & 0x1000000) o[t * 2] = 1;"),
    "whole": (BYTE, 0, "o[w % 251] = 1;"),
}


def analysis(name: str, clears: bool = False) -> Analysis:
    text = "\n".join(
        f"""
extern "C" __global__ void {one}(int *o, int clears) {{
    int t = threadIdx.x;
    __shared__ unsigned s[64];
    if (clears) {{ s[t] = 0; __syncthreads(); }}
    (({kind} *)s)[t * (4 / sizeof({kind})) + {piece}] = t;
    __syncthreads();
    unsigned w = *(volatile unsigned *)&s[t];
    {body}
}}"""
        for one, (kind, piece, body) in (CERTAIN | UNCERTAIN).items()
    )
    return analyze(kernels_of(text, "sass")[name], 1, 64, [np.zeros(1 << 17, np.int32), int(clears)])


@pytest.mark.parametrize("name", CERTAIN)
def test_bytes_that_are_masked_off_may_be_unknown(name: str) -> None:
    found, cleared = (analysis(name, clears).sites[-1] for clears in (False, True))
    assert (found.space, found.op, found.unresolved) == ("global", "store", None)
    assert found.sectors and (found.requests, found.sectors) == (cleared.requests, cleared.sectors)


@pytest.mark.parametrize("name", UNCERTAIN)
def test_bytes_on_which_anything_depends_may_not(name: str) -> None:
    cleared = analysis(name, True)
    assert all(row.unresolved is None for row in cleared.sites)
    try:
        found = analysis(name)
    except MemsimError as error:
        assert "never written" in str(error)
    else:
        assert any("never written" in (row.unresolved or "") for row in found.sites)


LOOP = """
    STS.U8 [R1], R2
    LDS R4, [R1]
    LOP3.LUT R5, R4, 0xff, RZ, 0xc0, !PT
    {more}
    EXIT
"""


@pytest.mark.parametrize(
    ("more", "unused"),
    [
        ("STG.E [R2.64], R5", (0xFFFFFF00,)),
        ("SHF.R.U32.HI R6, RZ, 0x18, R4\n    IADD3 R5, R5, R6, RZ\n    STG.E [R2.64], R5", (0x00FFFF00,)),
        ("STG.E [R2.64], R4", (0,)),
        ("LDG.E R5, [R4.64]", (0,)),
        ("SHF.R.U32.HI R6, RZ, R5, R4", (0,)),  # by as many bits as it says
        ("SHF.R.U32.HI R6, RZ, 0x18, R4", (0xFFFFFFFF,)),  # which nobody reads
        ("SHF.R.U32.HI R6, RZ, 0x18, R4\n    STG.E [R2.64], R6", (0x00FFFFFF,)),
        ("@P0 LOP3.LUT R4, R4, 0xff00, RZ, 0xc0, !PT\n    STG.E [R2.64], R4", (0,)),
    ],
)
def test_which_bytes_of_a_load_are_unused(more: str, unused: tuple[int, ...]) -> None:
    program = with_unused_bytes(decode(listing(LOOP.format(more=more))))
    assert program.ops[1].unused == unused


@pytest.mark.parametrize(("after", "unused"), [("NOP", (0xFFFFFFFF,)), ("STG.E [R2.64], R4", (0xFFFF00FF,))])
def test_bits_that_only_come_back_in_a_loop_are_unused(after: str, unused: tuple[int, ...]) -> None:
    circle = f".L_x_0:\n    LOP3.LUT R4, R4, 0xff00, RZ, 0xc0, !PT\n    @P0 BRA `(.L_x_0)\n    {after}"
    program = with_unused_bytes(decode(listing(LOOP.format(more=circle).replace("R5, R4", "RZ, R4"))))
    assert program.ops[1].unused == unused


def test_each_instruction_is_gone_over_once_on_however_many_ways_it_is_met() -> None:
    # Bytes 1, 0, 0, 1 of what was there, by way of two registers each time.
    step = "PRMT R5, R4, 0x2301, RZ\n    PRMT R6, R4, 0x1032, RZ\n    PRMT R4, R5, 0x7610, R6"
    more = "\n    ".join([step] * 60 + ["STG.E [R2.64], R4"])
    program = with_unused_bytes(decode(listing(LOOP.format(more=more))))
    assert program.ops[1].unused == (0xFFFF0000,)


def test_only_where_pieces_of_words_are_stored_is_it_asked() -> None:
    program = decode(listing(LOOP.replace("STS.U8", "STS").format(more="NOP")))
    assert with_unused_bytes(program) is program
