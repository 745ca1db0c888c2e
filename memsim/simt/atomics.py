"""Atomics and reductions on shared and global memory.

In: an instruction. Out: a step that reports the addresses and, where the data is wanted, updates
memory in the order of thread and block numbers: the hardware promises none, this one is legal.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from memsim.ptx.flow import is_read
from memsim.ptx.program import Immediate, Instruction
from memsim.ptx.uniform import Spread
from memsim.simt.access import (
    Request,
    element,
    forget_all,
    memory_step,
    state_space,
    vector_length,
)
from memsim.simt.plan import Plan, Site, Step, step, unexecuted
from memsim.state.memory import loaded, to_store
from memsim.state.registers import (
    Part,
    Poison,
    Poisoned,
    Sum,
    from_bools,
    to_array,
    to_bools,
)
from memsim.state.updates import UFUNC, UPDATE, update

if TYPE_CHECKING:
    from memsim.simt.machine import Machine


def shared_form(plan: Plan, instruction: Instruction, operation: str | None) -> str | None:
    """A name of its own for shared atomics that the chip serves in another way than the plain ones.

    As ptxas compiles them for sm_90: adding the constant 1 without a use of the result is ATOMS.POPC.INC,
    compare-and-swap ATOMS.CAS; additions of floats, 16 bits, and 64 bits except exchange and
    compare-and-swap are loops around a load and a compare-and-swap.
    """
    if state_space(instruction) != "shared":
        return None
    kind = instruction.modifiers[-1]
    if "16" in kind or kind.startswith("f") or (kind.endswith("64") and operation not in ("exch", "cas")):
        return "atomic_loop"
    if operation == "cas":
        return "atomic_cas"
    counts = (operation, instruction.operands[-1]) in (("add", Immediate(1)), ("inc", Immediate(-1)))
    if counts and kind == "u32" and not is_read(plan.function, instruction):
        return "atomic_inc"
    return None


def one_for_all(plan: Plan, instruction: Instruction, operation: str | None) -> Request | None:
    """How lanes ask for a shared atomic on an address that is the same in a whole warp.

    ptxas has one lane do the others' work where it knows the address to be the same: the last active one,
    with the sum, minimum, ... of all operands. If the result is read, it does so for `add` only: with an
    operand that is the same in all lanes too, or else in those warps in which all 32 lanes are active.
    None: each lane asks for itself.
    """
    reads = is_read(plan.function, instruction)
    if state_space(instruction) != "shared" or operation not in UFUNC or (reads and operation != "add"):
        return None
    address, operand = instruction.operands[-2:]
    known = plan.uniformity
    of_address, of_operand = known.of(address), known.of(operand) if reads else Spread.SAME
    if of_address is Spread.LANES:
        return None
    is_sure = Spread.UNSURE not in (of_address, of_operand) and not known.is_picked(instruction)

    def request(machine: Machine, site: Site, address: int | Sum, active: bool | Part) -> None:
        if is_sure:
            asking = last_of_warps(active, machine.threads, of_operand is Spread.LANES)
            machine.access(site, address, asking)
        elif any_warp_agrees(machine, address, active):
            machine.bounds.check(instruction, site.space, site.width, address, active)
            reason = "one lane may do this atomic for its whole warp, which is ptxas's choice"
            machine.unknown_access(site, Poison(reason, instruction), active)
        else:
            machine.access(site, address, active)

    return request


@lru_cache(maxsize=8)  # the masks of a loop come round again
def last_of_warps(active: bool | Part, threads: int, full_only: bool) -> bool | Part:
    """The last active thread of each warp; `full_only`: all active ones of warps where some are not."""
    rows = np.broadcast_to(to_bools(active), (len(to_bools(active)), threads)).reshape(-1, 32)
    last = rows & (np.arange(32) == 31 - rows[:, ::-1].argmax(1)[:, None])
    if full_only:
        last = np.where(rows.all(1, keepdims=True), last, rows)
    return from_bools(last.reshape(-1, threads))


def any_warp_agrees(machine: Machine, address: int | Sum, active: bool | Part) -> bool:
    """Whether two or more lanes of a warp are active, and all that are have one address."""
    lanes = machine.full(active).reshape(-1, 32)
    at = np.broadcast_to(to_array(address), machine.shape).reshape(-1, 32)
    first = np.take_along_axis(at, lanes.argmax(1)[:, None], 1)
    agree = ((at == first) | ~lanes).all(1) & (lanes.sum(1) > 1)
    return bool(agree.any())


@step("atom", "red")
def build_atomic(plan: Plan, instruction: Instruction, data: bool) -> Step:
    names = instruction.modifiers
    operation = next((name for name in names if name in UPDATE), None)
    kind = names[-1]
    dtype = {"u32": np.uint32, "u64": np.uint64}.get(kind) or element(instruction)
    returns = instruction.opcode == "atom"
    operands = list(instruction.operands)
    target = plan.destination(operands.pop(0)) if returns else plan.sink
    size = np.dtype(dtype).itemsize * vector_length(instruction)
    executable = operation is not None and vector_length(instruction) == 1 and kind[:1] in "busf"
    executable = executable and not kind.endswith("x2") and kind not in ("f16", "bf16")
    sources = [plan.source(item, kind) for item in operands[1:3]] if data and executable else []

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        try:
            if not executable:
                raise Poisoned(unexecuted(instruction))
            values = [to_store(machine.slots[slot], dtype) for slot in sources]
            assert operation is not None
            old = update(store, address, dtype, active, operation, values, returns)
        except Poisoned as unknown:
            store.poison = unknown.poison.through(instruction)
            machine.write(target, store.poison, True)
            return
        if returns:
            machine.write(target, loaded(old, False), written)

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        if data:
            forget_all(instruction)(machine, unknown, active)
        machine.write(target, unknown.poison.through(instruction), True)

    form = shared_form(plan, instruction, operation)
    request = one_for_all(plan, instruction, operation) if form is None else None
    op = form or ("atomic" if returns else "reduction")
    moved = move if data else None
    return memory_step(
        plan, instruction, operands[0], op, size, moved, lost, generic_op="atomic_generic", request=request
    )
