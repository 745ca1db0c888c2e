"""The shared arrays of a launch, each with all requests that touch it, or why its layout cannot
be changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis
from memsim.model.operations import operation
from memsim.source.elements import type_sizes
from memsim.source.kernels import template_constants
from memsim.source.values import ArrayShape, declarations


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """A shared array and the accesses that touch it.

    first: address of its first byte; size: in bytes. shape: as declared in the source, None if unknown.
    constants: integers by names that the source does not define (template parameters, macros of the command
    line). types: bytes of types by name. sites: rows of the analysis that touch it. rows: rows of the trace
    with its requests; copies: those that read global memory for it. width: bytes of the widest access;
    narrowest: of the narrowest. declared: bytes of an element as the source or a sketch has it, 0 if unknown.
    used: end of the highest access, from the array's start; the array's end if not all places are known.
    why_not: why no other layout can be tried, "" if it can. lines: of a pointer's view of the array, or of
    one of several of its name, those that access it, by file; empty if all do. array: the array's name;
    `name` is the view's. carving: the pointer to the array's beginning that a view is at or behind.
    """

    name: str
    first: int
    size: int
    shape: ArrayShape | None
    constants: Mapping[str, int]
    types: Mapping[str, int]
    sites: tuple[int, ...]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    width: int
    narrowest: int
    declared: int
    used: int
    why_not: str = ""
    lines: frozenset[tuple[str, int]] = frozenset()
    array: str = ""
    carving: str = ""

    @property
    def element(self) -> int:
        """Bytes of an element: as declared, else of a lane's narrowest access."""
        return self.declared or self.narrowest


def tiles(analysis: Analysis, macros: Mapping[str, int] | None = None) -> tuple[Tile, ...]:
    """The shared arrays by address, the second of a name as `name#2`. macros: of the command line."""
    arrays = [entry for entry in analysis.trace.arrays if entry[1] == "shared" and entry[3] > 0]
    found = [_tile(analysis, name, first, size, macros or {}) for name, _, first, size in arrays]
    return tuple(_told_apart(analysis, [tile for tile in found if tile.sites]))


def _told_apart(analysis: Analysis, found: Sequence[Tile]) -> Iterator[Tile]:
    """Arrays, those of one name by numbers and by the lines that access them."""
    names = [tile.array for tile in found]
    for place, tile in enumerate(found):
        if names.count(tile.array) > 1:
            sites = (analysis.sites[number] for number in tile.sites)
            number = 1 + names[:place].count(tile.array)
            name = f"{tile.array}#{number}" if number > 1 else tile.array
            tile = replace(tile, name=name, lines=frozenset((site.file, site.line) for site in sites))
        yield tile


def _tile(analysis: Analysis, name: str, first: int, size: int, macros: Mapping[str, int]) -> Tile:
    trace = analysis.trace
    has_namesake = sum(entry[:2] == (name, "shared") for entry in trace.arrays) > 1

    def is_elsewhere(number: int) -> bool:
        """Whether all requests are of an array of another function that has the same name."""
        rows = analysis.requests_of_sites[number]
        places = trace.addresses[rows][trace.active[rows]]
        return has_namesake and len(places) > 0 and not ((first <= places) & (places < first + size)).any()

    sites = [
        number
        for number, site in enumerate(analysis.sites)
        if site.space == "shared" and name in site.array.split("|") and not is_elsewhere(number)
    ]
    accesses = _accesses(analysis, sites, first, first + size)
    texts = trace.sources.values()
    known = {**macros, **{k: v for text in texts for k, v in template_constants(text, trace.kernel).items()}}
    types = {k: v for text in texts for k, v in type_sizes(text, trace.kernel).items()}
    declared = next((one for text in texts for one in declarations(text, name, size, known, types)), None)
    shape = None if declared is None or declared.dynamic else declared.shape
    sketched = trace.layouts.get(name)
    element = declared.shape.element if declared else sketched.element if sketched else 0
    # Rather than one place for all that cost the same.
    all_places_known = trace.apart and trace.blocks_replayed == trace.launch.blocks
    return Tile(
        name=name,
        first=first,
        size=size,
        shape=shape,
        constants=known,
        types=types,
        copies=_copies(analysis, first, first + size),
        declared=element,
        used=_used(analysis, accesses["rows"]) - first if all_places_known else size,
        array=name,
        **accesses,
    )


def _accesses(analysis: Analysis, sites: list[int], first: int, end: int) -> dict[str, Any]:
    """What a tile at [first, end) says of the rows of the analysis that touch it."""
    widths = [analysis.sites[number].width for number in sites]
    rows = np.concatenate([np.zeros(0, np.int64), *(analysis.requests_of_sites[number] for number in sites)])
    return {
        "sites": tuple(sites),
        "rows": rows,
        "width": max(widths, default=1),
        "narrowest": min(widths, default=1),
        "why_not": _why_not(analysis, sites, rows, first, end),
    }


def view(
    analysis: Analysis,
    tile: Tile,
    name: str,
    element: int,
    lines: frozenset[tuple[str, int]],
    part: tuple[int, int],
    carving: str,
) -> Tile:
    """A pointer's view of an array: accesses of some lines. element: bytes; part: first byte, and end."""
    sites = [n for n in tile.sites if (analysis.sites[n].file, analysis.sites[n].line) in lines]
    places = [(site.file, site.line) in lines for site in analysis.trace.sites]
    first, end = part
    return replace(
        tile,
        name=name,
        first=tile.first + first,
        size=end - first,
        copies=tile.copies[np.array(places, np.bool_)[analysis.trace.site[tile.copies]]],
        declared=element,
        used=min(max(tile.used - first, 0), end - first),
        lines=lines,
        carving=carving,
        **_accesses(analysis, sites, tile.first + first, tile.first + end),
    )


def _copies(analysis: Analysis, first: int, end: int) -> NDArray[np.int64]:
    """The rows of the trace that are the global side of a `cp.async` to the array."""
    trace = analysis.trace
    sides = np.array(
        [site.space == "global" and operation("global", site.op).is_copy for site in trace.sites], np.bool_
    )
    if not sides.any():
        return np.zeros(0, np.int64)
    to_it = (trace.active & (trace.partner >= first) & (trace.partner < end)).any(axis=1)
    return np.flatnonzero(sides[trace.site] & to_it)


def _used(analysis: Analysis, rows: NDArray[np.int64]) -> int:
    """The end of the highest access of these rows."""
    trace = analysis.trace
    widths = np.array([site.width for site in trace.sites], np.int64)[trace.site[rows]]
    ends = np.where(trace.active[rows], trace.addresses[rows] + widths[:, None], 0)
    return int(ends.max(initial=0))


def _why_not(analysis: Analysis, sites: list[int], rows: NDArray[np.int64], first: int, end: int) -> str:
    trace = analysis.trace
    for number in sites:
        site = analysis.sites[number]
        if site.unresolved is not None:
            return f"the access on line {site.line} could not be analyzed"
        if site.operation.why:
            return f"how often the atomic on line {site.line} is tried again depends on the layout"
        if site.operation.grouped:
            return f"the matrix product on line {site.line} reads it as its descriptor says"
        if "|" in site.array:
            return f"the access on line {site.line} touches {' and '.join(site.array.split('|'))}"
    addresses, active = trace.addresses[rows], trace.active[rows]
    if (((addresses < first) | (addresses >= end)) & active).any():
        return "an access extends past its end"
    return ""
