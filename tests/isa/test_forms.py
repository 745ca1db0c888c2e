"""Every opcode that was met in compiled kernels has a record, and what of it is executed.

opcodes_in_the_wild.csv: opcodes with modifiers, in how many kernels and how often, by several compilers.
samples.txt: one instruction of a form, of our own kernels.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from memsim.isa.comparisons import Combined
from memsim.isa.definitions import DEFINITIONS, BoundForm, meaning_of
from memsim.isa.op import PREDICATE, SLOTS, Effect, Predicate, Unsupported
from memsim.isa.readers import Binder
from memsim.sass.decode import decode, meaning_of_text, parse_operand
from memsim.sass.listing import Listing, ListingLine
from memsim.simt.code import Code, KnownSteps
from memsim.simt.dataflow import Dataflow
from memsim.simt.steps import with_decided
from memsim.state.partial import Partial
from memsim.state.parts import Part
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import from_array, ints, to_array

HERE = Path(__file__).parent
NAMES = [row["opcode"] for row in csv.DictReader((HERE / "opcodes_in_the_wild.csv").read_text().splitlines())]
SAMPLES = (HERE / "samples.txt").read_text().splitlines()

#: Opcodes that are known and not executed: results are unknown, and accesses are listed.
KNOWN_ONLY = {"CCTL", "HGMMA", "QGMMA", "UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG"}
#: Forms of executed opcodes that are not: one is, once its label has an address; of the other the handle is
#: in registers of lanes, whose order is not known.
REFUSED = {"LEPC", "TEX.LL"}


def test_every_opcode_has_a_record() -> None:
    assert not {name.split(".")[0] for name in NAMES} - DEFINITIONS.keys()


def test_what_is_not_executed() -> None:
    found = set()
    for name in NAMES:
        opcode = name.split(".")[0]
        executed = [one.build or one.flow or one.effect is Effect.NONE for one in DEFINITIONS[opcode]]
        if not any(executed):
            found.add(opcode)
    assert found <= KNOWN_ONLY


@pytest.mark.parametrize("text", SAMPLES, ids=lambda text: text.split()[0])
def test_a_form_builds(text: str) -> None:
    meaning = meaning_of_text(text)
    form = meaning.form
    if meaning.definition.build is None:
        executed = meaning.flow is not None or meaning.effect is Effect.NONE
        assert executed or form.opcode in KNOWN_ONLY
        return
    try:
        meaning.bind(Binder({}))
    except Poisoned:
        pass  # a constant that only a launch has
    except Unsupported:
        assert form.name in REFUSED
    else:
        assert form.name not in REFUSED


#: Forms that no opcode has, or none that is executed.
UNKNOWN = """
I2F.X R0, R1
F2I.SAT R0, R1
F2F.SAT.F32.F64 R0, R2
F2FP.F16.F32.PACK_BA R0, R1, R2
F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C R0, R1, R2, R3
F2IP.U8.F32.NTZ R0, RZ, R1, R2
DADD.FTZ R0, R2, R4
DSETP.LT P0, PT, R2, R4, PT
DMNMX.X R0, R2, R4, PT
HADD2.X R0, R1, R2
HADD2.BF16_V2.FTZ R0, R1, R2
HMNMX2.SAT R0, R1, R2, PT
VHMNMX.FTZ R0, R1, R2, R3, PT
HSETP2.LT P0, PT, R1, R2, PT
IADD3.SAT R0, R1, R2, R3
IMAD.WIDE.SAT R0, R2, R3, R4
LEA.X R0, P0, R1, R2, 0x1, P1
VIMNMX.S8x4 R0, R1, R2, PT
ISETP.LT.NAND P0, PT, R1, R2, PT
IDP.8A.S8.S8 R0, R1, R2, R3
SHFL.ROTATE PT, R0, R1, 0x1, 0x1f
VOTE.MOST R0, PT, PT
REDUX.MUL UR4, R1
R2UR.AND P0, UR4, R1
PRMT.X R0, R1, R2, R3
LOP3.LUT.SAT R0, R1, R2, R3, 0xc0, P0
SHF.L.U16 R0, R1, R2, R3
HMMA.16816.F32.E4M3 R0, R8, R16, R24
HMMA.SP.16832.F32 R0, R8, R16, R24, R25, 0x0
IMMA.16864.S4.S4 R0, R8.ROW, R16.COL, R24
DMMA.16x8x32 R0, R8, R16, R24
MOVM.8.MT88 R0, R1
LDG.E.96 R4, desc[UR4][R2.64]
STS.FOO [R2], R4
LDGSTS.E.256 [R2], desc[UR4][R4.64]
LDSM.8.M88 R4, [R2]
ATOMG.E.MUL.STRONG.GPU PT, R4, desc[UR4][R2.64], R8
REDG.E.MIN.F32.STRONG.GPU desc[UR4][R2.64], R8
REDG.E.MIN.F32x2.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R8
FADD.FOO R0, R1, R2
MUFU.SINH R0, R1
FSETP.XX.AND P0, PT, R1, R2, PT
FCHK.X P0, R1, R2
UBLKRED.G.S.ADD.MIN [UR6], [UR4], UR5
UBLKRED.G.S.F32 [UR6], [UR4], UR5
UBLKRED.G.S.ADD.F32.S32 [UR6], [UR4], UR5
UBLKRED.G.S.ADD.F32.FOO [UR6], [UR4], UR5
UBLKRED.G.S.XOR.F32 [UR6], [UR4], UR5
I2I.U8 R0, R1
I2I.S64.S32 R0, R1
ISETP.U64.LT.AND P0, PT, R2, -0x1, PT
TEX.LL R10, R8, R4, R9, UR6, 0x0, 4D
TEX.B R10, R8, R4, R9, UR6, 0x0, 2D
TEX.LL P1, R10, R8, R4, R9, R6, 0x0, 2D
TLD4 R6, R4, R10, UR6, 0x0, 2D
TLD4.R.G R6, R4, R10, UR6, 0x0, 2D
TLD4.LZ R6, R4, R10, UR6, 0x0, 2D
TLD4.R R6, R4, R10, UR6, 0x0, 3D
TLD R10, R8, R4, UR6, 0x0, 1D, 0x7
TLD.LL R10, R8, R4, UR6, 0x0, 1D, 0x7
TLD.LZ R10, R8, R4, UR6, 0x0, 2D, 0x7
HGMMA.64x8x16.F32.FOO R24, gdesc[UR4], RZ, !UPT
HGMMA.64x8x32.F32 R24, gdesc[UR4], RZ, !UPT
HGMMA.64x8.F32 R24, gdesc[UR4], RZ, !UPT
HGMMA.64x8x16.F32 RZ, gdesc[UR4], RZ, !UPT
STAS [R24.64+0x10], R0
STAS [RZ.64], R0
REDAS.EXCH [R24.64], R0
REDAS [R24.64], R0
ATOMG.E.STRONG.GPU PT, R4, desc[UR4][R2.64], R8
ATOMG.E.MIN.F16x2.FOO PT, R4, desc[UR4][R2.64], R8
ATOMG.E.AND.F16x2.RN.STRONG.GPU PT, R4, desc[UR4][R2.64], R8
ATOMG.E.AND.F32.STRONG.GPU PT, R4, desc[UR4][R2.64], R8
QSPC.E P0, R3, desc[UR4][R4.64]
QSPC.E.S.L P0, R3, desc[UR4][R4.64]
LDG.E P0, R4, desc[UR4][R2.64]
LDG.E.FOO R4, desc[UR4][R2.64]
IADD.64 R2, R4, 0x80000000
IADD3.64 R2, P1, PT, R4, R6, R8
VIMNMX.S64 P1, PT, R2, R4, R6, PT, PT
VIMNMX.S64 PT, PT, R2, R4, 0x80000000, PT, PT
UTMALDG [UR4], [UR10]
UTMALDG.6D [UR4], [UR10]
UTMALDG.1D.2D [UR4], [UR10]
UTMALDG.1D.FOO [UR4], [UR10]
UTMASTG.1D.MULTICAST [UR4], [UR10], UR6
FSETP.GT.AND.OR P0, PT, R1, R2, PT
FSETP.GT P0, PT, R1, R2, PT
FSET.BF.GT.NAND R0, R1, R2, PT
IMAD R0, |R1|, R2, R3
IADD3 R0, R1.H0, |R2|, R3
""".strip().splitlines()


@pytest.mark.parametrize("text", UNKNOWN, ids=lambda text: text.split()[0])
def test_an_unknown_form_is_refused(text: str) -> None:
    meaning = meaning_of_text(text)
    assert any(one.build is not None for one in DEFINITIONS[meaning.form.opcode])
    with pytest.raises(Unsupported):
        meaning.bind(Binder({}))


def test_a_guard_holds_as_its_predicate_says() -> None:
    guards = {name: decode_guard(name) for name in ("PT", "!PT", "P2", "!P2", "UP1", "!UP1")}
    for holds in (True, False):
        registers: list[Any] = [None] * (SLOTS + 2)
        for name in ("P2", "UP1"):
            registers[guards[name].slot or 0] = holds
        read = {name: Binder({}).guard(guard) for name, guard in guards.items()}
        assert read["PT"] is None and Binder({}).guard(None) is None
        found = {name: each(registers) for name, each in read.items() if each is not None}
        other = not holds
        assert found == {"!PT": False, "P2": holds, "!P2": other, "UP1": holds, "!UP1": other}


def decode_guard(name: str) -> Predicate:
    guard = parse_operand(name)
    assert isinstance(guard, Predicate)
    return guard


def test_a_constant_is_unknown_where_one_of_its_bytes_is() -> None:
    binder = Binder({0: bytes(range(64)), 3: bytes(range(8))}, holes=[range(8, 12), range(32, 34)])
    hidden = {8, 9, 10, 11, 32, 33}
    for bank, length, lost in ((0, 64, hidden), (3, 8, set()), (2, 0, set())):
        for offset in range(-2, 68):
            for size in (1, 2, 4, 8):
                place = range(offset, offset + size)
                if place.start >= 0 and place.stop <= length and not lost & {*place}:
                    wanted = int.from_bytes(bytes(place), "little")
                    assert binder.constant(bank, offset, size, False) == wanted
                else:
                    with pytest.raises(Poisoned):
                        binder.constant(bank, offset, size)
    assert Binder({0: b"\xff\xff"}).constant(0, 0, 2) == -1


@pytest.mark.parametrize("text", SAMPLES, ids=lambda text: text.split()[0])
def test_a_form_with_too_few_operands_is_not_executed(text: str) -> None:
    """As in a listing that is damaged: what is built can be computed, or it is not built."""
    meaning = meaning_of_text(text)
    form = meaning.form
    if meaning.definition.build is None or meaning.effect is not Effect.ALU:
        return
    binder = Binder({0: bytes(4096)})
    registers: list[Any] = [3] * PREDICATE + [True] * (SLOTS - PREDICATE)
    for count in range(len(form.operands)):
        try:
            compute = meaning_of(replace(form, operands=form.operands[:count])).bind(binder)
        except (Unsupported, Poisoned, IndexError, ValueError):
            continue
        with suppress(Poisoned):
            compute(registers)


def test_steps_of_a_launch_before() -> None:
    """A step is taken over from a launch that told it the same, and no other."""
    texts = "IADD3 R1, R1, c[0x0][0x8], RZ", "IADD3 R2, R1, c[0x0][0x10], RZ", "IADD3 R3, R1, R2, RZ", "EXIT"
    lines = tuple(ListingLine(16 * place, None, text, None) for place, text in enumerate(texts))
    dataflow = Dataflow(decode(Listing("kernel", lines, {})))
    known: KnownSteps = {}

    def steps(bank: bytes, *holes: range) -> tuple[Any, ...]:
        return Code(dataflow, Binder({0: bank}, holes=holes), None, {}, known=known).segments[0].steps

    first, same = steps(bytes(range(20))), steps(bytes(range(20)))
    assert len(first) == 3 and first == same
    other = steps(bytes(range(16)) + bytes(4))
    assert [one is two for one, two in zip(first, other)] == [True, False, True]
    hidden = steps(bytes(range(16)) + bytes(4), range(8, 12))
    assert [one is two for one, two in zip(other, hidden)] == [False, True, True]


def executed(*texts: str) -> list[Any]:
    """The registers after instructions that are executed in order."""
    lines = tuple(ListingLine(16 * place, None, text, None) for place, text in enumerate((*texts, "EXIT")))
    code = Code(Dataflow(decode(Listing("kernel", lines, {}))), Binder({}), None, {})

    class Engine:
        mask, protected = True, 0
        slots: ClassVar[list[Any]] = [None] * code.slots

        def write(self, slot: int, value: Any, active: Any) -> None:
            self.slots[slot] = value

    engine: Any = Engine()
    for step in code.segments[0].steps:
        step(engine)
    return list(engine.slots)


def test_a_form_that_is_not_executed_poisons_what_it_writes() -> None:
    registers = executed(
        "MOV R1, 0x5", "IADD3.SAT R2, R1, R1, RZ", "IADD3 R3, R2, 0x1, RZ", "IADD3 R4, R1, R1, RZ"
    )
    assert isinstance(registers[2], Poison) and "IADD3.SAT is not executed" in registers[2].reason
    assert isinstance(registers[3], Poison)
    assert registers[4] == 10


@pytest.mark.parametrize(
    ("text", "known"),
    [
        # R1 is 5, R2 and P1 are unknown.
        ("ISETP.LT.AND P0, PT, R1, 0x4, P1", False),
        ("ISETP.LT.AND P0, PT, R1, 0x9, P1", None),
        ("ISETP.LT.OR P0, PT, R1, 0x9, P1", True),
        ("ISETP.LT.OR P0, PT, R1, 0x4, P1", None),
        ("ISETP.LT.XOR P0, PT, R1, 0x4, P1", None),
        ("ISETP.LT.AND P0, P3, R1, 0x4, P1", None),  # what P3 is, depends on P1
        ("ISETP.LT.AND P0, PT, R1, R2, !PT", False),
        ("ISETP.LT.AND P0, PT, R1, R2, PT", None),
        ("FSETP.GT.AND P0, PT, RZ, 1, P1", False),
        ("FSETP.GT.OR P0, PT, RZ, -1, !P1", True),
    ],
)
def test_a_comparison_or_a_predicate_decides_whatever_the_other_is(text: str, known: bool | None) -> None:
    registers = executed("MOV R1, 0x5", "IADD3.SAT R2, R1, R1, RZ", "ISETP.NE.AND P1, PT, R2, RZ, PT", text)
    assert isinstance(registers[PREDICATE + 1], Poison)
    assert isinstance(registers[PREDICATE], Poison) if known is None else registers[PREDICATE] is known


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # R1 is 5, R2 is unknown, and so is P1; R4 and R5 are 1 and 2.
        ("SEL R0, R1, R2, PT", 5),
        ("SEL R0, R2, R1, !PT", 5),
        ("SEL R0, R2, R1, PT", None),
        ("SEL R0, R1, R4, P1", None),
        ("SEL.64 R0, R4, R2, PT", 1),
        ("FSEL R0, R1, R2, PT", 5),
    ],
)
def test_a_side_that_is_not_selected_need_not_be_known(text: str, value: int | None) -> None:
    unknown = ("IADD3.SAT R2, R1, R1, RZ", "ISETP.NE.AND P1, PT, R2, RZ, PT")
    registers = executed("MOV R1, 0x5", "MOV R4, 0x1", "MOV R5, 0x2", *unknown, text)
    assert isinstance(registers[0], Poison) if value is None else to_array(ints(registers[0])) == value


@pytest.mark.parametrize("text", ["SEL R0, R1, R2, P0", "SEL R0, R2, R1, !P0", "SEL.64 R0, R4, R2, P0"])
def test_lanes_are_known_in_which_the_selected_side_is(text: str) -> None:
    """R1, R4 and R5 are 5, 6, 7, of which the second lane is unknown in R5; P0 holds in the first two."""
    compute, why = meaning_of_text(text).bind(Binder({})), Poison("unknown", None)
    some = [from_bools(np.array([row], bool)) for row in ([1, 1, 0], [1, 0, 1])]
    registers: list[Any] = [why] * SLOTS
    number = from_array(np.array([[5, 6, 7]]))
    registers[PREDICATE], registers[1], registers[4] = some[0], number, number
    registers[5] = Partial(number, some[1], why)  # type: ignore[arg-type]
    reads = [1, 2, 3, 4, 5, PREDICATE]
    result, known = with_decided(compute, registers, reads, why, False, lambda: True)
    wide = text.startswith("SEL.64")
    assert known.array.tolist() == [[True, not wide, False]]
    assert to_array(result[0] if wide else result)[0, 0] == 5


def test_in_some_lanes_the_comparison_decides_and_in_others_the_predicate() -> None:
    """x < 2 and p, where x is 0 1 2 3 -, and p is - 1 - 0 0: of the lanes only the first is unknown."""
    compute = meaning_of_text("ISETP.LT.AND P0, PT, R1, 0x2, P1").bind(Binder({}))
    assert isinstance(compute, Combined)
    some = [from_bools(np.array([row], bool)) for row in ([1, 1, 1, 1, 0], [0, 1, 0, 1, 1])]
    assert all(isinstance(part, Part) for part in some)
    why = Poison("unknown", None)
    registers: list[Any] = [None] * SLOTS
    registers[1] = Partial(np.array([[0, 1, 2, 3, 9]]), some[0], why)  # type: ignore[arg-type]
    registers[PREDICATE + 1] = Partial(from_bools(np.array([[1, 1, 1, 0, 0]], bool)), some[1], why)  # type: ignore[arg-type]
    both_known = from_bools(np.array([[0, 1, 0, 1, 0]], bool))
    met = from_bools(np.array([[0, 1, 0, 0, 0]], bool))
    result, known = with_decided(
        compute, registers, [1, PREDICATE + 1], (met, False), both_known, lambda: True
    )
    assert known.array.tolist() == [[False, True, True, True, True]]
    assert to_bools(result[0])[0, 1:].tolist() == [True, False, False, False]


def test_a_bug_in_a_record_is_not_taken_for_a_form_that_is_not_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(form: BoundForm, *operands: Any) -> None:
        raise TypeError("a bug")

    monkeypatch.setitem(DEFINITIONS, "BREV", [replace(DEFINITIONS["BREV"][0], build=broken)])
    meaning_of_text.cache_clear()
    with pytest.raises(TypeError, match="a bug"):
        executed("MOV R1, 0x5", "BREV R77, R1")
