"""What each warp of some blocks executes, in its order, and the requests to global memory that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from memsim.access import Chunk, Site, SiteAccess, SiteRequests
from memsim.arch.units import WARP
from memsim.model.texture_fetches import touched_sectors
from memsim.state.parts import Mask, Part
from memsim.state.poison import Poison
from memsim.state.predicates import ScatteredLanes, to_bools, to_words
from memsim.state.registers import to_array
from memsim.state.sums import Int
from memsim.time.launch_survey import Patience, Progress
from memsim.time.printing import CALL, Calls
from memsim.trace.record import Recorder

#: Requests to global memory that are kept, 300 bytes each. Later ones get the mean cost.
MOST_REQUESTS = 300_000
#: Spaces whose requests are.
KEPT = frozenset({"global", "local"})


@dataclass(frozen=True, slots=True)
class GlobalRequests:
    """Requests to global and local memory in the order of their execution, warps of blocks side by side.

    op: number of the instruction [m]. warp: number of the warp, blocks one after the other [m]. event: number
    of the execution, which warps that run side by side share [m]. addresses: bytes, int64 [m, 32]. active:
    bool [m, 32]; a request without one was executed, but asked for nothing. progress: instructions that its
    warp had executed [m].
    """

    op: np.ndarray
    warp: np.ndarray
    event: np.ndarray
    addresses: np.ndarray
    active: np.ndarray
    progress: np.ndarray

    def __len__(self) -> int:
        return len(self.op)

    def __getitem__(self, chosen: np.ndarray) -> GlobalRequests:
        """Some of them."""
        return GlobalRequests(*(getattr(self, one.name)[chosen] for one in fields(self)))


class StreamRecorder(Recorder):
    """A recorder that also keeps what each warp of the blocks executes, and its requests.

    per_block: warps. chosen: linear numbers of the blocks, ascending; of others that run nothing is kept.
    incomplete: numbers of instructions of which not all requests are known; beyond: of those that made too
    many, of which the first ones are kept. requests_made: by each instruction of which requests are kept.
    prints: calls of printf. fetched: of each texture the sectors that fetches touch.
    """

    def __init__(
        self, per_block: int, chosen: np.ndarray, patience: Patience, *how: Any, **more: Any
    ) -> None:
        super().__init__(*how, **more)
        self.per_block, self.chosen = per_block, chosen
        self.stretches_run: list[tuple[int, int, int]] = []  # start, stop, number of the mask
        self.masks: list[np.ndarray] = []
        self.numbers: dict[int, int] = {}
        self.rows: np.ndarray = np.zeros((0, 0), np.int64)
        self.kept: list[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self.progress = Progress(patience)
        self.prints: list[Calls] = []
        self.fetched: dict[str, list[np.ndarray]] = {}
        self.requests_made = Counter[int]()
        self.kept_requests = 0
        self.incomplete: set[int] = set()
        self.beyond: set[int] = set()

    def start_chunk(self, chunk: Chunk) -> None:
        """Rows are blocks, or warps."""
        super().start_chunk(chunk)
        first = np.searchsorted(self.chosen, chunk.blocks) * self.per_block + chunk.first[:, 0] // WARP
        self.rows = first[:, None] + np.arange(chunk.threads // WARP)
        self.rows[~np.isin(chunk.blocks, self.chosen)] = -1
        self.numbers = {}
        self.progress.start_chunk(*self.rows.shape)

    def executed(self, start: int, stop: int, mask: Mask) -> None:
        """Some warps execute the instructions from number `start` up to `stop`."""
        super().executed(start, stop, mask)
        if mask is False:
            return
        key = mask.uid if isinstance(mask, Part) else 0
        if key not in self.numbers:
            self.numbers[key] = len(self.masks)
            self.masks.append(self.warps_in(mask))
        self.progress.executed(start, stop, mask)
        self.stretches_run.append((start, stop, self.numbers[key]))

    def warps_in(self, mask: Mask) -> np.ndarray:
        """The warps with a lane in a mask."""
        found: np.ndarray = self.rows[np.broadcast_to(to_words(mask), self.rows.shape) != 0]
        return found[found >= 0]

    def access(self, made: SiteAccess) -> Callable[[], bool] | None:
        """Keep the requests of an access to global or local memory; a copy from there is told as one, too. Of
        fetches the sectors of their textures are kept.
        """
        again = super().access(made)
        if made.site.space == "texture":
            whole = (len(self.rows), self.rows.shape[1] * WARP)
            active = np.broadcast_to(to_bools(made.active), whole) & np.repeat(self.rows >= 0, WARP, axis=1)
            places = np.broadcast_to(to_array(made.address), whole).reshape(-1, WARP)
            (name,) = made.arrays
            touched = touched_sectors(places, made.site.width, made.site.access, active.reshape(-1, WARP))
            self.fetched.setdefault(name, []).append(touched)
        if made.site.space not in KEPT or made.site.access.startswith("bulk_"):
            return again
        self.keep(made.site, made.mask, made.address, made.active)
        return None

    def keep(self, site: Site, mask: Mask, address: Int, active: Mask) -> None:
        """Keep the requests of the warps in a mask."""
        op = site.place
        shape = self.rows.shape
        executes = (np.broadcast_to(to_words(mask), shape) != 0) & (self.rows >= 0)
        count = int(np.count_nonzero(executes))
        if op in self.incomplete or self.are_too_many(op, count):
            return
        whole = (shape[0], shape[1] * WARP)
        lanes = np.broadcast_to(to_bools(active), whole).reshape(*shape, WARP)[executes]
        places = np.broadcast_to(to_array(address), whole).reshape(*shape, WARP)[executes]
        self.kept.append((op, self.rows[executes], places, lanes, self.progress.before(op)[executes]))
        self.kept_requests += count

    def scattered(
        self, site: Site, address: np.ndarray, lanes: ScatteredLanes, warps: int, arrays: frozenset[str]
    ) -> None:
        """Of warps without an active lane it is not known which they are: they are left out."""
        super().scattered(site, address, lanes, warps, arrays)
        op, count = site.place, len(lanes.counts)
        if site.space not in KEPT or op in self.incomplete:
            return
        if self.are_too_many(op, count):
            return
        places, active = np.zeros((count, WARP), np.int64), np.zeros((count, WARP), np.bool_)
        row = np.repeat(np.arange(count), lanes.counts)
        column = lanes.lanes & (WARP - 1)
        places[row, column], active[row, column] = address, True
        done, whose = (each.reshape(-1)[lanes.warps] for each in (self.progress.before(op), self.rows))
        mine = whose >= 0
        self.kept.append((op, whose[mine], places[mine], active[mine], done[mine]))
        self.kept_requests += count

    def are_too_many(self, op: int, count: int) -> bool:
        """Whether so many requests more are; then no more of the instruction are kept."""
        self.requests_made[op] += count
        if self.kept_requests + count > MOST_REQUESTS:
            self.beyond.add(op)
        return op in self.beyond

    def times_kept(self, op: int) -> float:
        """How many times as many requests as are kept an instruction makes."""
        if op not in self.beyond:
            return 1.0
        kept = sum(len(warps) for one, warps, *_ in self.kept if one == op)
        return self.requests_made[op] / max(kept, 1)

    def requests(self, site: Site, requests: SiteRequests) -> None:
        """Requests that are written out already, of other warps than those that execute the access."""
        super().requests(site, requests)
        self.incomplete.add(site.place)

    def uncounted(self, what: str, active: Mask) -> None:
        """Keep who calls printf."""
        super().uncounted(what, active)
        if what == CALL:
            words = np.broadcast_to(to_words(active), self.rows.shape)
            kept = (words != 0) & (self.rows >= 0)
            self.prints.append(Calls(self.rows[kept], words[kept]))

    def unknown(self, site: Site, poison: Poison, mask: Mask, active: Mask) -> None:
        """Its addresses are not known."""
        super().unknown(site, poison, mask, active)
        self.incomplete.add(site.place)

    # --- what was kept -----------------------------------------------------------------------

    @property
    def texture_sectors(self) -> int:
        """Different ones that are fetched, of all textures."""
        return sum(len(np.unique(np.concatenate(touched))) for touched in self.fetched.values())

    def streams(self) -> list[np.ndarray]:
        """Numbers of the instructions of each warp, int32 [executed]; equal streams are one array."""
        starts, stops, masks = np.array(self.stretches_run, np.int64).reshape(-1, 3).T
        inside = np.zeros((len(self.chosen) * self.per_block, len(self.masks)), np.bool_)
        for number, warps in enumerate(self.masks):
            inside[warps, number] = True
        made: dict[bytes, np.ndarray] = {}
        found = []
        for row in inside:
            key = np.packbits(row).tobytes()
            if key not in made:
                run = row[masks]
                made[key] = _joined(starts[run], stops[run])
            found.append(made[key])
        return found

    def global_requests(self) -> GlobalRequests:
        """All that were kept of instructions whose requests are known."""
        kept = [(number, *one) for number, one in enumerate(self.kept) if one[0] not in self.incomplete]
        sizes = [len(warps) for _, _, warps, *_ in kept]
        empty = np.zeros((0, WARP), np.int64)
        return GlobalRequests(
            op=np.repeat(np.array([op for _, op, *_ in kept], np.int64), sizes),
            warp=np.concatenate([empty[:, 0], *(warps for _, _, warps, *_ in kept)]),
            event=np.repeat(np.array([number for number, *_ in kept], np.int64), sizes),
            addresses=np.concatenate([empty, *(places for _, _, _, places, *_ in kept)]),
            active=np.concatenate([empty.astype(np.bool_), *(lanes for *_, lanes, _ in kept)]),
            progress=np.concatenate([empty[:, 0], *(done for *_, done in kept)]),
        )


def _joined(starts: np.ndarray, stops: np.ndarray) -> np.ndarray:
    """All numbers from each start up to its stop."""
    lengths = stops - starts
    before = np.cumsum(lengths) - lengths
    found: np.ndarray = np.repeat(starts - before, lengths) + np.arange(lengths.sum())
    return found.astype(np.int32)
