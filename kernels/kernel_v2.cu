// C = A * B, row-major, float32. A block makes a 16 x 16 tile of C from tiles of A and B in shared memory; a thread
// makes one element.
//
// Both tiles hold 1024 floats, so each of the 256 threads brings one float4 of A and one of B:
//   s_a[16][64]  16 threads to a row, s_b[64][16]  4 threads to a row
// A warp is 2 rows (ty) of 16 threads. While it multiplies, it reads
//   s_a[ty][k]   two words, 64 words apart, so in one bank. The compiler unrolls the loop and joins four k into one
//                16-byte read, of which each half of the warp is served by itself: 2 wavefronts, nothing collides
//   s_b[k][tx]   16 neighbours, read by both rows: clean
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte loads where K (for A) and N (for B) are
// multiples of 4.

#include "edge.cuh"

constexpr int BM = 16, BN = 16, BK = 64;

extern "C" __global__ void kernel_v2(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int tid = ty * BN + tx;

    // What this thread brings: its place in the tiles, and the row of A and the column of B it comes from.
    const int a_m = ty, a_k = tx * 4;
    const int b_k = tid / 4, b_n = tid % 4 * 4;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += BK) {
        float4 a = {0.0f, 0.0f, 0.0f, 0.0f}, b = a;
        if (K % 4 != 0) a = load4_edge(A, M, K, a_row, k0 + a_k);
        else if (a_row < M && k0 + a_k < K) a = LOAD4(A[a_row * K + k0 + a_k]);
        if (N % 4 != 0) b = load4_edge(B, K, N, k0 + b_k, b_col);
        else if (k0 + b_k < K && b_col < N) b = LOAD4(B[(k0 + b_k) * N + b_col]);

        STORE4(s_a[a_m][a_k]) = a;
        STORE4(s_b[b_k][b_n]) = b;
        __syncthreads();

        for (int k = 0; k < BK; ++k) {
            const float a = s_a[ty][k];
            const float b = s_b[k][tx];
            sum += a * b;
        }
        __syncthreads();
    }

    const int row = blockIdx.y * BM + ty;
    const int col = blockIdx.x * BN + tx;
    if (row < M && col < N) C[row * N + col] = sum;
}
