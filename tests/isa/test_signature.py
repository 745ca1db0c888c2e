"""A signature finds the operands of a form, and what it says is what is written and read."""

from __future__ import annotations

from typing import Any

import pytest

from memsim.isa.op import BARRIER, PREDICATE, UNIFORM, Trait, slots_of
from memsim.isa.readers import Binder
from memsim.isa.signature import signature
from memsim.sass.decode import meaning_of_text, parse_form


@pytest.mark.parametrize(
    ("signed", "text", "present"),
    [
        ("W P?P? <- UUU P?P?", "X R0, R1, R2, R3", "10011100"),
        ("W P?P? <- UUU P?P?", "X R0, P0, R1, R2, R3, P1, P2", "11011111"),
        ("R?P? <- P", "X P0, P1", "011"),  # the predicate that is read may not be taken for a result
        ("R?P? <- P", "X P1", "001"),
        ("R?P? <- P", "X R0, P0, P1", "111"),
        ("<- a I?", "X [R4], 0x8", "11"),
    ],
)
def test_operands_that_may_be_missing(signed: str, text: str, present: str) -> None:
    found = signature(signed).match(parse_form(text))
    assert found is not None
    operands = [operand for side in found for _, operand in side]
    assert "".join("01"[operand is not None] for operand in operands) == present


@pytest.mark.parametrize(
    "text", ["X R0, R1", "X R0, R1, R2, R3", "X P0, R1, R2", "X R0, R1, P2", "X R0, [R1], R2"]
)
def test_other_operands_do_not_match(text: str) -> None:
    assert signature("W <- WW").match(parse_form("X R0, R1, R2")) is not None
    assert signature("W <- WW").match(parse_form(text)) is None


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        # A pair of registers, but predicates one by one.
        ("UIADD3.64 UR4, UP0, UP1, UR6, UR8, UR10", (UNIFORM + 4, UNIFORM + 5, PREDICATE + 8, PREDICATE + 9)),
        ("ATOMG.E.CAS.64.STRONG.GPU P2, R4, desc[UR4][R2.64], R6, R8", (PREDICATE + 2, 4, 5)),
        ("LDG.E.128 R8, desc[UR4][R2.64]", (8, 9, 10, 11)),
        ("MUFU.RCP R4, R5", (4,)),
        ("MUFU.NONE R4, R5", (4,)),  # a form that is not executed
        # A lane's share of each of N columns, of a shape: 32 rows of 32 bits, 16 rows of 128 and of 256.
        ("LDTM.x4 R4, tmem[UR4]", (4, 5, 6, 7)),
        ("LDTM.16dp128bit R4, tmem[UR4]", (4, 5)),
        ("LDTM.16dp256bit.x2 R4, tmem[UR4]", tuple(range(4, 12))),
    ],
)
def test_what_is_written(text: str, targets: tuple[int, ...]) -> None:
    meaning = meaning_of_text(text)
    assert meaning.targets == targets
    assert slots_of(meaning.writes) == sorted(targets)


U, P0 = UNIFORM, PREDICATE


@pytest.mark.parametrize(
    ("text", "reads", "addresses"),
    [
        ("FADD R0, R2, R4", {2, 4}, set()),
        ("HADD2 R0, R2, R4", {2, 4}, set()),
        ("HADD2.BF16_V2 R0, R2, R4", {2, 4}, set()),
        ("DFMA R0, R2, R4, R6", {*range(2, 8)}, set()),
        ("IMAD.WIDE R0, R2, R3, R4", {2, 3, 4, 5}, set()),
        ("IMAD.WIDE.U32 R0, R2, R3, R4", {2, 3, 4, 5}, set()),
        ("PRMT R0, R2, 0x3210, R4", {2, 4}, set()),
        ("I2F.S64 R0, R2", {2, 3}, set()),
        ("F2I.S64 R0, R2", {2}, set()),
        ("F2F.F32.F64 R0, R2", {2, 3}, set()),
        ("I2F.F64.S64 R0, R2", {2, 3}, set()),
        ("MUFU.RCP64H R0, R3", {3}, set()),
        ("SHF.R.U64 R0, R2, R4, R6", {2, 4, 6}, set()),
        ("SHFL.IDX PT, R0, R2, R4, R6", {2, 4, 6}, set()),
        ("ULEA UR4, UR6, UR8, 0x2", {U + 6, U + 8}, set()),
        ("HMMA.16816.F32 R0, R4, R8, R12", {*range(4, 10), *range(12, 16)}, set()),
        ("SEL R0, R2, R4, P1", {2, 4, P0 + 1}, {P0 + 1}),
        ("LDG.E R0, desc[UR4][R2.64]", {2, 3}, {2, 3}),
        ("LDS R0, [R2+UR4]", {2, U + 4}, {2, U + 4}),
        ("LDC R0, c[0x3][R2]", {2}, {2}),
        ("STG.E.64 desc[UR4][R2.64], R6", {2, 3, 6, 7}, {2, 3}),
        ("ATOMS.CAS R0, [R2], R4, R6", {2, 4, 6}, {2}),
        ("LDGSTS.E.128 [R2], desc[UR4][R4.64]", {2, 4, 5}, {2, 4, 5}),
        (
            "UTMALDG.2D [UR8], [UR4]",
            {U + 4, U + 5, *range(U + 8, U + 12)},
            {U + 4, U + 5, *range(U + 8, U + 12)},
        ),
        ("UBLKCP.S.G [UR4], [UR6], UR9", {*range(U + 4, U + 8), U + 9}, {*range(U + 4, U + 8), U + 9}),
        ("BSYNC B0", {BARRIER}, set()),
    ],
)
def test_what_is_read(text: str, reads: set[int], addresses: set[int]) -> None:
    meaning = meaning_of_text(text)
    assert ({*slots_of(meaning.reads)}, {*slots_of(meaning.addresses)}) == (reads, addresses)


