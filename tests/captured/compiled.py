"""What each launch of the corpus costs, worked out by hand: for live captures and recorded ones."""

from __future__ import annotations

from memsim.captured.launched import Launched

# (text in the source line, kind of access, array) -> (requests, wavefronts, sectors)
Costs = dict[tuple[str, str, str], tuple[int, int | None, int | None]]

WARP: dict[str, Costs] = {
    # 1,024 threads, a warp's 128 bytes from x[1:] on touch 5 sectors
    "scale": {
        ("s.values[i] * s.factor", "load", "s.values"): (32, None, 160),
        ("s.values[i] * s.factor", "store", "out"): (32, None, 128),
    },
    # a vec3 is three loads of 4 B, 12 B apart from lane to lane: 384 bytes, 12 sectors
    "lengths": {
        ("points[i]", "load", "points"): (96, None, 1152),
        ("out[i] =", "store", "out"): (32, None, 128),
    },
    # 16 x 16 floats: a warp that reads two columns of 16 finds them in 4 banks, 8 lanes in each
    "transpose": {
        ("tile_load", "load", "a"): (32, None, 512),
        ("tile_transpose", "load", "dynamic_smem_base"): (128, 1024, None),
        ("tile_transpose", "store", "out"): (128, None, 512),
    },
}
CUTE: list[Costs] = [
    {
        ("x[i * 2] * factor", "load", "x"): (32, None, 256),
        ("x[i * 2] * factor", "store", "out"): (32, None, 128),
    },
    # rows of 32 floats: the lanes of a column are in one bank
    {
        ("tile[ty, tx] =", "store", "__dynamic_shmem__0"): (128, 128, None),
        ("= tile[tx, ty]", "load", "__dynamic_shmem__0"): (128, 4096, None),
    },
    # rows of 33
    {
        ("tile[ty, tx] =", "store", "__dynamic_shmem__0"): (128, 128, None),
        ("= tile[tx, ty]", "load", "__dynamic_shmem__0"): (128, 128, None),
    },
    # six tiles of 32 rows of 128 bytes, by TMA: 128 sectors in 32 requests of 32 pieces of 16 bytes
    {
        ("cute.copy(load", "bulk_load", "a"): (192, None, 768),
        ("cute.copy(store", "bulk_store", "out"): (192, None, 768),
        ("tile[thread // SIDE", "load", "__dynamic_shmem__0"): (192, 192, None),
        ("tile[thread // SIDE", "store", "__dynamic_shmem__0"): (192, 192, None),
    },
]


def check(launched: Launched, costs: Costs, file: str) -> None:
    """Are those the costs of a launch, at lines of the user's file?"""
    analysis = launched.analyze()
    found = {
        (text, site.op, site.array): (site.requests, site.wavefronts, site.sectors)
        for site in analysis.sites
        for text, op, array in costs
        if text in site.source and op == site.op and array == site.array
    }
    assert found == costs
    assert {site.file.rpartition("/")[2] for site in analysis.sites} == {file}
