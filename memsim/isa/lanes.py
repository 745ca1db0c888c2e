"""Warp-level instructions: `SHFL VOTE MATCH REDUX R2UR ELECT`.

A uniform register has one value per warp, stored as the same value in each lane. Semantics: PTX ISA (`shfl`,
`vote`, `match`, `redux`, `elect`), and compiled code.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from memsim.arch.units import WARP
from memsim.isa.definitions import BoundForm, Compute, Results, executes
from memsim.isa.machine_protocol import Warps
from memsim.isa.op import Effect, Form, Predicate, Register, Trait, require
from memsim.isa.readers import IntReader, PredicateReader, Registers
from memsim.state.partial import Partial, Value, known_in, merge_lanes
from memsim.state.parts import EVERY_LANE, NO_LANE, Part
from memsim.state.poison import Poison, poisoned_operand
from memsim.state.predicates import either, from_bools, to_bools
from memsim.state.registers import Sum, as_unsigned, fit, from_array, to_array
from memsim.state.sums import Int

LANES = np.arange(WARP)


def by_warp(array: np.ndarray, warps: Warps) -> np.ndarray:
    """An array over threads as (rows, warps, 32)."""
    rows, columns = array.shape
    if columns != warps.threads:  # `broadcast_to` takes long even where it changes nothing
        array = np.broadcast_to(array, (rows, warps.threads))
    return array.reshape(rows, -1, 32)


def flat(array: np.ndarray) -> np.ndarray:
    """Back from (rows, warps, 1 or 32) to (rows, threads)."""
    rows, count, lanes = array.shape
    if lanes != WARP:
        array = np.broadcast_to(array, (rows, count, WARP))
    return np.ascontiguousarray(array).reshape(rows, -1)


def per_warp(array: np.ndarray) -> Int:
    """int64 (rows, warps, 1) as a value; an int if all are equal."""
    if array.size and (array == array.flat[0]).all():
        return int(fit(int(array.flat[0]), 32))  # type: ignore[arg-type]
    return fit(from_array(flat(array)), 32)


def mask_word(bits: np.ndarray) -> np.ndarray:
    """bool (..., 32) as 32-bit masks, int64 (..., 1)."""
    found: np.ndarray = (bits.astype(np.int64) << LANES).sum(axis=-1, keepdims=True)
    return found


# --- shuffles -------------------------------------------------------------------------------


def shuffle_mode(form: Form) -> str:
    """`IDX`, `UP`, `DOWN` or `BFLY`."""
    return form.modifiers[0]


@executes("SHFL.IDX SHFL.UP SHFL.DOWN SHFL.BFLY", "PW <- RWW", effect=Effect.LANES, traits={"": Trait.PASSES})
def shuffle(form: BoundForm, value: Register, by: IntReader, clamp: IntReader) -> Compute:
    """Whether a lane reads from its segment, and what."""
    mode, slot, name = shuffle_mode(form), value.slot, form.name

    def compute(r: Registers, warps: Warps) -> Results:
        distance, limits = fit(by(r), 32), fit(clamp(r), 32)
        if type(distance) is int and type(limits) is int:
            valid, source = sources_in_any_warp(mode, distance, limits, warps.threads)
        else:
            valid, source = sources(mode, to_array(distance), to_array(limits), warps.threads)
        moved = from_source_lanes(0 if slot is None else r[slot], source, warps)
        idle = lanes_without(source, warps)
        return valid, moved if idle is False else merge_lanes(idle, Poison(f"{name} {IDLE}", None), moved)

    return compute


#: Why a value is unknown that a shuffle takes from a lane that does not execute it.
IDLE = "reads from lanes that do not take part"


def lanes_without(source: np.ndarray, warps: Warps) -> bool | Part:
    """The executing lanes whose source is not one of them, unless that is read all the same."""
    here = warps.executing
    if warps.reads_idle or not isinstance(here, Part):
        return False
    if ((here.words == NO_LANE) | (here.words == EVERY_LANE)).all():
        return False
    array = np.broadcast_to(here.array, (here.shape[0], warps.threads))
    return from_bools(array & ~array_from_lanes(array, source, warps))


def sources(
    mode: str, distance: np.ndarray, limits: np.ndarray, threads: int
) -> tuple[bool | Part, np.ndarray]:
    """(lanes whose source is inside their segment, the lane that each reads from, itself if not)."""
    lane = (np.arange(threads) % WARP)[None, :]
    source, valid = source_lane(mode, lane, distance & 31, limits & 31, (limits >> 8) & 31)
    return from_bools(valid), np.where(valid, source, lane)


@lru_cache(maxsize=256)
def sources_in_any_warp(
    mode: str, distance: int, limits: int, threads: int
) -> tuple[bool | Part, np.ndarray]:
    """As `sources`, with the same operands in all lanes."""
    return sources(mode, np.array([[distance]]), np.array([[limits]]), threads)


def source_lane(
    mode: str, lane: np.ndarray, b: np.ndarray, clamp: np.ndarray, segment: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each lane reads from, and whether it is inside the lane's segment (PTX ISA, `shfl`)."""
    lowest = lane & segment
    limit = lowest | (clamp & ~segment)
    if mode == "UP":
        return lane - b, lane - b >= limit
    source = {"DOWN": lane + b, "BFLY": lane ^ b, "IDX": lowest | (b & ~segment)}[mode]
    return source, source <= limit


