"""Proposals for each shared array, best first, with the lower bound of any layout.

A `Proposal` has the counts before and after, its cost in bytes and resident blocks (without machine code the
number of registers is unknown; they may limit resident blocks further), and an edit of the source if there is
one. Compiling it is in `memsim.suggest.prove`.

A `Split` makes wide accesses narrow. Elements that are accessed 8 or 16 bytes at a time must stay contiguous
and can use only every second or fourth bank. It is proposed if it needs fewer wavefronts than any layout with
the accesses as they are; splitting alone never saves any. It makes no edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from memsim.analysis import Analysis, analyze_trace
from memsim.arch import Arch
from memsim.arch.units import LINE, WORD
from memsim.launch import Launch
from memsim.model.occupancy import Needs, occupancy
from memsim.suggest.array_parts import PartOfArray
from memsim.suggest.count import Cost, count, least_wavefronts
from memsim.suggest.edit import Edit
from memsim.suggest.layout_edit import edit, row_factors
from memsim.suggest.maps import UNCHANGED, Map, Padding, candidates
from memsim.suggest.tiles import Tile, tiles, view
from memsim.suggest.writing import Writing, writing_of_array
from memsim.trace.trace import Trace

LEAST_SAVED = 20  # of so many wavefronts of conflicts a layout has to save one: less is chance in the data
TRIED_FOR_EDITS = 64  # maps, the cheapest first, that are searched for the simplest edit


@dataclass(frozen=True)
class Proposal:
    """A layout change of one array. before: the analysis for which it is proposed.

    now, cost: wavefronts of all the array's requests, before and after. extra: bytes by which the array
    grows. blocks: resident blocks per multiprocessor (before, after). edit: the change of the source, None if
    it cannot be written by rules. more_dynamic: bytes of dynamic shared memory that the launch has to add.
    """

    before: Analysis
    tile: Tile
    change: Map
    now: Cost
    cost: Cost
    extra: int
    blocks: tuple[int, int]
    edit: Edit | None
    more_dynamic: int = 0

    @cached_property
    def after(self) -> Analysis:
        """The analysis with the new layout, counted from the recorded requests."""
        return analyze_trace(
            trace_with_layout(self.before.trace, self.tile, self.change, self.extra), self.before.arch
        )

    @property
    def rank(self) -> tuple[object, ...]:
        """Sort key, best first: wavefronts, sectors, blocks lost, size of the edit, bytes."""
        lost = max(self.blocks[0] - self.blocks[1], 0)
        size = 0 if self.edit is None else self.edit.tokens
        first = (self.cost.most, self.cost.sectors, lost, self.edit is None, size, self.extra)
        return *first, *_complexity(self.change)


@dataclass(frozen=True)
class Advice:
    """What can be done for one shared array.

    wavefronts, conflicts: of all its requests as they are; conflicts in wavefronts. least: the fewest
    wavefronts that any layout of the array can reach with these requests. proposals: best first, at most one
    of each kind; each saves at least one of `LEAST_SAVED` wavefronts of conflicts. tried: number of layouts
    counted. why_not: why none could be tried, "" if they were.
    """

    tile: Tile
    wavefronts: int
    conflicts: int
    least: int
    proposals: tuple[Proposal, ...]
    tried: int
    why_not: str = ""


def advise(
    analysis: Analysis,
    arrays: Iterable[str] = (),
    macros: Mapping[str, int] | None = None,
    arguments: Mapping[str, int] | None = None,
) -> tuple[Advice, ...]:
    """What another layout saves, of each shared array or of `arrays`. macros, arguments: integers by name."""
    chosen = frozenset(arrays)
    found = [tile for tile in tiles(analysis, macros) if not chosen or chosen & {tile.name, tile.array}]
    return tuple(each for tile in found for each in _of_array(analysis, tile, arguments or {}))


def _of_array(analysis: Analysis, tile: Tile, arguments: Mapping[str, int]) -> Iterator[Advice]:
    """The advice for an array, or for each pointer to its beginning that uses it at another time."""
    if tile.why_not or not any(analysis.sites[number].wavefronts_of_conflicts for number in tile.sites):
        yield _advice(analysis, tile, None)
        return
    written = writing_of_array(analysis, tile, arguments)
    whole = () if written is None else written.views
    views = [(each, _lines_of(analysis, tile, each, whole)) for each in whole]
    seen = frozenset(line for _, lines in views for line in lines)
    unknown = (one for one in (analysis.sites[n] for n in tile.sites) if (one.file, one.line) not in seen)
    tiles_of_views = [_view(analysis, tile, each, lines) for each, lines in views]
    apart = len(views) > 1 and not any(each.why_not for each in tiles_of_views)
    if not apart or any(one.wavefronts_of_conflicts for one in unknown):
        yield _advice(analysis, tile, written)
        return
    for each, (one, _) in zip(tiles_of_views, views):
        yield _advice(analysis, each, one)


def _view(analysis: Analysis, tile: Tile, one: Writing, lines: frozenset[tuple[str, int]]) -> Tile:
    """The part of an array that a pointer has, with the accesses of some lines."""
    element = min((use.unit for use in one.uses if use.unit > 1), default=1)
    parts = one.finder.parts.places
    part = parts.get(one.tile, PartOfArray(0, ""))
    behind = [other.first for other in parts.values() if other.carving == part.carving]
    end = min((first for first in behind if first > part.first), default=tile.size)
    return view(analysis, tile, one.tile, element, lines, (part.first, end), part.carving)


def _lines_of(
    analysis: Analysis, tile: Tile, one: Writing, whole: Sequence[Writing]
) -> frozenset[tuple[str, int]]:
    """The lines whose accesses are of one view alone: that use it, or of functions that are given it."""
    others = [each for each in whole if each is not one and each.tile != one.tile]
    sites = (analysis.sites[number] for number in tile.sites)
    found = {site.line for site in sites if site.file == one.file}
    return frozenset(
        (one.file, line)
        for line in found
        if (one.has(line) and not any(each.has(line) for each in others))
        or (one.gives(line) and not any(each.has(line) or each.gives(line) for each in others))
    )


def _advice(analysis: Analysis, tile: Tile, written: Writing | None) -> Advice:
    sites = [analysis.sites[number] for number in tile.sites]
    wavefronts = sum(site.wavefronts or 0 for site in sites)
    conflicts = sum(site.wavefronts_of_conflicts for site in sites)
    if tile.why_not or not conflicts:
        return Advice(tile, wavefronts, conflicts, wavefronts - conflicts, (), 0, tile.why_not)
    least = least_wavefronts(analysis, tile)
    if least == wavefronts:
        return Advice(tile, wavefronts, conflicts, least, (), 0)
    maps = candidates(analysis, tile, row_factors(written) if written is not None else ())
    costs = count(analysis, tile, maps)
    now = count(analysis, tile, [UNCHANGED])[UNCHANGED]
    if written is not None:  # where the cheapest cannot be written, the cheapest of those that can
        by_rule = [change for change in maps if edit(written, change, growth(tile, change)) is not None]
        if by_rule and not any(change in costs for change in by_rule):
            costs |= count(analysis, tile, by_rule)
    chip, launch = analysis.arch, analysis.trace.launch
    room = analysis.trace.shared_end
    blocks = resident_blocks(analysis.trace, room, chip)

    def proposal(change: Map) -> Proposal:
        extra = growth(tile, change)
        resident = blocks, resident_blocks(analysis.trace, room + extra, chip)
        how = None if written is None else edit(written, change, extra)
        more = extra if how is not None and written is not None and written.declaration.dynamic else 0
        return Proposal(analysis, tile, change, now, costs[change], extra, resident, how, more)

    helping = [
        change
        for change in costs
        if (wavefronts - costs[change].most) * LEAST_SAVED >= conflicts
        and fits(room + growth(tile, change), launch, chip)
    ]
    best = _best_of_each_kind(helping, costs, tile, proposal)
    return Advice(tile, wavefronts, conflicts, least, best, len(maps))


def _best_of_each_kind(
    maps: list[Map], costs: dict[Map, Cost], tile: Tile, proposal: Callable[[Map], Proposal]
) -> tuple[Proposal, ...]:
    """The best padding and swizzle, and the best of each that has an edit."""
    found: list[Proposal] = []
    for kind in {type(change) for change in maps}:
        of_kind = sorted(
            (change for change in maps if isinstance(change, kind)),
            key=lambda change: (costs[change].most, costs[change].sectors, growth(tile, change)),
        )
        tried = sorted(map(proposal, of_kind[:TRIED_FOR_EDITS]), key=lambda each: each.rank)
        best = tried[0]
        found.append(best)
        if best.edit is None:
            others = (*tried, *map(proposal, of_kind[TRIED_FOR_EDITS:]))
            found += [each for each in others if each.edit is not None][:1]
    return tuple(sorted(found, key=lambda each: each.rank))


def growth(tile: Tile, change: Map) -> int:
    """Bytes by which the array grows: of its declared rows, or of those in use if none are declared."""
    if not isinstance(change, Padding) or (tile.shape is not None and len(tile.shape.extents) > 1):
        return change.size(tile.size) - tile.size
    return max(change.size(tile.used) - tile.size, 0)


def trace_with_layout(trace: Trace, tile: Tile, change: Map, extra: int) -> Trace:
    """The trace with the array's new layout; arrays after it move by whole lines."""
    behind = -(-extra // LINE) * LINE
    end = tile.first + tile.size
    on_shared = np.array([site.space == "shared" for site in trace.sites], np.bool_)[trace.site]
    ours = np.zeros((len(trace.site), 1), np.bool_)
    ours[tile.rows] = ours[tile.copies] = True

    def place(addresses: np.ndarray, mine: np.ndarray) -> np.ndarray:
        at = np.where(mine, change.places(np.where(mine, addresses - tile.first, 0)) + tile.first, addresses)
        return np.where(~mine & (addresses >= end), addresses + behind, at)

    inside = ours & (trace.addresses >= tile.first) & (trace.addresses < end)
    addresses = np.where(on_shared[:, None], place(trace.addresses, inside), trace.addresses)
    to_it = ours & (trace.partner >= tile.first) & (trace.partner < end)
    copies = ~on_shared[:, None] & (trace.partner >= 0)
    arrays = list[tuple[str, str, int, int]]()
    for name, space, first, size in trace.arrays:
        grows = space == "shared" and first <= tile.first < first + size
        moves = space == "shared" and first >= end
        arrays.append((name, space, first + behind * moves, size + extra * grows))
    return replace(
        trace,
        addresses=addresses,
        partner=np.where(copies, place(trace.partner, to_it), trace.partner),
        arrays=tuple(arrays),
        writers=np.zeros(0, np.int32),
    )


def _complexity(change: Map) -> tuple[int, ...]:
    """Sort key: padding before swizzle, fewer bits, shorter rows."""
    if isinstance(change, Padding):
        return 0, change.by, change.every
    return 1, change.bits, change.every, change.base


def resident_blocks(trace: Trace, shared_bytes: int, chip: Arch) -> int:
    """The number of blocks with so much shared memory that can be resident on a multiprocessor."""
    taken = trace.resources
    needs = Needs(trace.launch.threads, 0, shared_bytes)
    if taken is not None:
        needs = Needs(trace.launch.threads, taken.registers, shared_bytes, taken.barriers)
    return occupancy(needs, chip).blocks


def fits(shared_bytes: int, launch: Launch, chip: Arch) -> bool:
    """Whether a block can have so much shared memory; static shared memory has a lower limit than dynamic."""
    limit = chip.shared_block_bytes if launch.shared_bytes else chip.static_shared_bytes
    return shared_bytes <= limit


@dataclass(frozen=True, slots=True)
class Split:
    """Wide accesses of a shared array, split into one for each word. sites: rows of the analysis that are
    split.

    change: the best layout then; cost: all the array's wavefronts with both. extra: bytes by which the array
    grows.
    """

    tile: Tile
    sites: tuple[int, ...]
    change: Map
    cost: Cost
    extra: int


def best_split(analysis: Analysis, tile: Tile, best: int) -> Split | None:
    """The best layout with narrow accesses, if it takes fewer than `best` wavefronts."""
    wide = [number for number in tile.sites if analysis.sites[number].width > WORD]
    if not wide or any(analysis.sites[number].op not in ("load", "store") for number in wide):
        return None
    rows = np.concatenate([analysis.requests_of_sites[number] for number in wide])
    narrow = analyze_trace(split_trace(analysis.trace, np.unique(analysis.trace.site[rows])), analysis.arch)
    named = (each for each in tiles(narrow) if each.array == tile.array)
    (own,) = (each for each in named if 0 <= tile.first - each.first < each.size)
    own = replace(own, shape=tile.shape, constants=tile.constants)
    if tile.lines:
        part = tile.first - own.first, tile.first - own.first + tile.size
        own = view(narrow, own, tile.name, tile.declared, tile.lines, part, tile.carving)
    maps = candidates(narrow, own)
    costs = count(narrow, own, maps)
    room = analysis.trace.shared_end
    launch = analysis.trace.launch
    fitting = [change for change in costs if fits(room + growth(tile, change), launch, analysis.arch)]
    if not fitting:
        return None
    change = min(fitting, key=lambda each: (costs[each].most, growth(tile, each), each.every))
    if costs[change].most >= best:
        return None
    return Split(tile, tuple(wide), change, costs[change], growth(tile, change))


def split_trace(trace: Trace, sites: np.ndarray) -> Trace:
    """The trace with each request of these sites split into one request per word."""
    widths = np.array([site.width for site in trace.sites])[trace.site]
    times = np.where(np.isin(trace.site, sites), widths // WORD, 1)
    of = np.repeat(np.arange(len(times)), times)
    step = np.arange(len(of)) - np.repeat(np.cumsum(times) - times, times)
    narrow = tuple(
        replace(site, width=WORD, instructions=site.instructions * site.width // WORD)
        if number in sites
        else site
        for number, site in enumerate(trace.sites)
    )
    columns = {
        name: getattr(trace, name)[of] for name in ("site", "count", "active", "partner", "block", "warp")
    }
    addresses = trace.addresses[of] + step[:, None] * WORD
    return replace(trace, sites=narrow, addresses=addresses, **columns)
