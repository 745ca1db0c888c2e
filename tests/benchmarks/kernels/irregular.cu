// Kernels whose requests do not repeat: what they access depends on data.

extern "C" __global__ void gather(const int *__restrict__ idx, const float *__restrict__ x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[idx[i]];
}

// A histogram in shared memory: lanes that meet in a bin are served one after the other.
extern "C" __global__ void histogram(const unsigned char *data, int *bins, int n) {
    __shared__ int local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

// A table in shared memory, looked up by data.
extern "C" __global__ void lookup(const float *table, const int *idx, float *y, int n) {
    __shared__ float local[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) local[i] = table[i];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = local[idx[i] & 1023];
}

// Compressed sparse rows times a vector, a thread for each row.
extern "C" __global__ void spmv(const int *starts, const int *columns, const float *values,
                                const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int j = starts[row]; j < starts[row + 1]; j++) sum += values[j] * x[columns[j]];
    y[row] = sum;
}

// A bitonic sort of 1024 keys in each block: who writes depends on the keys.
extern "C" __global__ void sort(int *keys) {
    __shared__ int local[1024];
    int *mine = keys + 1024 * blockIdx.x;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) local[i] = mine[i];
    for (int size = 2; size <= 1024; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            int a = local[at], b = local[at + stride];
            if ((a > b) == ((at & size) == 0)) {
                local[at] = b;
                local[at + stride] = a;
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) mine[i] = local[i];
}

// One level of a breadth-first search, a thread for each vertex.
extern "C" __global__ void bfs(const int *starts, const int *neighbours, int *level, int *changed,
                               int now, int vertices) {
    int vertex = blockIdx.x * blockDim.x + threadIdx.x;
    if (vertex >= vertices || level[vertex] != now) return;
    for (int j = starts[vertex]; j < starts[vertex + 1]; j++) {
        int other = neighbours[j];
        if (level[other] < 0) {
            level[other] = now + 1;
            *changed = 1;
        }
    }
}

// The probes of a hash join: keys lie where their hash says, or behind it.
extern "C" __global__ void join(const unsigned *keys, const unsigned *table, const int *payload, int *found,
                                int n, unsigned last) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = keys[i], slot = key * 2654435761u & last;
    int result = -1;
    while (table[slot] != 0xffffffffu) {
        if (table[slot] == key) {
            result = payload[slot];
            break;
        }
        slot = slot + 1 & last;
    }
    found[i] = result;
}

// Attention of each query to a list of keys of its own, a warp for each query, 64 numbers a head.
extern "C" __global__ void attention(const float *q, const float *k, const float *v, const int *starts,
                                     const int *lists, float *out, int queries) {
    int query = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (query >= queries) return;
    float2 mine = ((const float2 *)q)[query * 32 + lane], sum = make_float2(0, 0);
    float most = -1e30f, weights = 0;
    for (int j = starts[query]; j < starts[query + 1]; j++) {
        int key = lists[j];
        float2 its = ((const float2 *)k)[key * 32 + lane], value = ((const float2 *)v)[key * 32 + lane];
        float score = mine.x * its.x + mine.y * its.y;
        for (int apart = 16; apart; apart /= 2) score += __shfl_xor_sync(~0u, score, apart);
        float top = fmaxf(most, score), shrink = __expf(most - top), weight = __expf(score - top);
        sum.x = sum.x * shrink + weight * value.x;
        sum.y = sum.y * shrink + weight * value.y;
        weights = weights * shrink + weight;
        most = top;
    }
    ((float2 *)out)[query * 32 + lane] = make_float2(sum.x / weights, sum.y / weights);
}
