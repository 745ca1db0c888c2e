"""The lines of kernels that are written in Python: the user's own, not those of what was inlined."""

from __future__ import annotations

from pathlib import Path

import pytest

from memsim.api.loading import from_cubin
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.compile.compilers import run_nvrtc
from memsim.compile.cuda_source import compile_cubin
from memsim.compile.shown_sources import own_frames
from memsim.errors import MemsimError
from memsim.sass.listing import by_itself, own_text, read_listing
from memsim.sass.machine_code import FEW_KERNELS, assembly_places
from memsim.views.analyze.terminal import render

USER = ("/home/me/kernel.py", 30)
HELPER = ("/home/me/helpers.py", 7)
SUM = ("/env/lib/python3.11/site-packages/triton/language/standard.py", 293)
HALF = ("/usr/local/cuda-13.0/bin/../targets/x86_64-linux/include/cuda_fp16.hpp", 264)
NATIVE = ("C:\\env\\Lib\\site-packages\\warp\\native\\tile.h", 900)


@pytest.mark.parametrize(
    ("chain", "own"),
    [
        ([USER], [USER]),
        ([SUM, USER], [USER]),
        ([SUM, SUM, HELPER, USER], [HELPER, USER]),
        ([NATIVE, USER], [USER]),
        ([HALF, USER], [USER]),
        ([("/usr/include/cuda_fp16.hpp", 264), USER], [USER]),
        ([("/home/me/include/cuda_fp16.hpp", 264), USER], [("/home/me/include/cuda_fp16.hpp", 264), USER]),
        ([SUM, NATIVE], [SUM, NATIVE]),  # nothing of the user's own: better than nothing
        ([("/home/me/triton/kernel.py", 3), USER], [("/home/me/triton/kernel.py", 3), USER]),
        ([("standard.py", 3)], [("standard.py", 3)]),
    ],
)
def test_the_innermost_frame_that_is_of_no_library(
    chain: list[tuple[str, int]], own: list[tuple[str, int]]
) -> None:
    assert own_frames(chain) == own


LISTING = """
	.section	.text.k,"ax",@progbits
	//## File "/x/triton/language/standard.py", line 293 inlined at "/home/me/kernel.py", line 30
	//## File "/home/me/kernel.py", line 30
	//## File ".nv_debug_ptx_txt", line 5
        /*0000*/                   SHFL.BFLY PT, R3, R2, 0x10, 0x1f ;
	//## File "/home/me/kernel.py", line 33
	//## File ".nv_debug_ptx_txt", line 12
        /*0010*/                   LDG.E.128 R4, desc[UR4][R10.64] ;
	//## File ".nv_debug_ptx_txt", line 20
        /*0020*/                   EXIT ;
"""


def test_a_listing_names_the_users_lines() -> None:
    lines = read_listing(LISTING)["k"].lines
    places = [(line.source.file, line.source.line) for line in lines if line.source]
    assert places == [("/home/me/kernel.py", 30), ("/home/me/kernel.py", 33), ("/home/me/kernel.py", 33)]


@pytest.mark.parametrize("number", ["9" * 5000, "", "x"])
def test_what_is_no_line_number_is_left_out(number: str) -> None:
    text = LISTING.replace('kernel.py", line 30', f'kernel.py", line {number}').replace(
        "line 12", f"line {number}"
    )
    assert text != LISTING
    places = [line.source.line for line in read_listing(text)["k"].lines if line.source]
    assert places == [293, 33, 33]


@pytest.mark.parametrize("text", ["", "@P0", "@!P0 ", "0x10", "@P0 @P1 EXIT"])
def test_a_line_without_an_opcode_is_damaged(text: str) -> None:
    assert read_listing(LISTING.replace("EXIT", "@P0 EXIT"))["k"].lines[2].guard == "P0"
    with pytest.raises(MemsimError, match="damaged at its line 11: the opcode is missing"):
        read_listing(LISTING.replace("EXIT", text))


def test_what_looks_like_a_register_in_a_path_or_a_name_is_none() -> None:
    """Only operands are judged: a folder of the user R100001 and a function R100002 are good."""
    text = LISTING.replace("/home/me/", "/home/R100001+x/").replace("EXIT", "CALL.REL.NOINC `(R100002)")
    lines = read_listing(text)["k"].lines
    assert [line.source.file for line in lines if line.source][1:] == ["/home/R100001+x/kernel.py"] * 2
    with pytest.raises(MemsimError, match="damaged at its line 9: 'R1000' does not exist"):
        read_listing(text.replace("R10.64", "R1000.64"))


