"""Loads, stores, atomics and copies in every state space, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from memsim.api.running import run
from memsim.captured.analyze_any import analyze
from memsim.errors import MemsimError
from tests.simt.cuda import kernel, kernels_of

rng = np.random.default_rng(7)


def test_vectors_of_every_width_and_type() -> None:
    k = kernel("""
struct alignas(16) Both { double d; int i; short s; signed char c; unsigned char u; };
extern "C" __global__ void k(const float4 *a, const double2 *b, const Both *c,
                             float4 *x, double *y, Both *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 v = a[i];
    x[i] = make_float4(v.w, v.z, v.y, v.x);
    y[i] = b[i].x * b[i].y;
    Both t = c[i];
    t.d += t.i; t.s = -t.s; t.c = t.c >> 1; t.u = t.u >> 1;
    z[i] = t;
}""")
    both = np.dtype([("d", "f8"), ("i", "i4"), ("s", "i2"), ("c", "i1"), ("u", "u1")])
    a = rng.normal(size=(96, 4)).astype(np.float32)
    b = rng.normal(size=(96, 2))
    c = rng.integers(0, 256, (96, 16), np.uint8)
    c[:, :8] = rng.normal(size=(96, 1)).view(np.uint8)
    x, y, z = np.zeros_like(a), np.zeros(96), np.zeros_like(c)
    run(k, 3, 32, [a, b, c, x, y, z])
    assert (x == a[:, ::-1]).all()
    assert (y == b[:, 0] * b[:, 1]).all()
    before, after = c.view(both)[:, 0], z.view(both)[:, 0]
    assert (after["d"] == before["d"] + before["i"]).all()
    assert (after["s"] == -before["s"]).all()
    assert (after["c"] == before["c"] >> 1).all()
    assert (after["u"] == before["u"] >> 1).all()


def test_local_arrays_constants_and_globals() -> None:
    k = kernel("""
__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__device__ int bias[2] = {100, 200};
extern "C" __global__ void k(const int *pick, int *out) {
    int i = threadIdx.x, mine[8];
    for (int j = 0; j < 8; j++) mine[(j + i) % 8] = table[j] * 10;
    out[i] = mine[pick[i]] + bias[i % 2];
}""")
    table = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    pick = rng.integers(0, 8, 64).astype(np.int32)
    out = np.zeros(64, np.int32)
    run(k, 1, 64, [pick, out])
    i = np.arange(64)
    assert (out == table[(pick - i) % 8] * 10 + 100 + 100 * (i % 2)).all()
    counted = analyze(k, 1, 64, [pick, out])
    local = [site for site in counted.sites if site.space == "local"]
    assert {site.op for site in local} == {"load", "store"} and not counted.trace.notes
    stores = next(site for site in local if site.op == "store")
    assert stores.requests == 2 * 8 and stores.sectors == 2 * 8 * 32 and stores.ideal_sectors == 2 * 8 * 4
    words = [{(pick[w * 32 + i], i // 8) for i in range(32)} for w in range(2)]
    assert sum(site.sectors or 0 for site in local if site.op == "load") == sum(map(len, words))
    assert counted.totals["l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"] == stores.sectors
    assert not any(site.is_spill for site in local)


def test_generic_pointers_find_their_space() -> None:
    k = kernel("""
__device__ __noinline__ int fetch(const int *p) { return *p; }
extern "C" __global__ void k(const int *in, int *out) {
    __shared__ int s[64];
    int i = threadIdx.x, mine[2] = {i, i * i};
    s[i] = 1000 + i;
    __syncthreads();
    const int *p = i % 3 == 0 ? &s[63 - i] : i % 3 == 1 ? &in[i] : &mine[i & 1];
    out[i] = fetch(p);
}""")
    data, out = rng.integers(0, 1000, 64).astype(np.int32), np.zeros(64, np.int32)
    run(k, 1, 64, [data, out])
    i = np.arange(64)
    expected = np.where(i % 3 == 0, 1063 - i, np.where(i % 3 == 1, data, np.where(i & 1, i * i, i)))
    assert (out == expected).all()


def test_atomics_on_global_and_shared() -> None:
    k = kernel("""
