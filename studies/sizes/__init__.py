"""The kernel that `sgemm` of the catalogue picks at every size, and how fast it is beside cuBLAS."""

from __future__ import annotations

DISPATCHER = "sgemm"
FOLDER = "sizes"  # of the recordings, below that of the GPU
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
