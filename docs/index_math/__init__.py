"""The generated parts of docs/layouts.md and docs/traces.md: captures, and what each layout costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import memsim
from docs.capture import ROOT, capture
from docs.index_math.transpose import gemm_tile, transpose
from memsim import Layout
from memsim.views.plain import table

EXAMPLE = "docs/index_math/transpose.py"
SWEEP = (
    f"memsim sweep {EXAMPLE}:transpose --block 32,32 --jobs 1 "
    "-D 'layout=(32,32):(32,1)|(32,32):(33,1)|(32,32):(36,1)|Sw<5,0,5> o (32,32):(32,1)'"
)

TILES = {
    "`Layout.row_major(32, 32)`": Layout.row_major(32, 32),
    "`Layout.padded(32, 32)`": Layout.padded(32, 32),
    "`Layout.padded(32, 32, pad=4)`": Layout.padded(32, 32, pad=4),
    "`Layout.xor(32, 32)`": Layout.xor(32, 32),
    "`Layout.xor(32, 32, chunk=4)`": Layout.xor(32, 32, chunk=4),
    "`Layout.z_order(32, 32)`": Layout.z_order(32, 32),
}
HALVES = {
    "`Layout.row_major(64, 64)`": Layout.row_major(64, 64),
    "`Layout.padded(64, 64, pad=8)`": Layout.padded(64, 64, pad=8),
    "`Layout.row_major(64, 64).swizzled(3, 3, 3)`": Layout.row_major(64, 64).swizzled(3, 3, 3),
    '`Layout.parse("Sw<2,3,3> o (64,64):(64,1)")`': Layout.parse("Sw<2,3,3> o (64,64):(64,1)"),
}


def tile_table() -> str:
    """The transpose with each layout of its tile."""
    rows = []
    for name, layout in TILES.items():
        analysis = memsim.analyze(transpose, block=(32, 32), args=[layout])
        store, load = (site for site in analysis.sites if site.space == "shared")
        size = next(size for array, _, _, size in analysis.trace.arrays if array == "tile")
        rows.append((name, f"`{layout}`", f"{size:,}", str(store.max_ways), str(load.max_ways)))
    headings = ("layout of the tile", "in CuTe's notation", "bytes", "ways of the store", "ways of the load")
    return table(headings, rows, "llrrr") + "\n"


def half_table() -> str:
    """The tile of halves with each layout."""
    rows = []
    for name, layout in HALVES.items():
        analysis = memsim.analyze(gemm_tile, block=128, args=[layout])
        site = next(site for site in analysis.sites if site.op == "ldmatrix")
        rows.append((name, f"`{layout}`", str(site.wavefronts), str(site.ideal_wavefronts)))
    headings = ("layout of the tile", "in CuTe's notation", "wavefronts of `ldmatrix`", "ideal")
    return table(headings, rows, "llrr") + "\n"


def source() -> str:
    """The example's function."""
    text = (ROOT / EXAMPLE).read_text("utf-8")
    start, end = text.index("N = 1024"), text.index("\n\n\ndef gemm_tile")
    return f"```python\nfrom memsim import GlobalArray, SharedArray\n\n{text[start:end]}\n```\n"


PARTS: dict[str, Callable[[], str]] = {
    "the transpose in Python": source,
    "analyze the transpose": partial(
        capture, f"memsim analyze {EXAMPLE}:transpose --grid 32,32 --block 32,32"
    ),
    "an index outside": partial(
        capture, f"memsim analyze {EXAMPLE}:transpose --grid 33,32 --block 32,32", code=2
    ),
    "layouts of the tile": tile_table,
    "a sweep": partial(capture, SWEEP),
    "layouts of halves": half_table,
    "analyze an Accel-Sim trace": partial(capture, "memsim analyze tests/trace/foreign/transpose.traceg"),
}