def test_what_the_ptx_knows_better_wins_for_its_lines_only() -> None:
    lines = read_listing(LISTING, places={12: ("/home/me/kernel.py", 31)})["k"].lines
    assert [line.source.line for line in lines if line.source] == [30, 31, 33]


PTX = """.version 8.4
.visible .entry k()
{
	.loc	1 9 48                          // kernel.py:9:48
	// begin inline asm
	.loc	1 9 48                          // kernel.py:9:48
	mov.u32 %r5, 0x0;
	.loc	1 10 48                         // kernel.py:10:48
	mov.u32 %r6, 0x0;
	@%p1 ld.global.v2.b32 { %r5, %r6 }, [ %rd2 + 0 ];

	// end inline asm
	.loc	1 12 5
	add.s32 %r1, %r2, %r3;
	// begin inline asm
	st.global.b32 [ %rd3 + 0 ], { %r9 };
	// end inline asm
	// begin inline asm
	.loc	2 4 1
	mov.u32 %r7, 0x0;
	// end inline asm
}
	.file	1 "/home/me/kernel.py"
	.file	2 "/home/me/other.py"
"""


def test_all_of_an_inline_assembly_text_is_of_its_first_line() -> None:
    numbered = dict(enumerate(PTX.splitlines(), 1))
    found = {numbered[line].strip(): place for line, place in assembly_places(PTX).items() if numbered[line]}
    wrong = ("mov.u32 %r6, 0x0;", "@%p1 ld.global.v2.b32 { %r5, %r6 }, [ %rd2 + 0 ];")
    assert {text: found[text] for text in wrong} == dict.fromkeys(wrong, ("/home/me/kernel.py", 9))
    assert not set(found) - {*wrong, "// end inline asm"}  # the others' `.loc`s are true
    assert assembly_places("") == {}


def test_a_listing_without_lines_is_its_own_source() -> None:
    bare = "\n".join(row for row in LISTING.splitlines() if "##" not in row)
    listing = by_itself(read_listing(bare)["k"])
    assert [(line.source.file, line.source.line) for line in listing.lines if line.source] == [
        ("k.sass", 1),
        ("k.sass", 2),
        ("k.sass", 3),
    ]
    assert own_text(listing).splitlines()[1] == "LDG.E.128 R4, desc[UR4][R10.64]"
    with_lines = read_listing(LISTING)["k"]
    assert by_itself(with_lines) is with_lines


def test_code_without_lines_shows_its_instructions(tmp_path: Path) -> None:
    text = """
extern "C" __global__ void k(const float *x, float *y) {
    y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x * 2 + 64];
}
"""
    compiled = compile_cubin(text)
    assert compiled.cubin
    program = run_nvrtc(text, str(tmp_path / "k.cu"), [], "sm_90")
    assert program.cubin is not None
    found = analyze(from_cubin(program.cubin)["k"], 1, 32, [ArrayArg((128,)), ArrayArg((32,))])
    assert [(s.file, s.source.split()[0], s.sectors) for s in found.sites] == [
        ("k.sass", "LDG.E", 4),
        ("k.sass", "LDG.E", 8),
        ("k.sass", "STG.E", 4),
    ]
    told = render(found)
    assert "-lineinfo" in told and "lineinfo=True" in told
    named = analyze(from_cubin(compiled.cubin)["k"], 1, 32, [ArrayArg((128,)), ArrayArg((32,))])
    assert "-lineinfo" not in str(named) and {s.line for s in named.sites} == {3}


def test_instances_of_one_template_show_their_own_instructions(tmp_path: Path) -> None:
    """Their listings have one name, which is that of the template; of many kernels only one is read."""
    text = """
template <int N> __device__ void work(const float *x, float *y) {
    y[threadIdx.x] = N > 1 ? x[threadIdx.x] * N : x[threadIdx.x * 2 + 64] + 1;
}
template <int N> __global__ void k(const float *x, float *y) { work<N>(x, y); }
"""
    for count in (2, FEW_KERNELS + 1):
        instances = "".join(
            f"template __global__ void k<{n}>(const float *, float *);\n" for n in range(1, count + 1)
        )
        cubin = run_nvrtc(text + instances, str(tmp_path / "k.cu"), [], "sm_90").cubin
        assert cubin is not None
        module = from_cubin(cubin)
        assert len(module.kernels) == count
        for name, strides in (("k<1>", 2), ("k<2>", 1)):
            found = analyze(module[name], 1, 32, [ArrayArg((128,)), ArrayArg((32,))])
            shown = [(s.file, s.source.split()[0], s.sectors) for s in found.sites]
            assert shown == [("k.sass", "LDG.E", 4 * strides), ("k.sass", "STG.E", 4)]
