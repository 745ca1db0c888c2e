"""Index math in Python counts what machine code counts, and what a scalar oracle counts thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memsim
from memsim import GlobalArray, Layout, SharedArray
from memsim.analysis import Analysis
from memsim.sketch import Thread
from memsim.sketch import execute as run
from tests.model import oracle
from tests.simt.cuda import kernels_of


def counts(analysis: Analysis) -> list[tuple[Any, ...]]:
    """All that was counted, in an order that no line number decides."""
    names = ("requests", "wavefronts", "conflicts", "ideal_wavefronts", "max_ways", "sectors", "lines")
    rows = [
        (s.space, s.op, s.width, s.array, *(getattr(s, name) for name in names), s.instructions)
        for s in analysis.sites
    ]
    return sorted(rows, key=repr)


TILES = {
    "transpose_naive": (32, 32),
    "transpose_padded": (32, 33),
    "transpose_xor": Layout.xor(32, 32),
}


@pytest.mark.parametrize("kernel", TILES)
def test_the_transposes_of_the_catalogue(kernel: str) -> None:
    m, n = 96, 80  # the last column of blocks is not full

    def transpose(t: Thread) -> None:
        tile = SharedArray("tile", TILES[kernel])
        a, c = GlobalArray("A", (m, n)), GlobalArray("C", (n, m))
        row, column = t.blockIdx.y * 32, t.blockIdx.x * 32
        with t.when((row + t.y < m) & (column + t.x < n)):
            a[row + t.y, column + t.x].load()
            tile[t.y, t.x].store()
        t.sync()
        with t.when((column + t.y < n) & (row + t.x < m)):
            tile[t.x, t.y].load()
            c[column + t.y, row + t.x].store()

    ours = memsim.analyze(transpose, grid=(3, 3), block=(32, 32))
    theirs = memsim.catalog()[kernel].analyze(size=(m, n))
    assert [row[:-1] for row in counts(ours)] == [row[:-1] for row in counts(theirs)]
    assert ours.totals == theirs.totals


def test_the_widest_loads_and_stores_of_an_sgemm() -> None:
    """The inner loop of kernel_v4: 16-byte loads, an XOR by hand, loops."""
    bk, size = 8, 256

    def kernel(t: Thread) -> None:
        a, b = SharedArray("s_a", (bk, 128)), SharedArray("s_b", (bk, 128))
        for _ in range(size // bk):
            for k in range(bk):
                for half in (0, 4):
                    a[k, (t.y * 8 + half) ^ 16 * (k // 4)].load(vector=4)
                for half in (0, 64):
                    b[k, t.x * 4 + half].load(vector=4)

    ours = memsim.analyze(kernel, grid=(2, 2), block=(16, 16))
    theirs = memsim.catalog()["kernel_v4"].analyze(size=(256, 256, 256))
    loads = [row for row in counts(theirs) if row[:2] == ("shared", "load")]
    merged: dict[Any, Any] = {}
    for row in loads:  # two lines of the kernel, one of ours
        before = merged.get(row[3])
        sums = row[4:8] if before is None else tuple(x + y for x, y in zip(before[4:8], row[4:8]))
        merged[row[3]] = (*row[:4], *sums, *row[8:-1])
    assert [row[:-1] for row in counts(ours)] == sorted(merged.values(), key=repr)


def test_matrices_copies_and_atomics_against_machine_code() -> None:
    module = kernels_of("""#include <cuda_fp16.h>