extern "C" __global__ void k(const int *key, unsigned *bins, int *order,
                             float *sum, int *best, unsigned *ring) {
    __shared__ unsigned local[16];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&local[key[i]], 1);
    order[i] = atomicAdd(&bins[16 + key[i]], 1);
    atomicAdd(sum, 0.5f);
    atomicMax(&best[0], key[i] * 1000 + i);
    atomicMin(&best[1], key[i] * 1000 - i);
    atomicXor(&ring[1], 1u << (i & 31));
    atomicInc(&ring[0], 6);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}""")
    key = rng.integers(0, 16, 256).astype(np.int32)
    bins, order = np.zeros(32, np.uint32), np.full(256, -1, np.int32)
    total, best, ring = np.zeros(1, np.float32), np.array([0, 10**6], np.int32), np.zeros(2, np.uint32)
    run(k, 2, 128, [key, bins, order, total, best, ring])
    histogram = np.bincount(key, minlength=16)
    assert (bins[:16] == histogram).all() and (bins[16:] == histogram).all()
    for value in range(16):  # every ticket of a bin is given once
        assert sorted(order[key == value]) == list(range(histogram[value]))
    assert total[0] == 128.0
    i = np.arange(256)
    assert best.tolist() == [(key * 1000 + i).max(), (key * 1000 - i).min()]
    assert ring.tolist() == [256 % 7, 0]


def test_atomics_on_local_memory_count_like_loads_from_it() -> None:
    k = kernel("""
extern "C" __global__ void k(unsigned *out, const int *at) {
    unsigned own[16], v, i = threadIdx.x;
    for (int n = 0; n < 16; n++) own[n] = 100 * n + i;
    unsigned long long p = (unsigned long long)(own + at[i]);
    asm volatile("" : "+l"(p) :: "memory");
    asm volatile("atom.max.u32 %0, [%1], %2;" : "=r"(v) : "l"(p), "r"(3 * i) : "memory");
    out[i] = v + own[at[i]];
}""")
    i, at, out = np.arange(32), np.arange(32, dtype=np.int32) % 7, np.zeros(32, np.uint32)
    run(k, 1, 32, [out, at])
    held = 100 * at + i
    assert (out == held + np.maximum(held, 3 * i)).all()
    analysis = analyze(k, 1, 32, [out, at])
    rows = {site.op: site for site in analysis.sites if site.space == "local" and site.width == 4}
    assert (rows["atomic"].requests, rows["atomic"].sectors) == (1, 4 * 7)  # of four groups of lanes
    assert (rows["load"].requests, rows["load"].sectors) == (1, 4 * 7)
    assert analysis.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] == 1


def test_compare_and_swap_loops_end() -> None:
    k = kernel("""
extern "C" __global__ void k(unsigned long long *product, int *tries) {
    unsigned long long old = *product, seen;
    int n = 0;
    do {
        seen = old;
        n++;
        old = atomicCAS(product, seen, seen * 3 + threadIdx.x % 2);
    } while (old != seen);
    tries[threadIdx.x] = n;
}""")
    product, tries = np.array([1], np.uint64), np.zeros(10, np.int32)
    run(k, 1, 10, [product, tries])
    assert sorted(tries) == list(range(1, 11))
    assert product[0] >= 3**10


def test_copies_to_shared_memory() -> None:
    text = """
extern "C" __global__ void k(const float *in, float *out, int valid) {
    __shared__ __align__(16) float s[128];
    unsigned to = (unsigned)__cvta_generic_to_shared(&s[4 * threadIdx.x]);
    int bytes = threadIdx.x < valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(in + 4 * threadIdx.x), "r"(bytes));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int j = 0; j < 4; j++) out[threadIdx.x + 32 * j] = s[127 - threadIdx.x - 32 * j];
}"""
    k = kernel(text)
    data, out = rng.normal(size=128).astype(np.float32), np.zeros(128, np.float32)
    for valid in (32, 5, 0):
        run(k, 1, 32, [data, out, valid])
        assert (out[::-1] == np.where(np.arange(128) < 4 * valid, data, 0)).all()


def test_matrix_loads_and_stores_move_fragments() -> None:
    """Lane 4r + c holds elements 2c and 2c + 1 of row r (PTX ISA, ldmatrix); `.trans` swaps them."""
    text = """
