"""Calls are replaced by the bodies of what they call; those that cannot be stay."""

from __future__ import annotations

import numpy as np

import memsim
from tests.ptx_front.inline import inline_calls
from tests.ptx_front.loading import load_ptx
from tests.ptx_front.printer import instruction_text
from tests.ptx_front.program import Function, PtxInstruction, PtxSymbol
from tests.ptx_front.snippets import HEADER, module


def inlined(text: str) -> Function:
    return inline_calls(module(text), "k")


def code(function: Function) -> list[str]:
    return [instruction_text(instruction) for instruction in function.instructions]


def opcodes(function: Function) -> list[str]:
    return [instruction.opcode for instruction in function.instructions]


KERNEL = ".entry k(.param .u64 a) { .reg .b32 %r<4>; .reg .pred %p<2>; "

HALVE = """
.func (.param .b32 half_r) half(.param .b32 half_x)
{
  .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.param.b32 %r1, [half_x];
  setp.lt.s32 %p1, %r1, 0;
  @%p1 bra NEGATIVE;
  shr.s32 %r2, %r1, 1;
  st.param.b32 [half_r+0], %r2;
  @!%p1 ret;
NEGATIVE:
  st.param.b32 [half_r+0], 0;
  ret;
}
"""


def call(number: int, instruction: str = "call") -> str:
    return (
        f"{{ .param .b32 x; st.param.b32 [x], %r{number}; .param .b32 r;"
        f" {instruction} (r), half, (x); ld.param.b32 %r{number}, [r]; }}"
    )


def test_a_kernel_without_calls_is_returned_as_it_is() -> None:
    found = module(HALVE + KERNEL + "ret; }")
    assert inline_calls(found, "k") is found.functions["k"]


def test_body_takes_the_place_of_the_call() -> None:
    function = inlined(HALVE + KERNEL + call(3) + " ret; }")
    assert code(function) == [
        "st.param.b32 [x], %r3;",
        "ld.param.b32 %r1@1, [x];",
        "setp.lt.s32 %p1@1, %r1@1, 0;",
        "@%p1@1 bra NEGATIVE@1;",
        "shr.s32 %r2@1, %r1@1, 1;",
        "st.param.b32 [r], %r2@1;",
        "@!%p1@1 bra half@1;",
        "st.param.b32 [r], 0;",
        "bra half@1;",
        "ld.param.b32 %r3, [r];",
        "ret ;",
    ]
    assert function.labels == {"NEGATIVE@1": 7, "half@1": 9}
    assert list(function.registers) == [
        *("%r0", "%r1", "%r2", "%r3", "%p0", "%p1"),
        *("%r0@1", "%r1@1", "%r2@1", "%p0@1", "%p1@1"),
    ]
    assert {name: v.space for name, v in function.variables.items()} == {"x": "param", "r": "param"}


def test_every_call_has_names_of_its_own() -> None:
    function = inlined(HALVE + KERNEL + f"L: {call(1)} M: {call(2)} @%p1 bra L; bra M; }}")
    assert len(function.labels) == 2 + 2 * 2
    assert function.labels["L"] == 0
    assert function.labels["M"] == 10
    assert code(function)[11] == "ld.param.b32 %r1@2, [x#2];"
    assert code(function)[15] == "st.param.b32 [r#2], %r2@2;"
    assert len(function.registers) == 6 + 2 * 5


def test_a_guarded_call_is_gone_around() -> None:
    function = inlined(HALVE + KERNEL + call(1, "@%p1 call") + " ret; }")
    assert code(function)[1] == "@!%p1 bra half@1.end;"
    assert function.labels["half@1.end"] == code(function).index("ld.param.b32 %r1, [r];")
    function = inlined(HALVE + KERNEL + call(1, "@!%p1 call") + " ret; }")
    assert code(function)[1] == "@%p1 bra half@1.end;"


QUARTER = """
.func (.param .b32 r) quarter(.param .b32 x) {
  .reg .b32 %r<2>; .shared .b8 tile[32]; .local .b8 stack[8];
  mov.b32 %r1, tile; st.local.b32 [stack], %r1;
  .param .b32 inner; .param .b32 inner_r;
  ld.param.b32 %r1, [x]; st.param.b32 [inner], %r1;
  call (inner_r), half, (inner);
  ld.param.b32 %r1, [inner_r]; st.param.b32 [r], %r1; ret;
}
"""


def test_calls_in_what_is_called() -> None:
    body = call(1).replace("half", "quarter")
    function = inlined(HALVE + QUARTER + KERNEL + body + body + " ret; }")
    assert "call" not in opcodes(function)
    assert len(function.labels) == 2 * 3
    # Shared memory of the function is one variable; what is local is there for each call.
    assert [n for n, v in function.variables.items() if v.space == "shared"] == ["tile@quarter"]
    assert len([n for n, v in function.variables.items() if v.space == "local"]) == 2
    assert sum("tile@quarter" in line for line in code(function)) == 2