def from_source_lanes(value: Value, source: np.ndarray, warps: Warps) -> Value:
    """Each lane's value from lane `source` of its warp."""
    if type(value) is int:
        return value
    if isinstance(value, Partial):
        found = from_source_lanes(value.value, source, warps)
        lanes = from_bools(array_from_lanes(value.known.array, source, warps))
        return known_in(lanes, found, value.poison)
    if isinstance(value, np.ndarray):
        return array_from_lanes(value, source, warps)
    if not isinstance(value, Sum):
        raise poisoned_operand(value)
    moved = array_from_lanes(value.array, source, warps)
    return value if moved is value.array else from_array(moved)


def array_from_lanes(array: np.ndarray, source: np.ndarray, warps: Warps) -> np.ndarray:
    """The same of an array; itself if all lanes of a row have the same."""
    if array.shape[1] == 1:
        return array
    if source.shape[0] == 1 and (source.reshape(-1, 32) == source[0, :32]).all():
        lanes = source[0, :WARP]
        return array.reshape(-1, WARP).take(lanes, axis=1, mode="clip").reshape(array.shape)
    rows = max(array.shape[0], source.shape[0])
    of_lanes = np.broadcast_to(by_warp(array, warps), (rows, warps.threads // 32, 32))
    index = np.broadcast_to(by_warp(source, warps), of_lanes.shape)
    return flat(np.take_along_axis(of_lanes, index, axis=2))


# --- votes ----------------------------------------------------------------------------------


_VOTES = "VOTE.ANY VOTE.ALL VOTE.EQ VOTEU.ANY VOTEU.ALL VOTEU.EQ"


@executes(_VOTES, "W <- P", effect=Effect.LANES)
@executes(_VOTES, "P <- P", effect=Effect.LANES)
@executes(_VOTES, "WP <- P", effect=Effect.LANES)
def vote(form: BoundForm, read: PredicateReader) -> Compute:
    """The lanes for which a predicate holds, as a mask; whether it holds for any or all, or is the same."""
    (mode,) = form.modifiers
    gives_mask = isinstance(form.results[0], Register)
    gives_answer = isinstance(form.results[-1], Predicate)

    def compute(r: Registers, warps: Warps) -> Results:
        yes = by_warp(to_bools(read(r)), warps)
        active = warps.active()
        some = (yes & active).any(axis=2, keepdims=True)
        all_of = (yes | ~active).all(axis=2, keepdims=True)
        answer = {"ANY": some, "ALL": all_of, "EQ": all_of | ~some}[mode]
        found: list[Value] = []
        if gives_mask:
            found.append(per_warp(mask_word(yes & active)))
        if gives_answer:
            found.append(from_bools(flat(answer)))
        return found[0] if len(found) == 1 else tuple(found)

    return compute


@executes("MATCH.ANY MATCH.ALL", "P?W <- W", effect=Effect.LANES)
@executes("MATCH.ANY.U64 MATCH.ALL.U64", "P?W <- D", effect=Effect.LANES)
def match(form: BoundForm, read: IntReader) -> Compute:
    """The lanes with the same value, as a mask; or all, if all have it, and whether they do."""
    bits, any_of = 64 if "U64" in form.given else 32, "ANY" in form.given

    def compute(r: Registers, warps: Warps) -> Results:
        values = by_warp(to_array(fit(read(r), bits)), warps)
        active = warps.active()
        same = values[..., :, None] == values[..., None, :]
        if any_of:
            return True, fit(from_array(flat(mask_word(same & active[..., None, :])[..., 0])), 32)
        agreed = (same | ~active[..., None, :]).all(axis=3)
        members = np.where(agreed, mask_word(active), 0)
        return from_bools(flat(agreed)), fit(from_array(flat(members)), 32)

    return compute


_REDUCTIONS: dict[str, tuple[np.ufunc, int]] = {
    "SUM": (np.add, 0),
    "MIN": (np.minimum, 2**32),
    "MAX": (np.maximum, -(2**31)),
    "AND": (np.bitwise_and, -1),
    "OR": (np.bitwise_or, 0),
    "XOR": (np.bitwise_xor, 0),
}


@executes("REDUX CREDUX", "W <- W", " ".join((*_REDUCTIONS, "S32", "U32")), effect=Effect.LANES)
def reduction(form: BoundForm, read: IntReader) -> Compute:
    names = form.given & set(_REDUCTIONS)
    require(len(names) <= 1)
    reduce, neutral = _REDUCTIONS[next(iter(names), "AND")]
    signed = "S32" in form.given

    def compute(r: Registers, warps: Warps) -> Results:
        word = fit(read(r), 32)
        values = by_warp(to_array(word if signed else as_unsigned(word, 32)), warps)
        return per_warp(reduce.reduce(np.where(warps.active(), values, neutral), axis=2, keepdims=True))

    return compute


@executes("R2UR", "P?W <- W", effect=Effect.LANES, traits={"": Trait.PASSES})
@executes("R2UR.OR", "P+?W <- W", effect=Effect.LANES)
def to_uniform(form: BoundForm, read: IntReader) -> Compute:
    """The value of the first active lane of a warp; with a predicate, which lanes have another one.

    ptxas begins loops with it that serve the lanes of one address at a time, until no lane is left. Of
    several registers, all but the first are read with `.OR`: lanes are left that differ in any of them.
    """
    target = form.results[0]
    before = form.binder.predicate(target) if "OR" in form.given and target is not None else None

    def compute(r: Registers, warps: Warps) -> Results:
        value = fit(read(r), 32)
        picked = first_of(value, warps)
        if target is None:
            return True, picked
        other = from_bools(to_array(value) != to_array(picked))
        return (other if before is None else either(before(r), other)), picked

    def first_of(value: Int, warps: Warps) -> Int:
        if type(value) is int:
            return value
        array = to_array(value)
        if array.shape[1] == 1:
            return value  # the same in a whole block
        rows, active = by_warp(array, warps), warps.active()
        count = max(rows.shape[0], active.shape[0])
        first = np.broadcast_to(active, (count, *active.shape[1:])).argmax(axis=2)[..., None]
        return per_warp(np.take_along_axis(np.broadcast_to(rows, (count, *rows.shape[1:])), first, axis=2))

    return compute


@executes("ELECT", "P?W?P? <-", effect=Effect.LANES)
def elect(form: BoundForm) -> Compute:
    """Whether a lane is the first active one, and which is."""

    def compute(r: Registers, warps: Warps) -> Results:
        active = warps.active()
        leader = active.argmax(axis=2)[..., None]
        elected = from_bools(flat((leader == LANES) & active))
        return elected, per_warp(leader), elected

    return compute
