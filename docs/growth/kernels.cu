// Kernels whose launch, requests or length can be chosen: what memsim's time and memory grow with.

extern "C" __global__ void copy(const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i];
}

extern "C" __global__ void gather(const int *__restrict__ idx, const float *__restrict__ x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[idx[i]];
}

#ifndef STEPS
#define STEPS 16
#endif

// As long as STEPS says: each step reads shared memory at a stride of its own.
extern "C" __global__ void steps(const float *x, float *y) {
    __shared__ float tile[4096];
    for (int i = threadIdx.x; i < 4096; i += 256) tile[i] = x[i];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) sum += tile[(threadIdx.x * (2 * step + 1) + step) & 4095];
    y[blockIdx.x * 256 + threadIdx.x] = sum;
}
