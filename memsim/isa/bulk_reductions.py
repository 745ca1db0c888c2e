"""Bulk reductions by TMA: `UBLKRED UTMAREDG`.

As copies from shared memory (`memsim.isa.bulk_copy`), but each element is combined with the one at its
destination. If a tensor's row ends within 16 bytes, the rest of these becomes unknown. Source: PTX ISA,
`cp.reduce.async.bulk` and `cp.reduce.async.bulk.tensor`, and the code that ptxas 13.0 generates:

    UBLKRED.G.S.ADD[.F32.RN] [UR6], [UR4], UR5   UR6 and UR7 destination, UR4 source, UR5 size / 16
    UBLKRED.S.S.ADD [UR10], [UR4], UR6           UR10 destination, UR11 the mbarrier
    UTMAREDG.2D.ADD [UR4], [UR10]                as UTMASTG; the type of the elements is the map's
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from memsim.isa.atomics import HALF_CHANGES, flushing_sum
from memsim.isa.bulk_copy import UNIT, from_shared
from memsim.isa.definitions import BoundForm, Touches, define, executes
from memsim.isa.memory_access import Run
from memsim.isa.op import Unsupported, require
from memsim.isa.program import Op
from memsim.isa.tensor_copy import OF_MAPS, box_places, tensor_operands, to_tensor
from memsim.state.poison import Poison, Poisoned
from memsim.state.space_bytes import SpaceBytes
from memsim.state.tensors import Tensor
from memsim.state.updates import UPDATE, Change

KIND, KIND_INSIDE = "bulk_reduction", "cluster_bulk_reduction"
TO_GLOBAL: Touches = ((KIND, "global"), ("bulk_load", "shared"))
TO_SHARED: Touches = ((KIND_INSIDE, "shared"), ("bulk_load", "shared"))
OPERATIONS = frozenset(("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"))
#: Elements as the form calls them, and how their bits are floats; without a name they are U32.
_ELEMENTS: dict[str, tuple[type, str]] = {
    "U32": (np.uint32, ""),
    "S32": (np.int32, ""),
    "U64": (np.uint64, ""),
    "S64": (np.int64, ""),
    "F16": (np.uint16, "f16"),
    "BF16": (np.uint16, "bf16"),
    "F32": (np.float32, "f32"),
    "F64": (np.float64, "f64"),
}
_OF_DTYPES = {
    **{"uint32": "U32", "int32": "S32", "uint64": "U64", "int64": "S64"},
    **{"float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64"},
}


@dataclass(frozen=True, slots=True)
class Combine:
    """How two elements are combined. doubt: another possible behaviour of the chip, where it was not
    measured.
    """

    element: type
    change: Change
    doubt: Change | None = None


def combine(name: str, operation: str) -> Combine | None:
    """The operation on elements of a type; None if there is none, such as a bitwise operation on floats."""
    element, floats = _ELEMENTS[name]
    key = operation.lower()
    if floats in ("f16", "bf16"):
        change = HALF_CHANGES.get((floats, key))
        return None if change is None else Combine(element, change)
    if floats:
        return Combine(element, flushing_sum if floats == "f32" else UPDATE["add"]) if key == "add" else None
    return Combine(element, UPDATE[key])


def operation_and_type(form: BoundForm) -> tuple[str, str]:
    """(operation, type of the elements) of a `UBLKRED`.

    Raises:
        Unsupported: a form that is not known.
    """
    operations = [name for name in form.modifiers if name in OPERATIONS]
    kinds = [name for name in form.modifiers if name in _ELEMENTS]
    rest = set(form.modifiers[2:]) - OPERATIONS - _ELEMENTS.keys() - {"RN", "FTZ"}
    require(len(operations) == 1 and len(kinds) <= 1 and not rest)
    return operations[0], kinds[0] if kinds else "U32"


def reduce(
    how: Combine,
    to: SpaceBytes,
    row: int,
    at: np.ndarray,
    of: SpaceBytes,
    from_row: int,
    source: np.ndarray,
    op: Op,
) -> None:
    """Combine bytes at addresses `source` [n] into those at `at`, whole elements side by side."""
    new, new_lost = of.get(from_row, source)
    old, old_lost = to.get(row, at)
    before: np.ndarray = old.view(how.element)
    with_it: np.ndarray = new.view(how.element)
    after: np.ndarray = how.change(before, with_it, None).astype(how.element)
    lost = np.zeros(len(after), bool)
    why = None
    for found in (new_lost, old_lost):
        if found is not None:
            lost |= found[0].reshape(len(after), -1).any(1)
            why = found[1].through(op)
    if how.doubt is not None:
        differs = how.doubt(before, with_it, None).astype(how.element).view(np.uint8) != after.view(np.uint8)
        doubtful = differs.reshape(len(after), -1).any(1)
        lost |= doubtful
        why = why or Poison("whether sums of subnormal numbers are flushed", op)
    unknown = None if why is None or not lost.any() else (np.repeat(lost, after.itemsize), why)
    to.put(row, at, after.view(np.uint8), unknown)


define("UBLKRED", "<- T2TT", None, steers=True, touches=(*TO_GLOBAL, *TO_SHARED))  # others are not executed


@executes("UBLKRED.G.S", "<- T2TT", None, steers=True, touches=TO_GLOBAL)
@executes("UBLKRED.S.S", "<- T2TT", None, steers=True, touches=TO_SHARED)
def bulk_reduction(form: BoundForm, to: int, of: int, count: int) -> Run:
    operation, name = operation_and_type(form)
    how = combine(name, operation)
    if how is None:
        raise Unsupported
    touches = TO_GLOBAL if form.modifiers[0] == "G" else TO_SHARED
    return from_shared(form, (to, of, count), touches, partial(reduce, how))


@executes("UTMAREDG", tensor_operands(1, OPERATIONS), None, steers=True, touches=TO_GLOBAL, traits=OF_MAPS)
def tensor_reduction(form: BoundForm, of: int, map_at: int) -> Run:
    (operation,) = OPERATIONS & set(form.modifiers) or ("",)
    return to_tensor(form, (of, map_at), TO_GLOBAL, partial(reduce_box, operation), OPERATIONS)


def reduce_box(
    operation: str,
    to: SpaceBytes,
    of: SpaceBytes,
    block: int,
    first: int,
    one: Tensor,
    corner: tuple[int, ...],
    op: Op,
) -> None:
    """Combine a box of shared memory from `first` on into global memory; what is outside is dropped.

    Raises:
        Poisoned: it is not known what the operation does to such elements.
    """
    name = _OF_DTYPES.get(one.dtype, "")
    how = combine(name, operation) if name and operation else None
    if how is None:
        raise Poisoned(Poison(f"{op.name} of {one.dtype} is not executed by the emulator", op))
    if name == "F32":
        how = Combine(how.element, how.change, UPDATE["add"])
    there, here, inside = box_places(one, first, corner)
    reduce(how, to, 0, here[inside], of, block, there[inside], op)
    beyond = np.repeat(inside.reshape(-1, UNIT).any(1), UNIT) & ~inside
    if beyond.any():
        why = Poison("whether a reduction changes bytes after the end of a tensor's row", op)
        places = here[beyond]
        to.put(0, places, to.get(0, places)[0], (np.ones(len(places), bool), why))
