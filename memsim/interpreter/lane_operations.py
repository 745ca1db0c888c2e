"""Instructions for the lanes of a warp, as operations: shuffles, votes, special registers and the like."""

from __future__ import annotations

from collections.abc import Callable

from memsim.interpreter.lowered_op import LoweredOp, NotLowered, OfThreads
from memsim.interpreter.matrix_operations import lower_product, lower_transpose
from memsim.interpreter.memory_operations import UPDATES
from memsim.interpreter.vector_operations import ZERO, Place, RegisterPlace, constant
from memsim.isa.op import Barrier, Predicate, Register, Special
from memsim.simt.machine import ANSWER_SLOT, COUNT_SLOT

CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")
AXES = {"X": 0, "Y": 1, "Z": 2}


def lower_lanes(one: LoweredOp) -> None:
    """The operations of an instruction whose results depend on other lanes.

    Raises:
        NotLowered: there are none.
    """
    lower = _LOWERED.get(one.op.form.opcode)
    if lower is None:
        raise one.refuse()
    lower(one)


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
    one.write_places([*found, ZERO][: len(one.targets)], of_warps=one.op.form.opcode.endswith("UR"))


def _shuffle(one: LoweredOp) -> None:
    mode = ("IDX", "UP", "DOWN", "BFLY").index(one.modifiers[0])
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


_LOWERED: dict[str, Callable[[LoweredOp], None]] = {
    **dict.fromkeys(("S2R", "S2UR", "CS2R", "CS2UR"), _special),
    **dict.fromkeys(("VOTE", "VOTEU"), _vote),
    **dict.fromkeys(("REDUX", "CREDUX"), _reduction),
    **{"SHFL": _shuffle, "MATCH": _match, "R2UR": _to_uniform, "ELECT": _elect},
    **dict.fromkeys(("HMMA", "IMMA", "DMMA"), lower_product),
    **{"MOVM": lower_transpose, "BMOV": _barrier_register, "B2R": _barrier_result, "QSPC": _space_of_address},
}
