// Kernels that a GPU would stop, and one that the interpreter leaves to the emulator.
__device__ float total(float v) { for (int m = 16; m; m >>= 1) v += __shfl_xor_sync(~0u, v, m); return v; }
__global__ void shuffles_on_two_ways(const float *x, float *y, int rows, int columns) {
  __shared__ float sums[64];
  int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  for (int row = 0; row < rows; ++row) {
    float v = 0;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) v += x[row * columns + c];
    v = total(v);
    if (lane == 0) sums[row * (blockDim.x / 32) + threadIdx.x / 32] = v;
  }
  __syncthreads();
  if (threadIdx.x < rows * (blockDim.x / 32)) y[threadIdx.x] = sums[threadIdx.x];
}
__global__ void outside(int *y) { y[threadIdx.x + 1000000] = 1; }
__global__ void misaligned(int *y) { *(int *)((char *)y + threadIdx.x) = 1; }
__global__ void traps(int *y) { if (threadIdx.x == 37) __trap(); y[threadIdx.x] = 1; }
#include <cassert>
__global__ void asserts(int *y) { assert(threadIdx.x != 37); y[threadIdx.x] = 1; }
__global__ void asserts_once(int *y) { if (threadIdx.x == 5) { int was = y[0]; y[0] = 1; assert(was); } }
__global__ void endless(volatile int *y) { while (y[0] == 0); }
__global__ void deadlock(int *y) { if (threadIdx.x < 32) { asm volatile("bar.sync 1, 64;"); } y[threadIdx.x] = 1; }
__global__ void shared_outside(int *y, int n) { __shared__ int s[64]; s[threadIdx.x + n] = 3; __syncthreads(); y[threadIdx.x] = s[63 - threadIdx.x]; }
