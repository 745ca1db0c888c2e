"""Every form reads no other registers than it declares: what it does not declare, the slice may leave out.

A form declares by its record (`memsim.isa.signature`), and reads by what its builder binds.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, SupportsIndex
from unittest.mock import MagicMock

import numpy as np
import pytest

from memsim.argument_types import ArrayArg, Texture, Texture1D
from memsim.errors import MemsimError
from memsim.isa.op import BARRIER, PREDICATE, SLOTS, UNIFORM_PREDICATE, Effect, Unsupported, slots_of
from memsim.isa.program import Op
from memsim.isa.readers import Binder
from memsim.launch import Launch
from memsim.sass.decode import decode
from memsim.sass.listing import Listing, ListingLine
from memsim.simt.bounds import Origins
from memsim.simt.machine import Machine
from memsim.state.launch_memory import Memory
from memsim.state.space_bytes import SpaceBytes

SAMPLES = (Path(__file__).parent / "samples.txt").read_text().splitlines()
#: What a form also may be, of which the samples have none.
MORE = """
QSPC.E.S P0, R3, desc[UR4][R4.64]
UP2UR UR44, UPR, URZ, 0x1
P2R.B1 R0, PR, R2, 0x25
UPLOP3.LUT UP0, UPT, UP1, UP2, UP3, 0x40, 0x0
IMNMX R0, R1, R2, !P3
UIMNMX UR4, UR5, UR6, !UP3
UVIMNMX.U32 UR4, UR5, UR6, UPT
CS2UR UR4, SRZ
UFADD UR4, UR5, UR6
UFFMA UR4, UR5, UR6, UR7
UFSETP.GT.AND UP0, UPT, UR4, UR5, UP2
RPCMOV.32 Rpc.LO, R2
LDG.E R2, desc[UR4][R4.64+UR8]
LDS R2, [R4+UR8]
LDS R2, [R4.X4+UR8]
ATOMS.CAS.64 R2, [R4], R6, R8
SHFL.IDX P1, R2, R3, R4, R5
@!P3 SEL R2, R3, R4, !P5
TEX.LL RZ, R5, R12, R9, UR4, 0x0, 2D, 0x1
TEX.LL R10, R8, R4, R9, UR6, 0x0, 3D
TEX.LL RZ, R8, R4, R9, UR6, 0x0, ARRAY_2D, 0x3
TXD R10, R8, R16, R4, UR6, 0x0, 2D
TLD4.R R6, R4, R10, UR6, 0x0, 2D
TLD.LZ R10, R8, R4, UR6, 0x0, 1D, 0x7
""".strip().splitlines()
#: Built only with the address of their label, and a form whose handle is in registers of lanes.
WITHOUT_BUILD = {"LEPC", "TEX"}
#: A texture that each shape of a fetch may read.
TEXTURES = {
    "1D": Texture1D(ArrayArg((8, 4))),
    "2D": Texture(ArrayArg((8, 8, 4))),
    "3D": Texture(ArrayArg((8, 8, 8, 4)), 3),
    "ARRAY_2D": Texture(ArrayArg((8, 8, 8, 4)), layered=True),
}
#: Bulk copies read all their operands before they move data.
BULK = ("UBLK", "UTMA")


class Noted(list[Any]):
    """Registers that note which slots are read."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__(values)
        self.read: set[int] = set()

    def __getitem__(self, index: Any) -> Any:
        assert isinstance(index, SupportsIndex)
        self.read.add(int(index))
        return super().__getitem__(index)


class Bytes(SpaceBytes):
    """A state space in which every address is that of its first byte."""

    def __init__(self) -> None:
        super().__init__(np.zeros((1, 4096), np.uint8), 0, (1, 32), "one")

    def positions(self, address: Any, dtype: type, active: Any) -> np.ndarray:
        return np.zeros((1, 32), np.int64)