extern "C" __global__ void k(const unsigned short *in, unsigned *plain, unsigned *turned,
                             unsigned short *back) {
    __shared__ __align__(16) unsigned short s[256], t[256];
    int lane = threadIdx.x;
    for (int j = 0; j < 8; j++) s[lane + 32 * j] = in[lane + 32 * j];
    __syncthreads();
    unsigned from = (unsigned)__cvta_generic_to_shared(&s[8 * lane]);
    unsigned into = (unsigned)__cvta_generic_to_shared(&t[8 * lane]);
    unsigned a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    plain[lane] = a; plain[32 + lane] = b; plain[64 + lane] = c; plain[96 + lane] = d;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
                 :: "r"(into), "r"(d), "r"(c), "r"(b), "r"(a) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    turned[lane] = a; turned[32 + lane] = b; turned[64 + lane] = c; turned[96 + lane] = d;
    __syncthreads();
    for (int j = 0; j < 8; j++) back[lane + 32 * j] = t[lane + 32 * j];
}"""
    k = kernel(text)
    matrices = rng.integers(0, 2**16, (4, 8, 8)).astype(np.uint16)
    words = np.zeros((2, 128), np.uint32)
    back = np.zeros_like(matrices)
    run(k, 1, 32, [matrices, words[0], words[1], back])
    plain, turned = words.view(np.uint16)
    assert (plain.reshape(4, 8, 8) == matrices).all()
    assert (turned.reshape(4, 8, 8) == matrices.transpose(0, 2, 1)).all()
    assert (back == matrices[::-1]).all()


def test_an_index_from_memory_moves_the_trace() -> None:
    """A gather: addresses depend on data, so the slice has to load it."""
    text = """
