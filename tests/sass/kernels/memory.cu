// Every kind of memory instruction: widths, spaces, copies, matrices, atomics, scopes.
// Copyright the memsim authors. Apache-2.0.
// Integers `in` are from 0 to 127. Atomics are such that the order of the lanes does not change the result, unless the
// kernel says so.

#include <cuda_fp16.h>

typedef unsigned long long u64;

static __device__ __forceinline__ unsigned address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// ---- widths and spaces

// Shared memory by 1, 2, 4, 8 and 16 bytes, each with a stride of its own.
extern "C" __global__ void mem_shared_widths(const int *in, int *out)
{
    __shared__ __align__(16) unsigned char s[8192];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const int v = in[i];
    for (int k = 0; k < 16; k++)
        ((int *)s)[t + 128 * k] = v + k;
    __syncthreads();
    s[t * 3] = (unsigned char)v;
    __syncthreads();
    ((short *)s)[1024 + t * 5] = (short)(v * 300);
    __syncthreads();
    ((u64 *)s)[700 + t] = (u64)v << 30 | t;
    __syncthreads();
    ((int4 *)s)[200 + t] = make_int4(v, t, -v, 1);
    __syncthreads();
    int sum = s[t * 9] + ((signed char *)s)[t * 2 + 1] + ((short *)s)[t * 7] + ((unsigned short *)s)[2047 - t];
    sum += (int)(((u64 *)s)[(t * 5) & 1023] >> 3);
    const int4 q = ((int4 *)s)[(t * 3) & 511];
    out[i] = sum + q.x * 3 + q.y - q.z + q.w;
}

// Global memory by 1, 2, 4, 8 and 16 bytes; 8 as two floats, 16 as two doubles.
extern "C" __global__ void mem_global_widths(const unsigned char *bytes, const short *shorts, const u64 *longs,
                                             const double2 *doubles, unsigned char *obytes, short *oshorts,
                                             double2 *odoubles, int2 *pairs)
{
    const int i = blockIdx.x * 96 + threadIdx.x;
    const unsigned char b = bytes[i * 3];
    const short h = shorts[i ^ 1];
    const u64 w = longs[(i * 5) & 127];
    const double2 d = doubles[i];
    obytes[i] = b + (unsigned char)h;
    oshorts[i * 2] = (short)(h - b);
    odoubles[i] = make_double2(d.y + (double)w, d.x * 2.0);
    pairs[i] = make_int2((int)w, h * b);
}

// Static and dynamic shared memory together; the dynamic part holds two arrays.
extern "C" __global__ void mem_dynamic_shared(const int *in, int *out, int n)
{
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ int fixed[100];
    int *first = (int *)dynamic;
    double *second = (double *)(dynamic + n * 4);
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    fixed[t] = in[i];
    for (int k = t; k < n; k += 64) {
        first[k] = k * in[i];
        second[k] = k + 0.5;
    }
    __syncthreads();
    out[i] = first[(t * 7) % n] + (int)second[(t * 3) % n] + fixed[63 - t];
}

// A pointer to shared or to global memory, lane by lane, for loads, stores and atomics.
extern "C" __global__ void mem_generic(const int *in, int *other, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    const int mine = s[t];
    int *p = mine & 1 ? s + (t ^ 2) : other + i;
    const int v = *p;
    __syncthreads();
    *p = v + 5;
    __syncthreads();
    atomicAdd(p, 3);
    const int old = atomicExch(mine & 2 ? p : out + 512 + i, t);
    __syncthreads();
    out[i] = v + (__isShared(p) ? 1000 : 0) + (__isGlobal(p) ? 2000 : 0) + old;
    out[i + 256] = *p + s[t];
}

// Shared, global and local memory behind one pointer, handed to a function that is not inlined; 8 and 16 bytes.
static __device__ __noinline__ float4 take(const float4 *p, int k)
{
    float4 v = p[k];
    const float2 w = ((const float2 *)p)[k];
    v.x += w.y;
    return v;
}

extern "C" __global__ void mem_generic_call(const float4 *in, float4 *out)
{
    __shared__ float4 s[64];
    float4 own[4];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    for (int k = 0; k < 4; k++)
        own[k] = make_float4(t, k, t * k, 1);
    __syncthreads();
    const float4 *p = t % 3 == 0 ? s + (t & 60) : t % 3 == 1 ? in + i : own;
    const float4 v = take(p, t % 3 == 1 ? 0 : t & 3);
    out[i] = v;
}

// A local array with an index of every lane: words, then bytes and pairs.
extern "C" __global__ void mem_local_array(const int *in, int *out)
{
    int own[24];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    for (int k = 0; k < 24; k++)
        own[k] = in[(i + k * 3) & 127];
    int at = in[i] % 24;
    int sum = 0;
    for (int k = 0; k < 10; k++) {
        own[(at + k) % 24] += k;
        sum += own[at] * (k + 1);
        at = (at + own[at]) % 24;
    }
    out[i] = sum;
}

