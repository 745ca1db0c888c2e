"""What would help but cannot be written into the source automatically, counted on the recorded requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memsim.suggest.global_accesses import ArrayOfStructs, Staging, Wider
from memsim.suggest.proposals import Split
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Renumbering
from memsim.views.labels import count, file_names
from memsim.views.suggest.advice import change_name, formula

ARROW = "->"


def by_hand(found: Suggestions) -> Iterator[list[str]]:
    """Each cure: what it is, and its counts before and after."""
    names = file_names(site.file for site in found.analysis.sites)
    if found.lanes is not None:
        yield list(_lanes(found.lanes))
    yield from (list(_split(found, each, names)) for each in found.split)
    yield from (list(_wider(found, each, names)) for each in found.wider)
    yield from (list(_fields(each, names)) for each in found.fields)
    yield from (list(_staging(each, names)) for each in found.staging)


def _lanes(found: Renumbering) -> Iterator[str]:
    before, after = found.wavefronts
    yield f"The lanes of a warp: {found.name}"
    yield f"   {before:,} {ARROW} {after:,} wavefronts, counted on these requests"
    bits = ", ".join(f"bit {place} as bit {bit}" for bit, place in enumerate(found.order) if bit != place)
    yield f"   By hand: each thread does the work of the lane whose number has its {bits}."


def _split(found: Suggestions, each: Split, names: Mapping[str, str]) -> Iterator[str]:
    sites = [found.analysis.sites[number] for number in each.sites]
    where = ", ".join(dict.fromkeys(f"{names[site.file]}:{site.line}" for site in sites))
    before = sum(found.analysis.sites[number].wavefronts or 0 for number in each.tile.sites)
    widths = " and ".join(dict.fromkeys(f"{site.width} B" for site in sites))
    yield f"{each.tile.name}: accesses of {widths} as ones of 4 B ({where}),"
    yield f"   with {change_name(each.change, each.tile)}"
    yield f"   {before:,} {ARROW} {each.cost.most:,} wavefronts, counted on these requests"
    yield f"   By hand: the byte at offset o goes to {formula(each.change)}; {each.extra:,} B more."


def _wider(found: Suggestions, each: Wider, names: Mapping[str, str]) -> Iterator[str]:
    site = found.analysis.sites[each.site]
    before, after = each.sectors
    yield (
        f"{site.array or 'Global memory'}, {names[site.file]}:{site.line}: "
        f"{each.times} neighbouring {site.op}s of {site.width} B as one of {each.width} B"
    )
    yield f"   {before:,} {ARROW} {after:,} global sectors, counted on these requests"
    yield f"   {site.source}"
    yield f"   By hand: every recorded address allows it, as all are multiples of {each.width}."


def _fields(each: ArrayOfStructs, names: Mapping[str, str]) -> Iterator[str]:
    before, after = each.sectors
    where = ", ".join(f"{names[file]}:{line}" for file, line in each.lines)
    yield f"{each.array}, {where}: records of {each.record} B as a structure of arrays"
    yield f"   {before:,} {ARROW} {after:,} global sectors of the first block, counted on its requests"
    at = ", ".join(f"{width} B at {start}" for start, width in each.fields)
    yield f"   By hand: {count(len(each.fields), 'array')}, one for each field that is accessed: {at}."


def _staging(each: Staging, names: Mapping[str, str]) -> Iterator[str]:
    site, (before, after) = each.site, each.sectors
    yield (
        f"{site.array or 'Global memory'}, {names[site.file]}:{site.line}: the {site.op} through "
        "shared memory"
    )
    yield f"   {before:,} {ARROW} {after:,} global sectors of the first block, counted on its requests"
    yield f"   {site.source}"
    side, work = "so that neighbouring lanes have neighbouring addresses", "as the work of each thread is"
    load, tile = (side, work) if site.op == "load" else (work, side)
    yield f"   By hand: a tile of {each.room:,} B. Fill it {load},"
    yield f"   and {'read it' if site.op == 'load' else 'store it'} {tile}."