extern "C" __global__ void k(const int *index, const float *in, float *out) {
    __shared__ int s[64];
    s[threadIdx.x] = index[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = in[s[threadIdx.x ^ 1]];
}"""
    k = kernel(text)
    for spread, sectors in ((1, 8), (8, 64)):
        index = (np.arange(64) * spread).astype(np.int32)
        found = analyze(k, 1, 64, [index, np.zeros(512, np.float32), np.zeros(64, np.float32)])
        gather = [site for site in found.sites if site.array == "in"]
        assert [site.sectors for site in gather] == [sectors]


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 70])
def test_blocks_that_do_not_fill_their_last_warp(threads: int) -> None:
    text = """
extern "C" __global__ void k(int *out) {
    unsigned evens = __ballot_sync(__activemask(), threadIdx.x % 2 == 0);
    out[blockIdx.x * blockDim.x + threadIdx.x] = __popc(evens);
}"""
    k = kernel(text)
    out = np.full(3 * threads, -1, np.int32)
    run(k, 3, threads, [out])
    i = np.arange(threads)
    evens = np.array([np.sum((i // 32 == t // 32) & (i % 2 == 0)) for t in i])
    assert (out.reshape(3, threads) == evens).all()
    site = analyze(k, 3, threads, [out]).sites[0]
    assert site.requests == site.instructions == 3 * -(-threads // 32)


def test_shared_memory_starts_behind_the_system_s_kibibyte() -> None:
    """Seen on an H100: 0x400 whatever alignment an array asks for."""
    text = """
extern "C" __global__ void k(unsigned *out) {
    __shared__ __align__(16384) float a[4096];
    __shared__ __align__(1024) float b[64];
    a[threadIdx.x] = b[threadIdx.x] = 1.0f;
    out[0] = (unsigned)__cvta_generic_to_shared(a);
    out[1] = (unsigned)__cvta_generic_to_shared(b);
}"""
    k = kernel(text)
    out = np.zeros(2, np.uint32)
    run(k, 1, 32, [out])
    assert sorted(out.tolist()) in ([0x400, 0x4400], [0x400, 0x800 + 0x4000])
    found = analyze(k, 1, 32, [out]).trace
    assert sorted(first for _, space, first, _ in found.arrays if space == "shared")[0] == 0
    rows = found.addresses[[found.sites[i].space == "shared" for i in found.site]]
    assert rows.min() == 0


def test_shared_atomics_that_the_chip_serves_differently_have_names_of_their_own() -> None:
    """As ptxas compiles each line for sm_90: the comment is the instruction."""
    text = """
extern "C" __global__ void k(int *out) {
    __shared__ unsigned s[64];
    unsigned long long *wide = (unsigned long long *)s;
    const int i = threadIdx.x;
    s[i] = 0;
    atomicAdd(&s[i / 2], 1u);                       // ATOMS.POPC.INC
    out[i] = atomicAdd(&s[i / 2], 1u);              // ATOMS.ADD: the result is used
    atomicAdd(&s[i / 2], threadIdx.x);              // ATOMS.ADD
    atomicInc(&s[i / 2], 0xffffffff);               // ATOMS.POPC.INC
    atomicInc(&s[i / 2], 7);                        // ATOMS.INC
    atomicMax(&s[i / 2], 1u);                       // ATOMS.MAX
    atomicCAS(&s[i], 3u, 4u);                       // ATOMS.CAS
    atomicCAS(&wide[i], 3ull, 4ull);                // ATOMS.CAS.64
    atomicExch(&wide[i], 3ull);                     // ATOMS.EXCH.64
    atomicAdd((float *)&s[i], 2.0f);                // a loop
    atomicAdd(&wide[i], 1ull);                      // a loop
    out[i] += s[i];
}"""
    found = analyze(kernel(text), 1, 32, [np.zeros(32, np.int32)])
    atomics = {
        site.line: (site.op, site.wavefronts)
        for site in found.sites
        if site.op.startswith(("atomic", "reduction"))
    }
    assert atomics == {
        7: ("atomic_inc", 1),
        8: ("atomic", 2),
        9: ("atomic", 2),
        10: ("atomic_inc", 1),
        11: ("atomic", 2),
        12: ("atomic", 2),
        13: ("atomic_cas", 2),
        14: ("atomic_cas", 4),
        15: ("atomic", 2),
        16: ("atomic_loop", None),
        17: ("atomic_loop", None),
    }
    for counter in ("op_atom", "op_ld"):
        assert found.totals[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_{counter}.sum"] is None


COPIES = """
extern "C" __global__ void k(const float *A, int *out, int width, int zeros) {
    __shared__ __align__(16) float s[128];
    const unsigned to = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * CHUNK;
    const float *from = A + threadIdx.x % 8 * (CHUNK / 4) + threadIdx.x / 8 * width;
    const int size = threadIdx.x < zeros ? 0 : CHUNK;
    asm volatile("cp.async.WHERE.shared.global [%0], [%1], CHUNK, %2;" :: "r"(to), "l"(from), "r"(size));
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];
}"""


@pytest.mark.parametrize(("where", "chunk"), [("ca", 4), ("cg", 16)])
def test_a_copy_knows_its_other_side(where: str, chunk: int) -> None:
    found = kernel(COPIES.replace("CHUNK", str(chunk)).replace("WHERE", where))
    a, out = np.zeros(4096, np.float32), np.zeros(32, np.int32)
    trace = analyze(found, 4, 32, [a, out, 1024, 5]).trace
    op = "cp_async" if where == "ca" else "cp_async_cg"
    rows = {site.space: trace.site == i for i, site in enumerate(trace.sites) if site.op == op}
    lanes = np.arange(32)
    origins = lanes % 8 * chunk + lanes // 8 * 4096
    (shared,), (wide,) = np.flatnonzero(rows["shared"]), np.flatnonzero(rows["global"])
    assert trace.count[shared] == trace.count[wide] == 4
    assert trace.active[shared].all() and trace.active[wide].tolist() == (lanes >= 5).tolist()
    assert np.array_equal(trace.addresses[shared] - trace.addresses[shared][0], lanes * chunk)
    base = trace.partner[shared][5] - origins[5]
    assert np.array_equal(trace.partner[shared], np.where(lanes >= 5, base + origins, -1))
    assert np.array_equal(trace.partner[wide], np.where(lanes >= 5, trace.addresses[shared], -1))
    others = ~(rows["shared"] | rows["global"])
    assert others.any() and (trace.partner[others] == -1).all()


def test_copies_that_read_elsewhere_are_other_requests() -> None:
    found = kernel(COPIES.replace("CHUNK", "4").replace("WHERE", "ca"))
    a, out = np.zeros(8192, np.float32), np.zeros(32, np.int32)
    for width, ways in ((1024, 4), (1032, 1), (1025, 4)):
        (row,) = (
            s
            for s in analyze(found, 1, 32, [a, out, width, 0]).sites
            if (s.space, s.op) == ("shared", "cp_async")
        )
        assert row.max_ways == ways


TWO_NAMES = """
extern "C" __global__ void k(float *a, float *b, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    a[i] = 1.0f;
    b[i] += 1.0f;
}"""


def test_one_array_given_twice_is_one_array() -> None:
    k = kernel(TWO_NAMES)
    one = np.zeros(32, np.float32)
    run(k, 1, 32, [one, one, 32])
    assert (one == 2).all()
    apart, other = np.zeros(32, np.float32), np.zeros(32, np.float32)
    run(k, 1, 32, [apart, other, 32])
    assert (apart == 1).all() and (other == 1).all()


def test_views_of_one_array_overlap_as_they_do_for_the_caller() -> None:
    k = kernel(TWO_NAMES)
    whole = np.zeros(40, np.float32)
    run(k, 1, 32, [whole[8:], whole, 32])
    expected = np.zeros(40, np.float32)
    expected[8:] = 1
    expected[:32] += 1
    assert (whole == expected).all()
    halves = np.zeros(64, np.float32)  # side by side, they share nothing
    run(k, 1, 32, [halves[:32], halves[32:], 32])
    assert (halves == 1).all()


def test_an_array_given_twice_lies_at_one_address() -> None:
    k = kernel(TWO_NAMES)
    one = np.zeros(32, np.float32)
    shared = {site.array for site in analyze(k, 1, 32, [one, one, 32]).sites}
    apart = {site.array for site in analyze(k, 1, 32, [one, one.copy(), 32]).sites}
    assert (len(shared), len(apart)) == (1, 2)


def test_a_pointer_to_one_of_two_overlapping_arrays() -> None:
    k = kernel("""
