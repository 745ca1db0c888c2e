"""Splitting wide accesses of a shared array into narrow ones, and the layout that this allows.

Elements that are accessed 8 or 16 bytes at a time must stay contiguous and can use only every second or
fourth bank. A `Split` is proposed if it needs fewer wavefronts than any layout with the accesses as they are;
splitting alone never saves any. It makes no edit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from memsim.analysis import Analysis, analyze_trace
from memsim.arch.units import WORD
from memsim.suggest.candidates import candidates
from memsim.suggest.count import Cost, count
from memsim.suggest.maps import Map
from memsim.suggest.proposals import growth
from memsim.suggest.room import fits, shared_end
from memsim.suggest.tiles import Tile, tiles
from memsim.trace.trace import Trace


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


def split(analysis: Analysis, tile: Tile, best: int) -> Split | None:
    """The best layout with narrow accesses, if it takes fewer than `best` wavefronts."""
    wide = [number for number in tile.sites if analysis.sites[number].width > WORD]
    if not wide or any(analysis.sites[number].op not in ("load", "store") for number in wide):
        return None
    rows = np.concatenate([analysis.requests_of_sites[number] for number in wide])
    narrow = analyze_trace(split_trace(analysis.trace, np.unique(analysis.trace.site[rows])), analysis.arch)
    (own,) = (each for each in tiles(narrow) if each.name == tile.name)
    own = replace(own, shape=tile.shape, constants=tile.constants)
    maps = candidates(narrow, own)
    costs = count(narrow, own, maps)
    room = shared_end(analysis.trace)
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