extern "C" __global__ void mem_local_widths(const int *in, int *out)
{
    unsigned char bytes[16];
    short shorts[16];
    double doubles[8];
    float4 quads[4];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    for (int k = 0; k < 16; k++) {
        bytes[(k * 5 + t) & 15] = (unsigned char)(in[i] + k);
        shorts[(k * 3 + t) & 15] = (short)(in[i] * k);
    }
    for (int k = 0; k < 8; k++)
        doubles[(k + t) & 7] = in[i] + k * 0.5;
    for (int k = 0; k < 4; k++)
        quads[(k ^ t) & 3] = make_float4(k, in[i], t, 1);
    const int at = in[i ^ 1];
    out[i] = bytes[at & 15] + shorts[(at >> 1) & 15] * 2 + (signed char)bytes[at >> 3] + (int)doubles[at & 7]
        + (int)(quads[at & 3].x + quads[at & 3].y) + (unsigned short)shorts[at >> 3];
}

// More live values than registers: the compiler spills.
extern "C" __global__ void __launch_bounds__(1024, 2) mem_spills(const float *in, float *out, int rounds)
{
    const int t = threadIdx.x, i = blockIdx.x * 1024 + t;
    float v[48];
#pragma unroll
    for (int k = 0; k < 48; k++)
        v[k] = in[(i + k * 64) & 4095];
    for (int r = 0; r < rounds; r++) {
        const float x = in[(i * 3 + r) & 4095];
#pragma unroll
        for (int k = 0; k < 48; k++)
            v[k] = v[k] * x + v[(k + 7) % 48];
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 48; k++)
        sum += v[k] * (k + 1);
    out[i] = sum;
}

__constant__ int table[64] = {3,  1,  4,  1,  5,  9,  2,  6,  5,  3,  5,  8,  9,  7,  9,  3,  2,  3,  8,  4,  6,  2,
                              6,  4,  3,  3,  8,  3,  2,  7,  9,  5,  0,  2,  8,  8,  4,  1,  9,  7,  1,  6,  9,  3,
                              9,  9,  3,  7,  5,  1,  0,  5,  8,  2,  0,  9,  7,  4,  9,  4,  4,  5,  9,  2};
__constant__ unsigned char small_table[16] = {1, 250, 3, 240, 5, 230, 7, 220, 9, 210, 11, 200, 13, 190, 15, 180};
__constant__ short short_table[16] = {-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12, -13, 14, -15, 16};
__constant__ float4 quad_table[8] = {{1, 2, 3, 4},     {5, 6, 7, 8},     {9, 10, 11, 12},  {13, 14, 15, 16},
                                     {17, 18, 19, 20}, {21, 22, 23, 24}, {25, 26, 27, 28}, {29, 30, 31, 32}};

// Constant memory with indices that all lanes share and with those of every lane, in all widths.
extern "C" __global__ void mem_constants(const int *in, float *out, int n, unsigned char small, short half)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    s[t] = in[i];
    __syncthreads();
    int v = table[5] + table[blockIdx.x & 63] + small + half;
    for (int k = 0; k < n; k++)
        v += table[k] * s[(t + table[k + 1]) & 127];
    v += table[s[t] & 63] + small_table[s[t] & 15] * 3 + short_table[t & 15] + (signed char)small_table[n & 15];
    v += (unsigned short)short_table[s[t] >> 3];
    const float4 q = quad_table[s[t] & 7];
    const float2 p = ((const float2 *)quad_table)[t & 15];
    out[i] = v + q.x + q.y * 2 + q.z * 3 + q.w * 4 + p.x - p.y + s[table[t & 63] * 9];
}

// A pointer to shared or to constant memory.
extern "C" __global__ void mem_generic_constant(const int *in, int *out)
{
    __shared__ int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    const int *from = s[t] > 60 ? table : s;
    out[i] = from[(t * 3) & 63];
}

__device__ int global_table[128];
__device__ int *global_pointer = global_table;
__device__ const float global_weights[32] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f};
__device__ struct { int *at; int offset; } global_place = {global_table + 64, 3};

// Arrays of the module: with contents, and a pointer to one of them in another.
extern "C" __global__ void mem_module_globals(const int *in, int *out)
{
    const int t = threadIdx.x;
    global_table[t] = in[t];
    __syncthreads();
    const int *p = global_pointer;
    int v = p[127 - t] + global_place.at[t & 31] + global_place.offset;
    v += (int)(global_weights[in[t] & 31] * 2.0f);
    out[t] = v;
}

struct Matrix {
    const float *data;
    int rows, columns;
    float *result;
    float scale;
};

struct Numbers {
    float weight[6];
    int place[3];
    short small;
    unsigned char tiny;
};

// Structs passed by value: with pointers in them, and with arrays that get an index.
extern "C" __global__ void mem_struct_arguments(Matrix m, Numbers n)
{
    __shared__ float s[128];
    const int t = threadIdx.x, x = t % 32, y = blockIdx.x * 4 + t / 32;
    s[t] = y < m.rows && x < m.columns ? m.data[y * m.columns + x] : 0.0f;
    __syncthreads();
    float v = s[(t + n.place[1]) & 127] * n.weight[2] + s[(t * n.place[t % 3]) & 127] * n.weight[t % 6];
    v += n.small * m.scale + n.tiny;
    if (y < m.rows && x < m.columns)
        m.result[y * m.columns + x] = v;
}

