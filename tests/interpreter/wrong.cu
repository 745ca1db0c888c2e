// Kernels that a GPU would stop.
__global__ void outside(int *y) { y[threadIdx.x + 1000000] = 1; }
__global__ void misaligned(int *y) { *(int *)((char *)y + threadIdx.x) = 1; }
__global__ void traps(int *y) { if (threadIdx.x == 37) __trap(); y[threadIdx.x] = 1; }
#include <cassert>
__global__ void asserts(int *y) { assert(threadIdx.x != 37); y[threadIdx.x] = 1; }
__global__ void asserts_once(int *y) { if (threadIdx.x == 5) { int was = y[0]; y[0] = 1; assert(was); } }
__global__ void endless(volatile int *y) { while (y[0] == 0); }
__global__ void deadlock(int *y) { if (threadIdx.x < 32) { asm volatile("bar.sync 1, 64;"); } y[threadIdx.x] = 1; }
__global__ void shared_outside(int *y, int n) { __shared__ int s[64]; s[threadIdx.x + n] = 3; __syncthreads(); y[threadIdx.x] = s[63 - threadIdx.x]; }
