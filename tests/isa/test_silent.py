"""Nothing is silent that may touch memory.

hopper_instructions.csv: the opcodes and sections of NVIDIA's table (CUDA Binary Utilities, Hopper
instruction set), and what each does with memory: it reads or writes, it does neither, or it orders what
others do and keeps caches.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from memsim.isa.definitions import DEFINITIONS
from memsim.isa.op import UNIFORM, Effect, slots_of
from memsim.isa.program import ALL_SPACES, Op, spaces_read, spaces_written
from memsim.sass.decode import decode, meaning_of_text
from memsim.sass.listing import Listing, ListingLine

HERE = Path(__file__).parent
TABLE = {
    row["opcode"]: row["memory"]
    for row in csv.DictReader((HERE / "hopper_instructions.csv").read_text().splitlines())
}
#: Of compiled kernels, and not in the table.
BESIDE = {"ARRIVES", "F2FP", "RED"}

SHARED, GLOBAL = frozenset(("shared",)), frozenset(("global",))
#: Not executed: what each may read, and write.
REACH = {
    "HGMMA.64x64x16.F32 R24, gdesc[UR4], R24": (SHARED, frozenset()),
    "QGMMA.64x64x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24": (SHARED, frozenset()),
    "UBLKCP.S.G [UR8], [UR10], UR4": (GLOBAL, SHARED),
    "UBLKCP.G.S [UR10], [UR4], UR5": (SHARED, GLOBAL),
    "UBLKCP.S.S [UR14], [UR4], UR5": (SHARED, SHARED),
    "UBLKRED.G.S.ADD [UR10], [UR4], UR5": (SHARED | GLOBAL, GLOBAL),
    "UTMALDG.1D [UR4], [UR10]": (GLOBAL, SHARED),
    "UTMALDG.1D.MULTICAST [UR4], [UR10], UR6": (GLOBAL, SHARED),
    "UTMASTG.1D [UR4], [UR10]": (SHARED, GLOBAL),
    "UTMAREDG.1D.ADD [UR4], [UR10]": (SHARED | GLOBAL, GLOBAL),
    "STAS [R24.64], R0": (frozenset(), SHARED),
    "REDAS.ADD [R24.64], R0": (frozenset(), SHARED),
    "LDGMC.E.ADD.F32.RN.STRONG.SYS R12, [R30.64+URZ]": (GLOBAL, frozenset()),
    "SULD.D.BA.1D.STRONG.SM.TRAP R9, [R8], UR4, 0x0": (GLOBAL, frozenset()),
    "SUST.D.BA.1D.STRONG.SM.TRAP [R8], R9, UR4, 0x0": (frozenset(), GLOBAL),
    "SURED.D.BA.1D.ADD.STRONG.SYS.TRAP [R8], R9, UR4, 0x0": (GLOBAL, GLOBAL),
    "CCTL.E.RML2 [R32]": (frozenset(), GLOBAL),
    "CCTL.E.SOMETHING [R32]": (frozenset(), GLOBAL),
    "ATOMG.E.EXCH.128.STRONG.GPU PT, R4, desc[UR12][R28.64], R4": (GLOBAL, GLOBAL),
    "ATOMG.E.ADD.F16x8.RN.STRONG.GPU PT, R20, desc[UR12][R28.64], R8": (GLOBAL, GLOBAL),
    "FROB.32 R4, [R8], R6": (ALL_SPACES, ALL_SPACES),
}
#: Without an effect on values.
HARMLESS = (
    "CCTL.E.PF1 [R30]",
    "CCTL.E.DML2 [R32]",
    "CCTL.IVALL",
    "MEMBAR.ALL.GPU",
    "UBLKPF.L2 [UR10], UR5",
    "NOP",
)


def op(text: str) -> Op:
    return decode(Listing("k", (ListingLine(0, None, text, None),), {})).ops[0]


def test_nvidias_table_is_known() -> None:
    assert not TABLE.keys() - DEFINITIONS.keys()


def test_only_what_leaves_memory_alone_is_silent() -> None:
    silent = {name for name, forms in DEFINITIONS.items() if all(one.effect is Effect.NONE for one in forms)}
    assert silent - {"SETMAXREG"} <= TABLE.keys()
    assert {TABLE[name] for name in silent & TABLE.keys()} == {"none", "order"}


def test_what_touches_memory_says_so() -> None:
    for name, memory in TABLE.items():
        forms = DEFINITIONS[name]
        touches = [one.touches for one in forms if one.touches]
        if memory in ("reads", "writes", "both") and name != "SYNCS":  # which lists its accesses itself
            assert any(one.effect is Effect.MEMORY for one in forms), name
            # For a uniform load of a constant the chip makes no request.
            assert touches or name == "ULDC", name
        elif not any(one.flow for one in forms):
            assert not touches, name


@pytest.mark.parametrize("text", REACH, ids=lambda text: text.split()[0])
def test_what_is_not_executed_reaches(text: str) -> None:
    found = op(text)
    assert (spaces_read(found), spaces_written(found)) == REACH[text]
    assert found.effect is Effect.MEMORY


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text.split()[0])
def test_what_has_no_effect(text: str) -> None:
    assert op(text).effect is Effect.NONE
    assert not op(text).writes


def test_an_opcode_in_no_table_may_do_anything() -> None:
    meaning = meaning_of_text("FROB.32 R4, [R8], R6")
    assert not meaning.definition.known and meaning.effect is Effect.MEMORY
    assert meaning.writes >> 4 & 0xF == 0xF
    assert DEFINITIONS.keys() >= BESIDE


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("UBLKCP.G.S [UR10], [UR4], UR6", (10, 11, 4, 6)),  # to a global address of two registers
        ("UBLKCP.S.G [UR8], [UR10], UR4", (8, 9, 10, 11, 4)),
        ("UBLKRED.G.S.ADD [UR10], [UR4], UR6", (10, 11, 4, 6)),
        ("UTMASTG.2D [UR4], [UR10]", (4, 5, 6, 10, 11)),
        ("UTMALDG.2D [UR4], [UR10]", (4, 5, 6, 7, 10, 11)),
    ],
    ids=lambda value: str(value).split()[0],
)
def test_a_copy_reads_the_registers_behind_the_named_ones(text: str, read: tuple[int, ...]) -> None:
    assert op(text).reads == sum(1 << UNIFORM + number for number in read)


@pytest.mark.parametrize("policy", ["desc[URZ]", "desc[UR14]"])
@pytest.mark.parametrize("copy", ["UTMALDG.2D [UR4], [UR10]", "UTMALDG.2D.MULTICAST [UR4], [UR10], UR8"])
def test_a_copy_is_executed_with_a_cache_policy_as_without(copy: str, policy: str) -> None:
    assert meaning_of_text(copy).is_executed and meaning_of_text(f"{copy}, {policy}").is_executed
    assert op(f"{copy}, {policy}").reads == op(copy).reads
    assert not meaning_of_text(f"{copy}, R8").is_executed


@pytest.mark.parametrize(
    ("known", "form"),
    [
        ("IADD3 R4, R2, R3, RZ", "IADD3 UP0, R2, R3, RZ"),  # no chip has it
        ("IADD3 R4, R2, R3, RZ", "IADD3 [R4], R2, R3, RZ"),
        ("LDG.E R4, desc[UR4][R2.64]", "LDG.E desc[UR4][R2.64]"),
        ("MOV R4, R2", "MOV"),
    ],
)
def test_a_form_without_a_result_that_all_known_ones_have_may_do_anything(known: str, form: str) -> None:
    """A new chip may write something else first, which would keep its value if it were taken to be read."""
    assert meaning_of_text(known).definition.known
    assert not meaning_of_text(form).definition.known


@pytest.mark.parametrize(
    ("form", "registers"),
    [
        ("SULD.D.BA.2D.U8.STRONG.SM.IGN", 1),
        ("SULD.D.BA.2D.STRONG.SM.TRAP", 1),
        ("SULD.D.BA.2D.64.STRONG.SM.TRAP", 2),
        ("SULD.D.BA.3D.128.STRONG.SM", 4),
        ("SULD.P.2D.STRONG.SM.TRAP", 4),
    ],
)
def test_a_surface_s_load_writes_as_many_registers_as_it_says(form: str, registers: int) -> None:
    """Else the loop around it has no counter: ptxas keeps it in the register behind."""
    assert slots_of(op(f"{form} R8, [R4], UR4, 0x0").writes) == list(range(8, 8 + registers))
