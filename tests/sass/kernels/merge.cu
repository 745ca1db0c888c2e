// Accesses that the compiler makes wider, fewer or other than they are written.
// Copyright the memsim authors. Apache-2.0.

// Four neighbours in shared memory: one load of 16 bytes.
extern "C" __global__ void merge_four_loads(const float *in, float *out)
{
    __shared__ __align__(16) float s[512];
    const int t = threadIdx.x;
    for (int k = 0; k < 4; k++)
        s[t + 128 * k] = in[t + 128 * k];
    __syncthreads();
    out[t] = s[t * 4] + s[t * 4 + 1] * 2 + s[t * 4 + 2] * 3 + s[t * 4 + 3] * 4;
}

// Two and three neighbours, and two that are not aligned.
extern "C" __global__ void merge_two_loads(const float *in, float *out)
{
    __shared__ __align__(16) float s[512];
    const int t = threadIdx.x;
    for (int k = 0; k < 4; k++)
        s[t * 4 + k] = in[t * 4 + k];
    __syncthreads();
    float sum = s[t * 2] - s[t * 2 + 1];
    sum += s[t * 4] * s[t * 4 + 1] + s[t * 4 + 2];
    sum += s[t * 2 + 1] * s[t * 2 + 2];
    out[t] = sum;
}

// Columns and rows of a register tile, as in a matrix product: unrolled, merged along one of them.
extern "C" __global__ void merge_register_tile(const float *a, const float *b, float *c)
{
    __shared__ __align__(16) float sa[16][64], sb[16][64];
    const int t = threadIdx.x, x = t % 16, y = t / 16;
    for (int k = t; k < 1024; k += 256) {
        sa[k / 64][k % 64] = a[blockIdx.x * 1024 + k];
        sb[k / 64][k % 64] = b[k];
    }
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int k = 0; k < 16; k++) {
        float ra[4], rb[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            ra[i] = sa[k][y * 4 + i];
            rb[i] = sb[k][x + 16 * i];
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] += ra[i] * rb[j];
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            c[blockIdx.x * 4096 + (y * 4 + i) * 64 + x + 16 * j] = sum[i][j];
}

// Loads whose values nobody needs, loads of one address twice, and a value that was just stored.
extern "C" __global__ void merge_dead_loads(const float *in, float *out)
{
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = in[t];
    const float again = s[t];
    __syncthreads();
    const float dead = s[(t * 32) & 255];
    const float one = s[t ^ 1], two = s[t ^ 1];
    out[t] = again + one * two + dead * 0 - (dead - dead) + s[7];
}

// Loads that do not change within a loop.
extern "C" __global__ void merge_invariant(const float *in, float *out, int rounds)
{
    __shared__ float s[128];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < rounds; k++)
        sum = sum * 0.5f + s[t ^ 3] + s[(k * 4) & 127] + s[5];
    out[t] = sum;
}

// Four bytes as four loads, and as one with byte permutes.
extern "C" __global__ void merge_bytes(const unsigned char *in, unsigned char *out)
{
    __shared__ __align__(4) unsigned char s[1024];
    const int t = threadIdx.x;
    *(uchar4 *)(s + t * 4) = *(const uchar4 *)(in + t * 4);
    __syncthreads();
    const unsigned char *from = s + 4 * (t ^ 5);
    const unsigned a = from[0], b = from[1], c = from[2], d = from[3];
    out[t * 4] = s[t] + a;
    out[t * 4 + 1] = s[t * 4 + 2] ^ b;
    out[t * 4 + 2] = (unsigned char)(c * 3);
    out[t * 4 + 3] = s[(t * 7) & 1023] + d;
}

// Signed bytes and shorts, in shared and global memory, stored as both.
extern "C" __global__ void merge_small_ints(const signed char *bytes, const short *shorts, int *out, signed char *small,
                                            unsigned short *halves)
{
    __shared__ signed char sb[256];
    __shared__ short sh[256];
    __shared__ unsigned short su[256];
    const int t = threadIdx.x;
    sb[t] = bytes[t];
    sh[t] = shorts[t] - 64;
    su[t] = (unsigned short)(sh[t] * 3);
    __syncthreads();
    const int v = sb[t ^ 1] * sh[(t * 2) & 255] + su[255 - t] + sb[(t * 4) & 255];
    out[t] = v;
    small[t] = (signed char)v;
    halves[t] = (unsigned short)(v >> 3);
}

