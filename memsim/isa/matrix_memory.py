"""Matrix loads and stores in shared memory: `LDSM STSM`, which are `ldmatrix` and `stmatrix`. Source: PTX
ISA, `ldmatrix`.
"""

from __future__ import annotations

import numpy as np

from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import Mask, MemoryMachine
from memsim.isa.memory_access import Run, forget_memory, framed, slots_of, unknown_results
from memsim.isa.op import Form, Register
from memsim.isa.program import Op
from memsim.isa.readers import IntReader
from memsim.isa.unsupported import checked
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import both, invert
from memsim.state.registers import fit, from_array, ints, to_array
from memsim.state.space_bytes import SpaceBytes
from memsim.state.sums import Int


def _matrix_count(form: Form | BoundForm) -> int:
    return next((int(name) for name in form.modifiers if name in ("2", "4")), 1)


def matrix_pieces(
    machine: MemoryMachine, address: Int, matrix: int, transposed: bool
) -> list[tuple[Int, int]]:
    """Where each lane's two 16-bit elements of a matrix are, as (address, half of the register).

    PTX ISA, `ldmatrix`: row i of matrix m starts at the address of lane 8 m + i; lane l holds elements 2 (l %
    4) and the next of row l // 4, or of the transposed matrix.
    """
    rows = to_array(address)
    rows = np.broadcast_to(rows, (rows.shape[0], machine.threads))
    lanes = np.arange(machine.threads)
    base = (lanes & ~31) + 8 * matrix
    if not transposed:
        row = rows[:, base + (lanes % 32) // 4]
        return [(from_array(row + 4 * (lanes % 4) + 2 * half), half) for half in (0, 1)]
    return [
        (from_array(rows[:, base + (lanes % 4) * 2 + half] + 2 * ((lanes % 32) // 4)), half)
        for half in (0, 1)
    ]


_SHAPES = "16 M88 MT88 2 4"


@executes("LDSM", lambda form: f"R{_matrix_count(form)} <- a", _SHAPES, touches=(("ldmatrix", "shared"),))
def load_matrix(form: BoundForm, read: IntReader) -> Run:
    count, transposed = _matrix_count(form), "MT88" in form.given
    slots = slots_of(checked(form.results[0], Register), count)

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        for matrix, slot in enumerate(slots):
            if slot is None:
                continue
            pieces = matrix_pieces(machine, address, matrix, transposed)
            known = machine.mask
            for where, _ in pieces:
                lost = store.lost(where, np.uint16, known)
                if lost is not False:
                    machine.write(slot, store.why(where, np.uint16, lost).through(op), lost)
                    known = both(known, invert(lost))
            if known is not False:
                low, high = (store.load(where, np.uint16, known).astype(np.int64) for where, _ in pieces)
                machine.write(slot, fit(from_array(low | high << 16), 32), known)

    def forget(machine: MemoryMachine, op: Op, poison: Poison, active: Mask, spaces: tuple[str, ...]) -> None:
        unknown_results(slots)(machine, op, poison, machine.mask, spaces)

    return framed(read, form.binder, "shared", "ldmatrix", 16, move, forget, lanes=8 * count)


@executes("STSM", lambda form: f"<- a R{_matrix_count(form)}", _SHAPES, touches=(("stmatrix", "shared"),))
def store_matrix(form: BoundForm, read: IntReader, source: Register) -> Run:
    count, transposed = _matrix_count(form), "MT88" in form.given

    def move(machine: MemoryMachine, op: Op, store: SpaceBytes, address: Int, active: Mask) -> None:
        for matrix in range(count):
            pieces = matrix_pieces(machine, address, matrix, transposed)
            try:
                value = 0 if source.slot is None else machine.slots[source.slot + matrix]
                bits = to_array(ints(value))
                for where, half in pieces:
                    store.store(where, (bits >> (16 * half)).astype(np.uint16), machine.mask)
            except Poisoned as unknown:
                for where, _ in pieces:
                    store.forget(where, np.uint16, machine.mask, unknown.poison.through(op))

    return framed(read, form.binder, "shared", "stmatrix", 16, move, forget_memory, lanes=8 * count)
