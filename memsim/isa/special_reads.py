"""Reads of special registers and of the program counter: `S2R S2UR CS2R CS2UR LEPC`."""

from __future__ import annotations

from typing import Any

from memsim.isa.definitions import BoundForm, Compute, executes
from memsim.isa.machine_protocol import Warps
from memsim.isa.op import Effect, Label, Special
from memsim.isa.pairs import halved
from memsim.isa.readers import Registers
from memsim.isa.unsupported import Unsupported
from memsim.state.poison import Poison, Poisoned


@executes("S2R S2UR CS2UR CS2R.32", "W <- S", "32 64", effect=Effect.LANES)
@executes("CS2R", "D <- S", "64", effect=Effect.LANES)
def special_register(form: BoundForm, source: Special) -> Compute:
    name, wide = source.name, form.opcode == "CS2R" and "32" not in form.given

    def compute(r: Registers, warps: Warps) -> Any:
        value = 0 if name == "SRZ" else warps.special(name)
        if isinstance(value, Poison):
            raise Poisoned(value)
        return halved(value) if wide else value

    return compute


@executes("LEPC", "D <- L")
def program_counter(form: BoundForm, label: Label) -> Compute:
    if label.address is None:
        raise Unsupported
    pair = halved(label.address)
    return lambda r: pair
