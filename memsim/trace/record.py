"""The recorder: listens to the emulator and keeps each distinct request once.

In: calls of `Listener` (simt/listener.py). Out: `Trace`.
An address that is a sum of a block's part and a thread's part is never written out for all
threads: blocks whose part is the same modulo 128 bytes ask for the same thing, so one of them
stands for all. A loop that comes back with the same parts is only counted. What is kept does not grow with
the launch: events are added up as soon as they are many, and where an access makes more different requests
than can be kept, one of each kind that costs the same is (`Alike`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from memsim.ptx.demangle import short_name
from memsim.state.registers import Part, Poison, Sum, to_array, to_bools
from memsim.trace.trace import AccessSite
from memsim.trace.writers import OPS, Writers

#: Nothing in the model changes when all addresses of a request move by this many bytes.
PERIOD = 128

#: More than shared memory has: requests to it are told apart by their addresses themselves.
APART = 2**20

#: Odd 64-bit factors, one for each lane on both sides of a copy, to tell rows apart by one number
#: (multiples of the golden ratio).
HASH = ((np.arange(1, 129, 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) | np.uint64(1)).view(np.int64)

#: The other side of what is no copy.
NOWHERE = np.full(32, -1, np.int64)

#: Addresses and the threads that ask for them: one pair, or for a copy the site's own and the other side's.
Sides = list[tuple[int | Sum, Any]]


#: What may stand for what: (space, op, width, addresses, active, partner) of requests to numbers [n, k], the
#: same for those that cost the same.
Alike = Callable[[str, str, int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: Distinct requests that are kept of a launch, 600 bytes each.
MOST_ROWS = 1 << 17
#: Bytes of events that are remembered, so that they are counted and not looked at again.
MOST_REMEMBERED = 1 << 26
#: Masks whose warps are counted once.
MOST_MASKS = 1 << 16


class Site(Protocol):
    """What the recorder knows of a place that accesses memory: its number, and what an access is."""

    @property
    def index(self) -> int: ...

    @property
    def instruction(self) -> Any: ...

    @property
    def op(self) -> str: ...

    @property
    def space(self) -> str: ...

    @property
    def width(self) -> int: ...


class OtherSide(Protocol):
    """The other end of a copy: the lanes' addresses there, and the lanes that read."""

    @property
    def address(self) -> int | Sum: ...

    @property
    def active(self) -> Any: ...


class Chunk(Protocol):
    """Blocks that run at once: their linear numbers, and the threads of each, padded to whole warps."""

    @property
    def blocks(self) -> np.ndarray: ...

    @property
    def threads(self) -> int: ...


@dataclass
class Tally:
    """One kind of event: the requests it makes (rows and how often) and how often it came."""

    site: int
    rows: np.ndarray
    counts: np.ndarray
    hits: int = 0


