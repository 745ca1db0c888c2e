"""The pages, put together from records and templates.

What is shown is bounded: of many accesses the worst have their details, and of large arrays the first rows
are drawn; the page says so. Each phrase of the first line that has an explanation leads to it, at the page's
end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis, SiteCounts
from memsim.analysis.verdict import Phrase, phrases_in
from memsim.pictures.array_layouts import WordLayout, layouts
from memsim.pictures.proposal_banks import looks
from memsim.pictures.worst_request import GlobalRequest, SharedRequest, conflict_graph, take_apart
from memsim.suggest.proposals import advise
from memsim.views import bound_text as bounds
from memsim.views.analyze.costs import by_waste, cost_ratio, count_or_limits, limits_of_totals
from memsim.views.analyze.terminal import left_out
from memsim.views.array_pictures import CAPTION, CAPTIONS, KINDS, caption, ladder, owner, shown_part
from memsim.views.canvas import colour_of_bank, colour_of_count, colour_of_trouble, ink_on
from memsim.views.explain.sentences import (
    collision_line,
    lane_cells,
    line_cells,
    line_name,
    ring,
    sentences,
    word_name,
)
from memsim.views.heatmap import heat_rows as heat
from memsim.views.heatmap.heat_rows import heat_rows
from memsim.views.labels import access, at_all_places, count, dim3, lanes_of_warp_0, number, ranges
from memsim.views.report.access_tables import LESS, WORDS, access_tables, before_after
from memsim.views.report.source_view import files, listing_view
from memsim.views.suggest.advice import advice_lines, look_costs, look_name

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

VIEWS = Path(__file__).parents[1]
FOLDERS = [VIEWS / "templates", VIEWS / "heatmap" / "templates", VIEWS / "report" / "templates"]
# What bounds the page.
MOST_DETAILS = 32
MOST_HEAT_ROWS = 64
MOST_ARRAYS = 4
MOST_WORDS = 2048
MOST_SWITCHED_WORDS = 1024  # drawn again for each change that helps


@dataclass(frozen=True, slots=True)
class Recorded:
    """Counters of a recording: where they come from, in words, and (value, verdict) by ncu's names.

    A value is None where it was not recorded; a verdict says how it compares with the prediction.
    """

    where: str
    counters: Mapping[str, tuple[int | float | None, str]]


@dataclass(frozen=True, slots=True)
class Detail:
    """What the page shows of one access site: its worst request."""

    number: int
    site: SiteCounts
    request: SharedRequest | GlobalRequest | None

    @property
    def bad(self) -> bool:
        """Whether it wastes anything."""
        return (cost_ratio(self.site) or 0) > 1

    @property
    def story(self) -> list[str]:
        """The worst request in words, the answer first."""
        if self.request is None:
            return [self.site.unresolved or "No lane is ever active at this access."]
        return sentences(self.request)


def report_page(analysis: Analysis, recorded: Recorded | str = "", *, after: Analysis | None = None) -> str:
    """The whole report as one page; `recorded` may also say why there is nothing to compare with.

    after: the launch that this one is compared with: it is before, that one is after.
    """
    rows, sources = heat_rows(analysis), files(analysis)
    rows_after = heat_rows(after) if after is not None else []
    details = _details(analysis)
    advice = [entry for entry in advise(analysis) if entry.conflicts]
    switches = [
        (entry, [(look, shown_part(look.layout, MOST_SWITCHED_WORDS)) for look in looks(analysis, entry)])
        for entry in advice
        if entry.proposals
    ]
    switched = {entry.tile.array for entry, _ in switches}
    arrays = [array for array in layouts(analysis) if array.name not in switched]
    return _rendered(
        "report.html",
        analysis=analysis,
        launch=analysis.trace.launch,
        files=sources,
        code=listing_view(analysis, sources),
        details=details,
        worst=next((d for d in details if [d.number] == by_waste(analysis)[:1]), None),
        compared=before_after(analysis, after) if after is not None else None,
        heat_after=rows_after[:MOST_HEAT_ROWS],
        heat_rows=rows[:MOST_HEAT_ROWS],
        heat_left_out=len(rows[MOST_HEAT_ROWS:]),
        scales=heat.scales([rows, rows_after]),
        arrays=[(array, shown_part(array, MOST_WORDS)) for array in arrays[:MOST_ARRAYS]],
        arrays_left_out=[array.name for array in arrays[MOST_ARRAYS:]],
        ladder=ladder(analysis),
        recorded=recorded if isinstance(recorded, Recorded) else None,
        why_not=recorded,
        advice=advice,
        scattered=_scattered(analysis),
        switches=switches,
        first_line=linked_verdict(analysis),
        phrases=dict.fromkeys(phrase for _, phrase in phrases_in(analysis.verdict, analysis.trace.kernel)),
        limits_of_totals=limits_of_totals,
        left_out=left_out(analysis),
        tables=access_tables(analysis),
        unit_columns=[column.name for column in bounds.COLUMNS],
        unit_rows=bounds.unit_rows(analysis.bound),
        about_bound=list(bounds.footer(analysis)),
        json=json.dumps(analysis.to_dict()).replace("<", "\\u003c"),
    )


def _scattered(analysis: Analysis) -> str:
    """Which global accesses move unneeded sectors, the worst first; "" if none does."""
    scattered = sorted(
        (site for site in analysis.sites if site.space == "global" and site.needless_sectors),
        key=lambda site: site.needless_sectors,
        reverse=True,
    )
    if not scattered:
        return ""
    lines = ", ".join(dict.fromkeys(str(site.line) for site in scattered))
    moved = sum(site.needless_sectors for site in scattered)
    return (
        f"{moved:,} sectors of global memory are not needed; line{'s' * (',' in lines)} {lines} moved them."
    )


def request_page(analysis: Analysis, site: int) -> str:
    """The worst request of an access, its row in the analysis, as a page of its own.

    Raises:
        MemsimError: as `take_apart`.
    """
    request = take_apart(analysis, site)
    detail = Detail(site, request.origin.row, request)
    return _rendered("explain.html", kernel=analysis.trace.kernel, detail=detail)


def fragment(analysis: Analysis) -> str:
    """What a notebook shows: the verdict, the heatmap and the numbers."""
    rows = heat_rows(analysis)
    return _rendered(
        "fragment.html",
        analysis=analysis,
        heat_rows=rows[:MOST_HEAT_ROWS],
        scales=heat.scales([rows]),
        tables=access_tables(analysis),
    )


def layout_fragment(analysis: Analysis, array: WordLayout) -> str:
    """What a notebook shows of the layout of a shared array."""
    return _rendered("layout.html", kernel=analysis.trace.kernel, array=array, part=shown_part(array))


def flow_fragment(analysis: Analysis) -> str:
    """What a notebook shows of the flow of memory."""
    return _rendered("flow.html", analysis=analysis, ladder=ladder(analysis))


def _details(analysis: Analysis) -> list[Detail]:
    """The sites that have details, in order: all, or the worst of many."""
    silent = [i for i, site in enumerate(analysis.sites) if not site.requests]
    return [
        Detail(i, analysis.sites[i], take_apart(analysis, i) if analysis.sites[i].requests else None)
        for i in sorted([*by_waste(analysis), *silent][:MOST_DETAILS])
    ]


def _rendered(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    """Jinja's environment, with what the templates call to choose words and colours."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDERS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    called: tuple[Callable[..., object], ...] = (
        *(access, at_all_places, count, dim3, count_or_limits, number, ranges, zip, lanes_of_warp_0, ink_on),
        *(colour_of_count, colour_of_trouble, colour_of_bank),
        *(caption, owner, collision_line, word_name, line_name, sentences, conflict_graph),
        *(lane_cells, line_cells, ring, advice_lines, look_name, look_costs, meaning_of_phrase),
    )
    made.globals |= {each.__name__: each for each in called}
    made.globals |= {"heat": heat, "runs": _runs, "ARRAY_CAPTION": CAPTION, "WORDS": WORDS, "LESS": LESS}
    made.globals |= {"KINDS": KINDS, "LADDER_CAPTIONS": CAPTIONS}
    return made


