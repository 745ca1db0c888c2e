"""PTX lowered to machine instructions: what becomes of it, and what of instructions that are not known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memsim.api.running import run, trace
from memsim.argument_types import ArrayArg
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from memsim.isa.op import Flow
from memsim.isa.program import Program
from tests.ptx_front.loading import load_ptx

FRAME = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<6>;
    .shared .align 16 .b8 tile[4096];
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %rd2, %r1, 16, %rd1;
    {body}
    ret;
}}"""


def program(body: str) -> Program:
    kernel = load_ptx(FRAME.format(body=body))["k"]
    found: Program = kernel.executable.program
    return found


def names(body: str) -> list[str]:
    """What the body becomes, without the frame's first instructions and its end."""
    frame = len(program("").ops)
    return [op.form.name for op in program(body).ops[frame - 2 : -2]]


def test_an_instruction_becomes_one_or_a_few() -> None:
    assert names("add.s32 %r2, %r1, 3;") == ["IADD3"]
    assert names("mul.wide.s32 %rd3, %r1, 4;") == ["IMAD.WIDE"]
    assert names("add.s64 %rd3, %rd1, 4096;") == ["IADD3.64"]
    assert names("setp.lt.s64 %p1, %rd1, 3;") == ["ISETP.LT.U32.AND", "ISETP.LT.AND.EX"]
    assert names("and.b64 %rd3, %rd1, 15;") == ["LOP3.LUT", "LOP3.LUT"]
    assert names("div.rn.f32 %f1, %f2, %f3;") == ["FDIV"]
    assert names("membar.gl;") == []


def test_elements_of_a_vector_lie_in_a_row_and_need_no_moves() -> None:
    assert names("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];") == ["LDG.E.128"]
    again = "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2]; ld.global.v4.f32 {%f4, %f3, %f2, %f1}, [%rd2];"
    assert names(again) == ["LDG.E.128", "LDG.E.128", "MOV", "MOV", "MOV", "MOV"]


def test_lanes_that_leave_a_loop_are_told_in_front_of_it() -> None:
    body = """mov.u32 %r2, 0;
    L: add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r1; @%p1 bra L;
    st.global.u32 [%rd2], %r2;"""
    ops = program(body).ops
    (told,) = (op.index for op in ops if op.flow is Flow.SET_BARRIER)
    (branch,) = (op for op in ops if op.flow is Flow.BRANCH)
    (meets,) = (op.index for op in ops if op.flow is Flow.WAIT_BARRIER)
    assert branch.targets == (told + 1,)  # behind it: lanes are told once
    assert meets == branch.index + 1
    found = trace(load_ptx(FRAME.format(body=body))["k"], 1, 32, [ArrayArg((128,), "int32")])
    assert [(site.op, site.instructions) for site in found.sites] == [("store", 1)]


def test_a_branch_to_the_last_return_parts_nobody() -> None:
    body = "setp.lt.s32 %p1, %r1, 7; @%p1 bra END; st.global.u32 [%rd2], %r1; END:"
    assert not any(op.flow is Flow.SET_BARRIER for op in program(body).ops)


@pytest.mark.parametrize(
    ("unknown", "spaces"),
    [
        ("vmad.s32.s32.s32 %r2, %r1, %r1, %r1;", set()),
        ("st.async.shared::cluster.b32 [%r1], %r1, [%r1];", {"shared"}),
        ("frobnicate.global [%rd1], %r1;", {"global"}),
        ("frobnicate [%rd1], %r1;", {"generic"}),
        ("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r1], {%f1, %f2}, %r1;", {"shared"}),
    ],
)
def test_an_instruction_that_is_not_known_may_write_what_it_names(unknown: str, spaces: set[str]) -> None:
    (op,) = (op for op in program(unknown).ops if op.form.opcode.startswith("?"))
    assert op.name == unknown.split()[0]
    assert {space for kind, space in op.touches if kind == "store"} == spaces


def test_what_it_writes_is_unknown_and_named() -> None:
    body = "vmad.s32.s32.s32 %r2, %r1, %r1, %r1; st.global.u32 [%rd2], %r2;"
    kernel = load_ptx(FRAME.format(body=body))["k"]
    with pytest.raises(MemsimError, match=r"vmad.s32.s32.s32 is not executed by the emulator \(PTX:11\)"):
        run(kernel, 1, 32, [np.zeros(128, np.int32)])
    run(
        load_ptx(FRAME.format(body=body.replace("vmad.s32.s32.s32", "mad.lo.s32")))["k"],
        1,
        32,
        [ArrayArg((128,))],
    )


def test_ptx_without_line_information_is_its_own_source(tmp_path: Path) -> None:
    text = FRAME.format(body="st.shared.u32\t[tile], %r1;")
    (tmp_path / "k.ptx").write_text(text)
    named = f'{text}\n.file 1 "gone.cu"\n'
    launch = (1, 32, [ArrayArg((128,))])
    for source, file, code in (
        (tmp_path / "k.ptx", str(tmp_path / "k.ptx"), "st.shared.u32\t[tile], %r1;"),
        (text, "PTX", "st.shared.u32\t[tile], %r1;"),
        (named, "PTX", ""),
    ):
        (site,) = analyze(load_ptx(source)["k"], *launch).sites
        assert (site.file, site.line, site.source) == (file, 11, code)


def test_shared_arrays_have_their_names_and_places() -> None:
    body = "shl.b32 %r2, %r1, 2; mov.u32 %r3, tile; add.s32 %r3, %r3, %r2; st.shared.u32 [%r3+256], %r1;"
    found = trace(load_ptx(FRAME.format(body=body))["k"], 1, 32, [ArrayArg((128,))])
    (site,) = found.sites
    assert (site.array, site.line, site.instruction) == ("tile", 11, "st.shared.u32")
    assert found.addresses[0].tolist() == [256 + 4 * lane for lane in range(32)]
