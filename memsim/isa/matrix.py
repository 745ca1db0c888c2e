"""Matrix instructions on registers: `HMMA IMMA DMMA MOVM`.

Fragments are laid out as in PTX ISA for `mma`. Results are bit-identical to those of an H200 for numbers that
are not subnormal: HMMA truncates all products and the addend two bits below the float32 precision of the
largest exponent, adds them and rounds, to float32 towards zero; DMMA is a chain of fused operations in the
order of k. Sparse, binary and 8-bit float products are not supported.

A number of the result depends on one row of A, one column of B and its own addend. Tiles that reach beyond
the end of an array have unknown rows or columns, which kernels mask afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.lanes import LANES, by_warp, flat
from memsim.isa.machine_protocol import Warps
from memsim.isa.memory_access import consecutive_slots
from memsim.isa.number_formats import NAN, bits_of_type, from_double, half_bits, numbers_of, pack_fields
from memsim.isa.op import Effect, Form, Register, Unsupported, operand_of_kind, require
from memsim.isa.readers import IntReader, Registers
from memsim.state.partial import NEVER_WRITTEN, Partial, Value, known_in, split_partial
from memsim.state.poison import Poison
from memsim.state.predicates import from_bools, to_bools
from memsim.state.registers import fit, from_array, ints, to_array
from memsim.state.rounding import Array, fma64

Place = tuple[Array, Array]

GROUP, MEMBER = LANES // 4, LANES % 4
#: Shape -> rows of A and C, and k.
_SHAPES = {
    "HMMA": {"16816": (16, 16), "1688": (16, 8), "1684": (16, 4)},
    "IMMA": {"8816": (8, 16), "16816": (16, 16), "16832": (16, 32)},
    "DMMA": {"8x8x4": (8, 4), "16x8x4": (16, 4), "16x8x8": (16, 8), "16x8x16": (16, 16)},
}
_TYPES = {"HMMA": {"F16", "F32", "BF16", "TF32"}, "IMMA": {"S8", "U8", "SAT"}, "DMMA": set()}
#: Bits of a term that HMMA keeps behind the first one of the largest exponent.
KEPT = 25
#: An exponent below all others.
_NONE = -10000


class FragmentLayout:
    """The fragments of an instruction: types, positions, and registers of A, B and C.

    kept: bits of a term behind the first one of the largest exponent; 0 if it is not cut.

    Raises:
        Unsupported: an unsupported shape or type.
    """

    def __init__(self, form: Form) -> None:
        shape, *types = form.modifiers or ("",)
        require(shape in _SHAPES[form.opcode] and set(types) <= _TYPES[form.opcode])
        self.rows, self.k = _SHAPES[form.opcode][shape]
        self.saturates = "SAT" in types
        types = [name for name in types if name != "SAT"]
        self.kept = KEPT if form.opcode == "HMMA" else 0
        if form.opcode == "HMMA":
            require(1 <= len(types) <= 2 and types[0] in ("F16", "F32"))
            self.result, self.a = types[0], types[1] if len(types) > 1 else "F16"
            self.b = self.a
        elif form.opcode == "IMMA":
            require(len(types) == 2)
            self.result, (self.a, self.b) = "S32", types
        else:
            self.result = self.a = self.b = "F64"
        in_register = max(1, 32 // bits_of_type(self.a))
        self.place_a, self.place_b = places(self.k, in_register, self.rows), places(self.k, in_register, 0)
        count = 2 if self.rows == 8 else 4
        rows, columns = places_c()
        self.place_c = rows[:, :count], columns[:, :count]

    def finished(self, product: Array) -> Array:
        """Numbers of a product as its type has them, before they are rounded to it."""
        if self.result == "F32":
            return truncate_to_bits(product)
        return np.clip(product, -(2.0**31), 2.0**31 - 1) if self.saturates else product


def _signature(form: Form) -> str:
    try:
        layout = FragmentLayout(form)
    except Unsupported:
        return "R8 <- R16 R8 R8"
    a, b, c = (place[0].shape[1] for place in (layout.place_a, layout.place_b, layout.place_c))
    result = registers(c, layout.result)
    return f"R{result} <- R{registers(a, layout.a)} R{registers(b, layout.b)} R{result}"


def registers(numbers: int, name: str) -> int:
    """Registers for so many numbers of a type."""
    return numbers * bits_of_type(name) // 32


@executes("HMMA IMMA DMMA", _signature, None, effect=Effect.LANES)
def build_product(form: BoundForm, *operands: Register) -> Compute:
    layout = FragmentLayout(form)
    places = (layout.place_a, layout.place_b, layout.place_c)
    readers = [
        elements(operand, place[0].shape[1], name)
        for operand, place, name in zip(operands, places, (layout.a, layout.b, layout.result))
    ]
    shapes = ((layout.rows, layout.k), (8, layout.k), (layout.rows, 8))
    multiply = {"HMMA": tensor_product, "IMMA": integer_product, "DMMA": double_product}[form.opcode]
    slots = [
        consecutive_slots(operand, registers(place[0].shape[1], name))
        for operand, place, name in zip(operands, places, (layout.a, layout.b, layout.result))
    ]

    def compute(r: Registers, warps: Warps) -> Results:
        lost = unknown_in(r, chain.from_iterable(slots))
        if not lost:
            return product_of(r, warps)
        a, b, c = (
            matrix(unknown_numbers(r, read, place[0].shape[1], warps), place, shape)
            for read, place, shape in zip(slots, places, shapes)
        )
        unknown: Array = (a.max(axis=-1)[..., :, None] + b.max(axis=-1)[..., None, :] + c) != 0
        rows, columns = layout.place_c
        return results_known(product_of(with_zeros(r, lost), warps), unknown[..., rows, columns], r, lost)

    def product_of(r: Registers, warps: Warps) -> tuple[Value, ...]:
        a, b, c = (
            matrix(read(r, warps), place, shape) for read, place, shape in zip(readers, places, shapes)
        )
        rows, columns = layout.place_c
        return fragment_registers(layout.finished(multiply(a, b, c))[..., rows, columns], layout.result)

    return compute


def tensor_product(
    a: Array, b: Array, c: Array, bits: int = KEPT, least: tuple[int, int, int] = (_NONE, _NONE, _NONE)
) -> Array:
    """`a @ b.T + c` as Hopper's tensor cores compute it: each term is truncated before the addition.

    bits: that are kept after the first of the largest exponent. least: exponents of subnormal numbers of a, b
    and c, which are not normalized.
    """
    if _nothing_is_cut(a, b, c, bits, least):
        return integer_product(a, b, c)
    products = a[..., :, None, :] * b[..., None, :, :]
    exponent_a, exponent_b, exponent_c = (
        np.where(x == 0, _NONE, np.maximum(np.frexp(x)[1] - 1, low)).astype(np.int16)
        for x, low in zip((a, b, c), least)
    )
    exponents = exponent_a[..., :, None, :] + exponent_b[..., None, :, :]
    unit = np.maximum(np.maximum(exponents.max(axis=-1), exponent_c), -900).astype(np.int64) - bits
    scale = np.ldexp(1.0, -unit)
    total = np.trunc(products * scale[..., None]).sum(axis=-1) + np.trunc(c * scale) + 0.0  # a zero is +0
    exact: Array = np.ldexp(total, unit)
    if not all(np.isfinite(x).all() for x in (a, b, c)):
        exact = np.where(
            np.isfinite(products).all(axis=-1) & np.isfinite(c), exact, products.sum(axis=-1) + c
        )
    return exact


def _nothing_is_cut(a: Array, b: Array, c: Array, bits: int, least: tuple[int, int, int]) -> bool:
    """Are the last bits of all terms kept? Then float64 adds them exactly in any order."""
    (high_a, low_a), (high_b, low_b), (high_c, low_c) = (_range(array) for array in (a, b, c))
    top = max(max(high_a, least[0]) + max(high_b, least[1]), max(high_c, least[2]))
    return min(low_a + low_b, low_c) >= top - bits


def _range(array: Array) -> tuple[int, int]:
    """(highest, lowest) exponent of a set bit in any number, all of them of at most 53 bits."""
    numbers = array[array != 0]
    if not np.isfinite(numbers).all():
        return 0, _NONE
    if not numbers.size:
        return _NONE, -_NONE
    fraction, exponent = np.frexp(numbers)
    whole = np.ldexp(np.abs(fraction), 53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1 + exponent - 53
    return int(exponent.max()) - 1, int(lowest.min())


def truncate_to_bits(array: Array, bits: int = 24) -> Array:
    """Truncated to so many bits."""
    fraction, exponent = np.frexp(array)
    found: Array = np.ldexp(np.trunc(np.ldexp(fraction, bits)), exponent - bits)
    return found


def integer_product(a: Array, b: Array, c: Array) -> Array:
    """`a @ b.T + c`, exactly."""
    found: Array = np.matmul(a, np.swapaxes(b, -1, -2)) + c
    return found


def double_product(a: Array, b: Array, c: Array) -> Array:
    """`a @ b.T + c`, one fused operation for each k."""
    for k in range(a.shape[-1]):
        left, right = (
            np.ascontiguousarray(x) for x in np.broadcast_arrays(a[..., :, None, k], b[..., None, :, k])
        )
        c = fma64(left, right, c)
    return c


def elements(operand: object, count: int, name: str) -> Callable[[Registers, Warps], Array]:
    """A fragment's numbers as float64 (rows, warps, 32, numbers per lane)."""
    register = operand_of_kind(operand, Register)
    require(not register.negated and register.part in ("", "ROW", "COL"))
    slots = consecutive_slots(register, registers(count, name))

    def read(r: Registers, warps: Warps) -> Array:
        words = [0 if slot is None else ints(r[slot]) for slot in slots]
        lanes = np.broadcast_arrays(*(by_warp(to_array(word), warps) for word in words))
        return numbers_of(np.stack(lanes, axis=-1).astype(np.int32), name)

    return read