def test_shared_variables_of_a_function_called_on_two_ways_are_the_same() -> None:
    text = ".func f { .shared .b8 t[4]; .reg .b32 %r<2>; mov.b32 %r1, t; ret; } .func g { call f; ret; }"
    function = inlined(text + KERNEL + "call f; call g; ret; }")
    assert list(function.variables) == ["t@f"]
    assert sum("t@f" in line for line in code(function)) == 2


def test_parameters_in_registers() -> None:
    text = (
        ".func (.reg .b32 y) f(.reg .b32 x, .param .b32 z)"
        " { .reg .b32 t; ld.param.b32 t, [z]; add.s32 y, x, t; ret; }"
    )
    function = inlined(text + KERNEL + "call (%r1), f, (%r2, 3); ret; }")
    assert code(function) == [
        "mov.b32 x@1, %r2;",
        "st.param.b32 [z@1], 3;",
        "ld.param.b32 t@1, [z@1];",
        "add.s32 y@1, x@1, t@1;",
        "bra f@1;",
        "mov.b32 %r1, y@1;",
        "ret ;",
    ]
    assert function.labels == {"f@1": 5}
    ignoring = inlined(text + KERNEL + "call (_), f, (%r2, 3); ret; }")
    assert code(ignoring) == [line for line in code(function) if line != "mov.b32 %r1, y@1;"]
    through = KERNEL + ".param .b32 p; call (p), f, (p, p); ret; }"
    assert code(inlined(text + through)) == [
        "ld.param.b32 x@1, [p];",
        "ld.param.b32 t@1, [p];",
        "add.s32 y@1, x@1, t@1;",
        "bra f@1;",
        "st.param.b32 [p], y@1;",
        "ret ;",
    ]


def test_branch_tables_are_renamed() -> None:
    text = ".func f { .reg .b32 i; t: .branchtargets A, B; brx.idx i, t; A: B: ret; }"
    function = inlined(text + KERNEL + "call f; ret; }")
    assert function.tables == {"t@1": ("A@1", "B@1")}
    assert function.instructions[0].operands[1] == PtxSymbol("t@1")


def test_calls_that_stay() -> None:
    text = """
    .extern .func outside(.param .b32 x);
    .func loop { .reg .pred %p; @%p ret; call loop; ret; }
    .func ping; .func pong { call ping; ret; } .func ping { call pong; ret; }
    """
    body = KERNEL + ".reg .b64 %rd; .param .b32 x; call outside, (x); call %rd, P; P: .callprototype _; "
    function = inlined(text + body + "call loop; call ping; call outside, (x, x); ret; }")
    targets = [i.operands[0].target for i in function.instructions if i.opcode == "call"]  # type: ignore[union-attr]
    assert [target.name for target in targets] == ["outside", "%rd", "loop", "ping", "outside"]
    # What is recursive is spliced in once; the call that would go round stays.
    assert opcodes(function).count("bra") == 2 + 2


def test_source_lines_stay_those_of_the_function() -> None:
    text = ".func f { .loc 1 3 4 membar.gl; ret; }" + KERNEL + ".loc 1 9 9 call f; ret; }"
    lines: list[PtxInstruction] = list(inlined(text).instructions)
    assert [i.source.line for i in lines if i.source] == [3, 3, 9]


def test_an_alias_is_inlined_like_the_function() -> None:
    text = ".func f { membar.gl; ret; } .func g; .alias g, f;" + KERNEL + "call g; ret; }"
    assert opcodes(inlined(text)) == ["membar", "bra", "ret"]


def test_constants_keep_their_type() -> None:
    text = ".func f { .reg .f32 x; .reg .b32 y; mov.f32 x, 0f3F800000; mov.b32 y, 1; ret; }"
    function = inlined(text + KERNEL + "call f; ret; }")
    values = [i.operands[1].value for i in function.instructions[:2]]  # type: ignore[union-attr]
    assert [type(value) for value in values] == [float, int]


RUN = """
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  and.b32 %r2, %r1, 1;
  setp.eq.s32 %p1, %r2, 1;
  sub.s32 %r3, %r1, 10;
  CALLS
  st.global.u32 [%rd1], %r3;
  ret;
}
"""


def test_what_was_inlined_computes_the_same() -> None:
    """Odd threads halve `tid - 10` twice, even ones once; below zero the result is 0."""
    guarded = call(3, "@%p1 call").replace("ld.param", "@%p1 ld.param")
    text = HEADER + HALVE + RUN.replace("CALLS", guarded + call(3))
    out = np.full(32, -1, np.int32)
    memsim.run(load_ptx(text)["k"], (1,), (32,), [out])
    numbers = np.arange(32) - 10
    once = np.maximum(numbers, 0) // 2
    assert out.tolist() == np.where(np.arange(32) % 2 == 1, once // 2, once).tolist()
