"""What the recorder keeps of each site while a launch runs: the distinct requests, how often each was
made, and how the site appears in the trace.

Rows are found by hash and compared in full; after a hash collision, by their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Any

import numpy as np

from memsim.access import Requests, Site, SiteRequests
from memsim.arch.units import WARP
from memsim.names.demangle import short_name
from memsim.trace.trace_data import AccessSite
from memsim.trace.writers import SWAP_LOOP

#: What distinguishes requests of a site: from requests to numbers [m, k].
Tell = Callable[[Requests], np.ndarray]


#: Requests that are processed together, so that their keys stay in the processor's cache.
SLICE = 1 << 13


def _random_odd(count: int) -> np.ndarray:
    """Independent odd 64-bit factors (SplitMix64, Steele et al. 2014), int64."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    factors: np.ndarray = (state ^ (state >> np.uint64(31))) | np.uint64(1)
    return factors.view(np.int64)


#: One factor for each number of a key: for a copy, each lane on both sides.
HASH = _random_odd(2 * WARP)


class GrowingColumn:
    """A growable array of rows of a shape."""

    def __init__(self, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self.room: np.ndarray = np.empty((0, *shape), dtype)
        self.size = 0

    @property
    def array(self) -> np.ndarray:
        """Its contents."""
        return self.room[: self.size]

    def extend(self, values: np.ndarray) -> None:
        """Append rows."""
        size = self.size + len(values)
        if size > len(self.room):
            room = np.empty((max(size, 2 * len(self.room)), *self.room.shape[1:]), self.room.dtype)
            room[: self.size] = self.array
            self.room = room
        self.room[self.size : size] = values
        self.size = size


class RequestRows:
    """Distinct requests in order of first occurrence.

    tell: what distinguishes them. folded: only by cost. counts: how often each was made, as far as
    `add_counts` was called.
    """

    def __init__(self, tell: Tell, *, folded: bool = False) -> None:
        self.tell = tell
        self.folded = folded
        self.index: dict[int | bytes, int] = {}
        self.by_bytes = False
        self.keys: GrowingColumn | None = None
        self.addresses = GrowingColumn(np.int64, (WARP,))
        self.active = GrowingColumn(np.bool_, (WARP,))
        self.partner: GrowingColumn | None = None
        self.block = GrowingColumn(np.int64)
        self.warp = GrowingColumn(np.int32)
        self.counts: np.ndarray = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.addresses.size

    def requests(self) -> SiteRequests:
        """The rows as requests."""
        partner = None if self.partner is None else self.partner.array
        columns = self.addresses.array, self.active.array
        return SiteRequests(*columns, partner, self.block.array, self.warp.array)

    def add_counts(self, numbers: np.ndarray, times: np.ndarray) -> None:
        """Add to the counts of these rows; a row may occur repeatedly."""
        missing = len(self) - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros(missing, np.int64)])
        np.add.at(self.counts, numbers, times)

    def number(self, requests: Requests, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(row numbers, how often each was made) of requests that occurred `weights` times each [m].

        New ones are added.
        """
        parts = [
            self._number(requests[start : start + SLICE], weights[start : start + SLICE])
            for start in range(0, len(requests), SLICE)
        ]
        if len(parts) == 1:
            return parts[0]
        numbers, counts = zip(*parts)
        return np.concatenate(numbers), np.concatenate(counts)

    def _number(self, requests: Requests, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        keys = self.tell(requests)
        if keys.shape[1] == 1 and (weights == 1).all() and (known := self._known(keys[:, 0])) is not None:
            return known
        first, inverse, numbers = self._find(keys)
        fresh = np.flatnonzero(numbers < 0)
        if len(fresh):
            fresh = fresh[np.argsort(first[fresh])]  # in order of occurrence
            numbers[fresh] = len(self) + np.arange(len(fresh))
            self._keep(requests[first[fresh]].expanded(), keys[first[fresh]])
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, inverse, weights)
        return numbers, counts

    def _known(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(row numbers, how often each was made) of keys [m] that occurred once each; None if one is new."""
        in_order = np.sort(keys)
        first = np.flatnonzero(np.append(True, in_order[1:] != in_order[:-1]))
        numbers = self._numbers(in_order[first, None])
        return None if (numbers < 0).any() else (numbers, np.diff(first, append=len(keys)))

    def _find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(index of the first of each distinct key, which of them each is, its row number or -1)."""
        if not self.by_bytes:
            first, inverse = distinct(hashes(keys))
            different = keys[first]
            numbers = self._numbers(different)
            if keys.shape[1] == 1:  # times an odd factor: never the same for different keys
                return first, inverse, numbers
            known = numbers >= 0
            alike = self.keys is None or (self.keys.array[numbers[known]] == different[known]).all()
            if alike and (len(first) == len(keys) or (different[inverse] == keys).all()):
                return first, inverse, numbers
            self._by_bytes()
        first, inverse = distinct_rows(keys)
        return first, inverse, self._numbers(keys[first])

    def _numbers(self, keys: np.ndarray) -> np.ndarray:
        """Row numbers of keys, -1 for those not found."""
        find = self.index.get
        return np.array([find(key, -1) for key in self._keys(keys)], np.int64)

    def _keys(self, keys: np.ndarray) -> list[int] | list[bytes]:
        return [row.tobytes() for row in keys] if self.by_bytes else hashes(keys).tolist()

    def _by_bytes(self) -> None:
        """After a hash collision, rows are identified by their bytes."""
        self.by_bytes = True
        self.index = {}
        if self.keys is not None:
            self.index.update(zip(self._keys(self.keys.array), range(len(self))))

    def _keep(self, requests: SiteRequests, keys: np.ndarray) -> None:
        """Append new rows."""
        self.index.update(zip(self._keys(keys), range(len(self), len(self) + len(keys))))
        if self.keys is None:
            self.keys = GrowingColumn(np.int64, keys.shape[1:])
        self.keys.extend(keys)
        self.addresses.extend(requests.addresses * requests.active)
        self.active.extend(requests.active)
        self.block.extend(requests.block)
        self.warp.extend(requests.warp)
        if requests.partner is not None:
            self.partner = self.partner or GrowingColumn(np.int64, (WARP,))
            self.partner.extend(requests.partner)

    def fold(self, tell: Tell) -> RequestRows:
        """The rows that `tell` distinguishes, the first of each kind."""
        rows = RequestRows(tell, folded=True)
        if len(self):
            rows.add_counts(*rows.number(self.requests(), self.counts))
        return rows


def hashes(keys: np.ndarray) -> np.ndarray:
    """A hash for each key [m, k]: equal keys have equal hashes, others hardly ever; int64 [m]."""
    if keys.shape[1] == 1:  # many times as fast
        return keys[:, 0] * HASH[0]  # type: ignore[no-any-return]
    found: np.ndarray = keys @ HASH[: keys.shape[1]]  # wraps: modulo 2**64
    return found


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of the first of each distinct value, which of them each value is), in ascending order of values.

    As `np.unique`, whose sort is stable and so three times as slow.
    """
    order = np.argsort(values)
    in_order = values[order]
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_new[1:])
    inverse = np.empty(len(values), np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    return np.minimum.reduceat(order, np.flatnonzero(is_new)), inverse


def distinct_rows(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index of the first of each distinct key, which of them each key is)."""
    first, inverse = distinct(hashes(keys))
    if (keys[first][inverse] == keys).all():
        return first, inverse
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


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

    key: Hashable
    made: Requests
    weights: np.ndarray
    requests: int
    hits: int = 0


@dataclass(kw_only=True)
class SiteTotals:
    """What is added up of a site, whatever its requests are. requests: how many were made."""

    instructions: int = 0
    requests: int = 0
    arrays: set[str] = field(default_factory=set)
    unresolved: str | None = None
    unresolved_requests: int = 0
    lanes: int = 0

    def add(self, others: SiteTotals) -> None:
        """Add those of other blocks."""
        self.instructions += others.instructions
        self.requests += others.requests
        self.arrays |= others.arrays
        self.unresolved = self.unresolved or others.unresolved
        self.unresolved_requests += others.unresolved_requests
        self.lanes += others.lanes


@dataclass
class SiteRecord(SiteTotals):
    """What is known of one site so far.

    waiting: events not costed yet, of a folded site; wait: their requests.
    """

    site: Site
    rows: RequestRows
    waiting: list[Uncosted] = field(default_factory=list)
    wait: int = 0

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


def joined_requests(some: list[Requests]) -> Requests:
    """Requests of one site and one type, concatenated."""
    if len(some) == 1:
        return some[0]
    columns = [[getattr(one, column.name) for one in some] for column in fields(some[0])]
    joined: list[Any] = [None if column[0] is None else np.concatenate(column) for column in columns]
    return type(some[0])(*joined)


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