// volatile: every access stays, none is merged.
extern "C" __global__ void mem_volatile(volatile int *in, volatile int *out)
{
    __shared__ volatile int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    int v = s[t ^ 1];
    v += s[t ^ 1] + s[t ^ 1] + in[i] + in[i];
    s[t] = 1;
    s[t] = 2;
    out[i] = v;
    out[i] = v + s[t];
}

// Loads and stores with hints for the caches, and prefetches.
extern "C" __global__ void mem_cache_hints(const int *__restrict__ in, int *out, float4 *quads)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in + (i * 2 & 511)));
    asm volatile("prefetch.global.L1 [%0];" ::"l"(in + (i & 511)));
    int v = __ldg(in + i) + __ldcs(in + (i ^ 1)) + __ldca(in + (i ^ 2)) + __ldcg(in + (i ^ 4)) + __ldlu(in + (i ^ 8));
    v += __ldcv(in + (i ^ 16));
    int x, y, z;
    asm volatile("ld.global.L1::evict_last.s32 %0, [%1];" : "=r"(x) : "l"(in + (i ^ 32)));
    asm volatile("ld.global.L1::no_allocate.s32 %0, [%1];" : "=r"(y) : "l"(in + (i ^ 64)));
    asm volatile("ld.global.nc.L2::128B.s32 %0, [%1];" : "=r"(z) : "l"(in + (i ^ 3)));
    const float4 q = __ldg(quads + i);
    v += (int)__ldg((const unsigned char *)in + i * 4) + __ldg((const short *)in + i * 2) + (int)__ldg((const u64 *)in + i / 2);
    __stcs(out + i, v);
    __stcg(out + 512 + i, v + x);
    __stwt(out + 1024 + i, v + y + z);
    __stcs(quads + 512 + i, make_float4(q.w, q.x, q.y, q.z));
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(out + (i & ~31)));
}

// The hints on wide and narrow accesses, and wide accesses behind generic pointers, some of them with an order.
extern "C" __global__ void mem_hints_and_widths(const float4 *__restrict__ quads, const short *__restrict__ shorts, float4 *out, short *halves)
{
    __shared__ float4 s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    float4 q = __ldcs(quads + i), r;
    asm volatile("ld.global.L1::evict_last.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(quads + (i ^ 1)));
    short h = (short)(__ldcs(shorts + i) + __ldg((const unsigned short *)shorts + (i ^ 3)));
    s[t] = r;
    __syncthreads();
    const float4 *p = h & 1 ? s + (t ^ 2) : quads + i;
    u64 pair, other;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(pair) : "l"(p) : "memory");
    asm volatile("ld.u64 %0, [%1];" : "=l"(other) : "l"((const u64 *)p + 1) : "memory");
    int word;
    asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(word) : "l"((const int *)p + 3) : "memory");
    __syncthreads();
    float4 *to = h & 2 ? s + t : out + 256 + i;
    *to = make_float4(q.w, r.x, q.y, r.z);
    float4 *second = h & 4 ? s + t : out + 512 + i;
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(second), "l"(pair) : "memory");
    asm volatile("st.u64 [%0], %1;" ::"l"((u64 *)second + 1), "l"(other) : "memory");
    asm volatile("st.volatile.global.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(out + 128 + i), "r"(word), "r"(1), "r"(t), "r"(i) : "memory");
    __stcs(halves + i, h);
    __syncthreads();
    out[i] = s[t];
}

// Acquire, release and relaxed accesses of every scope, with fences. One block writes what it reads itself.
extern "C" __global__ void mem_scopes(int *data, int *out)
{
    __shared__ int s[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    int a, b, c, d;
    u64 w;
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(data + i), "r"(t) : "memory");
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(a) : "l"(data + i) : "memory");
    asm volatile("st.relaxed.sys.global.s32 [%0], %1;" ::"l"(data + i), "r"(t + 1) : "memory");
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(b) : "l"(data + i) : "memory");
    asm volatile("st.release.cta.shared.s32 [%0], %1;" ::"r"(address(s + t)), "r"(t + 2) : "memory");
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(c) : "r"(address(s + t)) : "memory");
    int *p = t & 1 ? s + t : data + i;
    asm volatile("ld.relaxed.cta.s32 %0, [%1];" : "=r"(d) : "l"(p) : "memory");
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(w) : "l"(data + (i & ~1)) : "memory");
    __threadfence();
    __threadfence_block();
    __threadfence_system();
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("fence.sc.cta;" ::: "memory");
    asm volatile("st.relaxed.cta.s32 [%0], %1;" ::"l"(p), "r"(a + b) : "memory");
    __syncthreads();
    out[i] = a + b + c + d + (int)(w >> 32) * 0 + (t & 1 ? s[t] : data[i]);
}

// ---- asynchronous copies

template <int BYTES> static __device__ __forceinline__ void copy_ca(void *to, const void *from, int filled)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address(to)), "l"(from), "n"(BYTES), "r"(filled) : "memory");
}

