"""Forms that are not executed: refused when they are lowered, and named when a result depends on them."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest

from memsim.api.running import run
from memsim.errors import MemsimError
from memsim.isa.definitions import DEFINITIONS, meaning_of
from memsim.isa.op import Unsupported
from memsim.isa.readers import Binder
from memsim.state.poison import Poisoned
from tests.ptx_front.loading import load_ptx
from tests.ptx_front.lowering import lower  # noqa: F401  (registers what lowers)
from tests.ptx_front.lowering.assembler import Assembler
from tests.ptx_front.lowering.lowered_opcodes import LOWER, REFUSED, lower_one
from tests.ptx_front.parser import parse
from tests.ptx_front.program import (
    Negated,
    Operand,
    PtxImmediate,
    PtxInstruction,
    PtxPair,
    PtxRegister,
    PtxSpecial,
    Vector,
)

#: Those that are lowered whatever their form: they do nothing, or need no operand.
ALWAYS = set(
    "applypriority brkpt createpolicy discard exit fence griddepcontrol membar "
    "pmevent prefetch prefetchu ret setmaxnreg trap".split()
)
TYPES = [f"{sign}{bits}" for sign in "sub" for bits in (8, 16, 32, 64, 128)]
TYPES += "f16 f16x2 bf16 bf16x2 f32 f32x2 f64 tf32 e4m3x2 e5m2x2 pred u16x2 s16x2".split()
WORDS = (
    "lo hi wide sat cc ftz rn rz rm rp rni rzi rmi rpi rna rs "
    "approx full relu NaN xorsign abs eq ltu nan lo and or xor min add "
    "sync up down bfly idx all any uni ballot l r wrap clamp f4e to "
    "global shared local const param shared::cluster shiftamt finite normal satfinite "
    "pack BOOL oob sp unknown"
).split()


def operands() -> list[Operand]:
    """One of every kind of operand."""
    names = ("%p1", "%p2", "%h1", "%h2", "%r1", "%r2", "%r3", "%d1", "%d2", "%f1", "%g1")
    registers = [PtxRegister(name) for name in names]
    return [
        *registers,
        PtxImmediate(3),
        PtxImmediate(-1),
        PtxImmediate(1.5),
        PtxSpecial("%tid.x"),
        Negated(PtxRegister("%p1")),
        PtxPair(PtxRegister("%p1"), PtxRegister("%p2")),
        PtxPair(PtxRegister("%r1"), PtxRegister("%p1")),
        Vector((PtxRegister("%h1"), PtxRegister("%h2"))),
        Vector((PtxRegister("%r1"), PtxRegister("%r2"))),
    ]


def random_form(rng: random.Random, opcode: str) -> PtxInstruction:
    """An instruction of that opcode with modifiers and operands that may or may not make sense."""
    modifiers = [rng.choice(WORDS) for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
    modifiers += [rng.choice(TYPES) for _ in range(rng.choice([0, 1, 1, 1, 2, 2]))]
    target, *sources = (rng.choice(operands()) for _ in range(rng.choice([1, 2, 2, 3, 3, 4, 4, 5])))
    target = rng.choice([target, PtxRegister("_")])
    return PtxInstruction(opcode, tuple(modifiers), (target, *sources))


def kernel(line: str) -> str:
    """A kernel that stores what `line` leaves in %r1."""
    return f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %g<4>;
mov.b32 %r1, 1; mov.b32 %r2, 2; mov.b32 %r3, 3; mov.f32 %f1, 0f3F800000; mov.f64 %g1, 0d3FF0000000000000;
setp.eq.u32 %p1, %r1, 1;
{line}
ld.param.u64 %d1, [out];
st.global.u32 [%d1], %r1;
ret;
}}
"""


OPCODES = sorted({opcode for opcode, _ in LOWER})
MODULE = parse(kernel(""))


def assembled(instruction: PtxInstruction) -> Assembler:
    """The machine instructions of one PTX instruction.

    Raises:
        Unsupported, or another of `REFUSED`: there are none.
    """
    assembler = Assembler(MODULE.functions["k"], {})
    assembler.begin(instruction)
    lower_one(assembler, instruction)
    return assembler


