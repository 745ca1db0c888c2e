"""From the coordinates of a texture fetch to the texels that it touches. Source: docs/model.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memsim.arch.texel_places import FIRST, NEXT, NONE, packed
from memsim.argument_types import Texture

#: A filtered fetch rounds its coordinates to so many parts of a texel.
PARTS = 256
#: By how much of its size the chip's rounding of a normalized coordinate may differ from ours.
ROUNDING = 2.0**-22
#: Farther outside than any texture is large; floats as large count whole texels.
FAR = 2.0**40


@dataclass(frozen=True, slots=True)
class Touched:
    """What lanes touch.

    places: the texels, as `memsim.arch.texel_places` packs them; in linear memory the texel. inside: lanes
    that touch any. doubtful: lanes for which it was not measured which texels the chip takes.
    """

    places: np.ndarray
    inside: np.ndarray
    doubtful: np.ndarray


@dataclass(frozen=True, slots=True)
class _Axis:
    first: np.ndarray
    second: np.ndarray
    inside: np.ndarray
    doubtful: np.ndarray


def fetched(texture: Texture, index: np.ndarray) -> Touched:
    """Texels of linear memory by number: none outside."""
    inside = (index >= 0) & (index < texture.size[0])
    return Touched(np.where(inside, index, 0).astype(np.int64), inside, np.zeros((1, 1), np.bool_))


def sampled(
    texture: Texture, coordinates: Sequence[np.ndarray], layer: np.ndarray | int, gathers: bool
) -> Touched:
    """Texels at coordinates, floats along x, y and z. gathers: it takes two texels along x and y, as a
    filtered fetch may.
    """
    axes = [_axis(texture, at, extent, gathers) for at, extent in zip(coordinates, texture.size)]
    inside = np.logical_and.reduce(np.broadcast_arrays(*(axis.inside for axis in axes)))
    doubtful = np.logical_or.reduce(np.broadcast_arrays(*(axis.doubtful for axis in axes)))
    first: list[np.ndarray | int] = [axis.first for axis in axes]
    second: list[np.ndarray | int] = [axis.second for axis in axes]
    missing = 3 - len(axes)
    first, second = first + [0] * missing, second + [NONE] * missing
    if texture.layered:
        first[2] = np.clip(layer, 0, texture.layers - 1)
    return Touched(packed(first, second), inside, doubtful)


def _axis(texture: Texture, at: np.ndarray, extent: int, gathers: bool) -> _Axis:
    scale = extent if texture.normalized else 1
    texel = np.nan_to_num(np.clip(at.astype(np.float64) * scale, -FAR, FAR))
    doubtful = np.isnan(at)
    if texture.filter == "linear" or gathers:
        parts = (texel - 0.5) * PARTS + 0.5
        number = np.floor(parts).astype(np.int64)
        low, two = number // PARTS, (number % PARTS != 0) | gathers
    else:
        parts = texel
        low, two = np.floor(texel).astype(np.int64), np.zeros((1, 1), np.bool_)
    if texture.normalized and extent & (extent - 1):  # else the product is exact
        near = ROUNDING * extent * np.maximum(np.abs(at), 1) * (PARTS if parts is not texel else 1)
        doubtful = doubtful | (np.abs(parts - np.round(parts)) < near)
    found = _addressed(texture, low, two, extent)
    return _Axis(found.first, found.second, found.inside, found.doubtful | doubtful)


def _addressed(texture: Texture, low: np.ndarray, two: np.ndarray, extent: int) -> _Axis:
    """The texels that stand for `low` and, of lanes that take `two`, for the one after it."""
    high = np.where(two, low + 1, low)
    sure, everywhere = np.zeros((1, 1), np.bool_), np.ones((1, 1), np.bool_)
    if texture.address == "wrap":
        first, last = low % extent, high % extent
        second = np.where(first == last, NONE, np.where(last == first + 1, NEXT, FIRST))
        return _Axis(first, second, everywhere, sure)
    if texture.address == "mirror":
        low, high = (_mirrored(one, extent) for one in (low, high))
        low, high = np.minimum(low, high), np.maximum(low, high)
    if texture.address != "border" or not texture.normalized:  # unnormalized, the border's texels are fetched
        low, high = np.clip(low, 0, extent - 1), np.clip(high, 0, extent - 1)
        return _Axis(low, np.where(low == high, NONE, NEXT), everywhere, sure)
    has_low, has_high = ((one >= 0) & (one < extent) for one in (low, high))
    inside = has_low | has_high
    first = np.where(has_low, low, np.where(has_high, high, 0))
    return _Axis(first, np.where(has_low & has_high & (low != high), NEXT, NONE), inside, ~inside)


def _mirrored(texel: np.ndarray, extent: int) -> np.ndarray:
    turned = texel % (2 * extent)
    return np.where(turned < extent, turned, 2 * extent - 1 - turned)
