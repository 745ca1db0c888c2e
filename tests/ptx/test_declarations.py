"""Registers, variables, initial values and parameters."""

from __future__ import annotations

import struct

import pytest

from memsim.ptx.program import Parameter, PtxAddress, PtxRegister, PtxSymbol, PtxVariable
from tests.ptx.snippets import kernel, module


def variable(text: str) -> PtxVariable:
    """The last variable of a module that has `text` and two variables to point at."""
    variables = module(f".global .u32 g[4]; .shared .b8 s[8]; {text}").variables
    return list(variables.values())[-1]


def test_registers() -> None:
    registers = kernel(".reg .b16 rs<3>, %h; .reg .b128 $q_; .reg .b32 none<0>;").registers
    assert list(registers.items())[-5:] == [
        ("rs0", "b16"),
        ("rs1", "b16"),
        ("rs2", "b16"),
        ("%h", "b16"),
        ("$q_", "b128"),
    ]


SHAPES = [
    (".global .u32 x;", ("global", 4, 4)),
    (".const .align 16 .b8 x[12];", ("const", 16, 12)),
    (".global .f64 x[2][3];", ("global", 8, 48)),
    (".shared .align 1024 .b8 x[2048];", ("shared", 1024, 2048)),
    (".global .b8 x[0xE];", ("global", 1, 14)),
    (".visible .global .attribute(.managed) .align 8 .b16 x;", ("global", 8, 2)),
    (".global .align 8 .attribute(.unified(19, 95)) .b16 x;", ("global", 8, 2)),
    (".weak .const .s8 x = -1;", ("const", 1, 1)),
    (".common .global .u32 x;", ("global", 4, 4)),
    (".global .texref x;", ("global", 8, 8)),
    (".tex .u32 x;", ("tex", 4, 4)),
    (
        ".global .samplerref x = { addr_mode_0 = wrap, filter_mode = nearest };",
        ("global", 8, 8),
    ),
]


@pytest.mark.parametrize(("text", "expected"), SHAPES, ids=[text for text, _ in SHAPES])
def test_shape(text: str, expected: tuple[str, int, int]) -> None:
    found = variable(text)
    assert found.name == "x"
    assert (found.space, found.align, found.size) == expected


def test_dynamic_shared_memory_has_no_size() -> None:
    assert variable(".extern .shared .align 16 .b8 x[];") == PtxVariable("x", 0, 16, None, space="shared")


VALUES = [
    (".u32 x = 7", struct.pack("<I", 7)),
    (".u8 x = 300", b"\x2c"),
    (".s64 x = -2", struct.pack("<q", -2)),
    (".b32 x = 1.5", struct.pack("<f", 1.5)),
    (".f32 x = 0f3FC00000", struct.pack("<f", 1.5)),
    (".f64 x = 0f3FC00000", struct.pack("<d", 1.5)),
    (".f64 x[2] = {-1e300, 0d3FF8000000000000}", struct.pack("<2d", -1e300, 1.5)),
    (".u16 x = WARP_SZ", struct.pack("<H", 32)),
    (".b8 x[5] = {1, 255, 3}", b"\x01\xff\x03\0\0"),
    (".u32 x[3] = {1, 0x10, 017}", struct.pack("<3I", 1, 16, 15)),
    (".u32 x[3] = {1,\n 2\t,3 }", struct.pack("<3I", 1, 2, 3)),
    (".u32 x[2] = {}", bytes(8)),
]


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[text for text, _ in VALUES])
def test_initial_value(text: str, expected: bytes) -> None:
    found = variable(f".global {text};")
    assert (found.init, found.pointers) == (expected, ())
    assert found.size == len(expected)


ADDRESSES = [
    (".u64 x = g", 8, ((0, "g", 0),)),
    (".u64 x = generic(g)+8", 8, ((0, "g", 8),)),
    (".u64 x[3] = {0, g+4, generic(s)}", 24, ((8, "g", 4), (16, "s", 0))),
    (".u8 x[3] = {1, 0xFF(generic(g)+4), 0XFF00(generic(g)+4)}", 3, ((1, "g", 4),)),
    (".u64 x = f", 8, ((0, "f", 0),)),
]


@pytest.mark.parametrize(("text", "size", "expected"), ADDRESSES, ids=[text for text, _, _ in ADDRESSES])
def test_initial_address(text: str, size: int, expected: tuple[tuple[int, str, int], ...]) -> None:
    found = variable(f".func f; .global {text};")
    assert (len(found.init or b""), found.pointers) == (size, expected)


def test_several_in_one_declaration() -> None:
    variables = module(".global .u32 a, b[2] = {1}, c<2>;").variables
    assert {name: v.size for name, v in variables.items()} == {"a": 4, "b": 8, "c0": 4, "c1": 4}


def test_where_variables_go() -> None:
    found = module(
        ".shared .b8 outside[4];\n"
        ".entry k() { .shared .b8 inside[8]; .local .b8 stack[16]; { .param .b32 p; } }"
    )
    assert list(found.variables) == ["outside"]
    assert [(v.name, v.space, v.size) for v in found.functions["k"].variables.values()] == [
        ("inside", "shared", 8),
        ("stack", "local", 16),
        ("p", "param", 4),
    ]


