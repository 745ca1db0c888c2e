"""Atomics and reductions, `ATOM ATOMG ATOMS RED REDG REDS`: their operations and operands, what they do to
memory, and the order of their lanes.

Memory is updated in the order of thread and block numbers: the hardware guarantees none, this one is legal.
The halves of a packed 16-bit pair are updated separately. Source: compiled CUDA code, run on an H100 and an
H200; PTX ISA (`atom`, `red`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.definitions import BoundForm, executes
from memsim.isa.floats import flush_singles
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory_access import HINTS, GenericAtomic, Run, execution_frame, forget_memory
from memsim.isa.number_formats import join_words, of_bits, pack_fields, to_bits
from memsim.isa.op import Form, Immediate, Operand, Register, Trait, Unsupported, require
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.state.partial import NEVER_WRITTEN, Value, on_known_lanes
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, either, from_bools, invert, to_bools
from memsim.state.registers import fit, from_array, ints, plus, to_array
from memsim.state.rounding import Array, higher, lower, odd_sum
from memsim.state.space_bytes import SpaceBytes, as_register, to_store
from memsim.state.sums import Int
from memsim.state.updates import Change

_OPERATIONS = {
    **{name: name.lower() for name in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS")},
    "CAST": "cas",
}


@dataclass(frozen=True, slots=True)
class AtomicOperand:
    """The operand of an atomic: `count` elements in `registers` registers, and their floating-point format,
    if any.
    """

    element: type
    count: int
    registers: int
    float: str = ""


_KINDS: dict[str, AtomicOperand] = {
    "32": AtomicOperand(np.uint32, 1, 1),
    "S32": AtomicOperand(np.int32, 1, 1),
    "64": AtomicOperand(np.uint64, 1, 2),
    "U64": AtomicOperand(np.uint64, 1, 2),
    "S64": AtomicOperand(np.int64, 1, 2),
    "F32": AtomicOperand(np.float32, 1, 1),
    "F64": AtomicOperand(np.float64, 1, 2),
    "F32x2": AtomicOperand(np.float32, 2, 2),
    "F32x4": AtomicOperand(np.float32, 4, 4),
    **{f"F16x{n}": AtomicOperand(np.uint16, n, n // 2, "f16") for n in (2, 4, 8)},
    **{f"BF16x{n}": AtomicOperand(np.uint16, n, n // 2, "bf16") for n in (2, 4, 8)},
    "BF16_V2": AtomicOperand(np.uint16, 2, 1, "bf16"),
    "128": AtomicOperand(np.uint64, 2, 4),
}
#: Of 32-bit integers.
WORDS = (_KINDS["32"], _KINDS["S32"])
_ATOMIC_HINTS = HINTS | {"FTZ", "RN", "POPC", "SPIN"}


def atomic_shape(form: Form) -> tuple[str, AtomicOperand]:
    """(operation, operand shape); "" if it names none.

    Raises:
        Unsupported: an unknown modifier.
    """
    require(set(form.modifiers) <= _ATOMIC_HINTS | _OPERATIONS.keys() | _KINDS.keys())
    operation = next((_OPERATIONS[name] for name in form.modifiers if name in _OPERATIONS), "")
    kinds = [name for name in form.modifiers if name in _KINDS]
    shape = _KINDS[kinds[-1]] if kinds else _KINDS["32"]
    if {"S32", "64"} <= set(kinds):
        shape = _KINDS["S64"]
    return operation, shape


def atomic_size(form: Form) -> int:
    """Bytes that are updated as one: an element, or all of a word of 128 bits.

    Raises:
        Unsupported: an unknown modifier.
    """
    _, shape = atomic_shape(form)
    return 16 if shape is _KINDS["128"] else np.dtype(shape.element).itemsize


def flushing_sum(old: Array, b: Array, c: object) -> Array:
    """A float32 sum with subnormal inputs and results flushed to zero."""
    return flush_singles(flush_singles(old) + flush_singles(b))


def _of_halves(bf16: bool, work: Callable[[Array, Array], Array]) -> Change:
    return lambda old, b, c: to_bits(work(*(of_bits(x, bf16).astype(np.float64) for x in (old, b))), bf16)


#: (how bits are floats, operation) -> what it does to 16-bit numbers.
HALF_CHANGES: dict[tuple[str, str], Change] = {
    (kind, operation): _of_halves(kind == "bf16", work)
    for kind in ("f16", "bf16")
    for operation, work in (("add", odd_sum), ("min", lower), ("max", higher))
}
#: Sums of numbers of at least this size, and of zeros, are never subnormal.
_NEVER_TINY = np.float32(2.0**-100)


def change_of(form: Form, operation: str, shape: AtomicOperand) -> Change | None:
    """The update of an element, unless it is numpy's own operation.

    Raises:
        Unsupported: the operation is not supported for such elements.
    """
    if shape.float:
        require((shape.float, operation) in HALF_CHANGES)
        return HALF_CHANGES[shape.float, operation]
    if shape.element is np.float32 and operation == "add" and "FTZ" in form.modifiers:
        return flushing_sum
    if shape.registers == 4 and operation in ("cas", "exch"):
        return None
    require(np.dtype(shape.element).kind != "f" or operation == "add")
    require(shape.count <= 1 or operation == "add")
    return None


def may_be_tiny(array: Array) -> bool:
    """May a sum with one of these be subnormal?"""
    size = np.abs(array)
    return bool(((size < _NEVER_TINY) & (size != 0)).any())


def operand_elements(machine: MemoryMachine, operand: Operand, shape: AtomicOperand) -> list[Array]:
    """An operand as arrays, one for each element."""
    element = shape.element
    if isinstance(operand, Immediate):
        return [np.array([[operand.value]]).astype(element)]
    if not isinstance(operand, Register):
        raise Unsupported
    if operand.slot is None:
        return [np.zeros((1, 1), element)] * shape.count
    words = [machine.slots[operand.slot + i] for i in range(shape.registers)]
    if shape.float:
        bits = [to_array(ints(word)) for word in words]
        return [(word >> shift & 0xFFFF).astype(np.uint16) for word in bits for shift in (0, 16)]
    if np.dtype(element).itemsize == 4:
        if np.dtype(element).kind == "f":
            return [to_store(word, element) for word in words]
        bits = [-to_array(ints(word)) if operand.negated else to_array(ints(word)) for word in words]
        return [word.astype(np.int32).view(element) for word in bits]
    pairs = [join_words(ints(low), ints(high)) for low, high in zip(words[::2], words[1::2])]
    return [np.ascontiguousarray(to_array(pair)).view(element) for pair in pairs]


def as_registers(arrays: list[Array], shape: AtomicOperand) -> list[Value]:
    """Elements as the words of registers."""
    if shape.float:
        bits = [array.astype(np.int64) for array in arrays]
        return [pack_fields(pair, 16) for pair in zip(bits[::2], bits[1::2])]
    if np.dtype(shape.element).itemsize == 4:
        return [as_register(array if array.dtype.kind == "f" else array.view(np.int32)) for array in arrays]
    wholes = [np.ascontiguousarray(array).view(np.int64) for array in arrays]
    return [
        word for whole in wholes for word in (fit(from_array(whole), 32), fit(from_array(whole >> 32), 32))
    ]


def spread_poison(
    store: SpaceBytes, address: Int, shape: AtomicOperand, active: Mask, known: Mask, why: Poison
) -> tuple[Mask, Poison]:
    """(lanes whose words are unknown, why): these words, and all that lanes with an unknown operand change.

    If one of several lanes on a word is unknown, so are the results of all of them. known: lanes with known
    operands.
    """
    element = shape.element
    places = [plus(address, i * np.dtype(element).itemsize) for i in range(shape.count)]
    unknown = False if known is active else both(active, invert(known))
    while True:
        if unknown is not False:
            for place in places:
                store.forget(place, element, unknown, why)
        found: Mask = False
        for place in places:
            lost = store.lost(place, element, active)
            if lost is not False and found is False and unknown is False:
                why = store.why(place, element, lost)
            found = either(found, lost)
        if found is False or found is unknown or _same_lanes(found, unknown):
            return found, why
        unknown = found


def _same_lanes(a: Mask, b: Mask) -> bool:
    return b is not False and bool((to_bools(a) == to_bools(b)).all())


def update_memory(
    store: SpaceBytes,
    address: Int,
    active: Mask,
    operation: str,
    change: Change | None,
    shape: AtomicOperand,
    values: list[list[Array]],
    returns: bool,
) -> list[Array]:
    """Update memory; returns the elements as each lane found them."""
    if shape.registers == 4 and shape.count == 2:
        return store.exchange_pairs(address, active, operation, values)
    size = np.dtype(shape.element).itemsize
    old = []
    for i in range(shape.count):
        operands = [value[i] for value in values]
        at = plus(address, i * size)
        how = change
        if change is flushing_sum and not may_be_tiny(operands[0]):
            there = store.load(at, np.float32, active)
            how = change if may_be_tiny(there) else None
        old.append(store.update(at, shape.element, active, operation, operands, returns, how))
    return old


# --- the instructions ------------------------------------------------------------------------

_ATOMICS = {
    **{"ATOMG": ("atomic", "global"), "ATOMS": ("atomic", "shared"), "ATOM": ("atomic", "generic")},
    **{"RED": ("reduction", "global"), "REDG": ("reduction", "global"), "REDS": ("reduction", "shared")},
}


def build_atomic(form: BoundForm, address: IntReader, *_: Operand | None) -> Run:
    """Read-modify-write: of several lanes with the same address each sees what those before it left.

    With a predicate result, an atomic on shared memory through a generic address is not performed: the
    predicate tells whether it was, and if not, a loop performs it.
    """
    access, space = _ATOMICS[form.opcode]
    named, shape = atomic_shape(form)
    sources = [operand for operand in form.sources[1:3] if operand is not None]
    counts_up = "POPC" in form.modifiers
    spins = "CAST" in form.modifiers  # part of a loop: it may have to be retried
    operation = "add" if counts_up and named == "inc" else named
    require(operation)
    change = change_of(form, operation, shape)
    answer, target = (getattr(operand, "slot", None) for operand in (*form.results, None, None)[:2])
    written = [] if target is None else [target + i for i in range(shape.registers)]

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        skipped = answer is not None and space == "generic" and store is not machine.memory.space("global")
        if answer is not None and not spins:
            machine.write(answer, not skipped, active)
        if skipped:
            return
        values, known, why = operand_values(machine, active)
        lost, why = spread_poison(store, address, shape, active, both(active, known), why.through(op))
        if lost is not False:
            for slot in [*written, answer] if spins and answer is not None else written:
                machine.write(slot, why, lost)
        sure = both(active, invert(lost)) if lost is not False else active
        if sure is False:
            return
        tried = both(sure, _first_of_banks(machine, address, shape, sure)) if spins else sure
        old = update_memory(store, address, tried, operation, change, shape, values, spins or bool(written))
        if spins:
            swapped = both(tried, from_bools(old[0] == values[0][0]))
            machine.goes_round(op, sure, swapped)
            if answer is not None:  # from sm_100 on
                machine.write(answer, swapped, sure)
            equal = from_array(to_bools(swapped).astype(np.int64))
            for slot, value in zip(written, (equal, 0)):
                machine.write(slot, value, sure)
            return
        for slot, word in zip(written, as_registers(old, shape)):
            machine.write(slot, word, sure)

    read = [
        operand.slot + i
        for operand in sources
        if isinstance(operand, Register) and operand.slot is not None
        for i in range(shape.registers)
    ]

    def operand_values(machine: MemoryMachine, active: Mask) -> tuple[list[list[Array]], Mask, Poison]:
        """(values, the lanes in which they are known, why not in others)."""
        if counts_up:
            return [[np.ones((1, 1), shape.element)]], True, NEVER_WRITTEN

        def elements() -> list[list[Array]]:
            return [operand_elements(machine, source, shape) for source in sources]

        try:
            return elements(), True, NEVER_WRITTEN
        except Poisoned as unknown:
            try:
                found, known = on_known_lanes(machine.slots, read, lambda: active, elements, unknown.poison)
            except Poisoned as still:
                return [], False, still.poison
            return found, known, unknown.poison

    def forget(machine: MemoryMachine, op: Op, poison: Poison, active: Mask, spaces: tuple[str, ...]) -> None:
        forget_memory(machine, op, poison, active, spaces)
        for slot in written if answer is None else [*written, answer]:
            machine.write(slot, poison, active)

    # Other types have no instruction of their own on shared memory.
    loops = spins or (operation not in ("exch", "cas") and shape not in WORDS)
    if space == "shared":
        access = "atomic_inc" if counts_up else "atomic_cas" if operation == "cas" else access
        access = "atomic_loop" if loops else access
    begins_loop = answer is not None or loops or shape.registers > 1
    own = "atomic_cas" if operation == "cas" else "atomic"
    generic = GenericAtomic("atomic_generic" if begins_loop else own, f"{own}_unmade", own)
    width = 4 * shape.registers
    return execution_frame(
        address, form.binder, space, access, width, move, forget, generic=generic, spins=spins
    )


def _first_of_banks(machine: MemoryMachine, address: Int, shape: AtomicOperand, active: Mask) -> Mask:
    """The lanes that a compare-and-swap that spins tries: of those in one bank the first.

    The others have to go round again, whatever the memory holds. Lanes of 8 bytes are served by half-warps.
    Source: docs/model.md.
    """
    width = 4 * shape.registers
    lanes = WARP * 4 // width
    on = machine.full(active).reshape(-1, lanes)
    bank = (np.broadcast_to(to_array(address), machine.shape) // width % lanes).reshape(-1, lanes)
    meets = (bank[:, :, None] == bank[:, None, :]) & on[:, None, :]
    earlier = np.tri(lanes, k=-1, dtype=np.bool_)
    return from_bools((on & ~(meets & earlier).any(axis=2)).reshape(machine.shape))


def _signature(form: Form) -> str:
    """As wide as the elements; a predicate tells whether an atomic was performed."""
    try:
        count = atomic_shape(form)[1].registers
    except Unsupported:
        count = 1
    access, space = _ATOMICS[form.opcode]
    written = f"P?R{count}?" if access == "atomic" else ""
    return f"{written} <- {'a' if space == 'shared' else 'A'} V{count}? V{count}? P?"


for _name, _touched in _ATOMICS.items():
    executes(_name, _signature, None, touches=(_touched,), traits={"CAST": Trait.SPINS})(build_atomic)
