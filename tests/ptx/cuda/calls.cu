// Calls: functions with a body, through pointers, recursive, virtual, external; stack arguments.
#include <assert.h>
#include <stdio.h>

struct Args { int numbers[6]; float scale; };
struct Pair { int first; float second; };
struct Shape {
  __device__ virtual float area(float x) const = 0;
};
struct Square : Shape {
  __device__ float area(float x) const override { return x * x; }
};
struct Disc : Shape {
  __device__ float area(float x) const override { return 3.14f * x * x; }
};

__device__ __noinline__ float scaled(float x, int *seen) {
  if (x < 0) return -x;
  *seen = 1;
  return x * 2;
}
__device__ __noinline__ Pair combined(Args args, int i) {
  Pair pair = {args.numbers[i % 6], args.scale * scaled(float(i), &args.numbers[0])};
  return pair;
}
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ __noinline__ void nothing() { asm volatile("nanosleep.u32 1;"); }
__device__ __noinline__ int counted(int i) {
  __shared__ int calls[32];
  calls[threadIdx.x] += i;
  return calls[31 - threadIdx.x];
}

__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
__device__ float (*const choices[2])(float) = {twice, thrice};

__global__ void direct(float *out, Args args, int n) {
  int seen = 0;
  out[0] = scaled(out[1], &seen) + scaled(out[2], &seen);
  Pair pair = combined(args, n);
  out[1] = pair.first + pair.second + seen;
  if (n > 3) nothing();
  out[2] = counted(n) + counted(n + 1);
}

__global__ void indirect(float *out, int which) { out[0] = choices[which](out[1]); }

__global__ void recursive(int *out, int n) { out[0] = factorial(n); }

__global__ void virtual_call(float *out, int which) {
  Square square;
  Disc disc;
  const Shape *shape = which ? static_cast<const Shape *>(&square) : &disc;
  out[0] = shape->area(out[1]);
}

__global__ void external(int n) {
  assert(n > 0);
  printf("thread %d of %d: %f\n", threadIdx.x, n, 1.5);
  int *memory = static_cast<int *>(malloc(n));
  memory[0] = n;
  free(memory);
}
