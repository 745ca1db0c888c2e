// Control flow: jump tables, nested loops, early returns, loops without an end; functions that were inlined.
__device__ __forceinline__ float innermost(const float *x, int i) { return x[i] * 3; }
__device__ __forceinline__ float middle(const float *x, int i) {
  return innermost(x, i) + x[i + 1];
}

__global__ void __launch_bounds__(256, 2) inlined(float *out, const float *in) {
  out[threadIdx.x] = middle(in, blockIdx.x);
  out[threadIdx.x + 1] = middle(in, blockIdx.y);
}

__global__ void table(int *out, int n) {
  switch (n) {
    case 0: out[3] = 1; break;
    case 1: out[n] *= 7; break;
    case 2: out[1] = out[n + 5]; break;
    case 3: atomicAdd(out, 3); break;
    case 4: out[9] = clock(); break;
    case 5: __syncthreads(); break;
    case 6: out[n] ^= out[0]; break;
    case 7: __threadfence(); break;
    default: out[8] = n;
  }
}

__global__ void early(int *out, const int *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (in[i] > 3) {
    if (in[i] == 5) return;
    out[i] = 2;
  }
  for (int k = 0; k < n; k++) {
    if (in[k] < 0) continue;
    if (in[k] > 100) break;
    for (int j = k; j < n; j += 2) out[j] += in[k];
  }
  out[i + 1] = 1;
}

__global__ void endless(volatile int *flag) {
  while (true) {
    if (flag[0]) flag[1] = 1;
    else flag[2] = 1;
  }
}

__global__ void __cluster_dims__(2, 1, 1) clustered(int *out) { out[0] = 1; }

__global__ void trapping(int *out, int n) {
  if (n < 0) __trap();
  out[n] = 1;
}