// float2 and float4 through shared memory, read back otherwise than written.
extern "C" __global__ void merge_vectors(const float4 *in, float *out, float2 *pairs)
{
    __shared__ float4 s[128];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    const float2 *as_pairs = (const float2 *)s;
    const float *as_floats = (const float *)s;
    const float2 p = as_pairs[(t * 2) & 255];
    const float4 q = s[(t * 9) & 127];
    out[blockIdx.x * 128 + t] = as_floats[t * 3] + p.x * q.y - q.w;
    pairs[blockIdx.x * 128 + t] = make_float2(p.y, q.z);
}

struct Particle {
    float x, y, z;
    int kind;
    float mass;
};

// Array of structs of 20 bytes: one field, all fields.
extern "C" __global__ void merge_array_of_structs(const Particle *in, Particle *out, float *masses)
{
    __shared__ Particle s[64];
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = in[i];
    __syncthreads();
    Particle p = s[63 - t];
    p.x += s[(t * 3) & 63].mass;
    p.kind ^= s[t ^ 1].kind;
    out[i] = p;
    masses[i] = s[t].mass;
}

struct __align__(16) Cell {
    float value, weight;
    int left, right;
};

// Structs of 16 bytes: whole ones move as 16 bytes, halves as 8.
extern "C" __global__ void merge_aligned_structs(const Cell *in, Cell *out)
{
    __shared__ Cell s[96];
    const int t = threadIdx.x, i = blockIdx.x * 96 + t;
    s[t] = in[i];
    __syncthreads();
    const int left = s[t].left & 63, right = s[t].right & 63;
    Cell c;
    c.value = s[left].value + s[right].weight;
    c.weight = s[left].weight * s[right].value;
    c.left = right;
    c.right = left;
    out[i] = c;
}

// Struct of arrays: the same fields, one array each.
extern "C" __global__ void merge_struct_of_arrays(const float *in, float *out)
{
    __shared__ struct {
        float x[64], y[64], z[64];
        int kind[64];
        double mass[64];
    } s;
    const int t = threadIdx.x;
    s.x[t] = in[t];
    s.y[t] = in[t + 64];
    s.z[t] = in[t + 128];
    s.kind[t] = (t * 5) & 63;
    s.mass[t] = t * 0.25;
    __syncthreads();
    const int other = s.kind[t ^ 1];
    out[t] = s.x[other] * s.y[63 - t] + s.z[other] + (float)s.mass[other];
}

// Byte permutes: bytes turned round, pairs picked, a value put together of four bytes.
extern "C" __global__ void merge_permutes(const unsigned *in, unsigned *out)
{
    __shared__ unsigned s[256];
    const int t = threadIdx.x;
    const unsigned a = in[t] * 0x01030507u, b = in[t ^ 1] * 0x11213141u;
    s[t] = __byte_perm(a, b, 0x0123);
    __syncthreads();
    unsigned v = __byte_perm(s[t], b, 0x5140) ^ __byte_perm(a, s[255 - t], 0x7632);
    v += (a & 0xff) << 24 | (b & 0xff00) << 8 | (a >> 8 & 0xff00) | b >> 24;
    v ^= __byte_perm(a, b, (v & 0x7777));
    v += __byte_perm(a, 0, 0x8888 | 0x0123);  // signs of the bytes
    out[t] = v + s[__byte_perm(v, 0, 0x4440)];
}

// Global loads side by side, behind a pointer that is known to be aligned and one that is not.
extern "C" __global__ void merge_global_loads(const float *__restrict__ in, float *__restrict__ out)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float *a = (const float *)__builtin_assume_aligned(in, 16) + i * 4;
    float sum = a[0] + a[1] + a[2] * a[3];
    sum += in[i * 4 + 1] * in[i * 4 + 2];
    float *o = (float *)__builtin_assume_aligned(out, 16) + i * 2;
    o[0] = sum;
    o[1] = -sum;
}

// A loop that is unrolled by four, with a remainder.
extern "C" __global__ void merge_unrolled(const float *in, float *out, int n)
{
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = in[t];
    s[t + 128] = in[t + 128];
    __syncthreads();
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < n; k++)
        sum += s[k + t % 3] * s[(k * 16 + t) & 255];
    out[t] = sum;
}

// Stores side by side, and half of a pair under a condition.
extern "C" __global__ void merge_stores(const float *in, float *out)
{
    __shared__ __align__(16) float s[512];
    const int t = threadIdx.x;
    const float v = in[t];
    s[t * 4] = v;
    s[t * 4 + 1] = v + 1;
    s[t * 4 + 2] = v * 2;
    s[t * 4 + 3] = v - 3;
    if (v > 0)
        s[t * 4 + 1] = 0;
    __syncthreads();
    out[t * 2] = s[t];
    out[t * 2 + 1] = s[511 - t];
}
