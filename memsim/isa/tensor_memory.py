"""Tensor memory of sm_100 (`tcgen05`): its allocation, products, copies and loads, none of which is computed.

What a kernel does beside them is analyzed as everywhere: a value that was in tensor memory is unknown, and
requests of products and copies to shared memory are reported as uncounted. An allocation waits until it
succeeds, so it does, and is at the first column; a second one of a block, too, which its release finds out. A
commit arrives at its mbarrier when it is issued, which is one legal order. Source: PTX ISA, "TensorCore 5th
Generation Instructions", and the code that ptxas generates for sm_100a.
"""

from __future__ import annotations

import numpy as np

from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.mbarrier import MbarrierLanes, run_on_mbarrier, synchronizes
from memsim.isa.memory_access import Run
from memsim.isa.op import Effect, Form, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.state.parts import Mask
from memsim.state.poison import Poison

NAME = "tensor memory operation"
#: The shared memory in which the system keeps book of what a block allocates.
BOOK = "reserved by the system"
_ALLOCATES = {"": Trait.ALLOCATES}
PRODUCTS = "UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCCP"
#: Registers of a lane that a load's `.xN` stands for N of.
_REGISTERS = {"16dp128bit": 2, "16dp256bit": 4}


def _loaded(form: Form) -> str:
    times = next((int(name[1:]) for name in form.modifiers if name[:1] == "x" and name[1:].isdecimal()), 1)
    return f"R{times * next((_REGISTERS[name] for name in form.modifiers if name in _REGISTERS), 1)} <- S"


@executes("LDTM", _loaded, None, effect=Effect.MEMORY)
@executes("STTM", "<- S V", None, effect=Effect.MEMORY)
@executes("UTCATOMSWS", "U? <- V?", None, effect=Effect.MEMORY, traits=_ALLOCATES)
@executes("UTCATOMSWS.FIND_AND_SET", "P U <- V", "ALIGN", effect=Effect.MEMORY, traits=_ALLOCATES)
@executes(PRODUCTS, "<- SSS?S?S?S?P?P?", None, effect=Effect.MEMORY)
def use_tensor_memory(form: BoundForm, *_: object) -> Run:
    """Whatever it is, nothing of it is known but that an allocation succeeds."""
    succeeds = "FIND_AND_SET" in form.given

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if active is False:
            return
        machine.uncounted(NAME, active)
        for number, slot in enumerate(form.targets):
            if slot is not None:
                unknown = Poison("what tensor memory holds", op)
                machine.write(slot, unknown if not succeeds else 0 if number else True, active)

    return run


@executes("UVIRTCOUNT.DEALLOC.SMPOOL", "<- I", effect=Effect.MEMORY)
def return_columns(form: BoundForm, _: int) -> Run:
    """The end of an allocation."""
    return lambda machine, op, active, data: None


@synchronizes("UTCBAR", "<- a V?")
def commit(form: BoundForm, place: IntReader, _: object = None) -> Run:
    """`tcgen05.commit`: a warp arrives once, however many of its lanes are active."""

    def act(machine: MemoryMachine, op: Op, lanes: MbarrierLanes) -> None:
        _, once = np.unique(lanes.warp, return_index=True)
        block, address, (row, warp) = lanes.block[once], lanes.address[once], lanes.own
        machine.order.arrive(row[once], warp[once], block, machine.mbarriers.columns(address))
        machine.mbarriers.arrive(block, address, np.ones_like(block), np.zeros_like(block))

    return run_on_mbarrier(form, place, act)
