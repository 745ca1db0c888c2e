"""Every error names line and column and says what was expected; beside each bad text stands a good twin."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from memsim.errors import MemsimError
from memsim.ptx.parser import parse
from tests.ptx.snippets import HEADER


class Case(NamedTuple):
    """`bad` has a `^` where the caret belongs; it is not part of the text."""

    bad: str
    message: str
    good: str


REGS = ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;"


def body(bad: str, message: str, good: str) -> Case:
    """A case about statements in a kernel."""
    before = f"{HEADER}.global .u32 g[4];\n.entry k(.param .u64 a)\n{{ {REGS}\n"
    return Case(f"{before}{bad}\n}}", message, f"{before}{good}\n}}")


def top(bad: str, message: str, good: str) -> Case:
    """A case about the text behind the header."""
    return Case(HEADER + bad, message, HEADER + good)


CASES = [
    # header
    Case("^", "expected '.version' at the start of a PTX file, the text ends here", HEADER),
    Case("\n\n ^ret;", "expected '.version' at the start of a PTX file, found 'ret'", HEADER),
    Case(".version ^x", "expected a version such as 8.4, found 'x'", HEADER),
    Case(".version 8.4 ^.entry", "expected '.target' after the version, found '.entry'", HEADER),
    Case(".version 8.4 .target ^90", "expected a target such as sm_90, found '90'", HEADER),
    Case(HEADER[:-3] + "^sixty", "expected 32 or 64, found 'sixty'", HEADER),
    # module
    top("^ret;", "expected a directive such as .entry, .func or .global, found 'ret'", ".entry k { ret; }"),
    top("^.entri k { }", "expected a directive such as", ".entry k { }"),
    top(".entry ^{ }", "expected a function name, found '{'", ".entry k { }"),
    top(".entry k() ^.maxnitd 3 { }", "expected '{' at the start of the body, found '.maxnitd'",
        ".entry k() .maxntid 3 { }"),
    top(".entry k()\n^{ ret;\n", "this '{' is never closed", ".entry k()\n{ ret;\n}"),
    top(".entry k { }\n.entry ^k { }", "function 'k' is defined twice", ".entry k { }\n.entry k2 { }"),
    top(".global .u32 k;\n.entry ^k { }", "'k' is already a variable", ".global .u32 j;\n.entry k { }"),
    top(".alias f2, ^f;", "function 'f' is not defined in this file", ".func f { ret; } .alias f2, f;"),
    top('.file ^one "a.cu"', "expected a file number, found 'one'", '.file 1 "a.cu"'),
    top(".file 1 ^a.cu", "expected a file path, found 'a.cu'", '.file 1 "a.cu"'),
    top('.file 1 ^"a.cu\n', "'\"' is not PTX", '.file 1 "a.cu"\n'),
    top(".section .debug_str ^{ .b8 1", "this '{' is never closed", ".section .debug_str { .b8 1 }"),
    top(".pragma ^nounroll;", "expected a pragma in quotes, found 'nounroll'", '.pragma "nounroll";'),
    top("// fine\n ^/* not\nfine", "this comment is never closed", "// fine\n /* also\nfine */"),
    top(f".file ^{'1' * 5000} \"a.cu\"", "this number is too long for PTX", f'.file 1 "{"a" * 5000}.cu"'),
    body("bra ^;", "expected what bra goes to, found ';'", "L: bra L;"),
    body(f".loc 1 ^{'1' * 5000} 1", "this number is too long for PTX", ".loc 1 11 1"),
    # parameters
    top(".entry k(^.u64 a) { }", "expected '.param', found '.u64'", ".entry k(.param .u64 a) { }"),
    top(".entry k(.param .u64 a ^.param .u32 b) { }", "expected ',' or ')' after the parameter",
        ".entry k(.param .u64 a, .param .u32 b) { }"),
    top(".entry k(.param ^.int a) { }", "expected a type such as .b32, found '.int'",
        ".entry k(.param .s32 a) { }"),
    top(".entry k(.param .u64 a, .param .u32 ^a) { }", "'a' is declared twice in this scope",
        ".entry k(.param .u64 a, .param .u32 b) { }"),
    # variables
    top(".global ^x;", "expected a type such as .b32, found 'x'", ".global .b32 x;"),
    top(".global .u32 ^4x;", "'4x' is not PTX", ".global .u32 x4;"),
    top(".global .align ^eight .u32 x;", "expected an alignment in bytes, found 'eight'",
        ".global .align 8 .u32 x;"),
    top(".global .u32 x^\n.global .u32 y;", "expected ';' after the variable, found '.global'",
        ".global .u32 x;\n.global .u32 y;"),
    top(".global .u32 x[^1.5];", "an array's length must be a positive integer", ".global .u32 x[1];"),
    top(".global .u32 x[^-1];", "an array's length must be a positive integer", ".global .u32 x[0];"),
    top(".global .u32 x[4^;", "expected ']' after the length, found ';'", ".global .u32 x[4];"),
    top(".global .u32 x;\n.shared .b8 ^x;", "'x' is declared twice in this scope",
        ".global .u32 x;\n.shared .b8 y;"),
    top(".global .u32 x = ^1.5;", "this initial value does not fit the type .u32", ".global .f32 x = 1.5;"),
    top(".global .f32 x = ^1;", "this initial value does not fit the type .f32", ".global .u32 x = 1;"),
    top(".global .u32 x = ^y;", "name 'y' is not declared", ".global .u32 y; .global .u32 x = y;"),
    top(".global .u32 x[2] = ^1;", "expected '{' around the initial values, found '1'",
        ".global .u32 x[2] = {1};"),
    top(".global .u32 x[2] = {1, 2, ^x};", "more initial values than the 2 elements of the array",
        ".global .u32 x[2] = {1, x};"),
    top(".global .u32 x[2] = ^{1, 2, 3};", "more initial values than the 2 elements of the array",
        ".global .u32 x[3] = {1, 2, 3};"),
    top(".global .u32 x[2][2] = {^{1}, {2}};", "expected an initial value, found '{'",
        ".global .u32 x[2][2] = {1, 0, 2};"),
    top(".global .u32 x[2] = {1 ^2};", "expected ',' or '}' after the initial value, found '2'",
        ".global .u32 x[2] = {0x1, 2};"),
    top(".global .u32 x = 5 ^+ 1;", "expected ';' after the variable, found '+'", ".global .u32 x = 6;"),
    top(".global .u64 x = ^36893488147419103232;", "does not fit into 64 bits",
        ".global .u64 x = 18446744073709551615;"),
    top(".global .b8 x[2000000000] = ^{1};", "initial values for 2000000000 bytes",
        ".global .b8 x[2000000000];"),
    top(".entry k() .maxntid ^{ }", "expected a number of threads, found '{'", ".entry k() .maxntid 32 { }"),
    top(".entry k() .reqnctapercluster ^{ }", "expected a number of blocks, found '{'",
        ".entry k() .reqnctapercluster 2 { }"),
    # registers
    body(".reg .b32 %x<^100000000>;", "more than 1000000 names", ".reg .b32 %x<100>;"),
    body(".reg ^%x;", "expected a type such as .b32, found '%x'", ".reg .b32 %x;"),
    body(".reg .b32 ^%r2;", "'%r2' is declared twice in this scope", ".reg .b32 %r4;"),
    body(".reg .b32 ^%r<9>;", "'%r0' is declared twice in this scope", "{ .reg .b32 %r<9>; }"),
    body(".reg .b32 %x<^n>;", "expected a count, found 'n'", ".reg .b32 %x<3>;"),
    body(".reg .b32 %x^\nret;", "expected ';' after the registers, found 'ret'", ".reg .b32 %x;\nret;"),
    # statements
    body("add.s32 %r1, %r2, 3^\nret;", "expected ',' or ';' after the operand, found 'ret'",
         "add.s32 %r1, %r2, 3;\nret;"),
    body("add.s32 %r1 ^%r2, 3;", "expected ',' or ';' after the operand, found '%r2'",
         "add.s32 %r1, %r2, 3;"),
    body("add.s32 %r1, ^, 3;", "expected an operand, found ','", "add.s32 %r1, %r2, 3;"),
    body("add.s32 %r1, %r2, ^;", "expected an operand, found ';'", "add.s32 %r1, %r2, 3;"),
    body("add.s32 ^%r7, %r2, 3;", "register '%r7' is not declared", "add.s32 %r3, %r2, 3;"),
    body("add.s32 %r1, %r1, 3;\n\tadd.s32 %r1, %r2, ^%r9;", "register '%r9' is not declared",
         "add.s32 %r1, %r2, %r2;"),
    body("mov.u32 %r1, %tid^.q;", "expected ',' or ';' after the operand",
         "mov.u32 %r1, %tid.x;"),
    body("mov.u32 %r1, ^%tidy.x;", "register '%tidy' is not declared", "mov.u32 %r1, %tid.x;"),
    body("mov.u64 %rd1, ^h;", "name 'h' is not declared", "mov.u64 %rd1, g;"),
    body("{ .reg .b32 inner; }\nmov.u32 ^inner, 1;", "name 'inner' is not declared",
         "{ .reg .b32 inner; mov.u32 inner, 1; }"),
    body("@^%p7 ret;", "predicate '%p7' is not declared", "@%p3 ret;"),
    body("^@%p1, ret;", "expected an instruction, a label, a directive or '}', found '@'", "@%p1 ret;"),
    body("^@%p1 @%p2 ret;", "expected an instruction, a label, a directive or '}', found '@'",
         "@%p1 ret;"),
    body("^;", "expected an instruction, a label, a directive or '}', found ';'", "ret;"),
    body("^.entry", "expected a declaration, .loc or .pragma, found '.entry'", ".loc 1 2 3"),
    body(".loc 1 ^x", "expected file number, line and column, found 'x'", ".loc 1 2 3"),
    body("RET ^;", "expected ':' after the label, or operands after the opcode, found ';'", "RET: ret;"),
    body("L: ret;\n^L: ret;", "'L' is declared twice in this scope", "L: ret;\nM: ret;"),
    body("bra ^L;", "label 'L' is not defined", "bra L; L: ret;"),
    body("bra ^L; { L: ret; }", "label 'L' is not defined", "{ bra L; } L: ret;"),
    body("bra ^5;", "expected a label, found '5'", "bra L5; L5: ret;"),
    body("^%r1: ret;", "'%r1' is declared twice in this scope", "%r4: ret;"),
    body("L: brx.idx %r1, ^L;", "branch table 'L' is not defined", "t: .branchtargets L; L: brx.idx %r1, t;"),
    body("t: .branchtargets L; L: bra ^t;", "label 't' is not defined", "t: .branchtargets L; L: bra L;"),
    body("t: .branchtargets ^t;", "label 't' is not defined", "t: .branchtargets L; L: ret;"),
    body("t: .branchtargets L; L: brx.idx ^t, t;", "name 't' is not declared",
         "t: .branchtargets L; L: brx.idx %r1, t;"),
    body("t: .branchtargets L; L: brx.idx %r1^;", "expected ',' after the index, found ';'",
         "t: .branchtargets L; L: brx.idx %r1, t;"),
    body("bra L^, 3; L:", "expected ';' after the label, found ','", "bra L; L:"),
    body("t: .branchtargets ^L;", "label 'L' is not defined", "t: .branchtargets L; L: ret;"),
    body("p: .callprototype (.param .b32 _) ^f (.param .b32 _);", "expected '_' in place of the name",
         "p: .callprototype (.param .b32 _) _ (.param .b32 _);"),
    # operands
    body("ld.global.u32 %r1, [%rd1^;", "expected ']' or '+' after the address, found ';'",
         "ld.global.u32 %r1, [%rd1];"),
    body("ld.global.u32 %r1, [%rd1^-4];", "expected ']' or '+' after the address, found '-'",
         "ld.global.u32 %r1, [%rd1+-4];"),
    body("ld.global.u32 %r1, [%rd1+^%rd2];", "expected an offset in bytes, found '%rd2'",
         "ld.global.u32 %r1, [%rd1+2];"),
    body("ld.global.u32 %r1, [%rd1+^1.5];", "an offset must be a whole number of bytes",
         "ld.global.u32 %r1, [%rd1+1];"),
    body("ld.global.u32 %r1, [^%tid.x];", "an address must start with a register, a variable or a number",
         "ld.global.u32 %r1, [%rd1];"),
    body("ld.global.u32 %r1, [^];", "expected an operand, found ']'", "ld.global.u32 %r1, [g];"),
    body("mov.b64 %rd1, {%r1, %r2^;", "expected '}' after the vector, found ';'",
         "mov.b64 %rd1, {%r1, %r2};"),
    body("mov.b32 %r1, %r2^.x;", "expected ',' or ';' after the operand, found '.x'", "mov.b32 %r1, %r2;"),
    body("add.s32 %r1, -^%r2, 1;", "expected an operand, found '%r2'", "add.s32 %r1, %r2, -1;"),
    body("selp.b32 %r1, 1, 2, !^g;", "expected a register", "selp.b32 %r1, 1, 2, !%p1;"),
    body("setp.eq.s32 %p1|^3, %r1, 2;", "expected a register, found '3'", "setp.eq.s32 %p1|%p3, %r1, 2;"),
    body("setp.eq.s32 %p1|^g, %r1, 2;", "expected a register", "setp.eq.s32 %p1|%p2, %r1, 2;"),
    body("call ^3;", "expected the function to call, found '3'", "call %rd1, x;"),
    body("call ^%tid;", "expected a function or a register that holds its address", "call %rd1, x;"),
    body("call (%r1) ^%rd1;", "expected ',' after the returned values, found '%rd1'", "call (%r1), %rd1, x;"),
    body("call %rd1, (%r1^;", "expected ')' after the list, found ';'", "call %rd1, (%r1), x;"),
    body("mov.u32 %r1, ^(1 + 2);", "expected an operand, found '('", "mov.u32 %r1, 3;"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case.message}"[:50] for n, case in enumerate(CASES)])
def test_error(case: Case) -> None:
    before, _, after = case.bad.partition("^")
    skipped = len(after) - len(after.lstrip())  # a missing token is reported where the next one stands
    text, offset = before + after, len(before) + (skipped if after.strip() else 0)
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    with pytest.raises(MemsimError) as caught:
        parse(text, "bad.ptx")
    error = caught.value
    assert case.message in error.message
    assert (error.file, error.line, error.column) == ("bad.ptx", line, column)
    assert error.source == text.split("\n")[line - 1]
    assert str(error).split("\n")[2] == " " * (4 + column - 1) + "^"
    assert error.exit_code == 2

    parse(case.good, "good.ptx")
