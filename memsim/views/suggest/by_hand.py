"""What would help but cannot be written into the source automatically, counted on the recorded requests.

All counts are those of the launch. What was counted on the first block is scaled to it, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memsim.suggest.global_accesses import ArrayOfStructs, Staging, Wider
from memsim.suggest.proposals import Split
from memsim.suggest.suggestions import Suggestions
from memsim.suggest.threads import Renumbering
from memsim.views.labels import count, file_names
from memsim.views.suggest.advice import change_name, formula

ARROW = "->"


@dataclass(frozen=True, slots=True)
class ByHand:
    """A cure. what: it does to an access, `where`. counts: of the launch, before and after, of a `unit`.

    access: the rows of the analysis that it changes: cures of the same rows exclude each other.
    """

    where: str
    what: str
    unit: str
    counts: tuple[int, int]
    how: tuple[str, ...]
    access: frozenset[int] = frozenset()
    scaled: bool = False

    @property
    def saved(self) -> int:
        """What it saves of its unit."""
        return self.counts[0] - self.counts[1]

    @property
    def lines(self) -> list[str]:
        """What it is, its counts, and how to make it."""
        before, after = self.counts
        about, counted = (
            ("about ", "scaled from the first block") if self.scaled else ("", "counted on these requests")
        )
        return [
            f"{self.where}: {self.what}" if self.where else self.what,
            f"   {before:,} {ARROW} {about}{after:,} {self.unit}, {counted}",
            *(f"   {line}" for line in self.how),
        ]


def by_hand(found: Suggestions) -> list[ByHand]:
    """Every cure, the one that saves most first."""
    names = file_names(site.file for site in found.analysis.sites)
    cures = [_lanes(found.lanes)] if found.lanes is not None else []
    cures += [_split(found, each, names) for each in found.split]
    cures += [_wider(found, each, names) for each in found.wider]
    cures += [_fields(found, each, names) for each in found.fields]
    cures += [_staging(found, each, names) for each in found.staging]
    return sorted(cures, key=lambda each: -each.saved)


def parts(found: Suggestions) -> Iterator[list[str]]:
    """The cures as text; those of one access as one part, which says that they exclude each other."""
    cures = by_hand(found)
    while cures:
        first = cures[0]
        alike = [each for each in cures if each is first or each.access & first.access]
        cures = [each for each in cures if each not in alike]
        if len(alike) == 1:
            yield first.lines
            continue
        yield [
            f"One of these {len(alike)}, which exclude each other:",
            *(f"   {line}" for each in alike for line in each.lines),
        ]


def _lanes(found: Renumbering) -> ByHand:
    bits = ", ".join(f"bit {place} as bit {bit}" for bit, place in enumerate(found.order) if bit != place)
    how = f"By hand: each thread does the work of the lane whose number has its {bits}."
    return ByHand("The lanes of a warp", found.name, "wavefronts", found.wavefronts, (how,))


def _split(found: Suggestions, each: Split, names: Mapping[str, str]) -> ByHand:
    sites = [found.analysis.sites[number] for number in each.sites]
    where = ", ".join(dict.fromkeys(f"{names[site.file]}:{site.line}" for site in sites))
    before = sum(found.analysis.sites[number].wavefronts or 0 for number in each.tile.sites)
    widths = " and ".join(dict.fromkeys(f"{site.width} B" for site in sites))
    return ByHand(
        each.tile.name,
        f"accesses of {widths} as ones of 4 B ({where}), with {change_name(each.change, each.tile)}",
        "wavefronts",
        (before, each.cost.most),
        (f"By hand: the byte at offset o goes to {formula(each.change)}; {each.extra:,} B more.",),
    )


def _wider(found: Suggestions, each: Wider, names: Mapping[str, str]) -> ByHand:
    site = found.analysis.sites[each.site]
    return ByHand(
        f"{site.array or 'Global memory'}, {names[site.file]}:{site.line}",
        f"{each.times} neighbouring {site.op}s of {site.width} B as one of {each.width} B",
        "global sectors",
        each.sectors,
        (site.source, f"By hand: every recorded address allows it, as all are multiples of {each.width}."),
        frozenset({each.site}),
    )


def _fields(found: Suggestions, each: ArrayOfStructs, names: Mapping[str, str]) -> ByHand:
    rows = {
        n for n, site in enumerate(found.analysis.sites) if (site.space, site.array) == ("global", each.array)
    }
    counts, scaled = _of_launch(found, rows, each.sectors)
    at = ", ".join(f"{width} B at {start}" for start, width in each.fields)
    return ByHand(
        f"{each.array}, {', '.join(f'{names[file]}:{line}' for file, line in each.lines)}",
        f"records of {each.record} B as a structure of arrays",
        "global sectors",
        counts,
        (f"By hand: {count(len(each.fields), 'array')}, one for each field that is accessed: {at}.",),
        frozenset(rows),
        scaled,
    )


def _staging(found: Suggestions, each: Staging, names: Mapping[str, str]) -> ByHand:
    site = each.site
    rows = {
        n
        for n, one in enumerate(found.analysis.sites)
        if (one.file, one.line, one.op, one.array, one.width)
        == (site.file, site.line, site.op, site.array, site.width)
    }
    counts, scaled = _of_launch(found, rows, each.sectors)
    fill, empty = "Let neighbouring lanes load neighbouring elements", "then each thread reads its own"
    if site.op != "load":
        fill = "Let each thread write its own elements"
        empty = "then neighbouring lanes store neighbouring ones"
    how: tuple[str, ...] = (
        f"By hand: a tile of {each.room:,} B in shared memory. {fill} into it;",
        f"{empty} from it.",
    )
    what = f"the {site.op} through shared memory"
    if each.fills:
        what = "the copy into shared memory by neighbouring lanes"
        how = ("By hand: let neighbouring lanes copy neighbouring elements, whatever each of them computes.",)
    where = f"{site.array or 'Global memory'}, {names[site.file]}:{site.line}"
    return ByHand(where, what, "global sectors", counts, (site.source, *how), frozenset(rows), scaled)


def _of_launch(found: Suggestions, rows: set[int], block: tuple[int, int]) -> tuple[tuple[int, int], bool]:
    """Counts of the first block as those of the launch, and whether they are scaled."""
    before = sum(found.analysis.sites[number].sectors or 0 for number in rows)
    return (before, round(before * block[1] / block[0])), before != block[0]
