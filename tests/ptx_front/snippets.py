"""Small PTX texts for the tests: a kernel around a few statements."""

from __future__ import annotations

from tests.ptx_front.parser import parse
from tests.ptx_front.program import Function, Operand, PtxInstruction, PtxModule

HEADER = ".version 8.4\n.target sm_90\n.address_size 64\n"

REGISTERS = """
.reg .b32 %r<10>;
.reg .b64 %rd<10>;
.reg .f32 %f<10>;
.reg .pred %p<10>;
"""


def module(text: str) -> PtxModule:
    """`text` behind a header of three lines."""
    return parse(HEADER + text)


def kernel(body: str) -> Function:
    """A kernel `k` with a parameter `a`, a few registers, and `body`."""
    text = f".global .u32 table[4];\n.visible .entry k(.param .u64 a)\n{{{REGISTERS}{body}\n}}\n"
    return module(text).functions["k"]


def only(statement: str) -> PtxInstruction:
    """The one instruction of a kernel with `statement` as its body."""
    (instruction,) = kernel(statement).instructions
    return instruction


def operands(statement: str) -> tuple[Operand, ...]:
    """The operands of the one instruction `statement`."""
    return only(statement).operands
