"""Words for what instructions do, and for where: parts of the findings that `describe.py` makes."""

from __future__ import annotations

from typing import TypedDict

from memsim.isa.mbarrier import exchange
from memsim.isa.memory_access import bytes_of_piece, register_count
from memsim.isa.op import PREDICATE, UNIFORM, UNIFORM_PREDICATE, VECTOR, Flow, Trait
from memsim.isa.program import GLOBAL, SHARED, UPDATES, Op

#: What accesses of a kind do.
DOES = {
    **dict.fromkeys(("load", "ldmatrix"), "loads"),
    **dict.fromkeys(("store", "stmatrix", "async_store"), "stores"),
    **dict.fromkeys((*UPDATES, "bulk_reduction", "cluster_bulk_reduction"), "updates"),
    **dict.fromkeys(("bulk_load", "bulk_multicast"), "copies from"),
    **dict.fromkeys(("bulk_store", "cluster_bulk_store", "cp_async"), "copies to"),
    "wgmma": "multiplies",
}


def does(op: Op, space: str = SHARED) -> str:
    """What an instruction does in a state space, or in others if it does not access that one."""
    if not op.touches and (op.flow is Flow.WAIT_PHASE or Trait.ORDERS in op.traits):
        return "initializes" if op.builder is exchange else "uses"
    if space == GLOBAL and "cp_async" in op.accesses:
        return "copies from"
    found = {DOES.get(way) for way, where in op.touches if where in (space, "generic")}
    found = found or {DOES.get(way) for way in op.accesses}
    if len(found) != 1:
        return "copies" if op.is_bulk else "accesses"
    return found.pop() or "accesses"


class HazardPlace(TypedDict):
    """Where a `Hazard` is, by its fields."""

    space: str
    array: str
    element: str
    offset: int
    width: int


def whole_array(space: str, name: str, offset: int, width: int) -> HazardPlace:
    """A place in an array by its bytes."""
    return {"space": space, "array": name, "element": name, "offset": offset, "width": width}


def global_element(name: str, offset: int, width: int) -> HazardPlace:
    """The same of an element of an array in global memory."""
    return whole_array(GLOBAL, name, offset, width) | {"element": f"{name}[{offset // width}]"}


def beyond(offset: int, width: int, name: str, size: int) -> str:
    """How far an access to `width` bytes from a byte of an array of `size` bytes on is outside."""
    by, end = (-offset, "beginning") if offset < 0 else (offset + width - size, "end")
    return f"{by:,} byte{'s' * (by != 1)} beyond the {end} of {name}, which has {size:,} bytes"


def register_name(slot: int) -> str:
    """What a register is called in machine code."""
    kinds = {VECTOR: "R", UNIFORM: "UR", PREDICATE: "P", UNIFORM_PREDICATE: "UP"}
    first = max(one for one in kinds if one <= slot)
    return f"{kinds[first]}{slot - first}"


def width_of(op: Op) -> int:
    """Bytes that a lane accesses."""
    return bytes_of_piece(op.form) * register_count(op.form)
