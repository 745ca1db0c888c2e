"""The source with what each line costs, and the machine code beside it, as the page shows them.

Of a long file only the lines around accesses are shown. Instructions far from memory instructions are folded;
of a very long kernel only the worst memory instructions and what is around them are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from memsim.analysis import Analysis, SiteCounts
from memsim.views.analyze.costs import cost_ratio
from memsim.views.labels import count, file_names

LONG = 1500  # lines; of a longer file only what is around accesses is shown
LINES_AROUND = 8
WIDEST_LINE = 400  # characters of a line


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of source; number 0 is a gap. sites: the rows on it; heat: how many times too dear it is.

    instructions: how many of the machine code were made of it; 0 where that is not known.
    """

    number: int
    text: str
    sites: tuple[int, ...] = ()
    heat: float = 0.0
    mark: str = ""
    instructions: int = 0


@dataclass(frozen=True, slots=True)
class PageFile:
    """A source file. `lines` are in order, perhaps with gaps. `path`: what the analysis calls it."""

    name: str
    lines: tuple[PageLine, ...]
    path: str = ""


def files(analysis: Analysis) -> list[PageFile]:
    """The files that the analysis names, in its order."""
    names = file_names(site.file for site in analysis.sites)
    found = []
    for path, name in names.items():
        on_line: dict[int, list[int]] = {}
        for number, site in enumerate(analysis.sites):
            if site.file == path:
                on_line.setdefault(site.line, []).append(number)
        text = analysis.trace.sources.get(path, "").expandtabs(4).splitlines()
        made = Counter(line for _, _, file, line in analysis.trace.listing if file == path)
        found.append(
            PageFile(name or "unknown file", tuple(_lines(analysis.sites, text, on_line, made)), path)
        )
    return found


