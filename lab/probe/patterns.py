"""Address patterns: the addresses of a request's 32 lanes, and which lanes are active.

Structured patterns are typical of kernels (rows, strides, broadcasts, swizzles); random ones are not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from memsim.arch.units import LINE, WARP

LANE = np.arange(WARP)
# Ranges of addresses: from a few words shared by many lanes to the whole tile.
WINDOWS = (64, 128, 256, 512, 1024, 4096, 32_768)
ROOM = 32_768

Rng = np.random.Generator


def _random(rng: Rng, width: int) -> np.ndarray:
    return rng.integers(0, max(1, int(rng.choice(WINDOWS)) // width), WARP)


def _stride(rng: Rng, width: int) -> np.ndarray:
    return LANE * rng.integers(0, 40) + rng.integers(0, 8)


def _rows(rng: Rng, width: int) -> np.ndarray:
    """Lanes in rows, as for a tile of a matrix."""
    columns = 2 ** rng.integers(0, 6)
    units: np.ndarray = LANE // columns * rng.integers(0, 40) + LANE % columns * rng.integers(0, 3)
    return units


def _shared_by_neighbours(rng: Rng, width: int) -> np.ndarray:
    """Groups of lanes at one address each: lanes that agree in some bits of their number."""
    kept = int(rng.integers(0, WARP))
    units: np.ndarray = _random(rng, width)[LANE & kept]
    return units


def _half_by_half(rng: Rng, width: int) -> np.ndarray:
    """Another pattern in each half-warp."""
    return np.where(LANE < 16, _shared_by_neighbours(rng, width), _shared_by_neighbours(rng, width))


def _permuted(rng: Rng, width: int) -> np.ndarray:
    return rng.permutation(WARP) + rng.integers(0, WARP)


def _xor(rng: Rng, width: int) -> np.ndarray:
    return (LANE % 8 ^ LANE // int(rng.choice([1, 2, 4, 8]))) + LANE // 8 * rng.integers(0, 40)


def _nearly(rng: Rng, width: int) -> np.ndarray:
    """A regular pattern with one lane out of place."""
    regular = (_rows, _shared_by_neighbours, _stride)
    units = regular[rng.integers(len(regular))](rng, width)
    units[rng.integers(0, WARP)] = rng.integers(0, 64)
    return units


SHAPES: tuple[Callable[[Rng, int], np.ndarray], ...] = (
    *(_random, _random, _stride, _rows, _shared_by_neighbours),
    *(_shared_by_neighbours, _half_by_half, _permuted, _xor, _nearly),
)


def _every(rng: Rng) -> np.ndarray:
    return np.ones(WARP, np.bool_)


def _some(rng: Rng) -> np.ndarray:
    return rng.random(WARP) < rng.random()


def _first(rng: Rng) -> np.ndarray:
    return np.less(LANE, rng.integers(1, 33))


def _by_bits(rng: Rng) -> np.ndarray:
    """Quarters, halves, even or odd lanes."""
    kept = int(rng.integers(0, WARP))
    mask: np.ndarray = np.equal(LANE & kept, 0)
    return mask


MASKS: tuple[Callable[[Rng], np.ndarray], ...] = (_every, _every, _every, _some, _some, _first, _by_bits)


def make_patterns(
    count: int, width: int, rng: Rng, lanes: int = WARP, every: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Addresses int64 [count, 32], aligned to `width`, below `ROOM`; active bool [count, 32], at least one.

    Lanes from `lanes` on are never active; `every`: those before always are. Inactive lanes have address 0.
    """
    addresses = np.zeros((count, WARP), np.int64)
    active = np.zeros((count, WARP), np.bool_)
    for number in range(count):
        units = SHAPES[number % len(SHAPES)](rng, width)
        addresses[number] = units * width % ROOM
        mask = MASKS[0](rng) if every else MASKS[rng.integers(len(MASKS))](rng)
        active[number] = mask & (lanes > LANE)
        if not active[number].any():
            active[number, rng.integers(lanes)] = True
    return np.where(active, addresses, 0), active


def side_by_side(count: int, width: int, rng: Rng) -> np.ndarray:
    """Global addresses as in most copies: contiguous lanes from a line's start."""
    return LANE * width + rng.integers(0, 64, (count, 1)) * LINE
