"""The texels that a lane of a texture fetch touches, as one number.

In linear memory it is the first byte of the texel. In an array, and in pitched memory, it is the first texel
along each axis and, of a filtered fetch, which second one is touched: the fetch of a lane touches one or two
texels along each axis, so up to eight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: The number of a lane that touches no texel.
NOTHING = -1
#: Bits of a texel's place along x, y and z (or of its layer): as many as the largest textures of CUDA need.
BITS = (18, 17, 16)
#: Which second texel is touched along an axis: none, the next one, or the axis's first (`wrap`).
NONE, NEXT, FIRST = 0, 1, 2
_SECOND_BITS = 2
_SECONDS = sum(BITS)
#: More than every number: what tells requests apart modulo less would merge different ones.
NUMBERS = 1 << _SECONDS + _SECOND_BITS * len(BITS)


def pack_texels(first: Sequence[np.ndarray | int], second: Sequence[np.ndarray | int]) -> np.ndarray:
    """The number of each lane. first: its texel along x, y and z. second: NONE, NEXT or FIRST along each."""
    number: np.ndarray = np.zeros((1, 1), np.int64)
    at = 0
    for place, bits in zip(first, BITS, strict=True):
        number = number | np.asarray(place, np.int64) << at
        at += bits
    for which in second:
        number = number | np.asarray(which, np.int64) << at
        at += _SECOND_BITS
    return number


def texels(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x, y and z of the eight texels of each lane [..., 8, 3], and which of these are touched [..., 8]."""
    places = np.zeros((*numbers.shape, 8, 3), np.int64)
    touched = np.ones((*numbers.shape, 8), np.bool_)
    corner = np.arange(8)
    at = 0
    for axis, bits in enumerate(BITS):
        place = (numbers >> at & (1 << bits) - 1)[..., None]
        second = (numbers >> _SECONDS + _SECOND_BITS * axis & 3)[..., None]
        other = (corner >> axis & 1).astype(np.bool_)
        places[..., axis] = np.where(other, np.where(second == NEXT, place + 1, 0), place)
        touched &= ~other | (second != NONE)
        at += bits
    return places, touched
