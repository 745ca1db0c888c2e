// Kernels whose blocks may run in any order, or at the same time, and others beside them whose results depend on it.
#define T threadIdx.x
#define I (blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned u32;
typedef unsigned long long u64;

// y[where]: changed by x, of whose results nobody hears.
#define UPDATES(name, type, call) __global__ void name(type *y, const type *x, const int *where) { call(y + where[I], x[I]); }
UPDATES(add_int, int, atomicAdd)
UPDATES(add_u64, u64, atomicAdd)
UPDATES(min_int, int, atomicMin)
UPDATES(max_u32, u32, atomicMax)
UPDATES(min_u64, u64, atomicMin)
UPDATES(max_s64, long long, atomicMax)
UPDATES(and_u32, u32, atomicAnd)
UPDATES(or_u64, u64, atomicOr)
UPDATES(xor_u32, u32, atomicXor)
// Order matters:
UPDATES(add_float, float, atomicAdd)
UPDATES(add_double, double, atomicAdd)
UPDATES(exchange, int, atomicExch)
UPDATES(wrap, u32, atomicInc)

__global__ void old_value(int *y, const int *x) { y[1 + I] = atomicAdd(y, x[I]); }
__global__ void add_and_max(int *y, const int *x) { if (x[I] & 1) atomicAdd(y, x[I]); else atomicMax(y, x[I]); }
__global__ void swap(int *y, const int *x) { atomicCAS(y, x[I] & 1, x[I] & 3); }
__global__ void polls(int *y, const int *x) { volatile int *flag = y; if (blockIdx.x) while (!*flag); else *flag = 1; y[1 + I] = x[I]; }
__global__ void fences(int *y, const int *x) { y[1 + I] = x[I]; __threadfence(); y[0] = blockIdx.x; }
__global__ void times(int *y, const int *x) { y[I] = x[I] + (int)(clock64() & 1); }

__global__ void fences_block(int *y, const int *x) { y[I] = x[I]; __threadfence_block(); y[I] += x[I]; }
__global__ void old_value_in_block(int *y, const int *x) {
  __shared__ int s;
  if (!T) s = 0;
  __syncthreads();
  int before = atomicAdd(&s, x[I]);
  __syncthreads();
  y[I] = before - before + s;
}
__global__ void touches(int *y, const int *x, int *z, int last) { if (blockIdx.x < last) y[I] = x[I]; else z[T] = 1; }

// --- faults -----------------------------------------------------------------------------------------------------

__global__ void fails_from(int *y, int first, int rounds) {  // the first one after a while, others at once
  int block = blockIdx.x, sum = block;
  if (block <= first) for (int i = 0; i < rounds; i++) { sum = sum * 3 + 1; __syncthreads(); }
  if (block < first) y[I] = sum | 1; else y[10000000 + block + sum % 2 * 64] = sum;
}
__global__ void waits_for_one_that_fails(int *y) {
  if (blockIdx.x == 0) { volatile int *flag = y; while (!*flag); }
  else if (T == 3) __trap();
}
__global__ void endless_later(int *y, int first) { int n = 1; if (blockIdx.x >= first) while (y[I] != n) { n ^= 2; __syncthreads(); } else y[I] = 1; }
