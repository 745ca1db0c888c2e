"""Products of matrices on registers, as operations: native/warp_matrix.h exchanges and multiplies numbers;
how registers hold them and how results are rounded is traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from memsim.interpreter.lowered_op import LoweredOp, array_of
from memsim.interpreter.traced import Traced
from memsim.interpreter.vector_operations import VectorOperation
from memsim.isa.matrix import GROUP, KEPT, MEMBER, FragmentLayout, as_words, registers
from memsim.isa.memory_access import consecutive_slots
from memsim.isa.number_formats import fields, pack_fields, without_low_bits
from memsim.isa.op import Register, operand_of_kind
from memsim.state.registers import to_array

#: Where matrices are in native/warp_matrix.h; numbers in a row of B, C and D.
_B, _C, _D, _COLUMNS = 512, 768, 896, 8


def lower_product(one: LoweredOp) -> None:
    """`HMMA IMMA DMMA`."""
    layout, form = FragmentLayout(one.op.form), one.op.form
    (row_a, k_a), (column_b, k_b), (row, column) = layout.place_a, layout.place_b, layout.place_c
    a, b, c = row_a * layout.k + k_a, _B + k_b * _COLUMNS + column_b, _C + row * _COLUMNS + column
    for source, places, name in zip(one.sources, (a, b, c), (layout.a, layout.b, layout.result)):
        register = operand_of_kind(source, Register)
        slots = consecutive_slots(register, registers(places.shape[1], name))
        for at, number in enumerate(_numbers(one, slots, name)):
            _scatter(one, _double(number), places[:, at])
    kept = KEPT if form.opcode == "HMMA" else 0
    one.operations.append(VectorOperation("product", c=kept, k=layout.k, n=layout.rows))
    found = [_gathered(one, where, np.float64) for where in (c + (_D - _C)).T]
    one.write_values(as_words([layout.finished(number) for number in found], layout.result))


def lower_transpose(one: LoweredOp) -> None:
    """`MOVM`."""
    word = one.binder.word(operand_of_kind(one.sources[0], Register))(one.registers)
    for half, number in enumerate(fields(word, False, 16)):
        _scatter(one, number, GROUP * 8 + 2 * MEMBER + half)
    turned = [_gathered(one, (2 * MEMBER + half) * 8 + GROUP, np.int64) for half in (0, 1)]
    one.write_values(pack_fields(turned, 16))


def _numbers(one: LoweredOp, slots: list[int | None], name: str) -> Iterator[Any]:
    """A fragment's numbers, as `elements` of `memsim.isa.matrix` reads them."""
    r, binder = one.registers, one.binder
    for slot in slots[::2] if name == "F64" else slots:
        register = Register(slot)
        if name == "F64":
            yield binder.double(register)(r)
        elif name in ("F16", "BF16"):
            yield from binder.halves(register, name == "BF16")(r)
        elif name in ("S8", "U8"):
            yield from fields(binder.word(register)(r), name == "S8", 8)
        elif name == "TF32":
            yield without_low_bits(to_array(binder.word(register)(r)).astype(np.uint32))
        else:
            yield (binder.word if name == "S32" else binder.single)(register)(r)


def _double(number: Any) -> Any:
    number = array_of(number)
    return number.astype(np.float64) if isinstance(number, Traced) else np.float64(number)


def _scatter(one: LoweredOp, number: Any, where: np.ndarray) -> None:
    one.add("scatter", None, one.whole(number), n=where.astype(np.int32))


def _gathered(one: LoweredOp, where: np.ndarray, dtype: type) -> Any:
    return one.computed(one.emit("gather", n=where.astype(np.int32)), np.dtype(dtype))
