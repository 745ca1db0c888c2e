"""What `wgmma` gives against the registers that an H200 gave, one launch for each layout and type."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memsim.errors import MemsimError
from memsim.isa.op import UNIFORM
from memsim.isa.readers import Binder
from memsim.launch import Launch
from memsim.sass.decode import meaning_of_text
from memsim.simt.active_lanes import Lanes
from memsim.state.address_spaces import SHARED_BASE
from memsim.state.poison import Poison
from memsim.state.registers import from_array, ints, to_array
from memsim.state.space_bytes import SpaceBytes

RECORDED = dict(np.load(Path(__file__).parent / "wgmma.npz"))
LAUNCHES = json.loads(str(RECORDED["launches"]))
SUMS = dict(np.load(Path(__file__).parent / "wgmma_sums.npz"))
SUM_LAUNCHES = json.loads(str(SUMS["launches"]))
OP: Any = SimpleNamespace(form=SimpleNamespace(name="HGMMA"), name="HGMMA", source=None, where="address 0x0")


class Warpgroup(Lanes):
    """Four warps with shared memory."""

    def __init__(self, content: np.ndarray) -> None:
        super().__init__(Launch((1, 1, 1), (128, 1, 1)), (1, 1, 1))
        self.start(np.zeros(1, np.int64))
        self.slots: list[Any] = [None] * 1024
        self.store = SpaceBytes(content[None].copy(), SHARED_BASE, (1, 128), "block")
        self.memory = SimpleNamespace(space=lambda name: self.store)

    def operands(self, op: Any, width: int, active: Any, *told: Any) -> None:
        """Nothing is counted here."""

    def write(self, slot: int, value: Any, active: Any) -> None:
        self.slots[slot] = value

    def at(self, error: Exception, op: Any) -> Exception:
        return error

    def multiplied(self, instruction: str, words: list[int]) -> list[Any]:
        """What an instruction gives: the registers of the result."""
        for i, word in enumerate(words):
            self.slots[UNIFORM + 4 + (4 if "gdesc[UR8]" in instruction else 0) + i] = int(
                np.uint32(word).astype(np.int32)
            )
        before = list(self.slots)
        with np.errstate(all="ignore"):
            meaning_of_text(instruction).bind(Binder({}))(self, OP, True, True)
        return [new for old, new in zip(before, self.slots) if new is not old]


def bits(registers: list[Any]) -> np.ndarray:
    """Registers as uint32 [128, registers]."""
    found = []
    for value in registers:
        assert not isinstance(value, Poison), value.story()
        array = value.view(np.uint32) if isinstance(value, np.ndarray) else to_array(ints(value))
        found.append(np.broadcast_to(array.astype(np.uint32).reshape(-1), (128,)))
    return np.stack(found, axis=-1)


@pytest.mark.parametrize(
    "launch", LAUNCHES, ids=lambda one: f"{one['instruction'].split()[0]}-{one['content']}"
)
def test_results_are_those_of_the_chip(launch: dict[str, Any]) -> None:
    group = Warpgroup(RECORDED[launch["content"]])
    if launch["fragment"]:
        fragment = RECORDED[launch["fragment"]].reshape(128, 4).astype(np.int32).astype(np.int64)
        for i in range(4):
            group.slots[200 + i] = from_array(fragment[:, i][None])
    found = bits(group.multiplied(launch["instruction"], launch["descriptors"]))
    assert sha256(found.astype("<u4").tobytes()).hexdigest() == launch["sha256"]


@pytest.mark.parametrize(
    "launch",
    SUM_LAUNCHES,
    ids=lambda one: f"{one['instruction'].split()[0]}-{one['content']}",
)
def test_sums_onto_an_addend_and_base_offsets_are_those_of_the_chip(launch: dict[str, Any]) -> None:
    content = SUMS[launch["content"]]
    group = Warpgroup(np.pad(content, (0, 65536 - len(content))))
    if launch["addend"]:
        addend = np.zeros((128, SUMS[launch["addend"]].shape[1]), np.uint32)
        addend[:32] = SUMS[launch["addend"]]
        for i, column in enumerate(addend.T.copy()):
            whole = column.view(np.int32).astype(np.int64)[None]
            floats = ".F32" in launch["instruction"]
            group.slots[24 + i] = column.view(np.float32)[None] if floats else from_array(whole)
    found = bits(group.multiplied(launch["instruction"], launch["descriptors"]))[: launch["lanes"]]
    assert sha256(np.ascontiguousarray(found).astype("<u4").tobytes()).hexdigest() == launch["sha256"]


def test_a_descriptor_that_leaves_shared_memory_is_refused() -> None:
    group = Warpgroup(np.zeros(4096, np.uint8))
    inside, outside = [0x40 | 8 << 16, 16, 0x40 | 8 << 16, 16], [0x40 | 8 << 16, 16, 0x140 | 8 << 16, 16]
    instruction = "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0"
    assert len(group.multiplied(instruction, inside)) == 4
    with pytest.raises(MemsimError, match="outside of shared memory"):
        group.multiplied(instruction, outside)
