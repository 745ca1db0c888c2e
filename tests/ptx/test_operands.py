"""Every form of operand becomes its record."""

from __future__ import annotations

import math

import pytest

from memsim.ptx.program import (
    CallTarget,
    Negated,
    Operand,
    PtxAddress,
    PtxImmediate,
    PtxInstruction,
    PtxPair,
    PtxRegister,
    PtxSpecial,
    PtxSymbol,
    Selected,
    TextureAddress,
    Vector,
)
from tests.ptx.snippets import kernel, module, only, operands


def r(number: int) -> PtxRegister:
    return PtxRegister(f"%r{number}")


def p(number: int) -> PtxRegister:
    return PtxRegister(f"%p{number}")


def f(number: int) -> PtxRegister:
    return PtxRegister(f"%f{number}")


RD1 = PtxRegister("%rd1")
V = tuple(f(number) for number in (1, 2, 3, 4))

FORMS: list[tuple[str, tuple[Operand, ...]]] = [
    ("ret;", ()),
    ("add.s32 %r1, %r2, %r3;", (r(1), r(2), r(3))),
    ("add.s32 %r1,%r2 , 5;", (r(1), r(2), PtxImmediate(5))),
    ("add.s32 %r1, %r2, -5;", (r(1), r(2), PtxImmediate(-5))),
    ("add.s32 %r1, %r2, 0x7fU;", (r(1), r(2), PtxImmediate(127))),
    ("add.s32 %r1, %r2, WARP_SZ;", (r(1), r(2), PtxImmediate(32))),
    ("mov.f32 %f1, 0f3FC00000;", (f(1), PtxImmediate(1.5))),
    ("mov.f32 %f1, 0F80000000;", (f(1), PtxImmediate(-0.0))),
    ("mov.f64 %rd1, 0d3FF8000000000000;", (RD1, PtxImmediate(1.5))),
    ("mov.u32 %r1, %tid.x;", (r(1), PtxSpecial("%tid.x"))),
    ("mov.u32 %r1, %cluster_nctaid.z;", (r(1), PtxSpecial("%cluster_nctaid.z"))),
    ("mov.u32 %r1, %clock_hi;", (r(1), PtxSpecial("%clock_hi"))),
    ("mov.u64 %rd1, %clock64;", (RD1, PtxSpecial("%clock64"))),
    ("mov.u32 %r1, %envreg31;", (r(1), PtxSpecial("%envreg31"))),
    ("mov.u64 %rd1, table;", (RD1, PtxSymbol("table"))),
    ("mov.u64 %rd1, table+8;", (RD1, PtxSymbol("table", 8))),
    ("ld.global.u32 %r1, [table];", (r(1), PtxAddress(PtxSymbol("table")))),
    ("ld.global.u32 %r1, [table+8];", (r(1), PtxAddress(PtxSymbol("table"), 8))),
    ("ld.global.u32 %r1, [%rd1];", (r(1), PtxAddress(RD1))),
    ("ld.global.u32 %r1, [%rd1+-8];", (r(1), PtxAddress(RD1, -8))),
    ("ld.global.u32 %r1, [ %rd1 + 0x10 ];", (r(1), PtxAddress(RD1, 16))),
    ("ld.local.u32 %r1, [4096];", (r(1), PtxAddress(PtxImmediate(4096)))),
    ("ld.param.u64 %rd1, [a];", (RD1, PtxAddress(PtxSymbol("a")))),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", (Vector((r(1), r(2))), PtxAddress(RD1))),
    ("ld.global.v2.u32 {%r1,_}, [%rd1];", (Vector((r(1), PtxRegister("_"))), PtxAddress(RD1))),
    ("st.global.v2.f32 [%rd1], {%f1, 1.5};", (PtxAddress(RD1), Vector((f(1), PtxImmediate(1.5))))),
    ("setp.eq.s32 %p1|%p2, %r1, 0;", (PtxPair(p(1), p(2)), r(1), PtxImmediate(0))),
    ("setp.eq.s32 %p1 | _, %r1, 0;", (PtxPair(p(1), PtxRegister("_")), r(1), PtxImmediate(0))),
    ("elect.sync _|%p1, -1;", (PtxPair(PtxRegister("_"), p(1)), PtxImmediate(-1))),
    ("selp.b32 %r1, 1, 0, !%p1;", (r(1), PtxImmediate(1), PtxImmediate(0), Negated(p(1)))),
    ("vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;", (r(1), Selected(r(2), "b0"), Selected(r(3), "h1"))),
    (
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
        (Vector(V), TextureAddress((RD1,), Vector((f(1), f(2))))),
    ),
    ("vadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;", (r(1), Selected(r(2), "b0"), Selected(r(3), "h1"))),
    (
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, %rd2, {%f1, %f2}];",
        (
            PtxPair(Vector(V), p(1)),
            TextureAddress((RD1, PtxRegister("%rd2")), Vector((f(1), f(2)))),
        ),
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%r1], [%rd1+128, {%r2, 8}], [%r3];",
        (
            PtxAddress(r(1)),
            TextureAddress((PtxAddress(RD1, 128),), Vector((r(2), PtxImmediate(8)))),
            PtxAddress(r(3)),
        ),
    ),
    ("mma.sync {%f1, %f2}, {%r1}, {%r2}, {%f1, %f2};", (
        Vector((f(1), f(2))), Vector((r(1),)), Vector((r(2),)), Vector((f(1), f(2))),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), FORMS, ids=[form for form, _ in FORMS])