@dataclass
class Rows:
    """The distinct requests of one site, in blocks as they came: addresses and lanes [k, 32], the others [k].

    index: the number of each row by what tells it from others. counts: how often each was made, so far.
    folded: rows are told apart only by what they cost.
    """

    index: dict[bytes, int] = field(default_factory=dict)
    addresses: list[np.ndarray] = field(default_factory=list)
    active: list[np.ndarray] = field(default_factory=list)
    partner: list[np.ndarray] = field(default_factory=list)
    block: list[np.ndarray] = field(default_factory=list)
    warp: list[np.ndarray] = field(default_factory=list)
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    folded: bool = False

    def numbers(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the row number of each of these keys [m, k], which of them are of rows that are to be added)."""
        numbers = np.empty(len(keys), np.int64)
        fresh = []
        for i, key in enumerate(keys):
            known = len(self.index)
            numbers[i] = self.index.setdefault(key.tobytes(), known)
            if len(self.index) > known:
                fresh.append(i)
        return numbers, np.array(fresh, np.int64)

    def add(
        self,
        addresses: np.ndarray,
        active: np.ndarray,
        partner: np.ndarray,
        block: np.ndarray,
        warp: np.ndarray,
    ) -> None:
        """The rows that the last `numbers` had not."""
        self.addresses.append(addresses)
        self.active.append(active)
        self.partner.append(partner)
        self.block.append(block)
        self.warp.append(warp)

    def made(self, rows: np.ndarray, times: np.ndarray) -> None:
        """These rows were asked for so often; no row stands there twice."""
        missing = len(self.index) - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros(missing, np.int64)])
        self.counts[rows] += times

    def columns(self) -> tuple[np.ndarray, ...]:
        """Addresses, active, partner, block and warp of all rows."""
        return (
            stacked(self.addresses, np.int64),
            stacked(self.active, np.bool_),
            stacked(self.partner, np.int64),
            joined(self.block, np.int64),
            joined(self.warp, np.int32),
        )


@dataclass
class SiteRecord:
    """What is known of one site so far."""

    site: Site
    instructions: int = 0
    arrays: set[str] = field(default_factory=set)
    unresolved: str | None = None
    unresolved_requests: int = 0
    rows: Rows = field(default_factory=Rows)


class Recorder:
    """A listener that keeps what the model needs, and nothing twice.

    alike: tells requests that cost the same from others; such are kept once where there are too many. apart:
    shared requests with a multiple of 128 bytes between them are rows of their own.
    """

    def __init__(self, alike: Alike | None = None, *, apart: bool = False) -> None:
        self.alike = alike
        self.shared_period = APART if apart else PERIOD
        self.sites: dict[int, SiteRecord] = {}
        self.tallies: list[Tally] = []
        self.seen: dict[Any, Tally] = {}
        self.by_content: dict[Any, Tally] = {}
        self.warp_counts: dict[int, int] = {}
        self.blocks: np.ndarray = np.zeros(0, np.int64)
        self.warps = 1
        self.requests_aside: Counter[str] = Counter()
        self.not_sure: set[str] = set()
        self.ran: Counter[tuple[int, int]] = Counter()
        self.writers = Writers()
        self.chunks = 0
        self.kept_rows = 0
        self.remembered = 0

    def start_chunk(self, engine: Chunk) -> None:
        """A new chunk of blocks begins; keys of the last one are of no more use."""
        self.forget()
        self.chunks += 1
        self.blocks = engine.blocks
        self.warps = engine.threads // 32
        self.warp_counts = {}

    def forget(self) -> None:
        """Adds up the events so far; those that come again are looked at again."""
        for tally in self.tallies:
            self.sites[tally.site].rows.made(tally.rows, tally.counts * tally.hits)
        self.tallies = []
        self.seen = {}
        self.by_content = {}
        self.remembered = 0

    def make_room(self) -> None:
        """Forgets, and folds the requests of the accesses that make most, as long as they are too many."""
        self.forget()
        unfolded = sorted(
            (record for record in self.sites.values() if not record.rows.folded),
            key=lambda record: len(record.rows.index),
        )
        while self.alike is not None and self.kept_rows > MOST_ROWS // 2 and unfolded:
            record = unfolded.pop()
            before = len(record.rows.index)
            record.rows = self.folded(record)
            self.kept_rows -= before - len(record.rows.index)

    def folded(self, record: SiteRecord) -> Rows:
        """The site's rows with one of each kind that costs the same: the one that was seen first."""
        rows = Rows(folded=True)
        columns = record.rows.columns()
        keys = self.kinds(record, *columns[:3])
        first, inverse = distinct_rows(keys) if len(keys) else (np.zeros(0, np.int64),) * 2
        order = np.argsort(first)
        numbers, _ = rows.numbers(keys[first[order]])
        rows.add(*(column[first[order]] for column in columns))
        place = np.empty(len(first), np.int64)
        place[order] = numbers
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, place[inverse], record.rows.counts)
        rows.made(np.arange(len(first)), counts)
        return rows

    def kinds(
        self, record: SiteRecord, addresses: np.ndarray, active: np.ndarray, partner: np.ndarray
    ) -> np.ndarray:
        """What tells requests of a site apart that is folded."""
        assert self.alike is not None
        site = record.site
        return np.ascontiguousarray(self.alike(site.space, site.op, site.width, addresses, active, partner))

    def access(
        self,
        site: Site,
        address: int | Sum,
        mask: Any,
        active: Any,
        arrays: frozenset[str],
        other: OtherSide | None = None,
    ) -> None:
        """Count one execution of a site."""
        record = self.sites.get(site.index)
        if record is None:
            record = self.sites[site.index] = SiteRecord(site)
        record.instructions += self.count_warps(mask)
        if active is False:
            return
        record.arrays |= arrays
        if site.space == "shared" and site.op in OPS and self.chunks == 1:
            self.writers.wrote(address, site.width, active, self.warps * 32)
        own_period, other_period = self.periods(site)
        key: Any = (site.index, *identity(address, active, own_period))
        if other is not None:
            key = (*key, *identity(other.address, other.active, other_period))
        tally = self.seen.get(key)
        if tally is None:
            sides = (
                [(address, active)] if other is None else [(address, active), (other.address, other.active)]
            )
            tally = self.seen[key] = self.tally(record, sides)
        tally.hits += 1
        if self.kept_rows > MOST_ROWS or self.remembered > MOST_REMEMBERED:
            self.make_room()

    def periods(self, site: Site) -> tuple[int, int]:
        """By how many bytes requests of one row differ: on the site's own side, on a copy's other one."""
        own, other = self.shared_period, PERIOD
        return (own, other) if site.space == "shared" else (other, own)

    def unknown(self, site: Site, poison: Poison, mask: Any, active: Any) -> None:
        """Count an execution whose addresses nobody knows."""
        record = self.sites.setdefault(site.index, SiteRecord(site))
        record.instructions += self.count_warps(mask)
        record.unresolved_requests += self.count_warps(active)
        record.unresolved = record.unresolved or poison.story()

    def aside(self, what: str, active: Any) -> None:
        """Count requests that go another way than through shared or global memory's pipe."""
        self.requests_aside[what] += self.count_warps(active)

    def unsure(self, what: str) -> None:
        """Keep what the compiler decides."""
        self.not_sure.add(what)

    def executed(self, start: int, stop: int, mask: Any) -> None:
        """Count warps that execute the instructions from number `start` up to `stop`."""
        self.ran[start, stop] += self.count_warps(mask)

    def executions(self, instructions: int) -> np.ndarray:
        """How often a warp executed each of so many instructions, int64 [instructions]."""
        found = np.zeros(instructions, np.int64)
        for (start, stop), warps in self.ran.items():
            found[start:stop] += warps
        return found

    @property
    def notes(self) -> list[str]:
        """What was seen and is not in the trace."""
        aside = [f"{what} ({count:,} requests)" for what, count in self.requests_aside.items()]
        places = [access_site(record) for record in self.sites.values() if record.rows.folded]
        named = ", ".join(dict.fromkeys(f"{PurePath(site.file).name}:{site.line}" for site in places))
        folded = (
            f"from pictures all but one of the requests that cost the same, where they are too many ({named})"
        )
        return [*aside, folded] if places else aside

    def count_warps(self, mask: Any) -> int:
        """How many warps have a thread in the mask."""
        blocks = len(self.blocks)
        if mask is True:
            return blocks * self.warps
        if mask is False:
            return 0
        if mask.uid not in self.warp_counts:
            if len(self.warp_counts) > MOST_MASKS:
                self.warp_counts = {}
            array = np.broadcast_to(mask.array, (mask.array.shape[0], self.warps * 32))
            warps = int(array.reshape(array.shape[0], -1, 32).any(2).sum())
            self.warp_counts[mask.uid] = warps * (blocks if array.shape[0] == 1 else 1)
        return self.warp_counts[mask.uid]

    def tally(self, record: SiteRecord, sides: Sides) -> Tally:
        """The requests of an event that was not seen before."""
        contents = [content(*side, period) for side, period in zip(sides, self.periods(record.site))]
        key = None if None in contents else (record.site.index, *contents)
        if key is not None and key in self.by_content:
            return self.by_content[key]
        tally = self.new_tally(record, sides)
        self.tallies.append(tally)
        self.remembered += 500 + tally.rows.nbytes + tally.counts.nbytes
        if key is not None:
            self.by_content[key] = tally
            self.remembered += sum(len(part) for one in contents for part in one if isinstance(part, bytes))
        return tally

    def new_tally(self, record: SiteRecord, sides: Sides) -> Tally:
        """Write the event's requests out, one block for each class of blocks, and number the rows."""
        chosen, weights = self.block_classes(sides, self.periods(record.site))
        written = [
            (self.written_out(to_array(address), chosen), self.written_out(to_bools(active), chosen))
            for address, active in sides
        ]
        block_of = np.repeat(chosen, self.warps)
        weight_of = np.repeat(weights, self.warps)
        warp_of = np.tile(np.arange(self.warps), len(chosen))
        used = written[0][1].any(1)
        if not used.all():
            written = [(addresses[used], lanes[used]) for addresses, lanes in written]
            block_of, weight_of, warp_of = block_of[used], weight_of[used], warp_of[used]
        return self.numbered(record, written, self.blocks[block_of], warp_of, weight_of)

    def block_classes(self, sides: Sides, periods: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Blocks that stand for others (index in the chunk), and for how many each."""
        count = len(self.blocks)
        inside = np.arange(count)
        residues = []
        for (address, active), period in zip(sides, periods):
            rows = active.array if isinstance(active, Part) else None
            differs = isinstance(address, Sum) and address.f is not None
            if differs or (rows is not None and rows.shape[0] > 1 and rows.shape[1] > 1):
                return np.arange(count), np.ones(count, np.int64)
            if rows is not None and rows.shape[0] > 1:
                residues.append(rows[:, 0].astype(np.int64))
            if isinstance(address, Sum) and address.u is not None:
                residues.append((address.u.array[:, 0] + address.s) % period)
        own = sides[0][1]
        if isinstance(own, Part) and own.array.shape[0] > 1:
            inside = inside[own.array[:, 0]]
        if not residues:
            return inside[:1], np.array([len(inside)], np.int64)
        classes = residues[0][inside]
        for residue in residues[1:]:
            classes = classes * max(periods) + residue[inside]
        _, first, counts = np.unique(classes, return_index=True, return_counts=True)
        return inside[first], counts

    def written_out(self, array: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The chosen blocks' rows as (requests, 32)."""
        rows = array[chosen] if array.shape[0] > 1 else array
        return np.broadcast_to(rows, (len(chosen), self.warps * 32)).reshape(-1, 32)

    def numbered(
        self,
        record: SiteRecord,
        sides: list[tuple[np.ndarray, np.ndarray]],
        blocks: np.ndarray,
        warps: np.ndarray,
        weights: np.ndarray,
    ) -> Tally:
        """Give every distinct request of the site its row number; `sides`: addresses and lanes [m, 32]."""
        rows = record.rows
        (addresses, lanes), *other = sides
        if rows.folded:
            keys = self.kinds(record, addresses, lanes, partners(other, lanes.shape))
        else:
            periods = self.periods(record.site)
            keys = np.hstack([relative_to_lowest(*side, period) for side, period in zip(sides, periods)])
        first, inverse = distinct_rows(keys)
        numbers, fresh = rows.numbers(keys[first])
        if len(fresh):
            new = first[fresh]
            of_new = [(address[new], on[new]) for address, on in other]
            rows.add(
                np.where(lanes[new], addresses[new], 0),
                lanes[new],
                partners(of_new, (len(new), 32)),
                blocks[new],
                warps[new],
            )
            self.kept_rows += len(fresh)
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, inverse, weights)
        return Tally(record.site.index, numbers, counts)

    def requests(
        self,
        site: Site,
        addresses: np.ndarray,
        active: np.ndarray,
        blocks: np.ndarray,
        warps: np.ndarray,
        other: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Count requests that are written out: addresses and active lanes [m, 32], and who made each [m].

        other: of copies the addresses on the other side, and the lanes that have one.
        """
        record = self.sites.setdefault(site.index, SiteRecord(site))
        record.instructions += len(addresses)
        made = active.any(1)
        if not made.any():
            return
        sides = [(addresses[made], active[made])]
        if other is not None:
            sides.append((other[0][made], other[1][made]))
        tally = self.numbered(record, sides, blocks[made], warps[made], np.ones(int(made.sum()), np.int64))
        tally.hits = 1
        self.tallies.append(tally)
        if self.kept_rows > MOST_ROWS:
            self.make_room()

    def columns(self) -> tuple[list[AccessSite], dict[str, np.ndarray]]:
        """Everything heard, as the sites and columns of a `Trace`."""
        self.forget()
        records = [self.sites[index] for index in sorted(self.sites)]
        columns = [record.rows.columns() for record in records]
        counts = [record.rows.counts for record in records]
        dtypes = np.int64, np.bool_, np.int64, np.int64, np.int32
        names = "addresses", "active", "partner", "block", "warp"
        joint = {
            name: joined([column[i] for column in columns], dtype, (32,) if i < 3 else ())
            for i, (name, dtype) in enumerate(zip(names, dtypes))
        }
        sites = np.repeat(np.arange(len(records), dtype=np.int32), [len(count) for count in counts])
        return [access_site(record) for record in records], {
            "site": sites,
            "count": joined(counts, np.int64),
            **joint,
        }


def identity(address: int | Sum, active: Any, period: int) -> tuple[Any, ...]:
    """What two events of a loop have in common if they ask for the same, a period further on or not."""
    lanes = active.uid if isinstance(active, Part) else -int(active)  # no uid is 0 or below
    if not isinstance(address, Sum):
        return address % period, 0, 0, 0, lanes
    u, v, f = address.u, address.v, address.f
    return address.s % period, u.uid if u else 0, v.uid if v else 0, f.uid if f else 0, lanes


def content(address: int | Sum, active: Any, period: int) -> Any:
    """The same by content, for what differs between threads: loops make it anew. None: it is no use here."""
    if not isinstance(address, Sum) or address.v is None or address.f is not None:
        return None
    if isinstance(active, Part) and active.array.shape[0] != 1:
        return None
    blocks = address.u.uid if address.u else 0
    lanes = active.digest if isinstance(active, Part) else active
    return address.s % period, blocks, address.v.digest, lanes


def relative_to_lowest(addresses: np.ndarray, lanes: np.ndarray, period: int) -> np.ndarray:
    """Addresses less the period that the lowest of `lanes` is in, -1 in the others; both [m, 32]."""
    lowest = np.where(lanes, addresses, np.iinfo(np.int64).max).min(1, keepdims=True)
    return np.where(lanes, addresses - lowest // period * period, -1)


def partners(other: list[tuple[np.ndarray, np.ndarray]], shape: tuple[int, ...]) -> np.ndarray:
    """The other side's addresses of requests, -1 in lanes that have none [m, 32]."""
    if not other:
        return np.broadcast_to(NOWHERE, shape)
    ((addresses, lanes),) = other
    return np.where(lanes, addresses, -1)


def stacked(blocks: list[np.ndarray], dtype: type) -> np.ndarray:
    """Blocks of rows of 32 as one array, also where there is none."""
    return joined(blocks, dtype, (32,))


def joined(blocks: list[np.ndarray], dtype: type, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Blocks of rows of a shape as one array, also where there is none."""
    return np.concatenate([np.zeros((0, *shape), dtype), *blocks]).astype(dtype, copy=False)


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first index of each distinct row, which of them each row is)."""
    if len(rows) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    hashed = rows @ HASH[: rows.shape[1]]  # wraps: a hash modulo 2**64
    _, first, inverse = np.unique(hashed, return_index=True, return_inverse=True)
    if (rows == rows[first][inverse]).all():
        return first, inverse
    # Two different rows with one hash: sort the rows themselves.
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)


def access_site(record: SiteRecord) -> AccessSite:
    """A site as the trace names it."""
    instruction = record.site.instruction
    source = instruction.source
    return AccessSite(
        instruction=instruction.text,
        file=source.file if source else "",
        line=instruction.line,
        column=instruction.column,
        op=record.site.op,
        space=record.site.space,
        width=record.site.width,
        array="|".join(sorted(map(short_name, record.arrays))),
        instructions=record.instructions,
        unresolved=record.unresolved,
        unresolved_requests=record.unresolved_requests,
        address=instruction.address,
    )