// cp.async of 4, 8 and 16 bytes, some rows only partly filled, in two groups.
extern "C" __global__ void mem_copy_async(const int *in, int *out, int n)
{
    __shared__ __align__(16) int s[2048];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    copy_ca<4>(s + t * 2, in + i, i < n ? 4 : 0);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(s + t * 2 + 1)), "l"(in + (i ^ 1)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    copy_ca<8>(s + 512 + t * 2, in + (t * 2 & 254), t & 1 ? 8 : 4);
    copy_ca<16>(s + 1024 + t * 4, in + (t * 4 & 508), t & 3 ? 16 : 12);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    int v = s[255 - t] * 3;
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    v += s[512 + (t * 3 & 255)] + s[1024 + (t * 5 & 511)];
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(s + (t ^ (t >> 3 & 3)) * 4)), "l"(in + (t * 4 & 508)) : "memory");
    if (t > 40)  // only some lanes copy
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address(s + 1024 + t * 4)),
                     "l"(in + (t * 12 & 508)), "r"(t % 17) : "memory");
    asm volatile("{ .reg .pred p; setp.gt.s32 p, %2, 64; cp.async.ca.shared.global [%0], [%1], 8, p; }" ::"r"(address(s + 512 + t * 2)),
                 "l"(in + (t * 6 & 510)), "r"(t) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[i] = v + s[t * 4] + s[512 + t] + s[1024 + t * 3];
}

// Two buffers in turns: the next tile is under way while this one is used.
extern "C" __global__ void mem_copy_pipeline(const float4 *in, float *out, int tiles)
{
    __shared__ float4 s[2][128];
    const int t = threadIdx.x;
    const float4 *from = in + blockIdx.x * 128;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(&s[0][t])), "l"(from + t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    float sum = 0;
    for (int k = 0; k < tiles; k++) {
        if (k + 1 < tiles)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address(&s[(k + 1) & 1][t ^ (k & 7)])),
                         "l"(from + (k + 1) * 256 + t) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        const float *tile = (const float *)s[k & 1];
        sum += tile[t * 4] + tile[(t * 3 + k) & 511];
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = sum;
}

// Whole rows by the copy engine: global to shared with a barrier that counts bytes, and back.
extern "C" __global__ void mem_bulk_copy(const int *in, int *out)
{
    __shared__ __align__(128) int s[1024];
    __shared__ __align__(8) u64 barrier;
    const int t = threadIdx.x;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&barrier)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
        asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], 4096; }" ::"r"(address(&barrier)) : "memory");
        for (int k = 0; k < 4; k++)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(
                             address(s + k * 256)), "l"(in + (blockIdx.x * 4 + k) * 256), "r"(address(&barrier)) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 512;" ::"l"(in) : "memory");
    }
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(address(&barrier)) : "memory");
    const int v = s[(t * 9) & 1023];
    __syncthreads();
    s[t] = v + t;
    s[1023 - t] = v - t;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 4096;" ::"l"(out + blockIdx.x * 1024), "r"(address(s)) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 2048;" ::"l"(out + 4096), "r"(address(s)) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

// Barriers in shared memory: every thread arrives, phases alternate; copies arrive, too.
extern "C" __global__ void mem_mbarrier(const int *in, int *out)
{
    __shared__ __align__(16) int s[128];
    __shared__ __align__(8) u64 barrier, copied;
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(address(&barrier)) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(address(&copied)) : "memory");
    }
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(s + t)), "l"(in + i) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address(&copied)) : "memory");
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(address(&copied)) : "memory");
    int v = s[t ^ 65];
    for (int phase = 0; phase < 3; phase++) {
        u64 state;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(address(&barrier)) : "memory");
        do
            asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(address(&barrier)), "l"(state) : "memory");
        while (!done);
        s[t] = v + phase;
        __syncthreads();
        v += s[(t + 40) & 127];
        __syncthreads();
    }
    if (t == 0)
        asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address(&barrier)) : "memory");
    out[i] = v;
}

// Bytes that are announced, arrivals without an answer, and copies that count as an arrival of their own; in the
// barrier of the neighbour in the cluster, too.
extern "C" __global__ void __cluster_dims__(2, 1, 1) mem_mbarrier_forms(const int *in, int *out)
{
    __shared__ __align__(128) int s[256];
    __shared__ __align__(8) u64 bytes, all, copied;
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    unsigned rank, theirs;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&bytes)) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 129;" ::"r"(address(&all)) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(address(&copied)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    if (t == 0) {
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(address(&bytes)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address(&bytes)) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(address(s)),
                     "l"(in + blockIdx.x * 128), "r"(address(&bytes)) : "memory");
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address(&all)), "r"(rank ^ 1));
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(theirs) : "memory");
    }
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(s + 128 + t)), "l"(in + (i ^ 1)) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(address(&copied)) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&copied)) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&all)) : "memory");
    int v = 0;
    for (int k = 0; k < 3; k++) {
        const unsigned which = address(k == 0 ? &bytes : k == 1 ? &all : &copied);
        int done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(which) : "memory");
        v += s[(t * 3 + k) & 127] * k;
    }
    out[i] = v + s[255 - t];
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}

// ---- matrices