def test_form(statement: str, expected: tuple[Operand, ...]) -> None:
    assert operands(statement) == expected


def test_nan_keeps_its_bits() -> None:
    (_, nan) = operands("mov.f32 %f1, 0f7FFFFFFF;")
    assert isinstance(nan, PtxImmediate)
    assert math.isnan(nan.value)
    assert nan == operands("mov.f32 %f1, 0f7FFFFFFF;")[1]
    assert nan != operands("mov.f32 %f1, 0f7FC00000;")[1]


def test_constants_that_python_calls_equal_are_told_apart() -> None:
    assert len({PtxImmediate(0), PtxImmediate(0.0), PtxImmediate(-0.0), PtxImmediate(0)}) == 3


def test_modifiers_and_guard() -> None:
    instruction = only("@!%p1 ld.global.L1::no_allocate.L2::cache_hint.v2.f32 {%f1, %f2}, [%rd1], %rd2;")
    assert instruction.opcode == "ld"
    assert instruction.modifiers == ("global", "L1::no_allocate", "L2::cache_hint", "v2", "f32")
    assert instruction.name == "ld.global.L1::no_allocate.L2::cache_hint.v2.f32"
    assert (instruction.guard, instruction.negated) == (p(1), True)
    assert (only("@%p1 ret;").guard, only("@%p1 ret;").negated) == (p(1), False)
    assert only("@ ! %p1 ret;") == only("@!%p1  ret;")
    assert only("red.async.mbarrier::complete_tx::bytes [%r1], 1, [%r2];").modifiers == (
        "async",
        "mbarrier::complete_tx::bytes",
    )


def test_position_is_that_of_the_guard_or_opcode() -> None:
    code = kernel("  add.s32 %r1, %r1, 1; /* x */ @%p1 ret;\n\n\tret;").instructions
    line = code[0].line
    assert [(i.line - line, i.column) for i in code] == [(0, 3), (0, 32), (2, 2)]


def test_a_name_without_percent_is_a_register_if_declared_as_one() -> None:
    code = kernel(".reg .b32 x<2>, tid; mov.u32 x1, table; mov.u32 tid, x0;").instructions
    assert code[0].operands == (PtxRegister("x1"), PtxSymbol("table"))
    assert code[1].operands == (PtxRegister("tid"), PtxRegister("x0"))


CALLS = """
.extern .func (.param .b32 r) f(.param .b64 x, .param .b32 y);
.func nothing { ret; }
.entry k() {
  .reg .b64 %rd<2>; .reg .b32 %r<3>;
  .param .b64 x; .param .b32 y; .param .b32 r;
  call.uni (r), f, (x, y);
  call nothing;
  call (_), f, (%rd1, 3);
  prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b32 _) .noreturn;
  call (r), %rd1, (x, y), prototype_0;
  targets: .calltargets f;
  call %rd1, targets;
  ret;
}
"""


def test_calls() -> None:
    code = module(CALLS).functions["k"].instructions
    x, y, value = PtxSymbol("x"), PtxSymbol("y"), PtxSymbol("r")
    assert [i.name for i in code] == ["call.uni", "call", "call", "call", "call", "ret"]
    assert [i.operands[0] for i in code[:5]] == [
        CallTarget((value,), PtxSymbol("f"), (x, y)),
        CallTarget((), PtxSymbol("nothing"), ()),
        CallTarget((PtxRegister("_"),), PtxSymbol("f"), (RD1, PtxImmediate(3))),
        CallTarget((value,), RD1, (x, y), "prototype_0"),
        CallTarget((), RD1, (), "targets"),
    ]


def test_unknown_opcodes_parse() -> None:
    assert only("frobnicate.x4::y %r1, [%rd1], {%r2};") == PtxInstruction(
        "frobnicate",
        ("x4::y",),
        (r(1), PtxAddress(RD1), Vector((r(2),))),
        line=only("ret;").line,
        column=1,
    )