def test_registers_to_predicates_reads_no_predicate() -> None:
    """Those that its mask does not name keep their values, and nothing depends on them."""
    meaning = meaning_of_text("R2P PR, R2, 0x3")
    assert slots_of(meaning.reads) == [2]
    assert slots_of(meaning.writes) == [PREDICATE, PREDICATE + 1]


@pytest.mark.parametrize("channels", range(1, 16))
def test_a_fetch_writes_a_register_for_each_channel(channels: int) -> None:
    """The first two into the second operand, the others into the first."""
    count, bits = channels.bit_count(), f"{channels:#x}"
    first = "R20" if count > 2 else "RZ"
    for text in (f"TLD.LZ {first}, R4, R6, R8, 0x0, 1D, {bits}", f"TEX {first}, R4, R6, R8, 0x0, 2D, {bits}"):
        assert slots_of(meaning_of_text(text).writes) == [4, 5, 20, 21][:count]


@pytest.mark.parametrize(
    ("shape", "coordinates"),
    [("1D", 1), ("2D", 2), ("3D", 3), ("ARRAY_1D", 2), ("ARRAY_2D", 3), ("CUBE", 3), ("ARRAY_CUBE", 4)],
)
def test_a_fetch_reads_a_register_for_each_coordinate(shape: str, coordinates: int) -> None:
    """A cube's face is found by three; of layers, the layer comes first."""
    meaning = meaning_of_text(f"TEX.LL R20, R18, R4, R9, UR6, 0x0, {shape}")
    assert slots_of(meaning.reads) == [*range(4, 4 + coordinates), 9, UNIFORM + 6, UNIFORM + 7]


def test_what_a_wait_reads_decides_how_the_program_goes_on() -> None:
    """Not so the data of a store: there the address alone matters for what is accessed."""
    wait = meaning_of_text("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x8], R3")
    assert slots_of(wait.addresses) == [3, UNIFORM + 4]
    assert slots_of(meaning_of_text("STS [R2], R3").addresses) == [2]
    assert slots_of(meaning_of_text("LDG.E R4, desc[UR6][R2.64+UR8]").addresses) == [
        2,
        3,
        UNIFORM + 8,
        UNIFORM + 9,
    ]


@pytest.mark.parametrize(
    ("text", "results"),
    [("FLO.U32 R0, R1", 3), ("FLO.U32 R0, P0, R1", (3, True))],
)
def test_results_that_a_form_does_not_have_are_dropped(text: str, results: Any) -> None:
    found = meaning_of_text(text).bind(Binder({}))([8] * 400)
    assert (tuple(found) if isinstance(results, tuple) else found) == results


def test_a_modifier_brings_a_trait() -> None:
    assert meaning_of_text("BAR.RED.POPC.DEFER_BLOCKING 0x0, P0").traits == {Trait.REDUCES, Trait.COUNTS}
    assert Trait.OBSERVES in meaning_of_text("LDG.E.STRONG.GPU R4, desc[UR4][R2.64]").traits
    assert not meaning_of_text("LDG.E R4, desc[UR4][R2.64]").traits
