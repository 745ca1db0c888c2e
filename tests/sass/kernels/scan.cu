// Running sums.
// Copyright the memsim authors. Apache-2.0.

#define FULL 0xffffffffu

// Blelloch's scan in shared memory: up and down a tree, with many bank conflicts.
extern "C" __global__ void scan_blelloch(const int *in, int *out)
{
    __shared__ int s[512];
    const int t = threadIdx.x, base = blockIdx.x * 512;
    s[2 * t] = in[base + 2 * t];
    s[2 * t + 1] = in[base + 2 * t + 1];
    int offset = 1;
    for (int d = 256; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d)
            s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0)
        s[511] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            const int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            const int v = s[left];
            s[left] = s[right];
            s[right] += v;
        }
    }
    __syncthreads();
    out[base + 2 * t] = s[2 * t];
    out[base + 2 * t + 1] = s[2 * t + 1];
}

// The same with a word of padding after every 32.
extern "C" __global__ void scan_padded(const int *in, int *out)
{
    __shared__ int s[512 + 16];
    const int t = threadIdx.x, base = blockIdx.x * 512;
    const int a = t, b = t + 256;
    s[a + (a >> 5)] = in[base + a];
    s[b + (b >> 5)] = in[base + b];
    int offset = 1;
    for (int d = 256; d > 0; d >>= 1) {
        __syncthreads();
        if (t < d) {
            const int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            s[right + (right >> 5)] += s[left + (left >> 5)];
        }
        offset *= 2;
    }
    if (t == 0)
        s[511 + 15] = 0;
    for (int d = 1; d < 512; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (t < d) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            left += left >> 5;
            right += right >> 5;
            const int v = s[left];
            s[left] = s[right];
            s[right] += v;
        }
    }
    __syncthreads();
    out[base + a] = s[a + (a >> 5)];
    out[base + b] = s[b + (b >> 5)];
}

// Shuffles within the warps, then the sums of the warps.
extern "C" __global__ void scan_shuffle(const int *in, int *out)
{
    __shared__ int sums[8];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5, i = blockIdx.x * 256 + t;
    int v = in[i];
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(FULL, v, step);
        if (lane >= step)
            v += before;
    }
    if (lane == 31)
        sums[warp] = v;
    __syncthreads();
    if (warp == 0 && lane < 8) {
        int sum = sums[lane];
        for (int step = 1; step < 8; step *= 2) {
            const int before = __shfl_up_sync(0xffu, sum, step, 8);
            if (lane >= step)
                sum += before;
        }
        sums[lane] = sum;
    }
    __syncthreads();
    out[i] = v + (warp ? sums[warp - 1] : 0);
}

// Keep what is odd, in its order: places by votes.
extern "C" __global__ void scan_compact(const int *in, int *out, int *counts)
{
    __shared__ int before[9];
    const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    const int v = in[blockIdx.x * 256 + t];
    const bool keep = v & 1;
    const unsigned votes = __ballot_sync(FULL, keep);
    if (lane == 0)
        before[warp + 1] = __popc(votes);
    __syncthreads();
    if (t == 0) {
        before[0] = 0;
        for (int k = 1; k < 9; k++)
            before[k] += before[k - 1];
        counts[blockIdx.x] = before[8];
    }
    __syncthreads();
    if (keep)
        out[blockIdx.x * 256 + before[warp] + __popc(votes & ((1u << lane) - 1))] = v;
}

// Runs: a sum that starts anew where a flag stands.
extern "C" __global__ void scan_segments(const int *in, int *out)
{
    const int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 128 + t;
    int v = in[i];
    bool head = lane == 0 || v % 5 == 0;
    for (int step = 1; step < 32; step *= 2) {
        const int before = __shfl_up_sync(FULL, v, step);
        const bool their_head = __shfl_up_sync(FULL, (int)head, step);
        if (lane >= step && !head) {
            v += before;
            head = their_head;
        }
    }
    out[i] = v;
}
