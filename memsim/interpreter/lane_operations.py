"""Instructions for the lanes of a warp, as operations: shuffles, votes, special registers and the like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from memsim.interpreter.lowered_op import Lowered, LoweredOp, NotLowered, OfThreads, array_of
from memsim.interpreter.memory_operations import UPDATES
from memsim.interpreter.traced import Traced, TracedOrNumber
from memsim.interpreter.vector_operations import ZERO, Place, RegisterPlace, VectorOperation, constant
from memsim.isa import control, lanes, matrix, memory, moves
from memsim.isa.matrix import GROUP, MEMBER, FragmentLayout, as_words, registers
from memsim.isa.memory_access import consecutive_slots
from memsim.isa.number_formats import fields, pack_fields, without_low_bits
from memsim.isa.op import UNIFORM, Barrier, Predicate, Register, Special, operand_of_kind
from memsim.simt.machine import ANSWER_SLOT, COUNT_SLOT
from memsim.state.registers import to_array

#: Special registers that are clocks, by the beginning of their names.
CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
AXES = {"X": 0, "Y": 1, "Z": 2}


def _special(one: LoweredOp) -> None:
    name = next(source.name for source in one.sources if isinstance(source, Special))
    base, _, axis = name.partition(".")
    found: list[Place] = []
    if name == "SRZ":
        found = [ZERO]
    elif name.startswith(CLOCKS):
        if not one.has_clock:
            raise NotLowered(name)
        is_timer = int("TIMER" in name)
        found = [one.emit("clock", k=is_timer, n=int(name.endswith("HI")))]
        if len(one.targets) == 2:
            found.append(one.emit("clock", k=is_timer, n=1))
    elif base in ("SR_CTAID", "SR_CLUSTERID") and axis in AXES:
        found = [one.emit("block", n=AXES[axis])]
    else:
        found = [one.emit("thread", n=OfThreads(name))]
    one.write_places([*found, ZERO][: len(one.targets)], of_warps=(one.targets[0] or 0) >= UNIFORM)


def _shuffle(one: LoweredOp) -> None:
    mode = ("IDX", "UP", "DOWN", "BFLY").index(lanes.shuffle_mode(one.op.form))
    places = [one.word(source) for source in one.sources]
    one.write_places([one.emit(name, *places, k=mode) for name in ("shuffle_valid", "shuffle")])


def _vote(one: LoweredOp) -> None:
    yes = one.truth(one.sources[0])
    made: list[Place] = []
    if isinstance(one.results[0], Register):
        made.append(one.emit("vote_mask", yes))
    if isinstance(one.results[-1], Predicate):
        made.append(one.emit("vote", yes, k=("ANY", "ALL", "EQ").index(one.modifiers[0])))
    one.write_places(made)


def _match(one: LoweredOp) -> None:
    wide = "_64" if "U64" in one.modifiers else ""
    place = one.pair(one.sources[0]) if wide else one.word(one.sources[0])
    if "ANY" in one.modifiers:
        made: list[Place] = [constant(1, 4), one.emit(f"match{wide}", place)]
    else:
        agreed = one.emit(f"match_all{wide}", place)
        made = [agreed, one.emit("members", agreed)]
    one.write_places(made[-len(one.targets) :])


def _reduction(one: LoweredOp) -> None:
    named = [name.lower().replace("sum", "add") for name in one.modifiers]
    number = UPDATES.index(next((name for name in named if name in UPDATES), "and"))
    place = one.word(one.sources[0])
    one.write_places([one.emit("redux", place, k=number, n=int("S32" in one.modifiers))])


def _to_uniform(one: LoweredOp) -> None:
    word = one.word(one.sources[0])
    picked = one.emit("first", word)
    made = [picked]
    if isinstance(one.results[0], Predicate):
        other = one.emit("ne_w", word, picked)
        if "OR" in one.modifiers:
            other = one.emit("or_w", other, one.truth(one.results[0]))
        made = [other, picked]
    one.write_places(made, of_warps=True)


def _elect(one: LoweredOp) -> None:
    elected, lane = one.emit("elect"), one.emit("leader_lane")
    one.write_places(
        [place for result, place in zip(one.results, (elected, lane, elected)) if result is not None]
    )


def _barrier_register(one: LoweredOp) -> None:
    source = one.sources[0]
    one.write_places([RegisterPlace(source.slot) if isinstance(source, Barrier) else one.word(source)])


def _barrier_result(one: LoweredOp) -> None:
    places = [RegisterPlace(COUNT_SLOT), RegisterPlace(ANSWER_SLOT)]
    one.write_places(places[: len(one.targets)])


def _space_of_address(one: LoweredOp) -> None:
    one.write_values(one.op.meaning.bind(one.binder)(one.registers, None))


# --- products of matrices --------------------------------------------------------------------
# native/warp_matrix.h exchanges and multiplies numbers; how registers hold them and how results are rounded
# is traced.

#: Where matrices are in native/warp_matrix.h; numbers in a row of B, C and D.
_B, _C, _D, _COLUMNS = 512, 768, 896, 8


def lower_product(one: LoweredOp) -> None:
    """A product of matrices in registers."""
    layout = FragmentLayout(one.op.form)
    (row_a, k_a), (column_b, k_b), (row, column) = layout.place_a, layout.place_b, layout.place_c
    a, b, c = row_a * layout.k + k_a, _B + k_b * _COLUMNS + column_b, _C + row * _COLUMNS + column
    for source, places, name in zip(one.sources, (a, b, c), (layout.a, layout.b, layout.result)):
        register = operand_of_kind(source, Register)
        slots = consecutive_slots(register, registers(places.shape[1], name))
        for at, number in enumerate(_numbers(one, slots, name)):
            _scatter(one, _double(number), places[:, at])
    one.operations.append(VectorOperation("product", c=layout.kept, k=layout.k, n=layout.rows))
    found = [_gathered(one, where, np.float64) for where in (c + (_D - _C)).T]
    one.write_values(as_words([layout.finished(number) for number in found], layout.result))


def lower_transpose(one: LoweredOp) -> None:
    """A matrix that is transposed."""
    word = one.binder.word(operand_of_kind(one.sources[0], Register))(one.registers)
    for half, number in enumerate(fields(word, False, 16)):
        _scatter(one, number, GROUP * 8 + 2 * MEMBER + half)
    turned = [_gathered(one, (2 * MEMBER + half) * 8 + GROUP, np.int64) for half in (0, 1)]
    one.write_values(pack_fields(turned, 16))


def _numbers(one: LoweredOp, slots: list[int | None], name: str) -> Iterator[object]:
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


def _double(number: object) -> Traced | np.float64:
    found = array_of(number)
    return found.astype(np.float64) if isinstance(found, Traced) else np.float64(found)


def _scatter(one: LoweredOp, number: TracedOrNumber, where: np.ndarray) -> None:
    one.add("scatter", None, one.whole(number), n=where.astype(np.int32))


def _gathered(one: LoweredOp, where: np.ndarray, dtype: type) -> Any:
    return one.computed(one.emit("gather", n=where.astype(np.int32)), np.dtype(dtype))


OF_LANES: Lowered = {
    moves.special_register: _special,
    lanes.shuffle: _shuffle,
    lanes.vote: _vote,
    lanes.match: _match,
    lanes.reduction: _reduction,
    lanes.to_uniform: _to_uniform,
    lanes.elect: _elect,
    matrix.build_product: lower_product,
    matrix.build_transpose: lower_transpose,
    **dict.fromkeys((control.move_barrier, control.move_to_barrier), _barrier_register),
    control.barrier_result: _barrier_result,
    memory.query_space: _space_of_address,
}
