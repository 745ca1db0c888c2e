"""The source with what each line costs, as the page shows it.

Of a long file only the lines around accesses are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memsim.analysis import Analysis, SiteCounts
from memsim.views.explain.choose import cost_ratio
from memsim.views.labels import count, file_names

LONG = 1500  # lines; of a longer file only what is around accesses is shown
AROUND = 8
WIDEST = 400  # characters of a line


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

    @property
    def bad(self) -> bool:
        """Whether the line wastes anything."""
        return self.heat > 1


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
    last = max(len(text), *on_line)
    reach = min(AROUND, LONG // (2 * len(on_line)))
    around = {line + step for line in on_line for step in range(-reach, reach + 1)}
    known = range(1, len(text) + 1)
    coded = made if len(made) <= LONG else {}
    shown = [
        n
        for n in range(1, last + 1)
        if n in on_line or (n in known and (len(text) <= LONG or n in around or n in coded))
    ]
    before = 0
    for number in shown:
        if number > before + 1:
            yield PageLine(0, "")
        before = number
        code = text[number - 1][:WIDEST] if number in known else ""
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
