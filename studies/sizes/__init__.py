"""The kernel that `sgemm` of the catalogue picks at every size, and how fast it is beside cuBLAS.

The listed sizes were chosen by hand. Random ones say what holds beyond that list: those of `SEEN` were
measured while tiles and paces were chosen, those of `HELD_OUT` only afterwards.
"""

from __future__ import annotations

from math import prod
from random import Random

DISPATCHER = "sgemm"
FOLDER = "sizes"  # of the recordings, below that of the GPU
GPU = "NVIDIA H200"  # on which the paces of the tiles were measured
CUBES = tuple((extent,) * 3 for extent in (512, 1024, 1536, 2048, 3072, 4096, 6144, 8192))
OTHERS = (
    *((1000, 1000, 1000), (2560, 2560, 2560), (4000, 2000, 1000)),
    *((8192, 128, 2048), (16384, 256, 512), (16384, 128, 1024), (8192, 64, 8192)),  # tall
    *((128, 8192, 2048), (256, 16384, 512), (100, 10000, 1000), (64, 8192, 8192)),  # wide
    *((128, 128, 8192), (256, 256, 16384)),  # deep
    *((331, 269, 147), (333, 555, 777), (511, 513, 515), (777, 777, 777), (1001, 999, 1003)),  # odd
    *((1023, 1025, 1027), (2047, 2049, 2051), (4095, 4097, 4099)),
    *((1500, 1500, 1501), (3000, 1001, 700), (3001, 3003, 3000)),  # one of N and K a multiple of 4
    *((8191, 127, 2049), (16383, 65, 1023), (255, 16383, 511)),
)
SIZES = CUBES + OTHERS  # M, N, K

SMALLEST, LARGEST = 64, 8192  # extents of random sizes
MOST_PRODUCTS = 2**35  # M * N * K of a random size
# Every second random size has odd extents, the others multiples of one of these.
MULTIPLES = (4, 32, 128, 1)


def random_sizes(seed: int, count: int = 40) -> tuple[tuple[int, int, int], ...]:
    """Sizes whose extents are log-uniform between `SMALLEST` and `LARGEST`."""
    random = Random(seed)
    found: list[tuple[int, int, int]] = []
    while len(found) < count:
        m, n, k = (round(SMALLEST * (LARGEST / SMALLEST) ** random.random()) for _ in range(3))
        if len(found) % 2 == 0:
            size = m | 1, n | 1, k | 1
        else:
            multiple = MULTIPLES[len(found) // 2 % len(MULTIPLES)]
            size = tuple(max(1, round(n / multiple)) * multiple for n in (m, n, k))
        if prod(size) <= MOST_PRODUCTS:
            found.append(size)
    return tuple(found)


SEEN = random_sizes(14)
HELD_OUT = random_sizes(2026)
