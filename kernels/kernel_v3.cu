// C = A * B, row-major, float32. A block makes a 128 x 128 tile of C in steps of 8 along K; a thread makes 8 x 8
// elements of it in registers.
//
// The A tile is kept as it comes, row-major: s_a[128][8]. A warp is 2 rows (ty) of 16 threads, so while it multiplies
// it reads
//   s_a[ty*8 + i][k]       two words, 8 rows * 8 floats = 64 words apart: the same bank, 2 ways on every one
//   s_b[k][tx*8 ...]       16-byte reads 32 bytes apart: of each 8 lanes (one wavefront if clean) lanes 0 and 4, 1 and
//                          5, ... meet in the same banks, 2 ways
// and it stores C one float at a time, 32 bytes apart: each lane writes to a sector of its own.
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte loads where K (for A) and N (for B) are
// multiples of 4.

#include "edge.cuh"

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 8;              // the thread's part of it

extern "C" __global__ void kernel_v3(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[BM][BK];
    __shared__ __align__(16) float s_b[BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int tid = ty * (BN / TN) + tx;

    // What this thread brings: 2 threads to a row of the A tile, 32 (a warp) to a row of the B tile.
    const int a_m = tid / 2, a_k = tid % 2 * 4;
    const int b_k = tid / 32, b_n = tid % 32 * 4;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    float sum[TM][TN] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        float4 a = {0.0f, 0.0f, 0.0f, 0.0f}, b = a;
        if (K % 4 != 0) a = load4_edge(A, M, K, a_row, k0 + a_k);
        else if (a_row < M && k0 + a_k < K) a = LOAD4(A[a_row * K + k0 + a_k]);
        if (N % 4 != 0) b = load4_edge(B, K, N, k0 + b_k, b_col);
        else if (k0 + b_k < K && b_col < N) b = LOAD4(B[(k0 + b_k) * N + b_col]);

        STORE4(s_a[a_m][a_k]) = a;
        STORE4(s_b[b_k][b_n]) = b;
        __syncthreads();

#pragma unroll 1  // unrolled, the compiler would join the reads of s_a along k into 16-byte ones
        for (int k = 0; k < BK; ++k) {
            __align__(16) float r_a[TM], r_b[TN];
            for (int i = 0; i < TM; ++i) {
                r_a[i] = s_a[ty * TM + i][k];
            }
            STORE4(r_b[0]) = LOAD4(s_b[k][tx * TN]);
            STORE4(r_b[4]) = LOAD4(s_b[k][tx * TN + 4]);

            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += r_a[i] * r_b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = blockIdx.y * BM + ty * TM + i;
        for (int j = 0; j < TN; ++j) {
            const int col = blockIdx.x * BN + tx * TN + j;
            if (row < M && col < N) C[row * N + col] = sum[i][j];
        }
    }
}
