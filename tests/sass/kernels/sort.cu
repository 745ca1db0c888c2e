// Sorting and searching.
// Copyright the memsim authors. Apache-2.0.

#define FULL 0xffffffffu

static __device__ __forceinline__ unsigned mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// Bitonic sort of a block in shared memory.
extern "C" __global__ void sort_bitonic(const int *in, int *out)
{
    __shared__ int s[256];
    const int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int size = 2; size <= 256; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            const int other = t ^ step;
            if (other > t) {
                const int a = s[t], b = s[other];
                if ((a > b) == ((t & size) == 0)) {
                    s[t] = b;
                    s[other] = a;
                }
            }
            __syncthreads();
        }
    out[blockIdx.x * 256 + t] = s[t];
}

// Bitonic sort of a warp by shuffles, keys with values.
extern "C" __global__ void sort_warp(const unsigned *in, unsigned *keys, int *values)
{
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 64 + t;
    unsigned key = mix(in[i] + i);
    int value = i;
#pragma unroll
    for (int size = 2; size <= 32; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2) {
            const unsigned theirs = __shfl_xor_sync(FULL, key, step);
            const int their_value = __shfl_xor_sync(FULL, value, step);
            const bool up = (lane & size) == 0 || size == 32, low = (lane & step) == 0;
            if ((up == low) == (theirs < key)) {
                key = theirs;
                value = their_value;
            }
        }
    keys[i] = key;
    values[i] = value;
}

// Merge path: two sorted runs, made here; each thread finds its place by bisection and merges eight.
extern "C" __global__ void sort_merge_path(const int *in, int *out)
{
    __shared__ int a[512], b[512];
    const int t = threadIdx.x;
    for (int k = t; k < 512; k += 128) {
        a[k] = k * 3 + (in[blockIdx.x] & 1);
        b[k] = k * k / 200 + k;
    }
    __syncthreads();
    const int diagonal = t * 8;
    int low = max(0, diagonal - 512), high = min(diagonal, 512);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int x = low, y = diagonal - low;
    for (int k = 0; k < 8; k++) {
        const bool first = y >= 512 || (x < 512 && a[x] <= b[y]);
        out[blockIdx.x * 1024 + diagonal + k] = first ? a[x++] : b[y++];
    }
}

// Bisection in a sorted table that is made here: lanes take different ways through it.
extern "C" __global__ void sort_bisection(const int *in, int *out, int n)
{
    __shared__ int s[1000];
    const int t = threadIdx.x;
    for (int k = t; k < n; k += 128)
        s[k] = k * 5 + (int)(mix(k) % 5);
    __syncthreads();
    const int key = in[blockIdx.x * 128 + t] * 39 + t;
    int low = 0, high = n;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (s[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    out[blockIdx.x * 128 + t] = low;
}

// Odd-even sort with a way out when nothing moves, and insertion sort of every lane's own eight.
extern "C" __global__ void sort_small(const int *in, int *out)
{
    __shared__ int s[64 * 9];
    const int t = threadIdx.x;
    int *own = s + t * 9;
    for (int k = 0; k < 8; k++)
        own[k] = (int)(mix(in[blockIdx.x * 64 + t] + k * 64) & 255);
    for (int k = 1; k < 8; k++) {
        const int v = own[k];
        int j = k - 1;
        while (j >= 0 && own[j] > v) {
            own[j + 1] = own[j];
            j--;
        }
        own[j + 1] = v;
    }
    __syncthreads();
    for (int round = 0; round < 64; round++) {
        bool moved = false;
        const int at = 2 * t + (round & 1);
        if (at + 1 < 64 && s[at * 9] > s[(at + 1) * 9]) {
            const int v = s[at * 9];
            s[at * 9] = s[(at + 1) * 9];
            s[(at + 1) * 9] = v;
            moved = true;
        }
        if (!__syncthreads_or(moved) && round > 0)
            break;
    }
    out[blockIdx.x * 64 + t] = own[0] + own[7] * 1000;
}

// One pass of a radix sort of a block: split by each of four bits, with votes.
extern "C" __global__ void sort_radix(const int *in, int *out)
{
    __shared__ int s[128], zeros[5];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int v = in[blockIdx.x * 128 + t];
    for (int bit = 0; bit < 4; bit++) {
        const bool one = v >> bit & 1;
        const unsigned votes = __ballot_sync(FULL, !one);
        if (lane == 0)
            zeros[warp + 1] = __popc(votes);
        __syncthreads();
        if (t == 0) {
            zeros[0] = 0;
            for (int k = 1; k < 5; k++)
                zeros[k] += zeros[k - 1];
        }
        __syncthreads();
        const int before = zeros[warp] + __popc(votes & ((1u << lane) - 1));
        s[one ? zeros[4] + t - before : before] = v;
        __syncthreads();
        v = s[t];
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = v;
}
