"""Asynchronous copies from global to shared memory, `LDGSTS` (`cp.async`), and asynchronous stores and
reductions in distributed shared memory, completed at an mbarrier: `STAS REDAS`.

They complete when they are issued, which is one legal order. Source: PTX ISA, `cp.async`, `st.async` and
`red.async`, and the code that ptxas 13.0 generates for sm_90:

    STAS[.64, .128] [R4.64], R2       R4 destination, in any block of the cluster; R5 the mbarrier
    REDAS.ADD[.S32, .64] [R4.64], R2
"""

from __future__ import annotations

import numpy as np

from memsim.access import AccessSide, Stretches
from memsim.arch.units import WARP, WORD
from memsim.errors import MemsimError
from memsim.isa.atomics import atomic_shape, change_of, operand_elements, spread_poison, update_memory
from memsim.isa.definitions import BoundForm, define, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.memory import store_move
from memsim.isa.memory_access import (
    HINTS,
    OUTSIDE,
    Move,
    Run,
    consecutive_slots,
    forget_memory,
    of_size,
    own_shared,
    register_count,
    shape_of,
)
from memsim.isa.op import Address, Effect, Register, Trait, operand_of_kind, require
from memsim.isa.program import GLOBAL, SHARED, Op
from memsim.isa.readers import IntReader, PredicateReader
from memsim.state.address_spaces import SHARED_WINDOW
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, invert, to_bools
from memsim.state.registers import as_unsigned, plus, times, to_array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int, low_bits

_COPY = " ".join((*HINTS, "BYPASS", "64", "128", "ACCESS", "ZFILL"))


