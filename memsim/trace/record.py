"""The recorder: a listener that stores each distinct request once.

An address that is a sum of a block's part and a thread's part is never expanded for all threads: blocks whose
part is equal modulo 128 bytes make the same requests, so one represents all. Loop iterations with the same
parts are only counted. Memory does not grow with the launch: events are summed up as soon as they are many,
and if an access makes too many different requests, or hardly repeats one, one of each kind that costs the
same is kept (`memsim.model.alike`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import numpy as np

from memsim.access import (
    PERIOD,
    Chunk,
    LaneRequests,
    Listener,
    Requests,
    Site,
    SiteAccess,
    SiteRequests,
    Stretches,
)
from memsim.arch.texel_places import NUMBERS
from memsim.arch.units import WARP
from memsim.state.parts import Mask
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes
from memsim.trace.events import Executions, Sides, WarpCounts, content, identity, written_out
from memsim.trace.footprint import SECTOR_BITS, Marks
from memsim.trace.site_records import (
    Again,
    RequestRows,
    SiteRecord,
    Tally,
    Uncosted,
    access_site,
    joined_requests,
    note_of_folded,
)
from memsim.trace.trace_data import AccessSite
from memsim.trace.writers import OWNING, SWAP_LOOP, SwappedWords, Writers

#: What distinguishes requests of a site that do not cost the same: numbers [m, k].
CostKey = Callable[[Site, Requests], np.ndarray]

#: Bytes that 32 lanes of 16 bytes each access.
PIECE = 512

#: Larger than shared memory, and than all memory: requests are distinguished by address.
APART, APART_EVERYWHERE = 2**20, 2**47

#: Distinct requests kept per launch, 900 bytes each.
MOST_ROWS = 1 << 17
#: Distinct requests of a launch above which it is checked whether those of an access repeat.
MANY_ROWS = 1 << 14
#: Bytes of cached events, which are counted without being expanded again.
MOST_REMEMBERED = 1 << 26
#: Requests of a folded site that are costed together, and bytes of one that waits for it.
BATCH, BYTES_OF_REQUEST = 1 << 13, 500


class Recorder(Listener):
    """A listener that stores what the model needs, without duplicates.

    alike: the equivalence of requests that cost the same; if there are too many, only one of each kind is
    kept. apart: shared requests that differ by a multiple of 128 bytes are separate rows; everywhere: global
    ones, too. is_scattered: there is an access that hardly repeats, so new requests are classified
    immediately. crowded: twice the rows that were left when room was last made: many sites have many.
    """

    def __init__(
        self, alike: CostKey | None = None, *, apart: bool = False, everywhere: bool = False
    ) -> None:
        self.alike = alike
        self.is_apart = apart or everywhere
        self.shared_period = APART if self.is_apart else PERIOD
        self.global_period = APART_EVERYWHERE if everywhere else PERIOD
        self.sites: dict[int, SiteRecord] = {}
        self.tallies: list[Tally] = []
        self.seen: dict[Hashable, Tally | Uncosted] = {}
        self.by_content: dict[Hashable, Tally] = {}
        self.blocks: np.ndarray = np.zeros(0, np.int64)
        self.warps = 1
        self.first_warps: np.ndarray = np.zeros(0, np.int64)
        self.uncounted_requests: Counter[str] = Counter()
        self.noted_requests: Counter[str] = Counter()
        self.uncertain_reasons: set[str] = set()
        self.passed_branches: set[str] = set()
        self.remarks: set[str] = set()
        self.executions = Executions()
        self.in_warps = WarpCounts()
        self.writers = Writers()
        self.swapped = SwappedWords()
        self.marks = Marks()
        self.chunks = 0
        self.kept_rows = 0
        self.crowded = 0
        self.is_scattered = False
        self.remembered = 0

    # --- listener ------------------------------------------------------------------

    def start_chunk(self, chunk: Chunk) -> None:
        """A new chunk of blocks starts; keys of the last one are no longer valid."""
        self.forget_keys()
        self.chunks += 1
        self.blocks = chunk.blocks
        self.warps = chunk.threads // WARP
        self.first_warps = chunk.first[:, 0] // WARP
        self.in_warps.start_chunk(len(self.blocks), self.warps)
        self.executions.start_chunk(len(self.blocks))
        self.marks.start_chunk()
        self.swapped.start_chunk(chunk.first)

    def access(self, made: SiteAccess) -> Callable[[], bool] | None:
        """Count one execution of a site; returns what counts the same one again."""
        site, address, mask, active, arrays, other = made
        record = self.record(site)
        warps = self.in_warps.of(mask)
        record.instructions += warps
        if active is False:
            return None
        record.arrays |= arrays
        if site.space == "shared" and site.access in OWNING and self.chunks == 1:
            self.writers.wrote(address, site.width, active, self.warps * WARP)
        if site.access == SWAP_LOOP:
            self.swapped.update(address, site.width, active, self.warps * WARP)
        if site.space == "global":
            self.marks.access(site.access, address, active)
        elif other is not None and other.active is not False:  # what is copied from there
            self.marks.access(site.access, other.address, other.active)
        own_period, other_period = self.periods(site)
        # In a loop an access often has the very parts of registers that it had before: their identity is the
        # cheapest key. What is computed anew is recognised by content, in `tally_of_event`.
        key: tuple[Hashable, ...] = (site.index, *identity(address, active, own_period))
        if other is not None:
            key = (*key, *identity(other.address, other.active, other_period))
        tally = self.seen.get(key)
        if tally is None:
            tally = self.seen[key] = self.tally_of_event(record, made.sides, key)
        tally.hits += 1
        record.requests += tally.requests
        self.keep_bounded(record)
        if site.access == SWAP_LOOP:  # whose words are all looked at
            return None
        return Again(record, tally, warps) if isinstance(tally, Tally) else None

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """Count one execution of a site by `warps` warps, of which `lanes` accessed `address` [n]."""
        record = self.record(site)
        record.instructions += warps
        record.arrays |= arrays
        self.swapped.meet |= site.access == SWAP_LOOP
        if site.space == "global":
            self.marks.sectors(site.access, address >> SECTOR_BITS)
        rows = lanes.warps // self.warps
        of_warps = self.blocks[rows], self.first_warps[rows] + (lanes.warps - rows * self.warps)
        self.count_once_each(record, LaneRequests(address, lanes.lanes & (WARP - 1), lanes.counts, *of_warps))

    def requests(self, site: Site, requests: SiteRequests) -> None:
        """Count expanded requests."""
        record = self.record(site)
        self.swapped.meet |= site.access == SWAP_LOOP
        record.instructions += len(requests)
        made = requests[np.flatnonzero(requests.active.any(1))]
        if not len(made):
            return
        if site.space == "global":
            self.marks.sectors(site.access, made.addresses[made.active] >> SECTOR_BITS)
        elif made.partner is not None:
            self.marks.sectors(site.access, made.partner[made.partner >= 0] >> SECTOR_BITS)
        self.count_once_each(record, made)

    def count_once_each(self, record: SiteRecord, made: Requests) -> None:
        """Count requests that were made once each."""
        once = np.ones(len(made), np.int64)
        if record.rows.folded:
            self.postpone(record, Uncosted(None, made, once, len(made), 1))
        else:
            tally = self.count_rows(record, made, once)
            record.rows.add_counts(tally.rows, tally.counts)
        record.requests += len(made)
        self.keep_bounded(record)

    def lost(self, site: Site, requests: int, why: str) -> None:
        """Count requests that cannot be analyzed, with the reason."""
        record = self.record(site)
        record.instructions += requests
        record.unresolved_requests += requests
        record.unresolved = record.unresolved or why

    def stretches(self, site: Site, arrays: frozenset[str], made: Stretches) -> None:
        """Count stretches of bytes that TMA copies, as requests of up to 512 bytes."""
        record, start, length = self.record(site), made.start, made.length
        record.arrays |= arrays
        if site.space == "global":
            self.marks.stretches(site.access, start, length)
        # Stretches of a length that start at the same place of a line make the same requests.
        shapes, index, times = np.unique(
            np.stack([start % PERIOD, length], 1), axis=0, return_index=True, return_counts=True
        )
        for (_, size), i, count in zip(shapes.tolist(), index.tolist(), times.tolist()):
            low, high = int(start[i]), int(start[i]) + size
            begins = np.arange(low // PERIOD * PERIOD, high, PIECE)
            addresses = begins[:, None] + np.arange(0, PIECE, PIECE // WARP)
            active = (addresses >= low) & (addresses < high)
            whose = np.full(len(begins), self.blocks[made.rows[i]]), np.full(len(begins), made.warps[i])
            requests = SiteRequests(addresses, active, None, *whose)
            tally = self.count_rows(record, requests, np.full(len(begins), count))
            record.requests += tally.requests
            record.rows.add_counts(tally.rows, tally.counts)
        self.keep_bounded(record)

    def issued(self, site: Site, lanes: int) -> None:
        """Count lanes that execute a copy by TMA."""
        self.record(site).lanes += lanes

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """Count an execution with unknown addresses."""
        record = self.record(site)
        self.swapped.meet |= site.access == SWAP_LOOP
        record.instructions += self.in_warps.of(mask)
        record.unresolved_requests += self.in_warps.of(active)
        record.unresolved = record.unresolved or poison.story()

    def uncounted(self, what: str, active: Mask) -> None:
        """Count requests whose cost is unknown."""
        self.uncounted_requests[what] += self.in_warps.of(active)

    def noted(self, what: str, active: Mask) -> None:
        """Count requests that no counter of ours has."""
        self.noted_requests[what] += self.in_warps.of(active)

    def uncertain(self, what: str) -> None:
        """Record a reason why counts are uncertain."""
        self.uncertain_reasons.add(what)

    def passed_by(self, where: str, writes: int, mask: Mask) -> None:
        """Say that not all instructions behind a branch are counted, none of them an access."""
        self.passed_branches.add(where)

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Count warps that execute the instructions from number `start` up to `stop`."""
        same = self.executions.alike and self.in_warps.is_same_in_all(mask)
        self.executions.add(start, stop, self.in_warps.of(mask), same)

    # --- counting -----------------------------------------------------------------------

    def record(self, site: Site) -> SiteRecord:
        """The record of a site."""
        record = self.sites.get(site.index)
        if record is None:
            periods = self.periods(site)
            rows = RequestRows(lambda requests: requests.expanded().relative(periods))
            record = self.sites[site.index] = SiteRecord(site, rows)
        return record

    def periods(self, site: Site) -> tuple[int, int]:
        """The periods in bytes by which requests of one row differ: on the site's own side, and on a copy's
        other side.
        """
        if site.space == "texture":  # packed texels are no addresses: only equal ones are the same
            return NUMBERS, NUMBERS
        own, other = self.shared_period, self.global_period
        return (own, other) if site.space == "shared" else (other, own)

    def tally_of_event(self, record: SiteRecord, sides: Sides, key: Hashable) -> Tally | Uncosted:
        """The requests of an event that was not seen before."""
        periods = self.periods(record.site)
        if record.rows.folded:
            # Costing takes longer than hashing, but is hardly slower for thousands of requests than for one.
            made, weights = written_out(sides, periods, self.blocks, self.warps, self.first_warps)
            event = Uncosted(key, made, weights, int(weights.sum()))
            self.postpone(record, event)
            return event
        contents = [content(*side, period) for side, period in zip(sides, periods)]
        key = None if None in contents else (record.site.index, *contents)
        if key is not None and key in self.by_content:
            return self.by_content[key]
        tally = self.count_rows(
            record, *written_out(sides, periods, self.blocks, self.warps, self.first_warps)
        )
        self.tallies.append(tally)
        self.remembered += 500 + tally.rows.nbytes + tally.counts.nbytes
        if key is not None:
            self.by_content[key] = tally
            self.remembered += sum(
                len(part) for one in contents for part in one or () if isinstance(part, bytes)
            )
        return tally

    def count_rows(self, record: SiteRecord, requests: Requests, weights: np.ndarray) -> Tally:
        """Requests that occurred `weights` times each, as rows of the site."""
        if self.is_scattered and not record.requests and not record.rows.folded:
            self.fold(record)  # before its first: the launch has shown that its accesses do not repeat
        before = len(record.rows)
        numbers, counts = record.rows.number(requests, weights)
        self.kept_rows += len(record.rows) - before
        return Tally(record.site.index, numbers, counts, int(weights.sum()))

    def postpone(self, record: SiteRecord, event: Uncosted) -> None:
        """An event of a folded site, which is costed later, with others."""
        record.waiting.append(event)
        record.wait += len(event.weights)
        self.remembered += BYTES_OF_REQUEST * len(event.weights)

    # --- bounding memory -------------------------------------------------------------------

    def cost_postponed(self, record: SiteRecord) -> None:
        """Assign rows to the waiting events of a folded site, and forget the events."""
        waiting, record.waiting, record.wait = record.waiting, [], 0
        for kind in (SiteRequests, LaneRequests):
            events = [event for event in waiting if type(event.made) is kind]
            if not events:
                continue
            weights = np.concatenate([event.weights * event.hits for event in events])
            tally = self.count_rows(record, joined_requests([event.made for event in events]), weights)
            record.rows.add_counts(tally.rows, tally.counts)
            self.remembered -= BYTES_OF_REQUEST * len(weights)
        for event in waiting:
            self.seen.pop(event.key, None)

    def keep_bounded(self, record: SiteRecord) -> None:
        """Free memory after counting a site, if too much is stored."""
        if record.wait > BATCH:
            self.cost_postponed(record)
        if self.alike is not None and self.kept_rows > MANY_ROWS and record.hardly_repeats:
            self.is_scattered = True
            self.forget()
            self.fold(record)
        if self.kept_rows > max(MOST_ROWS, self.crowded) or self.remembered > MOST_REMEMBERED:
            self.make_room()

    def forget(self) -> None:
        """Sum up the events so far; if they recur, they are expanded again."""
        for record in self.sites.values():
            if record.waiting:
                self.cost_postponed(record)
        self.forget_keys()

    def forget_keys(self) -> None:
        """Sum up events that have rows; no event so far is recognised any more."""
        for tally in self.tallies:
            self.sites[tally.site].rows.add_counts(tally.rows, tally.counts * tally.hits)
            tally.forgotten = True
        self.tallies = []
        self.seen = {}
        self.by_content = {}
        self.remembered = BYTES_OF_REQUEST * sum(record.wait for record in self.sites.values())

    def make_room(self) -> None:
        """Forget events, and fold the accesses with most requests, as long as there are too many."""
        self.forget()
        unfolded = sorted(
            (record for record in self.sites.values() if not record.rows.folded),
            key=lambda record: len(record.rows),
        )
        while self.alike is not None and self.kept_rows > MOST_ROWS // 2 and unfolded:
            self.fold(unfolded.pop())
        # What cannot be folded stays: without this, room would be made again at every access.
        self.crowded = 2 * self.kept_rows

    def fold(self, record: SiteRecord) -> None:
        """Keep only the first of the site's requests of each kind that costs the same."""
        assert self.alike is not None
        before = len(record.rows)
        record.rows = record.rows.fold(partial(self.alike, record.site))
        self.kept_rows -= before - len(record.rows)

    # --- the trace ----------------------------------------------------------------------

    @property
    def notes(self) -> list[str]:
        """What was seen but is not in the trace."""
        noted = [f"{what} ({count:,} requests)" for what, count in self.noted_requests.items()]
        places = [access_site(record) for record in self.sites.values() if record.rows.folded]
        if self.passed_branches:
            where = ", ".join(sorted(self.passed_branches))
            noted.append(f"instructions for some values, behind branches that decide no access, at {where}")
        return [*noted, *sorted(self.remarks), *note_of_folded(places)]

    def columns(self) -> tuple[list[AccessSite], dict[str, Any]]:
        """Everything recorded, as the sites and columns of a `Trace`."""
        self.forget()
        records = [self.sites[index] for index in sorted(self.sites)]
        made = [record.rows.requests() for record in records]
        sites = np.repeat(np.arange(len(records), dtype=np.int32), [len(one) for one in made])
        return [access_site(record, not self.swapped.meet) for record in records], {
            "site": sites,
            "count": concatenate_rows([record.rows.counts for record in records], np.int64),
            "addresses": concatenate_rows([one.addresses for one in made], np.int64, (WARP,)),
            "active": concatenate_rows([one.active for one in made], np.bool_, (WARP,)),
            "partner": concatenate_rows([one.partners for one in made], np.int64, (WARP,)),
            "block": concatenate_rows([one.block for one in made], np.int64),
            "warp": concatenate_rows([one.warp for one in made], np.int32),
            "footprint": self.marks.footprint,
        }


def concatenate_rows(blocks: list[np.ndarray], dtype: type, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Arrays of rows of a shape concatenated, also if there are none."""
    return np.concatenate([np.zeros((0, *shape), dtype), *blocks]).astype(dtype, copy=False)