@pytest.mark.some(13)
@pytest.mark.parametrize("opcode", OPCODES)
def test_a_form_is_lowered_or_refused(opcode: str) -> None:
    """Nothing but a refusal comes out of a table, whatever the form; what is emitted is built or refused

    too.
    """
    rng = random.Random(opcode)
    lowered = refused = 0
    for _ in range(400):
        instruction = random_form(rng, opcode)
        try:
            emitted = assembled(instruction).emitted
        except REFUSED:
            refused += 1
            continue
        lowered += 1
        for one in emitted:
            assert one.form.opcode in DEFINITIONS
            with suppress(Unsupported, Poisoned):
                meaning_of(one.form).bind(Binder({}))
    assert lowered + refused == 400
    assert refused > 0 or opcode in ALWAYS


@pytest.mark.parametrize(
    ("unknown", "known"),
    [
        ("vmad.s32.s32.s32 %r1, %r2, %r3, %r1;", "vadd.s32.s32.s32 %r1, %r2, %r3;"),
        ("lop3.and.b32 %r1|%p2, %r1, %r2, %r3, 0x80, %p1;", "lop3.b32 %r1, %r1, %r2, %r3, 0x80;"),
        ("cvt.rn.satfinite.e4m3x2.f32 %r1, %f1, %f1;", "cvt.rn.f16x2.f32 %r1, %f1, %f1;"),
        ("cvt.rs.f16x2.f32 %r1, %f1, %f1, %r2;", "cvt.rz.f16x2.f32 %r1, %f1, %f1;"),
        ("cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r1;", "cvt.sat.u8.s32 %r1, %r2;"),
        ("dp4a.s8.s8 %r1, %r2, %r3, %r1;", "dp4a.s32.u32 %r1, %r2, %r3, %r1;"),
        ("mul.lo.sat.s32 %r1, %r2, %r3;", "mul.lo.s32 %r1, %r2, %r3;"),
        ("shfl.down.b32 %r1, %r2, 1, 31;", "shfl.sync.down.b32 %r1, %r2, 1, 31, -1;"),
        ("redux.sync.min.f32 %r1, %r2, -1;", "redux.sync.min.s32 %r1, %r2, -1;"),
        ("prmt.b32.xyz %r1, %r2, %r3, 1;", "prmt.b32.rc8 %r1, %r2, %r3, 1;"),
        ("setp.lt.nor.s32 %p1, %r2, %r3, %p1; selp.b32 %r1, 1, 0, %p1;", "selp.b32 %r1, 1, 0, %p1;"),
        (
            "rcp.approx.ftz.f64 %g1, %g1; cvt.rzi.s32.f64 %r1, %g1;",
            "rcp.rn.f64 %g1, %g1; cvt.rzi.s32.f64 %r1, %g1;",
        ),
        ("multimem.red.add.u32 %r1, %r2;", "mov.b32 %r1, %r2;"),
    ],
)
def test_a_result_that_depends_on_it_is_an_error(unknown: str, known: str) -> None:
    """The instruction is named; its good twin runs."""
    out = np.zeros(1, np.uint32)
    with pytest.raises(MemsimError) as caught:
        run(load_ptx(kernel(unknown))["k"], 1, 1, [out])
    assert unknown.split()[0] + " is not executed" in str(caught.value)
    run(load_ptx(kernel(known))["k"], 1, 1, [out])


def test_the_carry_bit_has_to_be_set_before_it_is_read() -> None:
    out = np.zeros(1, np.uint32)
    with pytest.raises(MemsimError, match="never written"):
        run(load_ptx(kernel("addc.u32 %r1, %r2, %r3;"))["k"], 1, 1, [out])
    run(load_ptx(kernel("add.cc.u32 %r1, %r2, -1; addc.u32 %r1, %r2, %r3;"))["k"], 1, 1, [out])
    assert out[0] == 2 + 3 + 1


def test_a_guarded_carry_keeps_the_old_one() -> None:
    """`@p add.cc` in some threads: the others go on with the carry they had."""
    line = """
    mov.u32 %r4, %tid.x; setp.lt.u32 %p2, %r4, 3;
    add.cc.u32 %r1, %r2, %r3;
    @%p2 add.cc.u32 %r1, %r2, -1;
    addc.u32 %r1, 0, 0;
    ld.param.u64 %d2, [out]; mad.wide.u32 %d2, %r4, 4, %d2; st.global.u32 [%d2+4], %r1;
    """
    out = np.zeros(9, np.uint32)
    run(load_ptx(kernel(line))["k"], 1, 8, [out])
    assert out[1:].tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
