"""What the recorder keeps of each site while a launch runs, and how it appears in the trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Any

import numpy as np

from memsim.access import Requests, Site
from memsim.names.demangle import short_name
from memsim.trace.rows import RequestRows
from memsim.trace.swapped_words import SWAP_LOOP
from memsim.trace.trace_data import AccessSite

#: Distinct requests of an access above which it is checked whether they repeat.
MANY_OF_SITE = 1 << 8


@dataclass
class Tally:
    """One kind of event: its requests (rows and how often), their number, and how often it occurred."""

    site: int
    rows: np.ndarray
    counts: np.ndarray
    requests: int
    hits: int = 0
    forgotten: bool = False


@dataclass
class Uncosted:
    """One kind of event whose requests, made `weights` times each, have no rows yet."""

    key: Any
    made: Requests
    weights: np.ndarray
    requests: int
    hits: int = 0


@dataclass
class SiteRecord:
    """What is known of one site so far.

    requests: how many were made. waiting: events not costed yet, of a folded site; wait: their requests.
    """

    site: Site
    rows: RequestRows
    waiting: list[Uncosted] = field(default_factory=list)
    wait: int = 0
    instructions: int = 0
    requests: int = 0
    arrays: set[str] = field(default_factory=set)
    unresolved: str | None = None
    unresolved_requests: int = 0
    lanes: int = 0

    @property
    def hardly_repeats(self) -> bool:
        """Were more than half of its many requests new?"""
        many = len(self.rows)
        return many > MANY_OF_SITE and 2 * many > self.requests and not self.rows.folded


@dataclass(frozen=True, slots=True)
class Again:
    """Counts an event once more, by `warps` warps; False if it is forgotten."""

    record: SiteRecord
    tally: Tally
    warps: int

    def __call__(self) -> bool:
        if self.tally.forgotten:
            return False
        self.tally.hits += 1
        self.record.requests += self.tally.requests
        self.record.instructions += self.warps
        return True


def joined_requests(some: list[Any]) -> Any:
    """Requests of one site and one type, concatenated."""
    if len(some) == 1:
        return some[0]
    columns = [[getattr(one, column.name) for one in some] for column in fields(some[0])]
    return type(some[0])(*(None if column[0] is None else np.concatenate(column) for column in columns))


def note_of_folded(sites: Iterable[AccessSite]) -> list[str]:
    """A note about folded sites; none if there are none."""
    named = ", ".join(dict.fromkeys(f"{PurePath(site.file).name}:{site.line}" for site in sites))
    what = "from pictures all but one of the requests that cost the same, if there are too many"
    return [f"{what} ({named})"] if named else []


def access_site(record: SiteRecord, swaps_apart: bool = False) -> AccessSite:
    """A site's record as it appears in the trace. swaps_apart: of the launch's loops of compare-and-swaps."""
    instruction = record.site.instruction
    source = instruction.source
    return AccessSite(
        instruction=instruction.text,
        file=source.file if source else "",
        line=instruction.line,
        column=instruction.column,
        op=record.site.access,
        space=record.site.space,
        width=record.site.width,
        array="|".join(sorted(map(short_name, record.arrays))),
        instructions=record.instructions,
        unresolved=record.unresolved,
        unresolved_requests=record.unresolved_requests,
        address=instruction.address,
        lanes=record.lanes,
        apart=swaps_apart and record.site.access == SWAP_LOOP,
    )
