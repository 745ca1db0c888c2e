"""`ldmatrix` and `stmatrix`: 8 by 8 matrices of 16-bit elements, a row's address from each lane.

In: an instruction. Out: a step that reports the rows and moves the fragments.
Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from memsim.ptx.program import Instruction
from memsim.simt.access import (
    forget_all,
    items,
    memory_step,
)
from memsim.simt.plan import Plan, Step, step
from memsim.simt.registry import Unsupported
from memsim.state.registers import (
    Part,
    Poisoned,
    Sum,
    fit,
    from_array,
    ints,
    to_array,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


def matrix_count(instruction: Instruction) -> int:
    """1, 2 or 4 matrices of 8 rows by 16 bytes."""
    count = {"x1": 1, "x2": 2, "x4": 4}
    found = [count[m] for m in instruction.modifiers if m in count]
    if not found or instruction.modifiers[-1] != "b16" or "m8n8" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    return found[0]


def fragment_rows(machine: Machine, address: int | Sum, matrix: int) -> np.ndarray:
    """Byte address of the pair of elements that each lane holds of matrix `matrix`.

    Lane 4 r + c holds elements 2 c and 2 c + 1 of row r, whose address lane 8 * matrix + r gave.
    """
    array = np.broadcast_to(to_array(address), (to_array(address).shape[0], machine.threads))
    lanes = np.arange(machine.threads)
    owner = (lanes & ~31) + 8 * matrix + (lanes % 32) // 4
    column = (lanes % 4) * 4
    return array[:, owner] + column


@step("ldmatrix", "stmatrix")
def build_matrix(plan: Plan, instruction: Instruction, data: bool) -> Step:
    count = matrix_count(instruction)
    turned = "trans" in instruction.modifiers
    loads = instruction.opcode == "ldmatrix"
    register, operand = instruction.operands if loads else reversed(instruction.operands)
    outputs = items(register)
    slots = [plan.destination(o) if loads else plan.source(o, "b32") for o in outputs]

    def pieces(machine: Machine, address: int | Sum, matrix: int) -> list[tuple[int | Sum, int]]:
        """(address of each 16-bit element, half of the register) of a lane's two elements."""
        if not turned:
            rows = fragment_rows(machine, address, matrix)
            return [(from_array(rows + 2 * half), half) for half in (0, 1)]
        array = np.broadcast_to(to_array(address), (to_array(address).shape[0], machine.threads))
        lanes = np.arange(machine.threads)
        base = (lanes & ~31) + 8 * matrix
        return [
            (from_array(array[:, base + (lanes % 4) * 2 + half] + 2 * ((lanes % 32) // 4)), half)
            for half in (0, 1)
        ]

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        for matrix, slot in enumerate(slots):
            try:
                if loads:
                    halves = [
                        store.load(where, np.uint16, machine.mask).astype(np.int64) << (16 * half)
                        for where, half in pieces(machine, address, matrix)
                    ]
                    machine.write(slot, fit(from_array(halves[0] | halves[1]), 32), written)
                    continue
                bits = to_array(ints(machine.slots[slot], 32))
                for where, half in pieces(machine, address, matrix):
                    store.store(where, (bits >> (16 * half)).astype(np.uint16), machine.mask)
            except Poisoned as unknown:
                poison = unknown.poison.through(instruction)
                if loads:
                    machine.write(slot, poison, True)
                else:
                    store.poison = poison

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        if not loads:
            forget_all(instruction)(machine, unknown, active)
            return
        for slot in slots:
            machine.write(slot, unknown.poison.through(instruction), True)

    op = instruction.opcode
    return memory_step(plan, instruction, operand, op, 16, move if data else None, lost, lanes=8 * count)
