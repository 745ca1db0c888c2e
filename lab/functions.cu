// MUFU.RCP, in whose place record_functions.py puts each function of the unit.
#include <stdint.h>
__device__ __forceinline__ uint32_t unit(uint32_t x) {
  uint32_t y;
  asm volatile("{.reg .f32 a, b; mov.b32 a, %1; rcp.approx.ftz.f32 b, a; mov.b32 %0, b;}" : "=r"(y) : "r"(x));
  return y;
}
extern "C" __global__ void table(uint32_t *out, const uint32_t *in, uint32_t first, uint32_t n) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = unit(in ? in[i] : first + i);
}
__device__ __forceinline__ uint64_t mix(uint64_t z) {  // splitmix64's finalizer
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
// One block for each chunk of 2^20 inputs: the sum of mix(input << 32 | output), modulo 2^64.
extern "C" __global__ void digest(unsigned long long *out) {
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  unsigned long long sum = 0;
  for (uint32_t k = threadIdx.x; k < (1u << 20); k += blockDim.x) {
    uint32_t x = (blockIdx.x << 20) + k;
    sum += mix((uint64_t)x << 32 | unit(x));
  }
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
// All 65,536 numbers of 16 bits.
#define HALF(NAME, OP) extern "C" __global__ void NAME(uint16_t *out) { uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; uint16_t y; \
  asm volatile(OP " %0, %1;" : "=h"(y) : "h"((uint16_t)i)); out[i] = y; }
HALF(ex2_f16, "ex2.approx.f16")
HALF(ex2_bf16, "ex2.approx.ftz.bf16")
HALF(tanh_f16, "tanh.approx.f16")
HALF(tanh_bf16, "tanh.approx.bf16")
