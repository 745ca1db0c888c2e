// Sums of blocks and warps, and other work where a block meets in shared memory.
// Copyright the memsim authors. Apache-2.0.

#define FULL 0xffffffffu

// The sum of a block: shuffles in the warps, then one warp over the sums of all.
extern "C" __global__ void reduce_shuffle(const int *in, int *out, int n)
{
    __shared__ int sums[8];
    const int t = threadIdx.x;
    int v = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256)
        v += in[i];
    for (int step = 16; step > 0; step >>= 1)
        v += __shfl_down_sync(FULL, v, step);
    if ((t & 31) == 0)
        sums[t >> 5] = v;
    __syncthreads();
    if (t < 32) {
        v = t < 8 ? sums[t] : 0;
        for (int step = 4; step > 0; step >>= 1)
            v += __shfl_down_sync(FULL, v, step);
        if (t == 0)
            atomicAdd(out, v);
    }
}

// The two old ways of a tree in shared memory: strides that grow (conflicts) and that shrink (none).
extern "C" __global__ void reduce_trees(const float *in, float *out)
{
    __shared__ float s[256], r[256];
    const int t = threadIdx.x;
    s[t] = r[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        const int at = 2 * step * t;
        if (at < 256)
            s[at] += s[at + step];
        __syncthreads();
    }
    for (int half = 128; half > 32; half >>= 1) {
        if (t < half)
            r[t] += r[t + half];
        __syncthreads();
    }
    if (t < 32) {
        float v = r[t] + r[t + 32];
        for (int step = 16; step > 0; step >>= 1)
            v += __shfl_xor_sync(FULL, v, step);
        if (t == 0) {
            out[blockIdx.x * 2] = s[0];
            out[blockIdx.x * 2 + 1] = v;
        }
    }
}

// The place of the greatest: two values move together.
extern "C" __global__ void reduce_argmax(const float *in, int *out)
{
    __shared__ float best[4];
    __shared__ int place[4];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    float v = in[i];
    int at = i;
    for (int step = 16; step > 0; step >>= 1) {
        const float theirs = __shfl_xor_sync(FULL, v, step);
        const int where = __shfl_xor_sync(FULL, at, step);
        if (theirs > v || (theirs == v && where < at)) {
            v = theirs;
            at = where;
        }
    }
    if ((t & 31) == 0) {
        best[t >> 5] = v;
        place[t >> 5] = at;
    }
    __syncthreads();
    if (t == 0) {
        for (int k = 1; k < 4; k++)
            if (best[k] > v) {
                v = best[k];
                at = place[k];
            }
        out[blockIdx.x] = at;
    }
}

// The last block to finish adds up the sums of all: which one that is, is open.
extern "C" __global__ void reduce_last_block(const int *in, int *sums, unsigned *finished, int *out)
{
    __shared__ int s[128];
    __shared__ bool last;
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (t < half)
            s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) {
        sums[blockIdx.x] = s[0];
        __threadfence();
        last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t < gridDim.x) {
        const int v = __ldcg(sums + t);
        atomicAdd(out, v);
    }
}

// A stencil with a halo: 3 x 3 around each cell of a tile.
extern "C" __global__ void reduce_stencil(const float *in, float *out, int width, int height)
{
    __shared__ float s[18][18];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    for (int dy = ty; dy < 18; dy += 16)
        for (int dx = tx; dx < 18; dx += 16) {
            const int gx = blockIdx.x * 16 + dx - 1, gy = blockIdx.y * 16 + dy - 1;
            s[dy][dx] = gx >= 0 && gx < width && gy >= 0 && gy < height ? in[gy * width + gx] : 0.0f;
        }
    __syncthreads();
    if (x >= width || y >= height)
        return;
    float sum = 0;
#pragma unroll
    for (int dy = 0; dy < 3; dy++)
#pragma unroll
        for (int dx = 0; dx < 3; dx++)
            sum += s[ty + dy][tx + dx] * (dx + 2 * dy - 1);
    out[y * width + x] = sum;
}

// A sparse matrix, CSR: one warp a row, and one thread a row. The rows' lengths are made here.
extern "C" __global__ void reduce_spmv(const float *values, const float *vector, float *out, int rows)
{
    const int thread = blockIdx.x * 128 + threadIdx.x, warp = thread / 32, lane = thread % 32;
    if (warp < rows) {
        const int begin = warp * (warp + 1) / 2 * 3, end = begin + (warp + 1) * 3;
        float sum = 0;
        for (int k = begin + lane; k < end; k += 32)
            sum += values[k] * vector[(k * 17 + warp) & 127];
        for (int step = 16; step > 0; step >>= 1)
            sum += __shfl_xor_sync(FULL, sum, step);
        if (lane == 0)
            out[warp] = sum;
    }
    if (thread < rows) {
        const int begin = thread * (thread + 1) / 2 * 3, end = begin + (thread + 1) * 3;
        float sum = 0;
        for (int k = begin; k < end; k++)
            sum += values[k] * vector[(k * 17 + thread) & 127];
        out[rows + thread] = sum;
    }
}

// A matrix product with tiles of 16 x 16, the plain one.
extern "C" __global__ void reduce_matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float sa[16][16], sb[16][17];
    const int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        sa[ty][tx] = row < m && at + tx < k ? a[row * k + at + tx] : 0.0f;
        sb[tx][ty] = column < n && at + ty < k ? b[(at + ty) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += sa[ty][i] * sb[tx][i];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
