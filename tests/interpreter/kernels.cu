// Kernels of one kind of instruction each; T and I are a thread's number in its block and in the grid.
#include <cuda_fp16.h>
#include <mma.h>
#include <cuda_bf16.h>
#include <cassert>
#define T threadIdx.x
#define I (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned u32;

__global__ void diverging(int *y, const int *x) {
  int sum = 0;
  for (int i = 0; i < x[I] % 13; i++) {
    if ((x[I] >> i) & 1) continue;
    if (i == 7 && x[I] % 3 == 0) break;
    sum += i * x[I];
  }
  y[I] = sum;
}
__global__ void barriers(int *y, const int *x) {
  __shared__ int s[256];
  s[T] = x[I];
  __syncthreads();
  for (int step = blockDim.x / 2; step; step /= 2) {
    if (T < step) s[T] += s[T + step];
    __syncthreads();
  }
  int many = __syncthreads_count(x[I] & 1), all = __syncthreads_and(x[I] > -1000), any = __syncthreads_or(x[I] == 77);
  y[I] = s[0] + 1000 * many + all * 7 + any;
}
__global__ void named(int *y, const int *x) {
  __shared__ int s[128];
  s[T] = x[I];
  if (T < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 2, 64;" ::: "memory");
  y[I] = s[T ^ 32];
}
__global__ void lanes(int *y, const int *x) {
  int v = x[I], a = __shfl_down_sync(~0u, v, 3), b = __shfl_xor_sync(~0u, v, 5), c = __shfl_up_sync(~0u, v, 2, 8);
  u32 votes = __ballot_sync(~0u, v & 1);
  u32 same = __match_any_sync(~0u, v % 5);
  int least = __reduce_min_sync(~0u, v), most = (int)__reduce_max_sync(~0u, (u32)v);
  y[I] = a + 3 * b + 5 * c + (int)votes + 7 * (int)same + least + most + __any_sync(~0u, v == 3) + __shfl_sync(~0u, v, v & 31);
}
__global__ void some_lanes(int *y, const int *x) {
  int v = x[I];
  u32 here = __ballot_sync(~0u, v % 3);
  if (v % 3) v += __shfl_sync(here, v, __ffs(here) - 1) + (int)__activemask();
  __syncwarp();
  y[I] = v;
}
__global__ void exclusive(int *y, const int *x) {
  int v = x[I];
  u32 mask = __match_any_sync(~0u, v & 3);
  for (int i = 0; i < (v & 7); i++) v += i * x[I ^ 1];
  u32 least = __reduce_min_sync(mask, v);
  v = __shfl_sync(mask, v, __ffs(mask) - 1) + (int)least;
  if (v & 1) { u32 here = __match_any_sync(__activemask(), v % 5); v += __shfl_xor_sync(here, v, 3) + __popc(__ballot_sync(here, v & 2)); }
  y[I] = v;
}
__device__ __noinline__ int sum_of(u32 mask, int v) { for (int m = 1; m < 32; m *= 2) v = v * 3 + __shfl_xor_sync(mask, v, m); return v; }
__global__ void collective(int *y, const int *x) {
  int v = x[I];
  u32 mask = __match_any_sync(~0u, v & 2);
  if (v & 1) v = sum_of(~0u, v) + 3; else v = sum_of(~0u, v * 2);
  if (v & 4) v = sum_of(mask, v) + 3; else v = sum_of(mask, v * 2);
  y[I] = v;
}
__global__ void atomics(int *y, const int *x) {
  __shared__ u32 s[16]; __shared__ float f;
  if (T < 16) s[T] = 0;
  if (T == 8) f = 0;
  __syncthreads();
  atomicAdd(&s[x[I] & 7], 1u); atomicMax(&s[8 + (x[I] & 7)], (u32)T % 16); atomicAdd(&f, 1.0f);
  atomicAdd(&y[0], x[I]); atomicMin(&y[1], x[I]); atomicXor((u32 *)&y[2], (u32)x[I]);
  atomicInc((u32 *)&y[3], 100u); atomicAdd((unsigned long long *)&y[4], (unsigned long long)x[I]);
  atomicAdd((double *)&y[6], (double)(x[I] & 3)); atomicAdd((float *)&y[8], (float)(x[I] & 3));
  __syncthreads();
  if (T < 16) atomicAdd(&y[16 + T], (int)s[T]);
  if (T == 9) atomicAdd((float *)&y[12], f);
}
__device__ int lock;
__global__ void waits(int *y, const int *x) {
  if (T == 0) { while (atomicAdd(&lock, 0) != gridDim.x - 1 - blockIdx.x) __nanosleep(10); y[blockIdx.x] = x[blockIdx.x] + atomicAdd(&lock, 1); }
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void calls(int *y, const int *x) { y[I] = fibonacci(x[I] & 7); }
__device__ int twice(int v) { return 2 * v; }
__device__ int square(int v) { return v * v; }
__device__ int (*const table[2])(int) = {twice, square};
__global__ void pointers(int *y, const int *x) { y[I] = table[x[I] & 1](x[I] & 0xff); }
__global__ void switches(int *y, const int *x) {
  int v = x[I];
  switch (v & 15) { case 0: v += 3; break; case 1: v *= 5; break; case 2: v ^= 77; break; case 3: v -= 9; break;
    case 4: v = ~v; break; case 5: v >>= 2; break; case 6: v <<= 3; break; case 7: v %= 11; break; case 9: v /= 3; break; default: v = 1; }
  y[I] = v;
}
__global__ void local_memory(int *y, const int *x) {
  int a[40];
  for (int i = 0; i < 40; i++) a[i] = x[I] * i;
  for (int i = 0; i < 100; i++) { int j = (x[I] + i * 7) & 31; a[j] ^= a[j + 8]; }
  y[I] = a[x[I] & 31];
}
__global__ void generic(int *y, const int *x) {
  __shared__ int s[64]; int mine = x[I];
  s[T & 63] = T;
  __syncthreads();
  int *p = x[I] & 1 ? &y[I] : x[I] & 2 ? &s[T & 63] : &mine;
  *(volatile int *)p = x[I] + 1;
  __syncthreads();
  y[I] += mine + 3 * (s[T & 63] != 0);
}
__constant__ int numbers[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__global__ void constants(int *y, const int *x) { y[I] = numbers[x[I] & 15] * numbers[15 - (I & 15)]; }
__global__ void floats(float *y, const float *x) {
  float v = x[I];
  y[I] = sinf(v) + expf(v * 0.1f) * rsqrtf(fabsf(v) + 1) + logf(fabsf(v) + 0.5f) / (v + 3.5f) + __fdividef(v, 7.f) + powf(fabsf(v), 1.5f) + tanhf(v);
}
__global__ void doubles(double *y, const double *x) { double v = x[I]; y[I] = sqrt(fabs(v)) / (v + 1.5) + exp(v * 1e-2) + sin(v) + (long long)(v * 1e6) % 977; }
__global__ void longs(long long *y, const long long *x) { long long v = x[I]; y[I] = v * 12345678901LL + (v >> 7) / 13 + (unsigned long long)v % 1000003ULL + __popcll(v) + __clzll(v) + __brevll(v); }
__global__ void bytes(unsigned char *y, const unsigned char *x) { y[I] = (unsigned char)(x[I] * 3 + ((const signed char *)x)[I ^ 1] * ((const short *)x)[3]); ((short *)y)[512 + I] = (short)(-x[I]); }
__global__ void halves(__half *y, const __half *x) { __half2 a = ((const __half2 *)x)[I]; ((__half2 *)y)[I] = __hfma2(a, a, __hmul2(a, __float2half2_rn(0.5f))); y[1024 + I] = hexp(__low2half(a)); }
__global__ void half_arithmetic(__half2 *y, const __half2 *x) {
  __half2 a = x[I], b = __float2half2_rn(0.75f);
  for (int i = 0; i < 16; i++) { b = __hfma2(a, b, a); a = __hadd2(__hmul2(a, b), b); }
  y[I] = a;
}

__global__ void products(__half *y, const __half *x) {  // x: 512 or more for a, and for b of each warp
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __half, row_major> a; fragment<matrix_b, 16, 16, 16, __half, col_major> b;
  fragment<accumulator, 16, 16, 16, float> c;
  const __half *own = x + min(I / 32 * 32, gridDim.x * blockDim.x - 512);
  float sum = 0;
  fill_fragment(c, 0.0f);
  for (int k = 0; k < 16; k++) { load_matrix_sync(a, x + 16 * (k & 1), 32); load_matrix_sync(b, own + 16 * (k >> 1 & 1), 32); mma_sync(c, a, b, c); }
  for (int i = 0; i < c.num_elements; i++) sum = sum / 2 + c.x[i];
  y[I] = __float2half(sum);
}
__global__ void half_atomics(u32 *y, const u32 *x) {  // sums of many lanes are exact, as their order is not the same
  float v = (float)(x[I] & 1);
  u32 slot = x[I] >> 1 & 7;
  atomicAdd((__half2 *)y + slot, __floats2half2_rn(v, -v));
  atomicAdd((__nv_bfloat162 *)y + 8 + slot, __floats2bfloat162_rn(v, 2 * v));
#if __CUDA_ARCH__ >= 900
  atomicAdd((float2 *)y + 8 + slot, make_float2(v, 3 * v)); atomicAdd((float4 *)y + 8 + slot, make_float4(v, 2 * v, 3 * v, 4 * v));
  asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %2, %1, %2};" :: "l"(y + 64 + slot * 4), "r"(0x3c004000u), "r"(0xbc00c000u));
  asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %2};" :: "l"(y + 96 + slot * 2), "r"(0x3f804000u), "r"(0xbf800000u));
#endif
  if (I == 7)
    for (int k = 0; k < 40; k++) {
      float one = k == 37 ? INFINITY : k == 39 ? -INFINITY : (float)(int)x[k] * 1e-3f;
      atomicAdd((__half2 *)y + 120 + k / 10, __floats2half2_rn(one, -one)); atomicAdd((__nv_bfloat162 *)y + 124 + k / 10, __floats2bfloat162_rn(one, 1e34f * one));
    }
}
__global__ void vectors(float4 *y, const float4 *x) { float4 v = x[I], same = x[3]; y[I] = make_float4(v.w, v.z * 2, v.y + v.x, same.y); }
__global__ void asserts(int *y, const int *x) { assert(x[I] >= 0 && "never"); y[I] = x[I] / 3; assert(y[I] <= x[I]); }
__global__ void prints(int *y, const int *x) { if (x[I] == -1) printf("never"); y[I] = x[I]; }