// ldmatrix of one, two and four matrices, plain and transposed, and stmatrix of the same.
extern "C" __global__ void mem_ldmatrix(const unsigned *in, unsigned *out)
{
    __shared__ __align__(16) unsigned s[1024], d[512];
    const int t = threadIdx.x, i = blockIdx.x * 32 + t;
    for (int k = 0; k < 32; k++)
        s[t + 32 * k] = in[(i + 32 * k) & 1023] * 65537u + k;
    __syncwarp();
    unsigned a, b0, b1, c0, c1, c2, c3, e, f0, f1, g0, g1, g2, g3;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(a) : "r"(address(s + (t & 7) * 4)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(b0), "=r"(b1) : "r"(address(s + (t & 15) * 16)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(c0), "=r"(c1), "=r"(c2), "=r"(c3) : "r"(address(s + t * 20)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(e) : "r"(address(s + (t & 7) * 8)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(f0), "=r"(f1) : "r"(address(s + (t ^ 3) * 4)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(g0), "=r"(g1), "=r"(g2), "=r"(g3) : "r"(address(s + t * 32)));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(d + (t ^ (t >> 3)) * 4)), "r"(c0),
                 "r"(c1), "r"(c2), "r"(c3) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address(d + 128 + (t & 15) * 12)), "r"(f0), "r"(f1) : "memory");
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address(d + (t & 15) * 4 + (t >> 4) * 64)), "r"(g0),
                 "r"(c1), "r"(g2), "r"(c3) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address(d + 400 + (t & 7) * 8)), "r"(a) : "memory");
    __syncwarp();
    unsigned v = a ^ b0 * 3 ^ b1 * 5 ^ c0 ^ c1 * 7 ^ c2 * 9 ^ c3 * 11 ^ e ^ f0 * 13 ^ f1 ^ g0 ^ g1 * 17 ^ g2 ^ g3 * 19;
    v += d[t * 4] + d[128 + (t & 15) * 12 + (t >> 4)] + d[400 + (t & 7) * 8 + (t >> 3)];
    out[i] = v;
}

// mma.sync of halves: 16x8x16 and 16x8x8, sums in float and in half.
extern "C" __global__ void mem_mma_half(const __half *a, const __half *b, float *c, __half *d)
{
    __shared__ __align__(16) __half sa[16][24], sb[8][24];
    const int t = threadIdx.x, g = t / 4, q = t % 4;
    const __half *from = a + blockIdx.x * 256;
    for (int k = t; k < 256; k += 32)
        sa[k / 16][k % 16] = from[k];
    for (int k = t; k < 128; k += 32)
        sb[k / 16][k % 16] = b[k];
    __syncwarp();
    unsigned x0, x1, x2, x3, y0, y1;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3) : "r"(address(&sa[t % 16][t / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y0), "=r"(y1) : "r"(address(&sb[t % 8][t / 8 % 2 * 8])));
    float f[4] = {0.5f, 1.0f, -1.0f, 0.0f};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x0), "r"(x1), "r"(y0));
    unsigned h0 = 0, h1 = 0;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(h0), "+r"(h1) : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));
    float *o = c + blockIdx.x * 128;
    *(float2 *)(o + g * 8 + q * 2) = make_float2(f[0], f[1]);
    *(float2 *)(o + (g + 8) * 8 + q * 2) = make_float2(f[2], f[3]);
    unsigned *p = (unsigned *)(d + blockIdx.x * 128);
    p[g * 4 + q] = h0;
    p[(g + 8) * 4 + q] = h1;
}

// mma.sync of bfloat16, tf32, doubles and small integers, with fragments loaded word by word.
extern "C" __global__ void mem_mma_others(const unsigned *words, const float *floats, const double *doubles, float *out,
                                          double *wide, int *sums)
{
    const int t = threadIdx.x;
    unsigned x[4], y[2];
    for (int k = 0; k < 4; k++)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x[k]) : "f"(floats[t + 32 * k]), "f"(floats[127 - t]));
    for (int k = 0; k < 2; k++)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y[k]) : "f"(floats[t * 2 + k]), "f"(floats[t ^ k]));
    float f[4] = {};
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x[0]), "r"(x[1]), "r"(y[0]));
    for (int k = 0; k < 4; k++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x[k]) : "f"(floats[t + 32 * k]));
    for (int k = 0; k < 2; k++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y[k]) : "f"(floats[t * 2 + k]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(x[0]), "r"(x[1]), "r"(y[0]));
    for (int k = 0; k < 4; k++)
        out[t * 4 + k] = f[k];
    double d0 = 1.0, d1 = -1.0;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d0), "+d"(d1) : "d"(doubles[t]), "d"(doubles[31 - t]));
    wide[t * 2] = d0;
    wide[t * 2 + 1] = d1;
    int n[4] = {1, 2, 3, 4};
    const unsigned a = words[t] * 0x01f30701u, b = words[t ^ 1] * 0x8107f103u;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%5, %4}, {%0, %1, %2, %3};"
                 : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3]) : "r"(a), "r"(b));
    for (int k = 0; k < 4; k++)
        sums[t * 4 + k] = n[k];
}

