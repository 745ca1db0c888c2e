"""The lanes of warps as the bits of 32-bit words."""

from __future__ import annotations

import numpy as np

EVERY_LANE, NO_LANE = np.uint32(0xFFFFFFFF), np.uint32(0)


def warp_words(array: np.ndarray) -> np.ndarray:
    """Lanes of whole warps, bool (rows, T), as a word for each warp: uint32 (rows, T / 32)."""
    packed = np.packbits(array.reshape(-1), bitorder="little")
    found: np.ndarray = packed.view("<u4").reshape(array.shape[0], -1)
    return found


def lanes_of_words(words: np.ndarray) -> np.ndarray:
    """The opposite of `warp_words`."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1), bitorder="little")
    found: np.ndarray = bits.view(np.bool_).reshape(words.shape[0], -1)
    return found
