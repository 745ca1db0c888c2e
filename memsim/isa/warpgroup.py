"""Warpgroup matrix products (`wgmma`): `HGMMA QGMMA IGMMA`, whose operands four warps read from shared
memory.

Each warp has 16 of the 64 rows. The operands' addresses do not affect any counter (docs/model.md). A may be
in registers. Results are bit-identical to those of an H200, by the rule of HMMA (`memsim.isa.matrix`).
`BGMMA` and sparse products are not supported. Source: PTX ISA, "Asynchronous warpgroup level matrix
instructions", and the code that ptxas 13.0 generates: the descriptor of A is in URn and URn+1 of
`gdesc[URn]`, that of B in the next two, also if A is in registers. `gsb0` at a product is `commit_group`,
`WARPGROUP.DEPBAR.LE gsb0, n` is `wait_group n`, and `WARPGROUP.ARRIVE` is `wgmma.fence`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from memsim.access import Stretches
from memsim.errors import MemsimError
from memsim.isa.bulk_copy import Issue, issue_of_warps
from memsim.isa.definitions import BoundForm, executes
from memsim.isa.machine_protocol import MemoryMachine
from memsim.isa.matrix import (
    elements,
    fragment_registers,
    integer_product,
    matrix,
    places,
    tensor_product,
    truncate_to_bits,
)
from memsim.isa.memory_access import Run
from memsim.isa.number_formats import bits_of_type, numbers_of
from memsim.isa.op import Effect, Form, Register, Special, Unsupported, operand_of_kind, require
from memsim.isa.program import Op
from memsim.isa.readers import Binder
from memsim.isa.signature import descriptor_slot
from memsim.state.partial import Value
from memsim.state.parts import Mask
from memsim.state.poison import Poison, Poisoned
from memsim.state.predicates import to_bools
from memsim.state.rounding import Array
from memsim.state.tensors import descriptor_of

#: Types of A and B that are named after that of the result.
_NAMED = ("BF16", "TF32", "E4M3", "E5M2", "S8", "U8")
_KNOWN = {"F32", "F16", "SAT", *_NAMED}
#: Exponents of their subnormal numbers.
_LEAST = {"F16": -14, "E4M3": -6, "E5M2": -14, "BF16": -126, "TF32": -126, "F32": -126}
#: Rows of a warp, out of 64.
_ROWS = 16
#: Bytes that lie side by side in every layout of a matrix.
CHUNK = 16
#: Warps whose products are computed at once.
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class MmaShape:
    """64 x columns x k, the types of A, B and the result, bits of an element of A and B.

    registers: per lane, for the result. saturates: integer results saturate to 32 bits.
    """

    columns: int
    k: int
    a: str
    b: str
    result: str
    bits: int
    registers: int
    saturates: bool


def shape_of(form: Form) -> MmaShape:
    """The shape of a product.

    Raises:
        Unsupported: an unknown form.
    """
    sizes = re.fullmatch(r"64x(\d+)x(\d+)", form.modifiers[0] if form.modifiers else "")
    names = form.modifiers[1:]
    if sizes is None or set(names) - _KNOWN:
        raise Unsupported
    types = [name for name in names if name in _NAMED] or ["F16"]
    bits = bits_of_type(types[0])
    columns, k = int(sizes[1]), int(sizes[2])
    require(bits * k == 256)
    result = "S32" if form.opcode == "IGMMA" else names[0]
    registers = columns // 4 if result == "F16" else columns // 2
    return MmaShape(columns, k, types[0], types[-1], result, bits, registers, "SAT" in names)


def _signature(letters: str) -> Callable[[Form], str]:
    def text(form: Form) -> str:
        try:
            registers = shape_of(form).registers
        except Unsupported:
            registers = 128
        return f"R{registers} <- {letters} R{registers} P?S?"

    return text


_TOUCHES = (("wgmma", "shared"),)


@executes("HGMMA QGMMA IGMMA", _signature("g"), None, touches=_TOUCHES)
@executes("HGMMA QGMMA IGMMA", _signature("R4 h"), None, touches=_TOUCHES)
def build_group_product(form: BoundForm, *operands: object) -> Run:
    """A is in shared memory like B, or in registers."""
    shape = shape_of(form)
    rows = shape.columns + (64 if isinstance(operands[0], Special) else 0)
    width = rows * shape.k * shape.bits // 8 // 32
    target = operand_of_kind(form.results[0], Register)
    if target.slot is None:
        raise Unsupported
    written_slots = range(target.slot, target.slot + shape.registers)
    product: Product | str
    try:
        product = Product(form.binder, shape, operands)
    except Unsupported:
        product = f"the product of {form.name} is not computed by the emulator"

    stretches, commits = partial(operand_stretches, form, shape), is_committed(form)

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.operands(op, width, active, partial(stretches, machine, active), commits)
        if active is False:
            return
        values: tuple[Value, ...]
        try:
            if isinstance(product, str):
                raise Poisoned(Poison(product, op))
            if not data:
                raise Poisoned(Poison("a product that no address needs", op))
            values = product.of(machine, op, active)
        except Poisoned as unknown:
            values = (unknown.poison.through(op),) * shape.registers
        except MemsimError as error:
            raise machine.at(error, op) from None
        for slot, value in zip(written_slots, values):
            machine.write(slot, value, active)

    return run


def is_committed(form: Form) -> bool:
    """Does a product end a group?"""
    return any(isinstance(one, Special) and one.name == "gsb0" for one in form.operands)


@executes("WARPGROUP.DEPBAR.LE", "<- SI", effect=Effect.MEMORY)
def wait_for_products(form: BoundForm, _: object, left: int) -> Run:
    """`wgmma.wait_group`."""

    def run(machine: MemoryMachine, op: Op, active: Mask, data: bool) -> None:
        machine.order.wait_for_products(machine.mask, left)

    return run


def operand_stretches(form: BoundForm, shape: MmaShape, machine: MemoryMachine, active: Mask) -> Stretches:
    """What warps read in shared memory: their rows of A, and all of B.

    Raises:
        Poisoned: a descriptor is unknown.
    """
    described = next(one for one in form.sources if isinstance(one, Special))
    first = descriptor_slot(described) or 0
    matrices = "B" if isinstance(form.sources[0], Register) else "AB"
    slots = list(range(first if matrices == "AB" else first + 2, first + 4))
    issue = issue_of_warps(machine, active, slots, form.binder)
    columns = issue.block, issue.warp, *issue.words
    return _stretches(shape, matrices, described.name, *(tuple(one.tolist()) for one in columns))


@lru_cache(maxsize=1 << 8)
def _stretches(
    shape: MmaShape,
    matrices: str,
    described: str,
    blocks: tuple[int, ...],
    warps: tuple[int, ...],
    *words: tuple[int, ...],
) -> Stretches:
    """The same of warps [m] of blocks [m] with these words of descriptors [m], two for each matrix."""
    found = []
    for name, low, high in zip(matrices, words[::2], words[1::2]):
        lies_across = f"tnsp{name}" in described
        for block, warp, *word in zip(blocks, warps, low, high):
            begin = _ROWS * (warp % 4) if name == "A" else 0
            count = _ROWS if name == "A" else shape.columns
            starts = _chunks(word[0] | word[1] << 32, begin, count, shape, lies_across)
            whose = np.full((2, len(starts)), ((block,), (warp,)))
            found.append((whose[0], starts, np.full(len(starts), CHUNK), whose[1]))
    return Stretches(*map(np.concatenate, zip(*found)))


@lru_cache(maxsize=1 << 12)
def _chunks(word: int, first: int, count: int, shape: MmaShape, side_by_side: bool) -> np.ndarray:
    """The addresses of the chunks with rows of a matrix, by its descriptor."""
    return np.unique(_places(word, first, count, shape, side_by_side) // CHUNK) * CHUNK


@lru_cache(maxsize=1 << 8)
def _places(word: int, first: int, count: int, shape: MmaShape, side_by_side: bool) -> np.ndarray:
    """The addresses of the bytes of rows of a matrix [rows, k * bytes per element]."""
    size, rows = shape.bits // 8, np.arange(first, first + count)
    elements = descriptor_of(word).places(rows, shape.k, size, side_by_side)
    return (elements[..., None] + np.arange(size)).reshape(count, -1)


class Product:
    """Computes the product of a form.

    Raises:
        Unsupported: an unsupported form.
    """

    def __init__(self, binder: Binder, shape: MmaShape, operands: tuple[Any, ...]) -> None:
        a, described, addend, adds, _ = operands if len(operands) == 5 else (None, *operands)
        self.said = frozenset(
            described.name.partition("]")[2].split(".")[1:]
        )  # of A and B: `tnspA`, `negB`, ...
        require(self.said <= {"tnspA", "tnspB", "negA", "negB"})
        self.shape, self.binder = shape, binder
        first = descriptor_slot(described) or 0
        self.slots = list(range(first if a is None else first + 2, first + 4))
        self.addend = elements(addend, shape.columns // 2, shape.result)
        self.adds = adds or (lambda r: True)
        self.fragment = None if a is None else self._fragment(a)

    def _fragment(self, operand: object) -> Callable[[MemoryMachine], Array]:
        """A in registers: reads 16 x k numbers of each warp, float64 (rows, warps, 16, k)."""
        first = operand_of_kind(operand, Register)
        require(first.slot is not None and not first.part)
        sign, in_register, k = -1.0 if first.negated else 1.0, 32 // self.shape.bits, self.shape.k
        read = elements(replace(first, negated=False), 4 * in_register, self.shape.a)
        place = places(k, in_register, _ROWS)
        return lambda machine: matrix(read(machine.slots, machine), place, (_ROWS, k)) * sign

    def of(self, machine: MemoryMachine, op: Op, active: Mask) -> tuple[Value, ...]:
        """The registers of the result.

        Raises:
            Poisoned: an input is unknown.
            MemsimError: a descriptor that refers to addresses outside of shared memory.
        """
        shape = self.shape
        issue = issue_of_warps(machine, active, self.slots, self.binder)
        blocks, warps = machine.shape[0], machine.threads // 32
        adds = np.broadcast_to(to_bools(self.adds(machine.slots)), machine.shape)
        adds = adds.reshape(blocks, warps, 32)[issue.block, issue.warp].any(1)
        row, column = result_places(shape.columns)
        addends = np.zeros((len(issue.block), _ROWS, shape.columns))
        if adds.any():
            found = self.addend(machine.slots, machine)
            found = np.broadcast_to(found, (blocks, *found.shape[1:]))
            addends[:, row, column] = found[issue.block, issue.warp]
            addends[~adds] = 0
        first = self._first(machine, op, issue)
        known: dict[tuple[int, int], Array] = {}
        left, right = [], []
        for at, block in enumerate(issue.block.tolist()):
            word = int(issue.words[-2][at]) | int(issue.words[-1][at]) << 32
            if (block, word) not in known:
                known[block, word] = self._matrix(machine, op, block, word, shape.columns, "B")
            left.append(first(at))
            right.append(known[block, word])
        results = np.zeros((blocks, warps, 32, shape.columns // 2))
        for start in range(0, len(left), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            sums = self._sums(np.stack(left[some]), np.stack(right[some]), addends[some])
            results[issue.block[some], issue.warp[some]] = sums[:, row, column]
        return fragment_registers(results, shape.result)

    def _first(self, machine: MemoryMachine, op: Op, issue: Issue) -> Callable[[int], Array]:
        """Returns A of each warp, 16 x k."""
        if self.fragment is not None:
            whole = self.fragment(machine)
            whole = np.broadcast_to(whole, (machine.shape[0], *whole.shape[1:]))
            return lambda at: np.asarray(whole[issue.block[at], issue.warp[at]])

        known: dict[tuple[int, int], Array] = {}

        def read(at: int) -> Array:
            block, word = int(issue.block[at]), int(issue.words[0][at]) | int(issue.words[1][at]) << 32
            if (block, word) not in known:
                known[block, word] = self._matrix(machine, op, block, word, 4 * _ROWS, "A")
            first = _ROWS * (int(issue.warp[at]) % 4)
            return known[block, word][first : first + _ROWS]

        return read

    def _matrix(self, machine: MemoryMachine, op: Op, block: int, word: int, rows: int, name: str) -> Array:
        """A matrix in shared memory, float64 [rows, k]."""
        shape = self.shape
        places = _places(word, 0, rows, shape, f"tnsp{name}" in self.said)
        numbers = numbers_of(shared_bytes(machine, op, block, places), shape.a if name == "A" else shape.b)
        return -numbers if f"neg{name}" in self.said else numbers

    def _sums(self, a: Array, b: Array, c: Array) -> Array:
        if self.shape.result == "S32":
            total = integer_product(a, b, c)
            return np.clip(total, -(2.0**31), 2.0**31 - 1) if self.shape.saturates else total
        kept, rounded = (13, 14) if self.shape.bits == 8 else (25, 24)
        least = (_LEAST[self.shape.a], _LEAST[self.shape.b], _LEAST[self.shape.result])
        total = tensor_product(a, b, c, kept, least)
        if self.shape.result == "F32":
            return truncate_to_bits(total, rounded)
        return total.astype(np.float16).astype(np.float64) + 0.0  # a result rounded to zero is +0


def shared_bytes(machine: MemoryMachine, op: Op, block: int, places: np.ndarray) -> np.ndarray:
    """The bytes at addresses [rows, n] in a block's shared memory, uint8 [rows, n].

    Raises:
        Poisoned: they are unknown.
        MemsimError: they are outside of shared memory.
    """
    store = machine.memory.space("shared")
    if int(places.min()) < store.base or int(places.max()) >= store.base + store.data.shape[1]:
        raise MemsimError(
            f"out-of-bounds {op.form.name}: a descriptor refers to addresses outside of shared memory"
        )
    found, lost = store.get(block, places.reshape(-1))
    if lost is not None:
        raise Poisoned(lost[1])
    return found.reshape(places.shape)


def result_places(columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of each lane's numbers of the result in its warp's 16 rows, int [32, columns / 2]."""
    lane, number = np.arange(32)[:, None], np.arange(columns // 2)[None, :]
    return lane // 4 + 8 * (number // 2 % 2), 8 * (number // 4) + 2 * (lane % 4) + number % 2
