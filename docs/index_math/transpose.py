"""The example of docs/layouts.md: a transpose through shared memory, before there is a kernel."""

from memsim import GlobalArray, SharedArray

N = 1024


def transpose(t, layout="(32,32):(32,1)"):
    tile = SharedArray("tile", layout, "f32")
    a, c = GlobalArray("A", (N, N)), GlobalArray("C", (N, N))
    row, column = t.blockIdx.y * 32, t.blockIdx.x * 32

    a[row + t.y, column + t.x].load()
    tile[t.y, t.x].store()
    t.sync()
    tile[t.x, t.y].load()
    c[column + t.y, row + t.x].store()


def gemm_tile(t, layout="(64,64):(64,1)"):
    """A 64 x 64 tile of halves: filled by cp.async, 16 bytes a thread, and read by ldmatrix."""
    tile, b = SharedArray("tile", layout, "f16"), GlobalArray("B", (64, 64), "f16")
    for i in range(4):
        row, chunk = 16 * i + t.rank // 8, t.rank % 8
        tile[row, 8 * chunk].cp_async(b[row, 8 * chunk], vector=8, bypass=True)
    t.sync()
    for k in range(0, 64, 16):
        tile[16 * t.warp + t.lane % 16, k + t.lane // 16 * 8].ldmatrix(4)
