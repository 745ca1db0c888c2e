// Counting and inserting: many lanes want the same places.
// Copyright the memsim authors. Apache-2.0.

#define FULL 0xffffffffu

// A histogram in shared memory, added to the one of all blocks.
extern "C" __global__ void hist_shared(const int *in, unsigned *out, int n)
{
    __shared__ unsigned bins[128];
    const int t = threadIdx.x;
    if (t < 128)
        bins[t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256)
        atomicAdd(bins + in[i], 1u);
    __syncthreads();
    if (t < 128 && bins[t])
        atomicAdd(out + t, bins[t]);
}

// A histogram for every warp, of bytes, four to a word.
extern "C" __global__ void hist_warps(const unsigned *in, unsigned *out)
{
    __shared__ unsigned bins[4][64];
    const int t = threadIdx.x, warp = t >> 5;
    for (int k = t; k < 256; k += 128)
        bins[k / 64][k % 64] = 0;
    __syncthreads();
    const unsigned word = in[blockIdx.x * 128 + t] * 0x01030705u;
#pragma unroll
    for (int k = 0; k < 4; k++)
        atomicAdd(&bins[warp][word >> (8 * k) & 63], 1u);
    __syncthreads();
    if (t < 64)
        out[blockIdx.x * 64 + t] = bins[0][t] + bins[1][t] + bins[2][t] + bins[3][t];
}

// A histogram of radix digits without atomics: lanes with the same digit find each other.
extern "C" __global__ void hist_radix(const unsigned *in, unsigned *out, int shift)
{
    __shared__ unsigned bins[4][16];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    if (lane < 16)
        bins[warp][lane] = 0;
    __syncwarp();
    for (int k = 0; k < 4; k++) {
        const unsigned digit = in[blockIdx.x * 512 + k * 128 + t] >> shift & 15;
        const unsigned peers = __match_any_sync(FULL, digit);
        if (lane == __ffs(peers) - 1)
            bins[warp][digit] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    if (t < 16)
        out[blockIdx.x * 16 + t] = bins[0][t] + bins[1][t] + bins[2][t] + bins[3][t];
}

// A hash table with open addresses in shared memory: keys by compare-and-swap. Where a key lands is open.
extern "C" __global__ void hist_hash_table(const int *in, int *out)
{
    __shared__ int keys[256], counts[256];
    const int t = threadIdx.x;
    keys[t] = keys[t + 128] = -1;
    counts[t] = counts[t + 128] = 0;
    __syncthreads();
    const int key = in[blockIdx.x * 128 + t];
    unsigned at = (unsigned)key * 0x9e3779b1u >> 24;
    while (true) {
        const int there = atomicCAS(keys + at, -1, key);
        if (there == -1 || there == key) {
            atomicAdd(counts + at, 1);
            break;
        }
        at = (at + 1) & 255;
    }
    __syncthreads();
    for (int k = t; k < 256; k += 128)
        if (keys[k] >= 0)
            out[blockIdx.x * 128 + keys[k]] = counts[k];
}

// A lock on global memory: blocks enter one at a time. How often each tries is open.
extern "C" __global__ void hist_spin_lock(int *lock, int *sums, const int *in)
{
    __shared__ int s[64];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    if (t == 0) {
        while (atomicCAS(lock, 0, 1) != 0)
            __nanosleep(50);
        __threadfence();
    }
    __syncthreads();
    volatile int *shared_sums = sums;
    shared_sums[t] = shared_sums[t] + s[63 - t];
    __threadfence();
    __syncthreads();
    if (t == 0)
        atomicExch(lock, 0);
}

// A ticket lock in shared memory: the warps' first lanes enter in the order of their tickets.
extern "C" __global__ void hist_ticket_lock(const int *in, int *out)
{
    __shared__ unsigned next, serving;
    __shared__ int sum;
    const int t = threadIdx.x;
    if (t == 0)
        next = serving = sum = 0;
    __syncthreads();
    if ((t & 31) == 0) {
        const unsigned mine = atomicAdd(&next, 1u);
        while (*(volatile unsigned *)&serving != mine)
            ;
        __threadfence_block();
        *(volatile int *)&sum = *(volatile int *)&sum + in[blockIdx.x * 128 + t];
        __threadfence_block();
        atomicAdd(&serving, 1u);
    }
    __syncthreads();
    out[blockIdx.x * 128 + t] = sum + t;
}

// One step of a breadth-first search: neighbours of the frontier that are new go to the next one. The order is open.
extern "C" __global__ void hist_frontier(const int *frontier, int size, int *depth, int *next, int *count)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= size)
        return;
    const int vertex = frontier[i];
    const int degree = vertex % 5 + 1;
    for (int k = 0; k < degree; k++) {
        const int neighbour = (vertex * 7 + k * k * 31 + 3) % 512;
        if (atomicCAS(depth + neighbour, 0, 1) == 0)
            next[atomicAdd(count, 1)] = neighbour;
    }
}