class OneWarp(Machine):
    """One warp that may access every address."""

    def __init__(self, slots: Noted) -> None:
        launch = Launch((1, 1, 1), (32, 1, 1))
        super().__init__(SLOTS + 2, launch, (1, 1, 1), Memory([]), Origins(MagicMock()), MagicMock(), True)
        self.start(np.zeros(1, np.int64))
        self.memory = MagicMock()
        self.memory.space.side_effect = lambda name: Bytes()
        self.memory.shared_bytes, self.memory.clock.return_value = 1024, 0
        self.sync, self.mbarriers, self.order = MagicMock(), MagicMock(), MagicMock()
        self.slots = slots

    bound: Texture | None

    def touch(self, *given: Any) -> Any:
        return False

    def lose(self, *given: Any) -> None:
        raise AssertionError("an address is unknown, though all registers are known")

    def resolve(self, address: Any, active: Any) -> list[tuple[str, Any, Any]]:
        return [("global", address, active)]

    def write(self, slot: int, value: Any, active: Any) -> None:
        """Registers stay what they are."""

    def stretches(self, *given: Any) -> None:
        """Nothing is counted."""

    def texture(self, *given: Any) -> Any:
        return self.bound

    def fetch(self, *given: Any) -> None:
        """Nothing is counted."""


def op_of(text: str) -> Op:
    guard, _, rest = text.rpartition("@")[2].partition(" ") if text.startswith("@") else (None, "", text)
    lines = (ListingLine(0, guard, rest, None), ListingLine(16, None, "EXIT", None))
    return decode(Listing("kernel", lines, {})).ops[0]


def slots_read(op: Op) -> set[int]:
    """The slots that an instruction reads when it is executed."""
    registers = Noted([4] * PREDICATE + [True] * (BARRIER - PREDICATE) + [4] * 64)
    binder = Binder({bank: bytes(1 << 16) for bank in range(5)})
    guard = binder.guard(op.guard)
    if guard is not None:
        guard(registers)
    made = op.meaning.bind(binder)
    with np.errstate(all="ignore"):  # as a launch is executed
        if op.effect is Effect.ALU:
            made(registers)
        elif op.effect is Effect.LANES:
            made(registers, OneWarp(registers))
        elif op.form.opcode.startswith(BULK):
            with suppress(MemsimError):  # there is no tensor
                made(OneWarp(registers), op, True, False)
        elif op.effect is Effect.MEMORY:
            warp = OneWarp(registers)
            shapes = [TEXTURES[one.name] for one in op.form.operands if getattr(one, "name", "") in TEXTURES]
            warp.bound = shapes[0] if shapes else None
            made(warp, op, True, True)
    return {slot for slot in registers.read if slot < SLOTS}


@pytest.mark.some(60)
@pytest.mark.parametrize("text", [*SAMPLES, *MORE], ids=lambda text: text.split()[0])
def test_a_form_reads_what_it_declares(text: str) -> None:
    op = op_of(text)
    if op.meaning.definition.build is None:
        return
    try:
        found = slots_read(op)
    except Unsupported:
        assert op.form.opcode in WITHOUT_BUILD
        return
    assert found <= set(slots_of(op.reads | op.addresses))


def test_predicates_in_the_mask_are_read_by_the_name_of_all() -> None:
    """A register of predicates is made of those in the mask, so what computes them is needed, and no more."""
    uniform, of_lanes = op_of("UP2UR UR44, UPR, URZ, 0x1"), op_of("P2R.B1 R0, PR, R2, 0x25")
    assert slots_of(uniform.reads) == [UNIFORM_PREDICATE]
    assert slots_of(of_lanes.reads) == [2, PREDICATE, PREDICATE + 2, PREDICATE + 5]


def test_of_an_unknown_mask_all_predicates_are_read() -> None:
    of_lanes = op_of("P2R R0, PR, RZ, R3")
    assert set(slots_of(of_lanes.reads)) >= set(range(PREDICATE, PREDICATE + 7))


def test_an_address_of_shared_memory_is_one_register() -> None:
    """Also where nothing is written in front of it."""
    assert slots_of(op_of("SYNCS.CCTL.IV [R4]").reads) == [4]
    assert slots_of(op_of("LDGSTS.E [R4], desc[UR4][R2.64]").addresses) == [2, 3, 4]