// Fragments whose layout is the compiler's: wmma of 16x16x16, from padded shared memory and from global memory.
// By inline PTX, since <mma.h> of NVRTC's wheels lacks a part.
#define WMMA_LOAD(what, r, from, stride) \
    asm volatile("wmma.load." what ".f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) \
                 : "l"(from), "r"(stride) : "memory")
#define WMMA_STORE(layout, to, r, stride) \
    asm volatile("wmma.store.d.sync.aligned." layout ".m16n16k16.f32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7}, %9;" ::"f"(r[0]), \
                 "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]), "l"(to), "r"(stride) : "memory")
#define WMMA(r, a, b) \
    asm volatile("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, " \
                 "{%8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19, %20, %21, %22, %23}, " \
                 "{%0, %1, %2, %3, %4, %5, %6, %7};" \
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]), "+f"(r[4]), "+f"(r[5]), "+f"(r[6]), "+f"(r[7]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]), \
                   "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]))

extern "C" __global__ void mem_wmma(const __half *a, const __half *b, float *c)
{
    __shared__ __align__(32) __half sa[32 * 24], sb[16 * 40];
    __shared__ __align__(32) float sc[2][16 * 20];
    const int t = threadIdx.x, warp = t / 32;
    for (int k = t; k < 512; k += 64) {
        sa[k / 16 * 24 + k % 16] = a[k];
        sb[k / 32 * 40 + k % 32] = b[k];
    }
    __syncthreads();
    unsigned fa[8], fb[8];
    float fc[8];
    for (int k = 0; k < 8; k++)
        fc[k] = 0.25f;
    WMMA_LOAD("a.sync.aligned.row.m16n16k16", fa, sa + warp * 16 * 24, 24);
    WMMA_LOAD("b.sync.aligned.row.m16n16k16", fb, sb + 16, 40);
    WMMA(fc, fa, fb);
    for (int k = 0; k < 8; k++)
        fc[k] *= 2.0f;
    WMMA_STORE("row", sc[warp], fc, 20);
    __syncthreads();
    for (int k = t; k < 512; k += 64)
        c[k] = sc[k / 256][k % 256 / 16 * 20 + k % 16];
    WMMA_LOAD("b.sync.aligned.row.m16n16k16", fb, b, 32);
    WMMA(fc, fa, fb);
    WMMA_STORE("col", c + 512 + warp * 256, fc, 16);
}

// ---- atomics

// Global integer atomics whose answers nobody reads: reductions.
extern "C" __global__ void mem_global_reductions(const int *in, int *words, u64 *longs, float *floats, double *doubles,
                                                 __half2 *halves)
{
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    const int v = in[i], at = v & 31;
    atomicAdd(words + at, v);
    atomicAdd(words + 32, 1);
    atomicMin(words + 64 + at, -v);
    atomicMax(words + 96 + at, v);
    atomicMin((unsigned *)words + 128 + (t & 7), (unsigned)v);
    atomicMax((unsigned *)words + 160 + (t & 7), (unsigned)v);
    atomicAnd(words + 192 + (t & 3), v | 0x40);
    atomicOr(words + 224 + at, 1 << (t & 31));
    atomicXor(words + 256 + at, v << 3);
    atomicInc((unsigned *)words + 288 + at, 5u);
    atomicDec((unsigned *)words + 320 + at, 9u);
    atomicSub(words + 352 + at, v);
    atomicAdd(longs + at, (u64)v << 20);
    atomicMax(longs + 32 + (t & 15), (u64)v << 33);
    atomicMin((long long *)longs + 64 + (t & 15), -(long long)v);
    atomicOr(longs + 96 + at, 1ull << (t & 63));
    atomicAdd(floats + at, (float)v);
    atomicAdd(floats + 32 + t, 0.5f);
    atomicAdd(doubles + (t & 15), (double)v);
    atomicAdd(halves + (t & 63), __halves2half2(__float2half(1.0f), __float2half(2.0f)));
    atomicAdd((__half *)(halves + 64) + (t & 31), __float2half(0.5f));
}

// The same with answers, each lane on a word of its own, so that the order does not matter.
extern "C" __global__ void mem_global_atomics(const int *in, int *words, u64 *longs, float *floats, double *doubles,
                                              __half2 *halves, int *out)
{
    const int t = threadIdx.x, i = blockIdx.x * 128 + t, n = gridDim.x * 128;
    const int v = in[i];
    int sum = atomicAdd(words + (i ^ 1), v);
    sum += atomicMin(words + i + n, v - 5) + atomicMax(words + i + 2 * n, v);
    sum += atomicAnd(words + i + 3 * n, 0x55) + atomicOr(words + i + 4 * n, v) + atomicXor(words + i + 5 * n, v * 7);
    sum += atomicExch(words + i + 6 * n, t) + atomicCAS(words + i + 7 * n, v & 1, 77);
    sum += (int)atomicInc((unsigned *)words + i + 8 * n, 3u) + (int)atomicDec((unsigned *)words + i + 9 * n, 12u);
    u64 wide = atomicAdd(longs + i, (u64)v << 35) + atomicExch(longs + i + n, (u64)t) + atomicCAS(longs + i + 2 * n, (u64)(v & 1), 99ull);
    wide += atomicMax(longs + i + 3 * n, (u64)v) + atomicXor(longs + i + 4 * n, ~0ull);
    const float f = atomicAdd(floats + (i * 3) % n, 1.5f) + atomicExch(floats + n + i, 2.5f);
    const double d = atomicAdd(doubles + i, 0.25);
    const __half2 h = atomicAdd(halves + i, __floats2half2_rn(1.0f, (float)t));
    out[i] = sum + (int)wide + (int)f + (int)d + (int)__low2float(h);
}

