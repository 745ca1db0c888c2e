"""Text made from random records parses back to the same records."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

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
from tests.ptx.printer import instruction_text
from tests.ptx.snippets import kernel

NAMES = [*(f"%r{n}" for n in range(10)), *(f"%rd{n}" for n in range(10)), "%p3", "_"]
registers = st.sampled_from([PtxRegister(name) for name in NAMES])
declared = st.sampled_from([PtxRegister(name) for name in NAMES[:-1]])
scalars = st.sampled_from([PtxRegister(name) for name in NAMES if name != "_"])
offsets = st.integers(-(2**31), 2**31)
selected = st.builds(Selected, scalars, st.sampled_from(["b0", "b3", "h0", "h1"]))
symbols = st.builds(PtxSymbol, st.sampled_from(["table", "a"]), offsets)
immediates = st.builds(
    PtxImmediate,
    st.one_of(st.integers(1 - 2**63, 2**64 - 1), st.floats(allow_nan=False), st.floats(width=32)),
)
specials = st.sampled_from(
    [PtxSpecial("%tid.x"), PtxSpecial("%laneid"), PtxSpecial("%clock64"), PtxSpecial("%nctaid.z")]
)
addresses = st.one_of(
    st.builds(PtxAddress, declared, offsets),
    st.builds(PtxAddress, st.builds(PtxSymbol, st.sampled_from(["table", "a"])), offsets),
    st.builds(PtxAddress, st.builds(PtxImmediate, st.integers(0, 2**32)), st.just(0)),
)
vectors = st.builds(Vector, st.lists(st.one_of(registers, immediates), min_size=1, max_size=8).map(tuple))
textures = st.builds(
    lambda first, more, coordinates: TextureAddress((first, *more), coordinates),
    st.one_of(declared, st.builds(PtxAddress, declared, offsets.filter(bool))),
    st.lists(declared, max_size=1),
    vectors,
)
plain = st.one_of(
    registers,
    specials,
    immediates,
    symbols,
    addresses,
    vectors,
    selected,
    st.builds(Negated, scalars),
    st.builds(PtxPair, st.one_of(registers, vectors), registers),
    textures,
)
words = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
modifiers = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_]{0,6}(::[A-Za-z0-9_]{1,6}){0,2}", fullmatch=True)
guards = st.one_of(st.none(), scalars)
# These take labels, lists or addresses without brackets; they are built below or have their own tests.
opcodes = words.filter(lambda name: name not in ("bra", "brx", "call", "mov"))


@st.composite
def instructions(draw: st.DrawFn) -> PtxInstruction:
    """Any instruction with an opcode that may not exist."""
    guard = draw(guards)
    operands: tuple[Operand, ...] = tuple(draw(st.lists(plain, max_size=6)))
    return PtxInstruction(
        draw(opcodes),
        tuple(draw(st.lists(modifiers, max_size=5))),
        operands,
        guard,
        draw(st.booleans()) if guard else False,
    )


@st.composite
def calls(draw: st.DrawFn) -> PtxInstruction:
    """A direct or indirect call."""
    values = st.lists(st.one_of(registers, symbols.map(lambda s: PtxSymbol(s.name)), immediates), max_size=3)
    target = CallTarget(
        tuple(draw(values)),
        draw(st.one_of(declared, st.just(PtxSymbol("table")))),
        tuple(draw(values)),
        draw(st.one_of(st.none(), st.just("prototype_0"))),
    )
    return PtxInstruction("call", tuple(draw(st.lists(modifiers, max_size=1))), (target,), draw(guards))


@given(st.lists(st.one_of(instructions(), calls()), min_size=1, max_size=12))
def test_printed_instructions_parse_to_themselves(code: list[PtxInstruction]) -> None:
    parsed = kernel("\n".join(map(instruction_text, code))).instructions
    assert [replace(instruction, line=0, column=0) for instruction in parsed] == code
    first = parsed[0].line
    assert [instruction.line - first for instruction in parsed] == list(range(len(code)))


@given(st.lists(plain, min_size=1, max_size=5), st.sampled_from(["", " ", "\n", "\t ", " /* x, {y} */ "]))
def test_space_between_operands_means_nothing(values: list[Operand], space: str) -> None:
    text = instruction_text(PtxInstruction("test", ("b32",), tuple(values))).replace(", ", f"{space},{space}")
    (parsed,) = kernel(text.replace(";", f"{space};")).instructions
    assert list(parsed.operands) == values
