// The C++ interface of the tensor cores.
#include <mma.h>
using namespace nvcuda;

__global__ void tiles(float *c, const half *a, const half *b, int n) {
  __shared__ half stage[256];
  __shared__ float sums[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k = 0; k < n; k += 16) {
    stage[threadIdx.x] = a[k + threadIdx.x];
    __syncthreads();
    wmma::load_matrix_sync(fa, stage, 16);
    wmma::load_matrix_sync(fb, b + k, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(sums, fc, 16, wmma::mem_col_major);
  __syncthreads();
  c[n] = sums[threadIdx.x];
  wmma::store_matrix_sync(c, fc, n, wmma::mem_row_major);
}
