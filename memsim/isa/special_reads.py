"""Reads of special registers and of the program counter: `S2R S2UR CS2R CS2UR LEPC`."""

from __future__ import annotations

from typing import Any

from memsim.isa.lanes import Warps
from memsim.isa.op import Effect, Form, Label, Special
from memsim.isa.pairs import halved
from memsim.isa.readers import Binder, Registers
from memsim.isa.registry import Compute, Unsupported, checked, known, opcode
from memsim.state.poison import Poison, Poisoned


def _special_widths(form: Form) -> dict[int, int]:
    return {} if "32" in form.modifiers or form.opcode != "CS2R" else {0: 2}


@opcode("S2R", "S2UR", "CS2R", "CS2UR", widths=_special_widths, effect=Effect.LANES)
def build_special(form: Form, binder: Binder) -> Compute:
    known(form, "32", "64")
    source = form.operands[1]
    name = checked(source, Special).name
    wide = form.opcode == "CS2R" and "32" not in form.modifiers

    def compute(r: Registers, warps: Warps) -> Any:
        value = 0 if name == "SRZ" else warps.special(name)
        if isinstance(value, Poison):
            raise Poisoned(value)
        return halved(value) if wide else value

    return compute


@opcode("LEPC", widths={0: 2})
def build_program_counter(form: Form, binder: Binder) -> Compute:
    known(form)
    address = checked(form.operands[1], Label).address
    if address is None:
        raise Unsupported
    pair = halved(address)
    return lambda r: pair
