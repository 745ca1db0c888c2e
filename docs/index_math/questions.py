"""The accesses of docs/questions.md, each as a function of the thread."""

from memsim import GlobalArray, SharedArray


def float4_rows(t):
    tile = SharedArray("tile", (32, 4), "f32")
    tile[t.x, 0].load(vector=4)


def float4_pairs(t):
    tile = SharedArray("tile", (32, 4), "f32")
    tile[t.x // 2, 0].load(vector=4)


def same_word(t):
    words = SharedArray("words", (32,), "u32")
    words[0].load()
    words[0].store()
    words[0].atomic("add")


def ldmatrix_narrow(t, layout="(16,16):(16,1)"):
    b = SharedArray("b", layout, "f16")
    b[t.lane % 16, 0].ldmatrix(2)


def copies(t, bypass=0):
    a = GlobalArray("a", (128, 1024), "f32")
    tile = SharedArray("tile", (16, 2, 4), "f32")
    row, column = t.x // 2, t.x % 2
    tile[row, column, 0].cp_async(a[row, column * 4], vector=4, bypass=bool(bypass))


def records(t):
    data = GlobalArray("data", (1024, 20), "u32")
    data[t.x, 3].load()


def columns(t):
    data = GlobalArray("data", (20, 1024), "u32")
    data[3, t.x].load()


def doubles(t, stride=1):
    values = SharedArray("values", (1024,), "f64")
    values[t.x * stride].load()