def _runs(used: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, one past the last) of each stretch of used bytes."""
    edges = np.flatnonzero(np.diff(used.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def heatmap_page(analyses: Sequence[Analysis]) -> str:
    """The heatmap of each analysis, side by side, as one page.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    panels = heat.heat_panels(analyses)
    return _rendered("heatmap.html", panels=list(zip(analyses, panels)), scales=heat.scales(panels))


MARK = re.compile(r"`(?P<code>[^`]+)`|\*(?P<name>[^*]+)\*|\[(?P<said>[^]]+)\]\((?P<page>[^)]+)\)")


def linked_verdict(analysis: Analysis) -> Markup:
    """The verdict as a sentence, without the kernel's name."""
    from markupsafe import Markup

    text = analysis.verdict
    done = len(analysis.trace.kernel) + 2 if text.startswith(f"{analysis.trace.kernel}: ") else 0
    text = text[:done] + text[done : done + 1].upper() + text[done + 1 :]
    parts = [Markup()]
    for place, phrase in phrases_in(analysis.verdict, analysis.trace.kernel):
        link = Markup('<a href="#{}">{}</a>').format(phrase.anchor, text[place])
        parts += [Markup.escape(text[done : place.start]), link]
        done = place.stop
    return Markup().join([*parts, Markup.escape(text[done:])])


def meaning_of_phrase(phrase: Phrase) -> Markup:
    """Its explanation; pages are links where the documentation has an address."""
    from markupsafe import Markup

    parts, done = [Markup()], 0
    for mark in MARK.finditer(phrase.means):
        parts.append(Markup.escape(phrase.means[done : mark.start()]))
        if mark["code"]:
            parts.append(Markup("<code>{}</code>").format(mark["code"]))
        elif mark["name"]:
            parts.append(Markup("<em>{}</em>").format(mark["name"]))
        elif phrase.is_published:
            said = mark["said"].replace("`", "")
            parts.append(Markup('<a href="{}">{}</a>').format(urljoin(phrase.address, mark["page"]), said))
        else:
            parts.append(Markup.escape(f"{mark['said'].replace('`', '')} (docs/{mark['page']})"))
        done = mark.end()
    return Markup().join([*parts, Markup.escape(phrase.means[done:])])