// Shared atomics without answers: integers, floats (loops), 64 bits, halves; one address by a whole warp.
extern "C" __global__ void mem_shared_reductions(const int *in, int *out)
{
    __shared__ int words[32 * 8];
    __shared__ u64 longs[64];
    __shared__ float floats[33];
    __shared__ double doubles[16];
    __shared__ __half2 halves[8];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    words[t] = words[t + 128] = 0;
    if (t < 64)
        longs[t] = 0;
    if (t < 33)
        floats[t] = 0;
    if (t < 16)
        doubles[t] = 0;
    if (t < 8)
        halves[t] = __float2half2_rn(0.0f);
    __syncthreads();
    const int v = in[i], at = v & 31;
    atomicAdd(words + at, v);
    atomicAdd(words + 32 + at, 1);
    atomicMin(words + 64 + at, -v);
    atomicMax(words + 96 + at, v);
    atomicAnd(words + 128 + (t & 3), v | 0x40);
    atomicOr(words + 160 + at, 1 << (t & 31));
    atomicXor(words + 192 + at, v << 3);
    atomicInc((unsigned *)words + 224 + (t & 15), 5u);
    atomicDec((unsigned *)words + 240 + (t & 15), 9u);
    atomicAdd(words + 7, 1);
    atomicAdd(words + 9, v);
    atomicAdd(longs + at, (u64)v << 33);
    atomicMax(longs + 32 + at, (u64)v << 31);
    atomicAdd(floats + (t & 7), (float)v);
    atomicAdd(floats + 32, 1.0f);
    atomicAdd(doubles + (t & 15), 0.5 * v);
    atomicAdd(halves + (t & 7), __floats2half2_rn(1.0f, 2.0f));
    __syncthreads();
    int sum = words[t] + words[t + 128] * 3 + (int)(longs[t & 63] >> 31) + (int)floats[t % 33] + (int)(doubles[t & 15] * 2);
    out[i] = sum + (int)__low2float(halves[t & 7]) + (int)__high2float(halves[t & 7]) * 100;
}

// Shared atomics with answers, each lane on a word of its own.
extern "C" __global__ void mem_shared_atomics(const int *in, int *out)
{
    __shared__ int words[128 * 6];
    __shared__ u64 longs[256];
    __shared__ float floats[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int k = 0; k < 6; k++)
        words[t + k * 128] = k * t;
    longs[t] = longs[t + 128] = t;
    floats[t] = 0.5f;
    __syncthreads();
    const int v = in[i];
    int sum = atomicAdd(words + (t ^ 1), v) + atomicExch(words + 128 + t, v) + atomicCAS(words + 256 + t, 2 * t, v);
    sum += atomicMin(words + 384 + (t * 3 & 127), v) + atomicOr(words + 512 + t, v);
    sum += (int)atomicInc((unsigned *)words + 640 + t, 20u);
    u64 wide = atomicAdd(longs + t, (u64)v << 30) + atomicExch(longs + 128 + t, (u64)v);
    wide += atomicCAS(longs + 128 + t, (u64)(v | 1), 5ull);
    const float f = atomicAdd(floats + (t ^ 3), 1.25f);
    __syncthreads();
    out[i] = sum + (int)wide + (int)(f * 4) + words[t * 5 % 768] + (int)(longs[255 - t] >> 1) + (int)(floats[t] * 8);
}

// Compare-and-swap loops on few words: how many rounds there are is open, the maxima and products are not.
extern "C" __global__ void mem_cas_loops(const int *in, unsigned *products, int *out)
{
    __shared__ int maxima[4];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (t < 4)
        maxima[t] = 0;
    __syncthreads();
    const int v = in[i];
    int old = maxima[t & 3];
    while (old < v * v) {
        const int seen = atomicCAS(maxima + (t & 3), old, v * v);
        if (seen == old)
            break;
        old = seen;
    }
    unsigned was = products[v & 7], seen;
    do {
        seen = was;
        was = atomicCAS(products + (v & 7), seen, seen * (2 * v + 1));
    } while (was != seen);
    __syncthreads();
    out[i] = maxima[t & 3];
}

// Atomics with scopes and orders, as reductions, and behind generic pointers.
extern "C" __global__ void mem_atomic_scopes(const int *in, int *words, int *out)
{
    __shared__ int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = 0;
    __syncthreads();
    const int v = in[i];
    int a, b;
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(words + (v & 15)), "r"(v) : "memory");
    asm volatile("red.relaxed.cta.global.or.b32 [%0], %1;" ::"l"(words + 16 + (v & 15)), "r"(v) : "memory");
    asm volatile("atom.acq_rel.sys.global.add.s32 %0, [%1], %2;" : "=r"(a) : "l"(words + 64 + i), "r"(v) : "memory");
    asm volatile("atom.acquire.cta.shared.exch.b32 %0, [%1], %2;" : "=r"(b) : "r"(address(s + t)), "r"(v) : "memory");
    int *p = v & 1 ? s + t : words + 64 + i;
    atomicAnd_block(p, 0x7e);
    atomicOr_block(p, 1);
    a += atomicAdd_block(p, 2);
    atomicAdd((float *)(words + 400) + (t & 3), 1.0f);
    atomicAdd_system(words + 420, 1);
    __syncthreads();
    out[i] = a + b + s[t];
}