def _lines(
    sites: Sequence[SiteCounts],
    text: Sequence[str],
    on_line: Mapping[int, Sequence[int]],
    made: Mapping[int, int],
) -> Iterator[PageLine]:
    """The lines to show. on_line: the rows on a line; made: how many instructions were made of it."""
    reach = min(LINES_AROUND, LONG // (2 * len(on_line)))
    around = {line + step for line in on_line for step in range(-reach, reach + 1)}
    known = range(1, len(text) + 1)
    coded = made if len(made) <= LONG else {}
    of_text = {n for n in known if len(text) <= LONG or n in around or n in coded}
    shown = sorted(of_text.union(n for n in on_line if n > 0))  # a line may be any number: `#line`
    before = 0
    for number in shown:
        if number > before + 1:
            yield PageLine(0, "")
        before = number
        code = text[number - 1][:WIDEST_LINE] if number in known else ""
        here = on_line.get(number, [])
        worst = max((sites[i] for i in here), key=lambda site: site.badness, default=None)
        if worst is None:
            yield PageLine(number, code, instructions=made.get(number, 0))
        else:
            unknown = any(sites[i].unresolved is not None for i in here)
            answer = "not analyzed" if unknown else mark(worst)
            yield PageLine(number, code, tuple(here), cost_ratio(worst) or 0.0, answer, made.get(number, 0))


def mark(site: SiteCounts) -> str:
    """`2-way conflict`, `8x sectors`, `clean`, `coalesced`, `spill`, or what is not known."""
    times = cost_ratio(site)
    if site.unresolved is not None:
        return "not analyzed"
    if site.space == "constant":
        return count(site.requests or 0, "request")
    if times is None:
        return "no request"
    if site.space == "shared":
        return f"{site.max_ways}-way conflict" if site.conflicts else "clean"
    if site.space == "local" and times == 1:
        return "spill" if site.is_spill else "local memory"
    return f"{times:.3g}x sectors" if times > 1 else "coalesced"


SHORT = 64  # instructions; so few are never folded
INSTRUCTIONS_AROUND = 3  # instructions that stay in view on each side of one that touches memory
LEAST_FOLD = 8
MOST = 12_000  # instructions on the page
MOST_TOUCHING = 3_000  # of them those that touch memory
WIDEST_INSTRUCTION = 60  # characters; of instructions that are longer the numbers stand further to the right


@dataclass(frozen=True, slots=True)
class ListingRow:
    """An instruction. line: the key of its line, `file-number`, "" if the page does not show that line.

    place: where it is from if the page does not show that. costs: (row of the analysis, its share of it).
    """

    address: int
    text: str
    line: str
    place: str
    costs: tuple[tuple[int, SiteCounts], ...] = ()

    @property
    def worst(self) -> SiteCounts:
        """Of its costs, the one that wastes most."""
        return max((cost for _, cost in self.costs), key=lambda cost: cost.badness)

    @property
    def heat(self) -> float:
        """How many times its cost without waste it takes; 0 if it costs nothing, or that is not known."""
        return (cost_ratio(self.worst) or 0.0) if self.costs else 0.0

    @property
    def mark(self) -> str:
        """Its cost in words; "" for what touches no memory."""
        return mark(self.worst) if self.costs else ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """`count` instructions in a row. folded: out of view until somebody asks; then `rows` may be left out."""

    rows: tuple[ListingRow, ...]
    count: int
    first: int
    last: int
    folded: bool


@dataclass(frozen=True, slots=True)
class ListingView:
    """A kernel's machine code. touching: how many instructions touch memory.

    width, requests, moved: how many characters the longest of those takes, and its numbers.
    """

    stretches: tuple[Stretch, ...]
    count: int
    touching: int
    width: int
    requests: int
    moved: int


def listing_view(analysis: Analysis, files: Sequence[PageFile]) -> ListingView | None:
    """The machine code of the analysis, by address; None where it is not known."""
    rows = _rows(analysis, files)
    if not rows:
        return None
    touching = [row for row in rows if row.costs]
    costs = [cost for row in touching for _, cost in row.costs]
    return ListingView(
        tuple(_stretches(rows)),
        len(rows),
        len(touching),
        width=min(WIDEST_INSTRUCTION, max((len(row.text) for row in touching), default=0)),
        requests=_digits(cost.requests for cost in costs),
        moved=_digits(cost.wavefronts or cost.sectors for cost in costs),
    )


def _digits(numbers: Iterable[int | None]) -> int:
    """Characters of the largest number, commas too."""
    return len(f"{max((number or 0 for number in numbers), default=0):,}")


def _rows(analysis: Analysis, files: Sequence[PageFile]) -> list[ListingRow]:
    keys = {
        (file.path, line.number): f"{number}-{line.number}"
        for number, file in enumerate(files)
        for line in file.lines
        if line.number
    }
    names = file_names(file for _, _, file, _ in analysis.trace.listing)
    costs: dict[int, list[tuple[int, SiteCounts]]] = {}
    for number, instructions in enumerate(analysis.instructions if analysis.trace.listing else ()):
        for one in instructions:
            costs.setdefault(one.address, []).append((number, one.counts))
    rows = []
    for address, text, file, line in analysis.trace.listing:
        key = keys.get((file, line), "")
        place = f"{names[file]}:{line}" if file and not key else ""
        rows.append(ListingRow(address, text, key, place, tuple(costs.get(address, ()))))
    return rows


def _stretches(rows: Sequence[ListingRow]) -> Iterator[Stretch]:
    """All rows in order. Folded is what is far from memory instructions, of very many from the worst."""
    touching = [number for number, row in enumerate(rows) if row.costs]
    whole = len(rows) <= MOST and len(touching) <= MOST_TOUCHING
    seen = _in_view(rows, touching, LEAST_FOLD if whole else 1) - _padding(rows)
    for folded, numbers in groupby(range(len(rows)), key=lambda number: number not in seen):
        part = [rows[number] for number in numbers]
        kept = tuple(part) if whole or not folded else ()
        yield Stretch(kept, len(part), part[0].address, part[-1].address, folded)


def _padding(rows: Sequence[ListingRow]) -> set[int]:
    """The numbers of the NOPs behind the code."""
    end = next(
        number for number in reversed(range(-1, len(rows))) if number < 0 or rows[number].text != "NOP"
    )
    return set(range(end + 1, len(rows)))


def _in_view(rows: Sequence[ListingRow], touching: Sequence[int], least: int) -> set[int]:
    """The numbers of the rows that are not part of a fold, which has at least so many."""
    if len(rows) <= SHORT:
        return set(range(len(rows)))
    worst = sorted(touching, key=lambda number: rows[number].worst.badness, reverse=True)[:MOST_TOUCHING]
    reach = min(INSTRUCTIONS_AROUND, (MOST // max(len(worst), 1) - 1) // 2)
    seen = {
        near for number in worst for near in range(max(number - reach, 0), min(number + reach + 1, len(rows)))
    }
    for before, after in pairwise([-1, *sorted(seen), len(rows)]):
        if after - before - 1 < least:
            seen.update(range(before + 1, after))
    return seen