__device__ unsigned at(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
extern "C" __global__ void mixed(const float4 *in, float *out)
{
    __shared__ __align__(16) __half h[64][64];
    __shared__ int bins[64];
    const int t = threadIdx.x;
    for (int i = 0; i < 4; i++) {
        const int row = i * 16 + t / 8, chunk = t % 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"(at(&h[row][chunk * 8])), "l"(in + (blockIdx.x * 64 + row) * 8 + chunk));
    }
    asm volatile("cp.async.wait_all;");
    atomicExch(&bins[t % 8 * 8], t);
    __syncthreads();
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at(&h[t % 16][t / 16 % 2 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at(&h[t % 16][t / 32 * 8])));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(at(&h[t % 32][t / 32 * 8])), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    if (t < 40) out[blockIdx.x * 1024 + t * 8] = 1.0f;
}
""")
    args = [memsim.ArrayArg((1024, 4)), memsim.ArrayArg((2048,))]
    theirs = memsim.analyze(module["mixed"], 2, 128, args)

    def mixed(t: Thread) -> None:
        h, bins = SharedArray("h", (64, 64), "half"), SharedArray("bins", 64, "i32")
        halves, out = GlobalArray("in", (128, 64), "half"), GlobalArray("out", 2048)
        for i in range(4):
            row, chunk = i * 16 + t.x // 8, t.x % 8
            origin = halves[t.blockIdx.x * 64 + row, chunk * 8]
            h[row, chunk * 8].cp_async(origin, vector=8, bypass=True)
        bins[t.x % 8 * 8].atomic("exch")
        t.sync()
        h[t.x % 16, t.x // 16 % 2 * 8].ldmatrix(4)
        h[t.x % 16, t.x // 32 * 8].ldmatrix(2)
        h[t.x % 32, t.x // 32 * 8].stmatrix(4)
        out[t.blockIdx.x * 1024 + t.x * 8].store(mask=t.x < 40)

    ours = memsim.analyze(mixed, 2, 128)
    assert [row[:-1] for row in counts(ours)] == [row[:-1] for row in counts(theirs)]
    assert ours.totals == theirs.totals


LAYOUTS = st.sampled_from(
    [
        Layout.row_major(32, 32),
        Layout.padded(32, 32),
        Layout.padded(32, 32, pad=4),
        Layout.column_major(32, 32),
        Layout.xor(32, 32, chunk=4),
        Layout.z_order(32, 32),
        Layout.parse("Sw<2,2,3> o ((4,8),(8,4)):((1,128),(4,32))"),
    ]
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    layout=LAYOUTS,
    factors=st.tuples(*[st.integers(0, 9)] * 6),
    limit=st.integers(0, 70),
    vector=st.sampled_from([1, 2, 4]),
    space=st.sampled_from(["shared", "global"]),
    op=st.sampled_from(["load", "store"]),
    block=st.sampled_from([(33, 2, 1), (8, 4, 3), (64, 1, 1)]),
)
def test_each_thread_alone_gives_the_same(
    layout: Layout,
    factors: tuple[int, ...],
    limit: int,
    vector: int,
    space: str,
    op: str,
    block: tuple[int, int, int],
) -> None:
    array = (SharedArray if space == "shared" else GlobalArray)("a", layout)
    grid = (3, 2, 1)

    def index(x: Any, y: Any, z: Any, bx: Any, by: Any) -> tuple[Any, Any]:
        row = (factors[0] * x + factors[1] * y + factors[2] * bx + z) % 32
        column = (factors[3] * x + factors[4] * by + factors[5] * bx * x) % (32 // vector) * vector
        return row, column

    def kernel(t: Thread) -> None:
        element = array[index(t.x, t.y, t.z, t.blockIdx.x, t.blockIdx.y)]
        getattr(element, op)(vector=vector, mask=t.rank + 10 * t.blockIdx.x < limit)

    expected: dict[str, int] = {}
    threads = block[0] * block[1] * block[2]
    for by in range(grid[1]):
        for bx in range(grid[0]):
            for first in range(0, threads, 32):
                addresses, active = [0] * 32, [False] * 32
                for rank in range(first, min(first + 32, threads)):
                    x, y, z = rank % block[0], rank // block[0] % block[1], rank // block[0] // block[1]
                    addresses[rank - first] = int(layout(*index(x, y, z, bx, by))) * 4
                    active[rank - first] = rank + 10 * bx < limit
                width = 4 * vector
                aligned = all(a % width == 0 for a, on in zip(addresses, active) if on)
                if not aligned:
                    with pytest.raises(memsim.MemsimError, match=r"misaligned|contiguous"):
                        memsim.analyze(kernel, grid, block)
                    return
                if not any(active):
                    continue
                cost = (
                    oracle.shared(addresses, width, op, active)
                    if space == "shared"
                    else oracle.global_(addresses, width, active)
                )
                for name, value in cost.items():
                    is_sum = name != "ways"
                    before = expected.get(name, 0)
                    expected[name] = before + value if is_sum else max(before, value)
    try:
        analysis = memsim.analyze(kernel, grid, block)
    except memsim.MemsimError as error:
        assert "are not contiguous" in error.message
        return
    (site,) = analysis.sites
    names = {"ways": "max_ways", "ideal": "ideal_wavefronts"}
    assert {name: getattr(site, names.get(name, name)) or 0 for name in expected} == expected


def test_chunks_of_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a, tile = GlobalArray("a", (64, 100)), SharedArray("tile", (8, 33))

    def kernel(t: Thread) -> None:
        a[t.blockIdx.x, t.x * 3 % 100].load()
        tile[t.warp, (t.lane * 2 + t.blockIdx.x) % 33].store()

    def same(t: Thread) -> None:
        tile[t.lane % 8, t.warp].store()

    whole = [memsim.analyze(function, 64, 64) for function in (kernel, same)]
    monkeypatch.setattr(run, "CHUNK", 3 * 64)
    pieces = [memsim.analyze(function, 64, 64) for function in (kernel, same)]
    assert [counts(analysis) for analysis in pieces] == [counts(analysis) for analysis in whole]
    calls = 0

    def counted(t: Thread) -> None:
        nonlocal calls
        calls += 1
        same(t)

    memsim.analyze(counted, 64, 64)
    assert calls == 1  # it never asks for its block


def test_only_some_blocks() -> None:
    a = GlobalArray("a", 64 * 32)

    def kernel(t: Thread) -> None:
        a[t.blockIdx.x * 32 + t.x].load()

    analysis = memsim.analyze(kernel, 64, 32, blocks=4)
    assert analysis.sites[0].requests == 4
    assert "4 of 64 blocks replayed" in analysis.verdict


def test_zeros_of_a_copy_are_written_and_not_read() -> None:
    tile, a = SharedArray("tile", 128), GlobalArray("a", 32)

    def kernel(t: Thread) -> None:
        tile[t.x].cp_async(a[t.x], read=t.x < 32)

    analysis = memsim.analyze(kernel, block=64)
    shared, wide = sorted(analysis.sites, key=lambda site: site.space, reverse=True)
    assert (shared.op, shared.requests, shared.wavefronts) == ("cp_async", 2, 2)
    assert (wide.requests, wide.sectors) == (1, 4)
    assert (analysis.trace.partner >= 0).any(1).tolist().count(True) == 2


@pytest.mark.parametrize(
    ("dtype", "operation", "op"),
    [
        ("i32", "add", "atomic"),
        ("u32", "inc", "atomic_inc"),
        ("f32", "exch", "atomic"),
        ("f32", "cas", "atomic_cas"),
        ("u64", "cas", "atomic_cas"),
        ("u64", "exch", "atomic"),
        ("f32", "add", "atomic_loop"),
        ("half", "max", "atomic_loop"),
        ("u64", "add", "atomic_loop"),
        ("u16", "cas", "atomic_loop"),
    ],
)
def test_which_shared_atomic_it_is(dtype: str, operation: str, op: str) -> None:
    bins = SharedArray("bins", 64, dtype)
    (site,) = memsim.analyze(lambda t: bins[t.x].atomic(operation), block=32).sites
    assert site.op == op
    assert (site.unresolved is not None) == (op == "atomic_loop")
    far = GlobalArray("far", 64, dtype)
    assert memsim.analyze(lambda t: far[t.x].reduction(operation), block=32).sites[0].op == "reduction"


def test_arrays_lie_one_behind_the_other() -> None:
    def kernel(t: Thread) -> None:
        SharedArray("a", (3, 3), "u8")[0, 0].load()
        SharedArray("b", 4, align=128)[0].load()
        SharedArray("c", 4, offset=64)[0].load()
        GlobalArray("d", 3)[0].load()
        GlobalArray("e", 3)[0].load()

    places = {name: (first, size) for name, _, first, size in memsim.analyze(kernel, block=1).trace.arrays}
    assert places == {"a": (0, 9), "b": (128, 16), "c": (64, 16), "d": (0, 12), "e": (256, 12)}


def test_numpy_indices_of_the_users_own() -> None:
    table = np.arange(48)[::-1] * 2

    def kernel(t: Thread) -> None:
        SharedArray("a", 128)[table[t.x]].load()  # 48 threads: lanes past the end index nothing new

    (site,) = memsim.analyze(kernel, block=48).sites
    assert (site.requests, site.max_ways) == (2, 2)
