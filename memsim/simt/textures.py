"""Texture fetches: `tex.1d.v4.f32.s32`, which `tex1Dfetch<float4>` becomes.

In: an instruction. Out: a step that fetches texels of a `memsim.launch.Texture1D` argument.
Left out on purpose: what a fetch costs. It goes through the texture pipe, not through the one
whose wavefronts and sectors the model knows; so it is no access site, and the listener is told of
a request aside. Other forms (2-D, other types and coordinates) poison what they write.
Source: PTX ISA, "Texture Instructions"; zeros outside: CUDA C++ Programming Guide, "Texture Memory".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memsim.errors import MemsimError
from memsim.launch import Texture1D
from memsim.ptx.program import Instruction, TextureAddress
from memsim.simt.access import items
from memsim.simt.lanes import lane_step
from memsim.simt.plan import Plan, Step, step, unexecuted, where_in_source
from memsim.simt.registry import Unsupported
from memsim.state.registers import Part, Poisoned, Sum, ints, to_array

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


@step("tex")
def build_fetch(plan: Plan, instruction: Instruction, data: bool) -> Step:
    where = instruction.operands[1]
    if not isinstance(where, TextureAddress):
        raise Unsupported(instruction.name)
    executable = instruction.modifiers == ("1d", "v4", "f32", "s32") and len(where.handles) == 1
    handle_slot = plan.source(where.handles[0], "b64")
    index_slot = plan.source(items(where.coordinates)[0], "s32")

    def fetch(machine: Machine, active: bool | Part) -> list[np.ndarray]:
        machine.listener.aside("texture fetches", active)
        if not executable:
            raise Poisoned(unexecuted(instruction))
        texture = texture_of(machine, instruction, ints(machine.slots[handle_slot], 64))
        if not data:
            return []
        index = to_array(ints(machine.slots[index_slot], 32))
        inside = (index >= 0) & (index < len(texture.texels))
        texels = texture.texels[np.where(inside, index, 0)]
        return [np.where(inside, texels[..., channel], np.float32(0)) for channel in range(4)]

    return lane_step(plan, instruction, fetch)


def texture_of(machine: Machine, instruction: Instruction, handle: int | Sum) -> Texture1D:
    """The texture object that all threads fetch from.

    Raises:
        MemsimError: the handle is of none, or threads have different ones.
    """
    if isinstance(handle, Sum):
        raise MemsimError(
            f"{instruction.name} from textures that differ between threads is not executed",
            **where_in_source(instruction),
        )
    if handle in machine.memory.textures:
        return machine.memory.textures[handle]
    raise MemsimError(
        f"{instruction.name} from a handle that is no texture object",
        hint="pass memsim.launch.Texture1D(array) for a cudaTextureObject_t parameter",
        **where_in_source(instruction),
    )
