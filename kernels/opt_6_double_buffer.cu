// C = A * B, row-major, float32. opt_5_float4 with two buffers for each tile: while one is multiplied, the next one is
// on its way from global memory in registers, and it goes into the other buffer. One barrier a step is enough.
//
// The layouts and the addresses are those of opt_5_float4, and so are the collisions:
//   s_a[a_k + i][a_m]   stores by neighbouring lanes meet in one bank, 2 ways
//   s_b[k][tx*8 ...]    16-byte reads 32 bytes apart, 2 ways
//
// Block 16 x 16; grid.x covers N, grid.y covers M. Any M, N, K; 16-byte loads and stores of global memory where K (for
// A) and N (for B and C) are multiples of 4.

#include "edge.cuh"

constexpr int BM = 128, BN = 128, BK = 8;  // the block's tile
constexpr int TM = 8, TN = 8;              // the thread's part of it

extern "C" __global__ void opt_6_double_buffer(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ __align__(16) float s_a[2][BK][BM];
    __shared__ __align__(16) float s_b[2][BK][BN];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int tid = ty * (BN / TN) + tx;

    // What this thread brings: 2 threads to a row of the A tile, 32 (a warp) to a row of the B tile.
    const int a_m = tid / 2, a_k = tid % 2 * 4;
    const int b_k = tid / 32, b_n = tid % 32 * 4;
    const int a_row = blockIdx.y * BM + a_m;
    const int b_col = blockIdx.x * BN + b_n;

    float4 a, b;  // the tile that is on its way
    auto fetch = [&](int k0) {
        a = b = {0.0f, 0.0f, 0.0f, 0.0f};
        if (K % 4 != 0) a = load4_edge(A, M, K, a_row, k0 + a_k);
        else if (a_row < M && k0 + a_k < K) a = LOAD4(A[a_row * K + k0 + a_k]);
        if (N % 4 != 0) b = load4_edge(B, K, N, k0 + b_k, b_col);
        else if (k0 + b_k < K && b_col < N) b = LOAD4(B[(k0 + b_k) * N + b_col]);
    };
    auto put = [&](int buffer) {
        s_a[buffer][a_k + 0][a_m] = a.x;
        s_a[buffer][a_k + 1][a_m] = a.y;
        s_a[buffer][a_k + 2][a_m] = a.z;
        s_a[buffer][a_k + 3][a_m] = a.w;
        STORE4(s_b[buffer][b_k][b_n]) = b;
    };

    fetch(0);
    put(0);
    __syncthreads();

    float sum[TM][TN] = {};
    int buffer = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        const bool more = k0 + BK < K;
        if (more) fetch(k0 + BK);

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float r_a[TM], r_b[TN];
            STORE4(r_a[0]) = LOAD4(s_a[buffer][k][ty * TM]);
            STORE4(r_a[4]) = LOAD4(s_a[buffer][k][ty * TM + 4]);
            STORE4(r_b[0]) = LOAD4(s_b[buffer][k][tx * TN]);
            STORE4(r_b[4]) = LOAD4(s_b[buffer][k][tx * TN + 4]);

            for (int i = 0; i < TM; ++i)
                for (int j = 0; j < TN; ++j) sum[i][j] += r_a[i] * r_b[j];
        }

        buffer ^= 1;
        if (more) put(buffer);
        __syncthreads();
    }

    for (int i = 0; i < TM; ++i) {
        const int row = blockIdx.y * BM + ty * TM + i;
        for (int j = 0; j < TN; j += 4) {
            const int col = blockIdx.x * BN + tx * TN + j;
            if (N % 4 != 0) store4_edge(C, M, N, row, col, LOAD4(sum[i][j]));
            else if (row < M && col < N) STORE4(C[row * N + col]) = LOAD4(sum[i][j]);
        }
    }
}
