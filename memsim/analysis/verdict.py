"""The first line of every report: the worst access, its share of the waste, and what is uncertain; and what
its phrases mean: the headings of docs/first-line.md that stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import PurePath
from urllib.parse import urljoin

from memsim.arch import ASSUMED, BY_CLOCK, PUBLISHED, SM_90, Arch, plain_name
from memsim.counts import SiteCounts, assumed_of_copies, count_or_zero, unknown_accesses
from memsim.data import data_folder, documentation
from memsim.document import DocumentPart
from memsim.trace.trace import Trace

# With shared accesses, the verdict mentions global memory only if this share of the sectors is unneeded.
BADLY_COALESCED = 0.25


def verdict_of(trace: Trace, sites: Sequence[SiteCounts], chip: Arch) -> str:
    """The first line of every report: what is not counted, what is worst, how much of the whole it wastes."""
    unresolved = any(site.unresolved is not None for site in sites)
    rest = "the rest is " if trace.not_counted else ""
    answers = [
        _shared_answer(sites, not unresolved, rest),
        _global_answer(sites, not unresolved, rest),
        _local_answer(sites),
        _texture_answer(sites),
    ]
    if not any(answers):
        answers = ["no shared or global access was " + ("analyzed" if unresolved else "made")]
    races = len(trace.races)
    found = f"{races} race{'s' * (races > 1)} in shared memory" if races else ""
    parts = [trace.not_counted, found, *answers, *assumed_of_copies(sites), *unknown_accesses(sites)]
    if trace.uncertain:
        parts.append("some counts are uncertain")
    if trace.origin is not None and trace.origin.doubt:
        parts.append(trace.origin.doubt)
    if trace.origin is not None and plain_name(trace.origin.arch) not in ("", chip.name):
        parts.append(f"made for {trace.origin.arch}, counted by the rules of {chip}")
    parts.append(_worth_of_rules(sites, chip))
    if trace.blocks_replayed < trace.launch.blocks:
        parts.append(f"{trace.blocks_replayed:,} of {trace.launch.blocks:,} blocks replayed")
    return f"{trace.kernel}: " + "; ".join(part for part in parts if part)


def _worth_of_rules(sites: Sequence[SiteCounts], chip: Arch) -> str:
    """A note about rules that were not measured by counters on the chip; "" if all were."""
    by_rules = (site for site in sites if site.unresolved is None and site.operation.is_counted)
    worth = {chip.basis(site.space, site.op, site.width) for site in by_rules}
    if ASSUMED in worth:
        return f"rules of {chip} are assumed to equal {SM_90}'s"
    if PUBLISHED in worth:
        return f"rules of {chip} are published, not measured"
    return f"rules of {chip} were measured by clock" if BY_CLOCK in worth else ""


def _shared_answer(sites: Sequence[SiteCounts], certain: bool, rest: str) -> str:
    """Bank conflicts: the worst site; "" if no shared wavefront was counted. rest: before praise."""
    wavefronts = sum(count_or_zero(site.wavefronts) for site in sites)
    conflicts = sum(count_or_zero(site.conflicts) for site in sites)
    if not wavefronts:
        return ""
    if conflicts:
        worst = max(sites, key=lambda site: site.badness)
        return (
            f"worst is {_place(worst)}: {worst.max_ways}-way bank conflict; conflicts are "
            f"{conflicts:,} of {wavefronts:,} shared wavefronts ({_percent(conflicts, wavefronts)})"
        )
    if certain:
        return f"{rest}conflict-free: {wavefronts:,} shared wavefronts, none wasted by bank conflicts"
    return f"no bank conflict in the {wavefronts:,} shared wavefronts that could be counted"


def _sectors_in(space: str, sites: Sequence[SiteCounts]) -> tuple[list[SiteCounts], int, int]:
    """The accesses to a memory space, their sectors, and how many of these are not needed."""
    there = [site for site in sites if site.space == space]
    return (
        there,
        sum(count_or_zero(site.sectors) for site in there),
        sum(site.needless_sectors for site in there),
    )


def _global_answer(sites: Sequence[SiteCounts], certain: bool, rest: str) -> str:
    """Coalescing: all of it if no shared memory is used, else only if bad. rest: before praise."""
    uses_shared = any(count_or_zero(site.wavefronts) for site in sites)
    sites, sectors, excess = _sectors_in("global", sites)
    if not sectors or (uses_shared and excess < BADLY_COALESCED * sectors):
        return ""
    if not excess and certain:
        return f"{rest}coalesced: {sectors:,} global sectors, all needed"
    if not excess:
        return f"no needless sector in the {sectors:,} global sectors that could be counted"
    worst = max((site for site in sites if site.sectors), key=lambda site: site.badness)
    requests = count_or_zero(worst.requests)
    return (
        f"{'global accesses are not coalesced: ' if uses_shared else ''}worst is {_place(worst)}: "
        f"{count_or_zero(worst.sectors) / requests:.1f} sectors per request instead of "
        f"{count_or_zero(worst.ideal_sectors) / requests:.1f}; {excess:,} of {sectors:,} "
        f"global sectors are not needed ({_percent(excess, sectors)})"
    )


def _local_answer(sites: Sequence[SiteCounts]) -> str:
    """Register spills and arrays of a thread; "" if there are none."""
    sites, sectors, excess = _sectors_in("local", sites)
    if not sectors:
        return ""
    only_spills = all(site.is_spill for site in sites)
    what = "registers spill to local memory" if only_spills else "local memory is used"
    return f"{what}: {sectors:,} sectors" + (f", {excess:,} of them not needed" if excess else "")


def _texture_answer(sites: Sequence[SiteCounts]) -> str:
    """Sectors of texture fetches; "" if there are none."""
    sites, sectors, excess = _sectors_in("texture", sites)
    requests = sum(count_or_zero(site.requests) for site in sites)
    if not requests:
        return ""
    wasted = f", {excess:,} of them not needed" if excess else ""
    return f"textures: {sectors:,} sectors in {requests:,} requests{wasted}"


def _place(site: SiteCounts) -> str:
    return f"the {site.op.replace('_', '.')} at {PurePath(site.file).name}:{site.line}"


def _percent(part: int, whole: int) -> str:
    """With one decimal; 0.0 and 100.0 only if exact."""
    percent = f"{100 * part / whole:.1f}"
    if percent == "0.0" and part:
        return "under 0.1 %"
    if percent == "100.0" and part < whole:
        return "over 99.9 %"
    return f"{percent} %"


PAGE = "first-line.md"
NUMBER = "N"  # in a heading: any number


class Phrase(DocumentPart, frozen=True, kw_only=True):
    """A phrase of a first line. means: in Markdown, with links from the page. address: of its explanation."""

    phrase: str
    means: str
    address: str

    @property
    def anchor(self) -> str:
        """Its name on the page."""
        return self.address.partition("#")[2]

    @property
    def is_published(self) -> bool:
        """Whether the address leads there from everywhere."""
        return "://" in self.address


def phrases_in(verdict: str, kernel: str) -> Iterator[tuple[slice, Phrase]]:
    """Each phrase of a kernel's first line that has an explanation, with where it stands, in their order."""
    begin = len(f"{kernel}: ") if verdict.startswith(f"{kernel}: ") else 0
    found = []
    for phrase in _phrases():
        text = re.escape(phrase.phrase).replace(NUMBER, r"[\d,]+")
        for match in re.compile(rf"(?<![\w.]){text}(?![\w.])").finditer(verdict, begin):
            found.append((match.start(), match.end(), phrase))
    for start, end, phrase in sorted(found, key=lambda one: one[:2]):
        yield slice(start, end), phrase


def page_address(page: str) -> str:
    """Where a page of docs/ is read: its address where the project is published, else its path in it."""
    published = documentation()
    return urljoin(published, page) if published else f"docs/{page}"


@cache
def _phrases() -> tuple[Phrase, ...]:
    text = (data_folder("docs") / PAGE).read_text("utf-8")
    found = []
    for part in text.split("\n## ")[1:]:
        phrase, _, means = part.partition("\n")
        anchor = re.sub(r"[^\w\s-]", "", phrase).replace(" ", "-").lower()
        address = f"{page_address(PAGE)}#{anchor}"
        found.append(Phrase(phrase=phrase, means=" ".join(means.split()), address=address))
    return tuple(found)
