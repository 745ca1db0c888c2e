"""Texture fetches: `TLD.LZ` of a 1-D texture in linear memory, compiled from `tex1Dfetch<float4>`.

Returns four floats of a `memsim.argument_types.Texture1D`, zeros out of bounds. Its cost is not modelled: it
uses the texture pipe.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from memsim.isa.access import slots_of
from memsim.isa.op import Form, Immediate, Register, Special
from memsim.isa.readers import Binder
from memsim.isa.registry import checked, opcode, require
from memsim.state.poison import Poison, Poisoned
from memsim.state.registers import to_array


@opcode("TLD", results="RR", widths={0: 2, 1: 2}, touches=(("load", "texture"),))
def build_fetch(form: Form, binder: Binder) -> Any:
    operands = form.operands
    require(form.modifiers == ("LZ",) and len(operands) in (6, 7))
    index, handle, zero, dimensions = operands[2:6]
    mask = operands[6].value if len(operands) == 7 and isinstance(operands[6], Immediate) else 0xF
    require(dimensions == Special("1D") and isinstance(zero, Immediate))
    require(checked(handle, Register).slot is not None)
    channels = [channel for channel in range(4) if int(mask) >> channel & 1]
    at, which = binder.word(index), binder.word(handle)
    slots = [slot for target in operands[:2] if isinstance(target, Register) for slot in slots_of(target, 2)]

    def run(machine: Any, op: Any, active: Any, data: bool) -> None:
        machine.uncounted("texture request", active)
        if not data:
            return
        try:
            texture = machine.texture(which(machine.slots))
            place = to_array(at(machine.slots))
        except Poisoned as unknown:
            values: list[Any] = [unknown.poison.through(op)] * 4
        else:
            inside = (place >= 0) & (place < len(texture.texels))
            texels = texture.texels[np.where(inside, place, 0)]
            found: list[Any] = [np.where(inside, texels[..., channel], np.float32(0)) for channel in channels]
            found += [Poison("a texel's channel that was not requested", op)] * (4 - len(found))
            values = [found[2], found[3], found[0], found[1]]
        for slot, value in zip(slots, values):
            if slot is not None:
                machine.write(slot, value, active)

    return run
