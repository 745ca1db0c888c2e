"""Checked input of the models, warp requests as rows of 32 lanes; and the lanes of a request compared with
each other: bool [m, lane, lane].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import Arch
from memsim.arch.units import WARP
from memsim.errors import MemsimError

# Requests processed at a time: their keys and flags then stay in the L2 cache.
CHUNK = 4096

#: Bits of a unit that give its place in a line, or its bank; no rule uses more.
LOW_BITS = 2**12 - 1

Lanes = NDArray[np.unsignedinteger]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CheckedRequests:
    """Checked requests. addresses: int64 [n, 32]; active: bool [n, 32] or None for all lanes.

    `shape` is the leading shape of the caller's array, `width` bytes per lane.
    """

    addresses: NDArray[np.int64]
    active: Mask | None
    shape: tuple[int, ...]
    width: int

    def chunks(self, unit: int) -> Iterator[tuple[slice, Lanes, Mask | None]]:
        """(rows, units, active) of a few requests at a time; a unit is `address // unit`, unsigned.

        Equal addresses give equal units, and the 12 low bits are exact for any address, including negative
        ones (they wrap). Units are rebased to 32 bits if they fit, because that sorts faster.

        Raises:
            MemsimError: an active lane is not aligned to the width.
        """
        for start in range(0, len(self.addresses), CHUNK):
            rows = slice(start, start + CHUNK)
            addresses = self.addresses[rows].view(np.uint64)
            active = None if self.active is None else self.active[rows]
            active = None if active is None or active.all() else active
            self._check_alignment(start, addresses, active)
            units = addresses >> np.uint64(unit.bit_length() - 1)
            yield rows, _narrow(units, active), active

    def _check_alignment(self, start: int, addresses: Lanes, active: Mask | None) -> None:
        if self.width == 1:
            return
        if not int(np.bitwise_or.reduce(addresses, axis=None)) & (self.width - 1):
            return
        low_bits = addresses & np.uint64(self.width - 1)
        wrong = low_bits != 0 if active is None else (low_bits != 0) & active
        if not wrong.any():
            return
        row, lane = (int(i) for i in np.argwhere(wrong)[0])
        request = start + row
        raise MemsimError(
            f"misaligned access: request {request}, lane {lane} accesses {self.width} bytes"
            f" at address {self.addresses[request, lane]}",
            hint=f"the address of an access of {self.width} bytes must be a multiple of {self.width}",
        )


def check_requests(
    addresses: ArrayLike, width: int, op: str, active: ArrayLike | None, arch: Arch, space: str
) -> CheckedRequests:
    """Check everything but alignment (see `Requests.chunks`) and flatten to rows of 32 lanes.

    Raises:
        MemsimError: unknown op, a width that was not measured for it, addresses that are not integers with 32
            lanes on the last axis, or an active mask that does not match them.
    """
    _check_op(op, arch, space)
    widths = arch.widths(space, op)
    if width not in widths:
        raise MemsimError(
            f"{space} {op} of {width!r} bytes per lane is not modelled on {arch.name}",
            hint=f"measured: {', '.join(map(str, widths))} bytes",
        )

    lanes = np.asarray(addresses)
    if lanes.dtype.kind not in "iu":
        raise MemsimError(
            f"addresses must be integers, not {lanes.dtype}", hint="byte addresses, such as an int64 array"
        )
    if lanes.ndim == 0 or lanes.shape[-1] != arch.warp:
        raise MemsimError(
            f"addresses have shape {lanes.shape}; the last axis must be the {arch.warp} lanes of a warp",
            hint="one row of 32 byte addresses per warp request; mark inactive lanes with active=",
        )
    shape = lanes.shape[:-1]
    flat = np.ascontiguousarray(lanes.reshape(-1, arch.warp)).astype(np.int64, copy=False)
    return CheckedRequests(flat, _check_active(active, lanes.shape), shape, int(width))


def _narrow(units: Lanes, active: Mask | None) -> Lanes:
    """Units as 32 bits, if those of active lanes are close enough to each other; the low bits are
    unchanged.
    """
    if units.max() < 2**32:
        return units.astype(np.uint32)
    first = int(units.flat[0 if active is None else active.argmax()])
    start = ((first & ~LOW_BITS) - 2**31) % 2**64
    from_here = units - np.uint64(start)  # wraps, as it should
    if from_here.max() >= 2**32:
        far = from_here >= 2**32
        if active is None or (far & active).any():
            return units
    narrow: Lanes = from_here.astype(np.uint32)
    return narrow


def lane_words(mask: Mask) -> Lanes:
    """Lanes as the bits of one word for each row of 8, 16 or 32 of them: unsigned [m]."""
    packed = np.packbits(mask.reshape(-1), bitorder="little")
    return packed.view(f"<u{mask.shape[1] // 8}")


def fill_idle(units: Lanes, active: Mask) -> Lanes:
    """Units with those of inactive lanes replaced by their row's first active one, which adds nothing.

    A row without active lanes is unchanged; the caller counts it as zero.
    """
    rows, lanes = units.shape
    words = lane_words(active)
    first_lane = np.bitwise_count((words & -words) - words.dtype.type(1)) & (lanes - 1)
    first = units.reshape(-1)[np.arange(0, rows * lanes, lanes) + first_lane][:, None]
    off = active.astype(units.dtype)
    off -= off.dtype.type(1)  # all bits of an idle lane; four times as fast as np.where
    filled: Lanes = units ^ first
    filled &= off
    filled ^= units
    return filled


def _check_op(op: str, arch: Arch, space: str) -> None:
    known = arch.ops(space)
    if op in known:
        return
    near = get_close_matches(str(op), known, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    raise MemsimError(
        f"{space} op {op!r} is not modelled on {arch.name}", hint=f"{guess}modelled: {', '.join(known)}"
    )


def _check_active(active: ArrayLike | None, shape: tuple[int, ...]) -> Mask | None:
    if active is None:
        return None
    mask = np.asarray(active)
    if mask.dtype != np.bool_:
        raise MemsimError(f"active must be boolean, not {mask.dtype}", hint="use active.astype(bool)")
    try:
        full = np.broadcast_to(mask, shape)
    except ValueError:
        raise MemsimError(
            f"active has shape {mask.shape}, which does not match addresses of shape {shape}",
            hint="one boolean for each lane of each request",
        ) from None
    return full.reshape(-1, shape[-1])


#: Which lanes come before a lane: bool [lane, lane].
EARLIER = np.tri(WARP, k=-1, dtype=np.bool_)


def equal(keys: Lanes | Counts) -> Mask:
    """Which lanes have the same key."""
    same: Mask = keys[..., :, None] == keys[..., None, :]
    return same


def together(active: Mask) -> Mask:
    """Which lanes are both active."""
    return active[..., :, None] & active[..., None, :]


def first(same: Mask, active: Mask) -> Mask:
    """Which active lanes have no equal active lane before them: bool [m, lane]."""
    lanes = active.shape[-1]
    return active & ~(same & active[:, None, :] & EARLIER[:lanes, :lanes]).any(axis=2)


def distinct(keys: tuple[Lanes | Counts, ...], active: Mask | None) -> Counts:
    """The number of distinct keys of the active lanes [m]; `keys` are columns [m, lanes]."""
    on = np.ones(keys[0].shape, np.bool_) if active is None else active
    found: Counts = np.count_nonzero(first(reduce(np.logical_and, map(equal, keys)), on), axis=1)
    return found
