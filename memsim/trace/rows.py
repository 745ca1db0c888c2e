"""The distinct requests of one access site, and how often each was made.

In: requests written out. Out: the number of the row that each is. Rows are found by a hash and compared as
they are; where two have one hash, by their bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memsim.arch.units import WARP
from memsim.trace.requests import SiteRequests

#: What tells requests of a site apart: requests to numbers [m, k].
Tell = Callable[[SiteRequests], np.ndarray]

#: Requests that are looked at together, so that what is made of them stays in the processor's cache.
SLICE = 1 << 12


def _random_odd(count: int) -> np.ndarray:
    """Odd 64-bit factors that have nothing to do with each other (SplitMix64, Steele et al. 2014), int64."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    factors: np.ndarray = (state ^ (state >> np.uint64(31))) | np.uint64(1)
    return factors.view(np.int64)


#: One factor for each number that tells a request from others: of a copy, a lane on both sides.
HASH = _random_odd(2 * WARP)


class GrowingColumn:
    """An array that grows at its end, of rows of a shape."""

    def __init__(self, dtype: type, shape: tuple[int, ...] = ()) -> None:
        self.room: np.ndarray = np.empty((0, *shape), dtype)
        self.size = 0

    @property
    def array(self) -> np.ndarray:
        """What is in it."""
        return self.room[: self.size]

    def extend(self, values: np.ndarray) -> None:
        """Put rows at the end."""
        size = self.size + len(values)
        if size > len(self.room):
            room = np.empty((max(size, 2 * len(self.room)), *self.room.shape[1:]), self.room.dtype)
            room[: self.size] = self.array
            self.room = room
        self.room[self.size : size] = values
        self.size = size


class RequestRows:
    """Distinct requests in the order in which they came.

    tell: what tells them apart. folded: that is no more than what they cost. counts: how often each was made,
    as far as `made` was told.
    """

    def __init__(self, tell: Tell, *, folded: bool = False) -> None:
        self.tell = tell
        self.folded = folded
        self.index: dict[int | bytes, int] = {}
        self.by_bytes = False
        self.told: GrowingColumn | None = None
        self.addresses = GrowingColumn(np.int64, (WARP,))
        self.active = GrowingColumn(np.bool_, (WARP,))
        self.partner: GrowingColumn | None = None
        self.block = GrowingColumn(np.int64)
        self.warp = GrowingColumn(np.int32)
        self.counts: np.ndarray = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.addresses.size

    def requests(self) -> SiteRequests:
        """The rows, as requests."""
        partner = None if self.partner is None else self.partner.array
        columns = self.addresses.array, self.active.array
        return SiteRequests(*columns, partner, self.block.array, self.warp.array)

    def made(self, numbers: np.ndarray, times: np.ndarray) -> None:
        """The rows of these numbers were asked for so often; one may stand there twice."""
        missing = len(self) - len(self.counts)
        if missing > 0:
            self.counts = np.concatenate([self.counts, np.zeros(missing, np.int64)])
        np.add.at(self.counts, numbers, times)

    def number(self, requests: SiteRequests, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(numbers of rows, how often each was made) of requests that came `weights` times each [m].

        Those that are new are kept.
        """
        parts = [
            self._number(requests[start : start + SLICE], weights[start : start + SLICE])
            for start in range(0, len(requests), SLICE)
        ]
        if len(parts) == 1:
            return parts[0]
        numbers, counts = zip(*parts)
        return np.concatenate(numbers), np.concatenate(counts)

    def _number(self, requests: SiteRequests, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        told = self.tell(requests)
        first, inverse, numbers = self._find(told)
        fresh = np.flatnonzero(numbers < 0)
        if len(fresh):
            fresh = fresh[np.argsort(first[fresh])]  # in the order in which they came
            numbers[fresh] = len(self) + np.arange(len(fresh))
            self._keep(requests[first[fresh]], told[first[fresh]])
        counts = np.zeros(len(first), np.int64)
        np.add.at(counts, inverse, weights)
        return numbers, counts

    def _find(self, told: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(the first of each distinct row of numbers, which of them each is, its number or -1)."""
        if not self.by_bytes:
            first, inverse = distinct(hashes(told))
            different = told[first]
            numbers = self._numbers(different)
            known = numbers >= 0
            alike = self.told is None or (self.told.array[numbers[known]] == different[known]).all()
            if alike and (len(first) == len(told) or (different[inverse] == told).all()):
                return first, inverse, numbers
            self._by_bytes()
        first, inverse = distinct_rows(told)
        return first, inverse, self._numbers(told[first])

    def _numbers(self, told: np.ndarray) -> np.ndarray:
        """The numbers of rows by their keys, -1 of those that are not there."""
        find = self.index.get
        return np.array([find(key, -1) for key in self._keys(told)], np.int64)

    def _keys(self, told: np.ndarray) -> list[int] | list[bytes]:
        return [row.tobytes() for row in told] if self.by_bytes else hashes(told).tolist()

    def _by_bytes(self) -> None:
        """Two rows have one hash: from now on they are told apart by their bytes."""
        self.by_bytes = True
        self.index = {}
        if self.told is not None:
            self.index.update(zip(self._keys(self.told.array), range(len(self))))

    def _keep(self, requests: SiteRequests, told: np.ndarray) -> None:
        """These are rows of their own, at the end."""
        self.index.update(zip(self._keys(told), range(len(self), len(self) + len(told))))
        if self.told is None:
            self.told = GrowingColumn(np.int64, told.shape[1:])
        self.told.extend(told)
        self.addresses.extend(np.where(requests.active, requests.addresses, 0))
        self.active.extend(requests.active)
        self.block.extend(requests.block)
        self.warp.extend(requests.warp)
        if requests.partner is not None:
            self.partner = self.partner or GrowingColumn(np.int64, (WARP,))
            self.partner.extend(requests.partner)

    def fold(self, tell: Tell) -> RequestRows:
        """Those of them that `tell` tells apart, the first of each kind."""
        rows = RequestRows(tell, folded=True)
        if len(self):
            rows.made(*rows.number(self.requests(), self.counts))
        return rows


def hashes(told: np.ndarray) -> np.ndarray:
    """A number for each row of numbers [m, k]: equal rows have equal ones, others hardly ever; int64 [m]."""
    found: np.ndarray = told @ HASH[: told.shape[1]]  # wraps: modulo 2**64
    return found


def distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where each distinct value stands first, which of them each value is)."""
    if len(values) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return first, inverse


def distinct_rows(told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where each distinct row of numbers stands first, which of them each row is)."""
    first, inverse = distinct(hashes(told))
    if (told[first][inverse] == told).all():
        return first, inverse
    _, first, inverse = np.unique(told, axis=0, return_index=True, return_inverse=True)
    return first, inverse.reshape(-1)
