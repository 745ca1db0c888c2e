"""The pages, put together from records and templates.

In: an `Analysis`, perhaps with recorded counters. Out: HTML text. What is shown is bounded: of many sites the
worst have their details, and of large arrays the first rows are drawn; the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memsim.analysis import Analysis, SiteCounts
from memsim.details.choose import by_waste, dearer
from memsim.details.layout import layouts
from memsim.details.request import GlobalRequest, SharedRequest, conflict_graph, take_apart
from memsim.report import heat, ladder, words
from memsim.report.arrays import CAPTION, caption, owner, shown
from memsim.report.colours import colour_of_bank, colour_of_count, ink_on
from memsim.report.heat import HeatRow, heat_panels, heat_rows
from memsim.report.help import advice_lines
from memsim.report.html.listing import listing
from memsim.report.html.source import files, mark
from memsim.report.labels import access, count, dim3, lanes_of_warp_0, number, ranges
from memsim.report.sentences import collision_line, line_name, sentences, word_name
from memsim.report.text import LEFT_OUT
from memsim.suggest.proposals import advise

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")

# What bounds the page.
MOST_DETAILS = 32
MOST_HEAT_ROWS = 64
MOST_ARRAYS = 4
MOST_WORDS = 2048

# The numbers of a row, in the order of `SiteCounts`.
NUMBERS = (
    *("instructions", "requests", "wavefronts", "conflicts", "ideal_wavefronts", "max_ways"),
    *("sectors", "ideal_sectors", "lines"),
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Counters of a recording: where they come from, in words, and (value, verdict) by ncu's names.

    A value is None where it was not recorded; a verdict says how it compares with the prediction.
    """

    where: str
    counters: Mapping[str, tuple[int | float | None, str]]


@dataclass(frozen=True, slots=True)
class Detail:
    """What the page shows of one access site: its row of the heatmap, and its worst request."""

    number: int
    site: SiteCounts
    mark: str
    bad: bool
    heat: HeatRow | None
    request: SharedRequest | GlobalRequest | None

    @property
    def story(self) -> list[str]:
        """The worst request in words, the answer first."""
        if self.request is None:
            return [self.site.unresolved or "No lane is ever active here."]
        return sentences(self.request)


def report_page(analysis: Analysis, recorded: Recorded | str = "") -> str:
    """The whole report as one page; `recorded` may also say why there is nothing to compare with."""
    rows, sources = heat_rows(analysis), files(analysis)
    details = _details(analysis, rows)
    arrays = layouts(analysis)
    return (
        _environment()
        .get_template("report.html")
        .render(
            analysis=analysis,
            launch=analysis.trace.launch,
            files=sources,
            code=listing(analysis, sources),
            details=details,
            worst=next((d for d in details if [d.number] == by_waste(analysis)[:1]), None),
            heat_rows=rows[:MOST_HEAT_ROWS],
            heat_left_out=len(rows[MOST_HEAT_ROWS:]),
            scales=heat.scales([rows]),
            arrays=[(array, shown(array, MOST_WORDS)) for array in arrays[:MOST_ARRAYS]],
            arrays_left_out=[array.name for array in arrays[MOST_ARRAYS:]],
            ladder=ladder.ladder(analysis),
            recorded=recorded if isinstance(recorded, Recorded) else None,
            why_not=recorded,
            advice=[entry for entry in advise(analysis) if entry.conflicts],
            left_out=[*LEFT_OUT, *analysis.trace.notes],
            sites=[(i, site, asdict(site)) for i, site in enumerate(analysis.sites)],
            json=json.dumps(analysis.to_dict()).replace("<", "\\u003c"),
        )
    )


def heatmap_page(analyses: Sequence[Analysis]) -> str:
    """The heatmap of each analysis, side by side, as one page.

    Raises:
        MemsimError: none of the kernels touches shared memory.
    """
    panels = heat_panels(analyses)
    template = _environment().get_template("heatmap.html")
    return template.render(panels=list(zip(analyses, panels)), scales=heat.scales(panels))


def fragment(analysis: Analysis) -> str:
    """What a notebook shows: the verdict, the heatmap and the numbers."""
    sites, rows = [(i, site, asdict(site)) for i, site in enumerate(analysis.sites)], heat_rows(analysis)
    template = _environment().get_template("fragment.html")
    return template.render(
        analysis=analysis, heat_rows=rows[:MOST_HEAT_ROWS], scales=heat.scales([rows]), sites=sites
    )


def _details(analysis: Analysis, heat_rows: Sequence[HeatRow]) -> list[Detail]:
    """The sites that have details, in order: all, or the worst of many."""
    rows = {row.number: row for row in heat_rows}
    silent = [i for i, site in enumerate(analysis.sites) if not site.requests]
    details = []
    for i in sorted([*by_waste(analysis), *silent][:MOST_DETAILS]):
        site = analysis.sites[i]
        request = take_apart(analysis, i) if site.requests else None
        details.append(Detail(i, site, mark(site), (dearer(site) or 0) > 1, rows.get(i), request))
    return details


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= _names()
    return environment


def _names() -> dict[str, Any]:
    """What templates may call; all of it only chooses words and colours."""
    return {
        **{"access": access, "count": count, "dim3": dim3, "number": number, "ranges": ranges, "heat": heat},
        **{"colour_of_count": colour_of_count, "colour_of_bank": colour_of_bank, "ink_on": ink_on},
        **{"caption": caption, "owner": owner, "ARRAY_CAPTION": CAPTION, "NUMBERS": NUMBERS},
        **{"lanes_of_warp_0": lanes_of_warp_0, "collision_line": collision_line, "word_name": word_name},
        **{"line_name": line_name, "lane_cells": words.lane_cells, "line_cells": words.line_cells},
        **{"ring": words.ring, "conflict_graph": conflict_graph, "KINDS": ladder.KINDS},
        **{"LADDER_CAPTIONS": ladder.CAPTIONS, "zip": zip, "runs": _runs},
        **{"advice_lines": advice_lines},
    }


def _runs(used: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, one past the last) of each stretch of used bytes."""
    edges = np.flatnonzero(np.diff(used.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))
