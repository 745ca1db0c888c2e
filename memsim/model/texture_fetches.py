"""Texture fetches: how many requests, sectors and tag look-ups the texture unit makes of a warp's fetch.

The lanes are served four at a time (a quad), of linear memory eight at a time unless a texel has 16 bytes,
and by some filtered fetches two at a time. Each quad, or eight lanes, is a request. A sector is 32 bytes of
linear or pitched memory, and 16 bytes of each of two rows of an array. A tag is a line of linear memory, and
32 bytes of each of four rows of what has rows. Lanes that are served together ask once for each sector and
each tag. Source: docs/model.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memsim.arch import SM_90, Arch, get_arch
from memsim.arch.texel_places import NOTHING, texels
from memsim.arch.units import LINE, SECTOR, WARP
from memsim.model.checked_requests import Counts, check_requests
from memsim.model.operations import operation

QUAD = 4
#: Bytes of a texel from which on only four lanes are served together in linear memory.
WIDE = 16
#: Bytes along x and rows of a tag, and of a sector of an array.
TAG_ROWS, ARRAY_SECTOR, ARRAY_SECTOR_ROWS = 4, 16, 2
#: No sector, and no tag: of a lane that touches nothing.
_NO_KEY = np.iinfo(np.int64).max
#: More than any texture has rows, and slices.
_ROWS, _SLICES = 1 << 18, 1 << 17
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class TextureCost:
    """Cost of each fetch; int64 arrays of the leading shape of the places.

    requests, sectors, tags: as `l1tex__t_requests_pipe_tex_mem_texture`, `..._sectors_...` and
    `..._set_accesses_...` count them. ideal_sectors: what the texels of each request would fill side by side.
    """

    requests: Counts
    sectors: Counts
    tags: Counts
    ideal_sectors: Counts


def texture_access(
    places: ArrayLike, width: int, op: str, active: ArrayLike | None = None, arch: Arch | str = SM_90
) -> TextureCost:
    """Requests, sectors and tags of warp fetches.

    Args:
        places: integers (..., 32): of `fetch` bytes from the texture's first one, else as
            `memsim.arch.texel_places` packs them; -1 of a lane that touches nothing.
        width: bytes of a texel: 1, 2, 4, 8 or 16.
        op: fetch, point, point_pitched, filtered, filtered_pitched or gather.
        active: as `global_access`.
        arch: the chip whose measured rules to use, or its name.

    Returns:
        TextureCost of int64 arrays (...).

    Raises:
        MemsimError: as `global_access`.
    """
    asked = check_requests(places, width, op, active, get_arch(arch), "texture")
    lanes = 2 * QUAD if op == "fetch" and width < WIDE else QUAD
    columns = np.zeros((4, len(asked.addresses)), np.int64)
    for start in range(0, len(asked.addresses), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        number = asked.addresses[rows]
        mask = number != NOTHING if asked.active is None else asked.active[rows] & (number != NOTHING)
        in_groups = mask.reshape(len(number), WARP // lanes, lanes)
        columns[0, rows] = in_groups.any(axis=2).sum(axis=1)
        texel, sector, tag, touched = _parts(number, width, op)
        touched &= mask[..., None]
        for column, key in ((1, sector), (2, tag), (3, texel)):
            grouped = np.where(touched, key, _NO_KEY).reshape(len(number), WARP // lanes, -1)
            found = _distinct(grouped)
            columns[column, rows] = (-(-found * width // SECTOR) if column == 3 else found).sum(axis=1)
    return TextureCost(*(column.reshape(asked.shape) for column in columns))


def touched_sectors(
    places: NDArray[np.int64], width: int, op: str, active: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Numbers of the sectors of a texture that lanes touch, each once, ascending [k].

    Args:
        places, active: [n, 32]; the places as `texture_access` takes them.
        width: bytes of a texel.
        op: of any texture.
    """
    _, sector, _, touched = _parts(places, width, op)
    return np.unique(sector[touched & (active & (places != NOTHING))[..., None]])


@dataclass(frozen=True, slots=True, eq=False)
class TextureLimits:
    """Limits of the cost of each fetch that is served two lanes at a time; int64 arrays [n]."""

    requests: Counts
    fewest_sectors: Counts
    most_sectors: Counts
    fewest_tags: Counts
    most_tags: Counts
    ideal_sectors: Counts


def texture_limits(
    places: NDArray[np.int64], width: int, op: str, active: NDArray[np.bool_]
) -> TextureLimits:
    """Limits of the sectors and tags of fetches of which two lanes of each four are served together: the
    first two and the last two, or the even ones and the odd ones. Requests and ideal sectors are certain.

    Args:
        places, active: [n, 32]; the places as `memsim.arch.texel_places` packs them.
        width: bytes of a texel.
        op: filtered_3d, filtered_wide, filtered_wide_pitched or filtered_wide_one.
    """
    passes = operation("texture", op).passes
    columns = np.zeros((6, len(places)), np.int64)
    for start in range(0, len(places), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        number = places[rows]
        mask = active[rows] & (number != NOTHING)
        quads = len(number), WARP // QUAD
        columns[0, rows] = mask.reshape(*quads, QUAD).any(axis=2).sum(axis=1)
        texel, sector, tag, touched = _parts(number, width, op)
        touched &= mask[..., None]
        found = []
        for key in (sector, tag, texel):
            kept = np.where(touched, key, _NO_KEY).reshape(*quads, QUAD, -1)
            ways = (kept, kept[:, :, (0, 2, 1, 3)])
            found.append([_distinct(way.reshape(len(number), WARP // 2, -1)) for way in ways])
        found[2] = [-(-texels * width // SECTOR) for texels in found[2]]
        of_quads = [[way.reshape(*quads, 2).sum(axis=2) for way in ways] for ways in found]
        for place, (near, far) in zip((1, 3), of_quads):
            columns[place, rows] = passes * np.minimum(near, far).sum(axis=1)
            columns[place + 1, rows] = passes * np.maximum(near, far).sum(axis=1)
        columns[5, rows] = passes * np.minimum(*of_quads[2]).sum(axis=1)
    return TextureLimits(*columns)


def _parts(
    number: NDArray[np.int64], width: int, op: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Of each lane's texels [n, 32, m] the texel, its sector and its tag, and which are touched."""
    if op == "fetch":
        byte = number[..., None]
        return byte, byte // SECTOR, byte // LINE, np.ones(byte.shape, np.bool_)
    places, touched = texels(number)
    x, y, z = (places[..., axis] for axis in range(3))
    byte = x * width

    def key(columns: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = (columns * _SLICES + z) * _ROWS + rows
        return found

    if op.endswith("_pitched"):
        sector = key(byte // SECTOR, y)
    else:
        sector = key(byte // ARRAY_SECTOR, y // ARRAY_SECTOR_ROWS)
    return key(x, y), sector, key(byte // SECTOR, y // TAG_ROWS), touched


def _distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different numbers but `_NO_KEY` each group has [n, groups]."""
    in_order = np.sort(keys, axis=2)
    new = np.ones(in_order.shape, np.bool_)
    new[..., 1:] = in_order[..., 1:] != in_order[..., :-1]
    counts: NDArray[np.int64] = np.count_nonzero(new & (in_order != _NO_KEY), axis=2)
    return counts