@executes(
    "LDGSTS",
    "<- a A P?",
    _COPY,
    touches=(("cp_async", "global"), ("cp_async", "shared")),
    traits={"": Trait.ORDERS},
)
def build_copy(form: BoundForm, into: IntReader, origin: IntReader, reads: PredicateReader | None) -> Run:
    """`cp.async`: `.BYPASS` is `.cg`; lanes with a false predicate operand write zeros and read nothing.

    `.ZFILL`: the low bits of the global address are the number of bytes at the end that are zero-filled
    instead of read.
    """
    width = 4 * register_count(form)
    access = "cp_async_cg" if "BYPASS" in form.modifiers else "cp_async"
    fills = "ZFILL" in form.modifiers
    size = min(width, 8)
    element: type = np.int64 if size == 8 else np.int32

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        try:
            copied = active if reads is None else both(active, reads(machine.slots))
            destination, source = own_shared(into(machine.slots)), origin(machine.slots)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            for space in ("shared", "global"):
                machine.lose(op, access, space, width, poison, active)
            if active is not False:
                forget_memory(machine, op, poison, active, ("shared",))
            return
        missing: Int = 0
        if fills:
            missing = low_bits(source, width.bit_length() - 1)
            source = plus(source, times(missing, -1))
        beyond = machine.touch(op, access, "shared", width, destination, active, AccessSide(source, copied))
        active, copied = both(active, invert(beyond)), both(copied, invert(beyond))
        outside = machine.touch(op, access, "global", width, source, copied, AccessSide(destination, copied))
        if access == "cp_async_cg" and active is not False:
            machine.copy_past_cache(op, destination, copied)
        if not data or active is False:
            return
        store = machine.memory.space("shared")
        if outside is not False:
            for i in range(width // size):
                store.forget(plus(destination, i * size), element, outside, Poison(OUTSIDE, op))
            active, copied = both(active, invert(outside)), both(copied, invert(outside))
        for i in range(width // size):
            value: np.ndarray = np.zeros((1, 1), element)
            try:
                if copied is not False:
                    found = machine.memory.space("global").load(plus(source, i * size), element, copied)
                    value = np.where(to_bools(copied), found, element(0))
                    if missing != 0:
                        value = first_bytes(value, width - to_array(missing) - i * size)
                store.store(plus(destination, i * size), value, active)
                machine.order.store_later(store, plus(destination, i * size), element, active)
            except Poisoned as unknown:
                store.forget(plus(destination, i * size), element, active, unknown.poison.through(op))

    return run


@executes("LDGDEPBAR UTMACMDFLUSH", "<-", None, effect=Effect.MEMORY)
def commit_copies(form: BoundForm) -> Run:
    """`cp.async.commit_group`, and `cp.async.bulk.commit_group`."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.order.commit(machine.mask)

    return run


@executes("FENCE.VIEW.ASYNC", "<-", None, effect=Effect.MEMORY)
def fence_proxies(form: BoundForm) -> Run:
    """`fence.proxy.async`, with `.global` as `.G`, with `.shared::cta` as `.S`, with neither as `.S` directly
    behind a `MEMBAR.ALL.GPU`.
    """
    spaces = [name for letter, name in (("S", SHARED), ("G", GLOBAL)) if letter in form.modifiers]

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.order.fence_proxies(op.index, active, spaces[0] if len(spaces) == 1 else "")

    return run


define("DEPBAR", "<-", None, effect=Effect.NONE)  # waits for registers


@executes("DEPBAR.LE", "<- S?I", effect=Effect.MEMORY)
def wait_for_copies(form: BoundForm, _: object, left: int) -> Run:
    """`cp.async.wait_group`: `DEPBAR.LE SB0, n` waits until at most n groups of copies are in flight."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.order.wait(machine.mask, left)

    return run


def first_bytes(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The first `count` bytes of elements, the others zero."""
    size = value.dtype.itemsize
    kept = np.arange(size) < count[..., None]
    found: np.ndarray = np.where(kept, value[..., None].view(np.uint8), np.uint8(0))
    return np.ascontiguousarray(found).view(value.dtype)[..., 0]


# --- stores and reductions in distributed shared memory --------------------------------------


def checked_place(address: Address) -> Register:
    """The register of the place, behind which is that of the mbarrier: the address has nothing else.

    Raises:
        Unsupported: it has.
    """
    require(not address.offset and address.uniform is None)
    register = operand_of_kind(address.base, Register)
    require(register.slot is not None)
    return register


@executes("STAS", of_size("<- A R#"), None, steers=True, touches=(("async_store", "shared"),))
def build_async_store(form: BoundForm, _: object, source: Register) -> Run:
    element, count, width = shape_of(form)
    return _asynchronous(form, "async_store", width, store_move(consecutive_slots(source, count), element))


@executes("REDAS", of_size("<- A R#"), None, steers=True, touches=(("async_reduction", "shared"),))
def build_async_reduction(form: BoundForm, _: object, source: Register) -> Run:
    operation, shape = atomic_shape(form)
    require(operation not in ("", "exch", "cas"))
    change = change_of(form, operation, shape)

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        values, known, why = [], active, Poison("", op)
        try:
            values = [operand_elements(machine, source, shape)]
        except Poisoned as unknown:
            known, why = False, unknown.poison.through(op)
        lost, _ = spread_poison(store, address, shape, active, known, why)
        sure = active if lost is False else both(active, invert(lost))
        if sure is not False and values:
            update_memory(store, address, sure, operation, change, shape, values, False)

    return _asynchronous(form, "async_reduction", 4 * shape.registers, move)


def _asynchronous(form: BoundForm, access: str, width: int, move: Move) -> Run:
    """The frame of both. width: bytes of a lane, which its mbarrier gets to know of."""
    slot = checked_place(operand_of_kind(form.sources[0], Address)).slot or 0
    place, barrier = (form.binder.word(Register(slot + i)) for i in range(2))

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        if active is False:
            machine.lose(op, access, "shared", width, Poison("", op), False)
            return
        try:
            address = plus(as_unsigned(place(machine.slots), 32), SHARED_WINDOW)
            at_barrier = barrier(machine.slots)
            pieces = machine.resolve(address, active)
            together = len(pieces) > 1  # lanes in the own block count with the others
            for name, at, part in [("elsewhere", address, active)] if together else pieces:
                machine.touch(op, access, name, width, at, part)
            lanes = machine.full(active)
            blocks, places = machine.of_shared(at_barrier, lanes)
            columns = np.zeros(lanes.shape, np.int64)
            columns[lanes] = machine.mbarriers.columns(places)
            owners, at_place = machine.of_shared(as_unsigned(place(machine.slots), 32), lanes)
            rows, threads = np.nonzero(lanes)
            by = np.where(owners == rows, threads // WARP, -1)
            updates = access == "async_reduction"
            written = Stretches(owners, at_place, np.full(len(by), width), by)
            machine.order.async_store(op.index, written, columns[lanes], updates)
            for name, at, part in pieces:
                if data:
                    store, there = machine.memory.space("shared"), at
                    if name == "elsewhere":
                        store, there = machine.elsewhere(at, part)
                    move(machine, op, store, there, part)
                    for i in range(0, width, WORD):
                        machine.order.store_later(store, plus(there, i), np.int32, part, columns)
            bytes = np.full(len(blocks), -width)
            machine.mbarriers.arrive(blocks, places, np.zeros_like(blocks), bytes)
        except Poisoned as unknown:
            poison = unknown.poison.through(op)
            machine.lose(op, access, "shared", width, poison, active)
            machine.memory.spoil("shared", poison)
            machine.mbarriers.forget(poison)
        except MemsimError as error:
            raise machine.at(error, op) from None

    return run
