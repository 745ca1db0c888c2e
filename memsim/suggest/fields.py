"""An array of structures as a structure of arrays.

Finds global arrays of records of which a few fields are accessed, and counts the sectors of one block's
requests with each field in an array of its own. It makes no edit: the code elsewhere that fills the array
would have to change too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.model.choice import global_cost
from memsim.suggest.first_block import is_badly_coalesced

LONGEST = 128  # bytes of a record; anything longer is assumed to be a matrix row
ALIGN = 256  # of a separate allocation


@dataclass(frozen=True, slots=True)
class ArrayOfStructs:
    """A global array of records. record: bytes of one. fields: (first byte, bytes) of each that is accessed.

    sectors: of all the first block's accesses to the array, before and after. lines: (file, line) of these.
    """

    array: str
    record: int
    fields: tuple[tuple[int, int], ...]
    sectors: tuple[int, int]
    lines: tuple[tuple[str, int], ...]


def fields(block: Analysis) -> tuple[ArrayOfStructs, ...]:
    """The arrays that move fewer sectors as a structure of arrays."""
    arrays = [entry for entry in block.trace.arrays if entry[1] == "global" and entry[3] > 0]
    found = (_fields(block, name, first, size) for name, _, first, size in arrays)
    return tuple(each for each in found if each is not None)


def _fields(block: Analysis, name: str, first: int, size: int) -> ArrayOfStructs | None:
    trace = block.trace
    numbers = [
        number
        for number, site in enumerate(block.sites)
        if site.space == "global" and name in site.array.split("|") and site.requests
    ]
    sites = [block.sites[number] for number in numbers]
    if not any(map(is_badly_coalesced, sites)) or any(
        site.array != name or site.unresolved or site.operation.is_copy for site in sites
    ):
        return None
    rows = [block.requests_of_sites[number] for number in numbers]
    record = _record(block, [some for some, site in zip(rows, sites) if is_badly_coalesced(site)])
    if record is None:
        return None
    pieces = set()
    for some, site in zip(rows, sites, strict=True):
        offsets = trace.addresses[some][trace.active[some]] - first
        pieces |= {(start, site.width) for start in np.unique(offsets % record).tolist()}
    known = sorted(pieces)
    ends = [0, *(start + width for start, width in known)]
    overlap = any(start < end for (start, _), end in zip(known, ends)) or ends[-1] > record
    if overlap or known == [(0, record)]:
        return None
    before = sum(site.sectors or 0 for site in sites)
    places = {start: index * (-(-size // ALIGN) + 1) * ALIGN for index, (start, _) in enumerate(known)}
    after = sum(
        _moved_sectors(block, some, site.width, site.op, first, record, places)
        for some, site in zip(rows, sites, strict=True)
    )
    if after >= before:
        return None
    lines = tuple(dict.fromkeys((site.file, site.line) for site in sites))
    return ArrayOfStructs(name, record, tuple(known), (before, after), lines)


def _record(block: Analysis, rows: list[NDArray[np.int64]]) -> int | None:
    """The stride between neighbouring lanes, if it is the same in all these requests."""
    trace = block.trace
    some = np.concatenate(rows)
    both = trace.active[some][:, 1:] & trace.active[some][:, :-1]
    steps = np.unique(np.diff(trace.addresses[some], axis=1)[both])
    return int(steps[0]) if len(steps) == 1 and 0 < steps[0] <= LONGEST else None


def _moved_sectors(
    block: Analysis,
    rows: NDArray[np.int64],
    width: int,
    op: str,
    first: int,
    record: int,
    places: dict[int, int],
) -> int:
    """The sectors of these requests, with each field in an array of its own at `places`."""
    trace = block.trace
    active = trace.active[rows]
    offsets = np.where(active, trace.addresses[rows] - first, 0)
    within = offsets % record
    start = np.zeros_like(within)
    for field, place in places.items():
        start[within == field] = place
    moved = np.where(active, start + offsets // record * width, 0)
    cost = global_cost(moved, width, op, active, trace.partner[rows], block.arch)
    return int(trace.count[rows] @ cost.sectors)
