"""Asynchronous copies from global to shared memory: `LDGSTS`, which is `cp.async`. Source: PTX ISA,
`cp.async`.
"""

from __future__ import annotations

import numpy as np

from memsim.access import AccessSide
from memsim.isa.definitions import BoundForm, define, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory_access import HINTS, OUTSIDE, Run, forget_memory, own_shared, register_count
from memsim.isa.op import Effect, Trait
from memsim.isa.program import Op
from memsim.isa.readers import IntReader, PredicateReader
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, invert, to_bools
from memsim.state.registers import plus, times, to_array
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
        machine.touch(op, access, "shared", width, destination, active, AccessSide(source, copied))
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


@executes("LDGDEPBAR", "<-", None, effect=Effect.MEMORY)
def commit_copies(form: BoundForm) -> Run:
    """`cp.async.commit_group`."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.in_flight.commit(machine.mask)
        machine.order.commit(machine.mask)

    return run


define("DEPBAR", "<-", None, effect=Effect.NONE)  # waits for registers


@executes("DEPBAR.LE", "<- S?I", effect=Effect.MEMORY)
def wait_for_copies(form: BoundForm, _: object, left: int) -> Run:
    """`cp.async.wait_group`: `DEPBAR.LE SB0, n` waits until at most n groups of copies are in flight."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.in_flight.wait(machine.mask, left)
        machine.order.wait(machine.mask, left)

    return run


def first_bytes(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The first `count` bytes of elements, the others zero."""
    size = value.dtype.itemsize
    kept = np.arange(size) < count[..., None]
    found: np.ndarray = np.where(kept, value[..., None].view(np.uint8), np.uint8(0))
    return np.ascontiguousarray(found).view(value.dtype)[..., 0]