extern "C" __global__ void k(const float *a, const float *b, float *out) {
    const float *p = threadIdx.x & 1 ? a : b;
    out[threadIdx.x] = p[threadIdx.x];
}""")
    whole, out = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    run(k, 1, 64, [whole[64:], whole, out])
    lanes = np.arange(64)
    assert (out == np.where(lanes & 1, lanes + 64, lanes)).all()
    with pytest.raises(MemsimError, match=r"byte 512 of .* \(512 bytes\)"):
        run(k, 1, 64, [whole[65:], whole, out])


def test_a_generic_pointer_to_constant_memory_is_told() -> None:
    source = """
__constant__ float table[64];
extern "C" __global__ void k(const float *a, float *out, int fixed) {
    const float *p = fixed ? table : a;
    out[threadIdx.x] = p[threadIdx.x];
}"""
    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    found = analyze(kernel(source), 1, 64, [a, out, 1])
    assert [site.op for site in found.sites if site.sectors is None] == ["load"]
    known = kernel(source.replace("fixed ? table : a", "a"))
    assert all(site.sectors is not None for site in analyze(known, 1, 64, [a, out, 1]).sites)


@pytest.mark.parametrize("code", ["sass", "ptx"])
def test_a_kernel_asks_how_much_dynamic_shared_memory_it_has(code: str) -> None:
    text = """
extern "C" __global__ void k(unsigned *out) {
    unsigned size;
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    out[0] = size;
}"""
    for size in (0, 4096):
        out = np.zeros(1, np.uint32)
        run(kernels_of(text, code)["k"], 1, 1, [out], shared_bytes=size)
        assert out[0] == size