// One address by all lanes with answers: their sum is the same in every order, the places are not.
extern "C" __global__ void mem_one_address(const int *in, int *words, int *out)
{
    __shared__ int n, total;
    __shared__ unsigned wrap;
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0)
        n = total = wrap = 0;
    __syncthreads();
    const int place = atomicAdd(&n, 2);
    atomicAdd(&total, in[i]);
    const unsigned turn = atomicInc(&wrap, 6u);
    const int global = atomicAdd(words, 1);
    atomicMax(words + 1, place);
    atomicAdd(words + 2, global);
    atomicAdd(words + 3, (int)turn);
    __syncthreads();
    out[i] = n + total + (int)wrap;
}

// Vector reductions of floats where the compiler has them, four of one float each where not.
extern "C" __global__ void mem_vector_reductions(const float4 *in, float4 *out, __half2 *halves, unsigned *bfloats)
{
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    const float4 v = make_float4((int)(in[i].x * 8), (int)(in[i].y * 8), 1.0f, 2.0f);
#if __CUDACC_VER_MAJOR__ >= 13
    atomicAdd(out + t, v);
    atomicAdd((float2 *)(out + 64) + t, make_float2(v.x, v.w));
    asm volatile("red.global.v4.f16x2.add.noftz [%0], {%1, %2, %1, %2};" ::"l"(halves + t * 4), "r"(0x3c004000u), "r"(0x38003c00u) : "memory");
#else
    float *o = (float *)(out + t), *p = (float *)(out + 64) + t * 2;
    atomicAdd(o, v.x);
    atomicAdd(o + 1, v.y);
    atomicAdd(o + 2, v.z);
    atomicAdd(o + 3, v.w);
    atomicAdd(p, v.x);
    atomicAdd(p + 1, v.w);
    for (int k = 0; k < 4; k++)
        atomicAdd(halves + t * 4 + k, k & 1 ? __floats2half2_rn(1.0f, 0.5f) : __floats2half2_rn(2.0f, 1.0f));
#endif
    unsigned old;
    asm volatile("atom.global.add.noftz.bf16x2 %0, [%1], %2;" : "=r"(old) : "l"(bfloats + t), "r"(0x3f804000u) : "memory");
    asm volatile("red.add.noftz.bf16x2 [%0], %1;" ::"l"(bfloats + 64 + (old & 0)), "r"(0x3f803f80u) : "memory");
}

// ---- clusters and the rest

// Two blocks of a cluster read each other's shared memory and add to it.
extern "C" __global__ void __cluster_dims__(2, 1, 1) mem_cluster(const int *in, int *out)
{
    __shared__ int s[128], sums[32];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    unsigned rank, theirs, their_sums;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    s[t] = in[i];
    if (t < 32)
        sums[t] = 0;
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(address(s + (t * 2 & 127))), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(their_sums) : "r"(address(sums + (t & 31))), "r"(rank ^ 1));
    int v;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(theirs) : "memory");
    asm volatile("red.shared::cluster.add.s32 [%0], %1;" ::"r"(their_sums), "r"(v) : "memory");
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
    out[i + 1024] = sums[t & 31];
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(their_sums), "r"((int)(rank * 1000 + (t & 31))) : "memory");
    out[i] = v;
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    out[i + 512] = sums[t & 31];
}

// A ring of four blocks, by generic pointers into the next one's shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) mem_cluster_ring(const float4 *in, float4 *out)
{
    __shared__ float4 s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    s[t] = in[i];
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
    float4 *next;
    asm("mapa.u64 %0, %1, %2;" : "=l"(next) : "l"(s), "r"((rank + 1) % size));
    float4 v = next[63 - t];
    v.x += ((float *)next)[t];
    out[i] = v;
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// One lane is elected, one waits, one never traps; launches that depend on each other; clocks and names of places.
extern "C" __global__ void mem_odds(const int *in, int *out, int n)
{
    __shared__ int s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    s[t] = in[i];
    int elected, lane, warp_mask;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.s32 %0, 1, 0, p; }" : "=r"(elected));
    if (elected)
        s[t] += 1000;
    __syncthreads();
    asm volatile("griddepcontrol.launch_dependents;");
    if (n < 0)
        __trap();
    if (n == -5)
        printf("never %d\n", t);
    if (t == 40)
        __nanosleep(100);
    const long long begin = clock64();
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(warp_mask));
    const unsigned end = clock();
    unsigned sm, warp;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    out[i] = s[t ^ 1] + lane + warp_mask + (begin + end == 12345 ? 1 : 0) * 0 + (sm > 5000u) + (warp > 64u) + (time == 0);
}


