"""Loads, stores, atomics, reductions, `cp.async`, `ldmatrix` and `stmatrix`.

In: an instruction. Out: a step that tells the machine which addresses are touched and, where
the data is wanted, moves it. Source: PTX ISA, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from memsim.ptx.program import Address, Immediate, Instruction, Operand, Register, Symbol, Vector
from memsim.simt.bounds import resolve_generic
from memsim.simt.memory import ELEMENTS, loaded, to_store
from memsim.simt.plan import Plan, Step, active_lanes, lanes_below, step
from memsim.simt.registry import Unsupported
from memsim.simt.values import (
    Part,
    Poison,
    Poisoned,
    Sum,
    both,
    fit,
    from_array,
    from_bools,
    ints,
    invert,
    plus,
    to_array,
    to_bools,
)

if TYPE_CHECKING:
    from memsim.simt.machine import Machine

SPACES = ("global", "shared", "local", "const", "param")


def state_space(instruction: Instruction) -> str:
    """The state space that a memory instruction names, "generic" if none."""
    for modifier in instruction.modifiers:
        space, _, scope = modifier.partition("::")
        if space in SPACES:
            if scope == "cluster":
                raise Unsupported(instruction.name)
            return space
    return "generic"


def element(instruction: Instruction) -> type:
    """The numpy type of one element."""
    name = instruction.modifiers[-1]
    if name not in ELEMENTS:
        raise Unsupported(instruction.name)
    return ELEMENTS[name]


def vector_length(instruction: Instruction) -> int:
    """1, 2, 4 or 8 elements."""
    return next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4", "v8")), 1)


def address_reader(plan: Plan, operand: Operand, space: str) -> Callable[[Machine], int | Sum]:
    """A function that works out `[base + offset]` for all threads."""
    if not isinstance(operand, Address):
        raise Unsupported(f"address {operand}")
    base, offset = operand.base, operand.offset
    if isinstance(base, Immediate):
        fixed = int(base.value) + offset
        return lambda machine: fixed
    if isinstance(base, Symbol):
        if base.name not in plan.memory.symbols:
            raise Unsupported(f"address of {base.name}")
        start = plan.memory.symbols[base.name][1] + base.offset + offset
        return lambda machine: start
    if not isinstance(base, Register):
        raise Unsupported(f"address {operand}")
    slot = plan.source(base, "b64")

    def read(machine: Machine) -> int | Sum:
        value = ints(machine.slots[slot], 64)
        return plus(value, offset) if offset else value

    return read


def items(operand: Operand) -> list[Operand]:
    """The elements of a vector operand, or the operand itself."""
    return list(operand.items) if isinstance(operand, Vector) else [operand]


def memory_step(
    plan: Plan,
    instruction: Instruction,
    operand: Operand,
    op: str,
    width: int,
    move: Callable[[Machine, str, int | Sum, bool | Part, bool | Part], None] | None,
    lost: Callable[[Machine, Poisoned, bool | Part], None],
    lanes: int = 32,
) -> Step:
    """The frame that all memory instructions share.

    `move(machine, space, address, active, written)` moves the data of the `active` threads and
    writes registers in those `written` (True: wherever the program is); None where only
    addresses are wanted. `lost` is told where the address or the guard is not known.
    """
    space = state_space(instruction)
    read_address = address_reader(plan, operand, space)
    guard = plan.guard(instruction)
    named = {
        name: plan.site(instruction, op, name, width) for name in (space,) if name in ("shared", "global")
    }

    def run(machine: Machine) -> None:
        active: bool | Part = machine.mask
        site = named.get(space)
        try:
            active = active_lanes(machine, guard)
            if lanes < 32:
                active = both(active, lanes_below(lanes, machine))
            address = read_address(machine)
        except Poisoned as unknown:
            kind = space if space in ("shared", "global") else "global"
            if space in ("shared", "global", "generic"):
                where = site or plan.site(instruction, op, kind, width)
                machine.unknown_access(where, unknown.poison.through(instruction), active)
            lost(machine, unknown, active)
            return
        if space != "generic":
            if space == "local":
                machine.listener.aside("local memory", active)
            if site is not None:
                machine.access(site, address, active)
            elif active is not False:
                machine.bounds.check(instruction, space, width, address, active)
            if move is not None and active is not False:
                move(machine, space, address, active, True if guard is None else active)
            return
        pieces = resolve_generic(address, active)
        for name, local, part in pieces:
            if name == "local":
                machine.listener.aside("local memory", part)
            if name in ("shared", "global"):
                machine.access(plan.site(instruction, op, name, width), local, part)
            if move is not None and part is not False:
                move(machine, name, local, part, True if guard is None and len(pieces) == 1 else part)

    return run


@step("ld", "ldu")
def build_load(plan: Plan, instruction: Instruction, data: bool) -> Step:
    dtype, count = element(instruction), vector_length(instruction)
    target, operand = instruction.operands[:2]
    outputs = items(target)
    if len(outputs) != count:
        raise Unsupported(instruction.name)
    slots = [plan.destination(item) for item in outputs]
    size = np.dtype(dtype).itemsize
    signed = instruction.modifiers[-1].startswith("s")
    widen = [plan.width(item) > 8 * size and not signed for item in outputs]
    if isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in plan.lost:
        return lost_load(plan, instruction, slots, plan.lost[operand.base.name])
    if state_space(instruction) == "param":
        parameter = kernel_parameter(plan, operand)
        if parameter is not None:
            return parameter_load(plan, instruction, slots, widen, dtype, *parameter)

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        for i, slot in enumerate(slots):
            try:
                value = loaded(store.load(plus(address, i * size), dtype, active), widen[i])
            except Poisoned as unknown:
                value = unknown.poison.through(instruction)
            machine.write(slot, value, written)

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        for slot in slots:
            machine.write(slot, unknown.poison.through(instruction), True)

    return memory_step(plan, instruction, operand, "load", size * count, move if data else None, lost)


def lost_load(plan: Plan, instruction: Instruction, slots: list[int], poison: Poison) -> Step:
    """A load of what a function gave back that was not executed."""

    def run(machine: Machine) -> None:
        for slot in slots:
            machine.write(slot, poison.through(instruction), True)

    return run


def kernel_parameter(plan: Plan, operand: Operand) -> tuple[bytes, int] | None:
    """The bytes of the kernel parameter that `ld.param` names, and the offset."""
    if isinstance(operand, Address) and isinstance(operand.base, Symbol):
        found = plan.parameter_bytes(operand.base.name)
        if found is not None:
            return found[1], operand.base.offset + operand.offset
    return None


def parameter_load(
    plan: Plan,
    instruction: Instruction,
    slots: list[int],
    widen: list[bool],
    dtype: type,
    content: bytes,
    offset: int,
) -> Step:
    """`ld.param` of a kernel parameter: the same constant in every thread."""
    size = np.dtype(dtype).itemsize
    values = []
    for i in range(len(slots)):
        raw = np.frombuffer(content, np.uint8)[offset + i * size : offset + (i + 1) * size]
        if raw.size != size:
            raise Unsupported(f"{instruction.name} past the end of the parameter")
        values.append(loaded(raw.view(dtype)[None, :], widen[i]))
    guard = plan.guard(instruction)

    def run(machine: Machine) -> None:
        active = True if guard is None else guard(machine)
        if active is not False:
            for slot, value in zip(slots, values):
                machine.write(slot, value, active)

    return run


@step("st")
def build_store(plan: Plan, instruction: Instruction, data: bool) -> Step:
    dtype, count = element(instruction), vector_length(instruction)
    operand, value = instruction.operands[:2]
    kind = instruction.modifiers[-1]
    sources = [plan.source(item, kind) for item in items(value)] if data else []
    size = np.dtype(dtype).itemsize

    def move(
        machine: Machine, space: str, address: int | Sum, active: bool | Part, written: bool | Part
    ) -> None:
        store = machine.memory.space(space)
        for i, slot in enumerate(sources):
            try:
                store.store(plus(address, i * size), to_store(machine.slots[slot], dtype), active)
            except Poisoned as unknown:
                store.poison = unknown.poison.through(instruction)

    return memory_step(
        plan, instruction, operand, "store", size * count, move if data else None, forget_all(instruction)
    )


def forget_all(instruction: Instruction) -> Callable[[Machine, Poisoned, bool | Part], None]:
    """Nobody knows where a store went: nothing in those spaces is known any more."""
    space = state_space(instruction)

    def lost(machine: Machine, unknown: Poisoned, active: bool | Part) -> None:
        for name in ("shared", "global") if space == "generic" else (space,):
            machine.memory.space(name).poison = unknown.poison.through(instruction)

    return lost


# --- atomics --------------------------------------------------------------------------------

_UFUNC: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _by_ufunc(ufunc: np.ufunc) -> Callable[[Any, Any, Any], Any]:
    return lambda old, b, c: ufunc(old, b)


_UPDATE: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{name: _by_ufunc(ufunc) for name, ufunc in _UFUNC.items()},
    "exch": lambda old, b, c: b,
    "cas": lambda old, b, c: np.where(old == b, c, old),
    "inc": lambda old, b, c: np.where(old >= b, 0, old + 1),
    "dec": lambda old, b, c: np.where((old == 0) | (old > b), b, old - 1),
}


@step("atom", "red")
def build_atomic(plan: Plan, instruction: Instruction, data: bool) -> Step:
    names = instruction.modifiers
    operation = next((name for name in names if name in _UPDATE), None)
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
                raise Poisoned(unknown_form(instruction))
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

    op = "atomic" if returns else "reduction"
    return memory_step(plan, instruction, operands[0], op, size, move if data else None, lost)


def unknown_form(instruction: Instruction) -> Any:
    """The poison of a form that is counted but not executed."""
    return Poison(f"{instruction.name} is not executed by the emulator", instruction)


def update(
    store: Any,
    address: int | Sum,
    dtype: type,
    active: bool | Part,
    operation: str,
    values: list[np.ndarray],
    returns: bool,
) -> np.ndarray:
    """Read-modify-write of every active thread, in the order of thread and block numbers.

    Gives the values before each thread's update, shape (B, T). The hardware promises no
    order; this one is a legal one.
    """
    if store.poison:
        raise Poisoned(store.poison)
    view = store.view(dtype).reshape(-1)
    columns = store.view(dtype).shape[1]
    index = store.positions(address, dtype, active)
    rows = np.broadcast_to(np.asarray(store.row_of()), store.shape)
    mask = np.broadcast_to(to_bools(active), store.shape)
    flat = (rows * columns + index)[mask]
    b, c = ([np.broadcast_to(v, store.shape)[mask] for v in values] + [None, None])[:2]
    old = np.zeros(store.shape, dtype)
    if not returns and operation in _UFUNC:
        _UFUNC[operation].at(view, flat, b)
        return old
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if ordered.size else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(first, np.arange(ordered.size), 0))
    rank = np.arange(ordered.size) - start
    seen = np.zeros(flat.size, dtype)
    if operation == "add" and np.dtype(dtype).kind in "iu":
        running: np.ndarray = np.cumsum(b[order], dtype=dtype)
        before = running - b[order]
        seen[order] = view[ordered] + before - before[start]
        np.add.at(view, flat, b)
    else:
        for turn in range(int(rank.max(initial=-1)) + 1):
            who = order[rank == turn]
            where = flat[who]
            seen[who] = view[where]
            view[where] = _UPDATE[operation](view[where], b[who], None if c is None else c[who]).astype(dtype)
    old[mask] = seen
    return old


# --- cp.async -------------------------------------------------------------------------------


@step("cp")
def build_cp_async(plan: Plan, instruction: Instruction, data: bool) -> Step:
    names = instruction.modifiers
    if names[:1] == ("async",) and names[1:2] in (("commit_group",), ("wait_group",), ("wait_all",)):
        return lambda machine: None  # copies are done when issued: one legal order
    if names[:1] == ("async",) and "mbarrier" in names[1]:
        return lambda machine: None
    if names[:1] != ("async",) or not {"ca", "cg"} & set(names) or "bulk" in names:
        raise Unsupported(instruction.name)
    target, source, amount, *rest = instruction.operands
    if not isinstance(amount, Immediate):
        raise Unsupported(instruction.name)
    width = int(amount.value)
    dtype = {4: np.int32, 8: np.int64, 16: np.int64}[width]
    size = np.dtype(dtype).itemsize
    to_shared = address_reader(plan, target, "shared")
    to_global = address_reader(plan, source, "global")
    policy = any(m.endswith("cache_hint") for m in names)
    limit = plan.source(rest[0], "b32") if rest and not policy else None
    guard = plan.guard(instruction)
    shared = plan.site(instruction, "cp_async", "shared", width)
    wide = plan.site(instruction, "cp_async", "global", width)

    def run(machine: Machine) -> None:
        active: bool | Part = machine.mask
        try:
            active = active_lanes(machine, guard)
            copied = reading(machine, limit, width, active)
            destination, origin = to_shared(machine), to_global(machine)
        except Poisoned as unknown:
            poison = unknown.poison.through(instruction)
            machine.unknown_access(shared, poison, active)
            machine.unknown_access(wide, poison, active)
            machine.memory.space("shared").poison = poison
            return
        machine.access(shared, destination, active)
        machine.access(wide, origin, copied)
        if not data or active is False:
            return
        into = machine.memory.space("shared")
        for i in range(width // size):
            value: np.ndarray = np.zeros((1, 1), dtype)
            if copied is not False:
                found = machine.memory.space("global").load(plus(origin, i * size), dtype, copied)
                value = np.where(to_bools(copied), found, dtype(0))
            into.store(plus(destination, i * size), value, active)

    return run


def reading(machine: Machine, limit: int | None, width: int, active: bool | Part) -> bool | Part:
    """The lanes whose global side is read: those with a source size above zero.

    Raises:
        Poisoned: the size is not known.
        Unsupported: only a part of the bytes is read.
    """
    if limit is None:
        return active
    value = machine.slots[limit]
    if isinstance(value, (bool, Part)):  # the "ignore-src" predicate
        return both(active, invert(value))
    amount = ints(value, 32)
    array = to_array(fit(amount, 32))
    if not np.isin(array, (0, width)).all():
        machine.refuse("cp.async that reads a part of its bytes is not executed")
    return both(active, from_bools(array != 0))


# --- ldmatrix, stmatrix ---------------------------------------------------------------------


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