def test_parameters_are_laid_out_by_their_alignment() -> None:
    found = module(
        ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .u64 .ptr c,"
        " .param .align 4 .b8 d[5], .param .u16 e[3], .param .align 64 .b8 f[128], .param .texref g) {}"
    )
    assert found.functions["k"].parameters == (
        Parameter("a", "u8", 1, 1, 0),
        Parameter("b", "u64", 8, 8, 8, "global"),
        Parameter("c", "u64", 8, 8, 16, ""),
        Parameter("d", "b8", 4, 5, 24),
        Parameter("e", "u16", 2, 6, 30),
        Parameter("f", "b8", 64, 128, 64),
        Parameter("g", "texref", 8, 8, 192),
    )


def test_returned_parameters() -> None:
    function = module(
        ".func (.param .align 8 .b8 r[16]) f(.param .b32 x) { ret; }\n"
        ".func (.reg .b32 y) g(.reg .b32 x, .param .b8 z[]) { mov.b32 y, x; ret; }"
    ).functions
    assert function["f"].returns == (Parameter("r", "b8", 8, 16, 0),)
    assert function["g"].returns == (Parameter("y", "b32", 4, 4, 0),)
    assert [p.size for p in function["g"].parameters] == [4, 0]
    assert function["g"].registers == {"y": "b32", "x": "b32"}
    assert function["g"].instructions[0].operands == (PtxRegister("y"), PtxRegister("x"))


SCOPES = """
    .reg .pred p; .reg .b32 x;
    setp.eq.s32 p, x, 0;
    { .reg .pred p; .reg .b32 y; setp.eq.s32 p, x, 1; @p mov.b32 y, x; }
    { .reg .pred p; .reg .b32 x; setp.eq.s32 p, 0, 2; mov.b32 x, 3;
      { .reg .pred p; @!p ret; } @p ret; }
    @p ret;
"""


def test_names_of_nested_scopes_are_made_unique() -> None:
    function = kernel(SCOPES)
    assert [name for name in function.registers if name[0] != "%"] == [
        "p",
        "x",
        "p#2",
        "y",
        "p#3",
        "x#2",
        "p#4",
    ]
    first = [i.operands[0] for i in function.instructions if i.operands]
    assert first == [PtxRegister(n) for n in ("p", "p#2", "y", "p#3", "x#2")]
    guards = [i.guard.name for i in function.instructions if i.guard]
    assert guards == ["p#2", "p#4", "p#3", "p"]


def test_ranges_in_nested_scopes() -> None:
    function = kernel(".reg .b32 t<2>; { .reg .b32 t<3>; mov.b32 t1, t2; } mov.b32 t1, t0;")
    assert [i.operands for i in function.instructions] == [
        (PtxRegister("t1#2"), PtxRegister("t2")),
        (PtxRegister("t1"), PtxRegister("t0")),
    ]


def test_variables_of_nested_scopes_and_those_that_hide_a_module_variable() -> None:
    function = kernel(
        "mov.u64 %rd1, table; { .param .b32 q; st.param.b32 [q], 1; }"
        "{ .param .b64 q; .local .b8 table[8]; st.param.b64 [q+4], 1; mov.u64 %rd1, table; }"
    )
    assert {name: v.size for name, v in function.variables.items()} == {"q": 4, "q#2": 8, "table#2": 8}
    assert [i.operands[0] for i in function.instructions if i.opcode == "st"] == [
        PtxAddress(PtxSymbol("q")),
        PtxAddress(PtxSymbol("q#2"), 4),
    ]
    assert function.instructions[0].operands[1] == PtxSymbol("table")
    assert function.instructions[3].operands[1] == PtxSymbol("table#2")


LABELS = """
    { .reg .pred p; WAIT: mov.pred p, 1; @p bra DONE; bra WAIT; DONE: }
    { .reg .pred p; WAIT: mov.pred p, 1; @p bra DONE; bra WAIT; DONE: bra OUT; }
    OUT: LAST:
"""


def test_labels_of_nested_scopes() -> None:
    function = kernel(LABELS)
    assert function.labels == {"WAIT": 0, "DONE": 3, "WAIT#2": 3, "DONE#2": 6, "OUT": 7, "LAST": 7}
    assert [i.operands[0] for i in function.instructions if i.opcode == "bra"] == [
        PtxSymbol(name) for name in ("DONE", "WAIT", "DONE#2", "WAIT#2", "OUT")
    ]


def test_branch_tables() -> None:
    function = kernel(
        "ts: .branchtargets A, B; brx.idx %r1, ts;"
        "{ A: t2: .branchtargets A, B, C0, C1; @%p1 brx.idx.uni %r2, t2; }"
        "A: B: C0: C1: ret;"
    )
    assert function.tables == {"ts": ("A#2", "B"), "t2": ("A", "B", "C0", "C1")}
    assert function.labels == {"A": 1, "A#2": 2, "B": 2, "C0": 2, "C1": 2}
    assert [i.operands for i in function.instructions[:2]] == [
        (PtxRegister("%r1"), PtxSymbol("ts")),
        (PtxRegister("%r2"), PtxSymbol("t2")),
    ]