def fragment_registers(found: Array, name: str) -> tuple[Value, ...]:
    """A lane's numbers (rows, warps, 32, n) as registers."""
    return as_words([flat(np.ascontiguousarray(found[..., i])) for i in range(found.shape[-1])], name)


def as_words(numbers: Sequence[Array], name: str) -> tuple[Value, ...]:
    """Numbers of each lane as registers."""
    if name == "F32":
        return tuple(np.where(np.isnan(number), NAN, number.astype(np.float32)) for number in numbers)
    if name == "F64":
        return tuple(word for number in numbers for word in from_double(number))
    if name == "S32":
        return tuple(fit(from_array(number.astype(np.int64)), 32) for number in numbers)
    bits = [half_bits(number) for number in numbers]
    return tuple(pack_fields(pair, 16) for pair in zip(bits[::2], bits[1::2]))


def places(k: int, in_register: int, rows: int) -> Place:
    """(row, column) of each lane's numbers of A, or of B (no rows: its 8 columns as rows), int [32, numbers].

    PTX ISA, figures of `mma.m16n8k16` and others: a register covers 4 * in_register columns; with 16 rows,
    A's second register is 8 rows below the first, followed by the next columns.
    """
    row, column = [], []
    above = 2 if rows == 16 else 1
    for register in range(k // (4 * in_register) * above):
        for number in range(in_register):
            row.append(GROUP + 8 * (register % above))
            column.append(MEMBER * in_register + number + 4 * in_register * (register // above))
    return np.stack(row, axis=-1), np.stack(column, axis=-1)


def places_c() -> Place:
    """(row, column) of each lane's four numbers of C and D, int [32, 4]."""
    row = np.stack([GROUP, GROUP, GROUP + 8, GROUP + 8], axis=-1)
    column = np.stack([2 * MEMBER, 2 * MEMBER + 1] * 2, axis=-1)
    return row, column


def matrix(values: Array, place: Place, shape: tuple[int, int]) -> Array:
    """Fragments assembled to matrices, float64 (rows, warps, *shape)."""
    whole = np.zeros((*values.shape[:2], *shape))
    whole[..., place[0], place[1]] = values
    return whole


@executes("MOVM.16.MT88", "W <- W", effect=Effect.LANES)
def build_transpose(form: BoundForm, read: IntReader) -> Compute:
    """Transposes an 8 x 8 matrix of 16-bit elements, two in each lane."""

    def compute(r: Registers, warps: Warps) -> Results:
        words = by_warp(to_array(read(r)), warps)
        whole = np.zeros((*words.shape[:2], 8, 8), np.int64)
        for half in (0, 1):
            whole[..., GROUP, 2 * MEMBER + half] = (words >> (16 * half)) & 0xFFFF
        low, high = (whole[..., 2 * MEMBER + half, GROUP] for half in (0, 1))
        return fit(from_array(flat(low | (high << 16))), 32)

    return compute


# --- numbers that are unknown ----------------------------------------------------------------


def unknown_in(registers: Registers, slots: Iterable[int | None]) -> list[int]:
    """The slots whose register is unknown in some lane; slot None is RZ."""
    return [
        slot
        for slot in slots
        if slot is not None and (registers[slot] is None or isinstance(registers[slot], (Partial, Poison)))
    ]


def with_zeros(registers: Registers, slots: Iterable[int]) -> Registers:
    """The registers, with 0 where one of these is unknown."""
    found = list(registers)
    for slot in slots:
        value, known, _ = split_partial(found[slot])
        found[slot] = 0 if known is False else value
    return found


def unknown_numbers(registers: Registers, slots: Sequence[int | None], numbers: int, warps: Warps) -> Array:
    """Which of a fragment's numbers are unknown, bool (rows, warps, 32, numbers per lane)."""
    known = (by_warp(to_bools(slot is None or split_partial(registers[slot])[1]), warps) for slot in slots)
    return _in_each(~np.stack(np.broadcast_arrays(*known), axis=-1), numbers)


def results_known(
    results: Sequence[Value], unknown: Array, registers: Registers, slots: Iterable[int]
) -> tuple[Value, ...]:
    """The results' registers, known where their numbers are; `slots`: the first one's reason is told."""
    poison = next((why for slot in slots if (why := split_partial(registers[slot])[2])), NEVER_WRITTEN)
    lost = _in_each(unknown, len(results))
    return tuple(
        known_in(from_bools(~flat(lost[..., i])), result, poison) for i, result in enumerate(results)
    )


def _in_each(flags: Array, count: int) -> Array:
    """Flags of registers as those of the numbers in them, or the other way round: `count` for each lane."""
    have = flags.shape[-1]
    if have <= count:
        return np.repeat(flags, count // have, axis=-1)
    found: Array = np.any(flags.reshape(*flags.shape[:-1], count, have // count), axis=-1)
    return found
